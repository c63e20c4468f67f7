"""A recorded report seen through this environment: visibility, primary device, odd recordings."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes

from probe_core.model.runtimes import canonical
from probe_core.pipeline.refresh import refresh
from probe_core.visibility import see


def document(devices: list[dict[str, Any]], primary: str | None = None) -> dict[str, Any]:
    return nodes.report([nodes.whole(device) for device in devices], primary)


def test_the_primary_device_is_a_visible_one() -> None:
    report = document(nodes.h100s(2))
    refresh(report, {"CUDA_VISIBLE_DEVICES": "1"})
    assert report["primary"] == nodes.pci(2)


def test_the_recorded_primary_stays_while_it_is_visible() -> None:
    report = document(nodes.h100s(2), nodes.pci(2))
    refresh(report, {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert report["primary"] == nodes.pci(2)


def test_without_a_visible_accelerator_the_cpu_is_primary() -> None:
    report = document([*nodes.h100s(1), {"id": "cpu:0", "ids": ["cpu:0"], "kind": "cpu"}])
    refresh(report, {"CUDA_VISIBLE_DEVICES": ""})
    assert report["primary"] == "cpu:0"
    refresh(report, {})
    assert report["primary"] == nodes.pci(1), "what hid it then does not count"


def test_what_hid_a_device_in_the_recording_does_not_count() -> None:
    hidden = {"cuda": {"visible": False, "index": None, "reason": "then"}}
    report = document([device | {"visibility": hidden} for device in nodes.h100s(2)])
    refresh(report, {})
    assert [one["visibility"]["cuda"]["index"] for one in report["devices"]] == [0, 1]


def test_devices_named_by_uuid_alone_keep_the_order_of_the_report() -> None:
    devices = [
        {"id": f"uuid:{uuid}", "ids": [f"uuid:{uuid}"], "kind": "gpu", "vendor": "nvidia"}
        | {"name": "NVIDIA L4"}
        for uuid in nodes.UUIDS[:3]
    ]
    devices = [nodes.whole(device) for device in devices]
    view = see(devices, {"CUDA_VISIBLE_DEVICES": "2,0"})["cuda"][0]
    assert view.certain
    assert view.visible == [devices[2]["id"], devices[0]["id"]]


def instance(name: str, parent: str | None) -> dict[str, Any]:
    ids = {"id": f"uuid:{name}", "ids": [f"uuid:{name}"]}
    device = ids | {"kind": "gpu", "vendor": "nvidia", "name": "MIG", "parent": parent}
    return nodes.whole(device)


def test_an_instance_is_seen_without_its_gpu() -> None:
    for parent in (None, nodes.pci(9)):
        devices = [instance("MIG-aaaa", parent)]
        for value in (None, "0", "MIG-aaaa", "MIG-a"):
            environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
            assert see(devices, environ)["cuda"][0].visible == ["uuid:MIG-aaaa"], value
        assert see(devices, {"CUDA_VISIBLE_DEVICES": "MIG-b"})["cuda"][0].visible == []


def test_instances_without_their_gpu_are_of_one_where_they_name_it() -> None:
    devices = [instance("MIG-a", nodes.pci(9)), instance("MIG-b", nodes.pci(9))]
    devices = [one | {"driver": {"name": "nvidia", "version": "550.1"}} for one in devices]
    view = see(devices, {})["cuda"][0]
    assert (view.certain, view.visible) == (True, ["uuid:MIG-a"])
    assert set(view.pool) == {"uuid:MIG-a", "uuid:MIG-b"}, "the absent GPU is not listed"


@pytest.mark.parametrize(
    "name", ["level_zero", "level-zero", "LEVEL_ZERO", "ze", "levelzero", "l0", " Level-Zero "]
)
def test_a_runtime_has_several_names(name: str) -> None:
    assert canonical(name) == "level-zero"
