"""The process that is judged: its user, its groups, and whether a user namespace maps them.

Groups are the process's own, not those of /etc/group: after `usermod` an old login lacks them.
"""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["OVERFLOW", "Process"]

OVERFLOW = 65534
"""What a user or group outside the namespace's map reads as (kernel.overflowuid)."""

_WHOLE = ["0", "0", "4294967295"]


class Process:
    """Who runs this; numbers are None, and `groups` empty, where /proc cannot be read.

    `groups` holds the primary group too. `mapped` says that this is a user namespace other than
    the first one.
    """

    __slots__ = ("_machine", "groups", "mapped", "user")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        lines = _lines(machine.read("/proc/self/status", 16 << 10) or "")
        users, groups = _numbers(lines.get("Uid", "")), _numbers(lines.get("Gid", ""))
        self.user = users[0] if users else None
        self.groups = {*groups[:1], *_numbers(lines.get("Groups", ""))}
        first = (machine.read("/proc/self/uid_map", 4096) or "").split("\n")[0].split()
        self.mapped = len(first) == 3 and first != _WHOLE

    @property
    def name(self) -> str | None:
        """The user's name in /etc/passwd."""
        for line in (self._machine.read("/etc/passwd") or "").splitlines():
            name, _, numbers = line.partition(":")
            fields = numbers.split(":")
            if len(fields) > 1 and self.user is not None and fields[1] == str(self.user):
                return name
        return None

    def listed_groups(self) -> dict[str, tuple[int, bool]]:
        """Return /etc/group: name to (number, whether it lists this user)."""
        user = self.name
        groups = {}
        for line in (self._machine.read("/etc/group") or "").splitlines():
            name, *fields = line.split(":")
            number = decimal(fields[1]) if len(fields) > 2 else None
            if number is not None:
                groups[name] = (number, user is not None and user in fields[2].split(","))
        return groups


def _lines(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def _numbers(text: str) -> list[int]:
    return [number for part in text.split() if (number := decimal(part)) is not None]
