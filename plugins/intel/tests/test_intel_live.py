"""Live figures of Intel GPUs and NPUs: counters become rates, and what needs rights is unknown."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from sampled_here import sample_here

from probe_core.testing import Case, Machine
from probe_intel import prober

CARD, OWN, NPU = "pci:0000:03:00.0", "pci:0000:00:02.0", "pci:0000:00:0b.0"


@pytest.fixture
def tree(new_tree: Any, tmp_path: Path) -> Any:
    return new_tree(tmp_path)


def looks(tree: Any, **options: Any) -> list[dict[str, Any]]:
    rounds = sample_here(prober, Case(Machine(str(tree.root))), **options)
    for look in rounds:
        assert look.status == "ok", look.reason
    return [look.samples[0] for look in rounds]


def xe(tree: Any) -> str:
    card: str = tree.function("0000:03:00.0", "0xe20b", "xe")
    tree.file(f"{card}/tile0/gt0/freq0/act_freq", 2400)
    tree.file(f"{card}/tile0/gt0/gtidle/idle_residency_ms", 0)
    tree.file(f"{card}/tile0/gt1/gtidle/idle_residency_ms", 0)
    hwmon = {"energy1_input": 0, "temp1_input": 44000, "power1_max": 0, "power1_crit": 190_000_000}
    for name, value in hwmon.items():
        tree.file(f"{card}/hwmon/hwmon2/{name}", value)
    return card


def test_xe_is_as_busy_as_its_busiest_tile(tree: Any) -> None:
    card = xe(tree)

    def work(_: int) -> None:
        # One tile never idle since, the other always: a counter far ahead is idle throughout.
        tree.file(f"{card}/tile0/gt1/gtidle/idle_residency_ms", 10**9)

    first, second = looks(tree, pause=work)
    assert "busy" not in first
    assert first["unknown"]["busy"] == "a rate needs two readings"
    assert second["busy"] == 1
    assert second["clocks_mhz"] == {"sm": 2400}
    assert second["temperature_c"] == pytest.approx(44)
    assert second["power_cap_w"] == pytest.approx(190)  # power1_max of 0 is disabled


def test_a_tile_that_is_idle_half_of_the_time_is_half_busy(tree: Any) -> None:
    card = xe(tree)

    def work(_: int) -> None:
        time.sleep(0.2)
        for gt in ("gt0", "gt1"):
            tree.file(f"{card}/tile0/{gt}/gtidle/idle_residency_ms", 100)

    # What passes beside the sleep counts as busy.
    assert 0.5 <= looks(tree, pause=work)[1]["busy"] < 1


def test_energy_becomes_power(tree: Any) -> None:
    card = xe(tree)

    def burn(_: int) -> None:
        tree.file(f"{card}/hwmon/hwmon2/energy1_input", 1_000)

    tree.file(f"{card}/aer_dev_correctable", "BadTLP 4\nTOTAL_ERR_COR 4\n")
    first, second = looks(tree, pause=burn)
    assert first["counters"] == {"energy_j": 0, "pcie_correctable": 4}
    assert second["counters"]["energy_j"] == pytest.approx(0.001)
    assert first["unknown"]["power_w"] == "a rate needs two readings"
    assert 0 < second["power_w"] < 100


def test_a_register_of_i915_that_wraps_is_mended_once(tree: Any) -> None:
    own = tree.function("0000:03:00.0", "0x56a0", "i915")
    tree.file(f"{own}/drm/card0/dev", "226:0")
    tree.file(f"{own}/drm/card0/gt_act_freq_mhz", 1300)
    tree.file(f"{own}/hwmon/hwmon2/energy1_input", (1 << 32) - 500)

    def wrap(_: int) -> None:
        tree.file(f"{own}/hwmon/hwmon2/energy1_input", 500)

    second = looks(tree, pause=wrap)[1]
    assert 0 < second["power_w"] < 100
    assert second["clocks_mhz"] == {"sm": 1300}


def test_an_npu_counts_microseconds(tree: Any) -> None:
    npu = tree.function(
        "0000:00:0b.0", "0x7d1d", "intel_vpu", pci_class="0x120000", npu_busy_time_us=0,
        npu_current_frequency_mhz=0, npu_memory_utilization=1 << 20,
    )  # fmt: skip

    def work(_: int) -> None:
        tree.file(f"{npu}/npu_busy_time_us", 1)

    first, second = looks(tree, pause=work)
    assert first["unknown"]["busy"] == "a rate needs two readings"
    assert 0 < second["busy"] < 0.01
    assert second["memory"] == {"used": 1 << 20}  # bytes, whatever its name
    assert second["clocks_mhz"] == {"sm": 0}


def test_an_integrated_gpu_has_no_sensors(tree: Any) -> None:
    own = tree.function("0000:00:02.0", "0x7d55", "i915")
    tree.file(f"{own}/drm/card0/dev", "226:0")
    sample = looks(tree, count=1)[0]
    assert sample["device"] == OWN
    for field in ("temperature_c", "power_w", "power_cap_w", "memory"):
        assert field not in sample
        assert sample["unknown"][field]


def test_devices_of_other_drivers_are_not_asked(tree: Any) -> None:
    tree.function("0000:03:00.0", "0xe20b", "vfio-pci")
    first, *_ = sample_here(prober, Case(Machine(str(tree.root))))
    assert (first.status, first.samples) == ("not_applicable", [])
    assert first.reason == "no device is driven by i915, xe or intel_vpu"
