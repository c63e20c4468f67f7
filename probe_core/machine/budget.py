"""What a probe spends in the host on data that others wrote, counted over all of it.

Each file is bounded already; thousands of them are not. What exceeds the budget is left out and
named, and one distribution has a share, so that it uses up nobody else's.
"""

from __future__ import annotations

from time import thread_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SHARE", "TOTAL", "Budget"]

SHARE = {"files": 128, "bytes": 1 << 20, "names": 8192, "seconds": 0.1}
"""What the data of one distribution may use. Judgements: 64 probers with a manifest each, of 16 KiB
where ours have 3; twice the names that one pattern may look at."""

TOTAL = {"files": 4096, "bytes": 8 << 20, "names": 32_768, "seconds": 0.5}
"""What the data of all distributions may use together. Seconds are of this thread's processor time:
a slow disk is nobody's fault, and must leave no prober out."""

_UNITS = {"files": "files", "bytes": "bytes", "names": "names of files", "seconds": "s of work"}


class Budget:
    """Counts what was used; `exceeded` maps each owner that got no more to the reason."""

    __slots__ = ("_clock", "_own", "_total", "exceeded")

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self._clock = clock
        self._total: dict[str, float] = dict.fromkeys(TOTAL, 0)
        self._own: dict[str, dict[str, float]] = {}
        self.exceeded: dict[str, str] = {}

    def clock(self) -> float:
        """Return the time that `charge` takes as `since`."""
        return self._clock()

    def charge(
        self,
        owner: str,
        *,
        files: int = 0,
        size: int = 0,
        names: int = 0,
        since: float | None = None,
    ) -> None:
        """Count what `owner` used: `size` in bytes, work `since` a time of `clock`."""
        seconds = 0.0 if since is None else self._clock() - since
        own = self._own.get(owner)
        if own is None:
            own = self._own[owner] = dict.fromkeys(SHARE, 0)
        for unit, amount in (
            ("files", files),
            ("bytes", size),
            ("names", names),
            ("seconds", seconds),
        ):
            own[unit] += amount
            self._total[unit] += amount

    def refusal(self, owner: str) -> str | None:
        """Return why `owner` gets no more; None while it does."""
        own = self._own.get(owner)
        for used, limits, subject in ((own, SHARE, "its data"), (self._total, TOTAL, "all data")):
            unit = next((u for u in limits if used and used[u] > limits[u]), None)
            if unit is not None:
                amount = f"{limits[unit]:,} {_UNITS[unit]}"
                self.exceeded[owner] = reason = f"{subject} may take {amount} of a probe"
                return reason
        return None
