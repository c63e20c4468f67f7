"""The process that measures one device: whatever a driver does to it, the caller goes on.

Its orders are the first argument, its answers lines of JSON. Standard input tells that the parent
lives: at its end this process removes its folder and ends its whole group, compilers too.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading

from probe_bench.cores import Crew
from probe_bench.cpu_runs import Memory, Registers, WrongResult
from probe_bench.statistics import series
from probe_core import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from probe_bench.library_runs import Tinygrad
    from probe_bench.statistics import Run
    from probe_bench.tasks import Job, Line, Task

_RUN_S = 0.005
"""Seconds of one run: short, so that some runs are undisturbed where others use the CPUs, too."""

_START_S = 0.0005
"""Seconds more for each thread: Python starts one after the other."""

_LINK_BYTES = 64 << 20
"""Moved between host and device at once: 2.5 ms of 16 lanes of PCIe 4."""

_MOST_RUN_S = 0.04
"""A child that is killed in a kernel of more than 50 ms can wedge a GPU."""


def main() -> None:
    """Measure what the argument orders, then leave without the handlers of libraries."""
    job: Job = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what libraries print
    guard.install("a measurement")
    threading.Thread(target=_end_with_parent, args=(job["folder"],), daemon=True).start()
    if job["cpus"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cpus"])
    bench = Bench(job)
    for place, task in enumerate(job["tasks"]):
        _write(answers, {"event": "begin", "task": place})
        line = bench.measured(task)
        _write(answers, {**line, "task": place})
        # Apart: a compiler that hangs must not keep what was measured.
        if line["event"] == "result" and (clock := bench.clock_mhz()) is not None:
            _write(answers, {"event": "clock", "task": place, "clock_mhz": clock})
    _write(answers, {"event": "end"})
    os._exit(0)


def _write(answers: TextIO, line: Line) -> None:
    answers.write(json.dumps(line) + "\n")
    answers.flush()


def _end_with_parent(folder: str) -> None:
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


class Bench:
    """The tasks of one job; what several need is made once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._seconds = job["seconds"] / max(1, len(job["tasks"]))
        self._crew = Crew(job["cpus"])
        self._run_s = min(_MOST_RUN_S, _RUN_S + _START_S * self._crew.size)
        self._registers = Registers(job, self._crew)
        self._memory: Memory | None = None
        self._tinygrad: Tinygrad | None = None
        self._is_clockless = False

    def measured(self, task: Task) -> Line:
        """Return the result of a task, or the problem that it met."""
        measure = getattr(self, f"_by_{task['library']}")
        try:
            result: Line = measure(task)
        except WrongResult as error:
            return {"event": "wrong", "reason": str(error)}
        except Exception as error:  # of any library: the other tasks still run
            return {"event": "problem", "reason": _reason(error)}
        return result

    def _by_c(self, task: Task) -> Line:
        kernel, run = self._registers.prepared(task["dtype"] or "", self._run_s)
        line = self._series(run)
        line["by"] = f"{self._registers.compiler().name}, {kernel.name}"
        line["accumulate"] = kernel.accumulate
        line["threads"] = self._crew.size
        return line

    def _by_libc(self, task: Task) -> Line:
        self._memory = self._memory or Memory(self._job["buffer_bytes"], self._crew)
        line = self._series(self._memory.prepared(task["figure"]))
        line["by"] = self._memory.by(task["figure"])
        line["size"] = self._memory.size
        line["threads"] = self._crew.size
        return line

    def _by_numpy(self, task: Task) -> Line:
        from probe_bench import library_runs

        edge, by, run = library_runs.matmul(task["dtype"] or "", self._crew.size)
        line = self._series(run)
        line["by"], line["size"], line["accumulate"] = by, edge, task["dtype"]
        return line

    def _by_tinygrad(self, task: Task) -> Line:
        if self._tinygrad is None:
            from probe_bench.library_runs import Tinygrad

            self._tinygrad = Tinygrad(self._job["backends"], self._job["address"])
        tinygrad, figure = self._tinygrad, task["figure"]
        if figure == "products":
            count = tinygrad.products(task["dtype"] or "", self._seconds)
            return {"event": "compared", "count": count, "by": tinygrad.by}
        if figure == "compute":
            edge, sums, run = tinygrad.matmul(task["dtype"] or "", self._run_s)
            line = self._series(run)
            line["size"], line["accumulate"] = edge, sums
        else:
            size = self._job["buffer_bytes"]
            if task["kind"] == "link":
                size = min(size, _LINK_BYTES)
                run = tinygrad.link(figure, size)
            else:
                run = tinygrad.memory(figure, size, self._run_s)
            line = self._series(run)
            line["size"] = size
        tinygrad.check()
        line["by"] = self._tinygrad.by
        return line

    def _series(self, run: Callable[[], Run]) -> Line:
        values = series(run, self._seconds)
        return {
            "event": "result",
            "rates": values.rates,
            "cold": values.cold,
            "warm_s": values.warm_s,
            "cpu_share": values.cpu_share,
            "others_share": values.others_share,
        }

    def clock_mhz(self) -> float | None:
        """Return the cores' clock right after a run; of another device its driver knows it."""
        if not self._job["cpus"] or self._is_clockless:
            return None
        try:
            return self._registers.clock_mhz(self._run_s / 4)
        except Exception:  # no compiler, or no loop for this architecture: not tried again
            self._is_clockless = True
            return None


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"{error.name or 'a library'} is not installed"
    kind = type(error).__name__
    if kind == "CalledProcessError":
        return f"{getattr(error, 'cmd', ['the compiler'])[0]} does not compile tinygrad's kernel"
    lines = str(error).strip().splitlines()
    text = lines[0][:300] if lines else ""
    plain = kind in ("CompilerError", "LookupError", "OtherDevice")
    return text if plain and text else f"{kind}: {text}".removesuffix(": ")
