"""What a measurement between nodes handles: its bounds, its agents, and the result of a link."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypedDict

    from probe_cluster.gather_model import Target
    from probe_core.model.document import Json

    Message = dict[str, Json]
    """What an agent prints, or takes; see `pair_agent`."""

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

    class Engine(Protocol):
        """A collector that can also start the agents of a measurement."""

        name: str
        process_each: bool
        """Whether each node needs a process of this computer, so that the fan-out limits them."""

        async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
            """Start an agent on each node; end when all have ended.

            Is cancelled at the end of a measurement, and ends all that it started then.
            """


__all__ = ["Network", "Start", "Wire"]

PAIR_S = 1.0
"""Seconds of traffic in each direction: TCP's slow start is over after 0.2 s on most paths."""

PAIR_BYTES = 4 << 30
"""Bytes at most in each direction: a third of a second at 100 Gbit/s, more than 1 s at 25."""

LEAST_BANDWIDTH = 100e6 / 8
"""Bytes per second, 100 Mbit/s: below it a cable or a port is at fault, or it is radio."""

MOST_ROUND_TRIP = 0.1
"""Seconds: 100 ms are another continent, or a queue that is full."""


@dataclass(frozen=True, slots=True)
class Network:
    """What to measure between the nodes, and what is too slow."""

    pairs: str = ""
    """Empty: the rule of `pairing`; ``all``, a number, or ``a:b,c:d``."""
    seconds: float = PAIR_S
    """Seconds of traffic in each direction of a pair."""
    size: int = PAIR_BYTES
    """Bytes at most in each direction of a pair."""
    least_bandwidth: float = LEAST_BANDWIDTH
    """Bytes per second; less is a finding."""
    most_round_trip: float = MOST_ROUND_TRIP
    """Seconds; more is a finding."""


@dataclass(frozen=True, slots=True)
class Start:
    """How an agent starts: the words of `probe` there (its Python serves), and its longest life."""

    command: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Wire:
    """Where an engine puts what happens to its agents."""

    attach: Callable[[str, Write], None]
    """Take how to write to a node's agent; several may share one input."""
    message: Callable[[str, Message], None]
    """Take what the agent of a node prints."""
    lost: Callable[[str, str], None]
    """Take the sentence why a node's agent is not there, or not any more."""
