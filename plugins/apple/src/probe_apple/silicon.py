"""Describes the GPU of Apple silicon, of which there is exactly one, and its Neural Engine.

Their ids are constants of this prober: neither has a serial number, and neither can be anywhere
else or be there twice. No other prober uses them, so nothing merges with them by accident.
"""

from __future__ import annotations

from probe_apple import ioreg, profiler
from probe_apple.facts import Facts
from probe_apple.scene import ACCELERATORS, POWER, PROFILER, tell_driver, tell_memory

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
    facts = Facts(ids=[GPU], kind="gpu", vendor="apple", backends=["metal"])
    name = ioreg.text(entry.get("model")) or profiler.word(table, "sppci_model", "_name")
    facts.say(
        "name", name or scene.chip, scene.why("nothing names the GPU", ACCELERATORS, PROFILER)
    )
    cores = ioreg.count(entry.get("gpu-core-count")) or _cores(table)
    why = scene.why("neither ioreg nor system_profiler counts its cores", ACCELERATORS, PROFILER)
    facts.say("units", cores, why)
    why = scene.why("the power manager lists no states of the GPU", POWER)
    facts.say("clocks.max_mhz", _highest_mhz(scene), why)
    tell_driver(facts, scene, entry)
    tell_memory(facts, scene)
    _tell_limit(facts, scene)
    facts.note("metal", profiler.metal(table))
    return facts.sighting()


def _own(scene: Scene) -> Mapping[str, Any]:
    """Return the accelerator that counts cores, else the first: there may be helpers beside it."""
    counting = [one for one in scene.accelerators if "gpu-core-count" in one]
    return next(iter([*counting, *scene.accelerators]), {})


def _cores(table: Mapping[str, Any]) -> int | None:
    told = profiler.word(table, "sppci_cores") or ""
    known = told.isascii() and told.isdecimal() and len(told) <= 4
    return int(told) or None if known else None


def _highest_mhz(scene: Scene) -> float | None:
    """Return the highest of the GPU's states that the power manager (pmgr) was given by firmware.

    voltage-states9: pairs of frequency and millivolts, 32 bits each, little-endian; the first is
    "off". Frequencies are in Hz up to M3 and in kHz from M4 on, which their size tells apart.
    """
    raw = next((one[_STATES] for one in scene.power if isinstance(one.get(_STATES), bytes)), b"")
    highest = max(
        (int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 8)), default=0
    )
    mhz = highest / (1e6 if highest >= 100_000_000 else 1e3)
    return mhz if 100 <= mhz <= 4_000 else None


def _tell_limit(facts: Facts, scene: Scene) -> None:
    """Say how much of the memory the GPU may wire down, when somebody set it.

    0 stands for macOS's own choice, which only a Metal program learns (MTLDevice's
    recommendedMaxWorkingSetSize). The shares that circulate (two thirds, three quarters) are
    observations that Apple documents nowhere.
    """
    megabytes = scene.sysctl.number(_LIMIT)
    limit = megabytes << 20 if megabytes else None
    why = f"there is no sysctl {_LIMIT}"
    if megabytes == 0:
        why = f"{_LIMIT} is 0: macOS's own choice, which it tells to Metal programs alone"
    facts.say("memory.parts.limit", limit, why)
    if limit:
        facts.say("memory.usable", min(limit, scene.memory or limit), "")


def neural(scene: Scene) -> dict[str, Any] | None:
    """Return the Neural Engine where its driver runs on a chip whose name tells its kind."""
    chip = scene.chip or ""
    if not scene.neural or not _is_whole_chip(chip):
        return None
    facts = Facts(
        ids=[ENGINE], kind="npu", vendor="apple", name=f"{chip} Neural Engine", backends=["coreml"]
    )
    # An Ultra is two dies with an engine each, and Apple counts their cores together.
    cores = [_engine_cores(entry) for entry in scene.neural]
    total = sum(one or 0 for one in cores) if all(cores) else None
    facts.say("units", total, "its driver does not count its cores")
    facts.say("clocks.max_mhz", None, "its driver tells no clock")
    tell_driver(facts, scene, scene.neural[0])
    tell_memory(facts, scene)
    return facts.sighting()


def _engine_cores(entry: Mapping[str, Any]) -> int | None:
    properties = entry.get("DeviceProperties")
    told = properties if isinstance(properties, dict) else entry
    return ioreg.count(told.get("ANEDevicePropertyNumANECores"))


def _is_whole_chip(name: str) -> bool:
    """Return whether a chip is named as chipdb names engines: "Apple M3 Max", "Apple A18 Pro"."""
    words = name.split()
    if not 2 <= len(words) <= 3 or words[0] != "Apple" or not set(words[2:]) <= set(_LEVELS):
        return False
    return words[1][0] in "MA" and words[1][1:].isdecimal()
