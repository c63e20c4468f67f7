"""Lets idle devices sleep: whoever asks a device keeps it awake, be it with an open library.

With NVML open a laptop's GPU never slept; closed, it slept within 6 s (cosmic-ext-applet-system-
monitor#38). Reading amdgpu's sensors starts its five seconds anew (amdgpu_pm.c).
"""

from __future__ import annotations

from probe_core.sysfs import power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.machine import Machine
    from probe_core.model.sample_document import SampleDoc
    from probe_core.sampling.roster import Entry

__all__ = ["IDLE_S", "Idle"]

IDLE_S = 30.0
"""Seconds without work after which a device that may sleep is left alone. A judgement: longer than
the pauses of somebody who works with it."""

_AWAKE_S = 15.0
"""Seconds that it then has to fall asleep: twice the 6 s that were seen. A device that does not is
kept awake by somebody else, and is asked again for good."""


class Idle:
    """Whether one sampler's devices are left alone.

    `left_alone` says so. Times are seconds on the monotonic clock.
    """

    __slots__ = ("_kept_awake", "_machine", "_since", "_slept", "_started", "left_alone")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._since: float | None = None
        self._started = 0.0
        self._slept = False
        self._kept_awake = False
        self.left_alone = False

    def note(self, entries: Sequence[Entry], samples: Iterable[SampleDoc], now: float) -> bool:
        """Note a round of one sampler; return whether its devices should be left alone now."""
        if self._kept_awake or not all(map(_is_idle, samples)) or not self._may_sleep(entries):
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since >= IDLE_S

    def leave_alone(self, now: float) -> None:
        """Note that nothing asks the devices from now on."""
        self.left_alone, self._slept, self._started, self._since = True, False, now, None

    def may_ask(self, entries: Sequence[Entry], now: float) -> bool:
        """Return whether the devices may be asked: they are not, or no longer, left alone."""
        if not self.left_alone:
            return True
        if any(self._sleeps(entry) for entry in entries):
            self._slept = True
            return False
        if not self._slept and now - self._started < _AWAKE_S:
            return False
        # Somebody has woken them, or never lets them sleep.
        self._kept_awake = not self._slept
        self.left_alone = False
        return True

    def _may_sleep(self, entries: Iterable[Entry]) -> bool:
        """Return whether the kernel may suspend any of the devices: ``power/control`` is auto."""
        return any(
            entry.folder and self._machine.read(f"{entry.folder}/power/control", 16) == "auto"
            for entry in entries
        )

    def _sleeps(self, entry: Entry) -> bool:
        return bool(entry.folder) and power.asleep(power.status(self._machine, str(entry.folder)))


def _is_idle(sample: SampleDoc) -> bool:
    """Return whether a device does nothing; where that is not known it may be working."""
    if sample["status"] != "ok":
        return True
    return sample["busy"] == 0 and not sample["processes"]
