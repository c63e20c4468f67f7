"""Reads the property lists that ``ioreg -a`` writes; what is not as expected is left out.

Entries of a class come as a list of dictionaries, and nothing at all where there is none. Numbers
of PCI are little-endian data (``vendor-id`` <86800000>), and so are texts of firmware.
"""

from __future__ import annotations

from probe_core.sysfs.pci import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import PciDoc

# The toolkit's names of the numbers that make up a PCI identity → IOPCIFamily's.
_PCI_KEYS = {
    "vendor": "vendor-id",
    "device": "device-id",
    "subsystem_vendor": "subsystem-vendor-id",
    "subsystem_device": "subsystem-id",
    "revision": "revision-id",
    "class": "class-code",
}
MAX_COUNT = 1_000_000
"""Above any count of cores or megabytes that a Mac has had; what is larger is garbage."""


def entries(output: bytes | None) -> list[dict[str, Any]]:
    """Return the entries of one ``ioreg -a -r -c CLASS``; none when it is no property list."""
    if not output or not output.strip():
        return []
    import plistlib

    try:
        document = plistlib.loads(output)
    except Exception:  # plistlib raises what expat, struct or its own code raise
        return []
    items = document if isinstance(document, list) else [document]
    return [item for item in items if isinstance(item, dict)]


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
    whole = number(value)
    return whole if whole is not None and 0 < whole < MAX_COUNT else None


def address(entry: Mapping[str, Any]) -> str | None:
    """Return ``0000:03:00.0`` of a PCI device's ``pcidebug``; None when it has none.

    IOPCIFamily writes bus, device and function in decimal, and a bridge's buses behind it:
    "0:1:0(1:4)". It has no domain: Macs have one.
    """
    location = (text(entry.get("pcidebug")) or "").partition("(")[0]
    try:
        bus, device, function = (int(part) for part in location.split(":"))
    except ValueError:
        return None
    if not (0 <= bus < 256 and 0 <= device < 32 and 0 <= function < 8):
        return None
    return f"0000:{bus:02x}:{device:02x}.{function}"


def pci_ids(entry: Mapping[str, Any]) -> PciDoc:
    """Return the PCI ids of an entry of IOPCIDevice; {} when it lacks them."""
    return identity_of(lambda name: number(entry.get(_PCI_KEYS[name])))
