"""What is measured of which device, and why not: decided from the report, before anything runs.

A task is what the parent orders of a measuring child, and its lines are what the child answers.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from probe_core.model.verdict import broken_step, state_of, usable_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_core.model.document import DeviceDoc


class Task(TypedDict):
    """One thing to measure, and with what."""

    figure: str
    """``compute``, ``products``, ``read``, ``write``, ``copy``, ``upload`` or ``download``."""
    kind: str
    """``alu``, ``matmul``, ``memory`` or ``link``."""
    dtype: str | None
    """Type of the numbers; None of a memory."""
    library: str
    """``c``, ``libc``, ``numpy`` or ``tinygrad``."""


class Job(TypedDict):
    """All that a child measures of one device."""

    tasks: list[Task]
    seconds: float
    """For all tasks together."""
    folder: str
    """For files of compilers and caches; whoever ends removes it."""
    cpus: list[int]
    """CPUs to compute on, one a core; empty of a device that is no CPU."""
    flags: list[str]
    """What the CPU reports that it has."""
    arch: str
    """As `platform.machine` has it: x86_64, aarch64."""
    backends: list[str]
    """tinygrad's names for the device, the first that opens counts."""
    address: str | None
    """The device's ``pci:`` id; None of one without."""
    buffer_bytes: int
    """Size of the memory to go through."""


class Line(TypedDict):
    """One line of an answer."""

    event: str
    """``begin``, ``result``, ``compared``, ``clock``, ``problem``, ``wrong`` or ``end``."""
    task: NotRequired[int]
    """Place of the task."""
    reason: NotRequired[str]
    """Of a problem, and what is wrong of a result."""
    count: NotRequired[int]
    """Products that were compared whole."""
    rates: NotRequired[list[float]]
    """Operations or bytes per second, one a run."""
    cold: NotRequired[float]
    """The first run of all."""
    warm_s: NotRequired[float]
    """Seconds of the runs that were not counted."""
    cpu_share: NotRequired[float | None]
    """Part of the time in which the measuring threads had a CPU."""
    others_share: NotRequired[float | None]
    """Part of all CPUs that other processes used."""
    by: NotRequired[str]
    """Library or compiler, with version."""
    accumulate: NotRequired[str | None]
    """Type of the sums."""
    size: NotRequired[int | None]
    """Edge of the matrices, or bytes."""
    threads: NotRequired[int | None]
    """Threads that took part."""
    clock_mhz: NotRequired[float | None]
    """Clock right after the runs."""


def title(task: Task) -> str:
    """Return a task for people: ``fp32 matmul by tinygrad``, ``memory read``."""
    if task["figure"] == "products":
        return f"known {task['dtype']} products by {task['library']}"
    name = f"{task['dtype'] or task['kind']} {task['kind' if task['dtype'] else 'figure']}"
    return f"{name} by {task['library']}"


DTYPES = ("fp64", "fp32", "fp16", "bf16", "int8")
KINDS = ("alu", "matmul", "memory", "link")

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
_WAYS = ("upload", "download")
_CHECKED = ("int8", "fp32", "fp16")


def obstacle(device: DeviceDoc, named: bool) -> str | None:
    """Return why a device is not measured; None where it is.

    Those that this process may use are; of those with less than they have, whose figures would be
    no device's, and of those of unknown state, the ones that a person `named`.
    """
    if device["kind"] not in ("cpu", "gpu"):
        return f"tinygrad has no backend for a {device['kind']}"
    if device["kind"] == "gpu" and device["vendor"] not in _BY_VENDOR:
        return f"tinygrad has no backend for GPUs of {device['vendor'] or 'an unknown vendor'}"
    answer, state = usable_here(device), state_of(device)
    if answer.usable is not False and (named or (answer.usable and state == "ready")):
        return None
    code = answer.code or answer.step
    if answer.usable is False:
        return f"it is blocked{f' ({code})' if code else ''}, not ready"
    step = broken_step(device)
    reason = f" ({step['code'] or step['step']})" if step else ""
    return f"it is {state}{reason}, not ready; --device names it all the same"


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
            result.append(_task("compute", "alu", "c", dtype))
        if "matmul" in kinds:
            result.append(_task("compute", "matmul", "tinygrad", dtype))
        if is_cpu and "matmul" in kinds and dtype in ("fp32", "fp64"):
            result.append(_task("compute", "matmul", "numpy", dtype))
    if "memory" in kinds:
        library = "libc" if is_cpu else "tinygrad"
        result += [_task(direction, "memory", library) for direction in _DIRECTIONS]
    if "link" in kinds and device["kind"] == "gpu" and device["memory"]["kind"] == "dedicated":
        result += [_task(way, "link", "tinygrad") for way in _WAYS]
    return result


def check_tasks(device: DeviceDoc) -> list[Task]:
    """Return what `probe check` does with a device: products that are known, then what moves."""
    known = [_task("products", "matmul", "tinygrad", dtype) for dtype in _CHECKED]
    return known + tasks(device, (), ("memory", "link"))


def _task(figure: str, kind: str, library: str, dtype: str | None = None) -> Task:
    return {"figure": figure, "kind": kind, "dtype": dtype, "library": library}


def buffer_bytes(device: DeviceDoc, cache: int | None, free: int | None) -> int:
    """Return the size of the memory to go through; 0 where too little is free.

    `cache` are the bytes of the last caches, `free` what can be taken of the memory.
    """
    size = max(_LEAST_BUFFER, BUFFER_OF_CACHE * (cache or _LEAST_BUFFER))
    if device["kind"] != "cpu":
        size = _GPU_BUFFER if device["memory"]["kind"] == "dedicated" else _SHARED_BUFFER
    return size if free is None or size <= free // _PART_OF_FREE else 0
