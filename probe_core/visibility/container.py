"""What a container started with this environment would be given: NVIDIA_VISIBLE_DEVICES.

Sources: nvidia-container-toolkit, internal/config/image (`devicesFromEnvvars`,
`NewVisibleDevices`) and cmd/nvidia-container-runtime/README.md. The variable acts before the
container starts; inside, it has acted already and changes nothing.
"""

from __future__ import annotations

from probe_core.visibility.mig import Instance, instances_of
from probe_core.visibility.pool import gpus_of, identifier, in_order, uuids
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["VARIABLE", "container_visible", "see"]

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_NAMES = "nvidia.com/gpu="


def see(devices: Sequence[Device], environ: Mapping[str, str]) -> View:
    """Return what the NVIDIA container runtime would hand to a container under `environ`."""
    gpus = in_order(gpus_of(devices, "nvidia"), "nvml")
    instances = instances_of(devices, gpus)
    value = environ.get(VARIABLE)
    if value is None and _legacy(environ):
        value = "all"
    mask = container_visible(value, gpus, instances)
    pool = [identifier(gpu) for gpu in gpus]
    pool += [one.id for cut in instances.values() for one in cut]
    variable = VARIABLE if VARIABLE in environ else None
    return View("nvidia-container", pool, [mask], variable=variable, value=value)


def _legacy(environ: Mapping[str, str]) -> bool:
    """Return whether the image is one from before NVIDIA_REQUIRE_CUDA, for which unset is all."""
    return bool(environ.get("CUDA_VERSION")) and not environ.get("NVIDIA_REQUIRE_CUDA")


def container_visible(
    value: str | None,
    gpus: Sequence[Device],
    instances: Mapping[str, list[Instance]] | None = None,
) -> Mask:
    """Return what ``NVIDIA_VISIBLE_DEVICES=value`` hands over of `gpus`, given in NVML's order.

    Unset, empty and ``void`` do nothing, as runc; ``none`` gives the driver without GPUs;
    ``all`` all. Else NVML numbers, UUIDs or their beginnings, ``gpu:instance`` and MIG UUIDs,
    trimmed; a name that fits nothing fails the container's start. Inside, the order is NVML's.
    """
    cut = instances or {}
    entries = [entry.strip() for entry in (value or "").split(",")]
    entries = [entry for entry in entries if entry]
    if not entries or "void" in entries:
        said = "is not set" if value is None else f"is {quoted(value)}"
        return Mask([], f"{VARIABLE} {said}: the container runtime adds no GPU")
    first = next((entry for entry in entries if entry in ("all", "none")), None)
    if first == "none":
        return Mask([], f"{VARIABLE}={quoted(value or '')} adds the driver but no GPU")
    everything = _everything(gpus, cut)
    if first == "all":
        return Mask(everything)
    chosen: set[str] = set()
    for entry in entries:
        found = _named(entry, gpus, cut)
        if found is None:
            detail = f"{VARIABLE}: {quoted(entry)} names no device, so no container starts with it"
            return Mask([], detail, code="variable-breaks", detail=detail)
        chosen.update(found)
    ids = [name for name in everything if name in chosen]
    return Mask(ids, f"{VARIABLE}={quoted(value or '')} does not name it")


def _everything(gpus: Sequence[Device], cut: Mapping[str, list[Instance]]) -> list[str]:
    found = []
    for gpu in gpus:
        found.append(identifier(gpu))
        found += [one.id for one in cut.get(identifier(gpu), ())]
    return found


def _named(
    entry: str, gpus: Sequence[Device], cut: Mapping[str, list[Instance]]
) -> list[str] | None:
    text = entry.removeprefix(_NAMES)
    if text == "all":  # of CDI; the plain word was understood before
        return _everything(gpus, cut)
    first, colon, second = text.partition(":")
    if first.isascii() and first.isdigit() and len(first) < 10:
        if int(first) >= len(gpus):
            return None
        return _numbered(identifier(gpus[int(first)]), second if colon else None, cut)
    if text.startswith("GPU-"):
        found = [identifier(gpu) for gpu in gpus if any(u.startswith(text) for u in uuids(gpu))]
        return [found[0], *_ids(cut.get(found[0], ()))] if len(found) == 1 else None
    every = [one for instances in cut.values() for one in instances]
    return [one.id for one in every if text.startswith("MIG-") and one.uuid == text] or None


def _numbered(
    gpu: str, instance: str | None, cut: Mapping[str, list[Instance]]
) -> list[str] | None:
    inside = cut.get(gpu, [])
    if instance is None:
        return [gpu, *_ids(inside)]
    if not (instance.isascii() and instance.isdigit()) or len(instance) > 9:
        return None
    return [inside[int(instance)].id] if int(instance) < len(inside) else None


def _ids(instances: Sequence[Instance]) -> list[str]:
    return [one.id for one in instances]
