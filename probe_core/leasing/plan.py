"""From a request to leased devices: what may be taken, what is preferred, why it cannot be had."""

from __future__ import annotations

from time import monotonic

from probe_core.leasing.acquire import Acquisition
from probe_core.leasing.folder import file_name, lease_folder
from probe_core.leasing.locks import try_take
from probe_core.selection.candidates import candidates, free_memory
from probe_core.selection.choose import choose
from probe_core.selection.errors import SelectionError
from probe_core.selection.refusals import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.leasing.acquire import Choose, Leased
    from probe_core.leasing.memory import Measure
    from probe_core.model.document import DeviceDoc, LeaseDoc, ReportDoc

__all__ = ["Request", "obtain", "plan"]

_SHOWN_REQUEST = 80
"""Characters of a list that an error repeats: two whole UUIDs."""


class Request:
    """What is asked for: a count, a list or a group of a layout, with memory, shared or not."""

    __slots__ = ("count", "index", "memory", "runtime", "selector", "share")

    def __init__(
        self,
        count: int | None = None,
        selector: str | None = None,
        *,
        index: int | None = None,
        memory: str | int | None = None,
        share: bool = False,
        runtime: str | None = None,
    ) -> None:
        self.count = count
        self.selector = selector
        """A list of devices, or a layout."""
        self.index = index
        """Which group of the layout; None for a list."""
        self.memory = memory
        self.share = share
        self.runtime = runtime

    def __str__(self) -> str:
        """Return the request for a sentence."""
        if self.selector is not None:
            group = f", group {self.index}" if self.index is not None else ""
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
    usable.sort(key=lambda device: (*_load(device), places[device["id"]]))
    return usable, count


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


def _named(document: ReportDoc, request: Request) -> tuple[list[str], int]:
    groups, _ = choose(document, request.selector, memory=request.memory, runtime=request.runtime)
    devices = [device for group in groups for device in group]
    if request.index is not None:
        if not 0 <= request.index < len(groups):
            raise _refusals(document, request).error(
                f"the layout {request.selector} has no group {request.index}",
                "unknown",
                f"an index from 0 to {len(groups) - 1}",
            )
        devices = groups[request.index]
    return [device["id"] for device in devices], len(devices)


def _load(device: DeviceDoc) -> tuple[int, bool, int]:
    """Rank a device: idle ones first, then those with more free memory; unknown behind known.

    In whole GiB, so that a few MiB of a desktop do not decide between equal cards. A driver that
    tells no free memory would otherwise pass for an empty device.
    """
    processes, memory = device.get("processes"), device["memory"]
    load = 1 if processes is None else 2 if processes else 0
    unknown = memory["free"] is None and memory["usable"] is None
    return load, unknown, -((free_memory(device) or 0) >> 30)


def _chooser(count: int, ranked: Sequence[DeviceDoc]) -> Choose:
    """Return what picks `count` of the devices that are free; it keeps the rank of a few."""
    places = {device["id"]: place for place, device in enumerate(ranked)}

    def pick(free: Sequence[DeviceDoc]) -> Sequence[DeviceDoc] | None:
        if len(free) < count:
            return None
        if count == 1 or len(free) == count:
            return sorted(free, key=lambda device: places[device["id"]])[:count]
        # A process that took no lease keeps its device all the same.
        idle = [device for device in free if not device.get("processes")]
        from probe_core.selection.layout import best_group

        return best_group(idle if len(idle) >= count else free, count)

    return pick


def obtain(
    document: ReportDoc,
    request: Request,
    environ: Mapping[str, str],
    *,
    wait: float | None = 0,
    command: Sequence[str] = (),
    measure: Measure | None = None,
) -> Leased:
    """Lease devices: at once (`wait` 0), within `wait` seconds, or whenever (`wait` None).

    `measure` gives a fresh report: after a wait it tells whether the memory asked for is free,
    which a previous owner, or a process without a lease, may still be using.
    Raises `SelectionError`: at once for what can never be had, code ``busy`` when others lease it,
    ``memory`` when they left too little; `LeaseError` when there is no folder for leases. The
    devices come in the runtime's order.
    """
    deadline = None if wait is None else monotonic() + wait
    ranked, count = plan(document, request, waiting=wait != 0)
    folder = lease_folder(environ)
    _guard_folder(folder.fd)
    acquisition = Acquisition(
        folder, ranked, document["devices"], environ, share=request.share, command=command
    )
    try:
        pick = _chooser(count, ranked)
        if wait == 0:
            leased = acquisition.attempt(pick)
        else:
            leased = _wait(acquisition, pick, deadline, request.memory, measure)
        if leased is None:
            raise _not_free(document, request, acquisition, wait)
    except BaseException:
        acquisition.close()
        folder.close()
        raise
    acquisition.close()
    if request.selector is None:
        visible = candidates(document, request.runtime).visible
        places = {device["id"]: place for place, device in enumerate(visible)}
        leased.devices.sort(key=lambda device: places[device["id"]])
    return leased


def _wait(
    acquisition: Acquisition,
    pick: Choose,
    deadline: float | None,
    memory: str | int | None,
    measure: Measure | None,
) -> Leased | None:
    if memory is None or measure is None:
        return acquisition.wait(pick, deadline)
    from probe_core.leasing.memory import wait_for_memory

    return wait_for_memory(acquisition, pick, deadline, memory, measure)


def _guard_folder(handle: int) -> None:
    # systemd-tmpfiles leaves a folder alone on which somebody holds a shared lock (tmpfiles.d(5)).
    try_take(handle, share=True)


def _not_free(
    document: ReportDoc, request: Request, acquisition: Acquisition, wait: float | None
) -> SelectionError:
    from probe_core.leasing.listing import leases

    acquisition.give_up()  # what was kept while waiting is nobody's now
    keys = [key for _, key in acquisition.keys]
    names = {name for key in keys for name in (key.own, key.whole)}
    obstacles = [
        entry for entry in leases(acquisition.folder) if file_name(entry["device"]) in names
    ]
    refusals = _refusals(document, request)
    if not obstacles and request.memory is not None and wait != 0:
        return refusals.error(
            f"no lease holds them, but after {wait or 0:g} s less than {request.memory} "
            "was still free",
            "memory",
            "ask for less, or end the processes that use the devices without a lease",
        )
    waited = f" after {wait:g} s" if wait else ""
    return refusals.error(
        f"not free{waited}; leased: {_owners(obstacles)}",
        "busy",
        _alternatives(request, obstacles, len(keys)),
        device=obstacles[0]["device"] if obstacles else None,
        leases=obstacles,
    )


def _owners(obstacles: Collection[LeaseDoc]) -> str:
    listed = [
        f"{entry['device']} by process {entry['pid'] or '?'} ({entry['command'] or '?'})"
        for entry in obstacles
    ]
    return "; ".join(listed) or "another process"


def _alternatives(request: Request, obstacles: Collection[LeaseDoc], total: int) -> str:
    """Return what would work instead of `total` devices of which some are leased."""
    free = total - len({entry["device"] for entry in obstacles})
    fix = "--wait to queue"
    if request.selector is None and 0 < free < (request.count or 1):
        fix += f", or ask for {free}"
    if obstacles and not request.share and all(entry["share"] for entry in obstacles):
        fix += ", or --share: their owners do"
    return fix
