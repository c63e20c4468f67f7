"""Memory of a device that other programs fill: what is started now fails for lack of it."""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed
from probe_core.doctor.holders import holders
from probe_core.model.ids import ACCELERATORS
from probe_core.wording import counted, gib, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.model.document import DeviceDoc

_LEAST_FREE = 0.1
"""Share of the memory below which it is taken. A judgement: servers of models take nine tenths."""

_NAMED = 4
"""Processes that are named; the others are counted."""


@check("memory-taken", step="responding", needs=(REPORT,))
def memory(request: Request) -> ResultDoc:
    """Whether compute processes use most of a device's own memory.

    The report counts them; who they are the kernel tells, of those that this user may see.
    """
    devices = [device for device in request.report["devices"] if _is_counted(device)]
    if not devices:
        return not_applicable("no device tells its free memory and its processes")
    found = [
        of_cause(request, "memory-taken", evidence, [device])
        for device in devices
        if (evidence := _taken(device, request)) is not None
    ]
    return failed(*found) if found else passed()


def _is_counted(device: DeviceDoc) -> bool:
    memory = device["memory"]
    is_known = memory["total"] is not None and memory["free"] is not None
    is_own = device["kind"] in ACCELERATORS and memory["kind"] not in ("shared", "unified")
    return is_own and is_known and device.get("processes") is not None


def _taken(device: DeviceDoc, request: Request) -> str | None:
    free, total = device["memory"]["free"], device["memory"]["total"]
    count = device.get("processes")
    if not count or not total or free is None or free >= _LEAST_FREE * total:
        return None
    sizes = f"{gib(free)} of {gib(total)} are free"
    found = holders(device, request.report["devices"], request.scene)
    by = f": {joined(found[:_NAMED], 'and')}" if found else ""
    more = f", {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{sizes}; {counted(count, 'compute process', 'compute processes')}{by}{more}"


CHECKS = [memory]
