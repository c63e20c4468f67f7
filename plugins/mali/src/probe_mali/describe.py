"""Describes one Mali GPU from its /sys folder, its device-tree node and the memory of the host."""

from __future__ import annotations

from probe_mali import find
from probe_mali.gpuinfo import GpuInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine

_POWER = {"resuming": "active", "suspending": "suspended", "unsupported": "active"}
_MODULES = ("mali_kbase", "bifrost_kbase", "midgard_kbase", "mali")


def device(machine: Machine, folder: str) -> dict[str, Any]:
    """Return the sighting of the GPU whose platform device is at `folder` (a real /sys path)."""
    path = find.node_path(machine, folder)
    platform_name = folder.rpartition("/")[2]
    driver = _driver_name(machine, folder)
    unknown: dict[str, str] = {}
    said: dict[str, Any] = {
        "ids": [f"dt:{path}" if path else f"mali:{platform_name}"],
        "kind": "gpu",
        "vendor": "arm",
        "node_index": _indexes(machine, folder),
        "unknown": unknown,
    }
    if path:
        # The root's compatibles name the board and the SoC, which a bare "arm,mali-bifrost" lacks.
        said["dt"] = [*find.compatibles(machine, path), *find.compatibles(machine, "")]
    if driver:
        said["driver"] = _driver(machine, driver)
    if status := machine.read(f"{folder}/power/runtime_status"):
        said["power_state"] = _POWER.get(status, status)
    _add_model(machine, said, folder, driver)
    _add_clock(machine, said, folder)
    _add_memory(machine, said)
    return said


def _driver_name(machine: Machine, folder: str) -> str | None:
    link = f"{folder}/driver"
    return machine.realpath(link).rpartition("/")[2] if machine.exists(link) else None


def _driver(machine: Machine, name: str) -> dict[str, str]:
    """Arm's driver has a release of its own ("r44p0-…"); mainline ones are the kernel's."""
    modules = _MODULES if name == "mali" else (name,)
    for module in modules:
        if version := machine.read(f"/sys/module/{module}/version"):
            return {"name": name, "version": version, "version_of": "module"}
    kernel = machine.read("/proc/sys/kernel/osrelease")
    return {"name": name} | ({"version": kernel, "version_of": "kernel"} if kernel else {})


def _indexes(machine: Machine, folder: str) -> dict[str, int]:
    found = {}
    for below, prefix, key in (
        ("drm", "card", "drm_card"),
        ("drm", "renderD", "drm_render"),
        ("misc", "mali", "mali"),
    ):
        for name in machine.listdir(f"{folder}/{below}"):
            if name.startswith(prefix) and name[len(prefix) :].isdecimal():
                found[key] = int(name[len(prefix) :])
    return found


def _add_model(machine: Machine, said: dict[str, Any], folder: str, driver: str | None) -> None:
    """Model, cores and product id: Arm's driver writes them, the mainline ones do not."""
    text = machine.read(f"{folder}/gpuinfo")
    if text is None:
        why = f"{driver} tells it only to programs that open the device" if driver else "no driver"
        said["unknown"] |= {"name": why, "units": why, "gpu_id": why}
        return
    info = GpuInfo(text)
    found = {"name": info.model, "units": info.cores, "gpu_id": info.gpu_id}
    for field, value in found.items():
        if value is None:
            said["unknown"][field] = f"gpuinfo does not say: {text[:80]!r}"
        else:
            said[field] = value
    if info.revision:
        said["extra"] = {"revision": info.revision}


def _add_clock(machine: Machine, said: dict[str, Any], folder: str) -> None:
    """The highest step of devfreq; `limit_mhz` when an administrator allows less. Files hold Hz."""
    name = folder.rpartition("/")[2]
    own = [f"{folder}/devfreq/{one}" for one in machine.listdir(f"{folder}/devfreq")]
    for place in [*own, f"/sys/class/devfreq/{name}"]:
        words = (machine.read(f"{place}/available_frequencies") or "").split()
        steps = (int(word) for word in words if word.isdecimal() and len(word) <= 20)
        highest = max(steps, default=0)
        limit = machine.read_int(f"{place}/max_freq") or 0
        if best := max(highest, limit):
            said["clocks"] = {"max_mhz": best / 1e6}
            if 0 < limit < highest:
                said["clocks"]["limit_mhz"] = limit / 1e6
            return
    said["unknown"]["clocks.max_mhz"] = "devfreq has no frequencies for this GPU"


def _add_memory(machine: Machine, said: dict[str, Any]) -> None:
    """All of a Mali's memory is the system's."""
    sizes = {}
    for line in (machine.read("/proc/meminfo") or "").splitlines():
        words = line.split()
        if len(words) > 1 and words[1].isdecimal() and len(words[1]) <= 20:
            sizes[words[0]] = int(words[1]) * 1024
    said["memory"] = {"kind": "unified"}
    if total := sizes.get("MemTotal:"):
        said["memory"] |= {"total": total, "usable": total, "parts": {"system": total}}
        if "MemAvailable:" in sizes:
            said["memory"]["free"] = sizes["MemAvailable:"]
    else:
        said["unknown"]["memory.total"] = "/proc/meminfo gives no MemTotal"
