"""Reads a device instance's PCI ids and its address on the bus."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import PciDoc
    from probe_windows.registry import Values

# Hexadecimal digits of each part of an instance path.
_PARTS = {"VEN": 4, "DEV": 4, "SUBSYS": 8, "REV": 2}


def pci(instance: str, device: Values) -> PciDoc:
    """Return the PCI ids of ``PCI\\VEN_10DE&DEV_2684&SUBSYS_889A1043&REV_A1\\…``; {} of others.

    Windows writes the subsystem's device before its vendor; the class is in the compatible ids
    (``PCI\\CC_030000``).
    """
    if not instance.upper().startswith("PCI\\"):
        return {}
    parts = _hex_parts(instance.split("\\")[1])
    if "VEN" not in parts or "DEV" not in parts:
        return {}
    ids: PciDoc = {"id": f"{parts['VEN']}:{parts['DEV']}"}
    # Zeros stand for a function without a subsystem, as emulated ones are.
    subsystem = parts.get("SUBSYS", "00000000")
    if subsystem != "00000000":
        ids["subsystem"] = f"{subsystem[4:]}:{subsystem[:4]}"
    if "REV" in parts:
        ids["revision"] = parts["REV"]
    if code := _class(device.get("compatibleids")):
        ids["class"] = code
    return ids


def _hex_parts(hardware: str) -> dict[str, str]:
    parts = {}
    for part in hardware.split("&"):
        name, _, digits = part.partition("_")
        if _PARTS.get(name.upper()) == len(digits) and _is_hex(digits):
            parts[name.upper()] = digits.lower()
    return parts


def _class(compatible: object) -> str | None:
    for identifier in compatible if isinstance(compatible, list) else []:
        code = str(identifier).upper().partition("CC_")[2].partition("&")[0]
        if len(code) == 6 and _is_hex(code):
            return code.lower()
    return None


def _is_hex(digits: str) -> bool:
    return set(digits.lower()) <= set("0123456789abcdef")


def address(device: Values) -> tuple[int, int, int] | None:
    """Return (bus, device, function) of LocationInformation; None when it has none.

    The text is translated, its end is not: ``@System32\\drivers\\pci.sys,#65536;PCI bus %1, device
    %2, function %3;(1,0,0)``. Numbers are decimal. It has no PCI segment, so a bus beyond 255, as
    machines with several segments number them, is no address that other probers would share.
    """
    location = str(device.get("locationinformation") or "")
    numbers = location.rpartition("(")[2].rpartition(")")[0].split(",")
    try:
        bus, slot, function = map(int, numbers)
    except ValueError:
        return None
    valid = 0 <= bus < 256 and 0 <= slot < 32 and 0 <= function < 8
    return (bus, slot, function) if valid else None
