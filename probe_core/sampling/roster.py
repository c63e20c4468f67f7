"""The devices that are sampled: their ids, their order, and which of them sleep."""

from __future__ import annotations

import os

from probe_core.api import NotApplicable, Request
from probe_core.model.ids import ACCELERATORS, KIND_ORDER, normalise_id, strength
from probe_core.model.naming import answers_to
from probe_core.probers import bus
from probe_core.sampling.node import NODE
from probe_core.sysfs import power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal

    from probe_core.machine import Machine
    from probe_core.model.document import EventDoc, SampleDoc
    from probe_core.sampling.sampler import Avoided


_PCI = "/sys/bus/pci/devices"

MAX_ENTRIES = 1024
"""Devices sampled at most: 16 GPUs of seven partitions each, ten times."""


class Entry:
    """One device: its id in the report, all its ids, its kind, and its folder in /sys if any.

    `listed` tells that the report or the bus has it, so that each round has a sample of it.
    `vendor` are the four digits of its PCI vendor. `sampled` tells that a sampler knows it.
    """

    def __init__(self, ids: Sequence[str], kind: str | None, identity: str, listed: bool) -> None:
        self.id = identity
        self.ids = frozenset(ids) | {identity}
        self.kind = kind
        self.listed = listed
        self.vendor = ""
        self.sampled = False
        address = next((i.partition(":")[2] for i in ids if i.startswith("pci:")), None)
        self.folder = f"{_PCI}/{address}" if address else None


class Roster:
    """The devices in the order of the report; those that only a sampler knows come after.

    `selected` are the ids that the caller asked for, None for all.
    """

    def __init__(self, machine: Machine, selected: Sequence[str] | None = None) -> None:
        self._machine = machine
        self._selected = selected
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
        """Return whether the caller asked for a device."""
        return self._selected is None or any(answers_to(entry.ids, text) for text in self._selected)

    def shows(self, entry: Entry) -> bool:
        """Return whether a round has a sample of a device, be it that there are no figures.

        A display adapter, and what may be no accelerator, counts where a sampler knows it.
        """
        counts = entry.kind in (*ACCELERATORS, "cpu", None) or entry.sampled
        return self.wants(entry) and (counts or self._selected is not None)

    def unwanted(self) -> frozenset[str]:
        """Return the ids of devices that nobody asked for."""
        return ids_of(entry for entry in self.entries if not self.wants(entry))

    def asleep(self) -> list[Entry]:
        """Return the devices that sleep: the kernel answers that from memory and wakes none."""
        return [entry for entry in self.entries if _sleeps(self._machine, entry)]


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


def ids_of(entries: Iterable[Entry | Avoided]) -> frozenset[str]:
    """Return all ids of some devices."""
    return frozenset().union(*(entry.ids for entry in entries))


# Which devices came, went or got another driver: the bus's listing, compared round by round.

_LISTINGS = ("/sys/bus/pci/devices", "/sys/class/accel")
"""Folders whose names change when a device comes or goes; listing both takes 50 µs."""


class Hotplug:
    """Compares the buses with what they were at the last look."""

    def __init__(self, machine: Machine, roster: Roster) -> None:
        self._machine = machine
        self._roster = roster
        self._names = self._listing()
        self._drivers = self._bound()

    def compare(self) -> tuple[list[EventDoc], Sequence[Mapping[str, object]] | None]:
        """Return events, and what the bus shows now where devices came or went, else None.

        The roster has the devices that came, and lacks those that went.
        """
        names = self._listing()
        if names == self._names:
            return self._changes(), None
        sightings = _sightings(self._machine)
        if sightings is None:
            return [], None
        self._names = names
        events: list[EventDoc] = []
        present = {str(i) for sighting in sightings for i in _listed_ids(sighting)}
        gone = [
            entry
            for entry in self._roster.entries
            if entry.listed and entry.folder and entry.ids.isdisjoint(present)
        ]
        for entry in gone:
            self._roster.remove(entry.id)
            events.append(_event("removed", entry.id, "it is no longer on the bus"))
        added = [s for s in sightings if not any(self._roster.get(i) for i in _listed_ids(s))]
        for sighting in added:
            enlisted = self._roster.enlist(sighting)
            if enlisted is not None:
                events.append(_event("added", enlisted.id, "it has come to the bus"))
        events += self._changes()
        return events, sightings if gone or added else None

    def _changes(self) -> list[EventDoc]:
        """Return which devices that were there have another driver now."""
        drivers, events = self._bound(), []
        for identity, driver in drivers.items():
            before = self._drivers.get(identity)
            if identity in self._drivers and before != driver:
                change = f"its driver is {driver or 'none'} now, and was {before or 'none'}"
                events.append(_event("changed", identity, change))
        self._drivers = drivers
        return events

    def _listing(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(self._machine.listdir(folder)) for folder in _LISTINGS)

    def _bound(self) -> dict[str, str | None]:
        """Return the driver of each device that is on the bus, by the device's id."""
        folders = {e.id: e.folder for e in self._roster.entries if e.listed and e.folder}
        return {identity: self._driver(folder) for identity, folder in folders.items()}

    def _driver(self, folder: str) -> str | None:
        try:
            return os.path.basename(os.readlink(self._machine.path(folder) + "/driver"))
        except (OSError, ValueError):
            return None


