"""Samples one Intel NPU from the files of intel_vpu, which all answer from memory."""

from __future__ import annotations

from probe_core.sysfs.live import Live, share
from probe_core.sysfs.rates import Rates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine, RawSample
    from probe_core.sysfs.pci import Function

__all__ = ["LiveNpu"]


class LiveNpu:
    """One NPU, and its counter at the last look."""

    def __init__(self, machine: Machine, function: Function) -> None:
        self._machine = machine
        self._id, self._folder = function.id, function.folder
        self._rates = Rates()

    def sample(self) -> RawSample:
        """Read all figures."""
        live = Live(self._machine, self._id)
        # Since Linux 6.11; microseconds in which a job ran.
        micro = live.number("busy", f"{self._folder}/npu_busy_time_us", 1e-6)
        if micro is not None:
            live.put("busy", share(self._rates.per_second("busy", micro)), self._rates.reason)
        clock = live.number("clocks_mhz", f"{self._folder}/npu_current_frequency_mhz")
        live.put("clocks_mhz", None if clock is None else {"sm": clock})
        used = live.number("memory", f"{self._folder}/npu_memory_utilization")  # bytes
        live.put("memory", None if used is None else {"used": int(used)})
        for field in ("temperature_c", "power_w"):
            live.unknown[field] = "intel_vpu has no sensor"
        return live.sample
