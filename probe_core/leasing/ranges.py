"""Locks on ranges of bytes of one empty file: what the kernel alone keeps, and forgets in time.

They belong to the open file and not to a process ("open file description locks", fcntl_locking(2),
Linux 3.15; Darwin's fcntl.h has them too): children inherit them, they survive ``execve``, and they
end with the last process that has the file open. A look takes nothing. They hold for everybody
who can open the file, across users and across PID and user namespaces.

Each name has a slot of 4 Mi bytes: a byte for each MiB of a device's memory, and the last for a
claim. The offset is far beyond the end of the file, which stays empty. A device has the name of its
PCI address, a partition its own id.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from binascii import crc32
from time import monotonic

from probe_core.leasing import VARIABLE, LeaseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

SLOT = 1 << 22
"""Bytes of a slot."""
UNITS = SLOT - 16
"""Bytes that stand for a device's memory, one for each MiB: 4 TiB."""
CLAIMED = SLOT - 1
"""The byte that is locked by who waits for a device, among others."""

_DARWIN = os.uname().sysname == "Darwin"  # the kernel's: its numbers and layout are meant
# Python names them on Linux alone; Darwin's numbers are those of its sys/fcntl.h.
_SET = getattr(fcntl, "F_OFD_SETLK", 90 if _DARWIN else 37)
_GET = getattr(fcntl, "F_OFD_GETLK", 92 if _DARWIN else 36)
_FLOCK = struct.Struct("qqihh" if _DARWIN else "hhqqi")
"""struct flock: type, whence, start, length, pid; on Darwin the first two come last."""

_MOST_LOOKS, _MOST_LOOKS_S = 10_000, 0.1
"""Looks for the gaps between locks, and seconds of them: a machine's leases take some dozens of
2 us each. In a file with tens of thousands of locks each takes the kernel a millisecond."""
_LEAST_LOOKS = 100
"""Looks for which no clock counts: a busy machine may stop a process for seconds between two."""

_BUSY = (errno.EAGAIN, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOTTY)
"""What fcntl(2) gives where kernel or file system cannot lock: NFS without lockd, FUSE, 9p."""

QUEUES = 1 << 55
"""Where the slots of queues begin: behind those of devices, which a listing looks through."""


def slot(name: str) -> int:
    """Return where the slot of a device's name begins.

    Two names of one checksum would only keep each other out. PCI addresses of one form that differ
    within four characters in a row never have the same (CRC-32 finds each such difference).
    """
    return crc32(name.encode("utf-8", "surrogatepass")) * SLOT


def try_lock(handle: int, start: int, length: int, *, share: bool = False) -> bool:
    """Lock the bytes if nobody is in the way; return whether they were locked.

    Raises `LeaseError` on a file system without locks.
    """
    kind = fcntl.F_RDLCK if share else fcntl.F_WRLCK
    try:
        fcntl.fcntl(handle, _SET, _packed(kind, start, length))
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise _renamed(handle, error) from None
    return True


def unlock(handle: int, start: int = 0, length: int = 0) -> None:
    """Give bytes back, also where a child inherited the file; of length 0: all from `start`."""
    try:
        fcntl.fcntl(handle, _SET, _packed(fcntl.F_UNLCK, start, length))
    except OSError:  # a file system without locks: there is none
        return


def obstacle(
    handle: int, start: int, length: int, *, share: bool = False
) -> tuple[int, int] | None:
    """Return start and end of a lock that keeps these bytes from being locked; None without one.

    Takes nothing. Locks of the same open file are no obstacle to it.
    """
    kind = fcntl.F_RDLCK if share else fcntl.F_WRLCK
    try:
        answer = fcntl.fcntl(handle, _GET, _packed(kind, start, length))
    except OSError as error:
        raise _renamed(handle, error) from None
    fields = _FLOCK.unpack(answer)
    begin, count, _, found, _ = fields if _DARWIN else (*fields[2:], *fields[:2])
    if found == fcntl.F_UNLCK:
        return None
    return begin, begin + count if count else start + length


def is_over(looks: int, until: float) -> bool:
    """Return whether the time for a number of looks is over; for the first hundred it never is."""
    return looks >= _LEAST_LOOKS and monotonic() > until


