"""Says what a person should know about a device that cannot be used, and what would help."""

from __future__ import annotations

import os

from probe_core.api import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Machine
    from probe_intel.pci import Function

_DRIVERS = {"gpu": ("xe", "i915"), "npu": ("intel_vpu",), "accelerator": ("habanalabs",)}


def on_driver(function: Function) -> dict[str, Any] | None:
    """Return a finding when `function` has no driver, or one that sets it aside."""
    wanted = _DRIVERS[function.kind]
    if function.driver in wanted or function.owner:
        return None
    if not function.driver:
        return finding(
            "driver-not-loaded",
            device=function.id,
            what=f"{function.id} has no driver",
            why=f"no kernel module is bound to this Intel {function.kind}",
            fix=f"load {' or '.join(wanted)}; a new device may need a newer kernel",
        )
    return finding(
        "device-set-aside",
        severity="info",
        device=function.id,
        what=f"{function.id} is bound to {function.driver}",
        why="it is set aside, most often for a virtual machine, and cannot be used from here",
        fix=f"bind it to {wanted[0]} to use it on this machine",
    )


def on_nodes(machine: Machine, device: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield findings on nodes that this user may not open; asked of the live machine alone."""
    index = device["node_index"]
    nodes = [f"/dev/dri/renderD{index['drm_render']}"] if "drm_render" in index else []
    nodes += [f"/dev/accel/accel{index['accel']}"] if "accel" in index else []
    for node in nodes if machine.live else []:
        if not os.path.exists(node):
            yield finding(
                "device-node-missing",
                device=device["ids"][0],
                what=f"{node} is missing",
                why="the kernel has the device but this container was not given its node",
                fix=f"start the container with --device={node}",
            )
        elif not os.access(node, os.R_OK | os.W_OK):
            yield finding(
                "no-permission",
                device=device["ids"][0],
                what=f"{node} cannot be opened",
                why="this user is not in the group that owns it",
                fix="add the user to the group render (or video), then log in again",
            )
