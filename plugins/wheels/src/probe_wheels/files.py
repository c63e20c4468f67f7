"""Read files of an environment that somebody else filled: never block, never read without a bound.

No mmap: a file that is cut while it is mapped kills the process with SIGBUS.
"""

from __future__ import annotations

import os
from errno import EINVAL, ELOOP
from stat import S_ISREG
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Protocol

    from probe_wheels.documents import LibraryDoc

    class Readable(Protocol):
        """A regular file, wherever it lies: on the disk, or within an image's layer."""

        @property
        def size(self) -> int:
            """Return its bytes."""

        def read(self, offset: int, count: int) -> bytes:
            """Return at most `count` bytes at `offset`; fewer at the end of the file."""


MAX_SECONDS = 8.0
"""A look at 3.1 GiB of CUDA libraries takes 1.2 s from a cold disk; some disks are slower."""

MAX_READS = 1_000_000
"""The largest set that was measured (torch, cuBLAS, cuDNN, NCCL) takes 22,342 reads."""

MAX_ROOM = 96 << 20
"""Bytes of texts that are kept of what passes in streams: lists of installed files, most of all."""

MAX_FAULTS = 64
"""Files with a fault that are named."""

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

_KERNELS = ("/proc/", "/sys/", "/dev/")


class Exhausted(Exception):
    """The time or the number of reads of one look at an environment is used up."""


class Budget:
    """The files of one look at an environment: what it may cost in all, and what it met.

    `paths` are the files and folders that it depends on, `faults` those that are there and cannot
    be read, each with the reason. `images.view` has the same for the files of a container's image.
    """

    def __init__(self, seconds: float = MAX_SECONDS, reads: int = MAX_READS) -> None:
        self.deadline = monotonic() + seconds
        self.reads = reads
        self.room = MAX_ROOM
        self.paths: set[str] = set()
        self.faults: dict[str, str] = {}

    def fault(self, path: str, error: OSError | ValueError | str) -> None:
        """Note a file that is there and cannot be read; one that is absent is none."""
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return
        if len(self.faults) < MAX_FAULTS:
            text = error.strerror if isinstance(error, OSError) else str(error)
            self.faults.setdefault(path, text or "it cannot be read")

    def listed(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none where it cannot be read."""
        self.paths.add(folder)
        try:
            return sorted(os.listdir(folder))
        except (OSError, ValueError) as error:
            self.fault(folder, error)
            return []

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists."""
        self.paths.add(path)
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """Return whether a file, or a link to one, exists."""
        self.paths.add(path)
        return os.path.isfile(path)

    def identity(self, path: str) -> str:
        """Return `identity` of a file; raises `OSError`."""
        self.paths.add(path)
        return identity(path)

    def open(self, path: str) -> AbstractContextManager[Readable]:
        """Return a regular file, for a ``with`` statement; raises `OSError`."""
        return Opened(path, self)

    def known(self, path: str) -> LibraryDoc | None:
        """Return what a file has code for, where that was read before; None: it is to be read."""
        return None

    def real(self, path: str) -> str:
        """Return a path with its links resolved."""
        return os.path.realpath(path)

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield a folder and all below it, each with the names of its folders and of its files."""
        yield from os.walk(folder)

    def spend(self, reads: int = 1) -> None:
        """Count some reads; raises `Exhausted`."""
        self.reads -= reads
        if self.reads < 0:
            raise Exhausted("more reads than an environment needs")
        # The clock is read at every 64th read: it costs as much as a small read does.
        if self.reads & 63 == 0:
            self.check()

    def check(self) -> None:
        """Raise `Exhausted` when the time is over."""
        if monotonic() > self.deadline:
            raise Exhausted("it took too long")


class Opened:
    """A regular file that is open to be read at offsets; use it with `with`.

    Raises `OSError` for anything else, which is not opened: to open a device can mean something.
    """

    __slots__ = ("_budget", "_fd", "size")

    def __init__(self, path: str, budget: Budget) -> None:
        self._budget = budget
        budget.paths.add(path)
        self._fd = os.open(_target(path), _FLAGS)
        status = os.fstat(self._fd)
        if not S_ISREG(status.st_mode):
            os.close(self._fd)
            raise OSError(EINVAL, "not a regular file", path)
        self.size = status.st_size

    def read(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes at `offset`; fewer at the end of the file."""
        self._budget.spend()
        # Offsets come from the file: a 64-bit one is no offset for the kernel, and raises there.
        if not 0 <= offset < self.size or count <= 0:
            return b""
        return _read_at(self._fd, min(count, self.size - offset), offset)

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A number that is closed may be another file's the next moment.
        fd, self._fd = self._fd, -1
        os.close(fd)


def _target(path: str) -> str:
    """Return the path to open: a link's target, unless a kernel answers there.

    uv and conda can install files as links into their caches. /proc/kmsg blocks its reader.
    """
    status = os.lstat(path)
    if S_ISREG(status.st_mode):
        return path
    real = os.path.realpath(path)
    if real.startswith(_KERNELS):
        raise OSError(ELOOP, "a link out of the environment", path)
    if not S_ISREG(os.stat(real).st_mode):
        raise OSError(EINVAL, "not a regular file", path)
    return real


def _read_by_seeking(fd: int, count: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, count)


_read_at = getattr(os, "pread", _read_by_seeking)  # Windows has no pread


def read_text(path: str, limit: int, budget: Budget, encoding: str = "utf-8") -> str:
    """Return the text of a file, at most `limit` bytes of it; raises `OSError`."""
    with budget.open(path) as file:
        return file.read(0, limit).decode(encoding, "replace").removeprefix("\ufeff")


def identity(path: str) -> str:
    """Return what changes when a file does: device, inode, size and both times; raises `OSError`.

    The time of change is in it: an installer may set the time of modification to any value.
    """
    status = os.stat(path)
    times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{times}"
