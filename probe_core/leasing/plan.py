"""From a request to leased devices: what may be taken, what is preferred, why it cannot be had."""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.acquire import Acquisition, Terms
from probe_core.leasing.choosers import by_load, first_group
from probe_core.leasing.folder import lease_folder
from probe_core.leasing.keys import OUTER_LEASE
from probe_core.leasing.memory import Room, wait_for_room
from probe_core.selection.candidates import candidates, load
from probe_core.selection.choose import choose
from probe_core.selection.errors import SelectionError
from probe_core.selection.refusals import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.leasing.acquire import Choose
    from probe_core.leasing.folder import Folder
    from probe_core.leasing.leased import Leased
    from probe_core.leasing.memory import Measure
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["NEXT", "Request", "obtain", "plan"]

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
    from probe_core.sizes import parse_size

    return parse_size(request.reserve)


def _check_reserve(document: ReportDoc, request: Request) -> None:
    try:
        amount = reserved_bytes(request) or 0
    except ValueError as error:
        raise _refusals(document, request).error(str(error), "syntax") from None
    from probe_core.leasing.shares import capacity

    largest = max(map(capacity, candidates(document, request.runtime).visible), default=0)
    if amount > largest:
        from probe_core.sizes import format_size

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
    acquisition = None
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
            from probe_core.leasing.obstacles import not_free

            raise not_free(document, request, acquisition, room, wait)
    except BaseException:
        folder.close()
        raise
    finally:
        if acquisition is not None:
            acquisition.close()
    if request.selector is None:
        visible = candidates(document, request.runtime).visible
        places = {device["id"]: place for place, device in enumerate(visible)}
        leased.devices.sort(key=lambda device: places[device["id"]])
    return leased, room.occupied, depths


def _depths(environ: Mapping[str, str], folder: Folder) -> Mapping[str, int]:
    if OUTER_LEASE not in environ:
        return {}
    from probe_core.leasing.outer import proven

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
