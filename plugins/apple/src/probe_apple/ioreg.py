"""Reads the property lists that ``ioreg -a`` writes; what is not as expected is left out.

Entries of a class come as a list of dictionaries, and nothing at all where there is none. Numbers
of PCI are little-endian data (``vendor-id`` <86800000>), and so are texts of firmware.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def entries(output: bytes | None) -> list[dict[str, Any]]:
    """Return the entries of one ``ioreg -a -r -c CLASS``; none when it is no property list."""
    if not output or not output.strip():
        return []
    import plistlib

    try:
        found = plistlib.loads(output)
    except Exception:  # plistlib raises what expat, struct or its own code raise
        return []
    listed = found if isinstance(found, list) else [found]
    return [one for one in listed if isinstance(one, dict)]


def number(value: object) -> int | None:
    """Return an integer, or little-endian data as one; None for what is neither."""
    if isinstance(value, bytes):
        return int.from_bytes(value, "little") if 0 < len(value) <= 8 else None
    return value if type(value) is int else None


def text(value: object) -> str | None:
    """Return a text, or NUL-terminated data as one; None when it is empty."""
    if isinstance(value, bytes):
        value = value.split(b"\0")[0].decode("utf-8", "replace")
    return value.strip() or None if isinstance(value, str) else None


def count(value: object) -> int | None:
    """Return a count, which is positive; None for all else."""
    found = number(value)
    return found if found is not None and 0 < found < 1_000_000 else None


def address(entry: Mapping[str, Any]) -> str | None:
    """Return ``0000:03:00.0`` of a PCI device's ``pcidebug``; None when it has none.

    IOPCIFamily writes bus, device and function in decimal, and a bridge's buses behind it:
    "0:1:0(1:4)". It has no domain: Macs have one.
    """
    place = (text(entry.get("pcidebug")) or "").partition("(")[0]
    try:
        bus, device, function = (int(part) for part in place.split(":"))
    except ValueError:
        return None
    if not (0 <= bus < 256 and 0 <= device < 32 and 0 <= function < 8):
        return None
    return f"0000:{bus:02x}:{device:02x}.{function}"


def pci_ids(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the PCI ids of an entry of IOPCIDevice; {} when it lacks them."""
    found = {}
    for key, names, digits in (
        ("id", ("vendor-id", "device-id"), 4),
        ("subsystem", ("subsystem-vendor-id", "subsystem-id"), 4),
        ("revision", ("revision-id",), 2),
        ("class", ("class-code",), 6),
    ):
        numbers = [number(entry.get(name)) for name in names]
        known = [one for one in numbers if one is not None and 0 <= one < 1 << 4 * digits]
        if len(known) == len(names) and (key != "subsystem" or any(known)):
            found[key] = ":".join(f"{one:0{digits}x}" for one in known)
    return found
