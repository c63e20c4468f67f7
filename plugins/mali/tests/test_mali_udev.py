"""udev as the second source, asked for real inside a umockdev test bed."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probe_mali import udev

needs_umockdev = pytest.mark.skipif(
    not shutil.which("umockdev-run"), reason="umockdev is not installed (Debian: umockdev)"
)
needs_pyudev = pytest.mark.skipif(
    importlib.util.find_spec("pyudev") is None, reason="pyudev is not installed"
)

# A Rock 5B under Arm's driver, as umockdev-record would write it.
ROCK_5B = """\
P: /devices/platform/fb000000.gpu
E: DRIVER=mali
E: OF_COMPATIBLE_0=arm,mali-bifrost
E: SUBSYSTEM=platform
A: gpuinfo=Mali-G610 4 cores r0p0 0xA867\\n
L: driver=../../../bus/platform/drivers/mali

P: /devices/platform/fb000000.gpu/misc/mali0
N: mali0
E: DEVNAME=/dev/mali0
E: SUBSYSTEM=misc
L: device=../../../fb000000.gpu

P: /devices/virtual/misc/fuse
N: fuse
E: DEVNAME=/dev/fuse
E: SUBSYSTEM=misc
"""

CHILD = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from probe_core.api import Machine, Request
from probe_mali import udev
from probe_mali.prober import probe_devices
devices = list(probe_devices(Request(Machine(), active=True)))
print(json.dumps([udev.folders(), devices]))
"""


@needs_umockdev
@needs_pyudev
def test_udev_and_sysfs_find_the_same_misc_device(tmp_path: Path) -> None:
    description = tmp_path / "rock5b.umockdev"
    description.write_text(ROCK_5B)
    command = ["umockdev-run", "-d", str(description), "--", sys.executable, "-c", CHILD]
    done = subprocess.run(
        [*command, json.dumps(sys.path)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    (folders, why_not), devices = json.loads(done.stdout)
    assert (folders, why_not) == (["/sys/devices/platform/fb000000.gpu"], None)
    (gpu,) = [one for one in devices if "ids" in one]
    assert gpu["ids"] == ["mali:fb000000.gpu"]
    assert (gpu["name"], gpu["units"], gpu["gpu_id"]) == ("Mali-G610", 4, "arm:0xa867")
    assert gpu["extra"]["found_by"] == ["sysfs", "udev"]


@needs_pyudev
def test_a_libudev_that_does_not_load_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyudev#83, #496: ctypes finds no library, or a folder."""
    import ctypes.util

    import pyudev  # type: ignore[import-untyped, import-not-found, unused-ignore]

    def nothing(name: str) -> Any:
        return None

    monkeypatch.setattr(ctypes.util, "find_library", nothing)
    monkeypatch.setattr(pyudev._ctypeslib.utils, "find_library", nothing)
    found, why_not = udev.folders()
    assert found == []
    assert str(why_not).startswith("udev cannot be queried: ")


def test_without_pyudev_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyudev", None)
    found, why_not = udev.folders()
    assert found == []
    assert "pyudev" in str(why_not)
