"""What CUDA shows: its orders of GPUs, MIG instances, and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

from probe_core.model.ids import pci_model, pci_place
from probe_core.visibility.availability import (
    available_to,
    driver_major,
    gpus_of,
    ids_of,
    in_order,
    uuids,
)
from probe_core.visibility.numbers import strtoul
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc


# Which orders FASTEST_FIRST may give: only the driver knows how fast it thinks each GPU is.

ORDER_VARIABLE = "CUDA_DEVICE_ORDER"

MAX_MODELS = 4
"""Models of GPUs on one node whose orders are listed: 4! = 24 lists. Five models would give 120,
each evaluated for every device; no such node is known."""


def cuda_orders(gpus: Sequence[DeviceDoc], order: str | None) -> list[list[DeviceDoc]] | None:
    """Return every order in which CUDA may number `gpus`; None when there are too many.

    `order` is the value of ``CUDA_DEVICE_ORDER``. ``PCI_BUS_ID`` gives the order of the PCI
    addresses. Anything else is the default, FASTEST_FIRST, "using a simple heuristic" (CUDA
    programming guide, environment variables): known only for one model, whose devices keep the
    order of their addresses; for several, each order of the models is possible.
    """
    # NVML numbers in the order of the PCI addresses too; WSL shows no PCI tree to read them from.
    ranked = in_order(gpus, None if all(map(pci_place, gpus)) else "nvml")
    if order == "PCI_BUS_ID" or len(ranked) < 2:
        return [ranked]
    groups = _models(ranked)
    if len(groups) == 1:
        return [ranked]
    if len(groups) > MAX_MODELS:
        return None
    from itertools import permutations  # hardly any node has several models

    return [[gpu for group in groups for gpu in group] for groups in permutations(groups)]


def _models(gpus: Sequence[DeviceDoc]) -> list[list[DeviceDoc]]:
    """Return the GPUs of each model; one of which nothing is known is a model of its own."""
    groups: dict[tuple[str, ...], list[DeviceDoc]] = {}
    for place, gpu in enumerate(gpus):
        known = tuple(part for part in (pci_model(gpu), gpu["name"]) if part)
        groups.setdefault(known or (str(place),), []).append(gpu)
    return list(groups.values())


# Which MIG instances CUDA shows: one before driver 570, one of each GPU instance since.

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
        if self.gi is None:
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
        names = (gpu["id"], *gpu["ids"]) if parts else ()
        own = [Instance(device) for device in parts if device["parent"] in names]
        if own or in_mig_mode(gpu):
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


def in_mig_mode(gpu: DeviceDoc) -> bool:
    """Return whether a GPU is in MIG mode, with instances or without."""
    extra = gpu.get("extra") or {}
    for mode in (extra.get("mig"), extra.get("mig_mode")):
        if mode is True or mode == "enabled":
            return True
    return False


def expand(
    picks: Sequence[str | Instance], instances: Mapping[str, list[Instance]], *, many: bool
) -> Mask:
    """Return what CUDA shows of the picked GPUs (ids) and MIG instances.

    A GPU in MIG mode stands for the first compute instance of each of its GPU instances. `many`
    is True for drivers since 570; before, one MIG instance hides everything else.
    """
    if not instances:
        return Mask([pick for pick in picks if isinstance(pick, str)])
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


# What CUDA shows: CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and MIG, as the driver reads them.
#
# Rules: CUDA programming guide, "Environment variables"; MIG user guide, "CUDA device
# enumeration";
# the driver's behaviour as PyTorch (torch/cuda/__init__.py, `_parse_visible_devices`, and its
# tests)
# and nvitop (`parse_cuda_visible_devices`) observed it, and as 118 values were read on an H200
# (2026-11-27, driver 580.159.04, cuInit and cuDeviceGetCount).

VARIABLE = "CUDA_VISIBLE_DEVICES"
_UUID_DIGITS = 32

_BY_SPEED = (
    "the GPUs are of different models and CUDA_DEVICE_ORDER is not PCI_BUS_ID: "
    "only the driver knows which it numbers first"
)
_MANY_MODELS = f"{_BY_SPEED} (too many models to list the orders)"
_BY_DRIVER = "the driver's version is not known, and 570 changed which MIG instances are seen"


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str]) -> View:
    """Return what CUDA would show of a report's devices under `environ`."""
    value = environ.get(VARIABLE)
    view = View("cuda", (), [], variable=None if value is None else VARIABLE, value=value)
    available = available_to(devices, "cuda", "nvidia")
    for numbered in available.alternatives():
        reported = [gpu for gpu in gpus_of(numbered, "nvidia") if not is_instance(gpu)]
        stand_ins: list[DeviceDoc] = []
        instances = instances_of(numbered, reported)
        if any(map(is_instance, numbered)):
            stand_ins, lone = without_gpu(numbered, reported)
            instances = lone | instances
        parts = (part.id for own in instances.values() for part in own)
        view.pool += [*ids_of(reported), *parts]
        _evaluate(view, [*reported, *stand_ins], instances, environ.get(ORDER_VARIABLE))
    own = (device for device in devices if device["vendor"] == "nvidia")
    view.withhold(available, ids_of(own))
    return view


