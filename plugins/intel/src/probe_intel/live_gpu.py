"""Samples one Intel GPU from the files of i915 or xe.

The PMU, which has more, needs CAP_PERFMON (Ubuntu sets perf_event_paranoid to 4, btop#942), and
xe's queries tell used VRAM to nobody without it: fdinfo and hwmon are what every user may read.
"""

from __future__ import annotations

from probe_core.sysfs import drm, hwmon, pcie
from probe_core.sysfs.live import Live, share
from probe_core.sysfs.numbered import entries
from probe_core.sysfs.rates import Rates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine, RawSample
    from probe_core.sysfs.drm_use import DrmUse
    from probe_core.sysfs.pci import Function

__all__ = ["LiveGpu"]

_ENERGY_WRAP_J = (1 << 32) * 1e-6
"""i915's energy1_input comes from a register of 32 bits (sysfs-driver-intel-i915-hwmon); in
microjoules it wraps after 4.3 kJ, half a minute at 140 W."""

_PACKAGE = "energy2"
"""xe's second energy counter is the package's, the first the card's (xe_hwmon.c)."""


class LiveGpu:
    """Where one GPU's figures are, and what was read last."""

    def __init__(self, machine: Machine, function: Function) -> None:
        self._machine = machine
        self._id, self._folder, self._driver = function.id, function.folder, function.driver
        self._sensors = hwmon.places(machine, function.folder)
        self._nodes = drm.node_names(machine, function.folder)
        self._rates = Rates()
        self._gts = _gts(machine, function.folder) if function.driver == "xe" else []

    def sample(self, use: DrmUse) -> RawSample:
        """Read all figures."""
        live = Live(self._machine, self._id)
        self._add_clock(live)
        self._add_power(live)
        if "temp1" in self._sensors:
            path = f"{self._sensors['temp1']}_input"
            live.put("temperature_c", live.number("temperature_c", path, 1e-3))
        else:
            live.unknown["temperature_c"] = f"{self._driver} has no temperature sensor of this GPU"
        here = use.of(self._nodes)
        live.put("processes", here.processes)
        if here.others:
            live.unknown["processes.others"] = here.others
        busy = self._busy_by_idle_time()
        live.put("busy", busy if busy is not None else here.busy, here.reason)
        live.unknown.setdefault("memory", f"{self._driver} shows its use to programs alone")
        return live.sample

    def _add_clock(self, live: Live) -> None:
        if self._driver == "xe":
            paths = [f"{gt}/freq0/act_freq" for gt in self._gts]
        else:
            cards = [name for name in self._nodes if name.startswith("card")]
            paths = [f"{self._folder}/drm/{name}/gt_act_freq_mhz" for name in sorted(cards)]
        if not paths:
            live.unknown["clocks_mhz"] = f"{self._driver} shows no clock of this GPU"
            return
        clock = live.first("clocks_mhz.sm", *paths)
        live.put("clocks_mhz", None if clock is None else {"sm": clock})

    def _busy_by_idle_time(self) -> float | None:
        """Return 1 less the share of time in which the busiest graphics tile was idle (xe)."""
        shares = []
        for gt in self._gts:
            idle = self._machine.read_int(f"{gt}/gtidle/idle_residency_ms")
            if idle is not None:
                rate = self._rates.per_second(gt, idle)
                busy = share(None if rate is None else 1 - min(1.0, rate / 1000))
                if busy is not None:
                    shares.append(busy)
        return max(shares, default=None)

    def _add_power(self, live: Live) -> None:
        """Add power from the energy counter, and its limit."""
        counters = pcie.errors(self._machine, self._folder)
        stem = self._sensors.get("energy1") or self._sensors.get(_PACKAGE)
        if stem is None:
            live.unknown["power_w"] = f"{self._driver} counts no energy of this GPU"
            live.unknown["counters.energy_j"] = live.unknown["power_w"]
        else:
            joules = live.number("power_w", f"{stem}_input", 1e-6)
            if joules is not None:
                wrap = _ENERGY_WRAP_J if self._driver == "i915" else None
                watts = self._rates.per_second("energy", joules, wrap=wrap)
                live.put("power_w", watts, self._rates.reason)
                counters["energy_j"] = joules
        live.put("counters", counters or None, "this GPU has no counters that every user may read")
        # xe: 0 means that power1_max is disabled, and Battlemage's limit is power1_crit.
        limits = self._sensors.get("power1")
        for path in (f"{limits}_max", f"{limits}_crit") if limits else ():
            cap = live.number("power_cap_w", path, 1e-6)
            if cap:
                live.put("power_cap_w", cap)
                return
        live.unknown["power_cap_w"] = f"{self._driver} sets no limit on this GPU"


def _gts(machine: Machine, folder: str) -> list[str]:
    """Return the folders of a GPU's graphics tiles."""
    return [
        path
        for _, tile in entries(machine, folder, "tile")
        for _, path in entries(machine, tile, "gt")
    ]
