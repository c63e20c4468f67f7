"""A real H100 and H200, as `probe record` kept them: what drivers answered, what reports say."""

from __future__ import annotations

from pathlib import Path

import pytest

import probe_core
from probe_core.recording import open_machine
from probe_core.selection.occupied import occupancy

NAME = "vm-with-h100-80gb-hbm3-driver-580.159.04.json"
IN_USE = "vm-with-busy-h100-80gb-hbm3-driver-580.159.04.json"
RECORDING = Path(__file__).parent / "recordings" / NAME


@pytest.fixture(scope="module")
def report() -> probe_core.Report:
    with open_machine(str(RECORDING)) as machine:
        return probe_core.probe(machine=machine)


def test_the_report_has_what_nvidia_smi_said(report: probe_core.Report) -> None:
    device = report.primary_device
    assert device is not None
    assert (device.id, device.name) == ("pci:0000:00:06.0", "NVIDIA H100 80GB HBM3")
    memory = device.memory
    assert memory is not None
    # nvidia-smi: 81559 MiB, 0 MiB used, 480 MiB reserved.
    assert (memory.total, memory.used) == (81559 << 20, 0)
    assert memory.free == (81559 - 480) << 20
    document = report.to_json()["devices"][0]
    assert document["driver"] == {"name": "nvidia", "version": "580.159.04", "cuda": "13.0"}
    assert (document["units"], document["clocks"]["max_mhz"]) == (132, 1980)
    assert document["readiness"]["state"] == "ready"


def test_what_it_was_in_use_by_is_in_its_recording(tmp_path: Path) -> None:
    """A process held 256 MiB of numbers, and CUDA's context with them."""
    with open_machine(str(RECORDING.with_name(IN_USE))) as machine:
        device = probe_core.probe(machine=machine).to_json()["devices"][0]
    assert device["processes"] == 1
    assert device["memory"]["used"] == 822935552
    assert device["memory"]["free"] == 84194557952
    assert occupancy([device], str(tmp_path)) == {
        "pci:0000:00:06.0": "784.8 MiB in use outside any lease, by 1 process"
    }


def test_its_figures_are_those_of_the_data_sheet(report: probe_core.Report) -> None:
    device = report.primary_device
    assert device is not None
    assert device.chip is not None
    assert device.chip.id == "nvidia/h100-sxm5-80gb"
    assert (round(device.fp32 or 0, 1), round(device.fp16 or 0)) == (66.9, 989)
    assert round((device.bandwidth or 0) / 1e9) == 3350
    assert [f.code for f in report.findings if f.severity != "info"] == []


H200 = RECORDING.with_name("vm-with-h200-driver-580.159.04.json")
H200_IN_USE = RECORDING.with_name("vm-with-busy-h200-driver-580.159.04.json")


def test_an_h200_is_what_nvidia_smi_said() -> None:
    with open_machine(str(H200)) as machine:
        report = probe_core.probe(machine=machine)
    device = report.primary_device
    assert device is not None
    assert (device.id, device.name) == ("pci:0000:00:06.0", "NVIDIA H200")
    assert device.chip is not None
    assert device.chip.id == "nvidia/h200-sxm5-141gb"
    memory = device.memory
    assert memory is not None
    # nvidia-smi: 143771 MiB, 616 MiB reserved (it rounds up), 0 MiB used.
    assert (memory.total, memory.used) == (143771 << 20, 0)
    assert memory.free == (143771 << 20) - 644939776
    assert (round(device.fp32 or 0, 1), round(device.fp16 or 0)) == (66.9, 989)
    assert (round((device.bandwidth or 0) / 1e9), report.to_json()["devices"][0]["units"]) == (
        4800,
        132,
    )
    assert report.findings == ()


def test_what_a_product_of_matrices_holds_of_an_h200(tmp_path: Path) -> None:
    """torch held 20 GiB and three matrices; nvidia-smi said 21491 MiB, 692 W of 700."""
    with open_machine(str(H200_IN_USE)) as machine:
        device = probe_core.probe(machine=machine).to_json()["devices"][0]
    assert device["processes"] == 1
    assert device["memory"]["used"] == 22534750208  # 21490.8 MiB
    assert device["readiness"]["state"] == "ready"
    assert occupancy([device], str(tmp_path)) == {
        "pci:0000:00:06.0": "20.9 GiB in use outside any lease, by 1 process"
    }
