"""What CUDA shows: CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and MIG, as the driver reads them.

Rules: CUDA programming guide, "Environment variables"; MIG user guide, "CUDA device enumeration";
the driver's behaviour as PyTorch (torch/cuda/__init__.py, `_parse_visible_devices`, and its tests)
and nvitop (`parse_cuda_visible_devices`) observed it.
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to
from probe_core.visibility.mig import (
    MANY_SINCE,
    UUID_SINCE,
    Instance,
    expand,
    instances_of,
    is_instance,
    without_gpu,
)
from probe_core.visibility.numbers import strtol
from probe_core.visibility.pool import driver_major, gpus_of, ids_of, uuids
from probe_core.visibility.speed import VARIABLE as ORDER
from probe_core.visibility.speed import cuda_orders
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Instances = Mapping[str, list[Instance]]
    Pick = str | Instance

__all__ = ["VARIABLE", "cuda_visible", "see"]

VARIABLE = "CUDA_VISIBLE_DEVICES"

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
        stand_ins, instances = without_gpu(numbered, reported)
        instances |= instances_of(numbered, reported)
        parts = (part.id for own in instances.values() for part in own)
        view.pool += [*ids_of(reported), *parts]
        _evaluate(view, [*reported, *stand_ins], instances, environ.get(ORDER))
    if available.withheld:
        own = (device for device in devices if device["vendor"] == "nvidia")
        view.withhold(available, ids_of(own))
    return view


def _evaluate(
    view: View, gpus: Sequence[DeviceDoc], instances: Instances, order: str | None
) -> None:
    """Give the view each result that the orders and drivers that may be in use lead to."""
    driver = driver_major(gpus)
    drivers = [driver] if driver is not None or not instances else [MANY_SINCE - 1, MANY_SINCE]
    orders = cuda_orders(gpus, order)
    if orders is None:
        view.masks += _unordered(view.value, gpus, instances, drivers[0])
        view.uncertain, view.settled_by, view.complete = _MANY_MODELS, ORDER, False
        return
    for major in drivers:
        for ranked in orders:
            mask = cuda_visible(view.value, ranked, instances, driver=major)
            if all(mask.ids != other.ids for other in view.masks):
                view.masks.append(mask)
    if len(view.masks) > 1:
        by_speed = len(orders) > 1
        view.uncertain = _BY_SPEED if by_speed else _BY_DRIVER
        view.settled_by = ORDER if by_speed else None


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
    # As strtol in base 10: blanks before are skipped, what follows the digits is ignored, "010"
    # is ten, and "-0" is zero.
    number, _ = strtol(entry, 10)
    if number is None or not 0 <= number < len(gpus):
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
    fits = [
        instance
        for own in instances.values()
        for instance in own
        if instance.uuid.startswith(entry)
    ]
    return fits[0] if len(fits) == 1 else None


def _gpu_by_uuid(prefix: str, gpus: Sequence[DeviceDoc]) -> str | None:
    fits = [gpu["id"] for gpu in gpus if _begins(gpu, prefix)]
    return fits[0] if len(fits) == 1 else None


def _begins(gpu: DeviceDoc, prefix: str) -> bool:
    return any(uuid.startswith(prefix) for uuid in uuids(gpu))


def _by_numbers(entry: str, gpus: Sequence[DeviceDoc], instances: Instances) -> Instance | None:
    """Resolve ``MIG-<GPU UUID>/<GPU instance>/<compute instance>``, the form before R470."""
    parts = entry[4:].split("/")
    gpu = _gpu_by_uuid(parts[0], gpus)
    if len(parts) != 3 or gpu is None:
        return None
    for instance in instances.get(gpu, ()):
        if [str(instance.gi), str(instance.ci)] == parts[1:]:
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
