"""Reports Arm Mali GPUs under any of their four kernel drivers, and those without one."""

from __future__ import annotations

from probe_core.api import each_card, hookimpl, not_applicable
from probe_mali import describe, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import NotApplicable, Request, SampleRequest
    from probe_core.sysfs.sighting import Draft
    from probe_mali.sampler import Sampler


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with the Mali GPUs that sysfs, the bus prober's device tree or udev know."""
    machine = request.machine
    listed, failure = find.folders(machine, request.bus), None
    by_udev: list[str] = []
    if machine.live and (request.active or not listed):
        from probe_mali import udev

        by_udev, failure = udev.folders()
    sources = {"sysfs": frozenset(listed), "udev": frozenset(by_udev)}
    if not (listed or by_udev):
        return not_applicable("no Mali GPU" + (f" ({failure})" if failure else ""))
    return _all(request, sources)


def _all(request: Request, sources: dict[str, frozenset[str]]) -> Iterator[dict[str, Any]]:
    folders = sorted(frozenset().union(*sources.values()))
    drafts = ((folder, describe.start(request.machine, folder)) for folder in folders)
    for (folder, draft), may_ask in each_card(request, drafts, _id):
        finders = [name for name, folders in sources.items() if folder in folders]
        draft.note("found_by", finders)
        if may_ask:
            describe.add_files(request.machine, draft, folder)
        else:
            draft.left_alone()
        yield draft.fields | {"unknown": draft.unknown}


def _id(card: tuple[str, Draft]) -> str:
    return str(card[1].fields["ids"][0])


@hookimpl
def open_sampler(request: SampleRequest) -> Sampler:
    """Return what samples every Mali GPU with a driver."""
    from probe_mali.sampler import Sampler

    return Sampler(request)
