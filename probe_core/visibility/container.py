"""What a container started with this environment would be given: NVIDIA_VISIBLE_DEVICES.

Sources: nvidia-container-toolkit, internal/config/image (`devicesFromEnvvars`,
`NewVisibleDevices`) and cmd/nvidia-container-runtime/README.md. The variable acts before the
container starts; inside, it has acted already and changes nothing.
"""

from __future__ import annotations

from probe_core.visibility.availability import available_to, gpus_of, ids_of, in_order, uuids
from probe_core.visibility.cuda import Instance, instances_of
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Instances = Mapping[str, Sequence[Instance]]

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_CDI_KIND = "nvidia.com/gpu="
_LONGEST_NUMBER = 9
"""Digits: more fit no 32-bit device number."""


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str]) -> View:
    """Return what the NVIDIA container runtime would give a container under `environ`."""
    value = environ.get(VARIABLE)
    # Unset is all in an image from before NVIDIA_REQUIRE_CUDA.
    if value is None and environ.get("CUDA_VERSION") and not environ.get("NVIDIA_REQUIRE_CUDA"):
        value = "all"
    variable = VARIABLE if VARIABLE in environ else None
    view = View("nvidia-container", (), [], variable=variable, value=value)
    available = available_to(devices, "nvidia-container", "nvidia")
    for numbered in available.alternatives():
        gpus = in_order(gpus_of(numbered, "nvidia"), "nvml")
        instances = instances_of(numbered, gpus)
        view.masks.append(container_visible(value, gpus, instances))
        view.pool += [*ids_of(gpus), *(part.id for own in instances.values() for part in own)]
    own = (device for device in devices if device["vendor"] == "nvidia")
    view.withhold(available, ids_of(own))
    return view


def container_visible(
    value: str | None, gpus: Sequence[DeviceDoc], instances: Instances | None = None
) -> Mask:
    """Return what ``NVIDIA_VISIBLE_DEVICES=value`` hands over of `gpus`, given in NVML's order.

    Unset, empty and ``void`` do nothing, as runc; ``none`` gives the driver without GPUs;
    ``all`` all. Else NVML numbers, UUIDs or their beginnings, ``gpu:instance`` and MIG UUIDs,
    trimmed; a name that fits nothing fails the container's start. Inside, the order is NVML's.
    """
    instances = instances or {}
    entries = [entry.strip() for entry in (value or "").split(",")]
    entries = [entry for entry in entries if entry]
    if not entries or "void" in entries:
        state = "is not set" if value is None else f"is {quoted(value)}"
        return Mask([], f"{VARIABLE} {state}: the container runtime adds no GPU")
    assignment = f"{VARIABLE}={quoted(value or '')}"
    keyword = next((entry for entry in entries if entry in ("all", "none")), None)
    if keyword == "none":
        return Mask([], f"{assignment} adds the driver but no GPU")
    available = _available(gpus, instances)
    if keyword == "all":
        return Mask(available)
    chosen: set[str] = set()
    for entry in entries:
        ids = _named(entry, gpus, instances)
        if ids is None:
            detail = f"{VARIABLE}: {quoted(entry)} names no device, so no container starts with it"
            return Mask.broken(detail)
        chosen.update(ids)
    return Mask([name for name in available if name in chosen], f"{assignment} does not name it")


def _available(gpus: Sequence[DeviceDoc], instances: Instances) -> list[str]:
    return [name for gpu in gpus for name in _whole(gpu["id"], instances)]


def _whole(gpu: str, instances: Instances) -> list[str]:
    """Return the id of a GPU and those of its instances."""
    return [gpu, *(instance.id for instance in instances.get(gpu, ()))]


def _named(entry: str, gpus: Sequence[DeviceDoc], instances: Instances) -> list[str] | None:
    text = entry.removeprefix(_CDI_KIND)
    if text == "all":  # of CDI; the plain word was understood before
        return _available(gpus, instances)
    number, colon, instance = text.partition(":")
    if _is_number(number):
        if int(number) >= len(gpus):
            return None
        return _by_number(gpus[int(number)]["id"], instance if colon else None, instances)
    if text.startswith("GPU-"):
        fits = [gpu["id"] for gpu in gpus if any(uuid.startswith(text) for uuid in uuids(gpu))]
        return _whole(fits[0], instances) if len(fits) == 1 else None
    if not text.startswith("MIG-"):
        return None
    return [part.id for parts in instances.values() for part in parts if part.uuid == text] or None


def _by_number(gpu: str, instance: str | None, instances: Instances) -> list[str] | None:
    if instance is None:
        return _whole(gpu, instances)
    own = instances.get(gpu, ())
    if not _is_number(instance) or int(instance) >= len(own):
        return None
    return [own[int(instance)].id]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
