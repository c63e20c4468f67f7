"""The thing probed: a file system root, an environment, an OS and an architecture.

Nothing in the project reads ``/``, ``os.environ`` or ``platform`` but through a `Machine`, so a
recorded machine is probed by the same code as the live one.
"""

from __future__ import annotations

import os
import sys
from io import FileIO
from stat import S_ISDIR, S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine.links import Mapped
    from probe_core.model.document import RecordedAnswer

__all__ = ["Machine"]

READ_LIMIT = 1 << 20
"""Bytes read from one file at most: no file of /proc or /sys that matters here is longer."""

_COPIES = 8
"""Tries to copy an environment that other threads change. A judgement: each lasts microseconds."""

_PLAIN = ("/sys/", "/proc/")
KERNELS = (*_PLAIN, "/dev/")

_PIECE = 64 << 10
"""Bytes asked for at once: nearly every file of /proc and /sys comes in one piece."""

_ATTRIBUTES = ("/sys/bus/", "/sys/class/", "/sys/devices/")
_PAGE = 4 << 10
"""Bytes of the smallest page. What is shorter is the whole of such a file, which the kernel gives
a page at a time (kernfs_file_read_iter in fs/kernfs/file.c): its end need not be asked for."""

_OS_NAMES = {"darwin": "darwin", "win32": "windows", "cygwin": "windows"}
_ARCHES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}


class Machine:
    """One machine to look at; immutable, and comparable by value. It can be pickled and copied.

    `root` is a folder that stands for ``/``. `environ` defaults to a copy of this process's
    environment on the live machine and to nothing on a recorded one. `os` is ``linux``, ``darwin``
    or ``windows``; `arch` as ``uname -m`` says it on Linux (``x86_64``, ``aarch64``).

    `access` is, of a recorded machine, how opening a device node would have ended there: path to
    "ok", "missing" or the name of an error number ("EACCES", "EPERM"). A live machine is asked.

    `answers` is, of a recorded machine, what probers answered there: prober to its recorded answer,
    which stands for a run. Hosts need not set it; `open_machine` does.

    All paths given to the methods are absolute paths *on that machine* ("/sys/class/drm").
    A link never leads out of the root.
    """

    __slots__ = ("_mapped", "access", "answers", "arch", "environ", "live", "os", "root")

    def __init__(
        self,
        root: str = "/",
        environ: Mapping[str, str] | None = None,
        os: str | None = None,
        arch: str | None = None,
        access: Mapping[str, str] | None = None,
        answers: Mapping[str, RecordedAnswer] | None = None,
    ) -> None:
        self.root = root.rstrip("/") or "/"
        self.live = self.root == "/"
        self._mapped = None if self.live else _mapped(self.root)
        if environ is None:
            environ = _live_environ() if self.live else {}
        self.environ: Mapping[str, str] = dict(environ)
        self.os = os or (live_os() if self.live else "linux")
        self.arch = arch or (live_arch() if self.live else "x86_64")
        self.access: Mapping[str, str] = dict(access or {})
        self.answers: Mapping[str, RecordedAnswer] = dict(answers or {})

    def path(self, path: str) -> str:
        """Return where the machine's `path` lies for this process, links below the root resolved.

        Raises `OSError` when a link leads out of the root of a recorded machine.
        """
        if self.live:
            return path
        if self._mapped is not None:
            return self._mapped.place(path)
        host = os.path.normpath(self.root + "/" + path)
        real, root = os.path.realpath(host), os.path.realpath(self.root)
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise OSError(f"{path}: leads out of the recorded machine")
        return host

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Return at most `limit` bytes of a regular file; raises `OSError`.

        What is no regular file is not opened: a FIFO would hang the caller, and to open a device
        can mean something.
        """
        # A kernel's file is never one of those, and a look at it costs a fifth of reading it.
        if self.live and path.startswith(_PLAIN) and "/.." not in path:
            with FileIO(self.path(path)) as file:
                return read_file(file, limit, _PAGE if path.startswith(_ATTRIBUTES) else 0)
        with open_regular(self.path(path)) as file:
            return read_file(file, limit)

    def read(self, path: str, limit: int = READ_LIMIT) -> str | None:
        """Return the stripped text of a file, or None when it cannot be read.

        Text that is not UTF-8 is kept with replacement characters. NULs at the end are dropped.
        """
        try:
            raw = self.read_bytes(path, limit)
        except (OSError, ValueError):  # ValueError: a path with a NUL, made from a file's text
            return None
        return raw.decode("utf-8", "replace").strip("\0 \t\r\n")

    def read_int(self, path: str) -> int | None:
        """Return the number in a file, decimal or ``0x`` hexadecimal; None when there is none."""
        text = self.read(path, 64)
        try:
            return int(text, 0) if text else None
        except ValueError:
            return decimal(text or "")

    def listdir(self, path: str) -> list[str]:
        """Return the sorted names in a folder; nothing when it cannot be read."""
        try:
            if self._mapped is not None:
                return self._mapped.names(path)
            return sorted(os.listdir(self.path(path)))
        except (OSError, ValueError):
            return []

    def exists(self, path: str) -> bool:
        """Return whether `path` is there, links followed."""
        try:
            return os.path.exists(self.path(path))
        except (OSError, ValueError):
            return False

    def readlink(self, path: str) -> str:
        """Return where the link at `path` leads, as it is written ("" for what is no link).

        One system call, where `realpath` takes one for each link on the way.
        """
        try:
            if self._mapped is not None:
                return self._mapped.link(path)
            return os.readlink(self.path(path))
        except (OSError, ValueError):
            return ""

    def realpath(self, path: str) -> str:
        """Return the machine's own absolute path with all links resolved ("" when it leads out)."""
        try:
            if self._mapped is not None:
                return self._mapped.real(path)
            real = os.path.realpath(self.path(path))
        except (OSError, ValueError):
            return ""
        if self.live:
            return real
        return "/" + real[len(os.path.realpath(self.root)) :].replace(os.sep, "/").lstrip("/")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Machine):
            return NotImplemented
        return self._key() == other._key() and self.answers == other.answers

    def __hash__(self) -> int:
        root, os, arch, *tables = self._key()
        return hash((root, os, arch, *(frozenset(table.items()) for table in tables)))

    def _key(self) -> tuple[str, str, str, Mapping[str, str], Mapping[str, str]]:
        return self.root, self.os, self.arch, self.environ, self.access

    def __repr__(self) -> str:
        return f"Machine({self.root!r}, os={self.os!r}, arch={self.arch!r})"


