"""Reads from a report's devices what visibility rules need: vendor, order, UUIDs, partitions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = [
    "address",
    "driver_major",
    "gpus_of",
    "identifier",
    "in_order",
    "integrated",
    "model",
    "partitions",
    "uuids",
]

# Kernel drivers under which a vendor's own compute runtime never sees the device.
_FOREIGN = {
    "nvidia": ("nouveau", "nova", "nova-core", "vfio-pci", "pci-stub"),
    "amd": ("radeon", "vfio-pci", "pci-stub"),
    "intel": ("vfio-pci", "pci-stub"),
}


def identifier(device: Device) -> str:
    """Return the id that the report gives the device."""
    found = device.get("id")
    if not found:
        found = next(iter(device.get("ids") or ()), "")
    return str(found)


def uuids(device: Device) -> list[str]:
    """Return the device's vendor UUIDs without our ``uuid:`` prefix."""
    return [str(i)[5:] for i in device.get("ids") or () if str(i).startswith("uuid:")]


def address(device: Device) -> tuple[int, int, int, int] | None:
    """Return domain, bus, device and function of the device's PCI address; None without one."""
    for text in (device.get("id"), *(device.get("ids") or ())):
        if isinstance(text, str) and text.startswith("pci:"):
            try:
                domain, bus, slot = text[4:].split(":")
                number, function = slot.split(".")
                return int(domain, 16), int(bus, 16), int(number, 16), int(function, 16)
            except ValueError:
                continue
    return None


def driver_name(device: Device) -> str | None:
    """Return the kernel driver's name; None when nobody said it."""
    driver = device.get("driver")
    name = driver.get("name") if isinstance(driver, dict) else None
    return name if isinstance(name, str) else None


def driver_major(devices: Sequence[Device]) -> int | None:
    """Return the driver's major version (580 of "580.95.05"); None when nobody said it."""
    for device in devices:
        driver = device.get("driver")
        version = driver.get("version") if isinstance(driver, dict) else None
        head = str(version).split(".")[0]
        if version is not None and head.isascii() and head.isdigit():
            return int(head)
    return None


def gpus_of(devices: Sequence[Device], vendor: str) -> list[Device]:
    """Return the vendor's GPUs that its own driver may serve; partitions are not among them."""
    found = []
    for device in devices:
        if device.get("vendor") != vendor or device.get("kind") != "gpu" or device.get("parent"):
            continue
        if driver_name(device) not in _FOREIGN.get(vendor, ()):
            found.append(device)
    return found


def strangers(devices: Sequence[Device], vendor: str) -> dict[str, str]:
    """Return the vendor's GPUs that a driver other than the vendor's holds, each with why."""
    found = {}
    for device in devices:
        name = driver_name(device)
        if device.get("vendor") == vendor and name in _FOREIGN.get(vendor, ()):
            found[identifier(device)] = f"the kernel driver {name} holds it, not the vendor's"
    return found


def partitions(devices: Sequence[Device], gpu: Device) -> list[Device]:
    """Return the devices cut from `gpu` (MIG instances, compute partitions), in report order."""
    names = {identifier(gpu), *(str(i) for i in gpu.get("ids") or ())}
    return [device for device in devices if device.get("parent") in names]


def in_order(devices: Sequence[Device], ordinal: str | None = None) -> list[Device]:
    """Return the devices in the order of a driver's ordinal, else of the PCI address.

    `ordinal` is a name in ``node_index`` (``kfd``); it counts only when every device has one.
    Devices without an address keep their place at the end.
    """
    if ordinal is not None and len(devices) > 1:
        places = [(device.get("node_index") or {}).get(ordinal) for device in devices]
        if all(isinstance(place, int) for place in places):
            numbered = sorted(range(len(devices)), key=lambda at: (places[at], at))
            return [devices[at] for at in numbered]
    last = (1 << 40, 0, 0, 0)
    return sorted(devices, key=lambda device: address(device) or last)


def integrated(device: Device) -> bool:
    """Return whether the GPU shares the system's memory."""
    memory = device.get("memory")
    return isinstance(memory, dict) and memory.get("kind") in ("shared", "unified")


def model(device: Device) -> tuple[str, ...]:
    """Return what two devices of one model have in common; empty when nothing is known."""
    pci = device.get("pci")
    code = pci.get("id") if isinstance(pci, dict) else None
    known = [str(part) for part in (code, device.get("name")) if part]
    return tuple(known)
