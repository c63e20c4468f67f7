"""NPUs under intel_vpu and Gaudis under habanalabs."""

from __future__ import annotations

from typing import Any


def npu(tree: Any, **files: object) -> str:
    folder: str = tree.function(
        "0000:00:0b.0", "0x7d1d", "intel_vpu", pci_class="0x120000", status="suspended", **files
    )
    tree.file(f"{folder}/accel/accel0/dev", "261:0")
    return folder


def test_npu_tells_its_clock_while_it_sleeps(tree: Any) -> None:
    npu(tree, npu_max_frequency_mhz=1400, npu_memory_utilization=8388608)
    device = tree.single()
    assert (device["kind"], device["ids"]) == ("npu", ["pci:0000:00:0b.0"])
    assert device["clocks"] == {"max_mhz": 1400}
    assert device["memory"]["kind"] == "unified"
    assert device["memory"]["total"] == 32_768_000_000
    assert device["extra"] == {"resident_bytes": 8388608}
    assert device["node_index"] == {"accel": 0}
    assert device["backends"] == ["level-zero"]
    assert device["power_state"] == "suspended"


def test_newer_kernels_have_a_folder_of_frequencies(tree: Any) -> None:
    folder = npu(tree)
    tree.file(f"{folder}/freq/hw_max_freq", 1950)
    assert tree.single()["clocks"] == {"max_mhz": 1950}


def test_older_kernels_tell_no_clock(tree: Any) -> None:
    npu(tree)
    device = tree.single()
    assert "clocks" not in device
    assert device["unknown"]["clocks.max_mhz"] == "this intel_vpu shows no maximum frequency"


def test_npu_without_driver_is_told(tree: Any) -> None:
    tree.function("0000:00:0b.0", "0x7d1d", None, pci_class="0x120000")
    (found,) = tree.findings()
    assert found["fix"].startswith("load intel_vpu;")
    assert "backends" not in tree.single()


def gaudi(tree: Any, address: str = "0000:33:00.0", device: str = "0x1020") -> str:
    folder: str = tree.function(
        address, device, "habanalabs", vendor="0x1da3", pci_class="0x120000"
    )
    return folder


def test_gaudi_2_tells_clock_type_and_firmware(tree: Any) -> None:
    folder = gaudi(tree)
    for name, text in (("status", "Operational"), ("clk_max_freq_mhz", 1650),
                       ("device_type", "GAUDI2"), ("fw_os_ver", "hl-gaudi2-1.20.0")):  # fmt: skip
        tree.file(f"{folder}/{name}", text)
    tree.file(f"{folder}/accel/accel3/dev", "261:3")
    device = tree.single()
    assert (device["kind"], device["vendor"]) == ("accelerator", "intel")
    assert device["clocks"] == {"max_mhz": 1650}
    assert device["memory"] == {"kind": "dedicated"}
    assert "open the device" in device["unknown"]["memory.total"]
    assert device["extra"] == {"device_type": "GAUDI2", "status": "Operational"}
    assert device["driver"]["firmware"] == "hl-gaudi2-1.20.0"
    assert device["backends"] == ["habana"]
    assert device["node_index"] == {"accel": 3}
    assert tree.findings() == []


def test_older_driver_has_its_files_at_the_class_device(tree: Any) -> None:
    folder = gaudi(tree, device="0x1000")
    tree.file(f"{folder}/habanalabs/hl0/status", "Operational")
    tree.file(f"{folder}/habanalabs/hl0/clk_max_freq_mhz", 1350)
    tree.file(f"{folder}/habanalabs/hl_controlD0/clk_max_freq_mhz", 1)
    assert tree.single()["clocks"] == {"max_mhz": 1350}


def test_broken_gaudi_is_not_asked_for_its_clock(tree: Any) -> None:
    folder = gaudi(tree)
    tree.file(f"{folder}/status", "Malfunction")
    tree.file(f"{folder}/clk_max_freq_mhz", 1650)
    device = tree.single()
    assert "clocks" not in device
    assert device["unknown"]["clocks.max_mhz"] == "the card's status is Malfunction"
    (found,) = tree.findings()
    assert found["code"] == "device-not-operational"
    assert found["why"] == "its driver habanalabs reports: Malfunction"


def test_gaudis_come_after_gpus_because_their_firmware_may_hang(tree: Any) -> None:
    gaudi(tree, "0000:00:01.0")
    tree.function("0000:00:02.0", "0x4680", "i915")
    assert [one["kind"] for one in tree.items() if "ids" in one] == ["gpu", "accelerator"]


def test_other_functions_of_a_habana_board_are_not_accelerators(tree: Any) -> None:
    gaudi(tree)
    tree.function("0000:33:00.1", "0x1021", None, vendor="0x1da3", pci_class="0x020000")
    assert list(tree.devices()) == ["pci:0000:33:00.0"]
