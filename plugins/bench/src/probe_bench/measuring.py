"""One device from lease to figures: folder, child, sensors; each given back whatever happens.

A run has a folder of its own below the user's cache, for compilers' files and tinygrad's cache. It
is removed with the run. What a killed run left is removed by a later one.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from time import time
from typing import NamedTuple

from probe_bench import cores
from probe_bench.figures import checked, figure
from probe_bench.sensors import Live, Readings, Sensors, joined
from probe_bench.session import child_environ, measure
from probe_bench.tasks import backends, buffer_bytes, title
from probe_core.machine.writing import make_own_folder
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_bench.tasks import Job, Line, Task
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, MeasuredDoc, ReportDoc


_MAX_REASON = 600
"""Characters of a reason: several backends of a library, each with its own."""

_ANSWERS = ("result", "compared", "problem", "wrong")

_TOO_LITTLE = "less memory is free than eight times the buffer that caches cannot hold"


class Outcome(NamedTuple):
    """What became of one device: its figures, and (task, reason) for what has none."""

    figures: list[MeasuredDoc]
    problems: list[tuple[Task, str]]
    refusal: str | None = None
    """Why the device was not measured at all."""
    wrong: Sequence[tuple[Task, str]] = ()
    """(task, what is wrong of its result): no figure says anything of such a device."""
    compared: Sequence[tuple[Task, int]] = ()
    """(task, how many products were compared whole and were right)."""


def measured(
    machine: Machine,
    report: ReportDoc,
    device: DeviceDoc,
    tasks: Sequence[Task],
    seconds: float,
    progress: Callable[[str], None],
) -> Outcome:
    """Measure a device: a GPU under a lease, of which the child's environment is the proof."""
    if device["kind"] == "cpu":
        return _run(machine, report, device, tasks, seconds, machine.environ, progress)
    from probe_core import LeaseError, SelectionError, lease

    try:
        leased = lease(
            wanted=device["id"],
            report=report,
            environ=machine.environ,
            command=("probe", "bench"),
            versions=_versions(),
        )
    except SelectionError as error:
        return Outcome([], [], error.unmet)
    except LeaseError as error:
        return Outcome([], [], str(error))
    with leased:
        return _run(machine, report, device, tasks, seconds, leased.environ, progress)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"tinygrad": version("tinygrad")}
    except PackageNotFoundError:
        return {}


def _run(
    machine: Machine,
    report: ReportDoc,
    device: DeviceDoc,
    tasks: Sequence[Task],
    seconds: float,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
) -> Outcome:
    cpus = _cpus(machine, device)
    if device["kind"] == "cpu" and not cpus:
        return Outcome([], [], "this process may run on none of its CPUs")
    memory = device["memory"]
    free = memory["free"] if memory["free"] is not None else memory["usable"]
    buffer = buffer_bytes(device, cores.last_cache(machine, cpus), free)
    fitting = [task for task in tasks if buffer or task["kind"] not in ("memory", "link")]
    problems = [(task, _TOO_LITTLE) for task in tasks if task not in fitting]
    try:
        folder = scratch(machine.environ)
    except OSError as error:
        return Outcome([], [], f"no folder for its files can be made: {error.strerror}")
    job = _job(device, fitting, seconds, folder, cpus, buffer)
    live = Live(device, report)
    try:
        watch = _Watch(Sensors(machine, device), live, fitting, progress)
        own = child_environ(environ, folder, job["backends"], _versions().get("tinygrad"))
        lines, early = measure(job, own, watch.tick)
    finally:
        live.close()
        remove(folder)
    return _outcome(device, fitting, lines, early, watch, problems)


def _job(
    device: DeviceDoc,
    tasks: list[Task],
    seconds: float,
    folder: str,
    cpus: list[int],
    buffer: int,
) -> Job:
    return {
        "tasks": tasks,
        "seconds": seconds,
        "folder": folder,
        "cpus": cpus,
        "flags": _flags(device),
        "arch": platform.machine(),
        "backends": backends(device),
        "address": next((name for name in device["ids"] if name.startswith("pci:")), None),
        "buffer_bytes": buffer,
    }


