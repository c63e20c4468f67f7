"""The thing probed: a file system root, an environment, an OS and an architecture.

Nothing in the project reads ``/``, ``os.environ`` or ``platform`` but through a `Machine`, so a
recorded machine is probed by the same code as the live one. Below it: how files are read that
somebody else chose, never blocking or unbounded, and the kernel's formats.
"""

from __future__ import annotations

import os
import sys
from io import FileIO
from stat import S_ISDIR, S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from probe_core.machine.mapped import Mapped
    from probe_core.model.document import RecordedAnswer

READ_LIMIT = 1 << 20
"""Bytes read from one file at most: no file of /proc or /sys that matters here is longer."""

_COPIES = 8
"""Tries to copy an environment that other threads change. A judgement: each lasts microseconds."""

_MAX_LINKS = 40
"""Links on a path's way that Linux follows at most (MAXSYMLINKS in include/linux/namei.h)."""

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


_VALUE = ("root", "os", "arch", "environ", "access", "answers")
"""What two machines that are equal have in common."""


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
        self._base = self.root if self.live else _real(self.root)
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
        self._below(host, path)
        return host

    def _below(self, host: str, path: str) -> str:
        """Return the real path of a host's path; raises `OSError` where it leads out of the root.

        The root's own folders are real already: none of them is asked about again.
        """
        root, begin = self._base, self.root + "/"
        if begin.startswith("/") and host.startswith(begin):
            real = _resolved(root, host[len(begin) :])
        else:
            real = os.path.realpath(host)
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise OSError(f"{path}: leads out of the recorded machine")
        return real

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Return at most `limit` bytes of a regular file; raises `OSError`.

        What is no regular file is not opened: a FIFO would hang the caller, and to open a device
        can mean something.
        """
        # A kernel's file is never one of those, and a look at it costs a fifth of reading it.
        if self.live and path.startswith(_PLAIN) and "/.." not in path:
            file = FileIO(self.path(path))
            try:
                return read_file(file, limit, _PAGE if path.startswith(_ATTRIBUTES) else 0)
            finally:  # as in `read_head`
                file.close()
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
            if self.live:
                return os.path.realpath(self.path(path))
            real = self._below(os.path.normpath(self.root + "/" + path), path)
        except (OSError, ValueError):
            return ""
        return "/" + real[len(self._base) :].replace(os.sep, "/").lstrip("/")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Machine):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _VALUE)

    def __hash__(self) -> int:
        return hash((self.root, self.os, self.arch))

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


def open_regular(path: str) -> FileIO:
    """Open a regular file to read; raises `OSError` for anything else, which is not opened.

    `FileIO` opens and remembers in one step of C: a signal handler that raises between `os.open`
    and its assignment leaves the descriptor open for good.
    """
    mode = os.stat(path).st_mode
    if not S_ISREG(mode):
        raise _irregular(path, mode)
    return FileIO(path)


def _irregular(path: str, mode: int) -> OSError:
    from errno import EINVAL, EISDIR  # here: each prober's process imports this module

    if S_ISDIR(mode):
        return OSError(EISDIR, os.strerror(EISDIR), path)
    return OSError(EINVAL, "not a regular file", path)


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


def _real(root: str) -> str:
    """Return where a recorded machine's root is, once: its folders may be as many as a path's."""
    return os.path.realpath(root)


def _resolved(folder: str, path: str) -> str:
    """Return what `os.path.realpath` does of a path in a folder that is real."""
    names, place, links = path.split("/")[::-1], folder, 0
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            place = os.path.dirname(place)
            continue
        entry = f"{place.rstrip('/')}/{name}"
        try:
            target = os.readlink(entry)
        except OSError:  # no link, or not there
            place = entry
            continue
        links += 1
        if links > _MAX_LINKS:
            return os.path.realpath(f"{folder}/{path}")
        place = "/" if target.startswith("/") else place
        names += target.split("/")[::-1]
    return place


def _mapped(root: str) -> Mapped | None:
    """Return how the root's names are written where the file system refuses them."""
    if not os.path.isfile(f"{root}/links.table"):
        return None
    from probe_core.machine.mapped import mapped

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
    return _ARCHES.get(name.lower(), name)


MAX_CPUS = 65_536
"""CPU numbers that are believed: eight times what Linux can be built for (NR_CPUS 8192)."""


class Untrusted(ValueError):
    """A file that root must not use; the message is the reason."""


