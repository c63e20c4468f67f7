"""How does it compare with the widely copied way, and with a plain script?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from measure import Figure, interleaved, seconds
from place import Place

TINYGRAD = """
import psutil
try:
    from tinygrad import Device
    backend = Device.DEFAULT
except Exception as error:
    backend = error
print(backend, psutil.virtual_memory().total)
"""
PLAIN = """
import psutil
import pynvml
try:
    pynvml.nvmlInit()
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        print(pynvml.nvmlDeviceGetName(handle), memory.total, memory.free)
except pynvml.NVMLError as error:
    print(error)
print(psutil.virtual_memory().total)
"""
NVITOP = """
import psutil
from nvitop import Device
for device in Device.all():
    print(device.name(), device.memory_total(), device.memory_free())
print(psutil.virtual_memory().total)
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare on a node without accelerators, tinygrad's own cache warm."""
    probe = [*place.probe, "--json"]
    if place.has("pynvml") and place.has("psutil"):
        plain = {"probe": probe, "plain": [place.python, "-c", PLAIN]}
        taken = interleaved(plain, place.rounds(21), place.environ)
        ratio = taken["probe"] / taken["plain"]
        note = f"{taken['probe'] * 1000:.1f} ms against {taken['plain'] * 1000:.1f} ms"
        yield Figure("probe --json / pynvml + psutil", ratio, "x", None, note)
    if place.has("tinygrad") and place.has("psutil"):
        yield from _tinygrad(place, probe)


def _tinygrad(place: Place, probe: list[str]) -> Iterator[Figure]:
    # Its cache in the benchmark's folder, filled by a first run: as a user's would be.
    environ = {**place.environ, "XDG_CACHE_HOME": str(place.folder)}
    copied = [place.python, "-c", TINYGRAD]
    seconds(copied, environ)
    taken = interleaved({"probe": probe, "copied": copied}, place.rounds(9, 3), environ)
    clang = "" if shutil.which("clang") else "; without clang it fails, after as long"
    note = f"{taken['copied'] * 1000:.0f} ms against {taken['probe'] * 1000:.1f} ms{clang}"
    ratio = taken["copied"] / taken["probe"]
    yield Figure("tinygrad + psutil / probe --json", ratio, "x", 20.0, note, least=True)
