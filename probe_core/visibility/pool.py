"""Reads from a report's devices what visibility rules need: vendor, order, UUIDs, partitions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc

    Address = tuple[int, int, int, int]

__all__ = [
    "NO_ADDRESS",
    "address",
    "driver_major",
    "driver_name",
    "gpus_of",
    "ids_of",
    "in_order",
    "integrated",
    "model",
    "partitions",
    "pci_codes",
    "uuids",
]

# Sorts behind every PCI address. Domains go beyond 16 bits (Intel VMD's begin at 0x10000).
NO_ADDRESS = (1 << 40, 0, 0, 0)


def ids_of(devices: Iterable[DeviceDoc]) -> list[str]:
    """Return the ids that the report gives the devices."""
    return [device["id"] for device in devices]


def uuids(device: DeviceDoc) -> list[str]:
    """Return the device's vendor UUIDs without the report's ``uuid:`` prefix."""
    return [name[5:] for name in device["ids"] if name.startswith("uuid:")]


def address(device: DeviceDoc) -> Address | None:
    """Return domain, bus, device and function of the device's PCI address; None without one."""
    first = device["id"]
    # Nearly always the first id, and asked for each device of each runtime.
    names = (first,) if first.startswith("pci:") else device["ids"]
    for name in names:
        if name.startswith("pci:"):
            try:
                _, domain, bus, slot = name.split(":")
                number, function = slot.split(".")
                return int(domain, 16), int(bus, 16), int(number, 16), int(function, 16)
            except ValueError:
                continue
    return None


def pci_codes(device: DeviceDoc) -> tuple[int, int] | None:
    """Return the PCI ids of the device's vendor and of its model; None when they are not known."""
    try:
        vendor, code = ((device["pci"] or {}).get("id") or "").split(":")
        return int(vendor, 16), int(code, 16)
    except ValueError:
        return None


def driver_name(device: DeviceDoc) -> str | None:
    """Return the kernel driver's name; None when no prober reported it."""
    return (device["driver"] or {}).get("name")


def driver_major(devices: Iterable[DeviceDoc]) -> int | None:
    """Return the driver's major version (580 of "580.95.05"); None when none is reported."""
    for device in devices:
        major = (device["driver"] or {}).get("version", "").split(".")[0]
        if major.isascii() and major.isdigit():
            return int(major)
    return None


def gpus_of(devices: Iterable[DeviceDoc], vendor: str) -> list[DeviceDoc]:
    """Return the vendor's GPUs; partitions are not among them.

    Which of them this process may use is `probe_core.visibility.availability`'s matter.
    """
    return [
        device
        for device in devices
        if device["vendor"] == vendor and device["kind"] == "gpu" and not device["parent"]
    ]


def partitions(devices: Iterable[DeviceDoc], gpu: DeviceDoc) -> list[DeviceDoc]:
    """Return the devices cut from `gpu` (MIG instances, compute partitions), in report order."""
    names = {gpu["id"], *gpu["ids"]}
    return [device for device in devices if device["parent"] in names]


def in_order(devices: Sequence[DeviceDoc], ordinal: str | None = None) -> list[DeviceDoc]:
    """Return the devices in the order of a driver's ordinal, else of the PCI address.

    `ordinal` is a name in ``node_index`` (``kfd``); it counts only when every device has one.
    Devices without an address keep their place at the end.
    """
    if ordinal is not None and len(devices) > 1:
        ordinals = [(device.get("node_index") or {}).get(ordinal) for device in devices]
        numbered = [(number, place) for place, number in enumerate(ordinals) if number is not None]
        if len(numbered) == len(devices):
            return [devices[place] for _, place in sorted(numbered)]
    return sorted(devices, key=lambda device: address(device) or NO_ADDRESS)


def integrated(device: DeviceDoc) -> bool:
    """Return whether the GPU shares the system's memory."""
    return device["memory"]["kind"] in ("shared", "unified")


def model(device: DeviceDoc) -> tuple[str, ...]:
    """Return what two devices of one model have in common; empty when nothing is known."""
    code = (device["pci"] or {}).get("id")
    return tuple(part for part in (code, device["name"]) if part)
