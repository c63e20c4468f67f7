"""Time commands against each other: interleaved, medians, on one machine in one run.

Interleaved because a shared machine drifts: what slows one command slows its neighbour too, so the
ratio holds where the milliseconds do not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

Command = Sequence[str]


@dataclass(frozen=True)
class Figure:
    """One measured value; `target` is the highest that passes, None where none is set.

    `goal` is what is wanted, where that is more than what passes.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""
    least: bool = False
    """Whether `target` is the lowest that passes instead."""
    goal: float | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.least else self.value <= self.target


@dataclass(frozen=True)
class Cost:
    """Seconds of a command in each round: on the clock, and of processors, children's included."""

    walls: tuple[float, ...]
    cpus: tuple[float, ...]

    @property
    def wall(self) -> float:
        """The median on the clock."""
        return median(self.walls)

    @property
    def cpu(self) -> float:
        """The median of processors."""
        return median(self.cpus)

    def against(self, other: Cost) -> tuple[float, float]:
        """Return the median ratios of the rounds: on the clock and of processors.

        Of each round, because what a shared machine does meanwhile slows both commands.
        """
        return _ratio(self.walls, other.walls), _ratio(self.cpus, other.cpus)


def _ratio(above: Sequence[float], below: Sequence[float]) -> float:
    return median(a / b for a, b in zip(above, below, strict=True))


def costs(
    commands: Mapping[str, Command],
    rounds: int,
    environ: Mapping[str, str] | None = None,
    *,
    statuses: Sequence[int] = (0,),
) -> dict[str, Cost]:
    """Return what each command costs over `rounds`; one unmeasured round comes first.

    `statuses` are the exit statuses of a run that counts.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name in list(commands) if number % 2 else reversed(list(commands)):
            spent = _cost(commands[name], environ, statuses)
            if number:
                taken[name].append(spent)
    return {name: Cost(*zip(*spent, strict=True)) for name, spent in taken.items()}


def _cost(
    command: Command, environ: Mapping[str, str] | None, statuses: Sequence[int]
) -> tuple[float, float]:
    start = perf_counter()
    null = subprocess.DEVNULL
    started = subprocess.Popen(command, env=environ, stdin=null, stdout=null, stderr=null)
    _, status, usage = os.wait4(started.pid, 0)
    taken = perf_counter() - start
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode not in statuses:
        raise RuntimeError(f"{command} failed with status {started.returncode}")
    return taken, usage.ru_utime + usage.ru_stime


def seconds(command: Command, environ: Mapping[str, str] | None = None) -> float:
    """Return how long one run of `command` takes; raises when it fails."""
    start = perf_counter()
    done = subprocess.run(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    taken = perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stderr.decode(errors='replace')[-2000:]}")
    return taken


def interleaved(
    commands: Mapping[str, Command], rounds: int, environ: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Return the median seconds of each command over `rounds`; one unmeasured round comes first."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        # The other way round each time: the first after a pause is slower.
        for name in list(commands) if number % 2 else reversed(list(commands)):
            spent = seconds(commands[name], environ)
            if number:
                taken[name].append(spent)
    return {name: median(values) for name, values in taken.items()}


def imports(
    command: Command, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """Yield (module, microseconds of its own) for all that `command`, a Python, imports."""
    done = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]],
        env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in done.stderr.splitlines():
        head, _, rest = line.partition("import time:")
        own, _, names = rest.partition("|")
        if not head and own.strip().isdigit():
            yield names.rpartition("|")[2].strip(), int(own)


def bare() -> list[str]:
    """Return what every ratio is against, as arguments to an interpreter."""
    return ["-c", "pass"]


def here() -> dict[str, str]:
    """Return an environment in which a new interpreter finds what this one finds."""
    paths = [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
