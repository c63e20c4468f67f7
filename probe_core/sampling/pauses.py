"""When what failed is tried again: after pauses that grow."""

from __future__ import annotations

__all__ = ["Pauses"]

FIRST_S, LONGEST_S = 10.0, 600.0
"""Seconds until the second attempt, and between two at most. Judgements: a driver that recovers
does so in seconds (a reset), or when somebody comes; each attempt costs a process."""


class Pauses:
    """Counts failures in a row; times are seconds on the monotonic clock."""

    __slots__ = ("_at", "_pause")

    def __init__(self) -> None:
        self._at = float("-inf")
        self._pause = FIRST_S

    def due(self, now: float) -> bool:
        """Return whether the next attempt is due."""
        return now >= self._at

    def fail(self, now: float) -> None:
        """Have the next attempt wait, twice as long as the last."""
        self._at = now + self._pause
        self._pause = min(LONGEST_S, self._pause * 2)

    def succeed(self) -> None:
        """Begin anew with the first pause."""
        self._pause = FIRST_S

    def retry_now(self, now: float) -> None:
        """Have the next attempt be due at once."""
        self._at = now
