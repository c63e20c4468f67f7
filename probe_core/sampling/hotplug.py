"""Which devices came, went or got another driver: the bus's listing, compared round by round."""

from __future__ import annotations

import os

from probe_core.api import NotApplicable, Request
from probe_core.probers import bus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from probe_core.machine import Machine
    from probe_core.model.sample_document import EventDoc
    from probe_core.sampling.roster import Roster

__all__ = ["Hotplug"]

_LISTINGS = ("/sys/bus/pci/devices", "/sys/class/accel")
"""Folders whose names change when a device comes or goes; listing both takes 50 µs."""


class Hotplug:
    """Compares the buses with what they were at the last look."""

    def __init__(self, machine: Machine, roster: Roster) -> None:
        self._machine = machine
        self._roster = roster
        self._names = self._listing()
        self._drivers = self._bound()

    def look(self) -> tuple[list[EventDoc], Sequence[Mapping[str, object]] | None]:
        """Return events, and what the bus shows now where devices came or went, else None.

        The roster has the devices that came, and lacks those that went.
        """
        drivers, names = self._bound(), self._listing()
        events = self._changes(drivers)
        self._drivers = drivers
        if names == self._names:
            return events, None
        self._names = names
        sightings = _sightings(self._machine)
        present = {str(i) for sighting in sightings for i in _ids(sighting)}
        gone = [
            entry
            for entry in self._roster.entries
            if entry.listed and entry.folder and entry.ids.isdisjoint(present)
        ]
        for entry in gone:
            self._roster.remove(entry.id)
            events.append(_event("removed", entry.id, "it is no longer on the bus"))
        added = [s for s in sightings if not any(self._roster.get(i) for i in _ids(s))]
        for sighting in added:
            enlisted = self._roster.enlist(sighting)
            if enlisted is not None:
                events.append(_event("added", enlisted.id, "it has come to the bus"))
        self._drivers = self._bound()
        return events, sightings if gone or added else None

    def _changes(self, drivers: Mapping[str, str | None]) -> list[EventDoc]:
        events = []
        for identity, driver in drivers.items():
            before = self._drivers.get(identity)
            if identity in self._drivers and before != driver:
                change = f"its driver is {driver or 'none'} now, and was {before or 'none'}"
                events.append(_event("changed", identity, change))
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


def _sightings(machine: Machine) -> list[Mapping[str, object]]:
    answer = bus.probe_devices(Request(machine))
    return [] if isinstance(answer, NotApplicable) else list(answer)


def _ids(sighting: Mapping[str, object]) -> list[str]:
    ids = sighting.get("ids")
    return [str(identity) for identity in ids] if isinstance(ids, (list, tuple)) else []


def _event(event: Literal["added", "removed", "changed"], device: str, change: str) -> EventDoc:
    return {"event": event, "device": device, "change": change}
