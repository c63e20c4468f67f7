"""Reports Arm Mali GPUs under any of their four kernel drivers, and those without one."""

from __future__ import annotations

from probe_core.api import finding, hookimpl, not_applicable
from probe_core.sysfs import nodes
from probe_mali import describe, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Machine, NotApplicable, Request


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
    return _all(machine, sources)


def _all(machine: Machine, sources: dict[str, frozenset[str]]) -> Iterator[dict[str, Any]]:
    for folder in sorted(frozenset().union(*sources.values())):
        device = describe.device(machine, folder)
        identity = device["ids"][0]
        finders = [name for name, folders in sources.items() if folder in folders]
        device.setdefault("extra", {})["found_by"] = finders
        yield device
        if "driver" not in device:
            yield finding(
                "driver-not-loaded",
                device=identity,
                step="driver",
                what=f"{identity} has no driver",
                why="no kernel driver is bound to this Mali GPU",
                fix="load panthor, panfrost or lima (mainline) or the vendor's mali_kbase",
            )
        yield from nodes.closed(machine, nodes.paths(device["node_index"]), identity)
