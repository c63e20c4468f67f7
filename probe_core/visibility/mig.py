"""Which MIG instances CUDA shows: one before driver 570, one of each GPU instance since."""

from __future__ import annotations

from probe_core.visibility.pool import partitions, uuids
from probe_core.visibility.view import Mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = [
    "MANY_SINCE",
    "UUID_SINCE",
    "Instance",
    "expand",
    "instances_of",
    "is_instance",
    "without_gpu",
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

# Keys of `extra` under which a prober reports the numbers. The nvidia prober writes the first of
# each, after NVML's nvmlDeviceGetGpuInstanceId; the other spellings are a guess at other probers'.
_GPU_INSTANCE = ("gpu_instance", "gpu_instance_id", "gi", "mig_gi")
_COMPUTE_INSTANCE = ("compute_instance", "compute_instance_id", "ci", "mig_ci")


class Instance:
    """One MIG device: its id, its UUID, and its GPU and compute instance numbers where known."""

    __slots__ = ("ci", "gi", "id", "uuid")

    def __init__(self, device: DeviceDoc) -> None:
        self.id = device["id"]
        self.uuid = next((uuid for uuid in uuids(device) if uuid.startswith("MIG-")), "")
        self.gi = _number(device, _GPU_INSTANCE)
        self.ci = None if self.gi is None else _number(device, _COMPUTE_INSTANCE)
        if self.gi is None and self.uuid.startswith("MIG-GPU-"):
            self.gi, self.ci = _legacy_numbers(self.uuid)


def _number(device: DeviceDoc, names: Sequence[str]) -> int | None:
    extra = device.get("extra") or {}
    numbers = (extra.get(name) for name in names)
    return next((number for number in numbers if isinstance(number, int)), None)


def _legacy_numbers(uuid: str) -> tuple[int | None, int | None]:
    """Read ``MIG-<GPU UUID>/<GPU instance>/<compute instance>``, the form before R470."""
    parts = uuid.split("/")
    if len(parts) != 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None, None
    return int(parts[1]), int(parts[2])


def instances_of(
    devices: Sequence[DeviceDoc], gpus: Sequence[DeviceDoc]
) -> dict[str, list[Instance]]:
    """Return the MIG instances of each GPU in MIG mode: an empty list for one without any."""
    instances = {}
    parts = [device for device in devices if device["parent"]]
    for gpu in gpus:
        own = [Instance(device) for device in partitions(parts, gpu)]
        if own or _in_mig_mode(gpu):
            instances[gpu["id"]] = own
    return instances


def is_instance(device: DeviceDoc) -> bool:
    """Return whether the device is a MIG instance, by its UUID."""
    return any(name.startswith("uuid:MIG-") for name in device["ids"])


def without_gpu(
    devices: Sequence[DeviceDoc], gpus: Sequence[DeviceDoc]
) -> tuple[list[DeviceDoc], dict[str, list[Instance]]]:
    """Return stand-ins for GPUs that the report lacks, and the instances of each by its id.

    A container may be given an instance and not the GPU that it was cut from.
    """
    names = {name for gpu in gpus for name in (gpu["id"], *gpu["ids"])}
    stand_ins: dict[str, DeviceDoc] = {}
    instances: dict[str, list[Instance]] = {}
    for device in devices:
        parent = device["parent"]
        if device["vendor"] == "nvidia" and parent not in names and is_instance(device):
            name = parent or f"gpu-of:{device['id']}"
            if name not in stand_ins:
                # It has neither name nor PCI id, so that it counts as a model of its own.
                stand_ins[name] = {**device, "id": name, "ids": [], "name": None, "pci": None}
            instances.setdefault(name, []).append(Instance(device))
    return list(stand_ins.values()), instances


def _in_mig_mode(gpu: DeviceDoc) -> bool:
    extra = gpu.get("extra") or {}
    modes = (extra.get("mig"), extra.get("mig_mode"))
    return any(mode is True or mode == "enabled" for mode in modes)


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
    places: set[tuple[str, int | str]] = set()
    gpu_of = {instance.id: gpu for gpu, own in instances.items() for instance in own}
    for pick in picks:
        if isinstance(pick, str) and pick not in instances:
            shown.append(pick)
            continue
        for instance in instances[pick] if isinstance(pick, str) else [pick]:
            # Without its number an instance counts as a GPU instance of its own: the common case.
            place = (gpu_of[instance.id], instance.id if instance.gi is None else instance.gi)
            if place not in places:
                places.add(place)
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
        mask.codes[pick] = "mig-mode"
        for instance in instances[pick]:
            if instance.id not in mask.ids:
                mask.reasons[instance.id] = ONE_OF_GPU_INSTANCE if many else ONE_ONLY
    elif name not in mask.ids:
        mask.reasons[name] = ONE_OF_GPU_INSTANCE if many and single else ONE_ONLY
