"""Reads the device rules of a cgroup of version 1, which has a file for them; version 2 has none.

Where access(2) can be asked it answers for both. This serves recordings, which have no process.
"""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine


_ROOT = "/sys/fs/cgroup/devices"
_LIMIT = 64 << 10

Rule = tuple["int | None", "int | None"]
"""Major and minor; None for all."""


class Rules:
    """The allow-list of character devices; `path` is its file, "" where there is none."""

    __slots__ = ("_listed", "path")

    def __init__(self, machine: Machine, cgroup: str) -> None:
        self.path, text = _file(machine, cgroup)
        self._listed = None if text is None else list(_parsed(text))

    def refuses(self, major: int, minor: int) -> bool:
        """Return whether the list surely refuses reading and writing a character device.

        "a *:* rwm" stands there even where exceptions deny (linux/security/device_cgroup.c), and
        then nothing is sure. An empty list refuses everything; a file that is none says nothing.
        """
        if self._listed is None:
            return False
        return not any(
            rule[0] in (None, major) and rule[1] in (None, minor) for rule in self._listed
        )


def _file(machine: Machine, cgroup: str) -> tuple[str, str | None]:
    for line in cgroup.splitlines():
        _, _, hierarchy = line.partition(":")
        controllers, _, path = hierarchy.partition(":")
        if "devices" in controllers.split(","):
            parts = [part for part in path.split("/") if part not in ("", ".", "..")][:32]
            # In a container the path may be the host's, and the folder itself is the own group.
            for folder in (_ROOT + "".join(f"/{part}" for part in parts), _ROOT):
                text = machine.read(f"{folder}/devices.list", _LIMIT)
                if text is not None and _plausible(text):
                    return f"{folder}/devices.list", text
    return "", None


def _plausible(text: str) -> bool:
    """Return whether every line is a rule: of a file with other lines nothing is believed."""
    lines = text.splitlines()
    return all(_rule(line) is not None for line in lines)


def _parsed(text: str) -> Iterator[Rule]:
    for line in text.splitlines():
        rule = _rule(line)
        if rule is not None and rule[0] in ("a", "c") and rule[2] >= {"r", "w"}:
            yield rule[1]


def _rule(line: str) -> tuple[str, Rule, set[str]] | None:
    """Return (kind, numbers, rights) of "c 195:0 rwm"; None when it is no rule."""
    fields = line.split()
    if len(fields) != 3 or fields[0] not in ("a", "b", "c") or not set(fields[2]) <= set("rwm"):
        return None
    major, colon, minor = fields[1].partition(":")
    numbers = [None if part == "*" else decimal(part) for part in (major, minor)]
    valid = all(part == "*" or decimal(part) is not None for part in (major, minor))
    return (fields[0], (numbers[0], numbers[1]), set(fields[2])) if colon and valid else None
