"""GPUs of a Windows node from the registry: names, PCI ids and the true memory size.

WMI's AdapterRAM ends at 4 GiB; the driver's own HardwareInformation.qwMemorySize does not. Used for
what no prober of the core told: there is no /sys to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["registry_gpus"]

_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
"""The device class "Display adapters"."""
_IDS = re.compile(r"ven_([0-9a-f]{4})&dev_([0-9a-f]{4})(?:&subsys_([0-9a-f]{4})([0-9a-f]{4}))?")
_VENDORS = {"10de": "nvidia", "1002": "amd", "8086": "intel", "17cb": "qualcomm"}


def registry_gpus() -> list[dict[str, Any]]:
    """Return devices in the report's shape; nothing where there is no registry.

    Only the size is believed to be dedicated memory that the driver wrote as qwMemorySize.
    """
    try:
        import winreg
    except ImportError:
        return []
    found = []
    for number, values in _adapters(winreg):
        device = _device(number, values)
        if device is not None:
            found.append(device)
    return found


def _adapters(winreg: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        root = winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _CLASS)
    except OSError:
        return
    with root:
        for at in range(64):
            try:
                name = winreg.EnumKey(root, at)
            except OSError:
                return
            if name.isdecimal():
                yield name, _values(winreg, root, name)


def _values(winreg: Any, root: Any, name: str) -> dict[str, Any]:
    values = {}
    try:
        with winreg.OpenKey(root, name) as key:
            for wanted in ("DriverDesc", "MatchingDeviceId", "HardwareInformation.qwMemorySize"):
                try:
                    values[wanted] = winreg.QueryValueEx(key, wanted)[0]
                except OSError:
                    continue
    except OSError:
        pass  # a key that this user may not read
    return values


def _device(number: str, values: dict[str, Any]) -> dict[str, Any] | None:
    ids = _IDS.search(str(values.get("MatchingDeviceId", "")).lower())
    if ids is None or ids[1] not in _VENDORS:
        return None
    pci = {"id": f"{ids[1]}:{ids[2]}"}
    if ids[3]:
        pci["subsystem"] = f"{ids[4]}:{ids[3]}"
    device: dict[str, Any] = {
        "id": f"registry:{number}",
        "kind": "gpu",
        "vendor": _VENDORS[ids[1]],
        "name": values.get("DriverDesc"),
        "pci": pci,
        "memory": {"kind": "dedicated"},
        "unknown": {},
        "sources": {},
    }
    size = values.get("HardwareInformation.qwMemorySize")
    size = int.from_bytes(size, "little") if isinstance(size, bytes) else size
    if isinstance(size, int) and size >= 1 << 20:
        device["memory"]["total"] = size
    else:
        device["unknown"]["memory.total"] = "the driver wrote no qwMemorySize"
    return device
