"""Answers from files alone: for sleeping GPUs, recorded machines and drivers that fail."""

from __future__ import annotations

from probe_core.api import finding
from probe_core.sysfs import meminfo
from probe_nvidia import causes, wrong
from probe_nvidia.scene import INTEGRATED, driver_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from probe_core.api import Machine, SightingMemory
    from probe_nvidia.causes import Fact, Failure
    from probe_nvidia.scene import Scene
    from probe_nvidia.tegra import Soc

    Sighting = dict[str, Any]

UNREAD = ("memory.total", "memory.free", "compute_capability", "units", "clocks.max_mhz")


def recorded(scene: Scene) -> Iterator[Sighting]:
    """Report what a recorded machine's files say; no library can be asked about it."""
    reason = "the machine is a recording, so its driver cannot be queried"
    yield from map(_with_cuda, _all(scene, reason, causes.unasked(reason)))


def asleep(scene: Scene) -> Iterator[Sighting]:
    """Report from files because a GPU sleeps and nvmlInit would wake it.

    One sleeping GPU keeps all from being asked: nvmlInit attaches to every GPU of the driver.
    """
    names = ", ".join(scene.asleep)
    reason = f"{names} sleeps, and a query would wake it"
    fact = causes.fact("responding", "unknown", reason, "asleep")
    yield from map(_with_cuda, _all(scene, reason, fact))
    yield finding(
        "gpu-asleep",
        severity="info",
        what=f"memory and clocks of the NVIDIA GPUs were not read: {names} sleeps",
        why="initialising NVIDIA's library wakes every GPU: 2 s to resume, 15 s awake (btop#1831)",
        fix="run `probe --active` to wake and query them",
        device=scene.asleep[0],
    )


def module_alone(scene: Scene, soc: Soc) -> Iterator[Sighting]:
    """Report a Jetson module's GPU from the device tree."""
    reason = "this Jetson has no NVML"
    without = causes.fact("library", "not_applicable", f"{reason}, and CUDA needs none")
    yield _module(scene, soc, reason, [without])


def unavailable(scene: Scene, error: Failure) -> Iterator[Sighting]:
    """Report what files say, then raise why the driver's library cannot be asked."""
    yield from _all(scene, error.reason, error.fact)
    raise error


def card(scene: Scene, identity: str, reason: str = "", unread: Iterable[str] = ()) -> Sighting:
    """Return the GPU `identity` (a PCI id) as files know it; `unread` are unknown for `reason`."""
    file, seen = scene.proc.get(identity), driver_of(scene.cards.get(identity, {}))
    sighting: Sighting = {"ids": [identity], "kind": "gpu", "vendor": "nvidia"}
    if file and file.uuid:
        sighting["ids"].append(f"uuid:{file.uuid}")
    if file and file.model:
        sighting["name"] = file.model
    is_served = seen == "nvidia" or (file is not None and seen is None)
    if is_served and scene.version:
        sighting["driver"] = {"name": "nvidia", "version": scene.version}
    sighting["unknown"] = dict.fromkeys(unread, reason)
    if is_served and (nodes := scene.nodes(identity)):
        sighting["nodes"] = nodes
    return sighting


def complete(scene: Scene, sighting: Sighting, identity: str | None) -> None:
    """Add what files know to the sighting of a GPU that NVML does not name.

    `identity` is its PCI id, if it has one.
    """
    soc = scene.soc
    if soc and (identity is None or sighting.get("compute_capability") in INTEGRATED):
        base = _module(scene, soc, "NVML does not report it", [])
        if identity:  # Thor: on the PCI bus as well
            base["ids"] = [name for name in soc.ids if name.startswith("dt:")]
        del base["step_facts"]
        _fill(sighting, base)
        if soc.model:
            sighting["extra"]["model"] = soc.model
    elif identity:
        _fill(sighting, card(scene, identity))


def unified_memory(machine: Machine) -> SightingMemory | None:
    """Return the memory (bytes) that CPU and GPU share, from /proc/meminfo; None without it.

    How much of it CUDA can have is not said: NVML and the kernel do not tell.
    """
    memory = meminfo.unified(machine)
    if "total" not in memory:
        return None
    del memory["usable"]
    return memory


def _module(scene: Scene, soc: Soc, reason: str, facts: list[Fact]) -> Sighting:
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
        "step_facts": [_module_driver(soc), *facts],
    }
    if "total" not in sighting["memory"]:
        sighting["unknown"]["memory.total"] = "there is no MemTotal in /proc/meminfo"
    return sighting | ({"name": soc.model} if soc.model else {})


def _module_driver(soc: Soc) -> Fact:
    if soc.driver:
        return causes.fact("driver", "ok", f"the driver {soc.driver} serves the GPU")
    evidence = "no driver is bound to the GPU, and /sys/module/nvgpu is absent"
    return causes.broken("driver", "jetson-no-nvgpu", evidence)


def _with_cuda(sighting: Sighting) -> Sighting:
    """Say that programs can use a GPU that NVIDIA's driver holds, though nobody asked it now."""
    facts = sighting.get("step_facts", ())
    if "driver" not in sighting or any(fact["status"] == "broken" for fact in facts):
        return sighting
    return {**sighting, "backends": ["cuda"]}


def _all(scene: Scene, reason: str, fact: Fact) -> Iterator[Sighting]:
    """Yield every GPU as files know it; `fact` is about those that NVIDIA's driver serves."""
    if scene.soc:
        yield _module(scene, scene.soc, reason, [fact])
    reachable, excluded = scene.reachable(), scene.excluded()
    served = [*reachable, *excluded]
    for identity in served or [i for i in scene.cards if i.startswith("pci:")]:
        sighting = card(scene, identity, reason, UNREAD)
        if identity in excluded:
            sighting["step_facts"] = [wrong.excluded(identity)]
        elif identity in reachable:
            sighting["step_facts"] = [fact]
        yield sighting


def _fill(sighting: Sighting, base: Sighting) -> None:
    """Add the fields of `base` that are missing, and forget that they were unknown."""
    ids = list(dict.fromkeys([*sighting["ids"], *base["ids"]]))
    for field, value in base.items():
        if field != "unknown" and not sighting.get(field):
            sighting[field] = value
    sighting["ids"] = ids
    unknown = sighting["unknown"].items()
    sighting["unknown"] = {f: reason for f, reason in unknown if not _is_known(sighting, f)}


def _is_known(sighting: Sighting, field: str) -> bool:
    if field == "uuid":
        return any(name.startswith("uuid:") for name in sighting["ids"])
    table, _, name = field.partition(".")
    value = sighting.get(table)
    return value is not None if not name else isinstance(value, dict) and name in value
