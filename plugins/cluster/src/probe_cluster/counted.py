"""Which devices of a node count for a model; see `capacity` for the rule in words."""

from __future__ import annotations

from collections.abc import Mapping

from probe_cluster.errors import ClusterError
from probe_cluster.figures import amount
from probe_core.model.runtimes import native_runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["counted_devices"]

# No NPU: the engines that are planned for (MLX, CUDA, vLLM, tinygrad) place no layers on one.
_COUNT = ("gpu", "accelerator")


def counted_devices(
    document: Mapping[str, Any], devices: str | tuple[str, ...]
) -> tuple[list[Device], dict[str, str]]:
    """Return the devices of `devices` (see `capacity`), and reasons for what was left out."""
    present = [device for device in document.get("devices") or () if _is_device(device)]
    if not isinstance(devices, str):
        return [_named(present, identity) for identity in devices], {}
    if devices == "cpu":
        return _cpus(present), {}
    if devices == "primary":
        primary = [device for device in present if device.get("id") == document.get("primary")]
        return primary or _cpus(present), {}
    if devices != "all":
        return [_named(present, devices)], {}
    return _all(present)


def _is_device(device: Any) -> bool:
    return isinstance(device, Mapping) and isinstance(device.get("id"), str)


def _cpus(devices: list[Device]) -> list[Device]:
    return [device for device in devices if device.get("kind") == "cpu"]


def _named(devices: list[Device], identity: str) -> Device:
    for device in devices:
        if identity == device["id"] or identity in (device.get("ids") or ()):
            return device
    ids = ", ".join(str(device["id"]) for device in devices) or "none"
    raise ClusterError(f"the report has no device {identity!r}; it has {ids}")


def _all(devices: list[Device]) -> tuple[list[Device], dict[str, str]]:
    left_out: dict[str, str] = {}
    usable = _usable(devices, left_out)
    if any(_dedicated(device) for device in usable):
        for device in usable:
            if not _dedicated(device):
                left_out[str(device["id"])] = "it uses the system's memory, others have their own"
        usable = [device for device in usable if _dedicated(device)]
    notes = [f"{id_}: {reason}" for id_, reason in left_out.items()]
    reason = f"not counted: {'; '.join(notes)}" if notes else ""
    if not usable:
        usable = _cpus(devices)
        reason = "; ".join(filter(None, ["no GPU counts, so the CPU does", reason]))
    return usable, {"devices": reason} if reason else {}


def _usable(devices: list[Device], left_out: dict[str, str]) -> list[Device]:
    """Return the visible accelerators with memory; the others' reasons go into `left_out`."""
    kinds = [device for device in devices if device.get("kind") in _COUNT]
    visible = [device for device in kinds if _visible(device, left_out)]
    # A GPU that is split into parts (MIG) has no memory besides theirs.
    parents = {device.get("parent") for device in visible}
    whole = [device for device in visible if device["id"] not in parents]
    return [device for device in whole if _has_memory(device, left_out)]


def _visible(device: Device, left_out: dict[str, str]) -> bool:
    entry = (device.get("visibility") or {}).get(native_runtime(device))
    # Without an entry there is no variable that could hide it.
    if not isinstance(entry, Mapping) or entry.get("visible") is True:
        return True
    left_out[str(device["id"])] = str(entry.get("reason") or "whether it is visible is not known")
    return False


def _has_memory(device: Device, left_out: dict[str, str]) -> bool:
    """Leave out a GPU that only the bus saw, or that is lost: whether it runs is not known."""
    memory = device.get("memory")
    if isinstance(memory, Mapping) and memory.get("kind") and amount(memory.get("total")):
        return True
    reason = (device.get("unknown") or {}).get("memory.total", "its report does not give")
    left_out[str(device["id"])] = f"its memory is unknown: {reason}"
    return False


def _dedicated(device: Device) -> bool:
    return bool(device["memory"]["kind"] == "dedicated")
