"""The variables that confine a process to some devices, for every consumer, never widening.

UUIDs are used where a runtime knows them, since they mean the same whatever else is set; else
numbers in an order that does not depend on speed. What was set before is replaced, because the
devices given were chosen among those that it left.
"""

from __future__ import annotations

from probe_core.selection.for_tinygrad import tinygrad_changes
from probe_core.visibility import see
from probe_core.visibility.level_zero import VARIABLE as ZE_MASK
from probe_core.visibility.pool import gpus_of, identifier, in_order, uuids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.visibility import Views

    Device = Mapping[str, Any]
    Changes = dict[str, str | None]

__all__ = ["confine"]

_NOTHING = "-1"
"""A number that no device has: where an empty value would mean "all" (ZE_AFFINITY_MASK)."""


def confine(
    document: Mapping[str, Any],
    devices: Sequence[Device],
    environ: Mapping[str, str],
    *,
    versions: Mapping[str, str] | None = None,
) -> Changes:
    """Return what to set (or, for None, to unset) so that a process sees `devices` alone.

    `document` is the node's report; the numbers count all its devices, since they are resolved
    before any mask. Every vendor's other devices are hidden, and a device that `environ` hides
    from one consumer stays hidden from it, whichever consumer's numbers it was chosen by. The
    order of `devices` is kept where the consumer keeps orders. Variables of vendors that are not
    on the node are left alone. `versions` is as for `probe_core.visibility.see`.
    """
    every = [one for one in document.get("devices") or () if one.get("kind") != "cpu"]
    vendors = {one.get("vendor") for one in every if one.get("kind") == "gpu"}
    system = _system(document)
    views = see(every, environ, os=system, versions=versions)
    changes: Changes = {}
    if "nvidia" in vendors:
        changes |= _nvidia(every, _left(devices, views, "cuda"))
    if "amd" in vendors:
        changes |= _amd(every, devices, views)
        if "nvidia" not in vendors and "CUDA_VISIBLE_DEVICES" in environ:
            # HIP's second name: the old numbers are wrong now
            changes["CUDA_VISIBLE_DEVICES"] = changes["HIP_VISIBLE_DEVICES"]
    if "intel" in vendors:
        changes |= _intel(every, devices, environ)
    if vendors:
        shown = _left(devices, views, "tinygrad")
        changes |= tinygrad_changes(every, shown, environ, (versions or {}).get("tinygrad"))
        if environ.get("ONEAPI_DEVICE_SELECTOR"):
            from probe_core.selection.for_sycl import selector_changes

            changes |= selector_changes(every, environ, {**environ, **_set(changes)})
        allowed = _left(devices, views, "ggml-vulkan")
        changes |= _ggml(every, allowed, {**environ, **_set(changes)}, system)
    return changes


def _system(document: Mapping[str, Any]) -> str:
    node = document.get("node")
    return str((node.get("os") if isinstance(node, dict) else None) or "linux")


def _left(devices: Sequence[Device], views: Views, consumer: str) -> list[Device]:
    """Return those of `devices` that the consumer surely sees now; all where it is no consumer."""
    if consumer not in views:
        return list(devices)
    seen = {name for view in views[consumer] for name in view.visible}
    return [one for one in devices if identifier(one) in seen]


def _set(changes: Changes) -> dict[str, str]:
    return {name: value for name, value in changes.items() if value is not None}


def _nvidia(every: Sequence[Device], devices: Sequence[Device]) -> Changes:
    mine = [one for one in devices if one.get("vendor") == "nvidia"]
    names = [_cuda_name(one) for one in mine]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if all(names):
        listed = ",".join(str(name) for name in names)
        return {**order, "CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "none"}
    ranked = [identifier(gpu) for gpu in in_order(gpus_of(every, "nvidia"))]
    numbers = [str(ranked.index(identifier(one))) for one in mine if identifier(one) in ranked]
    return {
        **order,
        "CUDA_VISIBLE_DEVICES": ",".join(numbers),
        "NVIDIA_VISIBLE_DEVICES": ",".join(numbers) or "none",
    }


def _cuda_name(device: Device) -> str | None:
    return next((uuid for uuid in uuids(device) if uuid.startswith(("GPU-", "MIG-"))), None)


def _amd(every: Sequence[Device], devices: Sequence[Device], views: Views) -> Changes:
    from probe_core.visibility.rocr import agents, amd_uuid

    mine = [one for one in _left(devices, views, "rocr") if one.get("vendor") == "amd"]
    ranked = agents(every)
    known = [amd_uuid(one) for one in ranked]
    places = {identifier(one): at for at, one in enumerate(ranked)}
    names = [
        # partitions of one card share its unique id: then only numbers tell them apart
        amd_uuid(one) if known.count(amd_uuid(one)) == 1 else None
        for one in mine
    ]
    if not all(names):
        names = [str(places[identifier(one)]) for one in mine if identifier(one) in places]
    return {
        "ROCR_VISIBLE_DEVICES": ",".join(str(name) for name in names),
        "HIP_VISIBLE_DEVICES": _numbers(mine, _left(mine, views, "hip")),
        "GPU_DEVICE_ORDINAL": _numbers(mine, _left(mine, views, "opencl")),
    }


def _numbers(devices: Sequence[Device], wanted: Sequence[Device]) -> str:
    """Return the numbers of the `wanted` among `devices`, as what comes after ROCr counts them."""
    return ",".join(str(at) for at, one in enumerate(devices) if one in wanted)


def _intel(
    every: Sequence[Device], devices: Sequence[Device], environ: Mapping[str, str]
) -> Changes:
    from probe_core.visibility.level_zero import mask_of

    mine = [identifier(one) for one in devices if one.get("vendor") == "intel"]
    return {ZE_MASK: mask_of(every, environ, mine) or _NOTHING}


def _ggml(
    every: Sequence[Device], devices: Sequence[Device], environ: Mapping[str, str], system: str
) -> Changes:
    from probe_core.visibility import vulkan

    loader = vulkan.see(every, environ, system)
    if not loader.pool or not loader.certain:
        return {}
    ids = loader.masks[0].ids
    numbers = [str(ids.index(identifier(one))) for one in devices if identifier(one) in ids]
    return {"GGML_VK_VISIBLE_DEVICES": ",".join(numbers)}
