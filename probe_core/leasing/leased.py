"""Devices that are leased: the open files that hold the locks, and how they are given back."""

from __future__ import annotations

import os

from probe_core.leasing import LeaseError
from probe_core.leasing.folder import level_file, outer_lease
from probe_core.leasing.locks import Door, drop, try_take
from probe_core.leasing.owners import Owner, read_owners, write_record
from probe_core.leasing.processes import ancestors, pid_namespace, started
from probe_core.leasing.wire import open_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.model.document import DeviceDoc


_HIGH_DESCRIPTORS = (900, 200, 60)
"""Numbers from which a command inherits the locks' files, the first that the limit on open files
allows (1,024 by default on Linux, 256 on macOS). Scripts redirect descriptors up to 9 (POSIX sh,
2.7 Redirection), and bash reads its script from 255."""

_DOOR_S = 1.0
"""Seconds for which a shared record waits for the door; without it the record is written anyway:
the locks count, a lost record is only missing in the list."""


class Leased:
    """Leased devices: `devices` in the order chosen, and the open files that hold the locks.

    `signed` are the files with this lease's record, `files` all that hold a lock, and `mark` tells
    the lease's processes.
    """

    __slots__ = ("_group", "_pid", "devices", "files", "folder", "mark", "signed")

    def __init__(
        self,
        devices: Sequence[DeviceDoc],
        signed: Sequence[int],
        wholes: Sequence[int],
        folder: Folder,
        mark: str,
    ) -> None:
        self.devices = list(devices)
        self.signed = list(signed)
        self.files = [*signed, *wholes]
        self.folder = folder
        self.mark = mark
        self._pid = os.getpid()
        self._group = ""

    def put_back(self) -> None:
        """Give the devices back, also where a child inherited the files; the folder stays open.

        In a forked child of the owner this closes the child's own files and ends no lease.
        """
        if os.getpid() == self._pid:
            self._rewrite(None)
            for handle in self.files:
                drop(handle)
        for handle in self.files:
            os.close(handle)
        self.files, self.signed = [], []

    def release(self) -> None:
        """Give the devices back, and close the folder. Can be called twice."""
        self.put_back()
        self.folder.close()

    def be_kept_by(self, keeper: int, group: str = "") -> None:
        """Write into the records that process `keeper` holds the lease from now on, in its name.

        `group` is the control group of what runs under the lease, if there is one.
        """
        self._pid = keeper
        self._group = group
        self._rewrite(keeper)

    def keep_on_exec(self) -> None:
        """Make the locks outlive ``execve``, under numbers that a script's own files do not use.

        The folder's file goes with them: its shared lock keeps systemd-tmpfiles away.
        """
        count = len(self.signed)
        self.files = [_inheritable(handle) for handle in (*self.files, self.folder.fd)]
        self.signed = self.files[:count]
        self.folder.fd = -1

    def _rewrite(self, keeper: int | None) -> None:
        """Renew this lease's records with their keeper; without one, take them out."""
        for handle in self.signed:
            owners = read_owners(handle)
            own = [owner for owner in owners if owner.mark == self.mark]
            if len(own) < len(owners) or any(owner.share for owner in own):
                self._rewrite_shared(handle, keeper)
            else:
                write_record(handle, *self._with_keeper(own, keeper))

    def _rewrite_shared(self, handle: int, keeper: int | None) -> None:
        from time import monotonic

        door = Door(self.folder) if self.folder.fd >= 0 else None
        if door is not None:
            door.take(monotonic() + _DOOR_S)
        owners = read_owners(handle)  # again: other sharers write here too
        own = [owner for owner in owners if owner.mark == self.mark]
        remaining = [owner for owner in owners if owner.mark != self.mark]
        write_record(handle, *remaining, *self._with_keeper(own, keeper))
        if door is not None:
            door.drop()
            door.close()

    def _with_keeper(self, owners: Sequence[Owner], keeper: int | None) -> list[Owner]:
        if keeper is None:
            return []
        for owner in owners:
            owner.keeper, owner.keeper_started = keeper, started(keeper)
            owner.group = self._group
        return list(owners)


def _inheritable(handle: int) -> int:
    import fcntl

    for lowest in _HIGH_DESCRIPTORS:
        try:
            duplicate = fcntl.fcntl(handle, fcntl.F_DUPFD, lowest)  # inherited, unlike `handle`
        except OSError:  # beyond the limit on open files
            continue
        os.close(handle)
        return duplicate
    os.set_inheritable(handle, True)
    return handle


# What an outer lease gave to this process, as far as it is proven and not only claimed.
#
# The variable alone proves nothing: it is copied with an environment, and outlives the lease.
# Proof
# is the lock's own file, open here since it was inherited, or the owner or its keeper among this
# process's ancestors.


def proven(environ: Mapping[str, str], folder: Folder) -> dict[str, int]:
    """Return the devices that an outer lease surely gave to this process, with its depth."""
    claims = outer_lease(environ)
    return {name: depth for name, depth in claims.items() if _is_under(folder, name, depth)}


def _is_under(folder: Folder, name: str, depth: int) -> bool:
    try:
        handle = folder.open(level_file(name, depth - 1), create=False)
    except LeaseError:
        return False
    try:
        if try_take(handle):  # nobody's: the lease has ended
            return False
        return _inherited(handle) or _descends(read_owners(handle))
    finally:
        os.close(handle)


def _inherited(handle: int) -> bool:
    """Return whether this process has the same file open under another number."""
    own = os.fstat(handle)
    for number in open_files():
        try:
            status = os.fstat(number)
        except OSError:
            continue
        if number != handle and (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino):
            return True
    return False


def _descends(owners: Iterable[Owner]) -> bool:
    namespace = pid_namespace()
    began: dict[int, int | None] = {}
    for owner in owners:
        if owner.pidns == namespace and namespace is not None:
            began |= {
                pid: begin
                for pid, begin in (
                    (owner.pid, owner.started),
                    (owner.keeper, owner.keeper_started),
                )
                if pid is not None
            }
    return any(pid in began and began[pid] == started(pid) for pid in ancestors() if began)
