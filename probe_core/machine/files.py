"""Read files that somebody else chose, never blocking or unbounded, and the kernel's formats."""

from __future__ import annotations

import os
from errno import EINVAL
from io import FileIO
from stat import S_ISREG
from time import thread_time

from probe_core.machine import KERNELS, READ_LIMIT, decimal, is_kernels, open_regular, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.machine import Machine


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
    if S_ISREG(status.st_mode) and status.st_size == 0:
        if is_kernels(os.path.realpath(path)):
            raise OSError(EINVAL, "a file of the kernel", path)
        return b""
    # Not through `open`, which makes four more system calls a file, of fifty files a probe.
    with open_regular(path, status) as file:
        return read_file(file, limit + 1)


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
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


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


# What a probe spends in the host on data that others wrote, counted over all of it.
#
# Each file is bounded already; thousands of them are not. What exceeds the budget is left out and
# named, and one distribution has a share, so that it uses up nobody else's.

SHARE = {"files": 128, "bytes": 1 << 20, "names": 8192, "seconds": 0.1}
"""What the data of one distribution may use. Judgements: 64 probers with a manifest each, of 16 KiB
where ours have 3; twice the names that one pattern may look at."""

TOTAL = {"files": 4096, "bytes": 8 << 20, "names": 32_768, "seconds": 0.5}
"""What the data of all distributions may use together. Seconds are of this thread's processor time:
a slow disk is nobody's fault, and must leave no prober out."""

_UNITS = {"files": "files", "bytes": "bytes", "names": "names of files", "seconds": "s of work"}


class Budget:
    """Counts what was used; `exceeded` maps each owner that got no more to the reason."""

    __slots__ = ("_clock", "_own", "_total", "exceeded")

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self._clock = clock
        self._total: dict[str, float] = dict.fromkeys(TOTAL, 0)
        self._own: dict[str, dict[str, float]] = {}
        self.exceeded: dict[str, str] = {}

    def clock(self) -> float:
        """Return the time that `charge` takes as `since`."""
        return self._clock()

    def charge(
        self,
        owner: str,
        *,
        files: int = 0,
        size: int = 0,
        names: int = 0,
        since: float | None = None,
    ) -> None:
        """Count what `owner` used: `size` in bytes, work `since` a time of `clock`."""
        seconds = 0.0 if since is None else self._clock() - since
        own = self._own.get(owner)
        if own is None:
            own = self._own[owner] = dict.fromkeys(SHARE, 0)
        for unit, amount in (
            ("files", files),
            ("bytes", size),
            ("names", names),
            ("seconds", seconds),
        ):
            own[unit] += amount
            self._total[unit] += amount

    def refusal(self, owner: str) -> str | None:
        """Return why `owner` gets no more; None while it does."""
        own = self._own.get(owner)
        for used, limits, subject in ((own, SHARE, "its data"), (self._total, TOTAL, "all data")):
            unit = next((u for u in limits if used and used[u] > limits[u]), None)
            if unit is not None:
                amount = f"{limits[unit]:,} {_UNITS[unit]}"
                self.exceeded[owner] = reason = f"{subject} may take {amount} of a probe"
                return reason
        return None


# Whether a server answers for a file system: what every probe asks, and no prober's process. A path
# is followed where there is such a file system; what rules that out at once comes first.

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
