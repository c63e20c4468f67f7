"""What does the first `probe()` of a program cost, beside what it has imported itself?"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import bench_nvidia
from bench_rivals import PLAIN
from measure import Figure, bare, costs
from place import Place

FIRST = "import probe_core\nprobe_core.probe()"
# What a service has loaded long before it asks what its node is.
HOST = "import asyncio, attrs, inspect, json, re, typing"


def run(place: Place) -> Iterator[Figure]:
    """Compare a program that probes with a bare interpreter, its host, and the plain script."""
    programs = {"bare": bare()[-1], "first": FIRST, "host": HOST, "in a host": f"{HOST}\n{FIRST}"}
    commands = {name: [place.python, "-c", program] for name, program in programs.items()}
    compiler = bench_nvidia.possible(place)
    if compiler is not None:
        node = bench_nvidia.node(place, compiler, 8)
        commands["8 GPUs"] = bench_nvidia.under(node, [place.python, "-c", FIRST])
        commands["plain"] = bench_nvidia.under(node, [place.python, "-c", PLAIN])
    taken = costs(commands, place.rounds(101), place.environ)

    def ratio(name: str, one: str, other: str, limit: float, goal: float) -> Figure:
        wall, cpu = taken[one].against(taken[other])
        note = f"{taken[one].wall * 1000:.1f} ms against {taken[other].wall * 1000:.1f} ms"
        return Figure(name, wall, "x", limit, f"{note}; CPU {cpu:.2f} x", goal=goal)

    yield ratio("first probe(), no GPU / bare Python", "first", "bare", 5.0, 3.0)
    rounds = zip(taken["in a host"].walls, taken["host"].walls, strict=True)
    more = median(longer - host for longer, host in rounds)
    name = "first probe() in a loaded host, beyond it / bare"
    note = f"{more * 1000:.1f} ms of {taken['host'].wall * 1000:.1f} ms"
    yield Figure(name, more / taken["bare"].wall, "x", 2.0, note, goal=1.5)
    # 40 % below the 33 ms of the release before.
    yield Figure("first probe() in a loaded host, beyond it", more * 1000, "ms", 19.8, goal=15.0)
    if compiler is not None:
        yield ratio("first probe(), 8 GPUs / pynvml + psutil", "8 GPUs", "plain", 1.4, 1.0)
