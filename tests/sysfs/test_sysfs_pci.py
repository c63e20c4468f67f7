"""PCI functions: identity, driver, power state, SR-IOV, and which of them a prober gets."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core.sysfs import drivers, drm, pci, pcie, power


def test_function_of_a_card(tree: Tree) -> None:
    folder = tree.pci(
        "0000:01:00.0", "10de:2684", driver="nvidia", subsystem="1043:889a", revision="0xa1",
        numa_node=1,
    )  # fmt: skip
    machine = tree.machine()
    (card,) = pci.functions(machine, (), vendors=("10de",))
    assert (card.id, card.vendor, card.product) == ("pci:0000:01:00.0", "10de", "2684")
    assert card.driver == "nvidia"
    assert card.pci == {
        "id": "10de:2684", "subsystem": "1043:889a", "revision": "a1", "class": "030000",
    }  # fmt: skip
    assert (card.status, card.power_state, card.asleep) == ("active", "active", False)
    assert (card.owner, pci.numa_node(machine, folder)) == ("", 1)


def test_vendors_and_classes_choose(tree: Tree) -> None:
    tree.pci("0000:01:00.0", "1002:744c")
    tree.pci("0000:01:00.1", "1002:ab30", pci_class="040300")
    tree.pci("0000:02:00.0", "10de:2684")
    tree.pci("0000:03:00.0", "1da3:1020", pci_class="120000")
    machine = tree.machine()

    def addresses(*vendors: str, classes: tuple[str, ...] = ()) -> list[str]:
        return [one.address for one in pci.functions(machine, (), vendors, classes)]

    assert addresses("1002") == ["0000:01:00.0", "0000:01:00.1"]
    assert addresses("1002", "1da3", classes=("03", "12")) == ["0000:01:00.0", "0000:03:00.0"]
    assert addresses("8086") == []


def test_what_the_bus_prober_saw_is_not_looked_for_again(tree: Tree) -> None:
    tree.pci("0000:01:00.0", "1002:744c")
    tree.pci("0000:02:00.0", "1002:744c")
    ids = {"id": "1002:7550", "class": "038000"}
    bus: tuple[dict[str, Any], ...] = (
        {"ids": ["pci:0000:02:00.0"], "pci": ids, "driver": {"name": "amdgpu"}},
        {"ids": ["pci:0000:03:00.0"], "pci": {"id": "10de:2684"}},
        {"ids": ["pci:0000:04:00.0"], "pci": {"id": "1002:ab30", "class": "040300"}},
        {"ids": ["dt:/gpu"]},
    )
    (card,) = pci.functions(tree.machine(), bus, vendors=("1002",), classes=("03",))
    assert (card.address, card.pci, card.driver) == ("0000:02:00.0", ids, "amdgpu")


def test_a_function_has_what_the_bus_prober_read_of_it(tree: Tree) -> None:
    folder = tree.pci(
        "0000:01:00.0", "1002:744c", numa_node=1, drm=(2, 128), current_link_width=16,
        current_link_speed="16.0 GT/s PCIe",
    )  # fmt: skip
    tree.file(f"{folder}/accel/accel3/uevent", "")
    machine = tree.machine()
    read = pci.Function(machine, "0000:01:00.0")
    assert read.links(machine) == pcie.links(machine, folder)
    assert (read.links(machine)[0]["width"], read.numa_node(machine)) == (16, 1)
    assert read.node_index(machine) == {"drm_card": 2, "drm_render": 128, "accel": 3}
    link = {"kind": "pcie", "peer": None, "width": 4}
    bus = {"links": [link], "numa_node": 0, "node_index": {"drm_render": 130}}
    seen = pci.Function(machine, "0000:01:00.0", bus)
    assert (seen.links(machine), seen.numa_node(machine)) == ([link], 0)
    assert seen.node_index(machine) == {"drm_render": 130}
    # An empty list is an answer, a missing NUMA node or an empty index is looked for.
    bare = pci.Function(machine, "0000:01:00.0", {"links": [], "node_index": {}})
    assert (bare.links(machine), bare.numa_node(machine)) == ([], 1)
    assert bare.node_index(machine)["drm_render"] == 128


def test_of_several_drm_nodes_of_a_device_the_lowest_number_counts(tree: Tree) -> None:
    folder = tree.pci("0000:01:00.0", "1002:744c")
    for name in ("card9", "card10"):
        tree.file(f"{folder}/drm/{name}/uevent", "")
        tree.link(f"{folder}/drm/{name}/device", folder)
        tree.link(f"/sys/class/drm/{name}", f"{folder}/drm/{name}")
    machine = tree.machine()
    assert drm.by_device(machine) == {machine.realpath(folder): {"drm_card": 9}}
    assert drm.minors(machine, folder) == {"drm_card": 9}


def test_virtual_functions_know_their_owner(tree: Tree) -> None:
    owner = tree.pci("0000:03:00.0", "8086:56c0")
    part = tree.pci("0000:03:00.1", "8086:56c0")
    tree.link(f"{part}/physfn", owner)
    tree.link(f"{owner}/virtfn0", part)
    machine = tree.machine()
    assert pci.physical_function(machine, part) == "0000:03:00.0"
    assert pci.physical_function(machine, owner) is None
    assert pci.virtual_functions(machine, owner) == ["0000:03:00.1"]
    assert pci.Function(machine, "0000:03:00.1").owner == "0000:03:00.0"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("00000000:3B:00.0", "pci:0000:3b:00.0"),
        ("0000000F:01:00.0", "pci:000f:01:00.0"),
        ("00010000:E1:00.0", "pci:10000:e1:00.0"),
        ("01:00.0", "pci:0000:01:00.0"),
        ("FFFFFFFF:FF:1F.0", None),
        ("0000:02:00", None),
        ("", None),
        ("-1:01:-1.-1", None),
        ("0_0:01:00.+1", None),
    ],
)
def test_addresses_in_one_form(address: str, name: str | None) -> None:
    assert pci.normal_id(address) == name


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x10de\n", 0x10DE),
        ("10DE", 0x10DE),
        ("0x030000", 0x030000),
        ("", None),
        ("0x", None),
        ("0x_1", None),
        ("-1", None),
        ("0x123456789", None),
        ("9" * 5000, None),
        (b"\xff\0", None),
    ],
)
def test_ids_in_files(text: str | bytes, number: int | None, tree: Tree) -> None:
    tree.file("/sys/x", text)
    assert pci.hexadecimal(tree.machine(), "/sys/x") == number


def test_identity_of_numbers_from_elsewhere() -> None:
    numbers = {"vendor": 0x106B, "device": 5, "subsystem_vendor": 0, "subsystem_device": 0}
    assert pci.identity_of(numbers.get) == {"id": "106b:0005"}
    assert pci.identity_of({"class": 1 << 24, "revision": 0xA1}.get) == {"revision": "a1"}


def test_version_of_a_driver(tree: Tree) -> None:
    assert drivers.version(tree.machine(), "amdgpu") == {}
    tree.release("6.12.9")
    assert drivers.version(tree.machine(), "amdgpu") == {
        "version": "6.12.9", "version_of": "kernel",
    }  # fmt: skip
    tree.file("/sys/module/bifrost_kbase/version", "r44p0\n")
    assert drivers.version(tree.machine(), "mali_kbase", "bifrost_kbase") == {
        "version": "r44p0", "version_of": "module",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "status", "state", "asleep"),
    [
        ("active\n", "active", "active", False),
        ("suspended\n", "suspended", "suspended", True),
        ("suspending", "suspending", "suspended", True),
        ("resuming", "resuming", "active", True),
        ("unsupported", "unsupported", "active", False),
        ("error", "error", "unknown", False),
        ("\x00\xff", None, "unknown", False),
        (None, None, "unknown", False),
    ],
)
def test_power_states(
    text: str | None, status: str | None, state: str, asleep: bool, tree: Tree
) -> None:
    if text is not None:
        tree.file("/sys/x/power/runtime_status", text)
    word = power.status(tree.machine(), "/sys/x")
    assert (word, power.state(word), power.asleep(word)) == (status, state, asleep)


@pytest.mark.parametrize(
    ("near", "node"),
    [("8-15", 1), ("0-15", None), ("0-7\n", 0), ("3", 0), ("7-8", None), ("", None), ("x", None)],
)
def test_cpus_near_a_device_tell_its_node(near: str, node: int | None, tree: Tree) -> None:
    folder = "/sys/bus/pci/devices/0000:01:00.0"
    tree.file(f"{folder}/numa_node", "-1\n")
    tree.file(f"{folder}/local_cpulist", near)
    for number, cpus in enumerate(("0-7", "8-15")):
        tree.file(f"/sys/devices/system/node/node{number}/cpulist", f"{cpus}\n")
    assert pci.numa_node(tree.machine(), folder) == node


def test_the_only_node_is_the_device_s(tree: Tree) -> None:
    tree.file("/d/numa_node", "-1\n")
    assert pci.numa_node(tree.machine(), "/d") is None
    tree.file("/sys/devices/system/node/node0/cpulist", "0-7\n")
    assert pci.numa_node(tree.machine(), "/d") == 0


def test_masks_tell_where_a_recording_has_no_lists(tree: Tree) -> None:
    """hwloc's POWER9 with V100 has `local_cpus` alone; nodes without CPUs are the GPUs' memory."""
    for number, mask in ((0, "0000,0000ffff"), (8, "000000ff,ff000000,00000000,00000000")):
        tree.file(f"/sys/devices/system/node/node{number}/cpumap", mask)
    tree.file("/sys/devices/system/node/node255/cpumap", "00000000,00000000")
    for address, mask in (("a", "00000000,0000ffff"), ("b", "000000ff,ff000000,00000000,00000000")):
        tree.file(f"/{address}/local_cpus", mask)
    machine = tree.machine()
    assert [pci.numa_node(machine, folder) for folder in ("/a", "/b", "/c")] == [0, 8, None]
