"""Which of the free devices a request takes: the emptiest, and among those the best linked."""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.acquire import Acquisition, Terms
from probe_core.leasing.folder import lease_folder
from probe_core.leasing.keys import OUTER_LEASE
from probe_core.leasing.memory import Room, wait_for_room
from probe_core.selection import SelectionError
from probe_core.selection.candidates import candidates, load
from probe_core.selection.choose import choose
from probe_core.selection.refusals import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.leasing.acquire import Choose
    from probe_core.leasing.folder import Folder
    from probe_core.leasing.leased import Leased
    from probe_core.leasing.memory import Measure
    from probe_core.model.document import DeviceDoc, LeaseDoc, ReportDoc


def by_load(count: int, ranked: Sequence[DeviceDoc]) -> Choose:
    """Return what picks `count` of the devices that are free; `ranked` is the order of a few."""
    places = {device["id"]: place for place, device in enumerate(ranked)}

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        if len(free) < count:
            return None
        if count == 1 or len(free) == count:
            return sorted(free, key=lambda device: places[device["id"]])[:count]
        from probe_core.selection.choose import roomiest_group

        return roomiest_group(free, count, ranked)

    return pick


def first_group(groups: Sequence[Sequence[DeviceDoc]]) -> Choose:
    """Return what picks the first group of which every device is free."""

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        ids = {device["id"] for device in free}
        return next((group for group in groups if all(d["id"] in ids for d in group)), None)

    return pick


# From a request to leased devices: what may be taken, what is preferred, why it cannot be had.

NEXT = "next"
"""An index that means the first group of a layout that is free."""

_SHOWN_REQUEST = 80
"""Characters of a list that an error repeats: two whole UUIDs."""


class Request:
    """What is asked for: a count, a list or a group of a layout, with memory, shared or not.

    `reserve` bytes of each device are leased instead of all of it. `avoids` is whether devices on
    which processes outside any lease hold memory are passed over.
    """

    __slots__ = (
        "avoids",
        "count",
        "index",
        "memory",
        "reserve",
        "runtime",
        "selector",
        "share",
    )

    def __init__(
        self,
        count: int | None = None,
        selector: str | None = None,
        *,
        index: int | str | None = None,
        memory: str | int | None = None,
        share: bool = False,
        reserve: str | int | None = None,
        avoids: bool = False,
        runtime: str | None = None,
    ) -> None:
        self.count = count
        self.selector = selector
        """A list of devices, or a layout."""
        self.index = index
        """Which group of the layout; None for all of it, and for a list."""
        self.memory = memory
        self.share = share
        self.reserve = reserve
        self.avoids = avoids
        self.runtime = runtime

    def __str__(self) -> str:
        """Return the request for a sentence."""
        if self.selector is not None:
            group = f", group {self.index}" if self.index is not None else ""
            if self.index == NEXT:
                group = ", the next free group"
            return f"{self.selector[:_SHOWN_REQUEST]!a}{group}"
        count = self.count or 1
        return f"{count} device{'s' * (count != 1)}"


def plan(
    document: ReportDoc, request: Request, *, waiting: bool = False
) -> tuple[list[DeviceDoc], int]:
    """Return the devices that would do, best first, and how many of them are needed.

    Raises `SelectionError` for what this node can never give. When `waiting`, memory that is in
    use now may come free: the device's whole memory then counts.
    """
    if request.reserve is not None:
        _check_reserve(document, request)
    view = document
    if waiting and request.memory is not None:
        view = {**document, "devices": [_emptied(device) for device in document["devices"]]}
    if request.selector is not None:
        ids, count = _named(view, request)
        return _with_ids(document, ids), count
    count = 1 if request.count is None else request.count
    if count < 1:
        raise _refusals(document, request).error("a count is at least 1", "syntax")
    usable = _with_ids(document, _usable(view, request, count))
    places = {device["id"]: place for place, device in enumerate(usable)}
    usable.sort(key=lambda device: (*load(device), places[device["id"]]))
    return usable, count


def reserved_bytes(request: Request) -> int | None:
    """Return the bytes of each device that a request would reserve; raises `ValueError`."""
    if request.reserve is None:
        return None
    from probe_core.wording import parse_size

    return parse_size(request.reserve)


