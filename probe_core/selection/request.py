"""What is asked for: a count, a list or a group of a layout; which devices would do, best first.

Which of them are free is not known here: see `leasing`.
"""

from __future__ import annotations

from probe_core.selection import SelectionError
from probe_core.selection.candidates import candidates, load
from probe_core.selection.choose import SHOWN_REQUEST, bytes_of, choose, of_one_kind, refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.selection.refusals import Refusals

    Choose = Callable[[Sequence[DeviceDoc]], Sequence[DeviceDoc] | None]

NEXT = "next"
"""An index that means the first group of a layout that is free."""


class Request:
    """What is asked for: a count, a list or a group of a layout, with memory, shared or not.

    `reserve` bytes of each device are leased instead of all of it. `avoids` is whether devices on
    which processes outside any lease hold memory are passed over.
    """

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
            return f"{self.selector[:SHOWN_REQUEST]!a}{group}"
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


def _check_reserve(document: ReportDoc, request: Request) -> None:
    try:
        amount = bytes_of(request.reserve) or 0
    except ValueError as error:
        raise _refusals(document, request).error(str(error), "syntax") from None
    largest = max(map(capacity, candidates(document, request.runtime).visible), default=0)
    if amount > largest:
        from probe_core.sizes import format_size

        raise _refusals(document, request).error(
            f"no visible device has {format_size(amount)} to reserve",
            "memory",
            f"reserve {format_size(largest)} at most" if largest else None,
        )


def _refusals(document: ReportDoc, request: Request) -> Refusals:
    return refusals(str(request), candidates(document, request.runtime))


def _usable(view: ReportDoc, request: Request, count: int) -> list[str]:
    """Return the ids of all devices that could be among the `count`."""
    memory, runtime = request.memory, request.runtime
    # All that would do, not only `count`: which of them are free is known under the locks alone.
    try:
        groups, _ = choose(view, memory=memory, runtime=runtime)
    except SelectionError:
        groups = [[]]
    own = of_one_kind(groups[0], count)
    if len(own) < count:  # raises, in the words of what was asked for
        choose(view, count=count, memory=memory, runtime=runtime)
    return [device["id"] for device in own]


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


def _by_load(count: int, ranked: Sequence[DeviceDoc]) -> Choose:
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


def _first_group(groups: Sequence[Sequence[DeviceDoc]]) -> Choose:
    """Return what picks the first group of which every device is free."""

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        ids = {device["id"] for device in free}
        return next((group for group in groups if all(d["id"] in ids for d in group)), None)

    return pick


def chooser(
    document: ReportDoc, request: Request, count: int, ranked: Sequence[DeviceDoc]
) -> Choose:
    """Return what picks the devices of a request among those that are free; see `plan`."""
    if request.index == NEXT:
        return _first_group(_groups(document, request))
    return _by_load(count, ranked)


def capacity(device: DeviceDoc) -> int:
    """Return the bytes of a device that can be reserved in all; 0 where its memory is unknown."""
    memory = device["memory"]
    amounts = [amount for amount in (memory["total"], memory["usable"]) if amount is not None]
    return max(amounts, default=0)
