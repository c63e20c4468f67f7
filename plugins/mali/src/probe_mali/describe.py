"""Describes one Mali GPU from its /sys folder, its device-tree node and the memory of the host."""

from __future__ import annotations

from probe_core.sysfs import devicetree, drivers, drm, meminfo, nodes, numbered, power
from probe_core.sysfs.sighting import Draft
from probe_mali.gpuinfo import GpuInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine

# Arm's driver is one module under several names: by generation, and by whoever built it.
_MODULES = ("mali_kbase", "bifrost_kbase", "midgard_kbase", "mali")
_MAINLINE = ("panthor", "panfrost", "lima")
_HZ_PER_MHZ = 1e6


def start(machine: Machine, folder: str) -> Draft:
    """Return what identifies the GPU whose platform device is at `folder` (a real /sys path).

    No file of its driver's is read for it.
    """
    path = devicetree.node_path(machine, folder)
    platform_name = folder.rpartition("/")[2]
    driver = drivers.bound(machine, folder)
    draft = Draft(
        ids=[f"dt:{path}" if path else f"mali:{platform_name}"],
        kind="gpu",
        vendor="arm",
        node_index=drm.minors(machine, folder)
        | numbered.lowest(machine, f"{folder}/misc", {"mali": "mali"}),
    )
    if path:
        # The root's compatibles name the board and the SoC, which a bare "arm,mali-bifrost" lacks.
        names = devicetree.compatibles(machine, path, folder)
        draft.fields["dt"] = [*names, *devicetree.board(machine)]
    if driver:
        # Arm's driver has a release of its own ("r44p0-…"); mainline ones are the kernel's.
        modules = _MODULES if driver == "mali" else (driver,)
        draft.fields["driver"] = {"name": driver} | drivers.version(machine, *modules)
        draft.put("nodes", nodes.paths(draft.fields["node_index"]))
    else:
        _add_fact(machine, draft, folder)
    if status := power.status(machine, folder):
        draft.put("power_state", power.state(status))
    return draft


def add_files(machine: Machine, draft: Draft, folder: str) -> None:
    """Put what the driver's own files tell, and the memory, into `draft`."""
    _add_model(machine, draft, folder, (draft.fields.get("driver") or {}).get("name"))
    _add_clock(machine, draft, folder)
    # All of a Mali's memory is the system's.
    draft.fields["memory"] = meminfo.unified(machine)
    if "total" not in draft.fields["memory"]:
        draft.put("memory.total", None, "/proc/meminfo gives no MemTotal")


def _add_fact(machine: Machine, draft: Draft, folder: str) -> None:
    """Say that no driver is bound; a module that is loaded refused the GPU, for reasons unseen."""
    absent = f"{folder}/driver is absent"
    modules = (*_MAINLINE, *_MODULES)
    loaded = [name for name in modules if machine.exists(f"/sys/module/{name}")]
    if loaded:
        draft.fact("driver", "broken", f"{absent}, though /sys/module/{loaded[0]} is there")
    else:
        evidence = f"{absent}, and none of {', '.join(modules)} is in /sys/module"
        draft.fact("driver", "broken", evidence, "module-not-loaded")


def _add_model(machine: Machine, draft: Draft, folder: str, driver: str | None) -> None:
    """Model, cores and product id: Arm's driver writes them, the mainline ones do not."""
    text = machine.read(f"{folder}/gpuinfo", 256)
    reason = f"{driver} gives it only to programs that open the device" if driver else "no driver"
    if text is not None:
        reason = f"gpuinfo does not report it: {text[:80]!r}"
    info = GpuInfo(text or "")
    for field, value in (("name", info.model), ("units", info.cores), ("gpu_id", info.gpu_id)):
        draft.put(field, value, reason)
    if info.revision:
        draft.note("revision", info.revision)


def _add_clock(machine: Machine, draft: Draft, folder: str) -> None:
    """The highest step of devfreq; `limit_mhz` when an administrator allows less. Files hold Hz."""
    name = folder.rpartition("/")[2]
    own = [f"{folder}/devfreq/{entry}" for entry in machine.listdir(f"{folder}/devfreq")]
    for path in [*own, f"/sys/class/devfreq/{name}"]:
        frequencies = (machine.read(f"{path}/available_frequencies", 4096) or "").split()
        steps = (int(step) for step in frequencies if step.isdecimal() and len(step) <= 20)
        highest = max(steps, default=0)
        limit = machine.read_int(f"{path}/max_freq") or 0
        if best := max(highest, limit):
            draft.put("clocks.max_mhz", best / _HZ_PER_MHZ)
            if 0 < limit < highest:
                draft.put("clocks.limit_mhz", limit / _HZ_PER_MHZ)
            return
    draft.put("clocks.max_mhz", None, "devfreq has no frequencies for this GPU")
