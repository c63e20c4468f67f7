"""Which device is the primary one, and in which order a report lists the devices."""

from __future__ import annotations

from probe_core.model.kinds import ACCELERATORS, KIND_ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from probe_core.model.document import DeviceDoc

__all__ = ["choose", "driver_name", "in_order", "is_passthrough", "lost", "pci_vendor"]


def in_order(devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the devices as reports list them: GPUs, other accelerators, CPUs, displays.

    A part (a MIG instance, an XCD) stands behind its parent.
    """
    ordered = sorted(devices, key=lambda device: KIND_ORDER[device["kind"]])
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


def _with_parts(device: DeviceDoc, parts: dict[str, list[DeviceDoc]]) -> list[DeviceDoc]:
    """Return a device with its parts behind it, and take them out of `parts`."""
    own = parts.pop(device["id"], [])
    return [device, *(member for part in own for member in _with_parts(part, parts))]


def choose(
    devices: Iterable[DeviceDoc],
    priorities: Mapping[str, int],
    failed_vendors: Collection[str],
    unavailable: Collection[str] = (),
) -> DeviceDoc | None:
    """Return the primary device: the best accelerator this process may use, else the first CPU.

    GPUs before other accelerators, then the priority of the best prober that saw it, dedicated
    memory before shared, the higher fp16 peak, the larger memory. A device that only the bus saw
    counts unless it has no driver, or its vendor's own prober just failed to query it; what a
    prober in `unavailable` reported of it counts as little as the bus.
    """
    listed = list(devices)
    unconfirmed = {"bus", *unavailable}
    usable = [
        device
        for device in listed
        if device["kind"] in ACCELERATORS and _is_usable(device, failed_vendors, unconfirmed)
    ]
    if usable:
        return min(usable, key=lambda device: _rank(device, priorities))
    processors = [device for device in listed if device["kind"] == "cpu"]
    # A cpuset may leave this process no CPU of the first socket.
    return next(
        (cpu for cpu in processors if _may_run_on(cpu)), processors[0] if processors else None
    )


def _may_run_on(device: DeviceDoc) -> bool:
    return (device.get("allowed") or {}).get("threads") != 0


def _rank(device: DeviceDoc, priorities: Mapping[str, int]) -> tuple[int, int, bool, float, int]:
    memory = device["memory"]
    return (
        KIND_ORDER[device["kind"]],
        -max(priorities.get(prober, 0) for prober in device["seen_by"]),
        memory["kind"] != "dedicated",
        -(device["fp16"] or 0.0),
        -(memory["total"] or 0),
    )


def _is_usable(
    device: DeviceDoc, failed_vendors: Collection[str], unconfirmed: Collection[str]
) -> bool:
    from probe_core.model.runtimes import hidden  # a node without accelerators pays for no rule

    if hidden(device) or is_passthrough(device):
        return False
    if not set(device["seen_by"]) <= set(unconfirmed):
        return not lost(device)
    return driver_name(device) is not None and pci_vendor(device) not in failed_vendors


def lost(device: DeviceDoc) -> bool:
    """Return whether a device's own prober found it unresponsive: neither memory nor runtime."""
    answers = bool(device["backends"]) or device["memory"]["total"] is not None
    return not answers and device["power_state"] == "unknown"


def driver_name(device: DeviceDoc) -> str | None:
    """Return the name of the kernel driver that is bound to the device; None without one."""
    return (device["driver"] or {}).get("name") or None


def pci_vendor(device: DeviceDoc) -> str:
    """Return the device's PCI vendor id, four hexadecimal digits; "" off the PCI bus."""
    return (device["pci"] or {}).get("id", "").partition(":")[0]


def is_passthrough(device: DeviceDoc) -> bool:
    """Return whether a driver keeps the device for a guest, so that nothing here can use it."""
    from probe_core.model.passthrough import is_passthrough_driver

    return is_passthrough_driver(driver_name(device), device["vendor"])
