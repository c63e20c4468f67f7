"""What does a prober's process cost: until the plugin's first line, and of the host's own time?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from measure import Figure
from place import Place

PLUGIN = """
import time
FIRST = time.monotonic()
from probe_core.api import hookimpl
@hookimpl
def probe_devices(request):
    yield {"ids": ["first:1"], "kind": "npu", "extra": {"first": FIRST}}
"""
# A bare interpreter, and a child, each from before its start; in turns, because machines drift.
HOST = """
import json, os, sys
from statistics import median
from time import monotonic, process_time
from probe_core.isolation.launch import run_probers
from probe_core.machine import Machine
from probe_core.registry.prober import Prober
bare, first, own = [], [], []
for number in range(int(sys.argv[1]) + 1):
    start = monotonic()
    os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-S", "-E", "-c", "pass"], {}), 0)
    bare.append(monotonic() - start)
    start, spent = monotonic(), process_time()
    run, = run_probers([Prober("first", "x_first")], Machine(), ())
    own.append(process_time() - spent)
    first.append(run.sightings[0]["extra"]["first"] - start)
print(json.dumps([median(values[1:]) for values in (bare, first, own)]))
"""


def run(place: Place) -> Iterator[Figure]:
    """Measure one prober at a time; the supervisor on Linux is part of it."""
    site = place.folder / "child"
    site.mkdir()
    (site / "x_first.py").write_text(PLUGIN)
    command = [place.python, "-c", HOST, str(place.rounds(60, 3))]
    done = subprocess.run(
        command, env=place.with_path(site), capture_output=True, text=True, check=True
    )
    bare, first, own = json.loads(done.stdout)
    note = f"{first * 1000:.1f} ms against {bare * 1000:.1f} ms"
    yield Figure("a prober's first line / bare Python -S -E", first / bare, "x", 1.6, note)
    yield Figure("the host's own time for a prober", own * 1000, "ms", 2.0)
