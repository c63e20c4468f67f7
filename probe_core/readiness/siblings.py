"""Siblings as the norm: a device that has less than its equals on the same machine.

A number alone says little: sixteen lanes or eight, 700 W or 500 W may both be meant. Where most of
several equal devices agree, the one that has less shows a loose bridge, a narrow slot or a setting
that was forgotten. A whole class in one state is meant so, or nobody can tell; what was not read
is unknown, and compared with nothing. The PCIe generation falls while a device idles: only devices
that work are compared by it.
"""

from __future__ import annotations

from probe_core.model.ids import ACCELERATORS, pci_fact, pci_model
from probe_core.sizes import gib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from probe_core.model.document import DeviceDoc

    Read = Callable[[DeviceDoc], float | None]

__all__ = [
    "FACTS",
    "Difference",
    "Fact",
    "active_links",
    "differences",
    "lanes",
    "lone_links",
]

_LEAST = 3
"""Equal devices of which one can be unlike the others; of two, nobody knows which is right."""

_SAME_SIZE = 0.98
"""Share of the norm's memory that counts as the same: a driver reserves some of it, for MIG and
for a display. The sixteenth that ECC takes of GDDR memory is more than that."""


class Fact:
    """One row: what is compared.

    `show` writes a value with its unit. `per_board` is what makers of boards choose, so that only
    boards of one make are equals. `told_by` are the causes that say the same of the device itself.
    """

    __slots__ = ("name", "per_board", "read", "show", "told_by", "tolerance")

    def __init__(
        self,
        name: str,
        read: Read,
        show: Callable[[float], str],
        *,
        per_board: bool = False,
        tolerance: float = 1.0,
        told_by: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.read = read
        self.show = show
        self.per_board = per_board
        self.tolerance = tolerance
        self.told_by = tuple(told_by)


class Difference:
    """One device that has less of one fact than most of its equals."""

    __slots__ = ("count", "device", "fact", "norm", "own")

    def __init__(self, device: DeviceDoc, fact: Fact, own: float, norm: float, count: int) -> None:
        self.device = device
        self.fact = fact
        self.own = own
        self.norm = norm
        self.count = count

    @property
    def sentence(self) -> str:
        """Both numbers: "PCIe ×8, its 7 siblings ×16"."""
        show, fact = self.fact.show, self.fact
        return f"{fact.name} {show(self.own)}, its {self.count} siblings {show(self.norm)}"


def differences(devices: Iterable[DeviceDoc]) -> Iterator[Difference]:
    """Yield what devices have less of than most of their equals."""
    cards = [device for device in devices if _is_whole(device)]
    for fact in FACTS:
        for group in _equals(cards, fact):
            yield from _less(group, fact)


def _is_whole(device: DeviceDoc) -> bool:
    return device["kind"] in ACCELERATORS and device["parent"] is None


def _equals(devices: Iterable[DeviceDoc], fact: Fact) -> Iterator[list[DeviceDoc]]:
    groups: dict[Hashable, list[DeviceDoc]] = {}
    for device in devices:
        groups.setdefault(_key(device, fact), []).append(device)
    yield from (group for group in groups.values() if len(group) >= _LEAST)


def _key(device: DeviceDoc, fact: Fact) -> Hashable:
    """Return what equal devices share: chip, product and name; None of the three is a stranger."""
    key = (device["vendor"], device["chip"]["id"], pci_model(device), device["name"])
    if not any(key[1:]):
        return device["id"]
    return (*key, _board(device)) if fact.per_board else key


def _board(device: DeviceDoc) -> Hashable:
    """Return the make of the board, and the power that it is built for."""
    power = device.get("power") or {}
    return pci_fact(device, "subsystem"), power.get("default_watts"), power.get("max_watts")


def _less(group: Sequence[DeviceDoc], fact: Fact) -> Iterator[Difference]:
    read = [(device, value) for device in group if (value := fact.read(device)) is not None]
    norm, count = _norm([value for _, value in read])
    for device, value in read:
        if norm is not None and value < norm * fact.tolerance and not _is_told(device, fact):
            yield Difference(device, fact, value, norm, count)


def _norm(values: Sequence[float]) -> tuple[float | None, int]:
    """Return the value that more than half of at least three share, and how many do."""
    counts = {value: values.count(value) for value in values}
    norm, count = max(counts.items(), key=lambda entry: entry[1], default=(0.0, 0))
    is_norm = len(values) >= _LEAST and 2 * count > len(values)
    return (norm if is_norm else None), count


def _is_told(device: DeviceDoc, fact: Fact) -> bool:
    steps = device["readiness"]["steps"]
    return any(step["code"] in fact.told_by for step in steps if step["code"])


# The facts that are compared.


def nvlinks(device: DeviceDoc) -> tuple[int, int] | None:
    """Return (active, all) NVLinks of a GPU; None where they were not read."""
    found = (device.get("extra") or {}).get("nvlink")
    if not isinstance(found, dict):
        return None
    active, count = found.get("active"), found.get("links")
    return (active, count) if isinstance(active, int) and isinstance(count, int) else None


def active_links(device: DeviceDoc) -> float | None:
    """Return how many of a GPU's NVLinks are active; None where they were not read."""
    links = nvlinks(device)
    return None if links is None else links[0]


def lanes(device: DeviceDoc) -> float | None:
    """Return the lanes of an awake device's own hop; a sleeping one shows what it woke to."""
    if device["power_state"] not in ("active", None):
        return None
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    return link.get("local_width") if link else None


def _generation(device: DeviceDoc) -> float | None:
    """Return the PCIe generation of a device that works, of which alone it says something.

    NVML names idleness among the reasons for low clocks (nvmlClocksEventReasonGpuIdle).
    """
    reasons = (device.get("power") or {}).get("reasons")
    is_idle = not device.get("processes") or not isinstance(reasons, list) or "idle" in reasons
    if is_idle or device["power_state"] not in ("active", None):
        return None
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    return link.get("local_generation") if link else None


def _clock(name: str) -> Read:
    return lambda device: (device.get("clocks") or {}).get(name)


def _corrects(device: DeviceDoc) -> float | None:
    enabled = (device.get("ecc") or {}).get("enabled")
    return None if enabled is None else float(enabled)


def _replaced_rows(device: DeviceDoc) -> float | None:
    """Return the replaced rows of memory as a negative number: who has more of them has less."""
    count = (device.get("ecc") or {}).get("remapped")
    return None if count is None else -float(count)


def _mhz(value: float) -> str:
    return f"{value:g} MHz"


FACTS = (
    Fact("NVLinks active", active_links, lambda value: f"{value:g}"),
    Fact("PCIe", lanes, lambda value: f"×{value:g}", told_by=("link-narrow",)),
    Fact("PCIe generation", _generation, lambda value: f"{value:g}", told_by=("link-slow",)),
    Fact("memory", lambda device: device["memory"]["total"], gib, tolerance=_SAME_SIZE),
    Fact("highest clock", _clock("max_mhz"), _mhz, per_board=True),
    Fact("highest memory clock", _clock("memory_max_mhz"), _mhz, per_board=True),
    Fact("replaced memory rows", _replaced_rows, lambda value: f"{-value:g}"),
    Fact("ECC", _corrects, lambda value: "on" if value else "off"),
    Fact(
        "power limit",
        lambda device: (device.get("power") or {}).get("limit_watts"),
        lambda value: f"{value:g} W",
        per_board=True,
        told_by=("power-capped",),
    ),
)
"""What is compared; rows that wait for a reset are a cause of their own."""


def lone_links(devices: Iterable[DeviceDoc]) -> Iterator[tuple[DeviceDoc, int, int]]:
    """Yield (device, active, all) of GPUs with some NVLinks down and no class to compare with.

    All of them down is a card without a bridge, or one that is alone in a virtual machine.
    """
    known = {d["id"]: links for d in devices if _is_whole(d) and (links := nvlinks(d)) is not None}
    groups: dict[Hashable, list[DeviceDoc]] = {}
    for device in devices:
        if device["id"] in known:
            groups.setdefault(_key(device, FACTS[0]), []).append(device)
    for group in groups.values():
        states = [known[device["id"]] for device in group]
        if len(group) >= _LEAST or (len(group) > 1 and len(set(states)) == 1):
            continue
        for device, (active, count) in zip(group, states, strict=True):
            if 0 < active < count:
                yield device, active, count
