"""Apple silicon out of recorded answers; keys and values as real Macs print them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

GIB = 1 << 30
M3_MAX = {"machine_name": "MacBook Pro", "machine_model": "Mac15,8", "chip_type": "Apple M3 Max",
          "physical_memory": "128 GB", "number_processors": "proc 16:12:4"}  # fmt: skip
DISPLAY = {
    "_name": "Apple M3 Max", "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
    "spdisplays_vendor": "sppci_vendor_Apple", "sppci_bus": "spdisplays_builtin",
    "sppci_cores": "40", "sppci_device_type": "spdisplays_gpu", "sppci_model": "Apple M3 Max",
}  # fmt: skip
AGX = {
    "IOClass": "AGXAcceleratorG15X", "CFBundleIdentifier": "com.apple.AGXG15X",
    "model": "Apple M3 Max", "gpu-core-count": 40, "MetalPluginName": "AGXMetalG15X_M1",
}  # fmt: skip
ANE = {"IOClass": "H11ANEIn", "DeviceProperties": {"ANEDevicePropertyNumANECores": 16}}


def states(*frequencies: int) -> bytes:
    return b"".join(struct.pack("<II", one, 700) for one in (0, *frequencies))


@pytest.fixture
def m3(mac: Any) -> Any:
    """A MacBook Pro with M3 Max and 128 GB."""
    mac.sysctls |= {
        "machdep.cpu.brand_string": "Apple M3 Max", "hw.memsize": 128 * GIB,
        "hw.optional.arm64": 1, "iogpu.wired_limit_mb": 0, "kern.osproductversion": "26.1",
    }  # fmt: skip
    mac.ioreg("IOAccelerator", AGX)
    mac.ioreg("H11ANEIn", ANE)
    mac.ioreg("pmgr", {"voltage-states9": states(338_000_000, 1_380_000_000)})
    mac.profiler(M3_MAX, DISPLAY)
    return mac


def test_gpu_and_neural_engine_are_told_in_full(m3: Any) -> None:
    gpu, engine = m3.said()
    memory = {"kind": "unified", "total": 128 * GIB, "parts": {"system": 128 * GIB}}
    assert gpu == {
        "ids": ["apple:gpu0"], "kind": "gpu", "vendor": "apple", "backends": ["metal"],
        "name": "Apple M3 Max", "units": 40, "clocks": {"max_mhz": 1380.0},
        "driver": {"name": "com.apple.AGXG15X", "class": "AGXAcceleratorG15X", "macos": "26.1"},
        "memory": memory, "extra": {"metal": "metal3"},
        "unknown": {
            "memory.parts.limit": "iogpu.wired_limit_mb is 0: macOS's own choice, which it gives"
            " to Metal programs alone",
        },
    }  # fmt: skip
    assert engine == {
        "ids": ["apple:ane0"], "kind": "npu", "vendor": "apple", "backends": ["coreml"],
        "name": "Apple M3 Max Neural Engine", "units": 16, "memory": memory,
        "driver": {"class": "H11ANEIn", "macos": "26.1"},
        "unknown": {"clocks.max_mhz": "its driver reports no clock"},
    }  # fmt: skip


def test_limit_that_somebody_set_is_what_is_usable(m3: Any) -> None:
    m3.sysctls["iogpu.wired_limit_mb"] = 114688
    gpu, _ = m3.said()
    assert gpu["memory"]["parts"]["limit"] == gpu["memory"]["usable"] == 112 * GIB
    assert "unknown" not in gpu


def test_limit_beyond_the_memory_does_not_make_it_larger(m3: Any) -> None:
    m3.sysctls["iogpu.wired_limit_mb"] = 262144
    gpu, _ = m3.said()
    assert gpu["memory"]["usable"] == 128 * GIB
    assert gpu["memory"]["parts"]["limit"] == 256 * GIB


def test_system_profiler_alone_is_enough(m3: Any) -> None:
    """As when ioreg's format changes: no property list, no sysctl."""
    m3.sysctls.clear()
    for name in ("IOAccelerator", "H11ANEIn", "pmgr"):
        m3.outputs[f"ioreg-{name}.plist"] = b"+-o AGXAcceleratorG15X"
    (gpu,) = m3.said()
    assert (gpu["name"], gpu["units"]) == ("Apple M3 Max", 40)
    assert gpu["memory"]["total"] == 128 * GIB
    assert gpu["unknown"]["memory.parts.limit"] == "there is no sysctl iogpu.wired_limit_mb"
    assert gpu["unknown"]["clocks.max_mhz"] == "the power manager lists no states of the GPU"


def test_ioreg_and_sysctl_alone_are_enough(m3: Any) -> None:
    """As when system_profiler is too slow, which it is on some Macs."""
    del m3.outputs["system_profiler.json"]
    gpu, engine = m3.said()
    assert (gpu["name"], gpu["units"]) == ("Apple M3 Max", 40)
    assert engine["name"] == "Apple M3 Max Neural Engine"
    assert "extra" not in gpu


