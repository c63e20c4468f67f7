"""Reads a device instance's PCI ids and its address on the bus."""

from __future__ import annotations

from probe_core.sysfs.pci import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import PciDoc

# Part of an instance path → how many hexadecimal digits it has.
_PARTS = {"VEN": 4, "DEV": 4, "SUBSYS": 8, "REV": 2}


def pci(instance: str, device: Mapping[str, Any]) -> PciDoc:
    """Return the PCI ids of ``PCI\\VEN_10DE&DEV_2684&SUBSYS_889A1043&REV_A1\\…``; {} of others.

    Windows writes the subsystem's device before its vendor; the class is in the compatible ids
    (``PCI\\CC_030000``).
    """
    if not instance.upper().startswith("PCI\\"):
        return {}
    fields = _fields(instance.split("\\")[1])
    if "VEN" not in fields or "DEV" not in fields:
        return {}
    numbers = {"vendor": fields["VEN"], "device": fields["DEV"]}
    if board := fields.get("SUBSYS"):
        numbers |= {"subsystem_vendor": board[4:], "subsystem_device": board[:4]}
    if revision := fields.get("REV"):
        numbers["revision"] = revision
    if code := _class(device.get("compatibleids")):
        numbers["class"] = code
    return identity_of(lambda name: int(numbers[name], 16) if name in numbers else None)


def _fields(hardware: str) -> dict[str, str]:
    fields = {}
    for part in hardware.split("&"):
        name, _, digits = part.partition("_")
        if _PARTS.get(name.upper()) == len(digits) and _is_hex(digits):
            fields[name.upper()] = digits.lower()
    return fields


def _class(compatible: object) -> str | None:
    for name in compatible if isinstance(compatible, list) else []:
        code = str(name).upper().partition("CC_")[2].partition("&")[0]
        if len(code) == 6 and _is_hex(code):
            return code.lower()
    return None


def _is_hex(digits: str) -> bool:
    return set(digits.lower()) <= set("0123456789abcdef")


def address(device: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return (bus, device, function) of LocationInformation; None when it does not say.

    The text is translated, its end is not: ``@System32\\drivers\\pci.sys,#65536;PCI bus %1, device
    %2, function %3;(1,0,0)``. Numbers are decimal. It has no PCI segment, so a bus beyond 255, as
    machines with several segments number them, is no address that other probers would share.
    """
    location = str(device.get("locationinformation") or "")
    inner = location.rpartition("(")[2].rpartition(")")[0].split(",")
    try:
        bus, slot, function = (int(part) for part in inner)
    except ValueError:
        return None
    valid = 0 <= bus < 256 and 0 <= slot < 32 and 0 <= function < 8
    return (bus, slot, function) if valid else None
