"""The rules that all formats share: which devices are capacity, in which groups, and their names.

Capacity is what a job can be given, as `probe_core.model.verdict` has it. The order is that of the
bus, so that two runs write the same bytes.
"""

from __future__ import annotations

from probe_core.model.ids import ACCELERATORS, is_code, is_device_id, pci_address, pci_model
from probe_core.model.verdict import NodeVerdict, broken_step, grantable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc


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
    return _in_order(report, NodeVerdict(report).grantable)


def of_unknown_state(report: ReportDoc) -> list[DeviceDoc]:
    """Return those of `capacity` of which nobody could tell whether a job can use them.

    They count, as nothing refuses them: a node without a vendor's library would have none. Formats
    say how many they are.
    """
    return [device for device in capacity(report) if grantable(device).usable is None]


def missing(report: ReportDoc) -> list[DeviceDoc]:
    """Return the accelerators that no job can be given though nobody chose so, in that order."""
    return _in_order(report, NodeVerdict(report).missing)


def blocking(report: ReportDoc) -> list[DeviceDoc]:
    """Return those of `missing` that a job would be given: no processor's graphics beside cards."""
    return _in_order(report, NodeVerdict(report).blocking)


def expected(report: ReportDoc) -> tuple[int, int] | None:
    """Return how many accelerators should be here, and how many of them are absent.

    None where nobody says. Absent is what no bus shows; `missing` is here and cannot be used.
    """
    document = report.get("expected")
    if document is None:
        return None
    return document["count"], sum(entry["count"] for entry in document["absent"])


def set_aside(report: ReportDoc) -> list[DeviceDoc]:
    """Return those that somebody keeps from jobs on purpose: for a guest, or without instances."""
    return _in_order(report, NodeVerdict(report).set_aside)


def _in_order(report: ReportDoc, devices: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    chosen = {device["id"] for device in devices}
    return [device for device in accelerators(report) if device["id"] in chosen]


def cause(device: DeviceDoc) -> str | None:
    """Return the code of what keeps jobs from the device, else of what limits or hides it.

    A plugin chooses its codes: where one is none that a program may read, the step stands alone.
    """
    answer = grantable(device)
    if answer.usable is False:
        return _code_of(answer.code, answer.step)
    step = broken_step(device)
    return _code_of(step["code"], step["step"]) if step else None


def _code_of(code: str | None, step: str | None) -> str | None:
    return code if code and is_code(code) else step


def by_model(
    devices: Iterable[DeviceDoc], label: Callable[[DeviceDoc], str | None]
) -> dict[str, list[DeviceDoc]]:
    """Return the devices by the name that `label` gives them; those without a name are left out."""
    groups: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        if name := label(device):
            groups.setdefault(name, []).append(device)
    return groups


def by_cause(devices: Iterable[DeviceDoc]) -> dict[str, list[DeviceDoc]]:
    """Return the devices by the code of what is wrong with them, sorted."""
    return dict(sorted(by_model(devices, lambda device: cause(device) or "unknown").items()))


def memory_of(device: DeviceDoc) -> int | None:
    """Return the bytes of a device's own memory; None where unknown, or shared with the system.

    The GPU and the NPU of a board with unified memory would count the node's memory twice.
    """
    memory = device["memory"]
    return memory["total"] if memory["kind"] not in ("shared", "unified") else None


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


# Names of devices that stay the same from start to start, and tell no serial number.
#
# A UUID is a serial number in all but name, and an ordinal moves when a card fails. The bus
# address does neither; a partition is named after its card's address.


def stable_names(devices: Sequence[DeviceDoc]) -> dict[str, str]:
    """Return id → name, such as ``0000:01:00.0``, ``0000:01:00.0/3g.40gb.0`` and ``cpu:0``."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for device in devices:
        base = pci_address(device) or _plain(device["id"])
        if base is None:
            parent = names.get(device["parent"] or "")
            kind = _part(device)
            stem = f"{parent}/{kind}" if parent else kind
            base = f"{stem}.{counts.get(stem, 0)}"
            counts[stem] = counts.get(stem, 0) + 1
        names[device["id"]] = base
    return names


def name_of_id(identity: str) -> str | None:
    """Return the stable name of a device by its id alone; None of one that a serial number names.

    Such a device, a partition in the first place, is named by its report.
    """
    if identity.startswith("pci:") and is_device_id(identity):
        return identity.removeprefix("pci:")
    return _plain(identity)


def _part(device: DeviceDoc) -> str:
    """Return what a device without an address is a part of its card as: its profile, or kind."""
    profile = partition_profile(device)
    return profile if profile and is_device_id(f"part:{profile}") else device["kind"]


def _plain(identity: str) -> str | None:
    """Return an id that is no identity: of the device tree, of a slot, of the core itself.

    None also for one that a prober made of what no reader of a name expects.
    """
    is_unique = identity.startswith(("uuid:", "serial:")) or "GPU-" in identity
    return None if is_unique or "MIG-" in identity or not is_device_id(identity) else identity


# Names that Kubernetes takes as labels, and Slurm and Ray as types: cut and cleaned.
#
# A label's value has at most 63 of ``A-Za-z0-9._-`` and an alphanumeric at both ends
# (apimachinery, validation.IsValidLabelValue). NFD drops an invalid one with a line in its log
# alone.

MAX_LABEL = 63
_LABEL_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_LABEL_ENDS = "._-"


def listed(texts: Iterable[str | None]) -> str:
    """Return texts joined by commas, and none inside a text: readers split there."""
    return ",".join((text or "").replace(",", ";") for text in texts)


def label_value(text: str, limit: int = MAX_LABEL) -> str:
    """Return `text` as a label's value; "" where nothing of it can be one.

    What is not allowed becomes one dash. Cut first and stripped then: a cut may end with a dash.
    """
    plain = "".join(char if char in _LABEL_CHARACTERS else " " for char in text)
    return "-".join(plain.split())[:limit].strip(_LABEL_ENDS)


def product(device: DeviceDoc, limit: int = MAX_LABEL) -> str | None:
    """Return the product's label: the driver's own name, as GFD spells it; None without a name.

    ``NVIDIA-A100-SXM4-80GB-MIG-3g.40gb`` of a MIG instance, as GFD's strategy `single` has it.
    """
    return label_value(device["name"] or "", limit) or None


def slurm_type(device: DeviceDoc) -> str | None:
    """Return a GRES type: lower case, underscores for blanks, ``[a-z0-9_.-]`` alone.

    ``:`` and parentheses in a type give a node without GPUs. So spelled, a card's type is what
    Slurm's own detection reports (`nvidia_h100_80gb_hbm3`). Without a name that can be one it is
    the PCI id: `pci_10de_2330`.
    """
    number = (pci_model(device) or "").replace(":", "_")
    return _plain_type(device["name"] or "") or _plain_type(number and f"pci_{number}")


def _plain_type(name: str) -> str | None:
    plain = "".join(char if char in _LABEL_CHARACTERS else " " for char in name.lower())
    return "_".join(plain.split()).strip(_LABEL_ENDS) or None
