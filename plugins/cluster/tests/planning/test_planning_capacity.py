"""What a node offers: which devices count, sums, unified memory once, and reasons for gaps."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from probe_cluster import ClusterError, Member, capacity, member
from probe_cluster.planning.fitting import node_fit
from probe_cluster.planning.model_spec import parse_model

GIB = 1 << 30
Home = dict[str, dict[str, Any]]


def test_one_gpu_counts_with_its_own_memory(home: Home) -> None:
    offer = capacity(home["desk"])
    assert offer.chip == "NVIDIA GeForce RTX 4090"
    assert offer.devices == ("pci:0000:01:00.0",)
    assert (offer.memory_total, offer.vram_total) == (25_757_220_864, 25_757_220_864)
    assert (offer.memory_available, offer.pools) == (25_200_000_000, (25_200_000_000,))
    assert (offer.ram_total, offer.unified) == (64 * GIB, False)
    assert (round(offer.fp32 or 0, 1), offer.bandwidth) == (82.6, 1.008e12)


def test_two_gpus_are_summed_and_their_bandwidth_is_not(home: Home) -> None:
    one, two = capacity(home["desk"]), capacity(home["twin"])
    assert two.memory_total == 2 * 25_757_220_864
    assert two.pools == (25_200_000_000, 25_200_000_000)
    assert two.fp16 == 2 * (one.fp16 or 0)
    # Layers lie on one GPU each and are read one after another.
    assert two.bandwidth == pytest.approx(1.008e12)


def test_one_can_be_chosen(home: Home) -> None:
    primary = capacity(home["twin"], "primary")
    second = capacity(home["twin"], "pci:0000:02:00.0")
    assert primary.memory_total == second.memory_total == 25_757_220_864
    assert second.devices == ("pci:0000:02:00.0",)
    assert capacity(home["twin"], "cpu").memory_total == 128 * GIB


def test_an_id_that_is_not_there_is_told_with_those_that_are(home: Home) -> None:
    with pytest.raises(ClusterError, match=r"node 'twin': .* no device 'gpu:7'; it has pci:0"):
        member("twin", home["twin"], devices="gpu:7")


@pytest.mark.parametrize(
    ("name", "total", "available"),
    [
        ("studio", 128 * GIB, 110 * GIB),
        ("spark", 127_600_748 * 1024, 118 * GIB),
        ("orin", 61 * GIB, 55 * GIB),
        ("rock", 16 * GIB, 14 * GIB),
        # The carve-out is not in MemTotal: carve-out and GTT are what a program can use.
        ("halo", 112 * GIB, 110 * GIB),
    ],
)
def test_unified_memory_counts_once(home: Home, name: str, total: int, available: int) -> None:
    offer = capacity(home[name])
    assert (offer.memory_total, offer.memory_available) == (total, available)
    assert (offer.unified, offer.vram_total) == (True, None)


def test_a_limit_that_the_prober_knows_binds(home: Home) -> None:
    report = deepcopy(home["studio"])
    report["devices"][0]["memory"]["parts"] = {"limit": 96 * GIB}
    assert capacity(report).memory_total == 96 * GIB


def test_a_control_group_binds_unified_memory(home: Home) -> None:
    report = deepcopy(home["nas"])
    report["node"]["memory"] |= {"limit": 4 * GIB, "available": 20 * GIB}
    offer = capacity(report)
    assert (offer.memory_total, offer.memory_available) == (4 * GIB, 4 * GIB)


def test_an_integrated_gpu_does_not_count_beside_one_with_memory(home: Home) -> None:
    report = deepcopy(home["desk"])
    report["devices"] += deepcopy(home["halo"]["devices"][:1])
    offer = capacity(report)
    assert offer.devices == ("pci:0000:01:00.0",)
    assert "pci:0000:c5:00.0: it uses the system's memory" in offer.reasons["devices"]


def test_a_hidden_gpu_does_not_count(home: Home) -> None:
    report = deepcopy(home["twin"])
    report["devices"][1]["visibility"]["cuda"] = {"visible": False, "reason": "not in the list"}
    offer = capacity(report)
    assert offer.devices == ("pci:0000:01:00.0",)
    assert offer.reasons["devices"] == "not counted: pci:0000:02:00.0: not in the list"


@pytest.mark.parametrize("name", ["pci:0000:01:00.0", "0000:01:00.0", "01:00.0", "1:0.0"])
def test_a_device_is_named_as_the_table_shows_it(name: str, home: Home) -> None:
    if name == "1:0.0":
        with pytest.raises(ClusterError, match=r"has no device '1:0.0'; it has pci:0000:01:00.0"):
            capacity(home["twin"], name)
    else:
        assert capacity(home["twin"], name).devices == ("pci:0000:01:00.0",)


def test_a_device_has_other_ids_too_and_one_that_names_two_is_refused(home: Home) -> None:
    report = deepcopy(home["twin"])
    gpus = [device for device in report["devices"] if device["kind"] == "gpu"]
    gpus[0]["ids"], gpus[1]["ids"] = ["uuid:GPU-7", "uuid:both"], ["uuid:both"]
    assert capacity(report, "uuid:GPU-7").devices == (gpus[0]["id"],)
    with pytest.raises(ClusterError, match=r"^2 devices are 'uuid:both'; it has "):
        capacity(report, "uuid:both")


def test_gpus_that_share_a_reason_are_left_out_together(home: Home) -> None:
    report = deepcopy(home["desk"])
    (gpu,) = (device for device in report["devices"] if device["kind"] == "gpu")
    hidden = {"visible": False, "reason": "not in the list"}
    report["devices"] += [
        {**gpu, "id": f"pci:0000:0{bus}:00.0", "ids": [], "visibility": {"cuda": hidden}}
        for bus in range(2, 7)
    ]
    assert capacity(report).reasons["devices"] == (
        "not counted: pci:0000:02:00.0, pci:0000:03:00.0, 3 more: not in the list"
    )


def test_a_split_gpu_counts_as_its_parts(home: Home) -> None:
    report = deepcopy(home["desk"])
    part = deepcopy(report["devices"][0]) | {"id": "uuid:MIG-1", "parent": "pci:0000:01:00.0"}
    part["memory"] = {"kind": "dedicated", "total": 10 * GIB, "usable": 9 * GIB}
    report["devices"].insert(1, part)
    offer = capacity(report)
    assert (offer.devices, offer.memory_total) == (("uuid:MIG-1",), 10 * GIB)


def test_a_lost_gpu_gives_no_host_memory_in_its_name(home: Home) -> None:
    report = deepcopy(home["desk"])
    report["devices"][0]["memory"] = {"kind": None, "total": None}
    report["devices"][0]["unknown"] = {"memory.total": "NVML_ERROR_GPU_IS_LOST"}
    offer = capacity(report)
    assert (offer.kind, offer.devices) == ("cpu", ("cpu:0",))
    assert "its memory is unknown: NVML_ERROR_GPU_IS_LOST" in offer.reasons["devices"]


@pytest.mark.parametrize("kind", [None, "dedicated"])
@pytest.mark.parametrize("devices", ["primary", "pci:0000:01:00.0"])
def test_a_gpu_of_unknown_memory_that_is_named_has_none(
    home: Home, kind: str | None, devices: str
) -> None:
    report = deepcopy(home["desk"])
    report["devices"][0]["memory"] = {"kind": kind, "total": None}
    report["devices"][0]["unknown"] = {"memory.total": "NVML_ERROR_GPU_IS_LOST"}
    offer = capacity(report, devices)
    assert (offer.devices, offer.pools, offer.unified) == (("pci:0000:01:00.0",), (), False)
    assert (offer.memory_total, offer.memory_available) == (None, None)
    reason = "the memory of pci:0000:01:00.0 is unknown: NVML_ERROR_GPU_IS_LOST"
    assert offer.reasons["memory_total"] == reason
    with pytest.raises(ClusterError, match=f"the memory of the node is unknown: {reason}"):
        node_fit(report, parse_model({"model": "llama-3.1-8b"}), devices)


def test_unknown_numbers_say_why(home: Home) -> None:
    offer = capacity(home["rock"])
    assert offer.bandwidth is None
    assert offer.reasons["bandwidth"].startswith("the memory bandwidth of dt:/gpu@fb000000 is")


def test_a_given_bandwidth_stands_in_and_says_so(home: Home) -> None:
    rock = member("rock", home["rock"], bandwidth=34e9)
    assert (rock.bandwidth, rock.reasons["bandwidth"]) == (34e9, "as given, not from the report")
    assert member("desk", home["desk"], bandwidth=1e9).bandwidth == 1.008e12


OLD = {"schema": 1, "devices": [{"id": "cpu:0"}]}


@pytest.mark.parametrize(
    "document",
    [
        OLD,
        OLD | {"node": None},
        OLD | {"node": {"memory": {"total": "much"}}},
        {"schema": 1, "devices": [{"id": "x", "kind": "gpu", "memory": None, "fp16": "fast"}]},
        {"schema": 1, "devices": [{"id": "x", "kind": "gpu", "visibility": {"vulkan": None}}]},
        {"schema": 1, "devices": [{"kind": "gpu"}, None, "text"]},
        {"schema": 1, "devices": [{"id": "c", "kind": "cpu", "unknown": [], "fp32": float("nan")}]},
    ],
)
def test_missing_and_senseless_fields_are_unknown(document: dict[str, Any]) -> None:
    offer = capacity(document)
    assert (offer.memory_total, offer.fp16, offer.bandwidth) == (None, None, None)
    assert offer.reasons["memory_total"] == "the report has no memory of this node"


def test_a_member_of_unknown_memory_cannot_be_planned_with() -> None:
    with pytest.raises(ClusterError, match="the memory of node 'old' is unknown: the re") as e:
        member("old", OLD).usable("available")
    assert e.value.node == "old"


@pytest.mark.parametrize(
    ("total", "available", "pools", "now", "in_all"),
    [
        (8, 5, (2, 3), (2, 3), (8,)),
        (8, 5, (), (5,), (8,)),
        (8, None, (), (8,), (8,)),
        (8, 0, (), (0,), (8,)),
        (None, 5, (), (5,), None),
        (None, None, (), None, None),
    ],
)
def test_memories_that_may_be_filled(
    total: int | None,
    available: int | None,
    pools: tuple[int, ...],
    now: tuple[int, ...] | None,
    in_all: tuple[int, ...] | None,
) -> None:
    node = Member("a", total, available, pools)
    for use, expected in (("available", now), ("total", in_all)):
        if expected is not None:
            assert node.usable(use) == expected
            continue
        with pytest.raises(ClusterError, match="the memory of node 'a' is unknown: its report"):
            node.usable(use)