def gaps(handle: int, start: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of bytes that nobody else has locked, in order.

    After 10,000 looks, or 0.1 s, the rest counts as locked: somebody has made that many locks on
    purpose.
    """
    remaining, until = [(start, start + length)], monotonic() + _MOST_LOOKS_S
    for number in range(_MOST_LOOKS):
        if not remaining or is_over(number, until):
            return
        begin, end = remaining.pop()
        found = obstacle(handle, begin, end - begin)
        if found is None:
            yield begin, end
            continue
        if found[1] < end:
            remaining.append((found[1], end))
        if begin < found[0]:
            remaining.append((begin, found[0]))


def _packed(kind: int, start: int, length: int) -> bytes:
    place, type_ = (start, length, 0), (kind, os.SEEK_SET)
    return _FLOCK.pack(*place, *type_) if _DARWIN else _FLOCK.pack(*type_, *place)


def _renamed(handle: int, error: OSError) -> OSError:
    if error.errno not in _NO_LOCKS:
        return error
    try:
        path: str | None = os.path.dirname(os.readlink(f"/proc/self/fd/{handle}"))
    except OSError:
        path = None
    return LeaseError(
        f"the lease folder {path or ''} is on a file system without locks ({error.strerror}); "
        f"name a local folder in {VARIABLE}, for instance one in /run or /tmp",
        path=path,
    )


# Under which names a device is locked: its own, and what it is a part of.

OUTER_LEASE = "PROBE_LEASE"
"""Names what an outer lease gave to this process: ``<depth>;<id>,<id>``. A claim, see `holders`."""

_DEEPEST = 100
"""Depth of leases within leases at which the variable counts as nonsense (a judgement)."""


class Key:
    """The names of one device: `whole` is locked in share, `own` as asked; `names` are both."""

    def __init__(self, device: DeviceDoc, own: str, whole: str | None) -> None:
        self.device = device
        self.own = own
        self.whole = whole
        self.names = frozenset((own,) if whole is None else (own, whole))


def stable_name(device: DeviceDoc) -> str:
    """Return the id by which every process names the device: PCI address, else the best other.

    A library's UUID may be missing for one process and there for the next; the bus is always.
    """
    addresses = [name for name in device["ids"] if name.startswith("pci:")]
    return addresses[0] if addresses else device["id"]


def key_of(device: DeviceDoc, installed: Sequence[DeviceDoc], outer: Mapping[str, int]) -> Key:
    """Return the names under which a device is locked.

    A partition locks its GPU in share, so that nobody can lease the whole meanwhile.
    `outer` maps what an outer lease gave to its depth: within it, leases of the next depth are
    taken, so that a command under ``probe exec`` can lease its own devices to others.
    """
    parent = device["parent"]
    if not parent:
        name = stable_name(device)
        return Key(device, level_name(name, outer.get(name)), None)
    gpus = [gpu for gpu in installed if parent == gpu["id"] or parent in gpu["ids"]]
    whole = stable_name(gpus[0]) if gpus else parent
    # A partition's own PCI address is its GPU's: only its own id tells it apart.
    own = level_name(device["id"], outer.get(device["id"]))
    return Key(device, own, None if whole in outer else whole)


def level_name(name: str, depth: int | None) -> str:
    """Return the name of a device for leases at a depth; 0 or None for the outermost."""
    return f"{name}+{depth}" if depth else name


def outer_lease(environ: Mapping[str, str]) -> dict[str, int]:
    """Return the names of the devices that an outer lease gave to this process, with its depth."""
    depth, _, names = environ.get(OUTER_LEASE, "").partition(";")
    if not (depth.isascii() and depth.isdigit()) or not 0 < int(depth[:3]) < _DEEPEST:
        return {}
    return {name: int(depth[:3]) for name in names.split(",") if name}


def outer_lease_value(environ: Mapping[str, str], devices: Iterable[DeviceDoc]) -> str:
    """Return the value of `OUTER_LEASE` for a command that is given these devices.

    It names one depth for all of them, so only leases one level deeper than each can follow.
    """
    depth = max(outer_lease(environ).values(), default=0) + 1
    names = [device["id"] if device["parent"] else stable_name(device) for device in devices]
    return f"{depth};{','.join(names)}"
