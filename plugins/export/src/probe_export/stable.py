"""Names of devices that stay the same from start to start, and tell no serial number.

A UUID is a serial number in all but name, and an ordinal moves when a card fails. The bus address
does neither; a partition is named after its card's address.
"""

from __future__ import annotations

from probe_export.capacity import partition_profile, pci_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["stable_names"]


def stable_names(devices: Sequence[DeviceDoc]) -> dict[str, str]:
    """Return id → name, such as ``0000:01:00.0``, ``0000:01:00.0/3g.40gb.0`` and ``cpu:0``."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for device in devices:
        base = pci_address(device) or _plain(device["id"])
        if base is None:
            parent = names.get(device["parent"] or "")
            kind = partition_profile(device) or device["kind"]
            stem = f"{parent}/{kind}" if parent else kind
            base = f"{stem}.{counts.get(stem, 0)}"
            counts[stem] = counts.get(stem, 0) + 1
        names[device["id"]] = base
    return names


def _plain(identity: str) -> str | None:
    """Return an id that is no identity: of the device tree, of a slot, of the core itself."""
    is_unique = identity.startswith(("uuid:", "serial:")) or "GPU-" in identity
    return None if is_unique or "MIG-" in identity else identity
