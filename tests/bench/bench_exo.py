"""What does exo pay for asking us: cold, warm, and every second?

"Cold" is the first call in a fresh process on this node, with our own imports; the ratio is to the
whole life of a bare interpreter. What exo has imported anyway (asyncio, pydantic) is not counted,
for old exo's way neither.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from statistics import median

from measure import Figure, bare, interleaved
from place import ROOT, Place

HOST = """
import asyncio, time
from pydantic import BaseModel
class Own(BaseModel):
    field: int
asyncio.run(asyncio.sleep(0))
start = time.perf_counter()
"""
COLD = """
from probe_exo.device_capabilities import device_capabilities
loaded = time.perf_counter()
asyncio.run(device_capabilities())
end = time.perf_counter()
print(end - start, end - loaded)
"""
# What old exo's file imported and asked on a Linux node without a GPU, by the facts about it.
OLD = """
import psutil
from tinygrad import Device
Device.DEFAULT, psutil.virtual_memory()
print(time.perf_counter() - start)
"""
WARM = """
from probe_exo import engine_memory, node_memory
from probe_exo.device_capabilities import device_capabilities
async def main():
    await device_capabilities(); node_memory()
    warm, memory = [], []
    fresh, engine = [], []
    node_memory(max_age_s=1.0)
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100): await device_capabilities()
        middle = time.perf_counter()
        for _ in range(100): node_memory()
        late = time.perf_counter()
        for _ in range(100): node_memory(max_age_s=1.0)
        last = time.perf_counter()
        for _ in range(100): engine_memory(max_age_s=1.0)
        fresh.append((last - late) / 100); engine.append((time.perf_counter() - last) / 100)
        warm.append((middle - start) / 100); memory.append((late - middle) / 100)
    print(*(sorted(times)[len(times) // 2] for times in (warm, memory, fresh, engine)))
asyncio.run(main())
"""


def run(place: Place) -> Iterator[Figure]:
    """Look inside cold processes and a warm one; nothing where there is no pydantic."""
    if not place.has("pydantic"):
        return
    rounds = place.rounds(15)
    least = interleaved({"bare": [place.python, *bare()]}, rounds, place.environ)["bare"]
    ours = [_inside(place, COLD) for _ in range(rounds)]
    whole, call = (median(times) for times in zip(*ours, strict=True))
    note = f"{call * 1e3:.1f} ms against {least * 1e3:.1f} ms"
    yield Figure("await device_capabilities() / bare Python", call / least, "x", 5.0, note)
    note = f"{whole * 1e3:.1f} ms"
    yield Figure("… with our own imports / bare Python", whole / least, "x", 5.0, note)
    warm, memory, fresh, engine = _inside(place, WARM)
    yield Figure("await device_capabilities(), warm", warm * 1e6, "us", 100.0)
    yield Figure("node_memory()", memory * 1e6, "us", 200.0)
    yield Figure("node_memory(max_age_s=1.0)", fresh * 1e6, "us", 200.0)
    yield Figure("engine_memory(max_age_s=1.0)", engine * 1e6, "us", 1000.0)
    imports = interleaved(
        {"bare": [place.python, *bare()], "import": [place.python, "-c", "import probe_exo"]},
        rounds,
        place.with_path(ROOT / "plugins" / "exo" / "src"),
    )
    beyond = max(0.0, imports["import"] - imports["bare"])
    yield Figure("import probe_exo, beyond bare Python", beyond * 1e3, "ms", 20.0)
    # tinygrad's CPU backend, its only one here, needs clang.
    if place.has("tinygrad") and place.has("psutil") and shutil.which("clang"):
        old = median(_inside(place, OLD)[0] for _ in range(place.rounds(5, 2)))
        note = f"{old * 1e3:.0f} ms: psutil and tinygrad's Device.DEFAULT"
        yield Figure(
            "what old exo asked / ours, both cold", old / whole, "x", 10.0, note, least=True
        )


def _inside(place: Place, code: str) -> list[float]:
    environ = place.with_path(ROOT / "plugins" / "exo" / "src")
    command = [place.python, "-c", HOST + code]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]
