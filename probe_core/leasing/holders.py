"""What the kernel proves of the processes under a lease: nothing follows from anybody's word.

A record names nobody who is signalled. Proven are those that hold the lock on its file now
(``lock:`` in /proc/PID/fdinfo/N, proc_pid_fdinfo(5): also inherited, and no mere opener has it) and
those that descend from them. The kernel shows that of a user's own processes, and of all to root. A
descriptor can be passed over a socket: who holds the lock as another user than the record's, and
descends from none of his, is left alone.

Where keeper and front were killed and nobody holds the lock any more, the mark in the record shows
what remains: of this user's own leases alone.
"""

from __future__ import annotations

import fcntl
import os

from probe_core import proc
from probe_core.leasing.ranges import UNITS, level_name, obstacle, outer_lease, slot
from probe_core.leasing.records import MARK, read_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.records import Record


class Proof:
    """What is proven of one lease.

    `below` are the processes under it; `members` are those that may be signalled, with their users:
    all but its keeper and this process. `foreign` hold the lock as other users than its author, and
    nothing proves that they are the lease's.
    """

    def __init__(
        self, below: Iterable[int], spared: Iterable[int], foreign: dict[int, int | None]
    ) -> None:
        self.below = frozenset(below)
        users = {pid: proc.user(pid) for pid in self.below.difference(spared)}
        self.members = {pid: uid for pid, uid in users.items() if uid is not None}
        self.foreign = foreign


class Holders:
    """The processes that hold locks in a lease folder: one look at /proc, as far as one may see."""

    def __init__(self, folder: Folder) -> None:
        self._files: dict[tuple[int, int] | None, set[int]] = {}
        self._ranges: list[tuple[int, int, int]] = []
        self._family = proc.parents()
        locks = folder.identity_of_locks()
        for lock in proc.held_locks(f"{os.path.realpath(folder.path)}/"):
            # By its path it may be another file: of a container, or of a user's own mounts.
            file = lock.identity()
            self._files.setdefault(file, set()).add(lock.pid)
            if file is not None and file == locks:
                self._ranges += [(lock.pid, begin, end) for begin, end in lock.ranges]

    def prove(self, record: Record) -> Proof:
        """Return what is proven of the lease with this record."""
        if not record.living:
            left = remains([record]).get(record.name, [])
            return Proof({p for p in left if proc.user(p) == os.geteuid()}, {os.getpid()}, {})
        roots = set() if record.file is None else self._files.get(record.file, set())
        spared = {os.getpid()}
        if record.keeper in roots and record.keeper in record.running():  # with it the front
            spared.update(pid for pid in (record.keeper, record.pid) if pid is not None)
        return self._proof(roots, record.uid, spared)

    def prove_unnamed(self, start: int) -> Proof:
        """Return what is proven of whoever has locked the slot that begins there, unrecorded."""
        roots = {pid for pid, begin, end in self._ranges if begin < start + UNITS and end > start}
        users = {proc.user(pid) for pid in roots}
        author = users.pop() if len(users) == 1 else os.geteuid()
        return self._proof(roots, author, {os.getpid()})

    def _proof(self, roots: Collection[int], author: int | None, spared: set[int]) -> Proof:
        below = {pid for pid in roots if proc.user(pid) == author}
        below |= proc.descendants(below, self._family)
        foreign = {pid: proc.user(pid) for pid in roots if pid not in below}
        return Proof(below, spared, foreign)


def remains(records: Sequence[Record]) -> dict[str, list[int]]:
    """Return what runs under leases whose records nobody locks: processes, by record's name.

    Of this user's records alone, by their mark: who emptied its environment before it executed a
    program has none, and of other users' processes the kernel shows none.
    """
    own = [r for r in records if not r.living and r.uid == os.geteuid()]
    if not own:
        return {}
    marked: dict[str, list[int]] = {}
    prefix = f"{MARK}=".encode()
    for pid in proc.processes():
        for entry in proc.environment(pid) or ():
            if entry.startswith(prefix):
                for mark in entry[len(prefix) :].decode("ascii", "replace").split(","):
                    marked.setdefault(mark, []).append(pid)
    return {record.name: marked.get(record.mark, []) if record.mark else [] for record in own}


# What an outer lease gave to this process, as far as it is proven and not only claimed.
#
# The variable alone proves nothing: it is copied with an environment, and outlives the lease. Proof
# is the record's file, open here for writing since it was inherited, or the owner or its keeper
# among this process's ancestors; and the device is still locked.


def proven(environ: Mapping[str, str], folder: Folder) -> dict[str, int]:
    """Return the devices that an outer lease surely gave to this process, with its depth."""
    claims = outer_lease(environ)
    look = folder.present_locks() if claims else -1
    if look < 0:
        return {}
    try:
        living = [record for record in read_records(folder) if record.living]
        inherited, above = set(_open_for_writing()), list(proc.ancestors())
        given = {
            name
            for record in living
            if record.file in inherited or not record.running().isdisjoint(above)
            for name in record.devices
        }
        return {
            name: depth
            for name, depth in claims.items()
            if (below := level_name(name, depth - 1)) in given
            and obstacle(look, slot(below), UNITS) is not None
        }
    finally:
        os.close(look)


def _open_for_writing() -> Iterator[tuple[int, int]]:
    """Yield device and inode of each file that this process has open so."""
    for number in proc.open_files():
        try:
            status, flags = os.fstat(number), fcntl.fcntl(number, fcntl.F_GETFL)
        except OSError:
            continue
        if flags & os.O_ACCMODE == os.O_RDWR:
            yield status.st_dev, status.st_ino
