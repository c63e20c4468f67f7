"""What does a gather of 10 to 10,000 nodes cost the computer that asks, through each engine?

The nodes are stand-ins: commands that print what the program of a node prints, at once. So this is
our own share: processes, lines, reports and summaries; not logins, networks or schedulers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from bench_cluster import write_reports
from measure import Figure, here
from place import ROOT, Place

sys.path.insert(0, str(ROOT / "plugins" / "cluster" / "tests"))

COUNTS = (10, 100, 1000, 10_000)

ENGINES = ("files", "ssh", "slurm", "ray")

# Each prints the messages of nodes, as `node_agent` does; the number of nodes is in COUNT.
PRINT = """
import os, sys
from probe_cluster.gathering.node_agent import Voice

text = open("{folder}/0.json").read()

def node(name):
    voice = Voice(name)
    voice.send("start", nodelist="")
    voice.send("answer", status=0, out=text, err="", sent=False)
"""

LAUNCHER = """#!{python}
{print}
for at in range(int(os.environ["COUNT"])):
    node(f"n{{at}}")
"""

RAY = """#!{python}
{print}
for at in range(int(os.environ["COUNT"])):
    Voice(f"n{{at}}").send("node", engine={{}}, name=f"n{{at}}", state="alive")
    node(f"n{{at}}")
"""

SSH = """#!/bin/sh
exec cat {folder}/answer
"""

# A process of its own, whose processor time and peak are those of the gather alone.
PROGRAM = """
import asyncio, json, os, resource, sys, time
from probe_cluster import Limits, gather, gathering

engine, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
names = [f"n{at}" for at in range(count)]
collector = {
    "files": lambda: gathering.Files([f"{name}={folder}/0.json" for name in names]),
    "ssh": lambda: gathering.Ssh(names),
    "slurm": lambda: gathering.Slurm(environ={}),
    "ray": lambda: gathering.Ray("auto", python=f"{folder}/bin/ray-python"),
}[engine]()
limits = Limits(node=3000.0, overall=3000.0)
start = time.perf_counter()
gathered = asyncio.run(gather(collector, limits=limits, texts=False))
wall = time.perf_counter() - start
assert gathered.complete and len(gathered.nodes) == count, gathered.problem
own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
peak = own.ru_maxrss / 1024
print(json.dumps([wall, own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime, peak]))
"""


def run(place: Place) -> Iterator[Figure]:
    """Gather through each engine; the largest count without ``--quick`` alone."""
    folder = Path(place.folder) / "engines"
    (folder / "bin").mkdir(parents=True)
    kilobytes = write_reports(folder, 1)
    _commands(folder)
    for count in COUNTS[: 3 if place.quick else None]:
        for engine in ENGINES:
            rounds = [_measured(engine, count, folder) for _ in range(1 if count > 1000 else 3)]
            wall, own, children, peak = map(median, zip(*rounds, strict=True))
            note = f"{wall:.2f} s on the clock, {children:.2f} s of the stand-ins, {peak:.0f} MiB"
            name = f"{engine}: {count} nodes, processor"
            yield Figure(name, own, "s", note=f"{note}, {kilobytes:.0f} kB a node")


def _commands(folder: Path) -> None:
    """Write the stand-ins."""
    printing = PRINT.format(folder=folder)
    for name, text in (("srun", LAUNCHER), ("ray-python", RAY), ("ssh", SSH)):
        path = folder / "bin" / name
        words = {"python": sys.executable, "print": printing, "folder": folder}
        path.write_text(text.format(**words))
        path.chmod(0o755)
    command = [sys.executable, "-c", f"{printing}\nnode('any')"]
    with (folder / "answer").open("wb") as file:
        subprocess.run(command, env=here(), stdout=file, check=True)


def _measured(engine: str, count: int, folder: Path) -> list[float]:
    environ = {**here(), "COUNT": str(count), "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    command = [sys.executable, "-c", PROGRAM, engine, str(count), str(folder)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    measured: list[float] = json.loads(done.stdout)
    return measured


def first_answer(place: Place) -> Iterator[Figure]:
    """Time a node that has nothing installed, through a real sshd, beside its own `probe`."""
    from real_sshd import SSH as CLIENT
    from real_sshd import SSHD, Sshd

    if SSHD is None or CLIENT is None or os.geteuid() != 0:
        yield Figure("first answer through sshd", float("nan"), "s", note="needs root and sshd")
        return
    folder = Path(place.folder) / "sshd"
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "python3").symlink_to(os.path.realpath(sys.executable))
    daemon = Sshd(folder, f"{folder}/python:/usr/bin:/bin")
    environ = {**here(), "PATH": f"{daemon.bin}:/usr/bin:/bin"}
    distances = []
    probe = [*place.probe, "--json"]
    try:
        for _ in range(place.rounds(9, 5)):
            start = perf_counter()
            subprocess.run(probe, env=here(), stdout=subprocess.DEVNULL, check=True)
            probed = perf_counter()
            command = [*place.probe, "cluster", "ssh://node"]
            subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
            distances.append((perf_counter() - probed) - (probed - start))
    finally:
        daemon.end()
    note = f"{min(distances):.2f} to {max(distances):.2f} s; the whole command, the probe sent"
    yield Figure("a node through sshd, beyond its probe", median(distances), "s", 1.5, note)
