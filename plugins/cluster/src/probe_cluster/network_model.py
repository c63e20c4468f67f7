"""What a measurement between nodes handles: its bounds, its agents, and the result of a link."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Network"]

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
