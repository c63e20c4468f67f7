"""Which devices of a report are capacity, and in which groups: the rules that all formats share.

Capacity is what a job can be given: every accelerator that is not blocked. A card whose partitions
can be used is none itself, for its partitions are. The order is that of the bus, so that two runs
write the same bytes.
"""

from __future__ import annotations

from probe_core.model.kinds import ACCELERATORS
from probe_core.model.readiness import blocking_step, broken_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = [
    "accelerators",
    "blocked",
    "by_model",
    "capacity",
    "cause",
    "memory_of",
    "missing",
    "node_of",
    "partition_profile",
    "pci_address",
]


def accelerators(report: ReportDoc) -> list[DeviceDoc]:
    """Return all accelerators, whole cards and partitions, in the order of the bus."""
    devices = [device for device in report["devices"] if device["kind"] in ACCELERATORS]
    places = {device["id"]: place for place, device in enumerate(devices)}
    return sorted(devices, key=lambda device: (*_place(device, devices), places[device["id"]]))


def _place(device: DeviceDoc, devices: list[DeviceDoc]) -> tuple[bool, str, bool]:
    """Return a key that puts a partition behind its card, and cards in the order of the bus."""
    parent = next((other for other in devices if other["id"] == device["parent"]), None)
    address = pci_address(parent or device)
    return address is None, address or (parent or device)["id"], parent is not None


def capacity(report: ReportDoc) -> list[DeviceDoc]:
    """Return what a job can be given, in the order of the bus."""
    devices = [device for device in accelerators(report) if not blocked(device)]
    cards = {device["parent"] for device in devices if device["parent"]}
    return [device for device in devices if device["id"] not in cards and not _is_empty(device)]


def missing(report: ReportDoc) -> list[DeviceDoc]:
    """Return the accelerators that are there and no job can be given, in the order of the bus.

    A card that is cut into partitions, some of which can be used, is not missing.
    """
    cut = {device["parent"] for device in capacity(report)}
    useless = [d for d in accelerators(report) if blocked(d) or _is_empty(d)]
    return [device for device in useless if device["id"] not in cut]


def blocked(device: DeviceDoc) -> bool:
    """Return whether no job can be given the device.

    What a variable, or CUDA's rule of one MIG instance a process, hides from this process can be
    given to another one.
    """
    return blocking_step(device) is not None


def cause(device: DeviceDoc) -> str | None:
    """Return the code of the step that breaks a device's chain; None where none is broken."""
    step = broken_step(device)
    return (step["code"] or step["step"]) if step else None


def _is_empty(device: DeviceDoc) -> bool:
    """Return whether a card is in MIG mode without an instance: nothing can run on it."""
    return cause(device) in ("mig-mode", "mig-without-instances")


def by_model(
    devices: Iterable[DeviceDoc], label: Callable[[DeviceDoc], str | None]
) -> dict[str, list[DeviceDoc]]:
    """Return the devices by the name that `label` gives them; those without a name are left out."""
    groups: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        if name := label(device):
            groups.setdefault(name, []).append(device)
    return groups


def memory_of(device: DeviceDoc) -> int | None:
    """Return the bytes of a device's own memory; None where unknown, or shared with the system.

    The GPU and the NPU of a board with unified memory would count the node's memory twice.
    """
    memory = device["memory"]
    return memory["total"] if memory["kind"] not in ("shared", "unified") else None


def pci_address(device: DeviceDoc) -> str | None:
    """Return the device's PCI address as /sys writes it; None off that bus."""
    return next((name[4:] for name in device["ids"] if name.startswith("pci:")), None)


def node_of(device: DeviceDoc, prefix: str) -> str | None:
    """Return the device's own node in /dev that begins with `prefix` and ends with a number."""
    for path in device.get("nodes") or ():
        if path.startswith(prefix) and path[len(prefix) :].isdecimal():
            return path
    return None


def partition_profile(device: DeviceDoc) -> str | None:
    """Return the profile of a partition, such as "3g.40gb"; None of a whole card."""
    if not device["parent"]:
        return None
    return device.get("profile")
