"""Says whether this process may open a device's nodes in /dev, without opening one."""

from __future__ import annotations

import os

from probe_core.api import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["closed", "findings", "paths"]

# The card node is for displays: programs that compute open none. KFD's /dev/kfd is one for all GPUs
# and in no index.
_PATHS = {"drm_render": "/dev/dri/renderD{}", "accel": "/dev/accel/accel{}", "mali": "/dev/mali{}"}


def paths(node_index: Mapping[str, int]) -> list[str]:
    """Return the nodes that a program opens to compute, of a sighting's ``node_index``."""
    return [path.format(node_index[label]) for label, path in _PATHS.items() if label in node_index]


def findings(
    machine: Machine, nodes: Iterable[str], device: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a finding for each of the `nodes` that is missing, or closed to this process.

    Nothing is reported of a recorded machine: it has neither the nodes nor the user. `device` is an
    id.
    """
    for node in nodes if machine.live else ():
        if machine.exists(node):
            yield from closed(machine, [node], device)
        else:
            yield finding(
                "device-node-missing",
                device=device,
                step="node",
                evidence=node,
                what=f"{node} is missing",
                why="the kernel has the device, but this container was not given its node",
                fix=f"start the container with --device={node}",
            )


def closed(
    machine: Machine, nodes: Iterable[str], device: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a finding for each of the `nodes` that is there and that this process may not open.

    access(2) asks mode, access list and the device cgroup (fs/namei.c), and opens nothing.
    """
    for node in nodes if machine.live else ():
        if machine.exists(node) and not os.access(machine.path(node), os.R_OK | os.W_OK):
            yield finding(
                "no-permission",
                device=device,
                step="permission",
                evidence=node,
                what=f"{node} cannot be opened",
                why="this user is not in the group that owns it",
                fix="add the user to the group that owns it (render or video), then log in again",
            )
