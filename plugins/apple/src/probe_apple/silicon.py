"""Describes the GPU of Apple silicon, of which there is exactly one, and its Neural Engine.

Their ids are constants of this prober: neither has a serial number, and neither can be anywhere
else or be there twice. No other prober uses them, so nothing merges with them by accident.
"""

from __future__ import annotations

from probe_apple import ioreg, profiler
from probe_apple.scene import ACCELERATORS, POWER, PROFILER, put_driver, put_memory
from probe_core.sysfs.sighting import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_apple.scene import Scene

GPU, ENGINE = "apple:gpu0", "apple:ane0"
_LIMIT = "iogpu.wired_limit_mb"
_STATES = "voltage-states9"
_LEVELS = ("Pro", "Max", "Ultra")


def gpu(scene: Scene) -> dict[str, Any]:
    """Return the sighting of the GPU; in a virtual machine that is a paravirtual one."""
    entry = _own(scene)
    table = scene.profile.displays[0] if scene.profile.displays else {}
    draft = Draft(ids=[GPU], kind="gpu", vendor="apple", backends=["metal"])
    name = ioreg.text(entry.get("model")) or profiler.first_text(table, "sppci_model", "_name")
    draft.put(
        "name", name or scene.chip, scene.reason("nothing names the GPU", ACCELERATORS, PROFILER)
    )
    cores = ioreg.count(entry.get("gpu-core-count")) or _cores(table)
    reason = scene.reason(
        "neither ioreg nor system_profiler counts its cores", ACCELERATORS, PROFILER
    )
    draft.put("units", cores, reason)
    reason = scene.reason("the power manager lists no states of the GPU", POWER)
    draft.put("clocks.max_mhz", _highest_mhz(scene), reason)
    put_driver(draft, scene, entry)
    put_memory(draft, scene)
    _put_limit(draft, scene)
    draft.note("metal", profiler.metal(table))
    return draft.sighting()


def _own(scene: Scene) -> Mapping[str, Any]:
    """Return the accelerator that counts cores, else the first: there may be helpers beside it."""
    counting = [entry for entry in scene.accelerators if "gpu-core-count" in entry]
    return next(iter([*counting, *scene.accelerators]), {})


def _cores(table: Mapping[str, Any]) -> int | None:
    digits = profiler.first_text(table, "sppci_cores") or ""
    # The largest GPU of Apple's has 80 cores; a number of five digits is none.
    is_count = digits.isascii() and digits.isdecimal() and len(digits) <= 4
    return int(digits) or None if is_count else None


def _highest_mhz(scene: Scene) -> float | None:
    """Return the highest of the GPU's states that the power manager (pmgr) was given by firmware.

    voltage-states9: pairs of frequency and millivolts, 32 bits each, little-endian; the first is
    "off". Frequencies are in Hz up to M3 and in kHz from M4 on, which their size tells apart.
    """
    tables = (entry.get(_STATES) for entry in scene.power)
    raw = next((table for table in tables if isinstance(table, bytes)), b"")
    highest = max(
        (int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 8)), default=0
    )
    mhz = highest / (1e6 if highest >= 100_000_000 else 1e3)
    return mhz if 100 <= mhz <= 4_000 else None


def _put_limit(draft: Draft, scene: Scene) -> None:
    """Say how much of the memory the GPU may wire down, when somebody set it.

    0 stands for macOS's own choice, which only a Metal program learns (MTLDevice's
    recommendedMaxWorkingSetSize). The shares that circulate (two thirds, three quarters) are
    observations that Apple documents nowhere.
    """
    megabytes = scene.sysctl.number(_LIMIT)
    limit = megabytes << 20 if megabytes else None
    reason = f"there is no sysctl {_LIMIT}"
    if megabytes == 0:
        reason = f"{_LIMIT} is 0: macOS's own choice, which it gives to Metal programs alone"
    draft.put("memory.parts.limit", limit, reason)
    if limit:
        draft.put("memory.usable", min(limit, scene.memory or limit))


def neural(scene: Scene) -> dict[str, Any] | None:
    """Return the Neural Engine where its driver runs on a chip whose name tells its kind."""
    chip = scene.chip or ""
    if not scene.neural or not _is_whole_chip(chip):
        return None
    draft = Draft(
        ids=[ENGINE], kind="npu", vendor="apple", name=f"{chip} Neural Engine", backends=["coreml"]
    )
    # An Ultra is two dies with an engine each, and Apple counts their cores together.
    cores = [_engine_cores(entry) for entry in scene.neural]
    total = sum(count or 0 for count in cores) if all(cores) else None
    draft.put("units", total, "its driver does not count its cores")
    draft.put("clocks.max_mhz", None, "its driver reports no clock")
    put_driver(draft, scene, scene.neural[0])
    put_memory(draft, scene)
    return draft.sighting()


def _engine_cores(entry: Mapping[str, Any]) -> int | None:
    properties = entry.get("DeviceProperties")
    table = properties if isinstance(properties, dict) else entry
    return ioreg.count(table.get("ANEDevicePropertyNumANECores"))


def _is_whole_chip(name: str) -> bool:
    """Return whether a chip is named as chipdb names engines: "Apple M3 Max", "Apple A18 Pro"."""
    maker, *parts = name.split() or [""]
    if maker != "Apple" or not 1 <= len(parts) <= 2 or not set(parts[1:]) <= set(_LEVELS):
        return False
    return parts[0][0] in "MA" and parts[0][1:].isdecimal()
