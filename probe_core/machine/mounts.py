"""Which paths may hang whoever looks at them: those on file systems that a server answers for.

stat(2) of a path on a dead NFS or FUSE mount does not return, and no signal ends it.
"""

from __future__ import annotations

import os

from probe_core.machine import is_kernels
from probe_core.machine.served import SERVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Mounts"]

_MAX_LINKS = 40  # as the kernel follows at most, see path_resolution(7)


class Mounts:
    """The mounts of this process, read when a path needs them.

    `path` is the file that lists them.
    """

    __slots__ = ("_path", "_served")

    def __init__(self, path: str = "/proc/self/mountinfo") -> None:
        self._path = path
        self._served: dict[str, bool] | None = None

    def may_hang(self, path: str, answers: Callable[[str], bool] | None = None) -> bool:
        """Return whether looking at an absolute path may hang. Follows its links one by one.

        `answers` says of a mount point whether its server answers; without it none is trusted to.
        """
        if is_kernels(path):
            return False
        if self._served is None:
            self._served = _read(self._path)
        return True in self._served.values() and self._walk(path, answers)

    def _walk(self, path: str, answers: Callable[[str], bool] | None) -> bool:
        real, parts, links = "", path.split("/")[::-1], 0
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                real = os.path.dirname(real)
                continue
            real = f"{real.rstrip('/')}/{part}"
            point = self._point(real)
            if point is not None and not (answers and answers(point)):
                return True
            try:
                target = os.readlink(real)
            except OSError:  # no link, or nothing
                continue
            links += 1
            if links > _MAX_LINKS:
                return False
            parts += target.split("/")[::-1]
            real = "" if target.startswith("/") else os.path.dirname(real)
        return False

    def _point(self, real: str) -> str | None:
        """Return the mount point of a path without links, where a server answers for it."""
        assert self._served is not None
        while real not in self._served:
            real = os.path.dirname(real)
            if real in ("", "/"):
                return None  # without the root nothing runs at all
        return real if self._served[real] else None


def _read(path: str) -> dict[str, bool]:
    """Return each mount point below the root, and whether a server answers for it."""
    try:
        with open(path, "rb", buffering=0) as file:
            data = file.read()
    except OSError:  # not Linux, or no /proc
        return {}
    served = {}
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        # ID, parent, device, root, mount point, options, optional fields, "-", type, source …
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 4 and fields[4] != "/":
            served[_unescaped(fields[4])] = after.startswith(SERVED)
    return served


def _unescaped(text: str) -> str:
    """Return a mount point with blanks and backslashes as they are, not as ``\\040``."""
    if "\\" not in text:
        return text
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace("\\" + code, character)
    return text