def _check_reserve(document: ReportDoc, request: Request) -> None:
    try:
        amount = reserved_bytes(request) or 0
    except ValueError as error:
        raise _refusals(document, request).error(str(error), "syntax") from None
    largest = max(map(capacity, candidates(document, request.runtime).visible), default=0)
    if amount > largest:
        from probe_core.wording import format_size

        raise _refusals(document, request).error(
            f"no visible device has {format_size(amount)} to reserve",
            "memory",
            f"reserve {format_size(largest)} at most" if largest else None,
        )


def _refusals(document: ReportDoc, request: Request) -> Refusals:
    return Refusals(str(request), candidates(document, request.runtime))


def _usable(view: ReportDoc, request: Request, count: int) -> list[str]:
    """Return the ids of all devices that could be among the `count`."""
    memory, runtime = request.memory, request.runtime
    # All that would do, not only `count`: which of them are free is known under the locks alone.
    try:
        groups, _ = choose(view, memory=memory, runtime=runtime)
    except SelectionError:
        groups = [[]]
    if len(groups[0]) < count:  # raises, in the words of what was asked for
        choose(view, count=count, memory=memory, runtime=runtime)
    return [device["id"] for device in groups[0]]


def _with_ids(document: ReportDoc, ids: Sequence[str]) -> list[DeviceDoc]:
    """Return the devices as the document itself has them, in the order of the ids."""
    devices = {device["id"]: device for device in document["devices"]}
    return [devices[name] for name in ids]


def _emptied(device: DeviceDoc) -> DeviceDoc:
    """Return the device as if nothing used its memory."""
    return {**device, "memory": {**device["memory"], "free": None, "usable": None}}


def _groups(document: ReportDoc, request: Request) -> list[list[DeviceDoc]]:
    groups, _ = choose(document, request.selector, memory=request.memory, runtime=request.runtime)
    return groups


def _named(document: ReportDoc, request: Request) -> tuple[list[str], int]:
    groups = _groups(document, request)
    devices = [device for group in groups for device in group]
    count = len(devices)
    if request.index == NEXT:
        count = len(groups[0])
    elif request.index is not None:
        if not isinstance(request.index, int) or not 0 <= request.index < len(groups):
            raise _refusals(document, request).error(
                f"the layout {request.selector} has no group {request.index}",
                "unknown",
                f"an index from 0 to {len(groups) - 1}",
            )
        devices = groups[request.index]
        count = len(devices)
    return [device["id"] for device in devices], count


def obtain(
    document: ReportDoc,
    request: Request,
    environ: Mapping[str, str],
    *,
    wait: float | None = 0,
    command: Sequence[str] = (),
    measure: Measure | None = None,
    mark: str = "",
) -> tuple[Leased, dict[str, str], Mapping[str, int]]:
    """Lease devices: at once (`wait` 0), within `wait` seconds, or whenever (`wait` None).

    `measure` gives a fresh report: after a wait it tells whether the memory asked for is free,
    which a previous owner, or a process without a lease, may still be using. `mark` is what the
    lease's processes are told by. Besides, the devices are returned that were passed over since
    they are occupied, and the depths of what an outer lease gave.
    Raises `SelectionError`: at once for what can never be had, code ``busy`` when others lease it,
    ``occupied`` when processes outside any lease use it, ``memory`` when they left too little;
    `LeaseError` when there is no folder for leases. The devices come in the runtime's order.
    """
    deadline = None if wait is None else monotonic() + wait
    ranked, count = plan(document, request, waiting=wait != 0)
    folder = lease_folder(environ)
    acquisition = leased = None
    try:
        folder.guard()
        depths = _depths(environ, folder)
        acquisition = Acquisition(
            folder, ranked, document["devices"], _terms(request, command, mark, depths)
        )
        exempt = acquisition.shared() if request.reserve is not None else ()
        room = Room(request.memory, ranked, avoids=request.avoids, exempt={*depths, *exempt})
        pick = _chooser(document, request, count, ranked)
        if wait == 0:
            leased = acquisition.attempt(room.only(pick))
        elif measure is not None and room.limited:
            leased = wait_for_room(acquisition, pick, deadline, room, measure, count)
        else:
            leased = acquisition.wait(room.only(pick), deadline, count)
        if leased is None:
            raise not_free(document, request, acquisition, room, wait)
        if request.selector is None:
            visible = candidates(document, request.runtime).visible
            places = {device["id"]: place for place, device in enumerate(visible)}
            leased.devices.sort(key=lambda device: places[device["id"]])
    except BaseException:
        if leased is not None:
            leased.put_back()
        folder.close()
        raise
    finally:
        if acquisition is not None:
            acquisition.close()
    return leased, room.occupied, depths


