"""Which MIG instances CUDA shows: one before driver 570, one of each GPU instance since."""

from __future__ import annotations

from probe_core.visibility.pool import identifier, partitions, uuids
from probe_core.visibility.view import Mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = [
    "MANY_SINCE",
    "UUID_SINCE",
    "Instance",
    "expand",
    "homeless",
    "instances_of",
    "is_instance",
]

# "Starting with CUDA 12/R570, enumeration of a single compute instance per GPU instance is
# supported" and "with drivers >= R470 each MIG device is assigned a UUID starting with MIG-"
# (NVIDIA MIG user guide, "CUDA device enumeration").
MANY_SINCE = 570
UUID_SINCE = 470

IN_MIG_MODE = "it is in MIG mode: its instances are seen in its place"
NO_INSTANCE = "it is in MIG mode and has no instance"
ONE_ONLY = "drivers before 570 show a process one MIG instance, and no other GPU beside it"
ONE_OF_GPU_INSTANCE = "CUDA shows one compute instance of each GPU instance"


class Instance:
    """One MIG device: its id, its UUID, and its GPU and compute instance numbers where known."""

    __slots__ = ("ci", "gi", "id", "uuid")

    def __init__(self, device: Device) -> None:
        self.id = identifier(device)
        self.uuid = next((u for u in uuids(device) if u.startswith("MIG-")), "")
        self.gi, self.ci = _numbers(device)
        if self.gi is None and self.uuid.startswith("MIG-GPU-"):
            self.gi, self.ci = _legacy_numbers(self.uuid)


def _numbers(device: Device) -> tuple[int | None, int | None]:
    for place in (device, device.get("extra"), device.get("share"), device.get("node_index")):
        if not hasattr(place, "get"):
            continue
        gi = _first(place, "gpu_instance", "gpu_instance_id", "gi", "mig_gi")
        ci = _first(place, "compute_instance", "compute_instance_id", "ci", "mig_ci")
        if gi is not None:
            return gi, ci
    return None, None


def _first(place: Any, *names: str) -> int | None:
    return next((place[name] for name in names if isinstance(place.get(name), int)), None)


def _legacy_numbers(uuid: str) -> tuple[int | None, int | None]:
    parts = uuid.split("/")
    if len(parts) != 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None, None
    return int(parts[1]), int(parts[2])


def instances_of(devices: Sequence[Device], gpus: Sequence[Device]) -> dict[str, list[Instance]]:
    """Return the MIG instances of each GPU in MIG mode: an empty list for one without any."""
    found = {}
    for gpu in gpus:
        cut = [Instance(one) for one in gpu.get("cut") or partitions(devices, gpu)]
        if cut or _flagged(gpu):
            found[identifier(gpu)] = cut
    return found


def is_instance(device: Device) -> bool:
    """Return whether the device is a MIG instance, by its UUID."""
    return any(uuid.startswith("MIG-") for uuid in uuids(device))


def homeless(devices: Sequence[Device], gpus: Sequence[Device]) -> list[Device]:
    """Return stand-ins for GPUs that the report lacks, each with one or more of its instances.

    A container may be shown an instance and not the GPU that it was cut from.
    """
    known = {name for gpu in gpus for name in (identifier(gpu), *(gpu.get("ids") or ()))}
    found: dict[str, Device] = {}
    for device in devices:
        parent = device.get("parent")
        if device.get("vendor") == "nvidia" and is_instance(device) and parent not in known:
            name = str(parent or f"gpu-of:{identifier(device)}")
            stand_in = found.setdefault(
                name, {"id": name, "vendor": "nvidia", "driver": device.get("driver"), "cut": []}
            )
            stand_in["cut"].append(device)
    return list(found.values())


def _flagged(gpu: Device) -> bool:
    extra = gpu.get("extra")
    notes = extra if isinstance(extra, dict) else {}
    said = (gpu.get("mig"), notes.get("mig"), notes.get("mig_mode"))
    return any(value is True or value == "enabled" for value in said)


def expand(
    picks: Sequence[str | Instance], instances: Mapping[str, list[Instance]], *, many: bool
) -> Mask:
    """Return what CUDA shows of the picked GPUs (ids) and MIG instances.

    A GPU in MIG mode stands for the first compute instance of each of its GPU instances. `many`
    is True for drivers since 570; before, one MIG instance hides everything else.
    """
    shown = _one_per_gpu_instance(picks, instances)
    mask = Mask([])
    single = [instance.id for instance in shown if isinstance(instance, Instance)]
    mask.ids = [pick if isinstance(pick, str) else pick.id for pick in shown]
    if single and not many:
        mask.ids = single[:1]
    for pick in picks:
        _explain(mask, pick, instances, single, many)
    return mask


def _one_per_gpu_instance(
    picks: Sequence[str | Instance], instances: Mapping[str, list[Instance]]
) -> list[str | Instance]:
    shown: list[str | Instance] = []
    taken: set[tuple[str, int | str]] = set()
    home = {instance.id: gpu for gpu, cut in instances.items() for instance in cut}
    for pick in picks:
        if isinstance(pick, str) and pick not in instances:
            shown.append(pick)
            continue
        for instance in instances[pick] if isinstance(pick, str) else [pick]:
            # Without its number an instance counts as a GPU instance of its own: the common case.
            place = (home[instance.id], instance.id if instance.gi is None else instance.gi)
            if place not in taken:
                taken.add(place)
                shown.append(instance)
    return shown


def _explain(
    mask: Mask,
    pick: str | Instance,
    instances: Mapping[str, list[Instance]],
    single: Sequence[str],
    many: bool,
) -> None:
    name = pick if isinstance(pick, str) else pick.id
    if isinstance(pick, str) and pick in instances:
        mask.reasons[pick] = IN_MIG_MODE if instances[pick] else NO_INSTANCE
        for instance in instances[pick]:
            if instance.id not in mask.ids:
                mask.reasons[instance.id] = ONE_OF_GPU_INSTANCE if many else ONE_ONLY
    elif name not in mask.ids:
        mask.reasons[name] = ONE_OF_GPU_INSTANCE if many and single else ONE_ONLY
