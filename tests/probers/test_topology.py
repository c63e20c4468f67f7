"""Packages, cores, threads and clocks from the kernel's files."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.machine import cpu_list
from probe_core.probers.cpu_files import clocks, cores_of, nodes, nodes_of, online, package, sockets

CPUS = "/sys/devices/system/cpu"


def packages(machine: Machine) -> list[Any]:
    """Return the counts of each package, without the CPUs of each core."""
    groups = sockets(machine, online(machine))
    found: list[Any] = [package(machine, members, cores_of(machine, members)) for members in groups]
    for counts in found:
        for cluster in counts.get("clusters", ()):
            del cluster["members"]
    return found


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("0", [0]),
        ("5-4", []),
        ("", []),
        (None, []),
        ("a-b,7", [7]),
        ("0-99999999999", []),
        ("-3", []),
        (" 1 , 2 ", [1, 2]),
        ("1-", []),
        ("0-" + "9" * 5000 + ",7", [7]),
    ],
)
def test_kernel_lists(text: str | None, numbers: list[int]) -> None:
    assert cpu_list(text) == numbers


def test_list_that_repeats_itself_ends() -> None:
    assert cpu_list("0-65535," * 100_000) == list(range(65_536))


def machine(tree: Tree, online: str, package: dict[str, str], cores: dict[int, str]) -> None:
    tree.file(f"{CPUS}/online", online)
    for members, first in ((text, cpu_list(text)[0]) for text in package.values()):
        tree.file(f"{CPUS}/cpu{first}/topology/package_cpus_list", members)
    for cpu, siblings in cores.items():
        tree.file(f"{CPUS}/cpu{cpu}/topology/core_cpus_list", siblings)


def test_two_sockets_with_two_threads_per_core(tree: Tree) -> None:
    machine(
        tree,
        "0-7",
        {"one": "0-1,4-5", "two": "2-3,6-7"},
        {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7"},
    )
    tree.link(f"{CPUS}/cpu0/node0", "/sys/devices/system/node/node0")
    tree.link(f"{CPUS}/cpu2/node1", "/sys/devices/system/node/node1")
    assert packages(tree.machine()) == [
        {"first": 0, "threads": 4, "cores": 2, "numa_node": 0},
        {"first": 2, "threads": 4, "cores": 2, "numa_node": 1},
    ]


def test_files_of_older_kernels(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-1")
    tree.file(f"{CPUS}/cpu0/topology/core_siblings_list", "0-1")
    tree.file(f"{CPUS}/cpu0/topology/thread_siblings_list", "0-1")
    assert packages(tree.machine()) == [{"first": 0, "threads": 2, "cores": 1}]


def test_threads_are_not_counted_as_cores(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-63")
    assert packages(tree.machine()) == [{"first": 0, "threads": 64}]


def test_offline_processors_do_not_count(tree: Tree) -> None:
    machine(tree, "0,2", {"one": "0-3"}, {0: "0-1", 2: "2-3"})
    assert packages(tree.machine()) == [{"first": 0, "threads": 2, "cores": 2}]


def test_hybrid_processor(tree: Tree) -> None:
    machine(tree, "0-5", {"one": "0-5"}, {0: "0-1", 2: "2-3", 4: "4", 5: "5"})
    tree.file("/sys/devices/cpu_core/cpus", "0-3")
    tree.file("/sys/devices/cpu_atom/cpus", "4-5")
    tree.file(f"{CPUS}/cpu0/cpufreq/cpuinfo_max_freq", "5500000")
    tree.file(f"{CPUS}/cpu4/cpufreq/cpuinfo_max_freq", "4300000")
    (package,) = packages(tree.machine())
    assert package["cores"] == 4
    assert package["clusters"] == [
        {"kind": "cpu_core", "cores": 2, "threads": 4, "max_mhz": 5500.0},
        {"kind": "cpu_atom", "cores": 2, "threads": 2, "max_mhz": 4300.0},
    ]


@pytest.mark.parametrize(
    ("files", "current", "expected"),
    [
        ({"cpuinfo_max_freq": "3700000"}, 1000.0, {"max_mhz": 3700.0}),
        (
            {"cpuinfo_max_freq": "3800000", "base_frequency": "2000000"},
            None,
            {"max_mhz": 3800.0, "base_mhz": 2000.0},
        ),
        ({}, 2596.12, {"current_mhz": 2596.12}),
        ({}, None, {}),
        ({"cpuinfo_max_freq": "0"}, 2000.0, {"current_mhz": 2000.0}),
        ({"cpuinfo_max_freq": "999"}, 2000.0, {"current_mhz": 2000.0}),
        ({"cpuinfo_max_freq": "1000"}, 2000.0, {"max_mhz": 1.0}),
        ({"cpuinfo_max_freq": "20000000"}, 2000.0, {"max_mhz": 20000.0}),
        ({"cpuinfo_max_freq": "20000001"}, 2000.0, {"current_mhz": 2000.0}),
        ({"cpuinfo_max_freq": "99999999999"}, None, {}),
        ({"cpuinfo_max_freq": "<unknown>"}, None, {}),
    ],
)
def test_clocks(
    files: dict[str, str], current: float | None, expected: dict[str, float], tree: Tree
) -> None:
    for name, text in files.items():
        tree.file(f"{CPUS}/cpu0/cpufreq/{name}", text)
    found, why = clocks(tree.machine(), 0, current)
    assert found == expected
    assert why == "neither cpufreq nor /proc/cpuinfo gives a frequency"


def test_nodes_of_recordings_without_lists(tree: Tree) -> None:
    """hwloc's Itanium of 128 packages has the nodes' folders and masks, and no `online`."""
    for number, mask in ((0, "0000000f"), (1, "000000f0"), (10, "00000000")):
        tree.file(f"/sys/devices/system/node/node{number}/cpumap", mask)
    machine = tree.machine()
    expected = {0: frozenset(range(4)), 1: frozenset(range(4, 8)), 10: frozenset()}
    assert nodes(machine) == expected
    assert [nodes_of(machine, [cpu]) for cpu in (0, 7, 8)] == [[0], [1], []]


def test_nodes_that_list_the_same_cpus_are_the_first(tree: Tree) -> None:
    """hwloc's recording of a Xeon E5472: each of eight nodes lists all eight CPUs."""
    tree.file("/sys/devices/system/node/online", "0-7")
    for number in range(8):
        tree.file(f"/sys/devices/system/node/node{number}/cpulist", "0-7")
    assert nodes_of(tree.machine(), range(8)) == [0]


def test_folders_without_cpus_tell_no_node(tree: Tree) -> None:
    tree.file("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1 kB")
    tree.file("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1 kB")
    assert nodes(tree.machine()) is None
