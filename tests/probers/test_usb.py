"""USB accelerators: found by their ids, judged by the node that programs open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reports import report_of

from probe_core.machine import Machine
from probe_core.testing import Tree

PORT = "/sys/bus/usb/devices/2-1"
NODE = "/dev/bus/usb/002/003"


def stick(root: Path, vendor: str = "1a6e", product: str = "089a", **places: str) -> Tree:
    tree = Tree(root)
    for name, value in (("usb2", "1d6b"), ("2-1.4", "046d")):
        tree.file(f"/sys/bus/usb/devices/{name}/idVendor", f"{value}\n")
    tree.file("/sys/bus/usb/devices/2-1:1.0/bInterfaceClass", "fe\n")
    files = {"idVendor": vendor, "idProduct": product, "busnum": "2", "devnum": "3"} | places
    for name, value in files.items():
        tree.file(f"{PORT}/{name}", f"{value}\n")
    return tree


def report(root: Path, access: dict[str, str]) -> dict[str, Any]:
    for path, answer in access.items():
        if answer != "missing":
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
    return report_of(Machine(str(root), access=access, environ={}))


@pytest.mark.parametrize(("vendor", "product"), [("1a6e", "089a"), ("18d1", "9302")])
def test_it_is_named_before_and_after_its_firmware_was_loaded(
    vendor: str, product: str, tmp_path: Path
) -> None:
    stick(tmp_path, vendor, product)
    found = report(tmp_path, {NODE: "ok"})
    device = found["devices"][0]
    assert (device["id"], device["kind"], device["vendor"]) == ("usb:2-1", "npu", "google")
    assert device["name"] == "Coral USB Accelerator"
    assert device["chip"]["id"] == "google/coral-usb-accelerator"
    assert device["nodes"] == [NODE]
    assert device["readiness"]["state"] == "ready"
    assert found["primary"] == "usb:2-1"


@pytest.mark.parametrize(
    ("answer", "broken", "code"),
    [
        ("missing", "node", "container-without-gpus"),
        ("EACCES", "permission", "no-permission"),
        ("EPERM", "granted", "cgroup-denied"),
        ("ENXIO", "node", "node-without-driver"),
    ],
)
def test_a_container_without_its_node(answer: str, broken: str, code: str, tmp_path: Path) -> None:
    stick(tmp_path).file("/.dockerenv", "")
    found = report(tmp_path, {NODE: answer})
    readiness = found["devices"][0]["readiness"]
    step = next(step for step in readiness["steps"] if step["step"] == broken)
    assert (readiness["state"], readiness["broken"], step["code"]) == ("blocked", broken, code)
    assert NODE in step["evidence"]
    finding = next(f for f in found["findings"] if f["code"] == code)
    # The device gets another number when its firmware is loaded: the whole folder is passed in.
    assert (answer != "missing") or "-v /dev/bus/usb:/dev/bus/usb" in finding["fix"]


@pytest.mark.parametrize(
    ("vendor", "product"), [("18d1", "4ee1"), ("1a6e", "0000"), ("18d1", ""), ("", "")]
)
def test_other_devices_of_the_vendor_are_none(vendor: str, product: str, tmp_path: Path) -> None:
    stick(tmp_path, vendor, product)  # 18d1:4ee1 is a telephone
    assert [d["kind"] for d in report(tmp_path, {})["devices"]] == ["cpu"]


def test_odd_numbers_leave_its_node_unknown(tmp_path: Path) -> None:
    stick(tmp_path, busnum="two")
    device = report(tmp_path, {NODE: "ok"})["devices"][0]
    assert (device.get("nodes"), device["readiness"]["state"]) == (None, "unknown")
