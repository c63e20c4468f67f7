"""What a gather handles: the nodes that an engine lists, their answers, and how long to wait."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypedDict

    from probe_cluster.link_findings import LinkFindingDoc
    from probe_cluster.network_model import LinkDoc

    class EngineDoc(TypedDict):
        """What the engine itself counts on a node; memory in bytes, None where it gives none."""

        source: str
        gpus: float | None
        cpus: float | None
        memory: int | None
        state: str | None

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


__all__ = ["STATUSES", "Answer", "Limits", "Sink", "Target"]

STATUSES = {
    "ok": "a report arrived",
    "missing": "the node could not be reached, or ended without an answer",
    "timeout": "the node did not answer in time",
    "no-probe": "probe-core is not installed on the node, or not on its PATH",
    "failed": "the node was reached, and the command failed there",
    "invalid": "the answer is no report that this version reads",
}
"""Status of a node → what it means."""

NODE_S = 30.0
"""Seconds for one node: `probe` itself needs 1 s beyond its longest deadline, 10 s by default;
the rest is for a login and an interpreter from a network file system. A judgement."""

START_S = 15.0
"""Seconds for an engine to start its nodes, beyond their own: Ray 2.60 connects in 1 to 4 s on an
idle computer; the rest is for a busy one. A judgement."""

FANOUT = 64
"""Nodes at a time through a process each. pdsh starts 32, clush 64: beyond that the file
descriptors and the keys' arithmetic of one computer are the limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait, and how many processes may run at once."""

    node: float = NODE_S
    """Seconds for one node, from the moment that its process starts."""
    overall: float | None = None
    """Seconds for all; None: as many as the rounds of nodes need, and fifteen more."""
    fanout: int = FANOUT
    """Processes at once, where an engine needs one a node."""
    command: tuple[str, ...] = ("probe",)
    """The words that start `probe` on a node."""

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
