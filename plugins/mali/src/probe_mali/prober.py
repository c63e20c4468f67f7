"""Reports Arm Mali GPUs under any of their four kernel drivers, and those without one."""

from __future__ import annotations

import os

from probe_core.api import finding, hookimpl, not_applicable
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
    found, why_not = find.folders(machine, request.bus), None
    seen: list[str] = []
    if machine.live and (request.active or not found):
        from probe_mali import udev

        seen, why_not = udev.folders()
    every = sorted({*found, *seen})
    if not every:
        return not_applicable("no Mali GPU" + (f" ({why_not})" if why_not else ""))
    return _all(machine, every, found, seen)


def _all(
    machine: Machine, every: list[str], found: list[str], seen: list[str]
) -> Iterator[dict[str, Any]]:
    for folder in every:
        device = describe.device(machine, folder)
        sources = {"sysfs": folder in found, "udev": folder in seen}
        device.setdefault("extra", {})["found_by"] = [name for name, yes in sources.items() if yes]
        yield device
        if "driver" not in device:
            yield finding(
                "driver-not-loaded",
                device=device["ids"][0],
                what=f"{device['ids'][0]} has no driver",
                why="no kernel driver is bound to this Mali GPU",
                fix="load panthor, panfrost or lima (mainline) or the vendor's mali_kbase",
            )
        yield from _on_rights(machine, device)


def _on_rights(machine: Machine, device: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a finding when this user may not open the node; asked of the live machine alone."""
    index = device["node_index"]
    nodes = [f"/dev/mali{index['mali']}"] if "mali" in index else []
    nodes += [f"/dev/dri/renderD{index['drm_render']}"] if "drm_render" in index else []
    for node in nodes if machine.live else []:
        if os.path.exists(node) and not os.access(node, os.R_OK | os.W_OK):
            yield finding(
                "no-permission",
                device=device["ids"][0],
                what=f"{node} cannot be opened",
                why="this user is not in the group that owns it",
                fix="add the user to the group that owns the node (render or video)",
            )
