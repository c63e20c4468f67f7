"""Live figures of Macs: what drivers put into PerformanceStatistics."""

from __future__ import annotations

from typing import Any

from sampled_here import Round, sample_here

from probe_apple import prober
from probe_core.testing import Case

GIB = 1 << 30


def look(mac: Any) -> Round:
    return sample_here(prober, Case(mac.record()), count=1)[-1]


def test_apple_silicon(mac: Any) -> None:
    mac.sysctls |= {"hw.memsize": 64 * GIB, "hw.optional.arm64": 1}
    statistics = {
        "Device Utilization %": 42, "Renderer Utilization %": 40,
        "In use system memory": 3 * GIB, "Alloc system memory": 9 * GIB,
    }  # fmt: skip
    mac.ioreg("IOAccelerator", {"IOClass": "AGXAccelerator", "PerformanceStatistics": statistics})
    (sample,) = look(mac).samples
    assert (sample["device"], sample["busy"]) == ("apple:gpu0", 0.42)
    assert sample["memory"] == {"used": 3 * GIB, "total": 64 * GIB}
    for field in ("temperature_c", "power_w", "clocks_mhz", "processes"):
        assert field not in sample
        assert sample["unknown"][field]


def pci(device: int, place: str) -> dict[str, Any]:
    numbers = {"vendor-id": 0x1002, "device-id": device, "class-code": 0x030000}
    return {**{n: v.to_bytes(4, "little") for n, v in numbers.items()}, "pcidebug": place}


def test_a_radeon_of_an_intel_mac(intel_mac: Any) -> None:
    intel_mac.ioreg("IOPCIDevice", pci(0x7340, "3:0:0"))
    statistics = {
        "GPU Activity(%)": 7, "vramUsedBytes": GIB, "vramFreeBytes": 3 * GIB,
        "Temperature(C)": 61, "Total Power(W)": 38, "Core Clock(MHz)": 1300,
        "Memory Clock(MHz)": 750,
    }  # fmt: skip
    intel_mac.ioreg(
        "IOAccelerator",
        {"IOClass": "AMDRadeonX6000_AMDNavi14GraphicsAccelerator",
         "PerformanceStatistics": statistics},
    )  # fmt: skip
    (sample,) = look(intel_mac).samples
    assert sample["device"] == "pci:0000:03:00.0"
    assert sample["busy"] == 0.07
    assert sample["memory"] == {"used": GIB, "total": 4 * GIB}
    assert (sample["temperature_c"], sample["power_w"]) == (61, 38)
    assert sample["clocks_mhz"] == {"sm": 1300, "memory": 750}


def test_two_cards_of_a_maker_cannot_be_told_apart(intel_mac: Any) -> None:
    intel_mac.ioreg("IOPCIDevice", pci(0x66A3, "3:0:0"), pci(0x66A3, "7:0:0"))
    assert look(intel_mac).status == "not_applicable"


def test_a_mac_without_statistics_says_so(mac: Any) -> None:
    mac.sysctls |= {"hw.optional.arm64": 1}
    mac.ioreg("IOAccelerator", {"IOClass": "AGXAccelerator"})
    (sample,) = look(mac).samples
    assert sample["status"] == "unavailable"
    assert "PerformanceStatistics" in sample["reason"]
