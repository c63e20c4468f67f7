"""What checks of drivers say of each state that files can be in: no prober runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_doctor_boards import of_vendor, outcome
from trees import Tree

from probe_core import Machine
from probe_core.doctor.check import Request
from probe_core.doctor.checks.absence import points_to_one
from probe_core.doctor.checks.containers import TOOLKIT, toolkit
from probe_core.doctor.checks.drivers import hailort, licence, offered
from probe_core.doctor.checks.systems import processor

GIB = 1 << 30
TOKENS, SERVER = "/etc/nvidia/ClientConfigToken", "/etc/nvidia/gridd.conf"
NO_LICENCE = f"{TOKENS} has no .tok; {SERVER} names no server"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ("unknown", "/etc/nvidia is not there")),
        ({SERVER: ""}, ("failed", NO_LICENCE)),
        ({SERVER: "# ServerAddress=a\nServerAddress= \nServerPort=7070\n"}, ("failed", NO_LICENCE)),
        ({SERVER: "FeatureType=0\n  ServerAddress=licences.example\n"}, ("passed", None)),
        ({f"{TOKENS}/a.tok": "t"}, ("passed", None)),
        ({f"{TOKENS}/a.txt": "t"}, ("failed", NO_LICENCE)),
    ],
    ids=range(6),
)
def test_the_licence_of_a_virtual_gpu(
    files: dict[str, str], expected: tuple[str, str | None], tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    for path, text in files.items():
        tree.file(path, text)
    found = of_vendor("nvidia", extra={"virtualization": "vgpu"})
    assert outcome(licence.run(Request(tree.machine(), found))) == expected


@pytest.mark.parametrize("fields", [{}, {"extra": None}, {"extra": {"virtualization": "none"}}])
def test_a_real_gpu_needs_no_licence(fields: dict[str, Any], tmp_path: Path) -> None:
    request = Request(Machine(str(tmp_path)), of_vendor("nvidia", **fields))
    assert outcome(licence.run(request))[0] == "not_applicable"


LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NO_HAILO = "no Hailo device is here whose driver tells its version"
NO_LIBRARY = "no libhailort.so.VERSION is in the folders of the loader"
DRIVER = "/sys/module/hailo_pci/version"


@pytest.mark.parametrize(
    ("driver", "libraries", "expected"),
    [
        (None, ["4.21.0"], ("not_applicable", NO_HAILO)),
        ("4.21.0\n", [], ("unknown", NO_LIBRARY)),
        ("4.21.0\n", ["4"], ("unknown", NO_LIBRARY)),
        ("4.21\n", ["4.21.0"], ("unknown", NO_LIBRARY)),
        ("4.21.0\n", ["4.20.0", "4.21.0"], ("passed", None)),
        ("4.21.0\n", ["4.20.1", "4.20.0"],
         ("failed", f"{DRIVER}: 4.21.0; the library is {LIBRARIES}/libhailort.so.4.20.0")),
        ("4.21.0\n", ["4.a.0", "4.21.0.1", "4.19.0"],
         ("failed", f"{DRIVER}: 4.21.0; the library is {LIBRARIES}/libhailort.so.4.19.0")),
    ],
    ids=range(7),
)  # fmt: skip
def test_the_version_of_hailort(
    driver: str | None, libraries: list[str], expected: tuple[str, str | None], tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    if driver is not None:
        tree.file(DRIVER, driver)
    for name in libraries:
        tree.file(f"{LIBRARIES}/libhailort.so.{name}", b"\x7fELF\x02")
    request = Request(tree.machine(), of_vendor("hailo", kind="npu"))
    assert outcome(hailort.run(request)) == expected


NODES = "/sys/class/kfd/kfd/topology/nodes"
BANK = "heap_type {}\nsize_in_bytes {}\nflags 0\n"


@pytest.mark.parametrize(
    ("banks", "expected"),
    [
        ([], ("passed", None)),
        ([BANK.format(1, 90 * GIB)], ("passed", None)),
        ([BANK.format(1, 89 * GIB)],
         ("failed", "mem_banks of the compute interface: 89 GiB of 100 GiB")),
        ([BANK.format(1, 50 * GIB), BANK.format(2, 40 * GIB)], ("passed", None)),
        ([BANK.format(2, 50 * GIB), BANK.format(0, 40 * GIB)],
         ("failed", "mem_banks of the compute interface: 50 GiB of 100 GiB")),
        ([BANK.format(1, "much")], ("passed", None)),
        (["a line of words\nheap_type 1\n"], ("passed", None)),
        ([BANK.format(1, 10 * GIB)] * 9,
         ("failed", "mem_banks of the compute interface: 80 GiB of 100 GiB")),
    ],
    ids=range(8),
)  # fmt: skip
def test_what_rocm_is_offered_of_memory_that_was_set_aside(
    banks: list[str], expected: tuple[str, str | None], tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    tree.file(f"{NODES}/1/properties", f"domain 0\nlocation_id {1 << 8}\n")
    for at, text in enumerate(banks):
        tree.file(f"{NODES}/1/mem_banks/{at}/properties", text)
    memory = {"kind": "unified", "total": 110 * GIB, "parts": {"vram": 100 * GIB}}
    fields = {"id": "pci:0000:01:00.0", "ids": ["pci:0000:01:00.0"], "arch": "rdna3.5"}
    found = of_vendor("amd", memory=memory, **fields)
    assert outcome(offered.run(Request(tree.machine(), found))) == expected
    nothing = ("not_applicable", "no processor's graphics with memory of its own is here")
    for changes in (
        {"arch": "cdna3", "memory": memory},
        {"memory": {**memory, "kind": "dedicated"}},
        {"memory": {**memory, "parts": None}},
    ):
        found = of_vendor("amd", **(fields | changes))
        assert outcome(offered.run(Request(tree.machine(), found))) == nothing


@pytest.mark.parametrize(
    ("kind", "name", "flags", "status"),
    [
        ("gpu", "QEMU Virtual CPU", ["sse2", "hypervisor"], "failed"),
        ("npu", "QEMU Virtual CPU", ["sse2", "hypervisor"], "failed"),
        ("display", "QEMU Virtual CPU", ["sse2", "hypervisor"], "not_applicable"),
        ("gpu", "QEMU Virtual CPU", ["sse2", "hypervisor", "avx"], "passed"),
        ("gpu", "Intel Celeron G3930", ["sse2", "hypervisor"], "passed"),
        ("gpu", "Intel Pentium", ["sse2", "hypervisor"], "passed"),
        ("gpu", "Intel Atom", ["sse2", "hypervisor"], "passed"),
        ("gpu", None, ["sse2", "hypervisor"], "failed"),
        ("gpu", "AMD EPYC", ["sse2"], "not_applicable"),
        ("gpu", "Ampere Altra", ["hypervisor"], "not_applicable"),
        ("gpu", "AMD EPYC", "sse2 hypervisor", "not_applicable"),
        ("gpu", "AMD EPYC", None, "not_applicable"),
    ],
    ids=range(12),
)
def test_a_processor_without_avx_in_a_virtual_machine(
    kind: str, name: str | None, flags: object, status: str, tmp_path: Path
) -> None:
    found = of_vendor("acme", kind=kind)
    found["devices"].append(
        {"kind": "cpu", "id": "cpu:0", "ids": ["cpu:0"], "vendor": "acme", "name": name}
        | {"cpu": {"flags": flags}}
    )
    result: Any = processor.run(Request(Machine(str(tmp_path)), found))
    assert result["status"] == status


@pytest.mark.parametrize(("there", "status"), [(True, "passed"), (False, "failed")])
def test_a_toolkit_that_looks_for_an_operators_driver(
    there: bool, status: str, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    tree.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Kernel Module  580.95.05")
    tree.file(TOOLKIT, '[nvidia-container-cli]\nroot = "/run/nvidia/driver"\n')
    if there:
        tree.file("/run/nvidia/driver/usr/bin/nvidia-smi", "")
    found, evidence = outcome(toolkit.run(Request(tree.machine(), of_vendor("nvidia"))))
    assert found == status
    if not there:
        assert evidence == f"{TOOLKIT}: root is /run/nvidia/driver, which has no usr"


def test_which_findings_are_signs_of_an_accelerator_that_is_not_there() -> None:
    found: Any = [{"code": "tdr"}, {"code": "device-lost"}]
    assert [points_to_one(found[:at]) for at in range(3)] == [False, False, True]
