"""One chip is one device: clusters that kernels number as packages, cores they do not name."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core.api import Request
from probe_core.machine import cpu_list, cpu_mask
from probe_core.probers import cpu
from probe_core.probers.clusters import one_threaded
from probe_core.probers.cpu_files import cores_of, nodes_of, online, sockets

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
BLOCK = """processor : {cpu}
Features : fp asimd asimdhp asimddp
CPU implementer : 0x41
CPU architecture: 8
CPU variant : 0x0
CPU part : {part}

"""


def phone(tree: Tree, *clusters: tuple[str, str, int]) -> None:
    """Write clusters (CPU list, part or "", kHz), each of them a package of its own."""
    text = ""
    for listed, part, khz in clusters:
        for number in cpu_list(listed):
            folder = f"{CPUS}/cpu{number}"
            tree.file(f"{folder}/topology/core_siblings_list", listed)
            tree.file(f"{folder}/topology/thread_siblings_list", str(number))
            if khz:
                tree.file(f"{folder}/cpufreq/cpuinfo_max_freq", str(khz))
            text += BLOCK.format(cpu=number, part=part) if part else ""
    tree.file("/proc/cpuinfo", text)
    tree.file(f"{CPUS}/online", ",".join(listed for listed, _, _ in clusters))


def devices(tree: Tree) -> list[dict[str, Any]]:
    found: Any = cpu.probe_devices(Request(tree.machine()))
    return list(found)


def kinds(device: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = ("part", "cores", "threads", "max_mhz")
    return [tuple(kind.get(n) for n in names) for kind in device["cpu"].get("clusters", ())]


def test_packages_of_one_node_are_clusters(tree: Tree) -> None:
    phone(tree, ("0-3", "0xd05", 1_800_000), ("4-6", "0xd0b", 2_400_000), ("7", "0xd44", 2_900_000))
    (device,) = devices(tree)
    assert (device["units"], device["threads"]) == (8, 8)
    assert kinds(device) == [
        (0xD05, 4, 4, 1800.0),
        (0xD0B, 3, 3, 2400.0),
        (0xD44, 1, 1, 2900.0),
    ]
    assert "members" not in device["cpu"]["clusters"][0]


def test_packages_of_their_own_nodes_are_sockets(tree: Tree) -> None:
    phone(tree, ("0-3", "0xd0c", 3_000_000), ("4-7", "0xd0c", 3_000_000))
    tree.file(f"{NODES}/online", "0-1")
    tree.file(f"{NODES}/node0/cpulist", "0-3")
    tree.file(f"{NODES}/node1/cpulist", "4-7")
    assert [(d["units"], d["numa_node"]) for d in devices(tree)] == [(4, 0), (4, 1)]


def test_packages_that_share_a_node_are_clusters(tree: Tree) -> None:
    phone(tree, ("0-3", "0xd0c", 3_000_000), ("4-7", "0xd0c", 3_000_000))
    tree.link(f"{CPUS}/cpu0/node0", f"{NODES}/node0")
    tree.link(f"{CPUS}/cpu4/node0", f"{NODES}/node0")
    (device,) = devices(tree)
    assert (device["units"], kinds(device)) == (8, [])


def test_packages_that_acpi_describes_are_sockets(tree: Tree) -> None:
    phone(tree, ("0-3", "0xd0c", 3_000_000), ("4-7", "0xd0c", 3_000_000))
    tree.file("/sys/firmware/acpi/tables/PPTT", "x")
    assert [d["units"] for d in devices(tree)] == [4, 4]


def test_one_core_is_counted_once_where_the_kernel_lists_each_alone(tree: Tree) -> None:
    phone(tree, *((str(n), "0xd46", 1_700_000) for n in range(4)), ("4", "0xd4e", 2_900_000))
    (device,) = devices(tree)
    assert kinds(device) == [(0xD46, 4, 4, 1700.0), (0xD4E, 1, 1, 2900.0)]


def test_a_core_that_was_off_is_of_the_kind_of_its_package_alone(tree: Tree) -> None:
    phone(tree, ("0-3", "0xd03", 1_500_000), ("4-5", "", 2_000_000))
    text = BLOCK.format(cpu=0, part="0xd03")
    tree.file("/proc/cpuinfo", text)
    (device,) = devices(tree)
    assert kinds(device) == [(0xD03, 4, 4, 1500.0), (None, 2, 2, 2000.0)]
    assert "part" not in device["cpu"]


def test_the_register_in_sys_names_what_cpuinfo_does_not(tree: Tree) -> None:
    phone(tree, ("0-1", "0xd05", 1_800_000), ("2-3", "", 2_400_000))
    for number in (2, 3):
        path = f"{CPUS}/cpu{number}/regs/identification/midr_el1"
        tree.file(path, "0x00000000410fd0b1")
    (device,) = devices(tree)
    assert [kind["part"] for kind in device["cpu"]["clusters"]] == [0xD05, 0xD0B]


def test_one_midr_for_all_names_no_core_of_differing_clocks(tree: Tree) -> None:
    phone(tree, ("0-3", "", 1_500_000), ("4-7", "", 2_100_000))
    head = "".join(f"processor : {n}\n" for n in range(8))
    tree.file("/proc/cpuinfo", head + BLOCK.format(cpu=7, part="0xd03").partition("\n")[2])
    (device,) = devices(tree)
    assert kinds(device) == [(None, 4, 4, 1500.0), (None, 4, 4, 2100.0)]
    assert device["cpu"]["architecture"] == 8
    assert "part" not in device["cpu"]


def test_two_kinds_in_one_line_name_none(tree: Tree) -> None:
    phone(tree, ("0-3", "", 1_300_000), ("4-7", "", 1_700_000))
    head = "".join(f"processor : {n}\n\n" for n in range(8))
    text = BLOCK.format(cpu=7, part="0xc07 & 0xc0f").partition("\n")[2]
    tree.file("/proc/cpuinfo", head + text.replace("architecture: 8", "architecture: 7"))
    (device,) = devices(tree)
    assert (device["units"], device["cpu"]["architecture"]) == (8, 7)
    assert "part" not in device["cpu"]


def test_a_core_without_a_clock_is_of_its_package(tree: Tree) -> None:
    phone(tree, ("0-3", "0xc07", 0))
    tree.file(f"{CPUS}/cpu2/cpufreq/cpuinfo_max_freq", "1190400")
    (device,) = devices(tree)
    assert (device["units"], kinds(device)) == (4, [])


@pytest.mark.parametrize(
    ("implementer", "part", "is_one"),
    [
        *((vendor, 0x1, True) for vendor in (0x41, 0x46, 0x4E, 0x50, 0x51, 0x53, 0x61, 0x6D, 0xC0)),
        *((vendor, 0x1, False) for vendor in (0x42, 0x43, 0x48, 0x52, 0x69)),
        *((0x41, part, False) for part in (0xD06, 0xD43, 0xD4A)),
        (0x42, 0x516, False),
        (0x43, 0x0AF, False),
        (0x4E, 0x010, False),
    ],
)
def test_vendors_whose_cores_have_one_thread(implementer: int, part: int, is_one: bool) -> None:
    core: Any = {"implementer": implementer, "part": part}
    assert one_threaded({0: core}) is is_one


def test_cores_without_topology_count_where_they_have_one_thread(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-3")
    tree.file("/proc/cpuinfo", "".join(BLOCK.format(cpu=n, part="0xd03") for n in range(4)))
    assert devices(tree)[0]["units"] == 4
    # ThunderX2 has four threads a core: without topology nobody knows.
    text = BLOCK.replace("0x41", "0x43")
    tree.file("/proc/cpuinfo", "".join(text.format(cpu=n, part="0x0af") for n in range(4)))
    assert "units" not in devices(tree)[0]


def test_offline_cpus_are_counted_apart(tree: Tree) -> None:
    phone(tree, ("0-3", "0xd03", 1_500_000))
    tree.file(f"{CPUS}/present", "0-7")
    (device,) = devices(tree)
    assert (device["threads"], device["cpu"]["offline"]) == (4, 4)


def test_packages_of_minus_one(tree: Tree) -> None:
    """The kernel knows no package: each core lists itself alone."""
    phone(tree, *((str(n), "0x04d", 1_512_000) for n in range(2)))
    assert [d["units"] for d in devices(tree)] == [2]


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("00000000,00001111", [0, 4, 8, 12]),
        ("3", [0, 1]),
        ("80000000,00000000", [63]),
        ("0", []),
        ("", []),
        (None, []),
        ("xyz", []),
        ("f" * 20_000, []),
    ],
)
def test_masks_of_older_kernels(text: str | None, cpus: list[int]) -> None:
    assert cpu_mask(text) == cpus


def test_kernels_without_lists_and_without_online(tree: Tree) -> None:
    for number in range(4):
        folder = f"{CPUS}/cpu{number}/topology"
        tree.file(f"{folder}/core_siblings", "0000000f")
        tree.file(f"{folder}/thread_siblings", "00000005" if number % 2 == 0 else "0000000a")
    tree.file(f"{CPUS}/cpu9/online", "0")
    tree.file(f"{CPUS}/cpufreq/x", "")
    machine = tree.machine()
    assert online(machine) == [0, 1, 2, 3]
    assert sockets(machine, online(machine)) == [[0, 1, 2, 3]]
    assert cores_of(machine, range(4)) == [[0, 2], [1, 3]]


def test_a_cpu_that_does_not_list_itself_says_nothing(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-3")
    tree.file(f"{CPUS}/cpu0/topology/package_cpus_list", "7-9")
    assert sockets(tree.machine(), range(4)) == [[0, 1, 2, 3]]


def test_1024_cpus_with_holes(tree: Tree) -> None:
    running = [cpu for cpu in range(1024) if cpu % 8]
    assert len(sockets(tree.machine(), running)[0]) == 896


def test_nodes_without_cpus_are_no_package_s(tree: Tree) -> None:
    tree.file(f"{NODES}/online", "0,8,255")
    tree.file(f"{NODES}/node0/cpulist", "0-3")
    tree.file(f"{NODES}/node8/cpulist", "4-7")
    tree.file(f"{NODES}/node255/cpulist", "")
    machine = tree.machine()
    assert (nodes_of(machine, [0, 1]), nodes_of(machine, range(8))) == ([0], [0, 8])


INTEL = """processor : 0
vendor_id : GenuineIntel
cpu family : 6
model : {model}
model name : {name}
flags : fpu sse2 lm avx avx2 fma

