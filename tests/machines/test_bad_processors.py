"""Empty, half and contradictory files of processors: counts from what is there, else a reason."""

from __future__ import annotations

from typing import Any

import pytest
from reports import report_of
from trees import Tree

CPUS = "/sys/devices/system/cpu"
NO_UNITS = "cpu: the kernel's files do not show which threads share a core"
UNKNOWN = "neither cpuid, MIDR, brand nor flags name a known core"
BLOCK = """processor : {cpu}
vendor_id : GenuineIntel
cpu family : 6
model : 63
model name : Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz
siblings : {siblings}
cpu cores : {cores}
{place}flags : fpu sse2 lm avx avx2 fma

"""
PLACE = "physical id : {}\ncore id : {}\n"


def cpuinfo(count: int, siblings: int = 4, cores: int = 2) -> str:
    blocks = (BLOCK.format(cpu=n, siblings=siblings, cores=cores, place="") for n in range(count))
    return "".join(blocks)


def topology(tree: Tree, online: str | None, *lists: tuple[str, str]) -> None:
    """Write `online`, and each CPU's lists of its package and core ("" for no file)."""
    if online is not None:
        tree.file(f"{CPUS}/online", online)
    for cpu, (package, core) in enumerate(lists):
        for name, text in (("package_cpus_list", package), ("core_cpus_list", core)):
            if text:
                tree.file(f"{CPUS}/cpu{cpu}/topology/{name}", text)


def processors(tree: Tree) -> list[Any]:
    report = report_of(tree.machine())
    assert report["primary"] == "cpu:0"
    return [device for device in report["devices"] if device["kind"] == "cpu"]


def counts(tree: Tree) -> list[tuple[int | None, int | None]]:
    """Return cores and threads of each device; every count that is unknown has its reason."""
    devices = processors(tree)
    for device in devices:
        for field in ("units", "threads"):
            assert device.get(field) is not None or device["unknown"][field]
    return [(device["units"], device.get("threads")) for device in devices]


PAIRS = [("0-3", "0-1"), ("0-3", "0-1"), ("0-3", "2-3"), ("0-3", "2-3")]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "vendor"),
    [("", None), ("\0\0\0", None), (cpuinfo(4)[:60], "intel"), ("\n\n: :\n", None)],
)
def test_empty_or_half_cpuinfo(text: str, vendor: str | None, tree: Tree) -> None:
    tree.file("/proc/cpuinfo", text)
    topology(tree, "0-3", *PAIRS)
    assert counts(tree) == [(2, 4)]
    (device,) = processors(tree)
    assert (device["name"], device["vendor"], device["peaks"]) == (None, vendor, [])
    assert device["unknown"]["name"] == "cpu: /proc/cpuinfo has no model name"
    assert device["unknown"]["arch"] == device["unknown"]["fp32"] == UNKNOWN


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (PAIRS, [(2, 4)]),
        # Two that do not name each other: each CPU counts once.
        ([("0-3", "0-1"), ("1", "1-2"), ("2-3", "1-2"), ("0,3", "3")], [(3, 4)]),
        # A core that is wider than its package.
        ([("0-1", "0-3"), ("0-1", "0-3"), ("2-3", "0-3"), ("2-3", "0-3")], [(1, 2), (1, 2)]),
        # Lists of CPUs that are offline, or that no machine has.
        ([("0-7", f"{n},{n + 4}") for n in range(4)], [(4, 4)]),
        ([("0-3,70000", "0-1,9999999")] * 2 + [("0-3", "2-3")] * 2, [(2, 4)]),
        # No list that holds its own CPU, or none at all: as /proc/cpuinfo's siblings and cores.
        ([("7-9", ""), ("x", ""), ("", ""), ("9-1", "")], [(2, 4)]),
        # One CPU was switched off while the files were read.
        ([("0-3", "0-1"), ("0-3", "0-1"), ("0-3", "2"), ("", "")], [(2, 4)]),
    ],
)
def test_contradictory_topology(
    lists: list[tuple[str, str]], expected: list[tuple[int, int]], tree: Tree
) -> None:
    tree.file("/proc/cpuinfo", cpuinfo(4))
    topology(tree, "0-3", *lists)
    assert counts(tree) == expected


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("online", "siblings", "cores", "expected"),
    [
        ("0-3", 4, 2, [(2, 4)]),
        ("0-3", 16, 8, [(None, 4)]),  # the counts of another package: cores are not known
        ("2", 4, 4, [(None, 1)]),
        ("x-y,9-3,0-99999999,-5,2", 1, 1, [(1, 1)]),
        ("0-1,1-2,0", 3, 3, [(3, 3)]),
    ],
)
def test_cpuinfo_counts_only_for_a_package_of_its_siblings(
    online: str, siblings: int, cores: int, expected: list[tuple[int, int]], tree: Tree
) -> None:
    tree.file("/proc/cpuinfo", cpuinfo(4, siblings, cores))
    tree.file(f"{CPUS}/online", online)
    for cpu in range(4):
        tree.file(f"{CPUS}/cpu{cpu}/topology/physical_package_id", "-1")
    assert counts(tree) == expected
    (device,) = processors(tree)
    if expected[0][0] is None:
        assert device["unknown"]["units"] == NO_UNITS
        assert device["unknown"]["peaks"] == "the number of its cores could not be read"


