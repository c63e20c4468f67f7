"""The processor where there is no /proc: macOS through sysctl, the rest through psutil."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.machine import Machine


def devices(machine: Machine) -> list[dict[str, Any]]:
    """Return the processor as one device."""
    sighting: dict[str, Any] = {
        "ids": ["cpu:0"],
        "kind": "cpu",
        "memory": {"kind": "shared"},
        "backends": ["cpu"],
        "unknown": {},
    }
    sighting |= _mac() if machine.os == "darwin" else _windows(machine)
    threads = os.cpu_count()
    if threads and "threads" not in sighting:
        sighting["threads"] = threads
    if "units" not in sighting:
        cores = _psutil_cores()
        if cores:
            sighting["units"] = cores
        else:
            sighting["unknown"]["units"] = "psutil is not installed, or has no count"
    return [sighting]


def _psutil_cores() -> int | None:
    try:
        import psutil
    except ImportError:
        return None
    return psutil.cpu_count(logical=False)


def _mac() -> dict[str, Any]:
    facts: dict[str, Any] = {"cpu": {"flags": []}}
    name = sysctl("machdep.cpu.brand_string")
    if name:
        facts["name"] = name
        facts["vendor"] = "apple" if name.startswith("Apple") else "intel"
    for key, name in (("units", "hw.physicalcpu"), ("threads", "hw.logicalcpu")):
        count = sysctl_int(name)
        if count:
            facts[key] = count
    clusters = []
    for level, kind in ((0, "performance"), (1, "efficiency")):
        count = sysctl_int(f"hw.perflevel{level}.physicalcpu")
        if count:
            clusters.append({"kind": kind, "cores": count})
    if clusters:
        facts["cpu"]["clusters"] = clusters
    return facts


def _windows(machine: Machine) -> dict[str, Any]:
    name = _registry_value(r"HARDWARE\DESCRIPTION\System\CentralProcessor\0", "ProcessorNameString")
    mhz = _registry_value(r"HARDWARE\DESCRIPTION\System\CentralProcessor\0", "~MHz")
    identity = machine.environ.get("PROCESSOR_IDENTIFIER", "")
    facts: dict[str, Any] = {"cpu": {"flags": [], **_identifier(identity)}}
    if isinstance(name, str) and name.strip():
        facts["name"] = " ".join(name.split())
    if isinstance(mhz, int) and mhz > 0:
        facts["clocks"] = {"base_mhz": mhz}
    vendor = facts["cpu"].get("vendor_id")
    if vendor:
        facts["vendor"] = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(vendor, vendor)
    return facts


def _identifier(text: str) -> dict[str, Any]:
    """Parse ``Intel64 Family 6 Model 158 Stepping 10, GenuineIntel``."""
    identity, _, vendor = text.partition(",")
    parts = identity.split()
    facts: dict[str, Any] = {"vendor_id": vendor.strip()} if vendor.strip() else {}
    for key in ("Family", "Model", "Stepping"):
        number = parts[parts.index(key) + 1] if key in parts[:-1] else ""
        if number.isdecimal() and len(number) <= 20:
            facts[key.lower()] = int(number)
    return facts


def _registry_value(path: str, name: str) -> object:
    if sys.platform != "win32":
        return None
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            return winreg.QueryValueEx(key, name)[0]
    except OSError:
        return None


def sysctl(name: str) -> str | None:
    """Return a macOS sysctl that is text; None where there is none."""
    raw = _sysctl(name)
    return raw.rstrip(b"\0").decode("utf-8", "replace") or None if raw else None


def sysctl_int(name: str) -> int | None:
    """Return a macOS sysctl that is a number; None where there is none."""
    raw = _sysctl(name)
    return int.from_bytes(raw, sys.byteorder) if raw and len(raw) in (4, 8) else None


def _sysctl(name: str) -> bytes | None:
    """Through libc: starting the sysctl command would take longer than the whole probe."""
    import ctypes

    try:
        call = ctypes.CDLL(None).sysctlbyname
    except (OSError, AttributeError):
        return None
    size = ctypes.c_size_t(0)
    key = name.encode()
    if call(key, None, ctypes.byref(size), None, 0) != 0 or not 0 < size.value <= 4096:
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if call(key, buffer, ctypes.byref(size), None, 0) != 0:
        return None
    return buffer.raw[: size.value]
