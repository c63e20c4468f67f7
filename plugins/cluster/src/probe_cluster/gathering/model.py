"""What a gather handles: the nodes that an engine lists, their answers, and how long to wait."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypedDict

    from probe_cluster.network.start import Start
    from probe_core.model.document import Json

    class EngineDoc(TypedDict):
        """What the engine itself counts on a node; memory in bytes, None where it gives none."""

        source: str
        gpus: float | None
        cpus: float | None
        memory: int | None
        state: str | None

    class BasicsDoc(TypedDict):
        """What a Python too old for probe-core sees of its node; None is unknown."""

        source: str
        pci: list[dict[str, str]] | None
        """Display devices and accelerators: ``address``, ``class`` and ``id`` (vendor:device), in
        hexadecimal digits."""
        memory: int | None
        kernel: str | None
        arch: str | None

    Message = dict[str, Json]
    """What an agent prints, or takes; see the agent's program."""
    Write = Callable[[bytes], None]
    """Writes to the standard input of an agent, or of a process that passes it on to agents."""

    class LinkDoc(TypedDict):
        """One connection of two nodes; a figure is None where it was not measured."""

        ends: list[str]
        kind: str | None
        latency: float | None
        round_trip: float | None
        bandwidth: float | None
        bandwidths: list[float | None]
        interfaces: list[str | None]
        speed: float | None
        reason: str | None
        fix: str | None

    class LinkFindingDoc(TypedDict):
        """A finding about two nodes; it has a finding's names."""

        code: str
        severity: str
        nodes: list[str]
        what: str
        why: str
        fix: str
        evidence: str


STATUSES = {
    "ok": "a report arrived",
    "missing": "the node could not be reached, or ended without an answer",
    "timeout": "the node did not answer in time",
    "no-probe": "no probe runs there: none that fits is installed, and what is sent cannot run",
    "failed": "the node was reached, and the command failed there",
    "invalid": "the answer is damaged, or no report that this version reads",
    "interrupted": "the gather ended before the node answered",
}
"""Status of a node → what it means."""

LONGER = "give it more time: --timeout SECONDS"
"""The fix of an answer that is late."""

NODE_S = 30.0
"""Seconds for one node: `probe` itself needs 1 s beyond its longest deadline, 10 s by default;
the rest is for a login and an interpreter from a network file system. A judgement."""

START_S = 30.0
"""Seconds for an engine to start its nodes, beyond their own: Ray 2.60 connects in 1 to 4 s on an
idle computer, and took 15 on one with forty processes for each core. A judgement."""

FANOUT = 64
"""Nodes at a time through a process each. pdsh starts 32, clush 64: beyond that the file
descriptors and the keys' arithmetic of one computer are the limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait, and how many processes may run at once."""

    node: float = NODE_S
    """Seconds for one node, from the moment that its process starts."""
    overall: float | None = None
    """Seconds for all; None: as many as the rounds of nodes need, and thirty more."""
    fanout: int = FANOUT
    """Processes at once, where an engine needs one a node."""
    command: tuple[str, ...] = ("probe",)
    """The words that start `probe` on a node."""
    send: bool = True
    """Whether the probe is sent to a node that has none, or one of another version."""

    def total(self, count: int) -> float:
        """Return the seconds for `count` nodes."""
        if self.overall is not None:
            return self.overall
        return self.node * max(1, -(-count // self.fanout)) + START_S


@dataclass(frozen=True, slots=True)
class Target:
    """A node that should answer."""

    id: str
    """Its key in the document: what the engine calls it."""
    address: str = ""
    """What the collector needs to reach it."""
    name: str = ""
    """What a table calls it; the id where it is empty."""
    engine: EngineDoc | None = None
    """What the engine counts there."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one node. `text` is its report as JSON; it is checked by `gather`."""

    id: str
    status: str
    reason: str | None = None
    fix: str | None = None
    text: bytes | None = field(default=None, repr=False)
    version: str | None = None
    """Of the probe-core that is installed there, where it was asked for its version."""
    sent: bool | None = None
    """Whether the probe that answered was sent there; None where that is unknown."""
    basics: BasicsDoc | None = None
    """What is known of the node without a report."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a collector puts what it learns; each may be called at any time, in any order."""

    answer: Callable[[Answer], None]
    """Take an answer; of several of one node the first counts."""
    target: Callable[[Target], None]
    """Take a node that was not listed before, or the engine's counts of one that was."""
    problem: Callable[[str], None]
    """Take a sentence about the engine as a whole; nodes may be missing that nobody listed."""
    open_targets: Callable[[], Sequence[Target]] = field(default=tuple)
    """Return the nodes that have not answered yet."""
    links: Callable[[Sequence[LinkDoc], Sequence[LinkFindingDoc]], None] = field(
        default=lambda links, findings: None
    )
    """Take links that were measured before, and the findings about them."""


LINK_CODES = {
    "link-slow": "the bandwidth between two nodes is below the threshold",
    "link-latency": "the round trip between two nodes is above the threshold",
    "link-one-way": "one of two nodes cannot open a connection to the other",
    "link-unmeasured": "two nodes could not be measured, so programs may not connect them either",
}


@dataclass(frozen=True, slots=True)
class Wire:
    """Where an engine puts what happens to its agents."""

    attach: Callable[[str, Write], None]
    """Take how to write to a node's agent; several may share one input."""
    message: Callable[[str, Message], None]
    """Take what the agent of a node prints."""
    lost: Callable[[str, str], None]
    """Take the sentence why a node's agent is not there, or not any more."""


if TYPE_CHECKING:

    class Collector(Protocol):
        """One engine that can reach the nodes: the only interface that `gather` knows."""

        @property
        def name(self) -> str:
            """Return the engine's name, for sentences and the document."""

        async def targets(self) -> Sequence[Target]:
            """Return the nodes that are known before anything runs; may be empty.

            Raises `ClusterError` when the engine does not answer.
            """

        async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
            """Start all nodes at once, and give `sink` each answer as it comes.

            Ends when nothing more can come. Is cancelled when the overall time is over, and ends
            all that it started then. Raises `ClusterError` when the engine fails as a whole.
            """

    class Engine(Protocol):
        """A collector that can also start the agents of a measurement."""

        name: str
        process_each: bool
        """Whether each node needs a process of this computer, so that the fan-out limits them."""

        async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
            """Start an agent on each node; end when all have ended.

            Is cancelled at the end of a measurement, and ends all that it started then.
            """
