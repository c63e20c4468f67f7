"""From a request to leased devices: what may be taken, what is preferred, what to say if not."""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.folder import lease_folder
from probe_core.leasing.hold import Taker
from probe_core.leasing.locks import try_take
from probe_core.selection import SelectionError, select
from probe_core.selection.candidates import candidates, free_memory
from probe_core.selection.errors import unmet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.leasing.hold import Choose, Held
    from probe_core.leasing.memory import Measure

    Device = Mapping[str, Any]

__all__ = ["Request", "obtain", "plan"]


class Request:
    """What is asked for: a count, a list or a group of a layout, with memory, shared or not."""

    __slots__ = ("consumer", "count", "index", "memory", "share", "wanted")

    def __init__(
        self,
        count: int | None = None,
        wanted: str | None = None,
        *,
        index: int | None = None,
        memory: str | int | None = None,
        share: bool = False,
        consumer: str | None = None,
    ) -> None:
        self.count = count
        self.wanted = wanted
        self.index = index
        """Which group of the layout in `wanted`; None for a list."""
        self.memory = memory
        self.share = share
        self.consumer = consumer

    def words(self) -> str:
        """Return the request for a sentence."""
        if self.wanted is not None:
            group = f", group {self.index}" if self.index is not None else ""
            return f"{self.wanted[:80]!a}{group}"
        count = self.count or 1
        return f"{count} device{'s' * (count != 1)}"


def plan(
    document: Mapping[str, Any], request: Request, *, waiting: bool = False
) -> tuple[list[Device], int]:
    """Return the devices that would do, best first, and how many of them are needed.

    Raises `SelectionError` for what this node can never give. When `waiting`, memory that is in
    use now may come free: the device's whole memory then counts.
    """
    view = document
    if waiting and request.memory is not None:
        view = {**document, "devices": [_emptied(one) for one in document.get("devices") or ()]}
    if request.wanted is not None:
        return _told(document, *_named(view, request))
    count = 1 if request.count is None else request.count
    if count < 1:
        raise SelectionError("a count is at least 1", code="syntax", asked=request.words())
    try:
        visible = select(view, memory=request.memory, consumer=request.consumer).devices
    except SelectionError:
        visible = []
    if len(visible) < count:  # raises, in the words of what was asked for
        select(view, count=count, memory=request.memory, consumer=request.consumer)
    usable, _ = _told(document, visible, count)
    places = {id(one): at for at, one in enumerate(usable)}
    usable.sort(key=lambda one: (_used(one), places[id(one)]))
    return usable, count


def _told(
    document: Mapping[str, Any], devices: Sequence[Device], count: int
) -> tuple[list[Device], int]:
    """Return the devices as the document itself has them, and the count."""
    names = [one.get("id") for one in devices]
    found = [one for one in document["devices"] if one.get("id") in names]
    return sorted(found, key=lambda one: names.index(one.get("id"))), count


def _emptied(device: Device) -> dict[str, Any]:
    memory = device.get("memory")
    if not isinstance(memory, dict):
        return dict(device)
    return {**device, "memory": {"total": memory.get("total")}}


def _named(document: Mapping[str, Any], request: Request) -> tuple[list[Device], int]:
    found = select(document, request.wanted, memory=request.memory, consumer=request.consumer)
    if request.index is None:
        return found.devices, len(found)
    if not 0 <= request.index < len(found.groups):
        last = len(found.groups) - 1
        raise SelectionError(
            f"the layout {request.wanted} has no group {request.index}\n"
            f"what would work: an index from 0 to {last}",
            code="unknown",
            asked=request.words(),
            visible=found.ids,
            fix=f"an index from 0 to {last}",
        )
    group = found.groups[request.index]
    return group, len(group)


def _used(device: Device) -> tuple[bool, int]:
    """Rank a device: idle ones first, then those with more free memory (in whole GiB)."""
    return bool(device.get("processes")), -((free_memory(device) or 0) >> 30)


