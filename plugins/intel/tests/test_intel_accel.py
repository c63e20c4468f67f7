"""NPUs under intel_vpu and Gaudis under habanalabs."""

from __future__ import annotations

from typing import Any

import pytest


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


@pytest.mark.parametrize("files", [{}, {"npu_max_frequency_mhz": 0}])
def test_older_kernels_tell_no_clock(tree: Any, files: dict[str, int]) -> None:
    npu(tree, **files)
    device = tree.single()
    assert "clocks" not in device
    assert device["unknown"]["clocks.max_mhz"] == "this intel_vpu shows no maximum frequency"


def test_npu_without_driver_is_told(tree: Any) -> None:
    tree.function("0000:00:0b.0", "0x7d1d", None, pci_class="0x120000")
    assert tree.steps() == [("driver", "broken", "npu-no-module")]
    assert "backends" not in tree.single()
    tree.file("/sys/module/intel_vpu/refcnt", 0)
    assert tree.steps() == []  # firmware, kernel: the core's to tell


@pytest.mark.parametrize(
    ("files", "nodes"),
    [
        ({"accel": 0}, ["/dev/accel/accel0"]),
        ({"habanalabs__hl3__dev": "511:0", "habanalabs__hl_controlD3__dev": "511:1"}, ["/dev/hl3"]),
    ],
)
def test_nodes_of_a_gaudi(tree: Any, files: dict[str, Any], nodes: list[str]) -> None:
    tree.function("0000:33:00.0", "0x1020", "habanalabs", vendor="0x1da3", pci_class="0x120000",
                  status="active", **files)  # fmt: skip
    assert tree.single()["nodes"] == nodes


def test_a_gaudi_that_a_guest_has_gives_no_figures(tree: Any) -> None:
    tree.function("0000:33:00.0", "0x1020", "vfio-pci", vendor="0x1da3", pci_class="0x120000")
    device = tree.single()
    reason = "bound to vfio-pci, not to habanalabs"
    assert {name: device["unknown"][name] for name in ("clocks.max_mhz", "memory.total")} == {
        "clocks.max_mhz": reason,
        "memory.total": reason,
    }
    assert "backends" not in device


def test_nodes_of_an_npu(tree: Any) -> None:
    tree.function("0000:00:0b.0", "0x7d1d", "intel_vpu", pci_class="0x120000", accel=1)
    assert tree.single()["nodes"] == ["/dev/accel/accel1"]


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
    assert tree.steps() == [("responding", "ok", None)]


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
    (fact,) = device["step_facts"]
    assert fact == {
        "step": "responding", "status": "broken", "code": "gaudi-not-operational",
        "evidence": "status of 0000:33:00.0 in sysfs is 'Malfunction'",
    }  # fmt: skip


def test_working_gaudi_says_so(tree: Any) -> None:
    tree.file(f"{gaudi(tree)}/status", "Operational")
    assert tree.steps() == [("responding", "ok", None)]


def test_gaudi_to_avoid_is_not_asked(tree: Any) -> None:
    tree.file(f"{gaudi(tree)}/status", "Operational")
    gaudi(tree, "0000:34:00.0")
    avoided, asked = tree.items(avoid=("pci:0000:33:00.0",))
    assert avoided["driver"]["name"] == "habanalabs"
    assert [(f["step"], f["code"]) for f in avoided["step_facts"]] == [
        ("responding", "driver-hangs"),
    ]
    assert "extra" not in avoided
    assert asked["backends"] == ["habana"]


def test_gaudis_come_after_gpus_because_their_firmware_may_hang(tree: Any) -> None:
    gaudi(tree, "0000:00:01.0")
    tree.function("0000:00:02.0", "0x4680", "i915")
    assert [one["kind"] for one in tree.items() if "ids" in one] == ["gpu", "accelerator"]


def test_other_functions_of_a_habana_board_are_not_accelerators(tree: Any) -> None:
    gaudi(tree)
    tree.function("0000:33:00.1", "0x1021", None, vendor="0x1da3", pci_class="0x020000")
    assert list(tree.devices()) == ["pci:0000:33:00.0"]
