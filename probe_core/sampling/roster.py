"""The devices that are sampled: their ids, their order, and which of them sleep."""

from __future__ import annotations

from probe_core.model.ids import normalise_id, strength
from probe_core.model.kinds import ACCELERATORS, KIND_ORDER
from probe_core.model.short_ids import answers_to
from probe_core.sampling.node import NODE
from probe_core.sysfs import power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.machine import Machine

__all__ = ["Entry", "Roster"]

_PCI = "/sys/bus/pci/devices"

MAX_ENTRIES = 1024
"""Devices sampled at most: 16 GPUs of seven partitions each, ten times."""


class Entry:
    """One device: its id in the report, all its ids, its kind, and its folder in /sys if any.

    `listed` tells that the report or the bus has it, so that each round has a sample of it.
    `vendor` are the four digits of its PCI vendor.
    """

    __slots__ = ("folder", "id", "ids", "kind", "listed", "vendor")

    def __init__(self, ids: Sequence[str], kind: str | None, identity: str, listed: bool) -> None:
        self.id = identity
        self.ids = frozenset(ids) | {identity}
        self.kind = kind
        self.listed = listed
        self.vendor = ""
        address = next((i.partition(":")[2] for i in ids if i.startswith("pci:")), None)
        self.folder = f"{_PCI}/{address}" if address else None


class Roster:
    """The devices in the order of the report; those that only a sampler knows come after.

    `wanted` are the ids that the caller asked for, None for all.
    """

    def __init__(self, machine: Machine, wanted: Sequence[str] | None = None) -> None:
        self._machine = machine
        self._wanted = wanted
        self._by_id: dict[str, Entry] = {}
        self.entries: list[Entry] = []

    def add(self, ids: Iterable[object], kind: str | None, *, listed: bool) -> Entry | None:
        """Add a device unless one of its ids is there; None where it has no usable id."""
        names = [name for identity in ids if (name := _normal(identity))]
        if not names:
            return None
        entry = next((self._by_id[name] for name in names if name in self._by_id), None)
        if entry is None:
            if len(self.entries) >= MAX_ENTRIES:
                return None
            entry = Entry(names, kind, min(names, key=strength), listed)
            self.entries.append(entry)
            self.entries.sort(key=_place)
        for name in names:
            self._by_id.setdefault(name, entry)
        entry.ids |= frozenset(names)
        entry.folder = entry.folder or Entry(names, kind, entry.id, listed).folder
        return entry

    def enlist(self, device: Mapping[str, object]) -> Entry | None:
        """Add what a report or the bus lists, under the report's id; None without a usable one."""
        ids = device.get("ids")
        if not isinstance(ids, (list, tuple)):
            return None
        identity = _normal(device.get("id"))
        entry = self.add([identity, *ids], str(device.get("kind")), listed=True)
        if entry is not None:
            entry.id = identity or entry.id
            pci = device.get("pci")
            entry.vendor = str(pci.get("id"))[:4] if isinstance(pci, dict) else ""
        return entry

    def remove(self, identity: str) -> None:
        """Forget a device that is gone."""
        entry = self._by_id.get(identity)
        if entry is not None:
            self.entries.remove(entry)
            self._by_id = {name: e for name, e in self._by_id.items() if e is not entry}

    def get(self, identity: str) -> Entry | None:
        """Return the device that has an id."""
        return self._by_id.get(identity)

    def wants(self, entry: Entry) -> bool:
        """Return whether the caller asked for a device; NODE is asked for with all others."""
        if self._wanted is None:
            return entry.kind in (*ACCELERATORS, "cpu", None) or entry.id == NODE
        return any(answers_to(entry.ids, text) for text in self._wanted)

    def unwanted(self) -> frozenset[str]:
        """Return the ids of devices that nobody asked for."""
        return _ids(entry for entry in self.entries if not self.wants(entry))

    def asleep(self) -> list[Entry]:
        """Return the devices that sleep: the kernel answers that from memory and wakes none."""
        return [
            entry
            for entry in self.entries
            if entry.folder and power.asleep(power.status(self._machine, entry.folder))
        ]


def _place(entry: Entry) -> int:
    """Return the place of a device's kind; one that no report lists is a part of a GPU."""
    if entry.id == NODE:
        return len(KIND_ORDER)
    return KIND_ORDER.get(entry.kind or "gpu", len(KIND_ORDER) - 1)


def _normal(identity: object) -> str | None:
    try:
        return normalise_id(identity) if isinstance(identity, str) else None
    except ValueError:
        return None


def _ids(entries: Iterable[Entry]) -> frozenset[str]:
    return frozenset().union(*(entry.ids for entry in entries))
