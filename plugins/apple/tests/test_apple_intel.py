"""GPUs of Intel Macs out of recorded answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_apple import ioreg, profiler
from probe_apple.sysctl import Sysctl
from probe_core.api import Machine, NotApplicable, Unavailable

GIB = 1 << 30
UHD_630 = {
    "_name": "kHW_IntelUHDGraphics630Item", "spdisplays_device-id": "0x3e9b",
    "spdisplays_vendor": "Intel", "spdisplays_vram_shared": "1536 MB",
    "spdisplays_metalfamily": "spdisplays_mtlgpufamilymac2", "sppci_bus": "spdisplays_builtin",
    "sppci_device_type": "spdisplays_gpu", "sppci_model": "Intel UHD Graphics 630",
}  # fmt: skip
PRO_5500M = {
    "_name": "kHW_AMDRadeonPro5500MItem", "spdisplays_device-id": "0x7340",
    "spdisplays_vendor": "sppci_vendor_amd", "spdisplays_vram": "8 GB",
    "spdisplays_mtlgpufamilysupport": "spdisplays_metal3", "sppci_bus": "spdisplays_pcie_device",
    "sppci_device_type": "spdisplays_gpu", "sppci_model": "AMD Radeon Pro 5500M",
}  # fmt: skip


def little(number: int, size: int = 4) -> bytes:
    return number.to_bytes(size, "little")


def pci(vendor: int, device: int, place: str, code: int = 0x030000, **more: Any) -> dict[str, Any]:
    return {
        "vendor-id": little(vendor), "device-id": little(device), "class-code": little(code),
        "subsystem-vendor-id": little(0x106B), "subsystem-id": little(0x0210),
        "revision-id": little(2), "pcidebug": place, **more,
    }  # fmt: skip


@pytest.fixture
def book(intel_mac: Any) -> Any:
    """A MacBook Pro (2019, 16 inch): two GPUs."""
    intel_mac.sysctls |= {
        "machdep.cpu.brand_string": "Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz",
        "hw.memsize": 32 * GIB, "kern.osproductversion": "15.7",
    }  # fmt: skip
    intel_mac.ioreg(
        "IOPCIDevice",
        pci(0x8086, 0x3E9B, "0:2:0", model=b"Intel UHD Graphics 630\0"),
        pci(0x8086, 0x1901, "0:1:0(1:4)", 0x060400),
        pci(0x1002, 0x7340, "3:0:0", **{"VRAM,totalMB": 8176}),
        pci(0x1002, 0xAB38, "3:0:1", 0x040300),
    )
    intel_mac.ioreg("IOAccelerator", {"IOClass": "IntelAccelerator"})
    intel_mac.profiler({"cpu_type": "8-Core Intel Core i9"}, UHD_630, PRO_5500M)
    return intel_mac


def test_both_gpus_are_told_with_their_pci_addresses(book: Any) -> None:
    integrated, card = book.said()
    assert integrated == {
        "ids": ["pci:0000:00:02.0"], "kind": "gpu", "vendor": "intel", "backends": ["metal"],
        "pci": {"id": "8086:3e9b", "subsystem": "106b:0210", "revision": "02", "class": "030000"},
        "name": "Intel UHD Graphics 630", "driver": {"macos": "15.7"},
        "memory": {"kind": "unified", "total": 32 * GIB,
                   "parts": {"system": 32 * GIB, "limit": 1536 << 20}},
        "extra": {"metal": "mac2"},
        "unknown": {"units": "macOS does not count the units of GPUs that are not Apple's"},
    }  # fmt: skip
    assert (card["ids"], card["vendor"]) == (["pci:0000:03:00.0"], "amd")
    assert card["name"] == "AMD Radeon Pro 5500M"
    assert card["memory"] == {
        "kind": "dedicated", "total": 8176 << 20, "parts": {"vram": 8176 << 20},
    }  # fmt: skip
    assert card["extra"] == {"memory_source": "ioreg", "metal": "metal3"}


def test_without_ioreg_sizes_are_rounded_and_ids_are_our_own(book: Any) -> None:
    del book.outputs["ioreg-IOPCIDevice.plist"]
    integrated, card = book.said()
    assert (integrated["ids"], card["ids"]) == (["apple:8086-3e9b-0"], ["apple:1002-7340-0"])
    assert card["memory"]["total"] == 8 * GIB
    assert card["pci"] == {"id": "1002:7340"}
    assert card["extra"]["memory_source"] == "system_profiler, rounded"


def test_without_system_profiler_the_registry_names_what_it_can(book: Any) -> None:
    del book.outputs["system_profiler.json"]
    integrated, card = book.said()
    assert integrated["name"] == "Intel UHD Graphics 630"
    assert integrated["memory"] == {
        "kind": "unified", "total": 32 * GIB, "parts": {"system": 32 * GIB},
    }  # fmt: skip
    assert "how much it may use" in integrated["unknown"]["memory.parts.limit"]
    assert "name" not in card
    assert card["unknown"]["name"] == "system_profiler.json was not recorded"
    assert card["memory"]["total"] == 8176 << 20


def test_two_cards_of_one_model_are_two(intel_mac: Any) -> None:
    """A Mac Pro with two Radeon Pro Vega II, and an eGPU whose driver gives bytes."""
    vega = {"spdisplays_device-id": "0x66a3", "spdisplays_vendor": "sppci_vendor_amd",
            "spdisplays_vram": "32 GB", "sppci_model": "AMD Radeon Pro Vega II"}  # fmt: skip
    egpu = {"spdisplays_device-id": "0x73bf", "spdisplays_vendor": "AMD (0x1002)",
            "sppci_device_type": "spdisplays_egpu", "sppci_model": "Radeon RX 6800"}  # fmt: skip
    intel_mac.ioreg(
        "IOPCIDevice", pci(0x1002, 0x66A3, "7:0:0"), pci(0x1002, 0x66A3, "25:0:0"),
        pci(0x1002, 0x73BF, "66:0:0", **{"VRAM,totalsize": little(16 * GIB, 8)}),
    )  # fmt: skip
    intel_mac.profiler({}, vega, vega, egpu)
    first, second, external = intel_mac.said()
    assert [one["ids"] for one in (first, second, external)] == [
        ["pci:0000:07:00.0"], ["pci:0000:19:00.0"], ["pci:0000:42:00.0"],
    ]  # fmt: skip
    assert first["name"] == second["name"] == "AMD Radeon Pro Vega II"
    assert second["memory"]["total"] == 32 * GIB
    assert external["memory"]["total"] == 16 * GIB
    assert external["extra"]["external"] is True


def test_nvidia_of_an_old_mac_without_size_says_so(intel_mac: Any) -> None:
    intel_mac.profiler({}, {"spdisplays_device-id": "0xfd5", "spdisplays_vendor": "NVIDIA (0x10de)",
                            "sppci_model": "NVIDIA GeForce GT 650M"})  # fmt: skip
    (gpu,) = intel_mac.said()
    assert (gpu["vendor"], gpu["pci"]) == ("nvidia", {"id": "10de:0fd5"})
    assert "memory" not in gpu
    assert gpu["unknown"]["memory.total"]


def test_gpu_of_an_unknown_vendor_keeps_a_stable_id(intel_mac: Any) -> None:
    intel_mac.profiler({}, {"sppci_model": "Display Größe X"})
    (gpu,) = intel_mac.said()
    assert gpu["ids"] == ["apple:Display_Gr??e_X-0"]
    assert gpu["name"] == "Display Größe X"


def test_mac_that_cannot_be_asked_is_unavailable(intel_mac: Any) -> None:
    with pytest.raises(Unavailable) as caught:
        intel_mac.said()
    assert caught.value.code == "commands-failed"
    assert "system_profiler.json was not recorded" in caught.value.reason


def test_mac_without_a_gpu_is_not_applicable(intel_mac: Any) -> None:
    for name in ("IOAccelerator", "IOPCIDevice"):
        intel_mac.ioreg(name)
    intel_mac.profiler({})
    assert isinstance(intel_mac.said(), NotApplicable)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 GB", 4 * GIB), ("1536 MB", 1536 << 20), ("1,5 Go", 3 * GIB // 2),
        ("8\u00a0GB", 8 * GIB),
        ("", None), ("GB", None), ("-4 GB", None), ("nan GB", None), ("inf GB", None), ("4", None),
        ("4 X", None), (None, None), ("0 GB", None), ("9 KB", 9 << 10), ("1 TB", 1 << 40),
        ("1048575 KB", 1048575 << 10), ("1048576 KB", None),
    ],
)  # fmt: skip
def test_sizes_as_people_read_them(text: str | None, expected: int | None) -> None:
    assert profiler.size(text) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("0:2:0", "0000:00:02.0"), ("25:0:0", "0000:19:00.0"), ("0:1:0(1:4)", "0000:00:01.0"),
        ("255:31:7", "0000:ff:1f.7"),
        ("0:32:0", None), ("256:0:0", None), ("0:0:8", None), ("x", None), (7, None), (None, None),
    ],
)  # fmt: skip
def test_addresses_are_decimal(place: object, expected: str | None) -> None:
    assert ioreg.address({"pcidebug": place}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0x7340", "7340"), ("73", "0073"), ("ABCD", "abcd"), ("0x12345", None), ("0x", None)],
)
def test_device_ids_have_four_digits(text: str, expected: str | None) -> None:
    assert profiler.hexadecimal(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"\1\2", 0x201), (b"\xff" * 8, (1 << 64) - 1), (b"\1" * 9, None), (b"", None), (True, None)],
)
def test_numbers_of_the_registry(value: object, expected: int | None) -> None:
    assert ioreg.number(value) == expected


def test_texts_and_counts_of_the_registry() -> None:
    assert [ioreg.text(value) for value in (b" a\0b", b"\0", " ", 5)] == ["a", None, None, None]
    assert [ioreg.count(value) for value in (0, 1, ioreg.MAX_COUNT - 1, ioreg.MAX_COUNT)] == [
        *(None, 1, ioreg.MAX_COUNT - 1, None)
    ]


def test_numbers_of_recorded_sysctls(tmp_path: Path) -> None:
    lines = {"a": "18446744073709551615", "b": "1" * 21, "c": "-1", "d": "x", "e": ""}
    (tmp_path / "recorded").mkdir()
    text = "".join(f"{name}: {value}\n" for name, value in lines.items())
    (tmp_path / "recorded/sysctl.txt").write_text(text)
    sysctl = Sysctl(Machine(str(tmp_path), os="darwin"))
    assert [sysctl.number(name) for name in "abcdef"] == [(1 << 64) - 1, *[None] * 5]
    assert [sysctl.text(name) for name in "def"] == ["x", None, None]
