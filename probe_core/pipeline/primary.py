"""Which device is the primary one, and in which order a report lists the devices."""

from __future__ import annotations

from probe_core.model.kinds import ACCELERATORS, KIND_ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["choose", "driver_name", "in_order", "pci_vendor"]

_NO_ADDRESS = (1 << 40,)
"""Sorts behind every PCI address: domains go beyond 16 bits (Intel VMD's begin at 0x10000)."""


def in_order(devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the devices as reports list them: GPUs, other accelerators, CPUs, displays.

    A part (a MIG instance, an XCD) stands behind its parent. Equal devices stand by PCI address,
    whatever order a prober yields them in.
    """
    ordered = _equals_by_address(sorted(devices, key=lambda device: KIND_ORDER[device["kind"]]))
    ids = {device["id"] for device in ordered}
    parts: dict[str, list[DeviceDoc]] = {}
    whole = []
    for device in ordered:
        parent = device["parent"]
        if parent is not None and parent in ids and parent != device["id"]:
            parts.setdefault(parent, []).append(device)
        else:
            whole.append(device)
    listed = [member for device in whole for member in _with_parts(device, parts)]
    # Two devices that call each other their parent are reached from no whole device.
    return listed + [device for orphans in parts.values() for device in orphans]


def _equals_by_address(devices: list[DeviceDoc]) -> list[DeviceDoc]:
    """Give the places of equal devices to them in the order of their addresses."""
    places: dict[tuple[object, ...], list[int]] = {}
    for place, device in enumerate(devices):
        if device["kind"] in ACCELERATORS and device["parent"] is None:
            pci = device.get("pci") or {}
            model = (device["kind"], device.get("vendor"), device.get("name"), pci.get("id"))
            places.setdefault(model, []).append(place)
    ordered = list(devices)
    for equal in places.values():
        members = sorted((devices[place] for place in equal), key=address)
        for place, device in zip(equal, members, strict=True):
            ordered[place] = device
    return ordered


def _with_parts(device: DeviceDoc, parts: dict[str, list[DeviceDoc]]) -> list[DeviceDoc]:
    """Return a device with its parts behind it, and take them out of `parts`."""
    own = parts.pop(device["id"], [])
    return [device, *(member for part in own for member in _with_parts(part, parts))]


def choose(devices: Iterable[DeviceDoc], priorities: Mapping[str, int]) -> DeviceDoc | None:
    """Return the primary device: the best accelerator that is not blocked, else the first CPU.

    Devices of which something is known to be well come before those of which nothing is. Then GPUs
    before other accelerators, the priority of the best prober that saw it, dedicated memory before
    shared, the higher fp16 peak, the larger memory, and the lower PCI address.
    """
    listed = list(devices)
    usable = _usable([device for device in listed if device["kind"] in ACCELERATORS])
    if usable:
        return min(usable, key=lambda device: _rank(device, priorities))
    processors = [device for device in listed if device["kind"] == "cpu"]
    # A cpuset may leave this process no CPU of the first socket.
    return next(
        (cpu for cpu in processors if _may_run_on(cpu)), processors[0] if processors else None
    )


def _may_run_on(device: DeviceDoc) -> bool:
    return (device.get("allowed") or {}).get("threads") != 0


def _usable(accelerators: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    if not accelerators:  # such a node pays for no rule
        return []
    from probe_core.model.readiness import blocked, hidden

    return [device for device in accelerators if not blocked(device) and not hidden(device)]


def _rank(
    device: DeviceDoc, priorities: Mapping[str, int]
) -> tuple[bool, int, int, bool, float, int, tuple[int, ...]]:
    from probe_core.model.readiness import state_of

    memory = device["memory"]
    return (
        state_of(device) == "unknown",
        KIND_ORDER[device["kind"]],
        -max(priorities.get(prober, 0) for prober in device["seen_by"]),
        memory["kind"] != "dedicated",
        -(device["fp16"] or 0.0),
        -(memory["total"] or 0),
        address(device),
    )


def address(device: DeviceDoc) -> tuple[int, ...]:
    """Return the numbers of the device's PCI address, by which equal devices are ordered."""
    for name in (device["id"], *device.get("ids", ())):
        bus, _, text = name.partition(":")
        if bus == "pci":
            try:
                return tuple([int(part, 16) for part in text.replace(".", ":").split(":")])
            except ValueError:
                continue
    return _NO_ADDRESS


def driver_name(device: DeviceDoc) -> str | None:
    """Return the name of the kernel driver that is bound to the device; None without one."""
    return (device["driver"] or {}).get("name") or None


def pci_vendor(device: DeviceDoc) -> str:
    """Return the device's PCI vendor id, four hexadecimal digits; "" off the PCI bus."""
    return (device["pci"] or {}).get("id", "").partition(":")[0]
