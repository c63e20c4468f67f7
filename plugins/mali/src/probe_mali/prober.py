"""Reports Arm Mali GPUs under any of their four kernel drivers, and those without one."""

from __future__ import annotations

from probe_core.api import hookimpl, not_applicable
from probe_mali import describe, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.api import NotApplicable, Request, SampleRequest
    from probe_mali.sampler import Sampler

_sampler: Sampler | None = None
"""What a process that samples has looked up."""


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
    for folder in sorted(frozenset().union(*sources.values())):
        draft = describe.start(request.machine, folder)
        identity = draft.fields["ids"][0]
        finders = [name for name, folders in sources.items() if folder in folders]
        draft.note("found_by", finders)
        if identity in request.avoid:
            draft.left_alone()
        else:
            request.touching(identity)
            describe.add_files(request.machine, draft, folder)
        yield draft.fields | {"unknown": draft.unknown}


@hookimpl
def sample_devices(request: SampleRequest) -> NotApplicable | Iterator[Mapping[str, Any]]:
    """Yield what every Mali GPU with a driver does now."""
    global _sampler
    if _sampler is None:
        from probe_mali.sampler import Sampler

        _sampler = Sampler(request)
    return _sampler.sample(request)
