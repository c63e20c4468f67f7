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

from bench_rivals import NVITOP, PLAIN
from measure import Cost, Figure, costs
from place import ROOT, Place

FAKES = ROOT / "tests" / "fakes"
SLOW = "on * sleep 1"
"""A rule of the fake's: each call takes a millisecond, in which a process sleeps."""
NO_IOCTL = "int fake_ioctl(const char *n, unsigned long r, void *a) { return -1; }\n"


def run(place: Place) -> Iterator[Figure]:
    """Compare eight GPUs with the plain script, with nvitop's interface, and with one GPU."""
    compiler = possible(place)
    if compiler is None:
        return
    eight, one = node(place, compiler, 8), node(place, compiler, 1)
    probe = [*place.probe, "--json"]
    sides = {"probe": probe, "plain": [place.python, "-c", PLAIN]}
    if place.has("nvitop"):
        sides["nvitop"] = [place.python, "-c", NVITOP]
    check(probe, eight, 8)
    commands = {side: under(eight, command) for side, command in sides.items()}
    commands["one"] = under(one, probe)
    taken = costs(commands, place.rounds(21), place.environ)
    yield _ratio("8 GPUs / pynvml + psutil", taken, "plain", 1.1, 0.9)
    if "nvitop" in taken:
        yield _ratio("8 GPUs / nvitop + psutil", taken, "nvitop", 1.0, 0.7)
    yield _ratio("8 GPUs / 1 GPU", taken, "one", 1.3, 1.15)
    yield from _slow(place, compiler, sides)


def _ratio(name: str, taken: Mapping[str, Cost], other: str, limit: float, goal: float) -> Figure:
    wall, cpu = taken["probe"].against(taken[other])
    note = f"{taken['probe'].wall * 1000:.1f} ms against {taken[other].wall * 1000:.1f} ms"
    return Figure(name, wall, "x", limit, f"{note}; CPU {cpu:.2f} x", goal=goal)


def _slow(place: Place, compiler: str, sides: Mapping[str, list[str]]) -> Iterator[Figure]:
    """Compare where each call of the driver takes 1 ms, and count the calls."""
    for name, links in (("8 GPUs with NVLink", True), ("8 GPUs", False)):
        slow = slow_node(place, compiler, links=links)
        check(sides["probe"], slow, 8)
        commands = {side: under(slow, command) for side, command in sides.items()}
        calls = {side: _calls(place, command) for side, command in commands.items()}
        taken = costs(commands, place.rounds(21), place.environ)
        yield _ratio(f"1 ms a call, {name} / pynvml + psutil", taken, "plain", 1.2, 1.0)
        if "nvitop" in taken:
            yield _ratio(f"1 ms a call, {name} / nvitop + psutil", taken, "nvitop", 1.0, 0.7)
        others = ", ".join(f"{side} {count}" for side, count in calls.items() if side != "probe")
        yield Figure(f"calls, {name}", calls["probe"], "", 99, others)


def _calls(place: Place, command: list[str]) -> int:
    """Return how many calls of the library a command makes."""
    log = place.folder / "calls"
    log.unlink(missing_ok=True)
    logged = under({"FAKE_NVML_LOG": str(log)}, command)
    subprocess.run(logged, env=dict(place.environ), stdout=subprocess.DEVNULL, check=True)
    return len(log.read_text().splitlines())


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
    _add_nodes(root / "dev", len(gpus))
    profile = folder / "node.profile"
    profile.write_text("\ngpu\n".join([head[1], *(text for _, text in gpus)]) + "\n")
    library = build.build(place.folder / "nvml")
    return {
        "LD_LIBRARY_PATH": str(library.parent),
        "FAKE_NVML_PROFILE": str(profile),
        "LD_PRELOAD": str(fake_root(place, compiler)),
        "FAKE_ROOT": str(root),
    }


def slow_node(place: Place, compiler: str, *, links: bool) -> dict[str, str]:
    """Return the variables of eight GPUs whose driver takes 1 ms a call; all its files are there.

    Without NVLink where not `links`.
    """
    return complete_node(place, compiler, 8, "slow-nvlink" if links else "slow", SLOW, links=links)


def complete_node(
    place: Place, compiler: str, count: int, name: str, rule: str = "", *, links: bool = True
) -> dict[str, str]:
    """Return the variables of a node, called `name`, on which all files of the driver are there.

    `rule` is one more of the fake's; without NVLink where not `links`.
    """
    made = node(place, compiler, count)
    root = Path(made["FAKE_ROOT"]).parent / name
    shutil.copytree(made["FAKE_ROOT"], root, symlinks=True, dirs_exist_ok=True)
    tree = _load("tree").Tree(root)
    tree.add_driver()
    head, *gpus = _gpus(count, _load("tree").H100_ADDRESSES)
    texts = []
    for number, (address, text) in enumerate(gpus):
        uuid = next(line[5:] for line in text.splitlines() if line.startswith("uuid "))
        tree.add_information(address, "NVIDIA H100 80GB HBM3", uuid, minor=number)
        kept = [t for t in text.splitlines() if links or not t.startswith(("nvlink", "fabric"))]
        texts.append("\n".join([*kept, rule]))
    profile = root.with_suffix(".profile")
    profile.write_text("\ngpu\n".join([f"{head[1]}\n{rule}", *texts]) + "\n")
    return made | {"FAKE_NVML_PROFILE": str(profile), "FAKE_ROOT": str(root)}


def _add_nodes(folder: Path, count: int) -> None:
    """Make the nodes that CUDA opens: links to a character device that anybody may open."""
    folder.mkdir(exist_ok=True)
    for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{number}" for number in range(count))):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to("/dev/null")


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


def fake_root(place: Place, compiler: str) -> Path:
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
