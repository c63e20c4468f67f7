"""Whether a server answers for a file system: what every probe asks, and no prober's process.

`mounts` follows a path where there is such a file system; here is what rules that out at once.
"""

from __future__ import annotations

import os
from io import FileIO

from probe_core.machine import KERNELS, READ_LIMIT, is_kernels, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


SERVED = (
    "nfs", "cifs", "smb", "fuse", "9p", "virtiofs", "autofs", "ceph", "lustre", "gpfs", "beegfs",
    "afs", "glusterfs", "orangefs", "pvfs2", "ocfs2", "gfs2", "coda", "ncp",
)  # fmt: skip
"""How the types of file systems begin for which a server answers: those of mount(8) and of
clusters' own."""

_SERVED_TYPES = tuple(kind.encode() for kind in SERVED)
_KERNEL_MOUNTS = tuple(folder.encode() for folder in KERNELS)


def may_hang(path: str) -> bool:
    """Return whether looking at an absolute path may hang: a server answers for its file system.

    30 µs where no such file system is mounted.
    """
    if is_kernels(path) or not has_served_mounts():
        return False
    return Mounts().may_hang(path)


def has_served_mounts(path: str = "/proc/self/mountinfo") -> bool:
    """Return whether any file system is mounted for which a server answers."""
    try:
        with FileIO(path) as file:
            data = read_file(file, READ_LIMIT)
    except OSError:  # not Linux, or no /proc
        return False
    for line in data.splitlines():
        before, _, after = line.partition(b" - ")
        # systemd mounts autofs on /proc/sys/fs/binfmt_misc everywhere, where no server answers.
        if after.startswith(_SERVED_TYPES):
            point = (before.split(b" ", 5) + [b""] * 5)[4]
            if not point.startswith(_KERNEL_MOUNTS):
                return True
    return False


# Which paths may hang whoever looks at them: those on file systems that a server answers for.
#
# stat(2) of a path on a dead NFS or FUSE mount does not return, and no signal ends it.

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
