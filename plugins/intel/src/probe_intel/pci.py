"""Finds Intel's GPUs, NPUs and Gaudis on the PCI bus, with driver and power state.

Every file read here is kept by the kernel's PCI core: reading it never touches the device.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_core.api import Machine

DEVICES = "/sys/bus/pci/devices"
INTEL, HABANA = "8086", "1da3"
_KINDS = {"03": "gpu", "12": "npu"}
_COMPANIONS = ("01", "02", "06")
"""Storage, network and bridges: what else a Habana board may carry."""

_POWER = {
    "active": "active",
    "resuming": "active",
    "unsupported": "active",
    "suspended": "suspended",
    "suspending": "suspended",
}


class Function:
    """One PCI function of Intel's; `folder` is its place in /sys, `kind` what the core calls it."""

    __slots__ = ("address", "driver", "folder", "kind", "owner", "pci", "power")

    def __init__(self, machine: Machine, address: str, pci: Mapping[str, str], kind: str) -> None:
        self.address = address
        self.folder = f"{DEVICES}/{address}"
        self.pci = dict(pci)
        self.kind = kind
        link = f"{self.folder}/driver"
        self.driver = machine.realpath(link).rpartition("/")[2] if machine.exists(link) else ""
        status = machine.read(f"{self.folder}/power/runtime_status", 32)
        self.power = _POWER.get(status or "", "unknown")
        owner = f"{self.folder}/physfn"  # a virtual function (SR-IOV) links to its physical one
        self.owner = machine.realpath(owner).rpartition("/")[2] if machine.exists(owner) else ""

    @property
    def id(self) -> str:
        """The strong id that all probers of this device share."""
        return f"pci:{self.address}"

    @property
    def asleep(self) -> bool:
        """Whether the driver's files are out of bounds, because reading could wake the device."""
        return self.power == "suspended"


def functions(machine: Machine, bus: Iterable[Mapping[str, Any]]) -> list[Function]:
    """Return Intel's devices that the bus prober saw, or by our own look where it saw nothing."""
    seen = {name[4:]: one for one in bus for name in one.get("ids", ()) if name[:4] == "pci:"}
    addresses = sorted(seen) if seen else machine.listdir(DEVICES)
    found = []
    for address in addresses:
        pci = (seen[address].get("pci") if seen else None) or identity(machine, address)
        if kind := _kind(pci):
            found.append(Function(machine, address, pci, kind))
    return found


def _kind(pci: Mapping[str, str]) -> str | None:
    """Return what the device is, or None when it is not Intel's or is none of these."""
    vendor = pci.get("id", "")[:4]
    if vendor == HABANA:
        return None if pci.get("class", "12")[:2] in _COMPANIONS else "accelerator"
    return _KINDS.get(pci.get("class", "")[:2]) if vendor == INTEL else None


def identity(machine: Machine, address: str) -> dict[str, str]:
    """Return the PCI ids as the kernel keeps them."""
    found: dict[str, str] = {}
    for key, names, digits in (
        ("id", ("vendor", "device"), 4),
        ("revision", ("revision",), 2),
        ("subsystem", ("subsystem_vendor", "subsystem_device"), 4),
        ("class", ("class",), 6),
    ):
        numbers = [machine.read_int(f"{DEVICES}/{address}/{name}") for name in names]
        known = [number for number in numbers if number is not None and number >= 0]
        if len(known) == len(names):
            found[key] = ":".join(f"{number:0{digits}x}" for number in known)
    return found


def minors(machine: Machine, folder: str) -> dict[str, int]:
    """Return the DRM and accel minors of the device at `folder`."""
    found = {}
    for below, prefix, key in (
        ("drm", "card", "drm_card"),
        ("drm", "renderD", "drm_render"),
        ("accel", "accel", "accel"),
    ):
        for name in machine.listdir(f"{folder}/{below}"):
            if name.startswith(prefix) and name[len(prefix) :].isdecimal():
                found[key] = int(name[len(prefix) :])
    return found


def version(machine: Machine, module: str) -> dict[str, str]:
    """Return the driver: its own version where it is an out-of-tree module, else the kernel's."""
    if own := machine.read(f"/sys/module/{module}/version", 256):
        return {"version": own, "version_of": "module"}
    if kernel := machine.read("/proc/sys/kernel/osrelease", 256):
        return {"version": kernel, "version_of": "kernel"}
    return {}
