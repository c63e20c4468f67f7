"""Whatever a Mac's own tools print, the prober answers; see tests/fuzz."""

from __future__ import annotations

import json
import plistlib
from typing import Any

import pytest
from foreign import CHANCES, Chance, devices_in, write_files
from hypothesis import given

from probe_apple import ioreg, profiler
from probe_apple.prober import probe_devices
from probe_core.api import Machine, Request, Unavailable

AGX = {"IOClass": "AGXAcceleratorG15X", "model": "Apple M3 Max", "gpu-core-count": 40}
ANE = {"IOClass": "H11ANEIn", "DeviceProperties": {"ANEDevicePropertyNumANECores": 16}}
POWER = {"voltage-states9": b"\0" * 8 + (1_380_000_000).to_bytes(4, "little") + b"\0" * 4}
PCI = {
    "vendor-id": b"\x02\x10\0\0", "device-id": b"\x40\x73\0\0", "class-code": b"\0\0\x03\0",
    "pcidebug": "3:0:0(1:4)", "VRAM,totalMB": 8176, "model": b"AMD Radeon Pro 5500M\0",
}  # fmt: skip
PROFILE = {
    "SPHardwareDataType": [{"chip_type": "Apple M3 Max", "physical_memory": "128 GB"}],
    "SPDisplaysDataType": [
        {"sppci_cores": "40", "sppci_model": "Apple M3 Max", "spdisplays_vendor": "apple"},
        {"spdisplays_device-id": "0x7340", "spdisplays_vendor": "sppci_vendor_amd",
         "spdisplays_vram": "8 GB", "spdisplays_vram_shared": "1,5 Go"},
    ],
}  # fmt: skip
SYSCTLS = (
    b"machdep.cpu.brand_string: Apple M3 Max\nhw.memsize: 137438953472\nhw.optional.arm64: 1\n"
    b"iogpu.wired_limit_mb: 114688\nkern.osproductversion: 26.1\n"
)


def listed(chance: Chance, entry: dict[str, Any]) -> bytes:
    """Return a property list of the entry: binary or XML, with values of other types."""
    changed = {key: chance.choice([good, good, good, 5, b"", "x"]) for key, good in entry.items()}
    form = chance.choice([plistlib.FMT_XML, plistlib.FMT_BINARY])
    written = plistlib.dumps([changed], fmt=form)
    return written if chance.random() < 0.5 else chance.mutate(written)


@pytest.mark.heavy
@given(CHANCES)
def test_what_tools_print(mac: Any, chance: Chance) -> None:
    profile = json.dumps(chance.alter(PROFILE)).encode()
    entries = {"IOAccelerator": AGX, "H11ANEIn": ANE, "pmgr": POWER, "IOPCIDevice": PCI}
    files = {f"recorded/ioreg-{name}.plist": listed(chance, one) for name, one in entries.items()}
    files["recorded/system_profiler.json"] = chance.choice([profile, chance.mutate(profile)])
    files["recorded/sysctl.txt"] = chance.mutate(SYSCTLS)
    root = write_files(mac.root, chance.files(files, most=1))
    machine = Machine(str(root), os="darwin", arch=chance.choice(["aarch64", "x86_64"]))
    try:
        answer = probe_devices(Request(machine))
    except Unavailable:
        return
    devices_in(answer)


@given(CHANCES)
def test_values(chance: Chance) -> None:
    value = chance.value()
    for read in (ioreg.number, ioreg.text, ioreg.count):
        read(value)
    text = chance.words(["4", "GB", "1,5", "Go", "0x7340", "\u00a0"], chance.choice([" ", ""]))
    assert (profiler.size(text) or 1) > 0
    assert len(profiler.hexadecimal(text) or "0000") == 4
    ioreg.address({"pcidebug": chance.choice([text, value, "3:0:0(1:4)"])})