def test_of_a_mac_that_says_nothing_the_chip_still_has_a_gpu(mac: Any) -> None:
    mac.sysctls["machdep.cpu.brand_string"] = "Apple M5"
    (gpu,) = mac.said()
    assert gpu["name"] == "Apple M5"
    assert "units" not in gpu
    assert "ioreg-IOAccelerator.plist was not recorded" in gpu["unknown"]["units"]
    assert "hw.memsize" in gpu["unknown"]["memory.total"]


@pytest.mark.parametrize(
    ("cores", "units"),
    [("80", 80), ("9999", 9999), ("12345", None), ("0", None), ("٣", None), ("ten", None)],
)
def test_a_count_of_cores_has_four_digits_at_most(m3: Any, cores: str, units: int | None) -> None:
    m3.ioreg("IOAccelerator", {k: v for k, v in AGX.items() if k != "gpu-core-count"})
    m3.profiler(M3_MAX, {**DISPLAY, "sppci_cores": cores})
    gpu = m3.said()[0]
    assert (gpu.get("units"), "units" in gpu["unknown"]) == (units, units is None)


def test_under_rosetta_it_is_apple_silicon_all_the_same(m3: Any) -> None:
    m3.arch = "x86_64"
    assert [one["ids"] for one in m3.said()] == [["apple:gpu0"], ["apple:ane0"]]


def test_frequencies_in_kilohertz_are_told_from_hertz(m3: Any) -> None:
    m3.ioreg("pmgr", {"voltage-states9": states(338_000, 1_578_000)})
    assert m3.said()[0]["clocks"] == {"max_mhz": 1578.0}


@pytest.mark.parametrize(
    ("highest", "mhz"),
    [
        (100_000_000, 100.0),
        (99_999_999, None),
        (4_000_000, 4000.0),
        (4_000_001, None),
        (100_000, 100.0),
        (99_999, None),
        (4_000_000_000, 4000.0),
        (4_001_000_000, None),
    ],
)
def test_the_least_and_the_highest_frequency_of_a_gpu(
    m3: Any, highest: int, mhz: float | None
) -> None:
    m3.ioreg("pmgr", {"voltage-states9": states(1, highest, 2)})
    assert m3.said()[0].get("clocks", {}).get("max_mhz") == mhz


@pytest.mark.parametrize("raw", [b"", b"\0" * 16, b"\xff" * 16, b"\1\0", "text", 7])
def test_other_encodings_give_no_clock(m3: Any, raw: object) -> None:
    m3.ioreg("pmgr", {"voltage-states9": raw})
    assert "clocks" not in m3.said()[0]


def test_an_ultras_two_engines_are_one_with_the_cores_of_both(m3: Any) -> None:
    m3.sysctls["machdep.cpu.brand_string"] = "Apple M2 Ultra"
    m3.ioreg("H11ANEIn", ANE, ANE)
    _, engine = m3.said()
    assert (engine["name"], engine["units"]) == ("Apple M2 Ultra Neural Engine", 32)


@pytest.mark.parametrize("chip", ["Apple M1 (Virtual)", "Apple", "Apple M", "Apple M9 Mini", ""])
def test_engine_of_a_chip_with_another_name_is_left_out(m3: Any, chip: str) -> None:
    m3.sysctls["machdep.cpu.brand_string"] = chip
    m3.profiler({})
    assert [one["kind"] for one in m3.said()] == ["gpu"]


def test_guest_of_a_mac_has_a_paravirtual_gpu(mac: Any) -> None:
    mac.sysctls |= {"machdep.cpu.brand_string": "Apple M1 (Virtual)", "hw.memsize": 8 * GIB}
    mac.ioreg("IOAccelerator", {"IOClass": "AppleParavirtGPU"})
    mac.ioreg("H11ANEIn")
    mac.profiler({}, {"sppci_model": "Apple Paravirtual device"})
    (gpu,) = mac.said()
    assert gpu["name"] == "Apple Paravirtual device"
    assert "units" not in gpu
    assert gpu["driver"] == {"class": "AppleParavirtGPU"}


def test_accelerator_that_counts_cores_is_the_gpu(m3: Any) -> None:
    m3.ioreg("IOAccelerator", {"IOClass": "SomeHelper", "model": "helper"}, AGX)
    assert m3.said()[0]["name"] == "Apple M3 Max"


@pytest.mark.parametrize(
    "output", [b"", b"null", b"[]", b'{"SPDisplaysDataType": [1, null]}', b"{", b"[" * 100_000]
)
def test_json_of_any_other_shape_is_no_answer(m3: Any, output: bytes) -> None:
    m3.outputs["system_profiler.json"] = output
    gpu, _ = m3.said()
    assert (gpu["name"], gpu["units"]) == ("Apple M3 Max", 40)


@pytest.mark.parametrize("cores", [0, -1, "40", 40.0, 10**9, None])
def test_core_count_that_is_none_is_not_believed(m3: Any, cores: object) -> None:
    entry = {key: value for key, value in AGX.items() if key != "gpu-core-count"}
    m3.ioreg("IOAccelerator", entry if cores is None else entry | {"gpu-core-count": cores})
    m3.profiler(M3_MAX, {"sppci_cores": "many"})
    assert "units" not in m3.said()[0]
