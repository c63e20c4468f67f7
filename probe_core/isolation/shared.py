"""Memory that processes have as open files of the kernel's own: memfds, and files of /dev/shm.

What is mapped of them counts in a process's share (Pss). What is written to one and not mapped is
in no figure of the process: of 256 MiB in a memfd, statm, smaps and fdinfo show nothing, and the
blocks of the open file all of it.
"""

from __future__ import annotations

import os
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    Inode = tuple[int, int]
    """Number of the file system, and of the file in it."""

__all__ = ["allocated", "mapped"]

_MEMFD = "/memfd:"
"""How /proc/PID/fd shows a memfd (memfd_create(2))."""

_SHM, _UNLINKED = "/dev/shm/", " (deleted)"
"""A file that has a name outlives the process, and may be another's: without one it is its own."""

_BLOCK = 512
"""Bytes of a unit of `st_blocks` (inode(7))."""

_MAX_FILES = 1 << 16
"""Open files of one process that are looked at, which takes 0.1 s. A judgement: drivers' libraries
open a few dozen."""


def allocated(pids: Iterable[int]) -> dict[Inode, int]:
    """Return the bytes of each file that only processes' open files lead to."""
    files: dict[Inode, int] = {}
    mounts = _kernels_mounts()
    for pid in pids:
        for path in _kernels_files(pid, mounts):
            try:
                stat = os.stat(path)  # the file itself: these are in memory, no server is asked
            except OSError:  # closed meanwhile
                continue
            files[stat.st_dev, stat.st_ino] = stat.st_blocks * _BLOCK
    return files


def _kernels_mounts() -> set[bytes]:
    """Return the mounts of memfds and of /dev/shm, as fdinfo numbers them (proc(5))."""
    mounts = set()
    for is_memfd in (True, False):
        try:
            own = os.memfd_create("probe") if is_memfd else os.open(_SHM, os.O_RDONLY)
        except (AttributeError, OSError):  # an old kernel or C library; no such folder
            continue
        mounts.add(_mount(os.getpid(), str(own)))
        os.close(own)
    return mounts - {b""}


def _mount(pid: int, number: str) -> bytes:
    """Return the line of fdinfo that says which mount an open file is of; empty if it is closed."""
    lines = _lines(f"/proc/{pid}/fdinfo/{number}")
    return next((line for line in lines if line.startswith(b"mnt_id:")), b"")


def _kernels_files(pid: int, mounts: Collection[bytes]) -> Iterator[str]:
    """Yield the open files that are in memory: by name, and by mount.

    A file of the same name on another mount may have a server that never answers.
    """
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in islice(entries, _MAX_FILES):
                if _is_kernels(entry.path) and _mount(pid, entry.name) in mounts:
                    yield entry.path
    except OSError:  # it ended, or is another user's
        return


def _is_kernels(path: str) -> bool:
    try:
        target = os.readlink(path)  # the kernel's name of it: no file system is asked
    except OSError:
        return False
    return target.startswith(_MEMFD) or (target.startswith(_SHM) and target.endswith(_UNLINKED))


def mapped(pids: Iterable[int], files: Iterable[Inode]) -> dict[Inode, int]:
    """Return how much of each file counts in the processes' shares already (smaps of proc(5))."""
    names = {_name(*file): file for file in files}
    result: dict[Inode, int] = {}
    for pid in pids:
        inode = None
        for line in _lines(f"/proc/{pid}/smaps"):
            fields = line.split(None, 5)
            # "7f00-7f01 rw-s 00000000 00:01 27 /memfd:x (deleted)", and the figures below it.
            if len(fields) > 4 and not fields[0].endswith(b":"):
                inode = names.get(b" ".join(fields[3:5]))
            elif inode is not None and fields[0] == b"Pss:":
                result[inode] = result.get(inode, 0) + int(fields[1]) * 1024
    return result


def _name(device: int, inode: int) -> bytes:
    return f"{os.major(device):02x}:{os.minor(device):02x} {inode}".encode()


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError:
        return
