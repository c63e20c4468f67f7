"""Samples the GPU or NPU of a system-on-chip: devfreq, thermal zones and fdinfo, no root needed.

Its memory is the system's, and no file has its power.
"""

from __future__ import annotations

from probe_core.sysfs import accel, drivers, drm, power
from probe_core.sysfs.live import Live, share
from probe_core.sysfs.numbered import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.machine import Machine
    from probe_core.sysfs.drm_use import DrmUse

__all__ = ["sample"]

_ZONES = "/sys/class/thermal"
_PROFILED = ("panfrost", "panthor")
"""Drivers whose engine counters stand still unless root writes to ``profiling``
(Documentation/gpu/panfrost.rst, panthor.rst)."""

_PERMILLE = 1000
"""nvgpu's ``load`` counts thousandths; Rockchip's devfreq drivers write ``37@800000000Hz``."""


def sample(
    machine: Machine, folder: str, identity: str, use: DrmUse, kind: str = "gpu"
) -> Iterator[Mapping[str, Any]]:
    """Yield the sample of the device at `folder`, and a finding where a setting hides figures."""
    if power.asleep(power.status(machine, folder)):
        yield {"device": identity, "status": "asleep", "reason": "it sleeps, as between two jobs"}
        return
    live = Live(machine, identity)
    _add_clock(machine, live, folder)
    _add_temperature(machine, live, kind)
    live.unknown["memory"] = "its memory is the system's"
    live.unknown["power_w"] = "no sensor of a system-on-chip is its alone"
    driver = drivers.bound(machine, folder)
    here = use.of(drm.node_names(machine, folder) | _accel_names(machine, folder))
    live.put("processes", here.processes)
    if here.others:
        live.unknown["processes.others"] = here.others
    switch = f"{folder}/profiling"
    if driver in _PROFILED and machine.read(switch, 16) == "0":
        live.unknown["busy"] = f"{switch} is 0, so {driver} counts nothing"
        yield live.sample
        yield _off(identity, switch, str(driver))
        return
    load = _load(machine, folder)
    live.put("busy", here.busy if load is None else load, here.reason)
    yield live.sample


def _off(identity: str, switch: str, driver: str) -> Mapping[str, Any]:
    return {
        "finding": {
            "code": "profiling-off",
            "severity": "info",
            "what": f"how busy {identity} is cannot be known",
            "why": f"{driver} counts only while its profiling is on, and it is off",
            "fix": f"as root: echo 1 > {switch}; it costs the GPU some speed",
            "device": identity,
            "evidence": f"{switch}: 0",
        }
    }


def _add_clock(machine: Machine, live: Live, folder: str) -> None:
    paths = [f"{path}/cur_freq" for path in _devfreq(machine, folder)]
    if not paths:
        live.unknown["clocks_mhz"] = "devfreq does not list it"
        return
    hertz = live.first("clocks_mhz", *paths)
    live.put("clocks_mhz", None if hertz is None else {"sm": hertz / 1e6})


def _devfreq(machine: Machine, folder: str) -> list[str]:
    own = [f"{folder}/devfreq/{name}" for name in machine.listdir(f"{folder}/devfreq")]
    named = f"/sys/class/devfreq/{folder.rpartition('/')[2]}"
    return own or ([named] if machine.exists(named) else [])


def _load(machine: Machine, folder: str) -> float | None:
    """Return the driver's own measure of its load, 0 to 1."""
    for path in _devfreq(machine, folder):
        percent, at, _ = (machine.read(f"{path}/load", 64) or "").partition("@")
        if at and percent.isdecimal():
            return share(int(percent) / 100)
    permille = machine.read_int(f"{folder}/load")
    return None if permille is None else share(permille / _PERMILLE)


def _add_temperature(machine: Machine, live: Live, kind: str) -> None:
    """Add the hottest zone named after the kind: zones' numbers differ from boot to boot."""
    celsius = []
    for _, zone in entries(machine, _ZONES, "thermal_zone"):
        if kind in (machine.read(f"{zone}/type", 64) or "").lower():
            value = live.number("temperature_c", f"{zone}/temp", 1e-3)
            if value is not None:
                celsius.append(value)
    live.put(
        "temperature_c", max(celsius, default=None), f"no thermal zone is named after a {kind}"
    )


def _accel_names(machine: Machine, folder: str) -> frozenset[str]:
    return frozenset(f"accel{number}" for number in accel.minors(machine, folder).values())
