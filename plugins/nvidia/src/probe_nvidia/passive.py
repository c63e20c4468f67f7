"""Answers from files alone: for sleeping GPUs, recorded machines, and drivers that fail."""

from __future__ import annotations

from probe_core.api import finding
from probe_nvidia import facts
from probe_nvidia.scene import driver_of
from probe_nvidia.sysmem import unified_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from probe_nvidia.reasons import Failure
    from probe_nvidia.scene import Scene
    from probe_nvidia.tegra import Soc

    Sighting = dict[str, Any]

__all__ = [
    "UNREAD",
    "asleep",
    "card",
    "recorded",
    "soc_alone",
    "soc_sighting",
    "unavailable",
    "uncounted",
]

UNREAD = ("memory.total", "memory.free", "compute_capability", "units", "clocks.max_mhz")


def recorded(scene: Scene) -> Iterator[Sighting]:
    """Report what a recorded machine's files say; no library can be asked about it."""
    reason = "the machine is a recording, so its driver cannot be queried"
    fact = facts.fact("library", "unknown", reason)
    yield from map(_with_cuda, _all(scene, reason, fact))


def asleep(scene: Scene) -> Iterator[Sighting]:
    """Report from files because a GPU sleeps and nvmlInit would wake it.

    One sleeping GPU keeps all from being asked: nvmlInit attaches to every GPU of the driver.
    """
    names = ", ".join(scene.asleep)
    reason = f"{names} sleeps, and a query would wake it"
    fact = facts.fact("responding", "unknown", reason, "asleep")
    yield from map(_with_cuda, _all(scene, reason, fact))
    yield finding(
        "gpu-asleep",
        severity="info",
        what=f"memory and clocks of the NVIDIA GPUs were not read: {names} sleeps",
        why="initialising NVIDIA's library wakes every GPU: 2 s to resume, 15 s awake (btop#1831)",
        fix="run `probe --active` to wake and query them",
        device=scene.asleep[0],
    )


def soc_alone(scene: Scene) -> Iterator[Sighting]:
    """Report a Jetson module's GPU from the device tree."""
    if scene.soc:
        reason = "this Jetson has no NVML"
        sighting = soc_sighting(scene, scene.soc, reason)
        without = facts.fact("library", "not_applicable", f"{reason}, and CUDA needs none")
        yield sighting | {"step_facts": [*sighting["step_facts"], without]}


def unavailable(scene: Scene, error: Failure) -> Iterator[Sighting]:
    """Report what files say, then raise why the driver's library cannot be asked."""
    yield from _all(scene, error.reason, error.fact)
    raise error


def uncounted(scene: Scene, code: int | None, reason: str) -> Iterator[Sighting]:
    """Report what files say where NVML does not even report how many GPUs there are."""
    from probe_nvidia import reasons

    yield from unavailable(scene, reasons.uncounted(code, reason))


def card(scene: Scene, identity: str, unread: Iterable[str], reason: str) -> Sighting:
    """Return the GPU `identity` (a PCI id) as files alone know it, `unread` fields with `why`."""
    file, seen = scene.proc.get(identity), scene.cards.get(identity, {})
    ids, named = [identity], {}
    if file and file.uuid:
        ids.append(f"uuid:{file.uuid}")
    if file and file.model:
        named["name"] = file.model
    driver = {"name": "nvidia", "version": scene.version} if scene.version else None
    sighting: Sighting = {"ids": ids, "kind": "gpu", "vendor": "nvidia", **named}
    if driver and driver_of(seen) in (None, "nvidia") and (file or driver_of(seen)):
        sighting["driver"] = driver
    sighting["unknown"] = dict.fromkeys(unread, reason)
    if _is_served(scene, identity) and (nodes := scene.nodes(identity)):
        sighting["nodes"] = nodes
    return sighting


def soc_sighting(scene: Scene, soc: Soc, reason: str) -> Sighting:
    """Return a Jetson module's GPU; its memory is the system's."""
    sighting: Sighting = {
        "ids": soc.ids,
        "kind": "gpu",
        "vendor": "nvidia",
        "dt": soc.dt,
        "compute_capability": soc.compute_capability,
        "backends": ["cuda"],
        "memory": unified_memory(scene.machine) or {"kind": "unified"},
        "unknown": {"units": reason, "clocks.max_mhz": reason},
        "step_facts": [_soc_driver(soc)],
    }
    if "total" not in sighting["memory"]:
        sighting["unknown"]["memory.total"] = "there is no MemTotal in /proc/meminfo"
    return sighting | ({"name": soc.model} if soc.model else {})


def _soc_driver(soc: Soc) -> facts.Fact:
    if soc.driver:
        return facts.fact("driver", "ok", f"the driver {soc.driver} serves the GPU")
    evidence = "no driver is bound to the GPU, and /sys/module/nvgpu is absent"
    return facts.broken("driver", "jetson-no-nvgpu", evidence)


def _with_cuda(sighting: Sighting) -> Sighting:
    """Say that programs can use a GPU that NVIDIA's driver holds, though nobody asked it now."""
    own_facts = sighting.get("step_facts", ())
    if "driver" not in sighting or any(fact["status"] == "broken" for fact in own_facts):
        return sighting
    return {**sighting, "backends": ["cuda"]}


def _is_served(scene: Scene, identity: str) -> bool:
    driver = driver_of(scene.cards.get(identity, {}))
    return driver == "nvidia" or (identity in scene.proc and driver is None)


def _all(scene: Scene, reason: str, fact: facts.Fact | None) -> Iterator[Sighting]:
    """Yield every GPU as files know it; `fact` is about those that NVIDIA's driver serves."""
    about_driver = [fact] if fact else []
    if scene.soc:
        sighting = soc_sighting(scene, scene.soc, reason)
        yield sighting | {"step_facts": [*sighting["step_facts"], *about_driver]}
    excluded = scene.excluded()
    served = [*scene.reachable(), *excluded]
    for identity in served or [i for i in scene.cards if i.startswith("pci:")]:
        sighting = card(scene, identity, UNREAD, reason)
        if identity in excluded:
            sighting["step_facts"] = [facts.excluded(identity)]
        elif fact and identity in served:
            sighting["step_facts"] = about_driver
        yield sighting
