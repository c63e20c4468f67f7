"""What does trust cost root, a healthy look at settings everybody, and do many calls leak?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from measure import Figure
from place import Place
from plugins_made import many

DISTRIBUTIONS, CALLS = 100, 2000

# Of processor time, system calls included: on a busy machine the clock measures its neighbours.
# With a third word, all of the code is looked at as well, as of plugins whose hardware is there.
TRUST = """
import os, sys
from statistics import median
from time import process_time as perf_counter
from probe_core.registry.prober import discover
ask = os.geteuid
taken = {"root": [], "user": []}
for number in range(2 * int(sys.argv[2]) + 2):
    who = "root" if number % 2 else "user"
    os.geteuid = ask if who == "root" else (lambda: 1000)
    start = perf_counter()
    probers, _ = discover({}, [sys.argv[1]])
    if sys.argv[3:]:
        problems = [p.distrust_of_code() for p in probers]
    else:
        problems = [p.distrust for p in probers]
    if number > 1:
        taken[who].append(perf_counter() - start)
    if len(probers) != 100 or any(problems) or any(p.rejection for p in probers):
        sys.exit("not all were checked and trusted")
print(median(taken["root"]), median(taken["user"]))
"""

LOOK = """
import sys
from statistics import median
from time import perf_counter
from probe_core.setting_values import load_config
from probe_core.pipeline.settings import load_settings
taken = {load_config: [], load_settings: []}
for number in range(400):
    for load in taken:
        start = perf_counter()
        load({}, {"HOME": "/root"})
        taken[load].append(perf_counter() - start)
print(median(taken[load_settings]) - median(taken[load_config]))
"""

LEAKS = """
import gc, json, os, sys
import probe_core
def state():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
def probe():
    report = probe_core.probe(only=["acme00"], refresh=True)
    return [o.status for o in report.outcomes if o.prober == "acme00"] != ["ok"]
failed = sum(probe() for _ in range(3))
before = state()
failed += sum(probe() for _ in range(int(sys.argv[1])))
after = state()
try:
    os.waitpid(-1, os.WNOHANG)
    children = 1
except ChildProcessError:
    children = 0
print(json.dumps([after[0] - before[0], after[1] - before[1], children, failed]))
"""


def run(place: Place) -> Iterator[Figure]:
    """Measure in fresh interpreters."""
    modules = many(place.folder / "sealed", DISTRIBUTIONS, absent=True)
    packages = many(place.folder / "sealed", DISTRIBUTIONS, absent=True, packages=True)
    yield _trust(place, f"trust of {DISTRIBUTIONS} distributions", 3, modules)
    yield _trust(place, f"trust of {DISTRIBUTIONS} packages", 3, packages)
    yield _trust(place, f"trust of {DISTRIBUTIONS} packages that all run", 8, packages, "code")
    look = float(_ask(place, LOOK)) * 1e6
    yield Figure("a look for served mounts", look, "µs", 50)
    yield from _leaks(place)


def _trust(place: Place, subject: str, limit: float, site: Path, *words: str) -> Figure:
    root, user = map(float, _ask(place, TRUST, str(site), str(place.rounds(40, 5)), *words).split())
    note = f"discovery takes {root * 1000:.1f} ms as root"
    return Figure(subject, (root - user) * 1000, "ms", limit, note)


def _leaks(place: Place) -> Iterator[Figure]:
    site = many(place.folder / "sealed-one", 1, absent=False)
    calls = place.rounds(CALLS, 50)
    counts = json.loads(_ask(place, LEAKS, str(calls), site=site))
    for subject, count in zip(
        ("descriptors", "threads", "children", "failures"), counts, strict=True
    ):
        yield Figure(f"{calls} calls: {subject} more", count, "", 0)


def _ask(place: Place, code: str, *words: str, site: Path | None = None) -> str:
    environ = place.with_path(site) if site else dict(place.environ)
    done = subprocess.run(
        [place.python, "-c", code, *words], env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout
