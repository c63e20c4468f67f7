"""What does a node with eight MI300X cost, against a plain script with pyamdgpuinfo and psutil?

The machine is the recorded one of tests/machines, shown to both sides through a preloaded library;
its cards answer libdrm through a fake of the driver's calls.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench_nvidia import under
from measure import Figure, costs
from place import ROOT, Place

FAKES = ROOT / "tests" / "fakes"
MACHINE = ROOT / "tests" / "machines" / "server--8x-amd-instinct-mi300x.json"
NAME, VRAM, USED = "AMD Instinct MI300X", 205822885888, 297009152
CARD = f"device {0x74A1}\nrevision 0\nvram {VRAM}\nvram_used {USED}\n"
"""What the fake of the driver's calls answers for each card."""
OTHERS = [f"{0x6600 + number:04X},\t00,\tAMD Radeon Graphics" for number in range(480)]
NAMES = "\n".join(["1.0.0", *OTHERS, f"74A1,\t00,\t{NAME}", ""])
"""libdrm's table, in which each card's name is looked for: as many rows as Debian 12 has."""
PLAIN = """
import psutil
import pyamdgpuinfo
for index in range(pyamdgpuinfo.detect_gpus()):
    card = pyamdgpuinfo.get_gpu(index)
    print(card.name, card.memory_info["vram_size"], card.query_vram_usage())
print(psutil.virtual_memory().total)
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare eight cards with the plain script."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    possible = platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"
    if compiler is None or not possible or not place.has("pyamdgpuinfo"):
        return
    eight = node(place.folder / "mi300x", compiler)
    commands = {"probe": [*place.probe, "--json"], "plain": [place.python, "-c", PLAIN]}
    check(commands, eight)
    under_it = {side: under(eight, command) for side, command in commands.items()}
    taken = costs(under_it, place.rounds(101), place.environ)
    wall, cpu = taken["probe"].against(taken["plain"])
    note = f"{taken['probe'].wall * 1000:.1f} ms against {taken['plain'].wall * 1000:.1f} ms"
    name = "8 x MI300X / pyamdgpuinfo + psutil"
    yield Figure(name, wall, "x", 1.0, f"{note}; CPU {cpu:.2f} x", goal=0.9)


def node(folder: Path, compiler: str) -> dict[str, str]:
    """Build the fake node; return the variables under which a process sees it."""
    root = folder / "root"
    recorded = json.loads(MACHINE.read_text())
    for path, content in recorded["files"].items():
        text = content if isinstance(content, str) else "\n".join([*content, ""])
        _write(root / path[1:], text)
    for path, target in recorded["links"].items():
        place = root / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    _write(root / "usr/share/libdrm/amdgpu.ids", NAMES)
    (root / "dev").mkdir()
    (root / "dev/kfd").symlink_to("/dev/null")  # a character device that anybody may open
    (root / "sys/dev/char").mkdir(parents=True, exist_ok=True)
    for entry in sorted((root / "sys/class/drm").glob("renderD*")):
        _write(root / "dev/dri" / entry.name, "")
        _write(root / "fake" / entry.name, CARD)
        number = root / f"sys/dev/char/226:{entry.name.removeprefix('renderD')}"
        number.symlink_to(f"../../{os.readlink(entry).removeprefix('../../')}")
    library = folder / "fake_drm.so"
    sources = [FAKES / "drm" / "fake_root.c", FAKES / "amdgpu" / "fake_amdgpu.c"]
    flags = ["-shared", "-fPIC", "-O1", "-w", "-o", str(library)]
    subprocess.run([compiler, *flags, *map(str, sources), "-ldl"], check=True)
    runtime = folder / "lib" / "libhsa-runtime64.so.1"
    runtime.parent.mkdir()
    shutil.copy(library, runtime)  # ROCm's, which nobody loads here: without it no card is ready
    return {
        "LD_PRELOAD": str(library),
        "LD_LIBRARY_PATH": str(runtime.parent),
        "FAKE_ROOT": str(root),
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check(commands: Mapping[str, list[str]], eight: Mapping[str, str]) -> None:
    """Measure nothing that does not work: both must see eight cards and their memory."""
    environ = {**os.environ, **eight}
    texts = {
        side: subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        for side, command in commands.items()
    }
    report = json.loads(texts["probe"].stdout)
    cards = [d for d in report["devices"] if d["kind"] == "gpu" and d["memory"]["total"]]
    if any(card["readiness"]["broken"] for card in cards):
        raise RuntimeError(f"a card is not ready: {cards[0]['readiness']}")
    *lines, _ = texts["plain"].stdout.splitlines()
    if len(cards) != 8 or lines != 8 * [f"{NAME} {VRAM} {USED}"]:
        raise RuntimeError(f"expected 8 cards: {len(cards)}, {texts['plain'].stdout}")
