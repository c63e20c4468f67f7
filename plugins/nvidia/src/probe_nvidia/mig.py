"""MIG: the instances that an A100, H100 or Blackwell card is divided into, as its children."""

from __future__ import annotations

from probe_nvidia import health
from probe_nvidia.device import CORES_PER_SM, capability_of, memory_of
from probe_nvidia.nvml import Asker, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

_MOST = 64
"""Instances of one GPU that are looked for: today's have seven or eight at most."""


def handles(asker: Asker) -> list[tuple[int, Any]]:
    """Return index and handle of each MIG instance that this process was given.

    Indexes are sparse: an instance keeps its place when its neighbours are destroyed.
    """
    count = min(asker.get("extra.mig", "nvmlDeviceGetMaxMigDeviceCount") or 0, _MOST)
    call = "nvmlDeviceGetMigDeviceHandleByIndex"
    tried = ((index, asker.get(None, call, index)) for index in range(count))
    return [(index, handle) for index, handle in tried if handle is not None]


def instances(
    asker: Asker, scene: Scene, parent: Sighting, own: list[tuple[int, Any]]
) -> Iterator[Sighting]:
    """Yield a sighting for each of the MIG instances of `parent`."""
    for index, handle in own:
        scene.request.touching(parent["ids"][0])
        yield _instance(Asker(asker.nvml, handle), scene, parent, index)


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
        # NVML builds the name: the card's, " MIG ", the profile (nvmlDeviceGetName).
        "profile": (name or "").partition(" MIG ")[2],
        "compute_capability": capability,
        "memory": memory_of(asker, scene.machine, capability),
        "driver": parent.get("driver"),
        "clocks": parent.get("clocks"),
    }
    sighting = {field: value for field, value in own.items() if value}
    sighting["extra"] = _place(asker, index)
    _share(asker, sighting, parent)
    sighting["power_state"] = "active"
    sighting["nodes"] = [*parent.get("nodes", ()), *_capability_nodes(scene, parent, sighting)]
    sighting["step_facts"] = [
        parent["step_facts"][0],  # about the library, which is one for all
        health.responding(asker, sighting),
        health.listed(f"MIG instance {index} of {parent['ids'][0]}"),
    ]
    return sighting | ({"unknown": asker.unknown} if asker.unknown else {})


def _capability_nodes(scene: Scene, parent: Sighting, sighting: Sighting) -> list[str]:
    """Return the nodes that stand for the right to use a GPU and a compute instance.

    The driver names their numbers below the GPU's own (nv-caps.c of open-gpu-kernel-modules).
    """
    place, card = sighting["extra"], scene.proc.get(parent["ids"][0])
    if card is None or card.minor is None or len(place) < 3:  # an instance number is missing
        return []
    folder = f"/proc/driver/nvidia/capabilities/gpu{card.minor}/mig/gi{place['gpu_instance']}"
    files = (f"{folder}/access", f"{folder}/ci{place['compute_instance']}/access")
    texts = (scene.machine.read(file, 256) or "" for file in files)
    numbers = (_file_minor(text) for text in texts)
    return [f"/dev/nvidia-caps/nvidia-cap{number}" for number in numbers if number]


def _file_minor(text: str) -> str | None:
    for line in text.splitlines():
        name, _, number = line.partition(":")
        if name == "DeviceFileMinor" and number.strip().isdecimal():
            return number.strip()[:6]
    return None


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
