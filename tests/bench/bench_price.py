"""Is the naive script faster? Everything in one interleaved run, on the clock and in CPU time.

With all cores, and with one: there, what one process does while it waits for another costs as much
as it saves. Limits are those of the project's promise.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import bench_nvidia
from bench_memory import COMMAND, peak_of
from bench_rivals import PLAIN
from measure import Cost, Figure, bare, costs, seconds
from place import ROOT, Place
from plugins_made import crowd, many

# How long a host waits that asks again: without the start of an interpreter.
AGAIN = """
import sys
from time import perf_counter
import probe_core
probe_core.probe()
taken = []
for _ in range(int(sys.argv[1])):
    start = perf_counter()
    probe_core.probe(refresh=True)
    taken.append(perf_counter() - start)
print(sorted(taken)[len(taken) // 2] * 1000)
"""
DROP = Path("/proc/sys/vm/drop_caches")


def run(place: Place) -> Iterator[Figure]:
    """Measure all commands beside each other, then what has no other side."""
    commands = _commands(place)
    yield from _figures(costs(commands, place.rounds(31), place.environ), "")
    yield from _memory(place)
    with _one_core():
        yield from _figures(costs(commands, place.rounds(21), place.environ), ", one core", False)
    yield from _again(place)
    yield from _chips(place)
    yield from _cold(place, commands)


def _commands(place: Place) -> dict[str, list[str]]:
    probe = [*place.probe, "--json"]
    folder = place.folder / "price"
    commands = {
        "bare": [place.python, *bare()],
        "import": [place.python, "-c", "import probe_core"],
        "probe": probe,
        "500": bench_nvidia.under(_path(place, crowd(folder, 500)), probe),
        "absent": bench_nvidia.under(_path(place, many(folder, 50, absent=True)), probe),
    }
    if not place.quick:
        commands["run"] = bench_nvidia.under(_path(place, many(folder, 50, absent=False)), probe)
    compiler = bench_nvidia.possible(place)
    if compiler is not None:
        commands |= _with_gpus(place, compiler, probe)
    return commands


def _with_gpus(place: Place, compiler: str, probe: list[str]) -> dict[str, list[str]]:
    nodes = {count: bench_nvidia.node(place, compiler, count) for count in (1, 8, 64)}
    for count, node in nodes.items():
        bench_nvidia.check(probe, node, count)
    leases = {"PROBE_LEASES": str(place.folder / "leases")}
    return {
        "plain": bench_nvidia.under(nodes[8], [place.python, "-c", PLAIN]),
        **{f"{n} GPUs": bench_nvidia.under(node, probe) for n, node in nodes.items()},
        "exec": bench_nvidia.under({**nodes[8], **leases}, [*place.probe, "exec", "--", "true"]),
    }


def _path(place: Place, site: Path) -> Mapping[str, str]:
    return {"PYTHONPATH": place.with_path(site)["PYTHONPATH"]}


def _figures(taken: dict[str, Cost], where: str, judged: bool = True) -> Iterator[Figure]:
    """Yield the ratios of one run; `judged` is whether its limits hold there."""

    def ratio(name: str, one: str, other: str, limit: float | None, goal: float | None) -> Figure:
        above, below = taken[one], taken[other]
        value, cpu = above.against(below)
        note = f"{above.wall * 1000:.1f} ms against {below.wall * 1000:.1f} ms"
        note += f"; CPU {cpu:.2f} x"
        limit = limit if judged else None
        return Figure(f"{name}{where}", value, "x", limit, note, goal=goal)

    yield ratio("import probe_core / bare Python", "import", "bare", 1.08, 1.03)
    yield ratio("no GPU / bare Python", "probe", "bare", 2.5, 2.0)
    yield ratio("500 more distributions / none", "500", "probe", 1.35, 1.15)
    yield ratio("50 probers, hardware absent / none", "absent", "probe", None, None)
    if "run" in taken:
        yield ratio("50 probers that run / none", "run", "probe", None, None)
    if "plain" not in taken:
        return
    yield ratio("8 GPUs / pynvml + psutil", "8 GPUs", "plain", 1.1, 0.9)
    _, cpu = taken["8 GPUs"].against(taken["plain"])
    limit = 1.2 if judged else None
    yield Figure(f"8 GPUs / pynvml + psutil, CPU{where}", cpu, "x", limit, goal=1.0)
    yield ratio("8 GPUs / 1 GPU", "8 GPUs", "1 GPUs", None, None)
    yield ratio("64 GPUs / 8 GPUs", "64 GPUs", "8 GPUs", 1.7, 1.4)
    rounds = zip(taken["exec"].walls, taken["8 GPUs"].walls, strict=True)
    more = median(longer - report for longer, report in rounds) * 1000
    limit = 5.0 if judged else None
    yield Figure(f"exec -- true, beyond the report{where}", more, "ms", limit, goal=3.0)


def _memory(place: Place) -> Iterator[Figure]:
    """Measure what the process that a host sees takes at its peak, and a bare interpreter."""
    bodies = {"": COMMAND, "bare": "pass"}
    peaks = {name: peak_of(place, body, place.environ) for name, body in bodies.items()}
    note = f"bare Python {peaks['bare']:.1f} MiB"
    yield Figure("peak memory of the parent, no GPU", peaks[""], "MiB", 16.0, note, goal=12.0)
    compiler = bench_nvidia.possible(place)
    if compiler is not None:
        node = {**place.environ, **bench_nvidia.node(place, compiler, 8)}
        peak = peak_of(place, COMMAND, node)
        yield Figure("peak memory of the parent, 8 GPUs", peak, "MiB", 16.0, goal=12.0)


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process and its children on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _again(place: Place) -> Iterator[Figure]:
    done = subprocess.run(
        [place.python, "-c", AGAIN, str(place.rounds(31))],
        env=dict(place.environ), capture_output=True, text=True, check=True,
    )  # fmt: skip
    yield Figure("probe(refresh=True) in process", float(done.stdout), "ms")


def _cold(place: Place, commands: dict[str, list[str]]) -> Iterator[Figure]:
    """Measure with nothing in the page cache, where this user may empty it."""
    if not os.access(DROP, os.W_OK) or place.quick:
        return
    taken: dict[str, list[float]] = {"bare": [], "probe": []}
    for _ in range(5):
        for name, spent in taken.items():
            os.sync()
            try:
                DROP.write_text("3\n")
            except OSError:  # a container's root may not
                return
            spent.append(seconds(commands[name], place.environ))
    ratio = median(taken["probe"]) / median(taken["bare"])
    yield Figure("no GPU / bare Python, cold cache", ratio, "x")


def _chips(place: Place) -> Iterator[Figure]:
    """Measure the first lookup in a table of 20,000 chips, with the import and the load."""
    spec = importlib.util.spec_from_file_location("lookup", ROOT / "chipdb" / "bench" / "lookup.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("chipdb/bench/lookup.py")
    lookup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lookup)
    table = lookup.synthetic(20_000, place.folder / "chips")
    cold = lookup.cold(str(table), "pci='aa00:2710'")
    yield Figure("20,000 chips, first lookup", cold, "ms", 10.0)
    for asked in lookup.ASKED:
        yield Figure(f"{asked} of a chip, never asked", lookup.never(asked), "us", 30.0)
