"""What does exo pay for asking us: cold, warm, and every second?

"Cold" is a fresh process on this node; its ratio is to a bare interpreter of the same Python. The
imports that exo has made anyway (asyncio, pydantic) are timed apart, as a process of their own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from measure import Figure, bare, interleaved
from place import ROOT, Place

HOST = "import asyncio; from pydantic import BaseModel; type('Own', (BaseModel,), {})"
COLD = "import asyncio; from probe_exo.device_capabilities import device_capabilities as d"
ASK = "asyncio.run(d())"
# What old exo's file imported and asked on a Linux node without a GPU, by the facts about it:
# psutil and tinygrad's Device.DEFAULT.
OLD = f"{HOST}; import psutil; from tinygrad import Device; Device.DEFAULT"
EMPTY = f"{HOST}; asyncio.run(asyncio.sleep(0))"

INSIDE = """
import asyncio, time
from pydantic import BaseModel
from probe_exo import node_memory
from probe_exo.device_capabilities import device_capabilities
async def main():
    start = time.perf_counter(); await device_capabilities(); first = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(1000): await device_capabilities()
    warm = (time.perf_counter() - start) / 1000
    node_memory()
    start = time.perf_counter()
    for _ in range(1000): node_memory()
    print(first, warm, (time.perf_counter() - start) / 1000)
asyncio.run(main())
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare cold processes, then look inside one; nothing where there is no pydantic."""
    if not place.has("pydantic"):
        return
    environ = place.with_path(ROOT / "plugins" / "exo" / "src")
    commands = {
        "bare": [place.python, *bare()],
        "host": [place.python, "-c", EMPTY],
        "ask": [place.python, "-c", f"{HOST}; {COLD}; {ASK}"],
    }
    old = place.has("tinygrad") and place.has("psutil")
    if old:
        commands["old"] = [place.python, "-c", OLD]
    taken = interleaved(commands, place.rounds(15), environ)
    first, warm, memory = _inside(place, environ)
    note = f"{first * 1e3:.1f} ms in a host that runs already, bare {taken['bare'] * 1e3:.1f} ms"
    yield Figure("await device_capabilities() / bare", first / taken["bare"], "x", 5.0, note)
    added = (taken["ask"] - taken["host"]) / taken["bare"]
    note = f"whole process {taken['ask'] * 1e3:.0f} ms, of it the host {taken['host'] * 1e3:.0f} ms"
    yield Figure("… imports and all, above the host / bare", added, "x", 5.0, note)
    yield Figure("await device_capabilities(), warm", warm * 1e6, "us", 100.0)
    yield Figure("node_memory()", memory * 1e6, "us", 200.0)
    if old:
        ratio = (taken["old"] - taken["host"]) / (taken["ask"] - taken["host"])
        note = f"{taken['old'] * 1e3:.0f} ms: psutil and tinygrad's Device.DEFAULT"
        yield Figure("what old exo asked / ours, both cold", ratio, "x", 10.0, note, least=True)


def _inside(place: Place, environ: dict[str, str]) -> tuple[float, float, float]:
    command = [place.python, "-c", INSIDE]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    first, warm, memory = map(float, done.stdout.split())
    return first, warm, memory