def _evaluate(
    view: View, gpus: Sequence[DeviceDoc], instances: Instances, order: str | None
) -> None:
    """Give the view each result that the orders and drivers that may be in use lead to."""
    # Its version decides on instances, and on names of them.
    driver = driver_major(gpus) if instances or view.value else None
    drivers = [driver] if driver is not None or not instances else [MANY_SINCE - 1, MANY_SINCE]
    orders = cuda_orders(gpus, order)
    if orders is None:
        view.masks += _unordered(view.value, gpus, instances, drivers[0])
        view.uncertain, view.settled_by, view.complete = _MANY_MODELS, ORDER_VARIABLE, False
        return
    for major in drivers:
        for ranked in orders:
            mask = cuda_visible(view.value, ranked, instances, driver=major)
            if all(mask.ids != other.ids for other in view.masks):
                view.masks.append(mask)
    if len(view.masks) > 1:
        by_speed = len(orders) > 1
        view.uncertain = _BY_SPEED if by_speed else _BY_DRIVER
        view.settled_by = ORDER_VARIABLE if by_speed else None


def _unordered(
    value: str | None, gpus: Sequence[DeviceDoc], instances: Instances, driver: int | None
) -> list[Mask]:
    """Return the answer for more models than can be ordered: UUIDs decide, numbers do not."""
    mask = cuda_visible(value, gpus, instances, driver=driver)
    if not mask.ids or (value is not None and value.startswith(("GPU-", "MIG-"))):
        return [mask]
    if len(mask.ids) >= len(gpus):  # all are seen, whichever comes first
        turned = Mask(mask.ids[1:] + mask.ids[:1], mask.reason)
        turned.reasons, turned.codes = mask.reasons, mask.codes
        return [mask, turned]
    unsure = Mask([], mask.reason, code=mask.code, detail=mask.detail)
    unsure.maybe = dict.fromkeys(ids_of(gpus), _MANY_MODELS)
    return [unsure]


def cuda_visible(
    value: str | None,
    gpus: Sequence[DeviceDoc],
    instances: Instances | None = None,
    *,
    driver: int | None = None,
) -> Mask:
    """Return what ``CUDA_VISIBLE_DEVICES=value`` leaves of `gpus`, numbered in this order.

    `instances` maps a GPU's id to its MIG instances; `driver` is the driver's major version
    (None: as the newest). Unset shows all, empty none; the first bad entry ends the list; a
    device named twice before that empties it; the first entry says whether numbers or UUIDs count.
    """
    instances = instances or {}
    many = driver is None or driver >= MANY_SINCE
    if value is None:
        return expand(ids_of(gpus), instances, many=many)
    if value == "":
        return Mask.empty(VARIABLE)
    picks, stop = _picks(value, gpus, instances, driver)
    mask = _result(value, picks, stop, instances, many)
    _mark_unnumbered(mask, stop, value, gpus, instances)
    return mask


def _picks(
    value: str, gpus: Sequence[DeviceDoc], instances: Instances, driver: int | None
) -> tuple[list[Pick], str | None]:
    """Return the devices named before the first bad entry, and that entry."""
    by_uuid = value.startswith(("GPU-", "MIG-"))
    picks: list[Pick] = []
    for entry in value.split(","):
        pick = _by_uuid(entry, gpus, instances, driver) if by_uuid else _by_number(entry, gpus)
        if pick is None:
            return picks, entry
        picks.append(pick)
    return picks, None


