"""Which devices of a node count for a model; see `capacity` for the rule in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe_cluster.errors import ClusterError
from probe_cluster.figures import amount
from probe_core.model.runtimes import native_runtime

__all__ = ["Device", "counted"]

Device = Mapping[str, Any]

_COUNT = ("gpu", "accelerator")


def counted(
    document: Mapping[str, Any], devices: str | tuple[str, ...]
) -> tuple[list[Device], dict[str, str]]:
    """Return the devices of `devices` (see `capacity`), and reasons for what was left out."""
    every = [one for one in document.get("devices") or () if _is_device(one)]
    if not isinstance(devices, str):
        return [_named(every, identity) for identity in devices], {}
    if devices == "cpu":
        return _cpus(every), {}
    if devices == "primary":
        primary = [one for one in every if one.get("id") == document.get("primary")]
        return primary or _cpus(every), {}
    if devices != "all":
        return [_named(every, devices)], {}
    return _all(every)


def _is_device(one: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(one.get("id"), str)


def _cpus(every: list[Device]) -> list[Device]:
    return [one for one in every if one.get("kind") == "cpu"]


def _named(every: list[Device], identity: str) -> Device:
    for one in every:
        if identity == one["id"] or identity in (one.get("ids") or ()):
            return one
    known = ", ".join(str(one["id"]) for one in every) or "none"
    raise ClusterError(f"the report has no device {identity!r}; it has {known}")


def _all(every: list[Device]) -> tuple[list[Device], dict[str, str]]:
    left_out: dict[str, str] = {}
    seen = [one for one in every if one.get("kind") in _COUNT and _visible(one, left_out)]
    parents = {one.get("parent") for one in seen}
    whole = [one for one in seen if one["id"] not in parents]
    found = [one for one in whole if _has_memory(one, left_out)]
    own = [one for one in found if _dedicated(one)]
    if own:
        for one in found:
            if not _dedicated(one):
                left_out[str(one["id"])] = "it uses the system's memory, others have their own"
        found = own
    reasons = {}
    if left_out:
        said = [f"{identity}: {why}" for identity, why in left_out.items()]
        reasons["devices"] = "not counted: " + "; ".join(said)
    if not found:
        found = _cpus(every)
        more = reasons.get("devices")
        reasons["devices"] = "no GPU counts, so the CPU does" + (f"; {more}" if more else "")
    return found, reasons


def _visible(device: Device, left_out: dict[str, str]) -> bool:
    said = (device.get("visibility") or {}).get(native_runtime(device))
    if not isinstance(said, Mapping) or said.get("visible") is True:
        return True
    left_out[str(device["id"])] = str(said.get("reason") or "whether it is visible is not known")
    return False


def _has_memory(device: Device, left_out: dict[str, str]) -> bool:
    """Leave out a GPU that only the bus saw, or that is lost: whether it runs is not known."""
    memory = device.get("memory")
    if isinstance(memory, Mapping) and memory.get("kind") and amount(memory.get("total")):
        return True
    why = (device.get("unknown") or {}).get("memory.total", "its report does not tell")
    left_out[str(device["id"])] = f"its memory is unknown: {why}"
    return False


def _dedicated(device: Device) -> bool:
    return bool(device["memory"]["kind"] == "dedicated")
