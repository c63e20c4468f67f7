"""Whatever values the registry holds, the prober answers; see tests/fuzz."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from foreign import CHANCES, Chance, devices_in
from hypothesis import given

from probe_core.api import Machine, Request
from probe_windows import identity
from probe_windows.adapters import CLASS
from probe_windows.prober import probe_devices

INSTANCE = "VEN_10DE&DEV_2684&SUBSYS_889A1043&REV_A1"
ROOT = "SYSTEM\\CurrentControlSet\\"
KEYS: dict[str, dict[str, Any]] = {
    f"Control\\Class\\{CLASS}\\0000": {
        "DriverDesc": "NVIDIA GeForce RTX 4090",
        "DriverVersion": "32.0.15.8195",
        "DriverDate": "5-14-2025",
        "MatchingDeviceId": "pci\\ven_10de&dev_2684",
        "HardwareInformation.qwMemorySize": 24 << 30,
    },
    f"Enum\\PCI\\{INSTANCE}\\4&1A2B&0&0008": {
        "Driver": f"{CLASS}\\0000",
        "Service": "nvlddmkm",
        "LocationInformation": "@System32\\drivers\\pci.sys,#65536;PCI bus %1;(1,0,0)",
        "CompatibleIDs": ["PCI\\VEN_10DE&CC_030000", "PCI\\CC_0300"],
    },
    "Services\\nvlddmkm\\Enum": {"0": f"PCI\\{INSTANCE}\\4&1A2B&0&0008", "Count": 1},
}


class Winreg(ModuleType):
    """Stands for Python's winreg: keys by path, in any case."""

    HKEY_LOCAL_MACHINE = 1
    keys: Mapping[str, Mapping[str, Any]]

    @contextmanager
    def OpenKey(self, hive: int, path: str) -> Iterator[str]:
        yield path.removeprefix(ROOT).lower()

    def EnumKey(self, key: str, index: int) -> str:
        start = key + "\\"
        below = [path[len(start) :] for path in self.keys if path.lower().startswith(start)]
        return self._at([path.partition("\\")[0] for path in below], index)  # type: ignore[no-any-return]

    def EnumValue(self, key: str, index: int) -> tuple[str, Any, int]:
        values = next((v for path, v in self.keys.items() if path.lower() == key), {})
        return (*self._at(list(values.items()), index), 0)

    def _at(self, items: list[Any], index: int) -> Any:
        if index >= len(items):
            raise OSError(259, "No more data is available")
        return items[index]


def value(chance: Chance, good: Any) -> Any:
    """Return a value of any kind that the registry has: text, texts, number, bytes."""
    if chance.random() < 0.7:
        return good
    if isinstance(good, str) and chance.random() < 0.7:
        return chance.mutate(good.encode()).decode("utf-8", "replace")
    odd = [chance.words(), [chance.word()], chance.getrandbits(64), chance.randbytes(8), b"", None]
    return chance.choice(odd)


@pytest.mark.heavy
@given(CHANCES)
def test_values(monkeypatch: pytest.MonkeyPatch, chance: Chance) -> None:
    winreg = Winreg("winreg")
    winreg.keys = {
        path: {name: value(chance, good) for name, good in values.items()}
        for path, values in KEYS.items()
    }
    monkeypatch.setitem(__import__("sys").modules, "winreg", winreg)
    devices_in(probe_devices(Request(Machine(os="windows"))))


@given(CHANCES)
def test_instances(chance: Chance) -> None:
    text = chance.mutate(f"PCI\\{INSTANCE}\\4".encode()).decode("utf-8", "replace")
    ids = identity.pci(text, {"compatibleids": chance.value()})
    assert not ids or len(ids["id"]) == 9
    place = chance.words(["(1,0,0)", "(", ",", ")", "31"], "")
    address = identity.address({"locationinformation": place})
    assert address is None or address < (256, 32, 8)
