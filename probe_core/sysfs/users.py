"""Says whose a process is: its real user, by name where /etc/passwd has it.

The name services are not asked: a directory server that is gone would hang the caller.
"""

from __future__ import annotations

from probe_core import proc
from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["Users"]

_PASSWD = "/etc/passwd"
_LIMIT = 1 << 20
"""Bytes read: twenty thousand users."""


class Users:
    """Users' names by process id; reads /etc/passwd once."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._names: dict[int, str] | None = None

    def of(self, pid: int) -> str | None:
        """Return who runs a process: a name, else the number; None when the process is gone."""
        uid = proc.user(pid, self._machine.root.rstrip("/"))
        if uid is None:
            return None
        if self._names is None:
            self._names = _read(self._machine)
        return self._names.get(uid, str(uid))


def _read(machine: Machine) -> dict[int, str]:
    names: dict[int, str] = {}
    for line in (machine.read(_PASSWD, _LIMIT) or "").splitlines():
        name, _, rest = line.partition(":")
        uid = decimal(rest.partition(":")[2].partition(":")[0])
        if uid is not None and name:
            names.setdefault(uid, name)
    return names
