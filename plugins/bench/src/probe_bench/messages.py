"""What the parent orders of a measuring child, and the lines that the child answers."""

from __future__ import annotations

from typing import NotRequired, TypedDict

__all__ = ["Job", "Line", "Task", "title"]


class Task(TypedDict):
    """One thing to measure, and with what."""

    figure: str
    """``compute``, ``read``, ``write`` or ``copy``."""
    kind: str
    """``alu``, ``matmul`` or ``memory``."""
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
    """``begin``, ``result``, ``clock``, ``problem`` or ``end``."""
    task: NotRequired[int]
    """Place of the task."""
    reason: NotRequired[str]
    """Of a problem."""
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
    name = f"{task['dtype']} {task['kind']}" if task["dtype"] else f"memory {task['figure']}"
    return f"{name} by {task['library']}"
