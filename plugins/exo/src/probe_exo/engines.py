"""What each engine that is installed on a node can allocate, on the device that it uses.

The wheel decides which engine there is, never the kind of a device: a node with a card and the
wheel `mlx-cpu` computes on its CPU. exo starts one runner for a node, which selects no device, so
an engine has one GPU's memory and never the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe_cluster.planning.offers import table
from probe_cluster.shared import amount, text, verdict
from probe_core.model.runtimes import in_runtime_order
from probe_exo.figures import rows
from probe_exo.installed import MLX_WHEELS, Installed

MLX_SHARE = 0.95
"""Of the device's total, what MLX allocates at most (mlx/backend/cuda/allocator.cpp)."""
MLX_LEFT = 2_000_000_000
"""Bytes that exo's PR 2300 leaves free on a CUDA device: without them 35B models fail to load."""
VLLM_SHARE = 0.92
"""vLLM's default of ``--gpu-memory-utilization``: a GPU's share for weights and KV cache."""

RUNNERS = ("MlxCpu", "MlxCuda", "MlxMetal")
"""Values of exo's `Backend` that an instance of its can run on (`INSTANCE_META_BACKENDS`)."""
_NO_RUNNER = "exo (b5375f8) has no runner for vLLM"


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Bytes; None is unknown, see `reasons`."""

    backend: str
    """A value of exo's `Backend`: ``MlxCpu``, ``MlxCuda``, ``MlxMetal`` or ``Vllm``."""
    wheel: str
    """The wheel that it comes from."""
    device: str | None
    """Id in the report of the one device that it uses; None where the report does not have it."""
    total: int | None
    """What it can allocate at most."""
    available: int | None
    """What of it can be allocated now, or what OVERRIDE_MEMORY_MB says."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown, or which limit binds; ``runner`` → why exo does not start it."""


class Use(NamedTuple):
    """An engine and its device, which stay while the report does."""

    backend: str
    wheel: str
    device: str | None
    total: int | None
    """The device's own memory; None where it is the system's, or unknown."""
    unified: bool
    limit: int | None = None
    """What the GPU may take of the system's memory, where somebody set it."""
    reasons: Mapping[str, str] = {}


class Free(NamedTuple):
    """What is free now, in bytes."""

    ram_total: int | None
    ram_available: int | None
    devices: Mapping[str, int | None]
    """Id → what is free of a GPU's own memory."""
    override: tuple[int, str] | None = None
    """What a person says, and where."""
    limited: str | None = None
    """Why the system's memory is less than the machine's."""


def uses(document: Mapping[str, Any], installed: Installed) -> tuple[Use, ...]:
    """Return each engine that is installed and the device that it uses; MLX first.

    `document` may be any report: what makes no sense in it is unknown. Never raises.
    """
    devices = [device for device in rows(document.get("devices")) if _is_named(device)]
    found = []
    if installed.mlx is not None:
        found.append(_mlx(installed.mlx, devices))
    if installed.vllm is not None:
        found.append(_vllm(installed.vllm, devices))
    return tuple(found)


def _mlx(wheel: str, devices: Sequence[Mapping[str, Any]]) -> Use:
    backend = MLX_WHEELS[wheel]
    if backend == "MlxCpu":
        return _on_cpu(backend, wheel, devices, {})
    if backend == "MlxMetal":
        gpu = next((device for device in devices if device.get("vendor") == "apple"), None)
        parts = table(table((gpu or {}).get("memory")).get("parts"))
        limit, reasons = amount(parts.get("limit")), {}
        if not limit:
            # The share that macOS wires is documented nowhere; see probe_apple.silicon.
            reasons = {"total": "macOS tells its working set to Metal programs alone"}
        return Use(backend, wheel, _id(gpu), None, True, limit or None, reasons)
    gpu, why_not = _first(devices, "cuda", "nvidia")
    if gpu is None:  # mlx/device.cpp: the default is the GPU where one is available
        reasons = {"device": f"{wheel} computes on the CPU: {why_not}"}
        return _on_cpu("MlxCpu", wheel, devices, reasons)
    return _on_gpu(backend, wheel, gpu, {"device": why_not} if why_not else {})


def _vllm(version: str, devices: Sequence[Mapping[str, Any]]) -> Use:
    reasons = {"runner": _NO_RUNNER}
    local = version.partition("+")[2].lower()
    if "cpu" in local:
        return _on_cpu("Vllm", "vllm", devices, reasons)
    runtime, vendor = ("hip", "amd") if "rocm" in local else ("cuda", "nvidia")
    gpu, why_not = _first(devices, runtime, vendor)
    if why_not:
        reasons["device"] = why_not
    if gpu is None:
        return Use("Vllm", "vllm", None, 0, False, None, reasons)
    return _on_gpu("Vllm", "vllm", gpu, reasons)


