"""Containers and jobs that were given some of a server's GPUs, and look-alikes that have them all.

The MI210 server follows topo-mi210-xgmi-pcie, the MI308X one topology-parsing-mi308, the MI300X one
topo-mi300-cpx of the test data of ROCm/k8s-device-plugin: nodes, locations, counts and sizes. What
a device cgroup denies cannot be read there (EPERM), which a test running as root has no file for:
an empty file and a folder in its place stand in.
"""

from __future__ import annotations

from typing import Any

import pytest

import probe_core
from probe_core.api import Machine

GIB = 1 << 30
BUSES = (0x63, 0x43, 0x03, 0x26, 0xE3, 0xC3, 0x83, 0xA3)
"""The MI210s by KFD node, 2 to 9: not the order of the bus."""
VRAM = 68_702_699_520
CLOSED = ("granted", "broken", "kfd-node-closed")
GIVEN = ("granted", "ok", None)


def mi210s(tree: Any, given: tuple[int, ...], closed: Any = "") -> None:
    """Add eight MI210 of which the nodes `given` can be read; `closed` is what the others hold."""
    tree.cpu_node(0)
    tree.cpu_node(1)
    for place, bus in enumerate(BUSES):
        number = place + 2
        tree.card(f"0000:{bus:02x}:00.0", "0x740f", pci_class="0x120000", drm=(place, 128 + place),
                  mem_info_vram_total=VRAM, mem_info_vram_used=GIB)  # fmt: skip
        if number in given:
            tree.kfd_node(number, simd_count=416, simd_per_cu=4, gfx_target_version=90010,
                          location_id=bus << 8, drm_render_minor=128 + place)  # fmt: skip
            tree.file(f"/sys/class/kfd/kfd/topology/nodes/{number}/gpu_id", 1000 + number)
        elif closed != "absent":
            tree.closed(number, closed)


@pytest.mark.heavy
@pytest.mark.parametrize("closed", ["", None, "absent"], ids=["empty", "unreadable", "absent"])
@pytest.mark.parametrize("number", [2, 5, 9])
def test_one_of_eight_is_granted_and_counted_from_zero(
    tree: Any, number: int, closed: str | None
) -> None:
    mi210s(tree, (number,), closed)
    devices, own = tree.devices(), f"pci:0000:{BUSES[number - 2]:02x}:00.0"
    steps = tree.steps()
    assert len(devices) == 8
    assert steps.pop(own) == [GIVEN]
    assert list(steps.values()) == [[CLOSED]] * 7
    assert devices[own]["node_index"]["kfd"] == 0
    assert devices[own]["nodes"] == ["/dev/kfd", f"/dev/dri/renderD{126 + number}"]
    assert devices[own]["backends"] == ["hip"]
    for identity, device in devices.items():
        if identity != own:
            assert device["nodes"] == ["/dev/kfd"]
            assert "kfd" not in device["node_index"]
            assert "backends" not in device
            assert device["memory"]["total"] == VRAM


def test_evidence_names_the_file_and_the_error(tree: Any) -> None:
    mi210s(tree, (2,), None)
    (fact,) = tree.devices()["pci:0000:43:00.0"]["step_facts"]
    path = "/sys/class/kfd/kfd/topology/nodes/3/properties"
    assert fact["evidence"] == f"{path}: EISDIR (7 nodes in all)"


def test_all_of_eight_are_counted_in_kfds_order(tree: Any) -> None:
    mi210s(tree, tuple(range(2, 10)))
    devices = tree.devices()
    order = sorted(devices, key=lambda name: devices[name]["node_index"]["kfd"])
    assert order == [f"pci:0000:{bus:02x}:00.0" for bus in BUSES]
    assert list(tree.steps().values()) == [[GIVEN]] * 8


def test_node_whose_gpu_id_alone_is_refused_is_closed(tree: Any) -> None:
    mi210s(tree, (2, 3))
    tree.file("/sys/class/kfd/kfd/topology/nodes/2/gpu_id", "")
    steps = tree.steps()
    assert steps["pci:0000:63:00.0"] == [CLOSED]
    assert steps["pci:0000:43:00.0"] == [GIVEN]
    assert tree.devices()["pci:0000:43:00.0"]["node_index"]["kfd"] == 0


def test_container_without_any_gpu_lacks_all_nodes(tree: Any) -> None:
    """Where nothing was given, the nodes are what a person must add."""
    mi210s(tree, ())
    assert list(tree.steps().values()) == [[CLOSED]] * 8
    nodes = [device["nodes"] for device in tree.devices().values()]
    assert ["/dev/kfd", "/dev/dri/renderD128"] in nodes
    assert all(len(own) == 2 for own in nodes)


