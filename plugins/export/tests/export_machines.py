"""Six faked machines: NVIDIA's by a fake driver library, AMD's and Arm's by recordings.

The vendor's prober runs in its own process, against a library or files; what it reports passes
through the whole pipeline with the files of the same machine.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

import recorded
from reports import machine_of, plugin, report_of, validated

import probe_core
from probe_core.testing import Case
from probe_core.testing.sightings import FILE

FAKES = Path(__file__).resolve().parents[3] / "tests" / "fakes" / "nvml"
MACHINES = ("8 x H100", "4090 + 3090", "A100 with MIG", "8 x MI300X", "Mali board", "no GPU")


def fake(name: str) -> ModuleType:
    """Import a module of the fakes' folder by its path."""
    spec = importlib.util.spec_from_file_location(f"export_fake_{name}", FAKES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def library(folder: Path) -> Path:
    path: Path = fake("build").build(folder)
    return path


@cache
def report(name: str, folder: Path) -> dict[str, Any]:
    """Return the report of a machine; raises the fake's `NoCompiler` where there is none."""
    place = Path(mkdtemp(dir=folder))
    if name == "8 x MI300X":
        machine = machine_of(recorded.read("server--8x-amd-instinct-mi300x"), place)
        return report_of(machine, **plugin("amd"))
    if name == "Mali board":
        machine = machine_of(recorded.read("rock-5b--mali-g610-and-rk3588-npu"), place)
        return report_of(machine, **plugin("mali"))
    if name == "no GPU":
        return report_of(machine_of(recorded.read("vm-without-accelerator--cpu"), place))
    tree = fake("tree").Tree(place)
    tree.memory(65_536_000, 64_000_000)
    tree.add_driver()
    return _by_library(_PROFILES[name](tree), tree, folder)


def _eight(tree: Any) -> str:
    for number, address in enumerate(fake("tree").H100_ADDRESSES):
        tree.add_pci(address, "2330", subsystem="10de:16c1")
        uuid = f"GPU-a1000000-0000-4000-8000-00000000000{number}"
        tree.add_information(address, "NVIDIA H100 80GB HBM3", uuid, minor=number)
    return "h100x8"


def _mixed(tree: Any) -> str:
    # The kernel counts cards by its own order: the minor is not the index of NVML.
    for bus, device, model, minor in (("01", "2684", 4090, 1), ("02", "2204", 3090, 0)):
        tree.add_pci(f"0000:{bus}:00.0", device)
        name = f"NVIDIA GeForce RTX {model}"
        tree.add_information(f"0000:{bus}:00.0", name, None, minor=minor)
    return "4090-3090"


def _mig(tree: Any) -> str:
    tree.add_pci("0000:3b:00.0", "20b0", subsystem="10de:134f")
    uuid = "GPU-d1000000-0000-4000-8000-000000000000"
    tree.add_information("0000:3b:00.0", "NVIDIA A100-SXM4-40GB", uuid)
    for number, instance in enumerate((2, 3, 9)):
        folder = f"/proc/driver/nvidia/capabilities/gpu0/mig/gi{instance}"
        for step, file in enumerate(("access", "ci0/access")):
            minor = 21 + 9 * number + step
            tree.file(f"{folder}/{file}", f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\n")
    return "a100-mig"


_PROFILES = {"8 x H100": _eight, "4090 + 3090": _mixed, "A100 with MIG": _mig}


def _by_library(profile: str, tree: Any, folder: Path) -> dict[str, Any]:
    variables = {
        "LD_LIBRARY_PATH": str(library(folder).parent),
        "FAKE_NVML_PROFILE": str(FAKES / "profiles" / f"{profile}.profile"),
    }
    source = str(FAKES.parents[2] / "plugins" / "nvidia" / "src")
    case = Case(tree.machine(), live=True, variables=variables, sys_path=[source])
    run = case.run("nvidia", "probe_nvidia.prober")
    assert run.status == "ok", run.reason
    tree.file(FILE, json.dumps(run.sightings))
    probers = {"sightings": {"target": "probe_core.testing.sightings"}}
    made = probe_core.probe(machine=tree.machine(), only=["sightings"], probers=probers)
    return validated(made.to_json())  # type: ignore[arg-type]