def _sightings(machine: Machine) -> list[Mapping[str, object]] | None:
    """Return what the bus shows; None where that fails, and is tried again in the next round."""
    try:
        answer = bus.probe_devices(Request(machine))
    except Exception:  # a device that goes while its files are read
        return None
    return [] if isinstance(answer, NotApplicable) else list(answer)


def _listed_ids(sighting: Mapping[str, object]) -> list[str]:
    ids = sighting.get("ids")
    return [str(identity) for identity in ids] if isinstance(ids, (list, tuple)) else []


def _event(event: Literal["added", "removed", "changed"], device: str, change: str) -> EventDoc:
    return {"event": event, "device": device, "change": change}


# Lets idle devices sleep: whoever asks a device keeps it awake, be it with an open library.
#
# With NVML open a laptop's GPU never slept; closed, it slept within 6 s (cosmic-ext-applet-system-
# monitor#38). Reading amdgpu's sensors starts its five seconds anew (amdgpu_pm.c).

IDLE_S = 30.0
"""Seconds without work after which a device that may sleep is left alone. A judgement: longer than
the pauses of somebody who works with it."""

_AWAKE_S = 15.0
"""Seconds that it then has to fall asleep: twice the 6 s that were seen. A device that does not is
kept awake by somebody else, and is asked again for good."""


class Idle:
    """Whether one sampler's devices are left alone.

    `left_alone` says so. Times are seconds on the monotonic clock.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._since: float | None = None
        self._started = 0.0
        self._slept = False
        self._kept_awake = False
        self.left_alone = False

    def note(self, entries: Sequence[Entry], samples: Iterable[SampleDoc], now: float) -> bool:
        """Note a round of one sampler; return whether its devices should be left alone now."""
        if self._kept_awake or not all(map(_is_idle, samples)) or not self._may_sleep(entries):
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since >= IDLE_S

    def leave_alone(self, now: float) -> None:
        """Note that nothing asks the devices from now on."""
        self.left_alone, self._slept, self._started, self._since = True, False, now, None

    def may_ask(self, entries: Sequence[Entry], now: float) -> bool:
        """Return whether the devices may be asked: they are not, or no longer, left alone."""
        if not self.left_alone:
            return True
        if any(_sleeps(self._machine, entry) for entry in entries):
            self._slept = True
            return False
        if not self._slept and now - self._started < _AWAKE_S:
            return False
        # Somebody has woken them, or never lets them sleep.
        self._kept_awake = not self._slept
        self.left_alone = False
        return True

    def _may_sleep(self, entries: Iterable[Entry]) -> bool:
        """Return whether the kernel may suspend any of the devices: ``power/control`` is auto."""
        return any(
            entry.folder and self._machine.read(f"{entry.folder}/power/control", 16) == "auto"
            for entry in entries
        )


def _sleeps(machine: Machine, entry: Entry) -> bool:
    return entry.folder is not None and power.asleep(power.status(machine, entry.folder))


def _is_idle(sample: SampleDoc) -> bool:
    """Return whether a device does nothing; where that is not known it may be working."""
    if sample["status"] != "ok":
        return True
    return sample["busy"] == 0 and not sample["processes"]
