"""What does each format of `probe export` cost against `probe --json`, on a node with eight GPUs?
And what does a scrape of its endpoint?

The same fake node as for NVIDIA's library under both; interleaved: a shared machine drifts.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping

from bench_nvidia import node, possible, under
from measure import Figure, costs
from place import Place

FORMATS = ("ansible", "dra", "env", "exo", "nfd", "otel", "prometheus", "ray", "slurm")


SCRAPE = """
import json, sys, time
import probe_core
from probe_export.live import Metrics
report = probe_core.probe().to_json()
metrics = Metrics(lambda: report)
with probe_core.samples(0.1) as rounds:
    for _ in range(2):
        look = next(rounds)
metrics._report.begin()
while metrics._report.last is None:
    time.sleep(0.01)
scrapes = []
for accept in ("", "application/openmetrics-text;version=1.0.0"):
    metrics.publish(look.time, look.documents)
    metrics.text(accept)
    for _ in range(int(sys.argv[1])):
        metrics.publish(look.time, look.documents)
        began = time.process_time()
        text, _ = metrics.text(accept)
        scrapes.append((time.process_time() - began) * 1000)
up = text.count(b"probecore_device_up{")
print(json.dumps({"ms": min(scrapes), "devices": up, "bytes": len(text)}))
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare every format that is installed with the report itself."""
    compiler = possible(place)
    if compiler is None or not place.has("probe_export"):
        return
    eight = node(place, compiler, 8)
    commands = {"json": under(eight, [*place.probe, "--json"])}
    commands |= {
        name: under(eight, [*place.probe, "export", name])
        for name in FORMATS
        if _works(place, name)
    }
    yield from _scrape(place, eight)
    taken = costs(commands, place.rounds(15), place.environ)
    for name in commands:
        if name != "json":
            wall, cpu = taken[name].against(taken["json"])
            note = f"{taken[name].wall * 1000:.1f} ms against {taken['json'].wall * 1000:.1f} ms"
            yield Figure(
                f"probe export {name} / probe --json", wall, "x", 1.1, f"{note}; CPU {cpu:.2f} x"
            )


def _scrape(place: Place, eight: Mapping[str, str]) -> Iterator[Figure]:
    """Yield the CPU time of a scrape: the least of many, for what others do only adds to it."""
    command = under(eight, [place.python, "-c", SCRAPE, str(place.rounds(200, 20))])
    done = subprocess.run(
        command, env=dict(place.environ), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the scrape failed: {done.stderr}")
    taken = json.loads(done.stdout)
    if taken["devices"] != 8:
        raise SystemExit(f"the scrape has {taken['devices']} of 8 GPUs")
    note = f"{taken['bytes'] / 1000:.0f} kB, facts and figures of 8 GPUs"
    yield Figure("a scrape of the endpoint, CPU", taken["ms"], "ms", 1.0, note)


def _works(place: Place, name: str) -> bool:
    listed = subprocess.run(
        [*place.probe, "export", "--list"],
        env=dict(place.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return any(line.split(" ")[0] == name for line in listed.stdout.splitlines())
