"""What does it cost to read a report of eight GPUs: typed, as a node of a plan, of a cluster?

Against `json.loads` of the same text, interleaved and on the processor's clock: whoever reads a
report pays that anyway. The reports are as the fake node of NVIDIA's library gives them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from bench_nvidia import node, possible, under
from measure import Figure
from place import Place

NODES = 10_000
START_S = 0.2
"""Allowed for the start of `probe cluster`, which imports asyncio."""
DISTINCT = 200
"""Files that are read again and again: 10,000 would be a gigabyte of disk."""

# Each function is called in turn; printed are the ratios to the first, the median of the rounds.
TYPED = """
import json, sys, time
from statistics import median
from probe_core import Report
from probe_cluster.planning.members import member
from probe_core.commands import parse_report

text, rounds = open(sys.argv[1], "rb").read(), int(sys.argv[2])
document = json.loads(text)

def spent(function):
    began = time.process_time()
    for _ in range(5):
        function()
    return (time.process_time() - began) / 5

functions = (
    lambda: json.loads(text),
    lambda: Report.from_json(document),
    lambda: parse_report(text),
    lambda: member("node", parse_report(text)),
)
taken = [[spent(function) for function in functions] for _ in range(rounds + 1)][1:]
ratios = [median(row[at] / row[0] for row in taken) for at in range(len(functions))]
print(json.dumps([median(row[0] for row in taken), *ratios[1:]]))
"""

# What a plan keeps of each node while it reads the next.
MEMORY = """
import sys, tracemalloc
from probe_cluster import read_members

files = [f"n{at}={sys.argv[1]}" for at in range(100)]
read_members(files[:1])
tracemalloc.start()
members = read_members(files)
print(tracemalloc.get_traced_memory()[1] / len(members) / 2**20)
"""


LOADS = """
import json, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        json.loads(file.read())
"""


def run(place: Place) -> Iterator[Figure]:
    """Measure the typed report, a node of a plan, and a cluster of many files."""
    compiler = possible(place)
    if compiler is None or not place.has("probe_cluster"):
        return
    variables = node(place, compiler, 8)
    text = _output(under(variables, [*place.probe, "--json"]), place)
    report = place.folder / "eight.json"
    report.write_text(text)
    rounds = str(place.rounds(41, 11))
    loads, typed, checked, planned = json.loads(
        _output([place.python, "-c", TYPED, str(report), rounds], place)
    )
    note = f"eight GPUs, {len(text) / 1e3:.0f} kB; json.loads {loads * 1e3:.2f} ms"
    yield Figure("Report.from_json / json.loads", typed, "x", 3.3, note, goal=2.5)
    yield Figure("Report.from_json", typed * loads * 1e3, "ms", 1.5, goal=1.1)
    yield Figure("parse_report / json.loads", checked, "x", 4.4, goal=3.3)
    name = "a node of topology, fit, partition"
    yield Figure(f"{name} / json.loads", planned, "x", 4.4, goal=4.0)
    yield Figure(name, planned * loads * 1e3, "ms", 2.0, goal=1.5)
    memory = float(_output([place.python, "-c", MEMORY, str(report)], place))
    yield Figure("memory of such a node", memory, "MiB", 0.1, goal=0.01)
    yield from _cluster(place, text)


def _cluster(place: Place, text: str) -> Iterator[Figure]:
    """Compare `probe cluster` with a program that reads the same files by `json.loads`."""
    count = NODES // 10 if place.quick else NODES
    folder = place.folder / "many"
    files = list(_files(folder, text, count))
    plain = [place.python, "-c", LOADS, *(file.partition("=")[2] for file in files)]
    ours_and_plain = [*place.probe, "cluster", *files], plain
    rounds = [
        [_cost(command, place, folder) for command in ours_and_plain]
        for _ in range(place.rounds(3, 2))
    ]
    ratio = median(ours.cpu / theirs.cpu for ours, theirs in rounds)
    ours = rounds[-1][0]
    note = f"CPU {ours.cpu:.1f} s, wall {ours.wall:.1f} s"
    name = f"probe cluster, {count} files"
    # 6 s for the 10,000 files; of fewer the start of the command is a larger part.
    whole = median(ours.wall for ours, _ in rounds)
    limit = START_S + (6.0 - START_S) * count / NODES
    yield Figure(name, whole, "s", limit, goal=5.0 * count / NODES)
    yield Figure(f"{name} / json.loads of each", ratio, "x", 1.4, note, goal=1.2)
    yield Figure(f"{name}: peak memory", ours.peak, "MiB", 400.0, goal=100.0)


def _files(folder: Path, text: str, count: int) -> Iterator[str]:
    """Write the reports and yield an argument for each node; of `DISTINCT` files many nodes."""
    folder.mkdir(exist_ok=True)
    for at in range(min(count, DISTINCT)):
        report = json.loads(text)
        report["node"]["id"] = f"{at:016x}"
        (folder / f"{at}.json").write_text(json.dumps(report))
    for at in range(count):
        yield f"n{at}={at % DISTINCT}.json"


class Cost(NamedTuple):
    """Seconds of processors and on the clock, and the peak in MiB, of one command."""

    cpu: float
    wall: float
    peak: float


def _cost(command: list[str], place: Place, folder: Path) -> Cost:
    began = perf_counter()
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, env=dict(place.environ), stdout=null)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[:3]} failed with status {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, perf_counter() - began, usage.ru_maxrss / 1024)


def _output(command: list[str], place: Place) -> str:
    # In a folder without packages: `-c` would import those of the folder that it stands in.
    done = subprocess.run(
        command,
        cwd=place.folder,
        env=dict(place.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
