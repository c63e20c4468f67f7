"""Where an opened backend's devices are: addresses as each library gives them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from probe_tinygrad import child
from probe_tinygrad.match import match

NVIDIA = {"ids": ["pci:0000:41:00.0"], "kind": "gpu", "vendor": "nvidia"}
RADEON = {"ids": ["pci:0000:03:00.0"], "kind": "gpu", "vendor": "amd"}


def opened(monkeypatch: pytest.MonkeyPatch, **members: Any) -> Any:
    """Return a device whose module has `members`, as tinygrad's ops_* modules have."""
    module = types.ModuleType("fake_ops")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, "fake_ops", module)
    return type("FakeDevice", (), {"__module__": "fake_ops"})()


@pytest.mark.parametrize("node", ["1", "/sys/devices/virtual/kfd/kfd/topology/nodes/1"])
def test_amd_by_its_topology_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str
) -> None:
    monkeypatch.setattr(child, "_KFD", str(tmp_path))
    (tmp_path / "1").mkdir()
    # 0x4301: bus 0x43, device 0, function 1
    (tmp_path / "1" / "properties").write_text("simd_count 384\nlocation_id 17153\ndomain 1\n")
    device = opened(monkeypatch, KFDIface=types.SimpleNamespace(gpus=[node]))
    assert child.places("AMD", device) == [{"pci": "0001:43:00.1"}]


def test_internals_that_changed_give_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    (place,) = child.places("NV", opened(monkeypatch, NVKIface=types.SimpleNamespace()))
    assert place["reason"].startswith("AttributeError: ")


LIBCUDA = r"""
#include <stdio.h>
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGetPCIBusId(char *text, int size, int index) {
  if (index == 1) return 101;
  snprintf(text, size, "%s", "0000000F:C1:00.0");
  return 0;
}
"""


def test_cuda_by_its_own_bus_ids(fake: Any, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for the fake libcuda")
    (tmp_path / "c.c").write_text(LIBCUDA)
    library = ["-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(tmp_path / "c.c")]
    subprocess.run([compiler, *library], check=True)
    answer = fake.install("CUDA").probe(LD_LIBRARY_PATH=str(tmp_path))
    assert [device["ids"] for device in answer.devices] == [["pci:0000000f:c1:00.0"]]
    assert answer.finding("tinygrad-unmatched")["what"].startswith("tinygrad's CUDA:1 executes")


def fake_cl(answers: dict[int, bytes]) -> Any:
    """Return a clGetDeviceInfo that knows `answers` alone."""

    def ask(device: object, parameter: int, size: int, buffer: Any, _: object) -> int:
        if parameter not in answers or len(answers[parameter]) > size:
            return -30  # CL_INVALID_VALUE
        ctypes.memmove(buffer, answers[parameter], len(answers[parameter]))
        return 0

    return types.SimpleNamespace(clGetDeviceInfo=ask)


def uint(value: int) -> bytes:
    return value.to_bytes(4, sys.byteorder)


@pytest.mark.parametrize(
    ("answers", "place"),
    [
        ({0x1000: (2).to_bytes(8, sys.byteorder)}, {"cpu": True}),
        (
            {0x1001: uint(0x8086), 0x410F: uint(1) + uint(0x41) + uint(2) + uint(0)},
            {"vendor_id": 0x8086, "pci": "0001:41:02.0"},
        ),
        (
            {0x1001: uint(0x10DE), 0x4008: uint(0x41), 0x4009: uint(0), 0x400A: uint(0)},
            {"vendor_id": 0x10DE, "pci": "0000:41:00.0"},
        ),
        (
            {0x1001: uint(0x1002), 0x4037: uint(1) + bytes(17) + bytes([3, 0, 1])},
            {"vendor_id": 0x1002, "pci_guess": "0000:03:00.1"},
        ),
        ({0x1001: uint(0x13B5)}, {"vendor_id": 0x13B5}),
    ],
)
def test_opencl_by_whatever_extension_the_driver_has(
    monkeypatch: pytest.MonkeyPatch, answers: dict[int, bytes], place: dict[str, Any]
) -> None:
    device = opened(monkeypatch, cl=fake_cl({0x102B: b"a name\0", **answers}))
    type(device).device_ids = [7]
    assert child.places("CL", device) == [{"name": "a name", **place}]


def test_an_opencl_cpu_is_the_cpu() -> None:
    (matched,) = match("GPU", [{"cpu": True, "name": "pthread-EPYC"}], [NVIDIA])
    assert (matched.id, matched.kind) == ("cpu:0", "cpu")


def test_an_address_without_a_domain_counts_only_if_the_bus_has_it() -> None:
    place = {"vendor_id": 0x1002, "pci_guess": "0000:03:00.0"}
    assert match("CL", [place], [NVIDIA, RADEON])[0].id == "pci:0000:03:00.0"
    elsewhere = {**RADEON, "ids": ["pci:0001:03:00.0"]}
    # One AMD device: the vendor settles it; two: nothing does.
    assert match("CL", [place], [elsewhere])[0].id == "pci:0001:03:00.0"
    two = [elsewhere, {**RADEON, "ids": ["pci:0001:04:00.0"]}]
    assert match("CL", [place], two)[0].id is None


def test_a_vendor_without_a_device_has_a_reason() -> None:
    (matched,) = match("CL", [{"vendor_id": 0x8086}], [NVIDIA])
    assert (matched.id, matched.reason) == (None, "the bus shows no intel device that CL could use")


def test_several_indices_are_not_put_onto_one_device() -> None:
    matches = match("CL", [{"vendor_id": 0x10DE}, {"vendor_id": 0x10DE}], [NVIDIA])
    assert [matched.id for matched in matches] == [None, None]