def _on_cpu(
    backend: str, wheel: str, devices: Sequence[Mapping[str, Any]], reasons: Mapping[str, str]
) -> Use:
    cpu = next((device for device in devices if device.get("kind") == "cpu"), None)
    return Use(backend, wheel, _id(cpu), None, True, None, reasons)


def _on_gpu(backend: str, wheel: str, gpu: Mapping[str, Any], reasons: Mapping[str, str]) -> Use:
    memory = table(gpu.get("memory"))
    unified = memory.get("kind") in ("unified", "shared")
    total = amount(memory.get("total"))
    if unified:
        return Use(backend, wheel, _id(gpu), None, True, total or None, reasons)
    return Use(backend, wheel, _id(gpu), total or None, False, None, reasons)


def _first(
    devices: Sequence[Mapping[str, Any]], runtime: str, vendor: str
) -> tuple[Mapping[str, Any] | None, str]:
    """Return a runtime's first visible device, and why it is another or none."""
    own = [
        device
        for device in devices
        if device.get("vendor") == vendor and device.get("kind") in ("gpu", "accelerator")
    ]
    parents = {text(device.get("parent")) for device in own}
    own = [device for device in own if device["id"] not in parents]  # MIG: the parts count
    reasons, usable = [], []
    for device in own:
        answer = verdict(device)
        if answer.usable is False:
            reasons.append(f"{device['id']}: {answer.reason or answer.code or 'not usable'}")
        elif runtime not in _texts(device.get("backends")):
            reasons.append(f"{device['id']}: no driver of {runtime} answered for it")
        else:
            usable.append(device)
    views = [_view(device, runtime) for device in usable]
    places = in_runtime_order(views)
    if not usable:
        return None, "; ".join(reasons) or f"the node has no GPU of {vendor}"
    if not places:
        if len(usable) == 1:
            return usable[0], ""
        return _smallest(usable), "which GPU is the first is not known; the smallest is taken"
    first = usable[places[0]]
    if len(places) > 1 and views[places[0]].get("index") is None:
        seen = [usable[place] for place in places]
        return _smallest(seen), "which GPU is the first is not known; the smallest is taken"
    return first, ""


def _view(device: Mapping[str, Any], runtime: str) -> Any:
    view = table(table(device.get("visibility")).get(runtime))
    index = view.get("index")
    own = index if type(index) is int and index >= 0 else None
    return {"visible": view.get("visible") is True, "index": own, "reason": None}


def _smallest(devices: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(devices, key=lambda device: amount(table(device.get("memory")).get("total")) or 0)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _is_named(device: Mapping[str, Any]) -> bool:
    return isinstance(device.get("id"), str)


def _id(device: Mapping[str, Any] | None) -> str | None:
    return None if device is None else str(device["id"])


def engine_memories(found: Sequence[Use], free: Free) -> tuple[EngineMemory, ...]:
    """Return what each engine can allocate now: its device's memory, within its own limits."""
    return tuple(_memory(use, free) for use in found)


def _memory(use: Use, free: Free) -> EngineMemory:
    reasons = dict(use.reasons)
    if use.unified:
        total, available = free.ram_total, free.ram_available
        if total is None:
            reasons.setdefault("total", "the system's memory cannot be read")
        elif free.limited:
            reasons["total"] = free.limited
        if use.limit is not None and (total is None or use.limit < total):
            total, reasons["total"] = use.limit, "the GPU reaches no more of the system's memory"
    else:
        total = use.total
        available = free.devices.get(use.device) if use.device is not None else 0
        if total is None:
            reasons["total"] = f"the memory of {use.device} is unknown"
    if use.backend != "MlxCpu" and total:
        total = _capped(use.backend, total, reasons)
    if available is None:
        reasons["available"] = "the driver does not tell how much is free"
    elif total is not None and available > total:
        available = total
        if "total" in reasons:
            reasons["available"] = reasons["total"]
    if free.override is not None:
        available, reasons["available"] = free.override
    return EngineMemory(use.backend, use.wheel, use.device, total, available, reasons)


def _capped(backend: str, total: int, reasons: dict[str, str]) -> int:
    """Return the share of a device's memory that its engine takes."""
    if backend == "Vllm":
        reasons["total"] = f"vLLM takes {VLLM_SHARE:g} of a GPU unless it is told otherwise"
        return int(total * VLLM_SHARE)
    if backend == "MlxCuda":
        reasons["total"] = f"MLX takes {MLX_SHARE:g} of a GPU at most, and 2 GB stay free"
        return max(0, min(int(total * MLX_SHARE), total - MLX_LEFT))
    return total
