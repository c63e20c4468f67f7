"""What the kernel proves of the processes under a lease: signals follow nobody's word.

A record names nobody who is signalled. Proven are those that hold the lock on its file now
(``lock:`` in /proc/PID/fdinfo/N, proc_pid_fdinfo(5): also inherited, and no mere opener has it) and
those that descend from them. The kernel shows that of a user's own processes, and of all to root. A
descriptor can be passed over a socket: who holds the lock as another user than the record's, and
descends from none of his, is left alone.

Where keeper and front were killed and nobody holds the lock any more, the mark in the record shows
what remains: of this user's own leases alone.
"""

from __future__ import annotations

import os

from probe_core import proc
from probe_core.leasing.processes import children, descendants
from probe_core.leasing.ranges import UNITS
from probe_core.leasing.records import remains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.records import Record

    Users = dict[int, int | None]

__all__ = ["Holders", "Proof"]


class Proof:
    """What is proven of one lease.

    `below` are the processes under it; `members` are those that may be signalled, with their users:
    all but its keeper and this process. `foreign` hold the lock as other users than its author, and
    nothing proves that they are the lease's.
    """

    __slots__ = ("below", "foreign", "members")

    def __init__(self, below: Iterable[int], spared: Iterable[int], foreign: Users) -> None:
        self.below = frozenset(below)
        self.members = {pid: proc.user(pid) for pid in self.below.difference(spared)}
        self.foreign = foreign


class Holders:
    """The processes that hold locks in a lease folder: one look at /proc, as far as one may see."""

    def __init__(self, folder: Folder) -> None:
        self._files: dict[tuple[int, int] | None, set[int]] = {}
        self._ranges: list[tuple[int, int, int]] = []
        self._users: Users = {}
        self._children: Mapping[int, Sequence[int]] | None = None
        locks = _file_of_locks(folder)
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
        return self._proof(roots, record.uid, _spared(record, roots))

    def prove_unnamed(self, start: int) -> Proof:
        """Return what is proven of whoever has locked the slot that begins there, unrecorded."""
        roots = {pid for pid, begin, end in self._ranges if begin < start + UNITS and end > start}
        users = {self._user(pid) for pid in roots}
        author = users.pop() if len(users) == 1 else os.geteuid()
        return self._proof(roots, author, {os.getpid()})

    def _proof(self, roots: Collection[int], author: int | None, spared: set[int]) -> Proof:
        own = {pid for pid in roots if self._user(pid) == author}
        below = own | self._below(own)
        foreign = {pid: self._user(pid) for pid in roots if pid not in below}
        return Proof(below, spared, foreign)

    def _below(self, pids: Collection[int]) -> set[int]:
        if not pids:
            return set()
        if self._children is None:
            self._children = children()
        return descendants(pids, self._children)

    def _user(self, pid: int) -> int | None:
        if pid not in self._users:
            self._users[pid] = proc.user(pid)
        return self._users[pid]


def _file_of_locks(folder: Folder) -> tuple[int, int] | None:
    look = folder.present_locks()
    if look < 0:
        return None
    status = os.fstat(look)
    os.close(look)
    return status.st_dev, status.st_ino


def _spared(record: Record, holders: Collection[int]) -> set[int]:
    """Return who is not signalled: the keeper, with it the front, and who is asking."""
    spared = {os.getpid()}
    if record.keeper in holders and record.keeper_alive():
        spared.update(pid for pid in (record.keeper, record.pid) if pid is not None)
    return spared
