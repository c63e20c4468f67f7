"""How long, and how much memory, do 1,000 nodes take: gather loop, differences, table, document?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from measure import Figure, here
from place import ROOT, Place

NODES = 1000

sys.path.insert(0, str(ROOT / "plugins" / "cluster" / "tests"))

# A process of its own: its peak is that of the gather alone. The reports are files, so that what
# is measured is our loop and not a thousand interpreters.
PROGRAM = """
import asyncio, json, resource, sys, time
from probe_cluster import gather
from probe_cluster.collectors import Files
from probe_cluster.gather_document import document_lines
from probe_cluster.gather_table import table
from probe_core.commands import Context

files = [f"n{at}={sys.argv[1]}/{at}.json" for at in range(int(sys.argv[2]))]
start = time.perf_counter()
gathered = asyncio.run(gather(Files(files)))
loop = time.perf_counter()
differences = gathered.differences()
differed = time.perf_counter()
lines = table(gathered, Context())
shown = time.perf_counter()
size = sum(map(len, document_lines(gathered)))
written = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
assert gathered.complete and differences and lines
print(json.dumps([loop - start, differed - loop, shown - differed, written - shown, peak, size]))
"""


def run(place: Place) -> Iterator[Figure]:
    """Gather 1,000 nodes of eight GPUs, of which some are unlike the others."""
    folder = Path(place.folder) / "nodes"
    folder.mkdir(exist_ok=True)
    kilobytes = _write(folder, NODES)
    rounds = []
    for _ in range(place.rounds(5, 2)):
        start = perf_counter()
        command = [sys.executable, "-c", PROGRAM, str(folder), str(NODES)]
        done = subprocess.run(command, env=here(), capture_output=True, text=True, check=True)
        rounds.append([*json.loads(done.stdout), perf_counter() - start])
    loop, differ, show, write, peak, _, whole = map(median, zip(*rounds, strict=True))
    note = f"8 GPUs, {kilobytes:.0f} kB a node"
    yield Figure(f"gather, differences, table: {NODES} nodes", loop + differ + show, "s", 2.0, note)
    yield Figure("  gather loop: read, check, summarise", loop, "s")
    yield Figure("  differences", differ, "s")
    yield Figure("  table", show, "s")
    yield Figure("document of all nodes", write, "s")
    yield Figure("whole process", whole, "s")
    yield Figure("peak memory", peak, "MiB", 300.0)


def _write(folder: Path, count: int) -> float:
    """Write the reports; return their mean size in kB."""
    from home_nodes import NODES as HOMES
    from home_nodes import report_of, rtx_4090

    gpus = [rtx_4090(slot) | {"ids": [f"pci:0000:{slot:02x}:00.0"]} for slot in range(1, 9)]
    HOMES["rack"] = (gpus, 512 << 30, 400 << 30)
    base = json.dumps(report_of("rack", folder))
    total = 0
    for at in range(count):
        report: dict[str, Any] = json.loads(base)
        report["node"].update(id=f"{at:08x}", host=f"n{at}", model="rack")
        if at % 100 == 7:
            del report["devices"][3]
        for device in report["devices"]:
            if at % 50 == 3 and device["kind"] == "gpu":
                device["driver"]["version"] = "570.00"
        text = json.dumps(report)
        total += len(text)
        (folder / f"{at}.json").write_text(text)
    return total / count / 1e3
