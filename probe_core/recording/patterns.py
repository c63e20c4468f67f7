"""Patterns of paths that probers declare: which may be written, and what they name on a machine.

``*`` stands for any name or part of one, ``#`` for a number. A recording is made to be shared, so a
pattern reaches only where the system itself writes: neither homes, nor other programs' data, nor
what /proc holds about processes, in which command lines and environments stand.
"""

from __future__ import annotations

import re

from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.paths import check_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["MAX_MATCHES", "ROOTS", "Expansion", "check_absolute", "check_relative", "is_public"]

MAX_PATTERN = 256
"""Characters of one pattern; the longest of ours has 64."""

MAX_MATCHES = 10_000
"""Paths that one pattern names at most: the largest kernels count 8,192 CPUs (x86's NR_CPUS)."""

MAX_WILDCARDS = 2
"""``*`` and ``#`` in one name: with each more, a match takes a power more of time in its length."""

ROOTS = ("/proc/", "/sys/", "/opt/", "/usr/lib/", "/usr/local/", "/usr/share/")
"""Folders that drivers and their vendors' packages write; /etc holds keys and passwords."""

_OF_PROCESSES = re.compile(r"/proc/(?:[0-9]+|self|thread-self|[^/]*[*#][^/]*)(?:/|\Z)")


def check_absolute(pattern: object, roots: tuple[str, ...] = ROOTS) -> str:
    """Return a pattern below one of `roots`; raises `ValueError` with the mistake."""
    text = _checked(pattern)
    if not text.startswith("/"):
        raise ValueError(f"{shown(text)} is not absolute")
    _check_plain(text)
    if not text.startswith(roots):
        raise ValueError(f"{shown(text)} lies below none of {', '.join(roots)}")
    if _OF_PROCESSES.match(text):
        raise ValueError(f"{shown(text)} names what /proc holds about processes")
    return text


def check_relative(pattern: object) -> str:
    """Return a pattern below a device's folder; raises `ValueError` with the mistake."""
    text = _checked(pattern)
    if text.startswith("/"):
        raise ValueError(f"{shown(text)} is absolute; write it as below the device's folder")
    _check_plain(f"/{text}")
    return text


def _checked(pattern: object) -> str:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise ValueError(f"a pattern is text of 1 to {MAX_PATTERN} characters")
    return pattern


def _check_plain(path: str) -> None:
    try:
        check_path(path)
    except BadRecording:
        raise ValueError(f"{shown(path)} holds '..', '.', an empty name or a NUL") from None
    if any(name.count("*") + name.count("#") > MAX_WILDCARDS for name in path.split("/")):
        raise ValueError(f"{shown(path)} has more than {MAX_WILDCARDS} wildcards in one name")


def is_public(real: str, roots: tuple[str, ...] = ROOTS) -> bool:
    """Return whether a path, its links resolved, is one that a recording may hold.

    A folder of /opt may be a link into somebody's home, and /proc/net leads to a process.
    """
    return real.startswith(roots) and not _OF_PROCESSES.match(real)


class Expansion:
    """Finds the paths that patterns name; `cut` counts the patterns that named too many."""

    def __init__(self, machine: Machine) -> None:
        self.cut = 0
        self._machine = machine

    def paths(self, pattern: str, folder: str = "") -> list[str]:
        """Return the paths below `folder` that a pattern names and that exist."""
        paths = [folder]
        for part in pattern.strip("/").split("/"):
            paths = self._step(paths, part)
        return [path for path in paths if self._machine.exists(path)]

    def _step(self, folders: list[str], part: str) -> list[str]:
        if "*" not in part and "#" not in part:
            return [f"{folder}/{part}" for folder in folders]
        # "." leaves out a line's end, which no name of /sys holds.
        form = re.compile(re.escape(part).replace(r"\*", ".*").replace(r"\#", "[0-9]+"))
        paths: list[str] = []
        for folder in folders:
            names = self._machine.listdir(folder or "/")
            paths += [f"{folder}/{name}" for name in names if form.fullmatch(name)]
            if len(paths) > MAX_MATCHES:
                self.cut += 1
                return paths[:MAX_MATCHES]
        return paths