def test_offline_cpus_and_holes(tree: Tree) -> None:
    tree.file("/proc/cpuinfo", cpuinfo(2))
    tree.file(f"{CPUS}/present", "0-31")
    running = [*range(8), *range(16, 24)]
    tree.file(f"{CPUS}/online", "0-7,16-23")
    for cpu in running:
        tree.file(f"{CPUS}/cpu{cpu}/topology/package_cpus_list", "0-31")
        tree.file(f"{CPUS}/cpu{cpu}/topology/core_cpus_list", f"{cpu % 16},{cpu % 16 + 16}")
    assert counts(tree) == [(8, 16)]
    assert processors(tree)[0]["cpu"]["offline"] == 16


def test_no_online(tree: Tree) -> None:
    tree.file("/proc/cpuinfo", cpuinfo(4))
    topology(tree, None, *PAIRS)
    tree.file(f"{CPUS}/cpu4/online", "0")
    tree.file(f"{CPUS}/cpufreq/policy0/x", "1")
    assert counts(tree) == [(2, 4)]


@pytest.mark.heavy
def test_1024_cpus(tree: Tree) -> None:
    tree.file("/proc/cpuinfo", cpuinfo(1024, 512, 256))
    lists = [(f"{n // 512 * 512}-{n // 512 * 512 + 511}", f"{n & ~1}-{n | 1}") for n in range(1024)]
    topology(tree, "0-1023", *lists)
    assert counts(tree) == [(256, 512), (256, 512)]


def test_1024_cpus_of_cpuinfo_alone(tree: Tree) -> None:
    """A sandbox that masks /sys: packages and cores are those of the file, where it has them."""
    tree.file("/proc/cpuinfo", cpuinfo(1024, 512, 256))
    assert counts(tree) == [(None, 1024)]
    blocks = (
        BLOCK.format(cpu=n, siblings=512, cores=256, place=PLACE.format(n // 512, n % 512 // 2))
        for n in range(1024)
    )
    tree.file("/proc/cpuinfo", "".join(blocks))
    assert counts(tree) == [(256, 512), (256, 512)]


def test_cores_of_cpuinfo_where_sys_lists_no_core(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-3")
    blocks = (
        BLOCK.format(cpu=n, siblings=8, cores=4, place=PLACE.format(0, n // 2)) for n in range(4)
    )
    tree.file("/proc/cpuinfo", "".join(blocks))
    assert counts(tree) == [(2, 4)]


def test_first_block_alone(tree: Tree) -> None:
    """What bug reports quote: the package's own counts are all there is."""
    tree.file("/proc/cpuinfo", cpuinfo(1, 28, 14))
    assert counts(tree) == [(14, 28)]


def test_online_alone(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-3")
    assert counts(tree) == [(None, 4)]
    assert processors(tree)[0]["unknown"]["units"] == NO_UNITS


def test_numbers_that_repeat_or_are_none(tree: Tree) -> None:
    midr = "CPU implementer : 0x41\nCPU part : 0xd03\nCPU architecture: 8\nFeatures : asimd\n"
    tree.file("/proc/cpuinfo", f"processor : 0\nprocessor : 0\nprocessor : -1\n{midr}")
    assert counts(tree) == [(1, 1)]
