"""Cores, packages and clocks from files, at the bounds of what counts; and PCI functions."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.probers.cpu_files import (
    CORE,
    CPUS,
    clocks,
    cores_at,
    cores_of,
    first_clocks,
    nodes_of,
    offline,
    online,
    packages_of,
    parse,
    places,
    siblings,
    sockets,
    split,
    whole,
)
from probe_core.sysfs.pci import Function, functions, hexadecimal, identity, normal_id
from probe_core.testing import Tree

NO_CLOCK = "neither cpufreq nor /proc/cpuinfo gives a frequency"


def freq(tree: Tree, cpu: int, most: object = None, base: object = None) -> None:
    folder = f"{CPUS}/cpu{cpu}/cpufreq"
    for name, value in (("cpuinfo_max_freq", most), ("base_frequency", base)):
        if value is not None:
            tree.file(f"{folder}/{name}", f"{value}\n")


@pytest.mark.parametrize(
    ("most", "base", "current", "expected"),
    [
        (5_000_000, 3_000_000, 2000.0, {"max_mhz": 5000, "base_mhz": 3000}),
        (1_000, None, None, {"max_mhz": 1}),
        (999, None, None, {}),
        (20_000_000, None, None, {"max_mhz": 20_000}),
        (20_000_001, None, None, {}),
        (None, 999, 2000.0, {"current_mhz": 2000}),
        (None, None, 0.0, {}),
        (0, None, None, {}),
    ],
)
def test_the_clocks_of_a_cpu(
    most: int | None, base: int | None, current: float | None, expected: Any, tree: Tree
) -> None:
    freq(tree, 3, most, base)
    assert clocks(tree.machine(), 3, current) == (expected, NO_CLOCK)


def test_the_first_four_cpus_are_asked_for_a_clock(tree: Tree) -> None:
    freq(tree, 3, 2_000_000)
    freq(tree, 4, 3_000_000)
    machine = tree.machine()
    assert first_clocks(machine, [0, 1, 2, 3, 4]) == {"max_mhz": 2000}
    assert first_clocks(machine, [0, 1, 2, 5, 3]) == {}
    assert first_clocks(machine, [4, 3]) == {"max_mhz": 3000}


def kinds(clusters: list[Any]) -> list[tuple[Any, ...]]:
    return [(c["kind"], c["cores"], c["threads"], c["members"], c.get("max_mhz")) for c in clusters]


def test_cores_with_fewer_threads_are_efficient(tree: Tree) -> None:
    freq(tree, 0, 5_000_000)
    freq(tree, 4, 4_000_000)
    found = split(tree.machine(), [[0, 1], [2, 3], [4], [5]])
    assert kinds(found) == [
        ("performance", 2, 4, [[0, 1], [2, 3]], 5000),
        ("efficiency", 2, 2, [[4], [5]], 4000),
    ]
    assert all(cluster["guessed"] for cluster in found)


@pytest.mark.parametrize(
    ("first", "last", "is_split"),
    [(6_000_000, 5_400_000, False), (6_000_000, 5_399_000, True), (4_000_000, 6_000_000, True)],
)
def test_a_tenth_less_is_a_favoured_core(first: int, last: int, is_split: bool, tree: Tree) -> None:
    for cpu, most in enumerate([first, 6_000_000, last]):
        freq(tree, cpu, most)
    found = split(tree.machine(), [[0], [1], [2]])
    assert bool(found) is is_split
    if first < last:
        assert kinds(found)[1][:4] == ("efficiency", 1, 1, [[0]])


def test_any_lower_base_clock_tells_an_efficiency_core(tree: Tree) -> None:
    for cpu, base in enumerate([3_000_000, 3_000_000, 2_999_000]):
        freq(tree, cpu, 5_000_000, base)
    assert [cluster["cores"] for cluster in split(tree.machine(), [[0], [1], [2]])] == [2, 1]
    assert split(tree.machine(), [[0], [1]]) == []


def topology(tree: Tree, cpu: int, **files: str) -> None:
    for name, text in files.items():
        tree.file(f"{CPUS}/cpu{cpu}/topology/{name}", f"{text}\n")


def test_siblings_come_from_the_first_file_that_tells(tree: Tree) -> None:
    topology(tree, 0, core_cpus_list="0-1", thread_siblings="f")
    topology(tree, 2, thread_siblings="c")
    topology(tree, 4, thread_siblings_list="4")
    machine = tree.machine()
    assert [siblings(machine, cpu, CORE) for cpu in (0, 2, 4, 5)] == [[0, 1], [2, 3], [4], []]
    assert cores_of(machine, [0, 1, 2, 3, 4]) == [[0, 1], [2, 3], [4]]
    assert cores_of(machine, [1, 0]) is None  # of CPU 1 nothing tells
    assert cores_of(machine, [0, 2]) == [[0], [2]]
    assert cores_of(machine, [4, 5]) is None
    assert cores_of(machine, [4, 5], single=True) == [[4], [5]]
    assert cores_of(machine, []) == []


def test_packages_as_the_kernel_groups_them(tree: Tree) -> None:
    topology(tree, 0, package_cpus_list="0-1")
    topology(tree, 2, core_siblings_list="2-9")
    topology(tree, 4, package_cpus_list="0-1")  # not its own CPU: it says nothing
    assert sockets(tree.machine(), [0, 1, 2, 3, 4, 5]) == [[0, 1], [2, 3, 4, 5]]
    assert sockets(tree.machine(), [4, 5, 6]) == [[4, 5, 6]]
    assert sockets(tree.machine(), []) == []


def test_cpus_that_run(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-1,3\n")
    tree.file(f"{CPUS}/present", "0-5\n")
    machine = tree.machine()
    assert (online(machine), offline(machine, [0, 1, 3])) == ([0, 1, 3], 3)


def test_cpus_without_a_list_of_them(tree: Tree) -> None:
    for cpu, state in enumerate(["", "1", "0", "1"]):
        tree.file(f"{CPUS}/cpu{cpu}/online", state)
    tree.file(f"{CPUS}/cpufreq/x", "")
    assert online(tree.machine()) == [0, 1, 3]
    topology(tree, 3, core_id="0")
    topology(tree, 2, core_id="0")
    assert online(tree.machine()) == [3]
    assert offline(tree.machine(), [3]) == 0


def test_the_node_of_a_package_without_a_list_of_nodes(tree: Tree) -> None:
    tree.file(f"{CPUS}/cpu4/node1/x", "")
    assert nodes_of(tree.machine(), [4]) == [1]
    assert nodes_of(tree.machine(), [5]) == []
    listed = {0: frozenset({0, 1}), 1: frozenset({2}), 2: frozenset[int]()}
    assert nodes_of(tree.machine(), [1, 2], listed) == [0, 1]
    assert nodes_of(tree.machine(), [2], listed) == [1]


def block(**lines: object) -> str:
    return "".join(f"{name.replace('_', ' ')}\t: {value}\n" for name, value in lines.items())


def test_processors_by_their_places(tree: Tree) -> None:
    blocks = [
        block(processor=0, physical_id=0, core_id=0), block(processor=1, core_id=0),
        block(processor=2, physical_id=1), block(processor=-1, core_id=9), "other: 1\n",
    ]  # fmt: skip
    tree.file("/proc/cpuinfo", "\n".join(blocks))
    listed = places(tree.machine())
    assert listed == {0: (0, 0), 1: (0, 0), 2: (1, None)}
    assert packages_of(listed) == [[0, 1], [2]]
    assert cores_at(listed, [0, 1]) == [[0, 1]]
    assert cores_at(listed, [0, 2]) is None
    assert cores_at(listed, [7]) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("0x1f", 31), ("-1", -1), ("1" * 20, int("1" * 20)), ("1" * 21, None), ("", None)],
)
def test_numbers_as_kernels_print_them(text: str, number: int | None) -> None:
    assert whole(text) == number
    assert whole(None) is None
    assert whole("x") is None


@pytest.mark.parametrize(
    ("mhz", "expected"),
    [("1", 1.0), ("0.9", None), ("20000", 20_000.0), ("20000.1", None), ("x", None)],
)
def test_the_clock_that_a_processor_shows(mhz: str, expected: float | None) -> None:
    text = f"vendor_id : GenuineIntel\ncpu MHz : {mhz}\n"
    assert parse(text).get("mhz") == expected
    assert parse(f"cpu : POWER9\nclock : {mhz}MHz\n").get("mhz") == expected


def test_figures_of_an_x86_processor() -> None:
    lines = "vendor_id: {}\ncpu family: 0\nmodel: 0\nstepping: 0\ncpu cores: 0\nsiblings: 0\n"
    names = ["GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "Shanghai", "Other"]
    found = [parse(lines.format(name)) for name in names]
    assert [facts["vendor"] for facts in found] == [
        "intel", "amd", "hygon", "zhaoxin", "zhaoxin", "other"
    ]  # fmt: skip
    # A family of 0 is one; a package of no core is none.
    assert found[0] == {
        "vendor_id": "GenuineIntel", "vendor": "intel", "family": 0, "model": 0, "stepping": 0,
        "flags": [],
    }  # fmt: skip


def test_flags_that_all_cores_have() -> None:
    text = "flags: avx avx2 other\n\nflags: avx2 sse2\n"
    assert parse(text)["flags"] == ["avx2"]
    assert parse("hart isa: rv64imafdcv_zvfh_zicbom\n")["flags"] == ["v", "zvfh"]
    assert parse("Features: ASIMD sve\n")["flags"] == ["asimd", "sve"]


# PCI functions.


def test_functions_of_a_vendor(tree: Tree) -> None:
    for at, (ids, cls) in enumerate(
        [("10de:2684", "030000"), ("10de:22ba", "040300"), ("1002:744c", "030000")]
    ):
        tree.pci(f"0000:0{3 - at}:00.0", ids, pci_class=cls)
    machine = tree.machine()

    def found(bus: Any, *classes: str) -> list[str]:
        return [f.address for f in functions(machine, bus, ["10de"], classes)]

    assert found([]) == ["0000:02:00.0", "0000:03:00.0"]
    assert found([], "03") == ["0000:03:00.0"]
    assert found([], "12", "04") == ["0000:02:00.0"]
    seen = [
        {"ids": ["pci:0000:03:00.0"], "pci": {"id": "10de:2684", "class": "030000"}},
        {"ids": ["pci:0000:01:00.0"], "pci": {"id": "1002:744c", "class": "030000"}},
        {"ids": ["uuid:x"]},
    ]
    # What the bus prober saw is not looked for again, and what it does not tell is read.
    assert found(seen, "03") == ["0000:03:00.0"]
    assert found(seen, "04") == []
    assert found([{"ids": ["pci:0000:02:00.0"]}], "04") == ["0000:02:00.0"]
    assert found([{"ids": ["pci:0000:02:00.0"]}], "03") == ["0000:02:00.0"]
    assert found([{"ids": ["pci:0000:01:00.0"]}]) == []
    assert found([{"ids": ["uuid:x"]}]) == ["0000:02:00.0", "0000:03:00.0"]


def test_the_facts_of_a_function(tree: Tree) -> None:
    tree.pci("0000:01:00.0", "10de:2684", pci_class="030200", driver="nvidia")
    function = Function(tree.machine(), "0000:01:00.0")
    assert (function.id, function.vendor, function.product) == ("pci:0000:01:00.0", "10de", "2684")
    assert (function.base_class, function.driver, function.owner) == ("03", "nvidia", "")
    sighting: Any = {
        "pci": {},
        "links": [{"kind": "pcie"}],
        "node_index": {"card": 3},
        "numa_node": 0,
    }
    seen = Function(tree.machine(), "0000:09:00.0", {**sighting, "driver": {"name": "told"}})
    assert (seen.vendor, seen.product, seen.base_class, seen.driver) == ("", "", "", "told")
    machine = tree.machine()
    assert (seen.links(machine), seen.node_index(machine)) == ([{"kind": "pcie"}], {"card": 3})
    assert seen.numa_node(machine) == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x10de\n", 0x10DE),
        ("10DE", 0x10DE),
        ("0x12345678", 0x12345678),
        ("0x123456789", None),
        ("0x", None),
        ("-1", None),
        ("1_0", None),
    ],
)
def test_ids_of_a_function(text: str, number: int | None, tree: Tree) -> None:
    tree.file("/sys/x/vendor", text)
    assert hexadecimal(tree.machine(), "/sys/x/vendor") == number


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"vendor": "0x10de", "device": "0x0"}, {"id": "10de:0000"}),
        ({"vendor": "0x10de"}, {}),
        ({"vendor": "0x10000", "device": "0x1"}, {}),
        ({"vendor": "0xffff", "device": "0x1"}, {"id": "ffff:0001"}),
        ({"subsystem_vendor": "0x0", "subsystem_device": "0x0"}, {}),
        ({"subsystem_vendor": "0x0", "subsystem_device": "0x1"}, {"subsystem": "0000:0001"}),
        ({"revision": "0x0", "class": "0x0"}, {"revision": "00", "class": "000000"}),
        ({"revision": "0xff", "class": "0xffffff"}, {"revision": "ff", "class": "ffffff"}),
        ({"revision": "0x100", "class": "0x1000000"}, {}),
    ],
)
def test_what_fits_its_register(files: dict[str, str], expected: Any, tree: Tree) -> None:
    for name, text in files.items():
        tree.file(f"/sys/x/{name}", text)
    assert identity(tree.machine(), "/sys/x") == expected


def test_addresses_however_they_are_written() -> None:
    assert normal_id("00000000:01:00.0") == "pci:0000:01:00.0"
    assert normal_id("FFFFFFFF:01:00.0") is None
    assert normal_id("fffffffe:01:00.0") == "pci:fffffffe:01:00.0"
    assert normal_id("nothing") is None
