"""A "live" Mac: real processes below its root, a real libc call, and their time limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_apple.prober import probe_devices
from probe_core.api import Request

GIB = 1 << 30


@pytest.fixture
def studio(mac: Any) -> Any:
    mac.sysctls |= {
        "machdep.cpu.brand_string": "Apple M2 Ultra", "hw.memsize": 192 * GIB,
        "hw.optional.arm64": 1, "iogpu.wired_limit_mb": 180224, "kern.osproductversion": "26.1",
    }  # fmt: skip
    mac.ioreg("IOAccelerator", {"model": "Apple M2 Ultra", "gpu-core-count": 76})
    mac.profiler({"chip_type": "Apple M2 Ultra"}, {"spdisplays_mtlgpufamilysupport": "metal4"})
    return mac


def test_executables_and_libc_are_asked(studio: Any, libc: Path) -> None:
    studio.install()
    (gpu,) = studio.run(libc)["said"]
    assert (gpu["name"], gpu["units"]) == ("Apple M2 Ultra", 76)
    assert gpu["memory"] == {
        "kind": "unified", "total": 192 * GIB, "usable": 176 * GIB,
        "parts": {"system": 192 * GIB, "limit": 176 * GIB},
    }  # fmt: skip
    assert gpu["driver"] == {"macos": "26.1"}
    assert gpu["extra"] == {"metal": "metal4"}


@pytest.mark.heavy
def test_slow_system_profiler_costs_its_own_facts_alone(studio: Any, libc: Path) -> None:
    studio.install("exec sleep 30\n")
    answer = studio.run(libc, deadline_s=0.5)
    (gpu,) = answer["said"]
    assert answer["seconds"] < 0.95
    assert (gpu["name"], gpu["units"]) == ("Apple M2 Ultra", 76)
    assert "extra" not in gpu
    assert "system_profiler" not in gpu["unknown"]["clocks.max_mhz"]


@pytest.mark.heavy
def test_what_only_the_slow_command_knows_has_its_reason(studio: Any, libc: Path) -> None:
    studio.install("exec sleep 30\n")
    (studio.root / "usr/sbin/ioreg-IOAccelerator.plist").unlink()
    (gpu,) = studio.run(libc, deadline_s=0.5)["said"]
    why = "/usr/sbin/system_profiler did not answer in time"
    assert gpu["unknown"]["units"] == why


def test_failing_and_missing_executables_are_reasons(studio: Any, libc: Path) -> None:
    studio.install("exit 3\n")
    (studio.root / "usr/sbin/ioreg").unlink()
    (gpu,) = studio.run(libc)["said"]
    why = gpu["unknown"]["units"]
    assert "/usr/sbin/system_profiler ended with status 3" in why
    assert "/usr/sbin/ioreg: No such file or directory" in why
    assert gpu["name"] == "Apple M2 Ultra"


def test_output_without_end_is_cut(studio: Any, libc: Path) -> None:
    studio.install("exec yes\n")
    del studio.sysctls["iogpu.wired_limit_mb"]
    (studio.root / "usr/sbin/ioreg-IOAccelerator.plist").unlink()
    (gpu,) = studio.run(libc)["said"]
    assert gpu["name"] == "Apple M2 Ultra"
    why = "/usr/sbin/system_profiler wrote more than 16777216 bytes"
    assert gpu["unknown"]["units"] == why


def test_nothing_of_a_recorded_machine_is_executed(studio: Any) -> None:
    marker = studio.root / "executed"
    studio.install(f"touch {marker}\n")
    machine = studio.record()
    (gpu,) = probe_devices(Request(machine))  # type: ignore[misc]
    assert gpu["units"] == 76
    assert not marker.exists()