def read_regular(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file; raises `OSError`, or `ValueError` when it is too long.

    Looked at before it is opened: to open a device can mean something (a watchdog, a tape).
    """
    raw = read_head(path, limit)
    if len(raw) > limit:
        raise ValueError(f"longer than {limit} bytes")
    return raw


def read_head(path: str, limit: int) -> bytes:
    """Return at most `limit` bytes of a regular file, and one more if it is longer.

    What stat(2) calls empty is not opened: among the kernel's own such files some block until there
    is something to read (/proc/kmsg, trace_pipe), and a link may lead to them. Raises `OSError`.
    """
    status = os.stat(path)
    mode, size = status.st_mode, status.st_size
    if not S_ISREG(mode):
        raise _irregular(path, mode)
    if not size:
        if is_kernels(os.path.realpath(path)):
            from errno import EINVAL

            raise OSError(EINVAL, "a file of the kernel", path)
        return b""
    # Not through `open`, which makes four more system calls a file, of fifty files a probe. What is
    # as long as stat(2) says needs no second read, which tells that it ends.
    file = FileIO(path)
    try:
        raw = file.read(min(size, limit) + 1)
        return raw if len(raw) == size else raw + read_file(file, limit + 1 - len(raw))
    finally:  # `with` takes a tenth more of the whole
        file.close()


def read_trusted(path: str, limit: int) -> bytes:
    """Return at most `limit` bytes and one more of a file that a setting names.

    Raises `Untrusted` where somebody other than root could have written what root would read,
    `OSError` where it cannot be read.
    """
    from probe_core.machine.trust import untrusted

    if os.path.exists(path) and (reason := untrusted([path])):
        raise Untrusted(reason)
    return read_head(path, limit)


def text_of(raw: bytes) -> str:
    """Return UTF-8 text without a byte order mark; raises `ValueError`.

    The codec "utf-8-sig" would be imported, which fails in odd hosts and takes its time in all.
    """
    return raw.removeprefix(b"\xef\xbb\xbf").decode()


def named_lines(text: str) -> dict[str, str]:
    """Return the lines "Name: value" of a file of /proc as a table; of equal names the last."""
    table = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            table[name.strip()] = value.strip()
    return table


def cpu_list(text: str | None) -> list[int]:
    """Return the numbers of a kernel CPU list ("0-3,8"); bad parts are left out.

    At most `MAX_CPUS` numbers: a recorded list may repeat itself without an end.
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        low, dash, high = part.strip().partition("-")
        first, last = decimal(low), decimal(high if dash else low)
        if first is None or last is None or not first <= last < MAX_CPUS:
            continue
        numbers += range(first, last + 1)
        if len(numbers) > MAX_CPUS:
            break
    return numbers[:MAX_CPUS]


NODES = "/sys/devices/system/node"


def has_one_node(machine: Machine) -> bool:
    """Return whether the kernel lists one NUMA node alone, as on most machines."""
    return machine.read(f"{NODES}/online", 4096) == "0"


def cpu_mask(text: str | None) -> list[int]:
    """Return the numbers of a kernel CPU mask ("00000000,00001111"), lowest first."""
    digits = (text or "").replace(",", "")
    try:
        bits = int(digits, 16) if digits and len(digits) <= MAX_CPUS // 4 else 0
    except ValueError:
        return []
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


# Whether a server answers for a file system: what every probe asks, and no prober's process. A path
# is followed where there is such a file system; what rules that out at once comes first.

SERVED = (
    "nfs", "cifs", "smb", "fuse", "9p", "virtiofs", "autofs", "ceph", "lustre", "gpfs", "beegfs",
    "afs", "glusterfs", "orangefs", "pvfs2", "ocfs2", "gfs2", "coda", "ncp",
)  # fmt: skip
"""How the types of file systems begin for which a server answers: those of mount(8) and of
clusters' own."""

_SERVED_TYPES = tuple(f" - {kind}".encode() for kind in SERVED)  # as they stand in mountinfo
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
    # Not line by line: each probe asks several times, and a node of Kubernetes has 1,000 mounts.
    for kind in _SERVED_TYPES:
        for text in data.split(kind)[:-1]:
            fields = text.rpartition(b"\n")[2].split(b" ", 5)
            # systemd mounts autofs on /proc/sys/fs/binfmt_misc everywhere, where no server answers.
            if len(fields) < 5 or not fields[4].startswith(_KERNEL_MOUNTS):
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
            self._served = _served_at(self._path)
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


def _served_at(path: str) -> dict[str, bool]:
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
