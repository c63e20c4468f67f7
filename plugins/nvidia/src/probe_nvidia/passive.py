"""Answers from files alone: for sleeping GPUs, recorded machines, and drivers that fail."""

from __future__ import annotations

from probe_core.api import Unavailable, finding
from probe_nvidia.scene import driver_of
from probe_nvidia.sysmem import unified_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from probe_nvidia.scene import Scene
    from probe_nvidia.tegra import Soc

    Sighting = dict[str, Any]

__all__ = ["asleep", "card", "recorded", "soc_alone", "soc_sighting", "unavailable"]

_UNREAD = ("memory.total", "memory.free", "compute_capability", "units", "clocks.max_mhz")


def recorded(scene: Scene) -> Iterator[Sighting]:
    """Report what a recorded machine's files say; no library can be asked about it."""
    reason = "the machine is a recording, so its driver cannot be queried"
    yield from map(_with_cuda, _all(scene, reason))


def asleep(scene: Scene) -> Iterator[Sighting]:
    """Report from files because a GPU sleeps and nvmlInit would wake it.

    One sleeping GPU keeps all from being asked: nvmlInit attaches to every GPU of the driver.
    """
    names = ", ".join(scene.asleep)
    reason = f"{names} sleeps, and a query would wake it"
    yield from map(_with_cuda, _all(scene, reason))
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
        yield soc_sighting(scene, scene.soc, "this Jetson has no NVML")


def unavailable(scene: Scene, error: Unavailable) -> Iterator[Sighting]:
    """Report what files say, then raise why the driver's library cannot be asked."""
    yield from _all(scene, error.reason)
    raise error


def card(scene: Scene, identity: str, unread: Iterable[str], reason: str) -> Sighting:
    """Return the GPU `identity` (a PCI id) as files alone know it, `unread` fields with `why`."""
    file, seen = scene.proc.get(identity), scene.cards.get(identity, {})
    ids, named = [identity], {}
    if file and file.uuid:
        ids.append(f"uuid:{file.uuid}")
    if file and file.model:
        named["name"] = file.model
    driver = {"name": "nvidia", "version": scene.version} if scene.version else None
    if driver and driver_of(seen) in (None, "nvidia"):
        named["driver"] = driver  # type: ignore[assignment]
    facts = {"ids": ids, "kind": "gpu", "vendor": "nvidia", **named}
    return facts | {"unknown": dict.fromkeys(unread, reason)}


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
    }
    if "total" not in sighting["memory"]:
        sighting["unknown"]["memory.total"] = "there is no MemTotal in /proc/meminfo"
    return sighting | ({"name": soc.model} if soc.model else {})


def _with_cuda(sighting: Sighting) -> Sighting:
    """Say that programs can use a GPU that NVIDIA's driver holds, though nobody asked it now."""
    held = "driver" in sighting
    return {**sighting, "backends": ["cuda"]} if held else sighting


def _all(scene: Scene, reason: str) -> Iterator[Sighting]:
    if scene.soc:
        yield soc_sighting(scene, scene.soc, reason)
    for identity in scene.proc or [i for i in scene.cards if i.startswith("pci:")]:
        yield card(scene, identity, _UNREAD, reason)
