"""How long a prober may be silent: over one device that it announced, and over its cleanup."""

from __future__ import annotations

from probe_core.model.ids import ID_LIMIT

__all__ = ["CLEANUP_S", "Patience"]

QUIET_SHARE, QUIET_LEAST = 0.25, 0.1
"""How long a device may take before another process goes around it: a quarter of the time that
remains, but at least a tenth of the whole.

The first process goes on meanwhile, so a slow device costs a process and no device. Judgements: the
other devices need time too, with a library that takes seconds to start; and a healthy machine,
which needs milliseconds, must never start a second process.
"""

CLEANUP_S = 0.2
"""Seconds for what a prober does after `Request.done`. A judgement: the host waits for nothing."""

NEVER = float("inf")


class Patience:
    """What one run is silent over, and until when that is normal.

    `device` is the id that the prober announced and has not answered for yet; `exhausted` whether
    that took too long. `due` is when `pass_time` must be called. Times are seconds on the monotonic
    clock; `whole` are the seconds that a prober has, of which this process may have got fewer.
    """

    __slots__ = ("_deadline", "_since", "_whole", "device", "due", "exhausted")

    def __init__(self, whole: float, deadline: float) -> None:
        self._whole, self._deadline, self._since = whole, deadline, deadline
        self.answered()

    def answered(self) -> None:
        """Note that nothing is waited for."""
        self.device: str | None = None
        self.exhausted = False
        self.due = NEVER

    def touch(self, device: object, now: float) -> None:
        """Note which device is being asked; what cannot be an id is not watched."""
        if isinstance(device, str) and 0 < len(device) <= ID_LIMIT:
            self.device, self.exhausted, self._since = device, False, now
            share = QUIET_SHARE * (self._deadline - now)
            self.due = now + max(share, QUIET_LEAST * self._whole)

    def clean_up(self, now: float) -> None:
        """Note that all devices were sent."""
        self.answered()
        self.due = now + CLEANUP_S

    def was_long(self, now: float) -> bool:
        """Return whether the silence over a device is its own: a quarter of all time there was.

        Of a prober that is slow throughout, the deadline meets any one of its devices.
        """
        return self.exhausted and now - self._since >= QUIET_SHARE * self._whole

    def pass_time(self, now: float) -> bool:
        """Return whether it is exhausted just now."""
        if now < self.due:
            return False
        self.exhausted, self.due = True, NEVER
        return True