def decimal(text: str) -> int | None:
    """Return a decimal number of at most 20 digits, as 64 bits have; None for anything else.

    Of a longer one, `int` takes time that grows with its square, and from 4,300 digits on raises.
    """
    return int(text) if len(text) <= 20 and text.isdecimal() else None


def is_kernels(path: str) -> bool:
    """Return whether the kernel itself answers for a path: it neither hangs nor leads elsewhere.

    What is mounted below these folders (fuse's control files) is the kernel's own, too.
    """
    return path.startswith(KERNELS) and "/.." not in path


def open_regular(path: str, status: os.stat_result | None = None) -> FileIO:
    """Open a regular file to read; raises `OSError` for anything else, which is not opened.

    `status` is what stat(2) says of it, where the caller has asked already.

    `FileIO` opens and remembers in one step of C: a signal handler that raises between `os.open`
    and its assignment leaves the descriptor open for good.
    """
    mode = (status or os.stat(path)).st_mode
    if not (S_ISREG(mode) or S_ISDIR(mode)):  # of a folder, `FileIO` has its own error
        from errno import EINVAL  # here: each prober's process imports this module

        raise OSError(EINVAL, "not a regular file", path)
    return FileIO(path)


def read_file(file: FileIO, limit: int, page: int = 0) -> bytes:
    """Read up to `limit` bytes: /proc and /sys files may come in several pieces.

    A piece that is shorter than a `page` is the last.
    """
    piece = file.read(min(_PIECE, limit))
    if len(piece) < page:  # as nearly all are that a probe reads, of which there are hundreds
        return piece
    pieces = []
    while piece:
        pieces.append(piece)
        limit -= len(piece)
        piece = file.read(min(_PIECE, limit)) if len(piece) >= page else b""
    return b"".join(pieces)


def _mapped(root: str) -> Mapped | None:
    """Return how the root's names are written where the file system refuses them."""
    if not os.path.isfile(f"{root}/links.table"):
        return None
    from probe_core.machine.links import mapped

    return mapped(root)


def _live_environ() -> dict[str, str]:
    # Another thread may change the environment while it is copied: dict() then raises RuntimeError.
    for _ in range(_COPIES):
        try:
            return dict(os.environ)
        except RuntimeError:
            continue
    return {}


def live_os() -> str:
    """Return this system's name in our vocabulary: linux, darwin, windows, or what Python says."""
    return _OS_NAMES.get(sys.platform, sys.platform)


def live_arch() -> str:
    """Return this system's architecture as ``uname -m`` names it."""
    if hasattr(os, "uname"):
        name = os.uname().machine
    else:  # Windows: what platform.machine() reads, without importing platform
        name = os.environ.get("PROCESSOR_ARCHITEW6432") or os.environ.get(
            "PROCESSOR_ARCHITECTURE", ""
        )
    if sys.platform == "darwin":
        return _ARCHES.get(name, name)
    return _ARCHES.get(name.lower(), name)
