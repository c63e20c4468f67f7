"""Where does the time go: each stage, with 1, 8 and 64 devices and with 1, 10 and 50 plugins?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from statistics import median

from measure import Figure, interleaved
from place import Place
from plugins_made import many

# In a process of its own, because the interpreter that runs the benchmarks may lack the packages.
DEVICES = """
import json, sys
from copy import deepcopy
from time import perf_counter
from probe_core.pipeline.merge import Observation
from probe_core.pipeline.merge import merge
from probe_core.resolve import open_chipdb, resolve
count, rounds = int(sys.argv[1]), int(sys.argv[2])
start = perf_counter()
database = open_chipdb(())[0]
opened = perf_counter() - start
taken = {"open": [opened], "merge": [], "resolve": [], "report": []}
for _ in range(rounds):
    said = []
    for number in range(count):
        ids = [f"pci:0000:{number:02x}:00.0"]
        pci = {"id": "10de:2684", "subsystem": "10de:16f3", "class": "030000"}
        base = {"ids": ids, "kind": "gpu", "vendor": "nvidia", "pci": pci, "unknown": {}}
        more = {"name": "NVIDIA GeForce RTX 4090", "compute_capability": "8.9", "units": 128,
                "cores": 16384, "clocks": {"max_mhz": 3105},
                "memory": {"kind": "dedicated", "total": 25757220864, "free": 25200000000}}
        uuid = [f"uuid:GPU-{number:08x}-0000-4000-8000-000000000000"]
        said.append(Observation("bus", 200, base))
        said.append(Observation("nvidia", 500, deepcopy(base) | more | {"ids": ids + uuid}))
    start = perf_counter()
    devices, _ = merge(said)
    merged = perf_counter()
    resolve(devices, database)
    resolved = perf_counter()
    json.dumps(devices)
    done = perf_counter()
    assert len(devices) == count and devices[0]["chip"]["id"], devices[0]
    for name, value in zip(("merge", "resolve", "report"), (merged - start, resolved - merged,
                                                            done - resolved)):
        taken[name].append(value)
print(json.dumps(taken))
"""


def run(place: Place) -> Iterator[Figure]:
    """Measure stages of the whole, then of synthetic devices, then of generated plugins."""
    yield from _stages(place)
    for count in (1, 8, 64):
        yield from _devices(place, count)
    yield from _plugins(place)


def _stages(place: Place) -> Iterator[Figure]:
    rounds = []
    for _ in range(place.rounds(15)):
        done = subprocess.run(
            [*place.probe, "--json"],
            env=dict(place.environ), capture_output=True, text=True, check=True,
        )  # fmt: skip
        rounds.append(json.loads(done.stdout)["timings_ms"])
    for stage in rounds[0]:
        yield Figure(f"stage {stage}", median(one[stage] for one in rounds), "ms")


def _devices(place: Place, count: int) -> Iterator[Figure]:
    done = subprocess.run(
        [place.python, "-c", DEVICES, str(count), str(place.rounds(15))],
        env=dict(place.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    taken = json.loads(done.stdout)
    # The first round also loads what the stage needs; a command line pays it once.
    for stage in ("merge", "resolve", "report"):
        first, later = taken[stage][0] * 1000, median(taken[stage][1:]) * 1000
        yield Figure(f"{stage}, {count} devices", later, "ms", None, f"first time {first:.2f} ms")


def _plugins(place: Place) -> Iterator[Figure]:
    """Compare with no generated plugin: absent hardware costs discovery, present a child each."""
    empty = many(place.folder / "plugins", 0, absent=True)
    for absent, counts in ((True, (1, 10, 50)), (False, (1, 10) if place.quick else (1, 10, 50))):
        what = "whose hardware is absent" if absent else "that run"
        for count in counts:
            site = many(place.folder / "plugins", count, absent=absent)
            _check(place, place.with_path(site), count, absent)
            # `env` on both sides costs both the same.
            commands = {
                name: ["env", f"PYTHONPATH={place.with_path(one)['PYTHONPATH']}", *place.probe]
                for name, one in (("without", empty), ("with", site))
            }
            commands = {name: [*command, "--json"] for name, command in commands.items()}
            taken = interleaved(commands, place.rounds(15), place.environ)
            more = (taken["with"] - taken["without"]) * 1000
            note = f"{more / count:.2f} ms each"
            yield Figure(f"{count} plugins {what}", more, "ms more", None, note)


def _check(place: Place, environ: dict[str, str], count: int, absent: bool) -> None:
    done = subprocess.run(
        [*place.probe, "--json"], env=environ, capture_output=True, text=True, check=True
    )
    outcomes = json.loads(done.stdout)["outcomes"]
    mine = [one["status"] for one in outcomes if one["prober"].startswith("acme")]
    wanted = ["skipped" if absent else "ok"] * count
    if mine != wanted:
        raise RuntimeError(f"expected {count} x {wanted[0]}, found {outcomes}")
