"""The contract, on a recorded MacBook Pro with M3 Max and on a "live" Intel Mac with three cards.

The live one's executables are shell scripts, and its libc has a sysctlbyname of the tests.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.testing import Case, Machine, ProberContract

GIB = 1 << 30
VEGA = {"spdisplays_device-id": "0x66a3", "spdisplays_vendor": "sppci_vendor_amd",
        "spdisplays_vram": "32 GB", "sppci_model": "AMD Radeon Pro Vega II"}  # fmt: skip
EGPU = {"spdisplays_device-id": "0x73bf", "spdisplays_vendor": "AMD (0x1002)",
        "sppci_device_type": "spdisplays_egpu", "sppci_model": "Radeon RX 6800"}  # fmt: skip


def pci(device: int, place: str, **more: bytes) -> dict[str, Any]:
    numbers = {"vendor-id": 0x1002, "device-id": device, "class-code": 0x030000}
    entry = {name: number.to_bytes(4, "little") for name, number in numbers.items()}
    return {**entry, "pcidebug": place, **more}


class AppleContract(ProberContract):
    name = "apple"
    target = "probe_apple.prober"
    absent = "unavailable"  # every Mac has a GPU

    @pytest.fixture(autouse=True)
    def builder(self, request: pytest.FixtureRequest, new_mac: Any) -> None:
        self.fixtures, self.new_mac = request, new_mac


class TestRecorded(AppleContract):
    project = Path(__file__).parents[1]

    def sampled(self, root: Path) -> Case:
        return self.hardware(root)

    def hardware(self, root: Path) -> Case:
        mac = self.new_mac(root)
        mac.sysctls |= {
            "machdep.cpu.brand_string": "Apple M3 Max", "hw.memsize": 128 * GIB,
            "hw.optional.arm64": 1, "iogpu.wired_limit_mb": 114688, "kern.osproductversion": "26.1",
        }  # fmt: skip
        mac.ioreg("IOAccelerator", {
            "IOClass": "AGXAcceleratorG15X", "CFBundleIdentifier": "com.apple.AGXG15X",
            "model": "Apple M3 Max", "gpu-core-count": 40,
            "PerformanceStatistics": {"Device Utilization %": 31, "In use system memory": GIB},
        })  # fmt: skip
        engine = {"ANEDevicePropertyNumANECores": 16}
        mac.ioreg("H11ANEIn", {"IOClass": "H11ANEIn", "DeviceProperties": engine})
        mac.ioreg("pmgr", {"voltage-states9": struct.pack("<4I", 0, 0, 1_380_000_000, 700)})
        mac.profiler({"chip_type": "Apple M3 Max"}, {"sppci_model": "Apple M3 Max"})
        return Case(mac.record())

    def broken(self, root: Path) -> Mapping[str, Case]:
        return {"nothing was recorded": Case(self.new_mac(root, "x86_64").record())}

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 2


@pytest.mark.heavy
class TestLive(AppleContract):
    may = frozenset({"library", "process"})

    def hardware(self, root: Path) -> Case:
        mac = self.new_mac(root, "x86_64")
        mac.ioreg(
            "IOPCIDevice", pci(0x66A3, "7:0:0"), pci(0x66A3, "25:0:0"),
            pci(0x73BF, "66:0:0", **{"VRAM,totalsize": (16 * GIB).to_bytes(8, "little")}),
        )  # fmt: skip
        mac.profiler({"cpu_type": "28-Core Intel Xeon W"}, VEGA, VEGA, EGPU)
        mac.install()
        return self.live(mac)

    def broken(self, root: Path) -> Mapping[str, Case]:
        missing, failing = (self.new_mac(root / name, "x86_64") for name in ("missing", "failing"))
        failing.install("exit 3\n")
        return {mac.root.name: self.live(mac) for mac in (missing, failing)}

    def lacking(self, root: Path) -> Mapping[str, Case]:
        mac = self.new_mac(root, "x86_64")
        mac.profiler({"cpu_type": "28-Core Intel Xeon W"})
        mac.install()
        return {"a Mac without a card": self.live(mac)}

    def live(self, mac: Any) -> Case:
        memory = {"hw.memsize": 384 * GIB, "kern.osproductversion": "15.7"}
        lines = (f"{name} {value}\n" for name, value in memory.items())
        mac.root.mkdir(exist_ok=True)
        (mac.root / "sysctls").write_text("".join(lines))
        libc: Path = self.fixtures.getfixturevalue("libc")
        variables = {"LD_PRELOAD": str(libc), "FAKE_SYSCTLS": str(mac.root / "sysctls")}
        machine = Machine(str(mac.root), os="darwin", arch=mac.arch)
        return Case(machine, live=True, variables=variables)

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 3
