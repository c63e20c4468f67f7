"""What does a computer with an Arc B580 cost, against a plain script?

/sys shows the card through a preloaded library, to both sides. Intel's card is told from files
alone, so there is no driver library to fake. The script is the one of the other benchmarks, which
finds no NVML, and reads three files of the card. Measured are a card that is ready, and one whose
device node a container lacks, of which the report says why and what to do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import bench_rivals
from bench_nvidia import fake_root, possible, under
from measure import Figure, costs
from place import Place

ADDRESS = "0000:03:00.0"
VRAM = 12674138112
PLAIN = f"""{bench_rivals.PLAIN}
import glob
for card in glob.glob("/sys/class/drm/renderD*"):
    device = card + "/device/"
    print(open(device + "vendor").read(), open(device + "device").read())
for line in open("/sys/fs/cgroup/dmem.capacity"):
    print(line)
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare a B580 under xe of Linux 6.14 with the plain script."""
    compiler = possible(place)
    if compiler is None or not place.has("probe_intel"):
        return
    library = fake_root(place, compiler)
    sides = {"probe": [*place.probe, "--json"], "plain": [place.python, "-c", PLAIN]}
    for what, limit, is_ready in (("", 0.87, True), (" without its device node", 1.0, False)):
        shown = node(place.folder / f"b580{what.replace(' ', '-')}", library, is_ready=is_ready)
        commands = {side: under(shown, command) for side, command in sides.items()}
        check(commands, place.environ, is_ready=is_ready)
        taken = costs(commands, place.rounds(21), place.environ)
        wall, cpu = taken["probe"].against(taken["plain"])
        note = f"{taken['probe'].wall * 1000:.1f} ms against {taken['plain'].wall * 1000:.1f} ms"
        name = f"Arc B580{what} / pynvml + psutil + files"
        yield Figure(name, wall, "x", limit, f"{note}; CPU {cpu:.2f} x", goal=limit - 0.1)


def node(root: Path, library: Path, *, is_ready: bool = True) -> dict[str, str]:
    """Make the files of the card; return the variables under which a process sees them.

    `library` shows them. Without `is_ready` there is neither a device node nor a runtime.
    """
    from probe_core.testing import Tree  # here: the command of the benchmarks starts without it

    tree = Tree(root)
    tree.release("6.14.2")
    tree.memory(32_000_000, 20_000_000)
    folder = tree.pci(
        ADDRESS, "8086:e20b", driver="xe", subsystem="8086:1100", revision="0x08", drm=(1, 128)
    )
    tree.file(f"{folder}/tile0/gt0/freq0/rp0_freq", 2850)
    tree.file("/sys/fs/cgroup/dmem.capacity", f"drm/{ADDRESS}/vram0 {VRAM}\n")
    render = root / "sys/class/drm/renderD128"
    if not render.exists():
        tree.link("/sys/class/drm/renderD128", f"{folder}/drm/renderD128")
    tree.link(f"{folder}/drm/renderD128/device", folder)
    shown = {"FAKE_ROOT": str(root), "LD_PRELOAD": str(library)}
    if not is_ready:
        return shown
    tree.file("/dev/dri/renderD128", "")
    tree.link("/sys/dev/char/226:128", f"{folder}/drm/renderD128")
    runtime = root / "lib" / "libze_intel_gpu.so.1"
    runtime.parent.mkdir(exist_ok=True)
    shutil.copy(library, runtime)  # Level Zero's, which nobody loads here
    return {**shown, "LD_LIBRARY_PATH": str(runtime.parent)}


def check(
    commands: Mapping[str, list[str]], environ: Mapping[str, str], *, is_ready: bool = True
) -> None:
    """Measure nothing that does not work: both must see the card and its memory."""
    texts = {
        side: subprocess.run(
            command, env={**os.environ, **environ}, capture_output=True, text=True, check=True
        ).stdout
        for side, command in commands.items()
    }
    gpus = [one for one in json.loads(texts["probe"])["devices"] if one["kind"] == "gpu"]
    totals = [one["memory"]["total"] for one in gpus]
    states = [one["readiness"]["state"] for one in gpus]
    if states != ["ready" if is_ready else "blocked"]:
        raise RuntimeError(f"a card that is {states}: {gpus[0]['readiness']}")
    if totals != [VRAM] or not {"0xe20b", str(VRAM)} <= set(texts["plain"].split()):
        raise RuntimeError(f"expected a B580: {totals}, {texts['plain']}")
