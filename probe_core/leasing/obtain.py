"""From a request to a `Lease`: takes devices that do, or says who is in the way and what helps.

What a device must have besides being free (memory, and no process outside any lease) is measured
after a wait when it was taken, and the device is given back if it lacks either: keeping it would
keep others off who need less.
"""

from __future__ import annotations

import os
from time import monotonic

from probe_core.leasing import Lease
from probe_core.leasing.acquire import Acquisition
from probe_core.leasing.folder import lease_folder
from probe_core.leasing.ranges import OUTER_LEASE, outer_lease, outer_lease_value, stable_name
from probe_core.leasing.records import MARK, marks, own_record
from probe_core.selection.candidates import candidates, free_memory, report_document
from probe_core.selection.choose import better_kinds, bytes_of
from probe_core.selection.environment import confine
from probe_core.selection.occupied import is_used, occupancy
from probe_core.selection.request import chooser, plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence, Set

    from probe_core.leasing.acquire import Leased
    from probe_core.model.document import DeviceDoc, LeaseDoc, ReportDoc
    from probe_core.selection import SelectionError
    from probe_core.selection.request import Choose, Request

    Measure = Callable[[], object]

LOOK_AGAIN_S = 1.0
"""Seconds after which a device that lacked something is measured again: a probe keeps
a core busy for tens of milliseconds (a judgement)."""


def hand_out(
    document: ReportDoc,
    request: Request,
    environ: Mapping[str, str],
    *,
    wait: float = 0,
    command: Sequence[str] = (),
    measure: Measure | None = None,
    versions: Mapping[str, str] | None = None,
    style: str,
) -> Lease:
    """Lease what `request` asks for: at once (`wait` 0), within `wait` seconds, or whenever (inf).

    See `lease`. `document` is a complete report, not checked. `measure` gives a fresh one: after a
    wait it tells whether the memory asked for is free, which a previous owner, or a process without
    a lease, may still be using.
    Raises `SelectionError`: at once for what can never be had, code ``busy`` when others lease it,
    ``occupied`` when processes outside any lease use it, ``memory`` when they left too little;
    `LeaseError` when there is no folder for leases. The devices come in the runtime's order.
    """
    deadline = monotonic() + wait
    ranked, count = plan(document, request, waiting=wait != 0)
    mark = os.urandom(8).hex()
    reserve = bytes_of(request.reserve)
    shares = request.share or reserve is not None
    record = own_record(command, share=shares, mark=mark, reserve=reserve)
    folder = lease_folder(environ)
    acquisition = leased = None
    try:
        folder.guard()
        depths: Mapping[str, int] = {}
        if outer_lease(environ):
            from probe_core.leasing.holders import proven

            depths = proven(environ, folder)
        acquisition = Acquisition(folder, ranked, document["devices"], record, depths)
        exempt = acquisition.shared() if reserve is not None else ()
        room = Room(request, ranked, exempt={*depths, *exempt})
        choose = chooser(document, request, count, ranked)
        choose_idle = _without(room.occupied, choose)
        if wait == 0:
            leased = acquisition.attempt(choose_idle)
        elif measure is not None and room.limited:
            leased = _wait_for_room(acquisition, choose, deadline, room, measure, count)
        else:
            leased = acquisition.wait(choose_idle, deadline, count)
        if leased is None:
            raise _not_free(document, request, acquisition, room, wait)
        shown = candidates(document, request.runtime)
        if request.selector is None:
            places = {device["id"]: place for place, device in enumerate(shown.visible)}
            leased.devices.sort(key=lambda device: places[device["id"]])

        def changes_for(devices: Sequence[DeviceDoc]) -> dict[str, str | None]:
            changes = confine(
                document, devices, environ, versions=versions, style=style, command=command
            )
            changes[OUTER_LEASE] = outer_lease_value(environ if depths else {}, devices)
            changes[MARK] = marks(environ, depths, mark)
            return changes

        excluded = shown.excluded() | room.occupied
        if request.selector is None:
            excluded |= _passed_over(acquisition, leased, room.occupied)
        return Lease(leased, changes_for, environ, excluded)
    except BaseException:
        if leased is not None:
            leased.put_back()
        folder.close()
        raise
    finally:
        if acquisition is not None:
            acquisition.close()


class Room:
    """The demands of a request on each device, and which of its devices fail them now.

    `occupied` maps devices to who uses them without a lease; `exempt` are devices that processes
    under a lease use: what an outer lease gave, and what others reserved parts of. `limited` is
    whether a device that is free may still not do.
    """

    def __init__(self, request: Request, devices: Sequence[DeviceDoc], exempt: Set[str]) -> None:
        self._least = bytes_of(request.memory)
        self._avoids = request.avoids
        self._exempt = exempt
        self.occupied = self._occupied(devices)
        self.limited = self._least is not None or bool(self.occupied)

    def _occupied(self, devices: Sequence[DeviceDoc]) -> dict[str, str]:
        return occupancy(
            device
            for device in devices
            if self._avoids
            and is_used(device)
            and self._exempt.isdisjoint((device["id"], stable_name(device)))
        )

    def lacking(self, devices: Sequence[DeviceDoc], report: object) -> set[str]:
        """Return the ids of the devices that a fresh report shows to fail.

        A device that it does not name counts as it was.
        """
        measured = {device["id"]: device for device in report_document(report)["devices"]}
        fresh = [measured.get(device["id"], device) for device in devices]
        occupied = self._occupied(fresh)
        self.occupied |= occupied
        least = self._least
        short = {d["id"] for d in fresh if least is not None and (free_memory(d) or 0) < least}
        return short | set(occupied)