def _outcome(
    device: DeviceDoc,
    tasks: Sequence[Task],
    lines: Sequence[Line],
    early: str | None,
    watch: _Watch,
    problems: list[tuple[Task, str]],
) -> Outcome:
    figures: list[MeasuredDoc] = []
    wrong: list[tuple[Task, str]] = []
    compared: list[tuple[Task, int]] = []
    for place, task in enumerate(tasks):
        own = [line for line in lines if line.get("task") == place]
        answer = next((line for line in own if line["event"] in _ANSWERS), None)
        if answer is None:
            problems.append((task, early or "it gave no answer"))
        elif answer["event"] == "wrong":
            wrong.append((task, clean_text(answer.get("reason") or "", _MAX_REASON)))
        elif answer["event"] == "compared":
            compared.append((task, int(answer.get("count") or 0)))
        elif answer["event"] == "problem":
            problems.append((task, clean_text(answer.get("reason") or "", _MAX_REASON)))
        else:
            clock = next((line for line in own if line["event"] == "clock"), None)
            answer["clock_mhz"] = clock.get("clock_mhz") if clock else None
            seen = watch.seen.get(place, Readings())
            try:
                figures.append(checked(figure(device, task, answer, seen, device.get("processes"))))
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                problems.append((task, f"its answer makes no sense: {clean_text(str(error))}"))
    return Outcome(figures, problems, wrong=wrong, compared=compared)


class _Watch:
    """Looks at the sensors while a task runs, and tells which one runs."""

    def __init__(
        self, sensors: Sensors, live: Live, tasks: Sequence[Task], progress: Callable[[str], None]
    ) -> None:
        self._sensors = sensors
        self._live = live
        self._tasks = tasks
        self._progress = progress
        self._place = -1
        self.seen: dict[int, Readings] = {}

    def tick(self, place: int) -> None:
        """Look once, for the task at `place`."""
        if place != self._place and place < len(self._tasks):
            self._place = place
            self._progress(title(self._tasks[place]))
        now = joined(self._sensors.read(), self._live.read())
        self.seen[place] = joined(self.seen.get(place, Readings()), now)


def _cpus(machine: Machine, device: DeviceDoc) -> list[int]:
    """Return the CPUs to measure a package on; none of another device."""
    if device["kind"] != "cpu":
        return []
    own = cores.allowed_cpus()
    online = cores.online(machine) or own
    groups = cores.packages(machine, online)
    number = device["id"].partition(":")[2]
    place = int(number) if number.isdecimal() else 0
    group = groups[place] if place < len(groups) else own
    quota = (device.get("allowed") or {}).get("quota")
    return cores.chosen(machine, group, own, quota if isinstance(quota, float | int) else None)


def _flags(device: DeviceDoc) -> list[str]:
    flags = (device.get("cpu") or {}).get("flags")
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else []


# The folder of a run.

_PREFIX = "bench-"
_OLD_S = 3600
"""Seconds after which a folder belongs to no run: a device takes 30 s, a node has 16 or fewer."""


def scratch(environ: Mapping[str, str]) -> str:
    """Return a new folder; raises `OSError` where none can be made."""
    for base in _bases(environ):
        try:
            make_own_folder(base, os.path.dirname(os.path.dirname(base)))
            _clean(base)
            return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base)
        except OSError:  # read-only, or full: the system's place for such files is next
            continue
    return tempfile.mkdtemp(prefix=f"probe-{_PREFIX}")


def _bases(environ: Mapping[str, str]) -> list[str]:
    places = (("XDG_CACHE_HOME", ""), ("LOCALAPPDATA", ""), ("HOME", ".cache"))
    bases = [(environ.get(name, ""), below) for name, below in places]
    return [os.path.join(base, below, "probe-core") for base, below in bases if os.path.isabs(base)]


def _clean(base: str) -> None:
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name.startswith(_PREFIX) and time() - os.stat(path).st_mtime > _OLD_S:
            remove(path)


def remove(folder: str) -> None:
    """Remove a folder with all that is in it, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
