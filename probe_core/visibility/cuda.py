"""What CUDA shows: CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and MIG, as the driver reads them.

Rules: CUDA programming guide, "Environment variables"; MIG user guide, "CUDA device enumeration";
the driver's behaviour as PyTorch (torch/cuda/__init__.py, `_parse_visible_devices`, and its tests)
and nvitop (`parse_cuda_visible_devices`) observed it.
"""

from __future__ import annotations

from probe_core.visibility.mig import (
    MANY_SINCE,
    UUID_SINCE,
    Instance,
    expand,
    homeless,
    instances_of,
    is_instance,
)
from probe_core.visibility.numbers import strtol
from probe_core.visibility.pool import driver_major, gpus_of, identifier, strangers, uuids
from probe_core.visibility.speed import cuda_orders
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]
    Instances = Mapping[str, list[Instance]]
    Pick = str | Instance

__all__ = ["VARIABLE", "cuda_visible", "see"]

VARIABLE = "CUDA_VISIBLE_DEVICES"

_SPEED = (
    "the GPUs are of different models and CUDA_DEVICE_ORDER is not PCI_BUS_ID: "
    "only the driver knows which it numbers first"
)
_MANY = f"{_SPEED} (too many models to list the orders)"
_DRIVER = "the driver's version is not known, and 570 changed which MIG instances are seen"


def see(devices: Sequence[Device], environ: Mapping[str, str]) -> View:
    """Return what CUDA would see of a report's devices under `environ`."""
    told = [gpu for gpu in gpus_of(devices, "nvidia") if not is_instance(gpu)]
    gpus = [*told, *homeless(devices, told)]
    instances = instances_of(devices, gpus)
    value = environ.get(VARIABLE)
    driver = driver_major(gpus)
    pool = [identifier(gpu) for gpu in told]
    pool += [instance.id for cut in instances.values() for instance in cut]
    masks, uncertain = _masks(value, gpus, instances, driver, environ.get("CUDA_DEVICE_ORDER"))
    variable = VARIABLE if value is not None else None
    view = View("cuda", pool, masks, variable=variable, value=value, uncertain=uncertain)
    view.complete = uncertain is not _MANY
    for name, reason in strangers(devices, "nvidia").items():
        view.pool.append(name)
        view.reasons[name] = (reason, None)
    return view


def _masks(
    value: str | None,
    gpus: Sequence[Device],
    instances: Instances,
    driver: int | None,
    order: str | None,
) -> tuple[list[Mask], str | None]:
    orders = cuda_orders(gpus, order)
    eras = [driver] if driver is not None or not instances else [MANY_SINCE - 1, MANY_SINCE]
    if orders is None:
        return _unordered(value, gpus, instances, eras[0]), _MANY
    masks: list[Mask] = []
    for era in eras:
        for ranked in orders:
            mask = cuda_visible(value, ranked, instances, driver=era)
            if all(mask.ids != known.ids for known in masks):
                masks.append(mask)
    return masks, None if len(masks) == 1 else _SPEED if len(orders) > 1 else _DRIVER


def _unordered(
    value: str | None, gpus: Sequence[Device], instances: Instances, driver: int | None
) -> list[Mask]:
    """Return the answer for more models than can be ordered: UUIDs decide, numbers do not."""
    mask = cuda_visible(value, gpus, instances, driver=driver)
    if not mask.ids or (value is not None and value.startswith(("GPU-", "MIG-"))):
        return [mask]
    if len(mask.ids) >= len(gpus):  # all are seen, whichever comes first
        turned = Mask(mask.ids[1:] + mask.ids[:1], mask.why)
        turned.reasons = mask.reasons
        return [mask, turned]
    unsure = Mask([], mask.why, code=mask.code, detail=mask.detail)
    unsure.maybe = {identifier(gpu): _MANY for gpu in gpus}
    return [unsure]


