"""What is measured of which device, and why not: decided from the report, before anything runs."""

from __future__ import annotations

from probe_core.model.readiness import broken_step, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_bench.messages import Task
    from probe_core.model.document import DeviceDoc

__all__ = [
    "BUFFER_OF_CACHE",
    "DTYPES",
    "KINDS",
    "backends",
    "buffer_bytes",
    "default_dtypes",
    "obstacle",
    "tasks",
]

DTYPES = ("fp64", "fp32", "fp16", "bf16", "int8")
KINDS = ("alu", "matmul", "memory")

BUFFER_OF_CACHE = 4
"""A buffer of four times the last cache: of a smaller one the cache answers (measured: 1 MiB is
copied at 103 GB/s where 256 MiB are at 33)."""

_LEAST_BUFFER = 64 << 20
_GPU_BUFFER = 1 << 30
"""Four times the largest last cache of a GPU, MI300X's 256 MiB."""

_SHARED_BUFFER = 256 << 20
_PART_OF_FREE = 8
_BY_VENDOR = {
    "nvidia": ("CUDA", "NV"),
    "amd": ("AMD", "HIP", "CL"),
    "apple": ("METAL",),
    "intel": ("CL",),
    "qualcomm": ("QCOM", "CL"),
    "arm": ("CL",),
}
_DIRECTIONS = ("read", "write", "copy")


def obstacle(device: DeviceDoc, named: bool) -> str | None:
    """Return why a device is not measured; None where it is.

    Ready ones are; with less than all, or in an unknown state, those that a person `named`.
    """
    if device["kind"] not in ("cpu", "gpu"):
        return f"tinygrad has no backend for a {device['kind']}"
    if device["kind"] == "gpu" and device["vendor"] not in _BY_VENDOR:
        return f"tinygrad has no backend for GPUs of {device['vendor'] or 'an unknown vendor'}"
    state = state_of(device)
    if state == "ready" or (named and state != "blocked"):
        return None
    step = broken_step(device)
    reason = f" ({step['code'] or step['step']})" if step else ""
    hint = "" if state == "blocked" else "; --device names it all the same"
    return f"it is {state}{reason}, not ready{hint}"


def default_dtypes(device: DeviceDoc) -> tuple[str, ...]:
    """Return the types that are measured where none is asked for."""
    return ("fp32", "bf16", "int8") if device["kind"] == "cpu" else ("fp32", "fp16", "bf16")


def backends(device: DeviceDoc) -> list[str]:
    """Return tinygrad's names for a device, the best first."""
    if device["kind"] == "cpu":
        return ["CPU"]
    return list(_BY_VENDOR.get(device["vendor"] or "", ()))


def tasks(device: DeviceDoc, dtypes: Sequence[str], kinds: Collection[str]) -> list[Task]:
    """Return what is measured of a device, in this order."""
    is_cpu = device["kind"] == "cpu"
    result: list[Task] = []
    for dtype in dtypes or default_dtypes(device):
        if is_cpu and "alu" in kinds:
            result.append(_compute("alu", dtype, "c"))
        if "matmul" in kinds:
            result.append(_compute("matmul", dtype, "tinygrad"))
        if is_cpu and "matmul" in kinds and dtype in ("fp32", "fp64"):
            result.append(_compute("matmul", dtype, "numpy"))
    if "memory" in kinds:
        library = "libc" if is_cpu else "tinygrad"
        result += [_memory(direction, library) for direction in _DIRECTIONS]
    return result


def _memory(direction: str, library: str) -> Task:
    return {"figure": direction, "kind": "memory", "dtype": None, "library": library}


def _compute(kind: str, dtype: str, library: str) -> Task:
    return {"figure": "compute", "kind": kind, "dtype": dtype, "library": library}


def buffer_bytes(device: DeviceDoc, cache: int | None, free: int | None) -> int:
    """Return the size of the memory to go through; 0 where too little is free.

    `cache` are the bytes of the last caches, `free` what can be taken of the memory.
    """
    size = max(_LEAST_BUFFER, BUFFER_OF_CACHE * (cache or _LEAST_BUFFER))
    if device["kind"] != "cpu":
        size = _GPU_BUFFER if device["memory"]["kind"] == "dedicated" else _SHARED_BUFFER
    return size if free is None or size <= free // _PART_OF_FREE else 0