def test_integrated_gpu_beside_a_closed_card_is_not_taken_for_it(tree: Any) -> None:
    """One closed node and two cards without a node: which of them it is, nothing tells."""
    tree.cpu_node(0)
    for bus, device in ((0x03, "0x744c"), (0x16, "0x164e")):
        tree.card(f"0000:{bus:02x}:00.0", device, mem_info_vram_total=GIB)
    tree.closed(1)
    assert list(tree.steps().values()) == [[("granted", "unknown", None)]] * 2


def test_card_that_kfd_leaves_out_is_not_one_that_was_withheld(tree: Any) -> None:
    """All nodes can be read, and none is the old card's: too old, or a slot without atomics."""
    tree.cpu_node(0)
    tree.card("0000:03:00.0", "0x744c", drm=(0, 128), mem_info_vram_total=24 * GIB)
    tree.card("0000:04:00.0", "0x6798", drm=(1, 129), mem_info_vram_total=3 * GIB)
    tree.kfd_node(1, simd_count=192, simd_per_cu=2, gfx_target_version=110000, location_id=0x300,
                  drm_render_minor=128)  # fmt: skip
    steps = tree.steps()
    assert steps["pci:0000:03:00.0"] == [GIVEN]
    assert steps["pci:0000:04:00.0"] == [("runtime", "broken", "kfd-no-gpu")]
    assert tree.devices()["pci:0000:04:00.0"]["nodes"] == ["/dev/dri/renderD129"]


def test_kernel_without_kfd_still_has_drm(tree: Any) -> None:
    tree.card("0000:03:00.0", "0x744c", drm=(0, 128), mem_info_vram_total=24 * GIB)
    (card,) = tree.devices().values()
    assert tree.steps()["pci:0000:03:00.0"] == [("node", "broken", "kfd-missing")]
    assert card["nodes"] == ["/dev/kfd", "/dev/dri/renderD128"]
    assert card["memory"]["total"] == 24 * GIB


def test_garbled_node_decides_nothing(tree: Any) -> None:
    tree.card("0000:03:00.0", "0x744c", mem_info_vram_total=24 * GIB)
    tree.closed(1, "nonsense")
    assert tree.steps()["pci:0000:03:00.0"] == [("granted", "unknown", None)]


MI300X, MI308X = 206_141_652_992, 206_141_652_992


def partitioned(
    tree: Any, given: dict[int, int], *, closed: int, mode: str, simds: int, bank: int | None,
    device: str = "0x74a1", high: bool = False,
) -> None:  # fmt: skip
    """Add a card at 05:00.0 with the partitions `given` (number → KFD node) among `closed` ones."""
    tree.cpu_node(0)
    tree.card("0000:05:00.0", device, pci_class="0x120000", drm=(0, 128),
              current_compute_partition=mode, current_memory_partition="NPS1",
              mem_info_vram_total=MI300X)  # fmt: skip
    for part, number in given.items():
        location = 0x500 | (part << 28 if high else part)
        size = {"heap_type": 1, "size_in_bytes": bank, "width": 8192, "mem_clk_max": 1300}
        tree.kfd_node(number, size if bank else None, simd_count=simds, simd_per_cu=4,
                      gfx_target_version=90402, location_id=location, num_xcc=1,
                      drm_render_minor=128 + part)  # fmt: skip
    for number in range(1, closed + len(given) + 1):
        if number not in given.values():
            tree.closed(number)


@pytest.mark.parametrize("high", [False, True], ids=["function", "bits 28 to 31"])
@pytest.mark.parametrize("part", [0, 2, 7])
def test_single_cpx_partition_has_its_own_memory_and_units(
    tree: Any, part: int, high: bool
) -> None:
    partitioned(tree, {part: part + 1}, closed=7, mode="CPX", simds=152, bank=25_769_803_776,
                high=high)  # fmt: skip
    card, own = tree.devices().values()
    assert own["ids"] == [f"amd:0000:05:00.0/xcp{part}"]
    assert (own["parent"], own["gfx"]) == ("pci:0000:05:00.0", "gfx942")
    assert own["memory"]["total"] == own["memory"]["usable"] == 25_769_803_776
    assert (own["units"], own["share"]) == (38, {"units": 38})
    assert own["node_index"] == {"kfd": 0, "drm_render": 128 + part}
    assert own["nodes"] == ["/dev/kfd", f"/dev/dri/renderD{128 + part}"]
    assert own["backends"] == ["hip"]
    assert card["memory"]["total"] == MI300X
    assert "units" not in card
    assert card["unknown"]["units"] == "KFD shows this process 1 of 8 partitions"
    assert "backends" not in card
    assert "kfd" not in card["node_index"]
    assert card["nodes"] == ["/dev/kfd"]
    assert tree.steps() == {
        "pci:0000:05:00.0": [("granted", "broken", "partition-mode")],
        f"amd:0000:05:00.0/xcp{part}": [GIVEN],
    }


