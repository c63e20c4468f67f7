"""MIG: the instances that an A100, H100 or Blackwell card is divided into, as its children."""

from __future__ import annotations

from probe_core.api import finding
from probe_nvidia.ask import Asker, text
from probe_nvidia.device import CORES_PER_SM, capability_of
from probe_nvidia.memory import memory_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

__all__ = ["instances", "mode"]


def mode(asker: Asker) -> str | None:
    """Return "enabled" or "disabled"; None where the GPU has no MIG."""
    modes = asker.get(None, "nvmlDeviceGetMigMode")
    return None if modes is None else ("enabled" if modes[0] else "disabled")


def instances(asker: Asker, scene: Scene, parent: Sighting) -> Iterator[Sighting]:
    """Yield a sighting per MIG instance of `parent`, or a finding when there is none.

    Indexes are sparse: an instance keeps its place when its neighbours are destroyed.
    """
    count = asker.get("extra.mig", "nvmlDeviceGetMaxMigDeviceCount") or 0
    has_instance = False
    for index in range(count):
        handle = asker.get(None, "nvmlDeviceGetMigDeviceHandleByIndex", index)
        if handle is not None:
            has_instance = True
            yield _instance(Asker(asker.nvml, handle), scene, parent, index)
    if not has_instance and not asker.lost:
        yield finding(
            "mig-without-instances",
            what=f"{parent.get('name', 'the GPU')} is in MIG mode and has no instance",
            why="in MIG mode programs can use instances only, and none was created",
            fix="create instances (nvidia-smi mig -cgi … -C), or turn MIG off (nvidia-smi -mig 0)",
            device=parent["ids"][0],
        )


def _instance(asker: Asker, scene: Scene, parent: Sighting, index: int) -> Sighting:
    uuid = text(asker.get("uuid", "nvmlDeviceGetUUID"))
    name = text(asker.get("name", "nvmlDeviceGetName"))
    capability = parent.get("compute_capability") or capability_of(asker)
    own = {
        "ids": [f"uuid:{uuid}" if uuid else f"nvidia:{parent['ids'][0]}/mig{index}"],
        "kind": "gpu",
        "vendor": "nvidia",
        "parent": parent["ids"][0],
        "backends": ["cuda"],
        "name": name,
        "compute_capability": capability,
        "memory": memory_of(asker, scene.machine, capability),
        "driver": parent.get("driver"),
        "clocks": parent.get("clocks"),
    }
    sighting = {field: value for field, value in own.items() if value}
    sighting["extra"] = _place(asker, index)
    _share(asker, sighting, parent)
    sighting["power_state"] = "active"
    return sighting | ({"unknown": asker.unknown} if asker.unknown else {})


def _place(asker: Asker, index: int) -> dict[str, int]:
    numbers = {
        "gpu_instance": asker.get(None, "nvmlDeviceGetGpuInstanceId"),
        "compute_instance": asker.get(None, "nvmlDeviceGetComputeInstanceId"),
    }
    return {"mig_index": index} | {name: n for name, n in numbers.items() if n is not None}


def _share(asker: Asker, sighting: Sighting, parent: Sighting) -> None:
    """Add the instance's SMs, and its memory where the memory call said none."""
    attributes = asker.get("units", "nvmlDeviceGetAttributes")
    if attributes is None:
        return
    units = int(attributes.multiprocessorCount)
    if units:
        sighting["units"] = units
        per_sm = CORES_PER_SM.get(sighting.get("compute_capability", ""))
        if per_sm:
            sighting["cores"] = units * per_sm
        if parent.get("units"):
            sighting["share"] = {"units": units, "of": parent["units"]}
    if "memory" not in sighting and attributes.memorySizeMB:
        total = int(attributes.memorySizeMB) << 20
        sighting["memory"] = {"kind": "dedicated", "total": total, "parts": {"vram": total}}
        asker.unknown.pop("memory.total", None)