"""


def intel(tree: Tree, cores: list[str], clocks: dict[str, list[int]]) -> list[dict[str, Any]]:
    tree.file("/proc/cpuinfo", INTEL.format(model=186, name="Intel Core"))
    tree.file(f"{CPUS}/online", ",".join(cores))
    for number, core in enumerate(cores):
        for member in cpu_list(core):
            tree.file(f"{CPUS}/cpu{member}/topology/core_cpus_list", core)
            for name, values in clocks.items():
                tree.file(f"{CPUS}/cpu{member}/cpufreq/{name}", str(values[number] * 1000))
    clusters: list[dict[str, Any]] = devices(tree)[0]["cpu"].get("clusters", [])
    return clusters


def test_a_hybrid_is_split_by_its_threads(tree: Tree) -> None:
    found = intel(tree, ["0-1", "2-3", "4", "5"], {})
    assert [(k["kind"], k["cores"], k["threads"]) for k in found] == [
        ("performance", 2, 4),
        ("efficiency", 2, 2),
    ]


@pytest.mark.parametrize(
    ("clocks", "kinds"),
    [
        ({"base_frequency": [1400, 1400, 2000]}, [1, 2]),  # Lakefield lists the large core last
        ({"cpuinfo_max_freq": [5500, 5700, 4600]}, [2, 1]),
        ({"cpuinfo_max_freq": [5200, 5000, 5000]}, []),  # a favoured core is no other kind
        ({}, []),
    ],
)
def test_a_hybrid_is_split_by_its_clocks(
    clocks: dict[str, list[int]], kinds: list[int], tree: Tree
) -> None:
    assert [kind["cores"] for kind in intel(tree, ["0", "1", "2"], clocks)] == kinds
