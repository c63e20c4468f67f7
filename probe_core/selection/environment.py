"""The variables that confine a process to some devices, for every consumer, never widening.

UUIDs are used where a runtime knows them, since they mean the same whatever else is set; else
numbers in an order that does not depend on speed. What was set before is replaced, because the
devices given were chosen among those that it left.
"""

from __future__ import annotations

from probe_core.visibility import see
from probe_core.visibility.level_zero import VARIABLE as ZE_MASK
from probe_core.visibility.pool import gpus_of, identifier, in_order, uuids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]
    Changes = dict[str, str | None]

__all__ = ["confine"]

_NOTHING = "-1"
"""A number that no device has: where an empty value would mean "all" (ZE_AFFINITY_MASK)."""


def confine(
    document: Mapping[str, Any], devices: Sequence[Device], environ: Mapping[str, str]
) -> Changes:
    """Return what to set (or, for None, to unset) so that a process sees `devices` alone.

    `document` is the node's report; the numbers count all its devices, since they are resolved
    before any mask. Every vendor's other devices are hidden. The order of `devices` is kept
    where the consumer keeps orders. Variables of vendors that are not on the node are left alone.
    """
    every = [one for one in document.get("devices") or () if one.get("kind") != "cpu"]
    vendors = {one.get("vendor") for one in every if one.get("kind") == "gpu"}
    changes: Changes = {}
    if "nvidia" in vendors:
        changes |= _nvidia(every, devices)
    if "amd" in vendors:
        changes |= _amd(every, devices, environ, alone="nvidia" not in vendors)
    if "intel" in vendors:
        changes |= _intel(every, devices, environ)
    if vendors:
        changes |= _tinygrad(every, devices, environ)
        changes |= _selector(environ)
        changes |= _ggml(every, devices, {**environ, **_set(changes)})
    return changes


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


def _amd(
    every: Sequence[Device], devices: Sequence[Device], environ: Mapping[str, str], *, alone: bool
) -> Changes:
    from probe_core.visibility.rocr import agents, amd_uuid

    mine = [one for one in devices if one.get("vendor") == "amd"]
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
    left = ",".join(str(number) for number in range(len(mine)))  # HIP counts what ROCr left
    changes: Changes = {
        "ROCR_VISIBLE_DEVICES": ",".join(str(name) for name in names),
        "HIP_VISIBLE_DEVICES": left,
        "GPU_DEVICE_ORDINAL": left,
    }
    if alone and "CUDA_VISIBLE_DEVICES" in environ:
        changes["CUDA_VISIBLE_DEVICES"] = left  # HIP's second name; the old numbers are wrong now
    return changes


def _intel(
    every: Sequence[Device], devices: Sequence[Device], environ: Mapping[str, str]
) -> Changes:
    from probe_core.visibility.level_zero import mask_of

    mine = [identifier(one) for one in devices if one.get("vendor") == "intel"]
    return {ZE_MASK: mask_of(every, environ, mine) or _NOTHING}


def _selector(environ: Mapping[str, str]) -> Changes:
    """Renew a SYCL selector: its numbers counted what the old masks left.

    Numbers are dropped and backends kept: the new masks show nothing but the devices given.
    """
    from probe_core.visibility.sycl import VARIABLE, parse_selector

    value = environ.get(VARIABLE)
    if not value:
        return {}
    selectors, fault = parse_selector(value)
    if fault is not None or not any(one.number is not None for one in selectors):
        return {}
    backends = dict.fromkeys(one.backend for one in selectors if not one.discards)
    return {VARIABLE: ";".join(f"{backend}:gpu" for backend in backends)}


def _tinygrad(
    every: Sequence[Device], devices: Sequence[Device], environ: Mapping[str, str]
) -> Changes:
    """Give tinygrad since 0.13 its indices in DEV, unless DEV names a backend without them."""
    from probe_core.visibility.rocr import agents

    targets = []
    for vendor, backend in (("nvidia", "NV"), ("amd", "AMD")):
        ranked = agents(every) if vendor == "amd" else in_order(gpus_of(every, vendor), "nvml")
        places = {identifier(one): at for at, one in enumerate(ranked)}
        numbers = [str(places[identifier(one)]) for one in devices if identifier(one) in places]
        if numbers:
            targets.append(f":{','.join(numbers)}+{backend}")
    said = environ.get("DEV")
    if not targets or (said and not _replaceable(said)):
        return {}
    return {"DEV": _merged(said or "", targets)}


def _replaceable(value: str) -> bool:
    names = [target.rpartition("+")[2].split(":")[0].upper() for target in value.split(";")]
    return any(name in ("NV", "AMD") for name in names)


def _merged(said: str, targets: Sequence[str]) -> str:
    """Return DEV with the indices put into the targets that it names, in its own order."""
    if not said:
        return ";".join(targets)
    indices = {target.rpartition("+")[2]: target[1:].rpartition("+")[0] for target in targets}
    found = []
    for target in said.split(";"):
        front, _, rest = target.rpartition("+")
        numbers = indices.get(rest.split(":")[0].upper())
        interface = front.rpartition(":")[0] if ":" in front else front
        found.append(f"{interface}:{numbers}+{rest}" if numbers is not None else target)
    return ";".join(found)


def _ggml(
    every: Sequence[Device], devices: Sequence[Device], environ: Mapping[str, str]
) -> Changes:
    views = see(every, {k: v for k, v in environ.items() if k != "GGML_VK_VISIBLE_DEVICES"})
    loader = next(iter(views.get("vulkan", ())), None)
    if loader is None or not loader.certain:
        return {}
    ids = loader.masks[0].ids
    numbers = [str(ids.index(identifier(one))) for one in devices if identifier(one) in ids]
    return {"GGML_VK_VISIBLE_DEVICES": ",".join(numbers)}
