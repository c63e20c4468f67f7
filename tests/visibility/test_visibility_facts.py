"""What scripts read of an answer that is no: facts beside the sentences, from the first edge on."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
import visibility_nodes as nodes

from probe_core.leasing import LeaseError, lease
from probe_core.leasing.folder import lease_folder
from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError, select
from probe_core.sizes import format_size
from probe_core.visibility import findings, see
from probe_core.visibility.amd import amd_uuid

FOUR = nodes.h100s(4)
MIXED = [nodes.nvidia(1), nodes.nvidia(2, name="NVIDIA T4")]


def report(devices: list[Any], **environ: str) -> dict[str, Any]:
    document = nodes.report([dict(device) for device in devices])
    refresh(document, environ)
    return document


def refused(document: dict[str, Any], *words: str, **request: Any) -> SelectionError:
    with pytest.raises(SelectionError) as caught:
        select(document, *words, **request)
    return caught.value


def test_a_hidden_device_is_named_with_its_variable() -> None:
    error = refused(report(FOUR, CUDA_VISIBLE_DEVICES="1"), "GPU-9942")
    assert (error.code, error.runtime) == ("hidden", "cuda")
    assert (error.device, error.variable) == (nodes.pci(1), "CUDA_VISIBLE_DEVICES")
    assert (error.visible, list(error.hidden)) == (
        [nodes.pci(2)],
        [nodes.pci(1), nodes.pci(3), nodes.pci(4)],
    )
    assert error.unmet.startswith("'GPU-9942' is hidden: CUDA_VISIBLE_DEVICES='1'")
    assert str(error).startswith(f"asked for {error.asked}: {error.unmet}\n")


def test_the_variable_is_that_of_the_entry_and_not_of_the_sentence() -> None:
    entry = {"visible": False, "index": None, "reason": "LOUD_WORDS come first", "variable": None}
    hidden = nodes.nvidia(1, visibility={"cuda": entry})
    error = refused(nodes.report([hidden]), count=1)
    assert (error.variable, error.fix) == (None, None)
    entry["variable"] = "CUDA_VISIBLE_DEVICES"
    error = refused(nodes.report([hidden]), count=1)
    assert error.fix == "change or unset CUDA_VISIBLE_DEVICES"


def test_a_passthrough_device_blames_no_variable() -> None:
    devices = [nodes.nvidia(1, driver={"name": "pciback"}), nodes.nvidia(2)]
    error = refused(report(devices, CUDA_VISIBLE_DEVICES="0"), nodes.pci(1))
    assert (error.code, error.device, error.variable) == ("hidden", nodes.pci(1), None)
    assert "pciback" in error.unmet


def test_an_order_that_only_the_driver_knows_says_what_settles_it() -> None:
    document = report(MIXED)
    entry = document["devices"][0]["visibility"]["cuda"]
    assert (entry["settled_by"], entry["variable"]) == ("CUDA_DEVICE_ORDER", None)
    error = refused(document, "0")
    assert error.code == "uncertain"
    assert error.fix == "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name devices by UUID"
    many = [nodes.nvidia(slot, name=f"model {slot}") for slot in range(1, 8)]
    for device in report(many, CUDA_VISIBLE_DEVICES="0,1")["devices"]:
        assert device["visibility"]["cuda"]["settled_by"] == "CUDA_DEVICE_ORDER"


def test_what_no_variable_settles_does_not_say_that_one_does() -> None:
    card = nodes.nvidia(1, driver={"name": "nvidia"})
    devices = [card, nodes.mig(card, 1, 1), nodes.nvidia(2, driver={"name": "nvidia"})]
    view = see(devices, {})["cuda"][0]
    assert not view.certain
    assert "settled_by" not in view.entry(nodes.pci(2))
    found = findings(see(devices, {"CUDA_VISIBLE_DEVICES": "0,1"}))
    (unknown,) = [one for one in found if one["code"] == "order-unknown"]
    assert (unknown["variable"], unknown["fix"]) == (
        "CUDA_VISIBLE_DEVICES",
        "name the devices by UUID",
    )


def test_mac_orders_and_vulkan_drivers_are_not_cudas_matter() -> None:
    macs = [nodes.amd(slot, vendor="apple") for slot in (1, 2)]
    document = nodes.report([dict(mac) for mac in macs])
    document["node"]["os"] = "darwin"
    refresh(document, {})
    assert refused(document, "0").fix == "name devices by id"
    document = report(FOUR, VK_LOADER_DRIVER_ID_FILTER="3")
    error = refused(document, "0", runtime="vulkan")
    assert (error.code, error.variable) == ("uncertain", "VK_LOADER_DRIVER_ID_FILTER")
    assert error.fix == "change or unset VK_LOADER_DRIVER_ID_FILTER"


def test_mig_mode_is_not_blamed_on_a_variable() -> None:
    card = nodes.nvidia(1)
    devices = [card, nodes.mig(card, 1, 1), nodes.nvidia(2)]
    views = see(devices, {"CUDA_VISIBLE_DEVICES": "0,1"})
    entry = views["cuda"][0].entry(card["id"])
    assert (entry["visible"], entry["variable"]) == (False, None)
    assert "MIG mode" in str(entry["reason"])
    assert [one["device"] for one in findings(views)] == []


def test_memory_that_a_device_lacks() -> None:
    devices = [nodes.nvidia(1, memory={"total": 80 << 30, "free": 8 << 30}), nodes.nvidia(2)]
    error = refused(report(devices), "0", memory="20GiB")
    assert (error.code, error.device) == ("memory", nodes.pci(1))
    assert error.unmet == f"{nodes.pci(1)} has 8 GiB free"


def test_every_finding_of_a_variable_names_variable_and_step() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "0,0", "ZE_AFFINITY_MASK": "9", "VK_DRIVER_FILES": "/x"}
    found = findings(see([*MIXED, nodes.intel(3)], environ))
    assert {one["code"] for one in found} >= {"variable-duplicate", "variable-skips"}
    assert all(one["variable"] and one["step"] == "visible" for one in found)
    hidden = [one for one in found if one["code"] == "hidden-by-variable"]
    assert hidden
    assert all(one["device"] for one in hidden)


def test_a_document_is_completed_in_a_copy() -> None:
    entry = {"visible": True, "index": 0, "reason": None}
    device = {"id": nodes.pci(1), "kind": "gpu", "vendor": "nvidia", "visibility": {"cuda": entry}}
    document = {"devices": [device]}
    before = copy.deepcopy(document)
    found = select(document, "0")
    assert found.ids == [nodes.pci(1)]
    assert found.environ(document, {})["CUDA_VISIBLE_DEVICES"] == "0"
    assert document == before


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (None, TypeError, "needs a report or its document, not NoneType"),
        ([], TypeError, "needs a report or its document, not list"),
        ({"devices": 5}, ValueError, "the report cannot be used: .* 'devices' of the wrong type"),
        ({"devices": [{}]}, ValueError, "a device has no 'id' that is text"),
        ({"devices": [{"id": "a", "kind": "toaster"}]}, ValueError, "a device's kind is none of"),
        ({"devices": [{"id": "a", "kind": "gpu", "memory": 5}]}, ValueError, "of the wrong type"),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(
    given: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        select(given, "0")
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, SelectionError)


def test_a_report_without_devices_has_no_accelerator() -> None:
    for document in ({}, {"devices": []}):
        error = refused(document)
        assert (error.code, error.unmet) == ("too-few", "this node has no accelerator")


def test_a_lease_folder_that_cannot_be_used_says_which(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file")
    with pytest.raises(LeaseError) as caught:
        lease_folder({"PROBE_LEASES": path})
    assert (caught.value.path, caught.value.variable) == (path, "PROBE_LEASES")
    assert path in str(caught.value)
    with pytest.raises(LeaseError) as caught:
        lease_folder({"PROBE_LEASES": "relative"})
    assert caught.value.path == "relative"


def test_a_busy_device_comes_with_its_lease(tmp_path: Path) -> None:
    environ = {"PROBE_LEASES": str(tmp_path)}
    document = report(FOUR[:1])
    with lease(report=document, environ=environ, command=["train"]):
        with pytest.raises(SelectionError) as caught:
            lease(report=document, environ=environ)
        error = caught.value
    assert (error.code, error.device, error.runtime) == ("busy", nodes.pci(1), "cuda")
    (blocking,) = error.leases
    assert (blocking["device"], blocking["pid"]) == (nodes.pci(1), os.getpid())
    assert error.unmet.startswith(f"not free; leased: {nodes.pci(1)} by process ")


@pytest.mark.parametrize(
    ("count", "cut", "rounded"),
    [
        (0, "0 B", "0 B"),
        (1023, "1023 B", "1023 B"),
        (1 << 20, "1 MiB", "1.0 MiB"),
        (25757220864, "23.9 GiB", "24.0 GiB"),
        (20 << 30, "20 GiB", "20.0 GiB"),
        (3 << 50, "3072 TiB", "3072.0 TiB"),
    ],
)
def test_sizes_are_cut_in_sentences_and_rounded_in_columns(
    count: int, cut: str, rounded: str
) -> None:
    assert format_size(count) == cut
    assert format_size(count, decimals=1) == rounded


@pytest.mark.parametrize(
    ("own", "uuid"),
    [
        (["uuid:gpu-0ABC"], "GPU-0000000000000abc"), (["uuid:GPU-0000"], None), (["pci:1"], None),
        (["uuid:MIG-1"], None), (["uuid:XPU-1", "uuid:GPU-1"], "GPU-0000000000000001"),
        (["uuid:GPU-fedcba9876543210"], "GPU-fedcba9876543210"), (["uuid:GPU-"], None),
    ],
)  # fmt: skip
def test_the_uuid_that_rocm_takes(own: list[str], uuid: str | None) -> None:
    assert amd_uuid(nodes.amd(3) | {"ids": own}) == uuid
