"""What does `probe watch` cost: its first sample, and a frame of eight GPUs?

The first sample is compared with `probe --json` on the same fake node, interleaved.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

from bench_nvidia import node, possible, under
from measure import Figure
from place import ROOT, Place

FRAMES = """
import sys, time
sys.path.insert(0, sys.argv[1])
from watch_samples import address, busy, report
from probe_watch.alerts import Alerts
from probe_watch.frame import Painter
from probe_watch.rules import rules_of
from probe_watch.view import View
alerts = Alerts(rules_of({}))
view = View(report(*["NVIDIA H100 80GB HBM3"] * 8), alerts, 1.0)
painter = Painter(True, str)
count = int(sys.argv[2])
began = time.process_time()
for number in range(count):
    samples = [busy(address(at), (number * at % 100) / 100) for at in range(1, 9)]
    alerts.update(number, number, samples)
    view.update(number, samples)
    painter.lines(view, 120, 40)
print((time.process_time() - began) / count)
"""


def run(place: Place) -> Iterator[Figure]:
    """Measure the first sample, and the frame."""
    if not place.has("probe_watch"):
        return
    yield from _frame(place)
    compiler = possible(place)
    if compiler is None:
        return
    eight = node(place, compiler, 8)
    commands = {
        "json": under(eight, [*place.probe, "--json"]),
        "watch": under(eight, [*place.probe, "watch", "--json", "-n", "1"]),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(place.rounds(15) + 1):
        for name, command in commands.items():
            spent = _until_first_line(command, place.environ)
            if number:
                taken[name].append(spent * 1000)
    json, watch = (median(taken[name]) for name in ("json", "watch"))
    name = "first sample of probe watch --json, beyond probe --json"
    yield Figure(name, watch - json, "ms", 50.0, f"{watch:.0f} ms against {json:.0f} ms")


def _until_first_line(command: list[str], environ: Mapping[str, str]) -> float:
    """Return the seconds until a command prints its first line; it then ends by itself."""
    began = perf_counter()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        spent = perf_counter() - began
        process.stdout.read()
    return spent


def _frame(place: Place) -> Iterator[Figure]:
    samples = str(Path(ROOT) / "plugins" / "watch" / "tests")
    command = [place.python, "-c", FRAMES, samples, str(place.rounds(500, 50))]
    done = subprocess.run(
        command, env=dict(place.environ), capture_output=True, text=True, check=True
    )
    share = float(done.stdout) * 100
    note = "eight GPUs, 120 columns, a sample a second"
    yield Figure("drawing, % of a core", share, "%", 1.0, note)