def cuda_visible(
    value: str | None,
    gpus: Sequence[Device],
    instances: Instances | None = None,
    *,
    driver: int | None = None,
) -> Mask:
    """Return what ``CUDA_VISIBLE_DEVICES=value`` leaves of `gpus`, numbered as given.

    `instances` maps a GPU's id to its MIG instances; `driver` is the driver's major version
    (None: as the newest). Unset shows all, empty none; the first bad entry ends the list; a
    device named twice before that empties it; the first entry says whether numbers or UUIDs count.
    """
    cut = instances or {}
    many = driver is None or driver >= MANY_SINCE
    if value is None:
        return expand([identifier(gpu) for gpu in gpus], cut, many=many)
    if value == "":
        return Mask([], f"{VARIABLE} is empty, which hides every device", code="variable-empty")
    picks, stop = _picks(value, gpus, cut, driver)
    mask = _result(value, picks, stop, cut, many)
    _doubtful(mask, stop, value, gpus, cut)
    return mask


def _picks(
    value: str, gpus: Sequence[Device], instances: Instances, driver: int | None
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
    if len(set(names)) < len(names):
        detail = f"{VARIABLE}={quoted(value)} names a device twice: CUDA then shows none at all"
        return Mask([], detail, code="variable-duplicate", detail=detail)
    mask = expand(picks, instances, many=many)
    if stop is None:
        mask.why = f"{VARIABLE}={quoted(value)} does not name it"
        return mask
    mask.code = "variable-stops-at"
    mask.detail = f"{VARIABLE}={quoted(value)}: CUDA stops reading at {quoted(stop)}"
    mask.why = f"{mask.detail}, and it is not named before that"
    return mask


def _by_number(entry: str, gpus: Sequence[Device]) -> str | None:
    # As strtol in base 10: blanks before are skipped, what follows the digits is ignored, "010"
    # is ten, and "-0" is zero.
    number, _ = strtol(entry, 10)
    if number is None or not 0 <= number < len(gpus):
        return None
    return identifier(gpus[number])


def _by_uuid(
    entry: str, gpus: Sequence[Device], instances: Instances, driver: int | None
) -> Pick | None:
    if entry.startswith("GPU-"):
        found = [identifier(gpu) for gpu in gpus if _begins(gpu, entry)]
        return found[0] if len(found) == 1 else None
    if entry.startswith("MIG-GPU-"):
        return _legacy(entry, gpus, instances)
    if not entry.startswith("MIG-") or (driver is not None and driver < UUID_SINCE):
        return None
    every = [instance for cut in instances.values() for instance in cut]
    cut = [instance for instance in every if instance.uuid.startswith(entry)]
    return cut[0] if len(cut) == 1 else None


def _begins(gpu: Device, prefix: str) -> bool:
    return any(uuid.startswith(prefix) for uuid in uuids(gpu))


def _legacy(entry: str, gpus: Sequence[Device], instances: Instances) -> Instance | None:
    """Resolve ``MIG-<GPU UUID>/<GPU instance>/<compute instance>``, the form before R470."""
    parts = entry[4:].split("/")
    found = [identifier(gpu) for gpu in gpus if _begins(gpu, parts[0])]
    if len(parts) != 3 or len(found) != 1:
        return None
    for instance in instances.get(found[0], ()):
        if [str(instance.gi), str(instance.ci)] == parts[1:]:
            return instance
    return None


def _doubtful(
    mask: Mask, stop: str | None, value: str, gpus: Sequence[Device], instances: Instances
) -> None:
    """Mark instances that the legacy form may mean, where no prober told their numbers."""
    if stop is None or not stop.startswith("MIG-GPU-") or stop.count("/") != 2:
        return
    for gpu in gpus:
        if _begins(gpu, stop[4:].split("/")[0]):
            for instance in instances.get(identifier(gpu), ()):
                if instance.gi is None and instance.id not in mask.ids:
                    why = f"{VARIABLE}={quoted(value)} names an instance by numbers not known here"
                    mask.maybe[instance.id] = why
