"""The processor of macOS and Windows, where no /proc says what it is."""

from __future__ import annotations

import ctypes
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_core.probers import cpu_other
from probe_core.probers.clusters import _neighbours
from probe_core.testing import Tree

M3 = {
    "machdep.cpu.brand_string": b"Apple M3 Max\0",
    "hw.physicalcpu": (16).to_bytes(4, sys.byteorder),
    "hw.logicalcpu": (16).to_bytes(8, sys.byteorder),
    "hw.perflevel0.physicalcpu": (12).to_bytes(4, sys.byteorder),
    "hw.perflevel1.physicalcpu": (4).to_bytes(4, sys.byteorder),
}


@pytest.fixture
def sysctls(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A libc that knows these sysctls alone."""
    known: dict[str, bytes] = {}

    def by_name(key: bytes, buffer: Any, size: Any, new: None, length: int) -> int:
        value = known.get(key.decode())
        if value is None:
            return -1
        if buffer is not None:
            buffer.raw = value
        size._obj.value = len(value)
        return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(sysctlbyname=by_name))
    monkeypatch.setattr(os, "cpu_count", lambda: 20)
    return known


def test_a_mac_says_what_it_has(sysctls: dict[str, bytes]) -> None:
    sysctls |= M3
    (device,) = cpu_other.devices(Machine(os="darwin"))
    assert device == {
        "ids": ["cpu:0"], "kind": "cpu", "name": "Apple M3 Max", "vendor": "apple",
        "units": 16, "threads": 16, "memory": {"kind": "shared"}, "backends": ["cpu"],
        "cpu": {
            "flags": [],
            "clusters": [
                {"kind": "performance", "cores": 12}, {"kind": "efficiency", "cores": 4}
            ],
        },
        "unknown": {},
    }  # fmt: skip


def test_a_mac_that_says_nothing_is_asked_through_psutil(
    sysctls: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    psutil = SimpleNamespace(cpu_count=lambda logical: 20 if logical else 10)
    monkeypatch.setitem(sys.modules, "psutil", psutil)
    (device,) = cpu_other.devices(Machine(os="darwin"))
    assert (device["units"], device["threads"], device["cpu"]) == (10, 20, {"flags": []})
    monkeypatch.setitem(sys.modules, "psutil", None)
    (device,) = cpu_other.devices(Machine(os="darwin"))
    assert device["unknown"] == {"units": "psutil is not installed, or has no count"}


@pytest.mark.parametrize(
    ("raw", "number"),
    [(b"\1\0\0\0", 1), (b"\1" + bytes(7), 1), (b"\1\0", None), (b"", None), (bytes(4097), None)],
)
def test_a_number_of_sysctl_has_four_bytes_or_eight(
    sysctls: dict[str, bytes], raw: bytes, number: int | None
) -> None:
    sysctls["x"] = raw
    assert cpu_other.sysctl_int("x") == number
    assert cpu_other.sysctl_int("none") is None


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel",
            {"vendor_id": "GenuineIntel", "family": 6, "model": 158, "stepping": 10},
        ),
        ("Family Model 3 Stepping", {"model": 3}),
        (f"Model {'1' * 21} Stepping {'1' * 20}", {"stepping": int("1" * 20)}),
        ("ARMv8 (64-bit) Family 8 Model D4B,  ", {"family": 8}),
        ("", {}),
    ],
)
def test_what_windows_says_of_a_processor(text: str, facts: dict[str, Any]) -> None:
    assert cpu_other._identifier(text) == facts
    machine = Machine(os="windows", environ={"PROCESSOR_IDENTIFIER": text})
    (device,) = cpu_other.devices(machine)
    assert device["cpu"] == {"flags": [], **facts}
    assert device.get("vendor") == ("intel" if "vendor_id" in facts else None)


@pytest.mark.parametrize(
    ("files", "cores", "cpus"),
    [
        ({"topology/cluster_cpus_list": "2-3\n"}, 4, [2, 3]),
        ({"cpufreq/related_cpus": "0 1 3\n"}, 16, [0, 1, 3]),
        ({"cpufreq/related_cpus": "0 1 3\n"}, 17, None),  # no phone: all may be of one cluster
        ({}, 4, [5]),
        ({}, 64, None),
    ],
)
def test_the_cluster_of_a_processor(
    tmp_path: Any, files: dict[str, str], cores: int, cpus: list[int] | None
) -> None:
    tree = Tree(tmp_path)
    for name, text in files.items():
        tree.file(f"/sys/devices/system/cpu/cpu5/{name}", text)
    found = [*_neighbours(tree.machine(), 5, cores)]
    assert found == (list(range(len(found))) if cpus is None else cpus)
    assert cpus is not None or len(found) > 1000