def _depths(environ: Mapping[str, str], folder: Folder) -> Mapping[str, int]:
    if OUTER_LEASE not in environ:
        return {}
    from probe_core.leasing.leased import proven

    return proven(environ, folder)


def _terms(request: Request, command: Sequence[str], mark: str, depths: Mapping[str, int]) -> Terms:
    reserve = reserved_bytes(request)
    return Terms(share=request.share, reserve=reserve, command=command, mark=mark, depths=depths)


def _chooser(
    document: ReportDoc, request: Request, count: int, ranked: Sequence[DeviceDoc]
) -> Choose:
    if request.index == NEXT:
        return first_group(_groups(document, request))
    return by_load(count, ranked)


def capacity(device: DeviceDoc) -> int:
    """Return the bytes of a device that can be reserved in all; 0 where its memory is unknown."""
    memory = device["memory"]
    amounts = [amount for amount in (memory["total"], memory["usable"]) if amount is not None]
    return max(amounts, default=0)


# Why devices that exist are not free: who leases or occupies them, and what would work instead.


def not_free(
    document: ReportDoc,
    request: Request,
    acquisition: Acquisition,
    room: Room,
    wait: float | None,
) -> Exception:
    """Return the error of a request that was not met, with everything that was in its way."""
    from probe_core.leasing.listing import obstacles as find_obstacles

    keys = [key for _, key in acquisition.keys]
    obstacles = find_obstacles(acquisition.folder, keys)
    refusals = Refusals(str(request), candidates(document, request.runtime))
    waited = f" after {wait:g} s" if wait else ""
    if room.occupied and not obstacles:
        return _occupied(refusals, room.occupied, waited)
    if not obstacles and request.memory is not None and wait != 0:
        return refusals.error(
            f"no lease holds them, but after {wait or 0:g} s less than {request.memory} "
            "was still free",
            "memory",
            "ask for less, or end the processes that use the devices without a lease",
        )
    occupied = "".join(f"; {name}: {text}" for name, text in room.occupied.items())
    return refusals.error(
        f"not free{waited}; leased: {_owners(obstacles)}{occupied}",
        "busy",
        _alternatives(request, obstacles, len(keys) - len(room.occupied)),
        device=obstacles[0]["device"] if obstacles else None,
        leases=obstacles,
    )


def _occupied(refusals: Refusals, occupied: Mapping[str, str], waited: str) -> SelectionError:
    listed = "; ".join(f"{name}: {text}" for name, text in occupied.items())
    return refusals.error(
        f"not free{waited}: {listed}",
        "occupied",
        "--shared to use them all the same, or --wait until those processes end",
        device=next(iter(occupied)),
    )


def _owners(obstacles: Collection[LeaseDoc]) -> str:
    return "; ".join(map(_owner, obstacles)) or "another process"


def _owner(entry: LeaseDoc) -> str:
    said = "" if entry["proven"] or not entry["command"] else ", as its record says"
    command = f"{entry['command'] or '?'}{said}"
    listed = f"{entry['device']} by process {entry['pid'] or '?'} ({command})"
    if not entry["kept_by"]:
        return listed
    pids = ", ".join(str(pid) for pid in entry["kept_by"])
    if entry["state"] == "inherited":
        return f"{listed}, which has ended and left running {pids}"
    return f"{listed}, here seen as {pids}"  # of another PID namespace


def _alternatives(request: Request, obstacles: Sequence[LeaseDoc], total: int) -> str:
    """Return what would work instead of `total` devices of which some are leased."""
    free = total - len({entry["device"] for entry in obstacles})
    fix = "--wait to queue"
    if request.selector is None and 0 < free < (request.count or 1):
        fix += f", or ask for {free}"
    if obstacles and not request.share and all(_shares(entry, request) for entry in obstacles):
        fix += ", or --share: their owners do"
    return fix


def _shares(entry: LeaseDoc, request: Request) -> bool:
    return entry["share"] and request.reserve is None and entry.get("reserve") is None
