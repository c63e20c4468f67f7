"""Why devices that exist are not free: who leases or occupies them, and what would work instead."""

from __future__ import annotations

from probe_core.leasing.folder import file_name
from probe_core.selection.candidates import candidates
from probe_core.selection.errors import SelectionError
from probe_core.selection.refusals import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.leasing.acquire import Acquisition
    from probe_core.leasing.memory import Room
    from probe_core.leasing.plan import Request
    from probe_core.model.document import LeaseDoc, ReportDoc

__all__ = ["not_free"]


def not_free(
    document: ReportDoc,
    request: Request,
    acquisition: Acquisition,
    room: Room,
    wait: float | None,
) -> Exception:
    """Return the error of a request that was not met, with everything that was in its way."""
    from probe_core.leasing.listing import leases

    if acquisition.unusable and not _others_would_do(request, acquisition):
        return next(iter(acquisition.unusable.values()))
    keys = [key for _, key in acquisition.keys]
    names = {name for key in keys for name in (key.own, key.whole)}
    obstacles = [
        entry for entry in leases(acquisition.folder) if file_name(entry["device"]) in names
    ]
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


def _others_would_do(request: Request, acquisition: Acquisition) -> bool:
    """Return whether the devices whose lock files are sound would have been enough."""
    sound = [
        key
        for _, key in acquisition.keys
        if key.own not in acquisition.unusable and key.whole not in acquisition.unusable
    ]
    return request.selector is None and len(sound) >= (request.count or 1)


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
    listed = f"{entry['device']} by process {entry['pid'] or '?'} ({entry['command'] or '?'})"
    if not entry["kept_by"]:
        return listed
    pids = ", ".join(str(pid) for pid in entry["kept_by"])
    return f"{listed}, which has ended and left running {pids}"


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
