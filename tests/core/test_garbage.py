"""Roots that no kernel would write: the report is complete, and says what could not be read."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from reports import codes, report_of
from trees import Tree

import probe_core

INTERESTING = [
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/sys/kernel/osrelease",
    "/sys/class/dmi/id/product_name",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.current",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpu0/topology/package_cpus_list",
    "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    "/sys/devices/cpu_core/cpus",
    "/sys/firmware/devicetree/base/model",
    "/sys/firmware/devicetree/base/compatible",
    "/sys/firmware/devicetree/base/gpu/compatible",
    "/sys/bus/pci/devices/0000:01:00.0/class",
    "/sys/bus/pci/devices/0000:01:00.0/vendor",
    "/sys/bus/pci/devices/0000:01:00.0/device",
    "/sys/bus/pci/devices/0000:01:00.0/revision",
    "/sys/bus/pci/devices/0000:01:00.0/subsystem_vendor",
    "/sys/bus/pci/devices/0000:01:00.0/subsystem_device",
    "/sys/bus/pci/devices/0000:01:00.0/numa_node",
    "/sys/bus/pci/devices/0000:01:00.0/current_link_speed",
    "/sys/bus/pci/devices/0000:01:00.0/current_link_width",
    "/sys/bus/pci/devices/0000:01:00.0/power/runtime_status",
]
CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "newline": b"\n",
    "not-utf8": b"\xff\xfe\x80 \xc3\n",
    "nuls": b"\0" * 64,
    "huge-number": b"9" * 60 + b"\n",
    "negative": b"-9223372036854775808\n",
    "hex": b"0xffffffffffffffff\n",
    "float": b"1e309\n",
    "escape": b"\x1b]0;owned\x07\x1b[2J\n",
    "colons": b":::\n" * 50,
    "ranges": b"0-99999999999,5-1,-,a-b,,0-\n",
    "long-line": b"x" * 100_000,
    "many-lines": b"a: b\n" * 5000,
    "key-without-value": b"processor\t:\nmodel name\t:\nflags\t\t:\ncpu MHz\t:\n",
}


@pytest.mark.parametrize("name", CONTENTS)
def test_every_file_holding_the_same_garbage(name: str, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for path in INTERESTING:
        tree.file(path, CONTENTS[name])
    complete(tree)


@pytest.mark.parametrize("seed", range(8))
def test_files_holding_random_garbage(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    tree = Tree(tmp_path, arch=chance.choice(["x86_64", "aarch64", "riscv64", "unheard-of"]))
    for path in INTERESTING:
        if chance.random() < 0.8:
            tree.file(path, chance.choice([*CONTENTS.values(), chance.randbytes(200)]))
    complete(tree)


def complete(tree: Tree) -> None:
    """Hold the report of a tree to its promises."""
    report = report_of(tree.machine())
    assert [d["id"] for d in report["devices"] if d["kind"] == "cpu"][:1] == ["cpu:0"]
    assert report["primary"]
    assert [o["status"] for o in report["outcomes"] if o["status"] == "call_error"] == []
    assert all(text.isprintable() for text in texts(report))
    for device in report["devices"]:
        assert device["memory"]["total"] is None or device["memory"]["total"] <= 64 << 40


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        yield from texts([*value.keys(), *value.values()])


def test_fifos_where_files_are_expected(tmp_path: Path) -> None:
    for path in INTERESTING:
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(place)
    complete(Tree(tmp_path))


def test_folders_where_files_are_expected(tmp_path: Path) -> None:
    for path in INTERESTING:
        (tmp_path / path.lstrip("/")).mkdir(parents=True)
    complete(Tree(tmp_path))


def test_links_that_go_in_circles(tmp_path: Path) -> None:
    for path in INTERESTING:
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(place.name)
    complete(Tree(tmp_path))


def test_files_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        tree = Tree(Path(folder))
        for path in INTERESTING:
            tree.file(path, "1\n").chmod(0)
        complete(Tree(Path(folder, "none")))  # imports what an ordinary user may not read
        with ordinary_user():
            assert tree.machine().read("/proc/cpuinfo") is None
            complete(tree)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Do without root's right to read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.heavy
def test_hundreds_of_devices_are_listed(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number in range(256):
        folder = f"/sys/bus/pci/devices/0000:{number:02x}:00.0"
        tree.file(f"{folder}/class", "0x030000")
        tree.file(f"{folder}/vendor", "0x10de")
        tree.file(f"{folder}/device", "0x2684")
    report = report_of(tree.machine())
    assert sum(device["kind"] == "gpu" for device in report["devices"]) == 256


def test_names_of_devices_that_are_no_addresses(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for name in ("x", "0000:01:00", "0000:zz:00.0", "0000:01:40.0", "a" * 200):
        tree.file(f"/sys/bus/pci/devices/{name}/class", "0x030000")
        tree.file(f"/sys/bus/pci/devices/{name}/vendor", "0x10de")
    assert [d["id"] for d in report_of(tree.machine())["devices"]] == ["cpu:0"]


def test_root_that_does_not_exist(tmp_path: Path) -> None:
    report = report_of(probe_core.Machine(str(tmp_path / "none")))
    assert codes(report) == ["no-cpu-facts", "prober-unavailable"]
    assert report["fallback"] == "degraded"