def _without(names: Collection[str], choose: Choose) -> Choose:
    return lambda free: choose([device for device in free if device["id"] not in names])


def _wait_for_room(
    acquisition: Acquisition,
    choose: Choose,
    deadline: float,
    room: Room,
    measure: Measure,
    needed: int,
) -> Leased | None:
    """Queue until `choose` picks devices with `room`, `needed` in number; None after the deadline.

    `measure` returns a fresh report.
    """
    lacking: set[str] = set()
    pick = _without(lacking, choose)
    while True:
        until = min(deadline, monotonic() + LOOK_AGAIN_S) if lacking else deadline
        leased = acquisition.wait(pick, until, needed)
        if leased is not None:
            short = room.lacking(leased.devices, measure())
            if not short:
                return leased
            leased.put_back()
            lacking |= short
        elif monotonic() >= deadline:
            return None
        else:
            lacking.clear()


# Why devices that exist are not free: who leases or occupies them, and what would work instead.


def _passed_over(
    acquisition: Acquisition, leased: Leased, occupied: Mapping[str, str]
) -> dict[str, str]:
    """Return why a count got devices of a lesser kind than there are, by those that others have."""
    better, instead = better_kinds(leased.devices, [key.device for key in acquisition.keys])
    reasons = {}
    for key in acquisition.keys:
        if (name := key.device["id"]) in better:
            from probe_core.leasing.listing import obstacles

            holders = "; ".join(map(_holder, obstacles(acquisition.folder, [key])))
            if reason := occupied.get(name) or (holders and f"leased {holders}"):
                reasons[name] = f"{reason}; {instead}"  # else a lease has ended since
    return reasons


def _not_free(
    document: ReportDoc, request: Request, acquisition: Acquisition, room: Room, wait: float
) -> SelectionError:
    """Return the error of a request that was not met, with everything that was in its way."""
    from probe_core.leasing.listing import obstacles
    from probe_core.selection.refusals import Refusals

    leases = obstacles(acquisition.folder, acquisition.keys)
    refusals = Refusals(str(request), candidates(document, request.runtime))
    waited = f" after {wait:g} s" if wait else ""
    if room.occupied and not leases:
        listed = "; ".join(f"{name}: {text}" for name, text in room.occupied.items())
        return refusals.error(
            f"not free{waited}: {listed}",
            "occupied",
            "--shared to use them all the same, or --wait until those processes end",
            device=next(iter(room.occupied)),
        )
    if not leases and request.memory is not None and wait != 0:
        return refusals.error(
            f"no lease holds them, but after {wait:g} s less than {request.memory} was still free",
            "memory",
            "ask for less, or end the processes that use the devices without a lease",
        )
    owners = "; ".join(map(_owner, leases)) or "another process"
    occupied = "".join(f"; {name}: {text}" for name, text in room.occupied.items())
    return refusals.error(
        f"not free{waited}; leased: {owners}{occupied}",
        "busy",
        _alternatives(request, leases, len(acquisition.keys) - len(room.occupied)),
        device=leases[0]["device"] if leases else None,
        leases=leases,
    )


def _owner(entry: LeaseDoc) -> str:
    return f"{entry['device']} {_holder(entry)}"


def _holder(entry: LeaseDoc) -> str:
    claimed = "" if entry["proven"] or not entry["command"] else ", as its record says"
    command = f"{entry['command'] or '?'}{claimed}"
    listed = f"by process {entry['pid'] or '?'} ({command})"
    if not entry["kept_by"]:
        return listed
    pids = ", ".join(str(pid) for pid in entry["kept_by"])
    if entry["state"] == "inherited":
        return f"{listed}, which has ended and left running {pids}"
    return f"{listed}, here seen as {pids}"  # of another PID namespace


def _alternatives(request: Request, leases: Sequence[LeaseDoc], total: int) -> str:
    """Return what would work instead of `total` devices of which some are leased."""
    free = total - len({entry["device"] for entry in leases})
    fix = "--wait to queue"
    if request.selector is None and 0 < free < (request.count or 1):
        fix += f", or ask for {free}"
    all_share = all(entry["share"] and entry["reserve"] is None for entry in leases)
    if leases and all_share and not request.share and request.reserve is None:
        fix += ", or --share: their owners do"
    return fix
