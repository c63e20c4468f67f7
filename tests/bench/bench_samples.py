"""What does it cost to watch eight GPUs, and a machine with many processes?

The node is that of the question "nvidia": a fake library below our client, /sys by a preloaded one.
Of the process table a machine is made that has as many: 400 processes with 28 descriptors each.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

from bench_nvidia import node, possible, under
from measure import Figure, interleaved
from place import Place

WATCH = """
import json, os, sys, time
import probe_core
def spent():
    total = time.process_time()
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            total += int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) / 1e9
    return total
rounds = probe_core.samples(1.0)
next(rounds)
look = next(rounds)
pids = [run.pid for source in rounds._engine.sources for run in source.runs()]
begin, start = spent(), time.monotonic()
for _ in range(int(sys.argv[1])):
    next(rounds)
share = (spent() - begin) / (time.monotonic() - start)
rounds.close()
answered = [s for s in look.samples if s["prober"] == "nvidia" and s["status"] == "ok"]
print(json.dumps({"share": share, "devices": len(answered)}))
"""

FIRST = "import probe_core; next(probe_core.samples(1.0))"

SWEEP = """
import json, time
from probe_core.machine import Machine
from probe_core.sysfs.drm_use import SWEEP_S, DrmUse
use = DrmUse(Machine())
use.refresh()
begin, cpu = time.monotonic(), time.process_time()
use._due = 0.0
use.refresh()
took = time.process_time() - cpu
print(json.dumps({"ms": took * 1000, "share": took / (use._due - begin)}))
"""

PROCESSES, DESCRIPTORS = 400, 28


def run(place: Place) -> Iterator[Figure]:
    """Measure a steady watch, the first round, and a sweep of the process table."""
    compiler = possible(place)
    if compiler is None:
        return
    eight = node(place, compiler, 8)
    count = place.rounds(20, 3)
    seen = _json(under(eight, [place.python, "-c", WATCH, str(count)]), place)
    if seen["devices"] != 8:
        raise SystemExit(f"the watch sampled {seen['devices']:g} of 8 GPUs")
    note = f"{seen['share'] * 1000:.1f} ms a second"
    yield Figure("8 GPUs each second, of a core", seen["share"] * 100, "%", 2.0, note)
    commands = {
        "probe": under(eight, [*place.probe, "--json"]),
        "first": under(eight, [place.python, "-c", FIRST]),
    }
    taken = interleaved(commands, place.rounds(15), place.environ)
    later = (taken["first"] - taken["probe"]) * 1000
    note = f"{taken['first'] * 1000:.0f} ms against {taken['probe'] * 1000:.0f} ms"
    yield Figure("first round after probe --json", later, "ms", 50.0, note)
    with ExitStack() as stack:
        files = [stack.enter_context(open(os.devnull, "rb")) for _ in range(DESCRIPTORS)]
        for _ in range(PROCESSES):
            stack.enter_context(Sleeper([file.fileno() for file in files]))
        swept = _json([place.python, "-c", SWEEP], place)
    note = f"{PROCESSES} processes, {PROCESSES * DESCRIPTORS:,} descriptors: {swept['ms']:.0f} ms"
    yield Figure("process table, of a core", swept["share"] * 100, "%", 1.5, note)


def _json(command: list[str], place: Place) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, env=place.environ, check=False)
    if done.returncode:
        raise SystemExit(f"the watch failed: {done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


class Sleeper:
    """A process that holds descriptors and does nothing."""

    def __init__(self, descriptors: list[int]) -> None:
        self._process = subprocess.Popen(["sleep", "600"], pass_fds=descriptors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
