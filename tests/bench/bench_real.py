"""What does a real driver cost, and what does our client of NVML save of it?

Runs only where an NVIDIA driver is; elsewhere there is nothing to measure. nvidia-ml-py as the
client is measured in a copy of the environment, in which it takes our client's place.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench_first import FIRST
from bench_rivals import NVITOP, PLAIN
from measure import Cost, Figure, bare, costs
from place import Place

VERSION = Path("/proc/driver/nvidia/version")
TWIN = """
import pynvml

SONAME = "libnvidia-ml.so.1"


def Client():
    return pynvml
"""
"""What stands in for `probe_nvidia.client` in the copy: nvidia-ml-py, under the same names."""


def run(place: Place) -> Iterator[Figure]:
    """Compare the command and a first `probe()` with scripts, nvidia-smi and the other client."""
    if not VERSION.exists() or not place.has("pynvml"):
        return
    found = _devices(place.python, place)
    note = f"{len(found)} x {found[0]}, driver {_driver()}"
    yield Figure("NVIDIA GPUs", len(found), "", None, note)
    twin = _twin(place)
    commands = {
        "bare": [place.python, *bare()],
        "probe": [place.python, "-m", "probe_core", "--json"],
        "probe, nvidia-ml-py": [twin, "-m", "probe_core", "--json"],
        "first": [place.python, "-c", FIRST],
        "first, nvidia-ml-py": [twin, "-c", FIRST],
        "plain": [place.python, "-c", PLAIN],
    }
    if place.has("nvitop"):
        commands["nvitop"] = [place.python, "-c", NVITOP]
    if smi := shutil.which("nvidia-smi"):
        commands["nvidia-smi"] = [smi]
    taken = costs(commands, place.rounds(25, 9), place.environ)
    for one, other, limit in (
        ("probe", "plain", 1.1),
        ("first", "plain", 1.4),
        ("probe", "nvitop", 1.0),
        ("probe", "nvidia-smi", None),
        ("probe, nvidia-ml-py", "probe", None),
        ("first, nvidia-ml-py", "first", None),
    ):
        if one in taken and other in taken:
            yield _figure(taken, one, other, limit)


def _figure(taken: dict[str, Cost], one: str, other: str, limit: float | None) -> Figure:
    wall, cpu = taken[one].against(taken[other])
    note = f"{taken[one].wall * 1000:.1f} ms against {taken[other].wall * 1000:.1f} ms"
    return Figure(f"real: {one} / {other}", wall, "x", limit, f"{note}; CPU {cpu:.2f} x")


def _devices(python: str, place: Place) -> list[str]:
    """Return the names of the NVIDIA GPUs that `probe` finds; raises where it finds none."""
    done = subprocess.run(
        [python, "-m", "probe_core", "--json"],
        env=dict(place.environ), capture_output=True, check=True, text=True,
    )  # fmt: skip
    devices = json.loads(done.stdout)["devices"]
    names = [each["name"] for each in devices if each.get("vendor") == "nvidia"]
    if not names:
        raise RuntimeError("the driver is here, and probe found no NVIDIA GPU: run probe doctor")
    return names


def _driver() -> str:
    """Return the driver's version as its kernel module states it."""
    words = VERSION.read_text().split("\n", 1)[0].split()
    return next((word for word in words if word.count(".") >= 1 and word[0].isdigit()), "unknown")


def _twin(place: Place) -> str:
    """Return the interpreter of a copy of the environment with nvidia-ml-py as the client."""
    where = (
        "import probe_nvidia, os; print(os.path.dirname(os.path.dirname(probe_nvidia.__file__)))"
    )
    done = subprocess.run([place.python, "-c", where], capture_output=True, check=True, text=True)
    home = place.folder / "twin"
    subprocess.run([place.python, "-m", "venv", "--without-pip", str(home)], check=True)
    library = next((home / "lib").glob("python3*")) / "site-packages"
    shutil.copytree(done.stdout.strip(), library, dirs_exist_ok=True)
    (library / "probe_nvidia" / "client.py").write_text(TWIN)
    python = str(home / "bin" / "python")
    subprocess.run([python, "-m", "compileall", "-q", str(library)], check=False)
    if _devices(python, place) != _devices(place.python, place):
        raise RuntimeError("with nvidia-ml-py as its client probe finds other devices")
    return python
