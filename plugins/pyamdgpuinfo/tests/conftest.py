"""Builds cards that are not there, for the real library above a fake driver."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FAKES = Path(__file__).parents[3] / "tests" / "fakes"
SOURCES = [FAKES / "drm" / "fake_root.c", FAKES / "amdgpu" / "fake_amdgpu.c"]
COMPILER = shutil.which("cc") or shutil.which("gcc")

CHILD = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from probe_core.api import Machine, NotApplicable, Request
from probe_pyamdgpuinfo.prober import probe_devices
avoid = sys.argv[2:]
answer = probe_devices(Request(Machine(), active=True, avoid=avoid))
lines = [repr(answer)] if isinstance(answer, NotApplicable) else list(answer)
print(json.dumps(lines))
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two fakes as one library to preload."""
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        pytest.skip("the library is for x86-64 alone, and the fakes need glibc")
    if not COMPILER:
        pytest.skip("no C compiler for the fake driver")
    if importlib.util.find_spec("pyamdgpuinfo") is None:
        pytest.skip("pyamdgpuinfo is not installed")
    built = tmp_path_factory.mktemp("fakes") / "libfakedrm.so"
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(built), *map(str, SOURCES)]
    subprocess.run([*command, "-ldl"], check=True)
    return built


class Cards:
    """A /sys and /dev/dri with render nodes; `probe` asks the real library about them."""

    def __init__(self, root: Path, driver: Path) -> None:
        self.root = root
        self.driver = driver
        self.write("usr/share/libdrm/amdgpu.ids", "1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n")
        (root / "dev/dri").mkdir(parents=True)
        (root / "sys/class/drm").mkdir(parents=True)

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def add(
        self,
        minor: int,
        address: str,
        *,
        driver: str = "amdgpu",
        status: str = "active",
        content: str = "",
        **answers: int,
    ) -> None:
        device = f"sys/devices/pci0000:00/{address}"
        node = f"{device}/drm/renderD{minor}"
        identity = {"vendor": "0x1002", "device": "0x744c", "class": "0x030000"}
        for name, text in (identity | {"power/runtime_status": status}).items():
            self.write(f"{device}/{name}", text + "\n")
        self.write(f"{node}/dev", f"226:{minor}\n")
        self.write(f"sys/bus/pci/drivers/{driver}/bind", "")
        self.write("sys/bus/pci/devices/.keep", "")
        self.write("sys/dev/char/.keep", "")
        os.symlink(f"../../../bus/pci/drivers/{driver}", self.root / device / "driver")
        os.symlink(f"../../../{address}", self.root / node / "device")
        os.symlink(f"../../../{device[4:]}", self.root / f"sys/bus/pci/devices/{address}")
        os.symlink(f"../../{node[4:]}", self.root / f"sys/class/drm/renderD{minor}")
        os.symlink(f"../../{node[4:]}", self.root / f"sys/dev/char/226:{minor}")
        self.write(f"dev/dri/renderD{minor}", content)
        lines = "".join(f"{name} {number}\n" for name, number in answers.items())
        self.write(f"fake/renderD{minor}", lines)

    @property
    def variables(self) -> dict[str, str]:
        """What a process must start with to see the cards."""
        return {"LD_PRELOAD": str(self.driver), "FAKE_ROOT": str(self.root)}

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | self.variables,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def probe(self, *avoid: str) -> list[Any]:
        done = self.run(CHILD, json.dumps(sys.path), *avoid)
        assert done.returncode == 0, done.stderr
        lines: list[Any] = json.loads(done.stdout)
        return lines


@pytest.fixture
def cards(tmp_path: Path, driver: Path) -> Cards:
    return Cards(tmp_path, driver)


@pytest.fixture
def new_cards(driver: Path) -> Callable[[Path], Cards]:
    """Return a function that makes cards below a folder."""
    return lambda root: Cards(root, driver)