def test_partition_without_a_bank_has_an_even_share_of_the_memory(tree: Any) -> None:
    partitioned(tree, {3: 4}, closed=7, mode="CPX", simds=152, bank=None)
    _, own = tree.devices().values()
    assert own["memory"] == {
        "kind": "dedicated", "total": MI300X // 8, "usable": MI300X // 8,
        "parts": {"vram": MI300X // 8},
    }  # fmt: skip
    assert own["extra"]["memory_sources"] == {"vram": "mem_info_vram_total / 8"}


@pytest.mark.parametrize(("mode", "count"), [("DPX", 2), ("TPX", 3), ("QPX", 4)])
def test_other_modes_name_the_number_of_partitions(tree: Any, mode: str, count: int) -> None:
    partitioned(tree, {1: 2}, closed=0, mode=mode, simds=1216 // count // 4 * 4, bank=None)
    card, own = tree.devices().values()
    assert own["memory"]["total"] == MI300X // count
    assert own["units"] == 1216 // count // 4
    assert card["unknown"]["units"] == f"KFD shows this process 1 of {count} partitions"


def test_all_cpx_partitions_of_an_mi308x_make_up_the_card(tree: Any) -> None:
    partitioned(tree, {part: part + 1 for part in range(4)}, closed=0, mode="CPX", simds=80,
                bank=51_539_607_552, device="0x74a2")  # fmt: skip
    card, *parts = tree.devices().values()
    assert card["units"] == 80
    assert [part["share"] for part in parts] == [{"units": 20, "of": 80}] * 4
    assert [part["memory"]["total"] for part in parts] == [51_539_607_552] * 4


def test_mode_and_model_tell_the_count_where_nodes_are_missing(tree: Any) -> None:
    """A recording of the container: the nodes that could not be read are not in it."""
    partitioned(tree, {2: 1}, closed=0, mode="CPX", simds=152, bank=None)
    card, own = tree.devices().values()
    assert own["memory"]["total"] == MI300X // 8
    assert "units" not in card


@pytest.mark.parametrize(
    ("device", "dies"),
    [("74a1", 8), ("74a9", 8), ("74a2", 4), ("74a5", 8), ("75a0", 8), ("75a3", 8)],
)
def test_of_cpx_each_die_is_a_partition(tree: Any, device: str, dies: int) -> None:
    partitioned(tree, {2: 1}, closed=0, mode="CPX", simds=152, bank=None, device=f"0x{device}")
    card, own = tree.devices().values()
    assert own["memory"]["total"] == MI300X // dies
    assert card["unknown"]["units"] == f"KFD shows this process 1 of {dies} partitions"


def test_partition_of_unknown_count_has_no_invented_memory(tree: Any) -> None:
    partitioned(tree, {1: 1}, closed=0, mode="CPX", simds=152, bank=None, device="0x74ff")
    _, own = tree.devices().values()
    assert "memory" not in own
    assert own["unknown"]["memory.total"] == "KFD gives no memory size for this partition"


def test_whole_card_in_spx_is_no_partition(tree: Any) -> None:
    partitioned(tree, {0: 1}, closed=7, mode="SPX", simds=1216, bank=MI300X)
    (card,) = tree.devices().values()
    assert (card["units"], card["memory"]["total"]) == (304, MI300X)
    assert (card["backends"], card["node_index"]["kfd"]) == (["hip"], 0)
    assert tree.steps()["pci:0000:05:00.0"] == [GIVEN]


def test_partitions_all_withheld_close_the_card(tree: Any) -> None:
    partitioned(tree, {}, closed=8, mode="CPX", simds=152, bank=None)
    assert tree.steps() == {"pci:0000:05:00.0": [CLOSED]}


def report(tree: Any) -> dict[str, Any]:
    target = {"target": "probe_amd.prober", "priority": 400}
    made = probe_core.probe(machine=Machine(str(tree.root)), probers={"amd": target}, only=["amd"])
    document: dict[str, Any] = made.to_json()
    return document


def test_report_adds_the_whole_cards_units_and_never_makes_it_primary(tree: Any) -> None:
    pytest.importorskip("probe_chipdb")
    partitioned(tree, {2: 3}, closed=7, mode="CPX", simds=152, bank=25_769_803_776)
    document = report(tree)
    devices = {device["id"]: device for device in document["devices"]}
    own = devices["amd:0000:05:00.0/xcp2"]
    assert own["share"] == {"units": 38, "of": 304}
    assert devices["pci:0000:05:00.0"]["units"] == 304
    assert devices["pci:0000:05:00.0"]["readiness"]["state"] == "blocked"
    assert devices["pci:0000:05:00.0"]["readiness"]["broken"] == "granted"
    assert own["readiness"]["broken"] is None
    assert not [f for f in document["findings"] if f["code"] == "value-rejected"]


def test_report_of_one_of_eight_has_seven_that_are_not_granted(tree: Any) -> None:
    mi210s(tree, (5,))
    document = report(tree)
    broken = [d["readiness"]["broken"] for d in document["devices"] if d["vendor"] == "amd"]
    assert sorted(broken, key=str) == [None] + ["granted"] * 7
