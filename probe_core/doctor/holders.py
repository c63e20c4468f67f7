"""Which processes have a device's own node open.

The kernel shows the files of other users' processes to root alone.
"""

from __future__ import annotations

from probe_core import proc
from probe_core.readiness.node import CONTROL, KFD, UVM, required
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc
    from probe_core.readiness.scene import Scene


def holders(device: DeviceDoc, devices: Sequence[DeviceDoc], scene: Scene) -> list[str]:
    """Return "NAME (pid N, user NAME)" of each process that has the device's own node open.

    Empty where the device shares all its nodes with others of `devices`, the report's, and where
    nobody may be seen.
    """
    others = [other for other in devices if other["id"] != device["id"]]
    shared = {path for other in others for path in required(other, scene)}
    own = {*required(device, scene)} - shared - {CONTROL, UVM, KFD}
    root = "" if scene.machine.live else scene.machine.root
    return [_described(scene.machine, pid, root) for pid in proc.openers(own, root)]


def _described(machine: Machine, pid: int, root: str) -> str:
    uid = proc.user(pid, root)
    name = clean_text(proc.program(pid, root) or "") or "a process"
    return f"{name} (pid {pid}{'' if uid is None else f', user {_name(machine, uid)}'})"


def _name(machine: Machine, uid: int) -> str:
    """Return the user's name of passwd(5); the number where it is not listed there."""
    for line in (machine.read("/etc/passwd", 1 << 20) or "").splitlines():
        fields = line.split(":")
        if fields[2:3] == [str(uid)]:
            return clean_text(fields[0]) or str(uid)
    return str(uid)