def _chooser(count: int, wanted: Sequence[Device]) -> Choose:
    places = {id(device): at for at, device in enumerate(wanted)}

    def choose(free: Sequence[Device]) -> Sequence[Device] | None:
        if len(free) < count:
            return None
        if count == 1 or len(free) == count:
            return sorted(free, key=lambda one: places[id(one)])[:count]
        idle = [one for one in free if not one.get("processes")]
        from probe_core.selection.layout import best_group

        return best_group(idle if len(idle) >= count else free, count)

    return choose


def obtain(
    document: Mapping[str, Any],
    request: Request,
    environ: Mapping[str, str],
    *,
    wait: float | None = 0,
    command: Sequence[str] = (),
    measure: Measure | None = None,
) -> Held:
    """Lease devices: at once (`wait` 0), within `wait` seconds, or whenever (`wait` None).

    `measure` gives a fresh report: after a wait it tells whether the memory asked for is free,
    which whoever held the device, or a process without a lease, may still be using.
    Raises `SelectionError`: what can never be had at once, code ``busy`` when others hold it,
    ``memory`` when they left too little; `LeaseError` when there is no folder for leases. The
    devices come in the consumer's order.
    """
    deadline = None if wait is None else monotonic() + wait
    wanted, count = plan(document, request, waiting=wait != 0)
    every = document.get("devices") or ()
    folder = lease_folder(environ)
    _guard_folder(folder.fd)
    taker = Taker(folder, wanted, every, environ, share=request.share, command=command)
    try:
        choose = _chooser(count, wanted)
        if wait == 0:
            held = taker.attempt(choose)
        elif request.memory is None or measure is None:
            held = taker.wait(choose, deadline)
        else:
            from probe_core.leasing.memory import wait_for_memory

            held = wait_for_memory(taker, choose, deadline, request.memory, measure)
        if held is None:
            raise _busy(document, request, taker, wait)
    except BaseException:
        taker.close()
        folder.close()
        raise
    taker.close()
    if request.wanted is None:
        seen = [one.get("id") for one in candidates(document, request.consumer).visible]
        held.devices.sort(key=lambda one: seen.index(one.get("id")))
    return held


def _guard_folder(handle: int) -> None:
    # systemd-tmpfiles leaves a folder alone on which somebody holds a shared lock (tmpfiles.d(5)).
    try_take(handle, share=True)


def _busy(
    document: Mapping[str, Any],
    request: Request,
    taker: Taker,
    wait: float | None,
) -> SelectionError:
    from probe_core.leasing.folder import file_name
    from probe_core.leasing.listing import leases

    taker.give_up()  # what was kept while waiting is nobody's now
    names = {key.own for _, key in taker.keys} | {key.whole for _, key in taker.keys}
    taken = [one for one in leases(taker.folder) if file_name(one["device"]) in names]
    said = [
        f"{one['device']} by process {one['pid'] or '?'} ({one['command'] or '?'})" for one in taken
    ]
    if not taken and request.memory is not None and wait != 0:
        return _short(document, request, wait)
    left = len(taker.keys) - len({one["device"] for one in taken})
    fix = "--wait to stand in line"
    if request.wanted is None and 0 < left < (request.count or 1):
        fix += f", or ask for {left}"
    if taken and request.share is False and all(one["share"] for one in taken):
        fix += ", or --share: the holders do"
    waited = f" after {wait:g} s" if wait else ""
    holders = "; ".join(said) or "another process"
    found = candidates(document, request.consumer)
    return unmet(
        f"not free{waited}; held: {holders}",
        code="busy",
        asked=request.words(),
        consumer=found.consumer,
        visible=found.visible,
        hidden=found.hidden,
        fix=fix,
    )


def _short(document: Mapping[str, Any], request: Request, wait: float | None) -> SelectionError:
    found = candidates(document, request.consumer)
    return unmet(
        f"nobody leases them, but after {wait or 0:g} s less than {request.memory} was still free",
        code="memory",
        asked=request.words(),
        consumer=found.consumer,
        visible=found.visible,
        hidden=found.hidden,
        fix="ask for less, or end the processes that use the devices without a lease",
    )
