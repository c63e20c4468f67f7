"""What does a node with eight GPUs and NVIDIA's library cost, isolation included?

The library is a fake below the real nvidia-ml-py, and /sys shows its GPUs through a preloaded
library, so the whole way is taken: bus, selection, child, merge, chip table, report.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from bench_rivals import PLAIN
from measure import Figure, interleaved
from place import ROOT, Place

FAKES = ROOT / "tests" / "fakes"
NO_IOCTL = "int fake_ioctl(const char *n, unsigned long r, void *a) { return -1; }\n"


def run(place: Place) -> Iterator[Figure]:
    """Compare eight GPUs with the plain script, and with one GPU."""
    compiler = possible(place)
    if compiler is None:
        return
    eight, one = node(place, compiler, 8), node(place, compiler, 1)
    probe, plain = [*place.probe, "--json"], [place.python, "-c", PLAIN]
    check(probe, eight, 8)
    rounds = place.rounds(21)
    taken = interleaved(
        {"probe": under(eight, probe), "plain": under(eight, plain), "one": under(one, probe)},
        rounds,
        place.environ,
    )
    note = f"{taken['probe'] * 1000:.1f} ms against {taken['plain'] * 1000:.1f} ms"
    yield Figure("8 GPUs / pynvml + psutil", taken["probe"] / taken["plain"], "x", 1.5, note)
    note = f"{taken['probe'] * 1000:.1f} ms against {taken['one'] * 1000:.1f} ms"
    yield Figure("8 GPUs / 1 GPU", taken["probe"] / taken["one"], "x", 1.3, note)


def possible(place: Place) -> str | None:
    """Return the compiler for the fake library; None where nothing of this can run."""
    if sys.platform != "linux" or not place.has("pynvml"):
        return None
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def under(variables: Mapping[str, str], command: list[str]) -> list[str]:
    """Return `command` under more variables; `env` costs each side the same."""
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *command]


def node(place: Place, compiler: str, count: int) -> dict[str, str]:
    """Build the fake node; return the variables under which a process sees it."""
    folder = place.folder / f"node-{count}"
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    tree = _load("tree")
    build = _load("build")
    head, *gpus = _gpus(count, tree.H100_ADDRESSES)
    made = tree.Tree(root)
    for address, _ in gpus:
        made.add_pci(address, "2330", subsystem="10de:16c1")
    profile = folder / "node.profile"
    profile.write_text("\ngpu\n".join([head[1], *(text for _, text in gpus)]) + "\n")
    library = build.build(place.folder / "nvml")
    return {
        "LD_LIBRARY_PATH": str(library.parent),
        "FAKE_NVML_PROFILE": str(profile),
        "LD_PRELOAD": str(_fake_root(place, compiler)),
        "FAKE_ROOT": str(root),
    }


def _gpus(count: int, addresses: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the head of the profile, then `count` GPUs with their addresses.

    Beyond eight they are the eight again, each eight in a PCI domain of its own.
    """
    whole = (FAKES / "nvml" / "profiles" / "h100x8.profile").read_text()
    head, *eight = whole.rstrip("\n").split("\ngpu\n")
    made = [("", head)]
    for number in range(count):
        domain, place = divmod(number, len(eight))
        text = eight[place].replace("pci 00000000:", f"pci {domain:08X}:")
        text = text.replace("uuid GPU-a1000000-", f"uuid GPU-a1{domain:06x}-")
        made.append((f"{domain:04x}{addresses[place][4:]}", text))
    return made


def _fake_root(place: Place, compiler: str) -> Path:
    """Build the library that shows another /sys."""
    library = place.folder / "fake_root.so"
    if not library.exists():
        extra = place.folder / "no_ioctl.c"
        extra.write_text(NO_IOCTL)
        source = str(FAKES / "drm" / "fake_root.c")
        flags = ["-shared", "-fPIC", "-O1", "-w", "-o", str(library)]
        subprocess.run([compiler, *flags, source, str(extra), "-ldl"], check=True)
    return library


def _load(name: str) -> ModuleType:
    """Import a module of the fake by its path; its name may be another package's too."""
    spec = importlib.util.spec_from_file_location(
        f"fake_nvml_{name}", FAKES / "nvml" / f"{name}.py"
    )
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"tests/fakes/nvml/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check(probe: list[str], node: Mapping[str, str], count: int) -> None:
    """Measure nothing that does not work: the GPUs must be there, from NVML, with their memory."""
    done = subprocess.run(
        probe, env={**os.environ, **node}, capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout)
    gpus = [one for one in report["devices"] if one["kind"] == "gpu"]
    complete = [one for one in gpus if one["memory"]["total"] == 85520809984]
    if len(complete) != count:
        raise RuntimeError(f"expected {count} GPUs, found {len(complete)}: {report['outcomes']}")