def _result(
    value: str, picks: Sequence[Pick], stop: str | None, instances: Instances, many: bool
) -> Mask:
    names = [pick if isinstance(pick, str) else pick.id for pick in picks]
    assignment = f"{VARIABLE}={quoted(value)}"
    if len(set(names)) < len(names):
        detail = f"{assignment} names a device twice: CUDA then shows none at all"
        return Mask.broken(detail, "variable-duplicate")
    mask = expand(picks, instances, many=many)
    if stop is None:
        mask.reason = f"{assignment} does not name it"
        return mask
    stopped = Mask.stopped(mask.ids, "CUDA", assignment, stop)
    stopped.reasons, stopped.codes = mask.reasons, mask.codes
    return stopped


def _by_number(entry: str, gpus: Sequence[DeviceDoc]) -> str | None:
    # Blanks before are skipped, what follows the digits is ignored, "010" is ten, "-0" is zero. Of
    # a longer number the lowest 32 bits count: driver 580.159.04 takes 4294967296 for 0.
    number, _ = strtoul(entry)
    if number is None or (number := number & 0xFFFF_FFFF) >= len(gpus):
        return None
    return gpus[number]["id"]


def _by_uuid(
    entry: str, gpus: Sequence[DeviceDoc], instances: Instances, driver: int | None
) -> Pick | None:
    if entry.startswith("GPU-"):
        return _gpu_by_uuid(entry, gpus)
    if entry.startswith("MIG-GPU-"):
        return _by_numbers(entry, gpus, instances)
    if not entry.startswith("MIG-") or (driver is not None and driver < UUID_SINCE):
        return None
    every = [instance for own in instances.values() for instance in own]
    fits: list[Pick] = [instance for instance in every if _names(entry, instance.uuid)]
    # The driver compares the digits, and took a whole GPU's behind MIG- (H200, 580.159.04).
    whole = [gpu for gpu in gpus if gpu["id"] not in instances]
    fits += [gpu["id"] for gpu in whole if _begins(gpu, f"GPU-{entry[4:]}")]
    return fits[0] if len(fits) == 1 else None


def _gpu_by_uuid(entry: str, gpus: Sequence[DeviceDoc]) -> str | None:
    fits = [gpu["id"] for gpu in gpus if _begins(gpu, entry)]
    return fits[0] if len(fits) == 1 else None


def _begins(gpu: DeviceDoc, entry: str) -> bool:
    return any(_names(entry, uuid) for uuid in uuids(gpu))


def _names(entry: str, uuid: str) -> bool:
    """Return whether an entry, ``GPU-`` or ``MIG-`` and digits, names the device of that UUID.

    As driver 580.159.04 read 60 values: upper and lower case are equal, dashes count for nothing,
    what follows the 32nd digit is ignored; any other character before it refuses the entry, and so
    does having no digit.
    """
    if entry[:4] != uuid[:4]:
        return False
    digits = entry[4:].replace("-", "").lower()[:_UUID_DIGITS]
    return bool(digits) and uuid[4:].replace("-", "").lower().startswith(digits)


def _by_numbers(entry: str, gpus: Sequence[DeviceDoc], instances: Instances) -> Instance | None:
    """Resolve ``MIG-<GPU UUID>/<GPU instance>/<compute instance>``, the form before R470."""
    name, *numbers = entry[4:].split("/")
    gpu = _gpu_by_uuid(name, gpus)
    for instance in instances.get(gpu or "", ()):
        if [str(instance.gi), str(instance.ci)] == numbers:
            return instance
    return None


def _mark_unnumbered(
    mask: Mask,
    stop: str | None,
    value: str,
    gpus: Sequence[DeviceDoc],
    instances: Instances,
) -> None:
    """Mark instances that the form before R470 may mean, where no prober reports their numbers."""
    if stop is None or not stop.startswith("MIG-GPU-") or stop.count("/") != 2:
        return
    for gpu in gpus:
        if _begins(gpu, stop[4:].split("/")[0]):
            for instance in instances.get(gpu["id"], ()):
                if instance.gi is None and instance.id not in mask.ids:
                    mask.maybe[instance.id] = (
                        f"{VARIABLE}={quoted(value)} names an instance by numbers not known here"
                    )


if TYPE_CHECKING:
    Instances = Mapping[str, list[Instance]]
    Pick = str | Instance
