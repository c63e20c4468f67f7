"""Builds Macs: recorded ones as files, and "live" ones with executables and a libc of their own."""

from __future__ import annotations

import ctypes
import json
import plistlib
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from probe_apple.prober import probe_devices
from probe_core.api import Machine, NotApplicable, Request
from probe_core.pipeline.validate import check_sighting
from probe_core.testing.stage import Staged

GIB = 1 << 30


class Mac:
    """A folder that stands for / of a Mac. Outputs are recorded, or printed by executables."""

    def __init__(self, root: Path, arch: str = "aarch64") -> None:
        self.root = root
        self.arch = arch
        self.sysctls: dict[str, str | int] = {}
        self.outputs: dict[str, bytes] = {}

    def ioreg(self, name: str, *entries: dict[str, Any]) -> None:
        """Set what `ioreg` says of a class or a name; without entries it prints nothing."""
        self.outputs[f"ioreg-{name}.plist"] = plistlib.dumps(list(entries)) if entries else b""

    def profiler(self, hardware: dict[str, Any], *displays: dict[str, Any]) -> None:
        document = {"SPHardwareDataType": [hardware], "SPDisplaysDataType": list(displays)}
        self.outputs["system_profiler.json"] = json.dumps(document).encode()

    def record(self) -> Machine:
        folder = self.root / "recorded"
        folder.mkdir(exist_ok=True)
        for name, output in self.outputs.items():
            (folder / name).write_bytes(output)
        lines = (f"{name}: {value}\n" for name, value in self.sysctls.items())
        (folder / "sysctl.txt").write_text("".join(lines))
        return Machine(str(self.root), os="darwin", arch=self.arch)

    def said(self) -> Any:
        """Probe the recorded Mac; every device must pass the core's own checks."""
        answer = probe_devices(Request(self.record()))
        if isinstance(answer, NotApplicable):
            return answer
        for device in answer:
            assert check_sighting(device)[1] == []
        return answer

    def install(self, script: str = "") -> None:
        """Make /usr/sbin/ioreg and system_profiler print the outputs; `script` runs before."""
        folder = self.root / "usr/sbin"
        folder.mkdir(parents=True)
        for name, output in self.outputs.items():
            (folder / name).write_bytes(output)
        # The last argument of ioreg is the class or name; a missing file is its empty answer.
        tail = f'for last; do :; done\ncat "{folder}/ioreg-$last.plist" 2>/dev/null; exit 0\n'
        self._executable(folder / "ioreg", tail)
        tail = f'cat "{folder}/system_profiler.json"\n'
        self._executable(folder / "system_profiler", script + tail)

    def _executable(self, path: Path, script: str) -> None:
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def run(self, libc: Path, deadline_s: float = 8.0) -> dict[str, Any]:
        """Probe the "live" Mac here, where `libc` stands for its own, which has `sysctlbyname`."""
        lines = (f"{name} {value}\n" for name, value in self.sysctls.items())
        (self.root / "sysctls").write_text("".join(lines))
        machine = Staged(Machine(str(self.root), os="darwin", arch=self.arch))
        real = ctypes.CDLL
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(ctypes, "CDLL", lambda name: real(str(libc) if name is None else name))
            changed.setenv("FAKE_SYSCTLS", str(self.root / "sysctls"))
            changed.setenv("PATH", "/usr/bin:/bin")
            start = time.monotonic()
            said = probe_devices(Request(machine, deadline_s=deadline_s))
            seconds = time.monotonic() - start
        said = said.reason if isinstance(said, NotApplicable) else json.loads(json.dumps(said))
        return {"said": said, "seconds": seconds}


@pytest.fixture(scope="session")
def new_mac() -> type[Mac]:
    """Return the builder of a Mac, for those that a test places itself."""
    return Mac


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


@pytest.fixture
def intel_mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path, "x86_64")


@pytest.fixture(scope="session")
def libc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library with macOS's sysctlbyname."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler for the fake libc")
    built = tmp_path_factory.mktemp("libc") / "libsysctl.so"
    source = Path(__file__).parent / "sysctl.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", built, source], check=True)
    return built
