"""Devices that are leased: the open files that hold the locks, and how they are given back."""

from __future__ import annotations

import fcntl
import os

from probe_core.leasing.keys import level_name, outer_lease
from probe_core.leasing.processes import ancestors, pid_namespace, started
from probe_core.leasing.ranges import UNITS, obstacle, slot, unlock
from probe_core.leasing.records import read_records, rewrite, unsign
from probe_core.leasing.wire import open_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.records import Record
    from probe_core.model.document import DeviceDoc


_HIGH_DESCRIPTORS = (900, 200, 60)
"""Numbers from which a command inherits the locks' files, the first that the limit on open files
allows (1,024 by default on Linux, 256 on macOS). Scripts redirect descriptors up to 9 (POSIX sh,
2.7 Redirection), and bash reads its script from 255."""


class Leased:
    """Leased devices: `devices` in the order chosen, and the open `files` that hold the locks.

    The first of them locks the devices, the second the record; the third, after `keep_on_exec`, is
    the folder, whose lock keeps systemd-tmpfiles away.
    """

    __slots__ = ("_path", "_pid", "devices", "files", "folder", "record")

    def __init__(
        self,
        devices: Sequence[DeviceDoc],
        handle: int,
        signature: int,
        record: Record,
        folder: Folder,
    ) -> None:
        self.devices = list(devices)
        self.files = [handle, signature]
        self.record = record
        self.folder = folder
        self._path = f"{folder.records_path}/{record.name}"
        self._pid = os.getpid()

    @property
    def mark(self) -> str:
        """What the lease's processes are told by."""
        return self.record.mark

    def put_back(self) -> None:
        """Give the devices back, also where a child inherited the files; the folder stays open.

        In a forked child of the owner this closes the child's own files and ends no lease.
        """
        if not self.files:
            return
        handle, signature, *_ = self.files
        if os.getpid() == self._pid:
            # The record first: what it names counts as leased while its file is locked.
            if signature >= 0:
                unsign(self._path, signature)
            unlock(handle)
        for number in self.files:
            if number >= 0:
                os.close(number)
        self.files = []

    def release(self) -> None:
        """Give the devices back, and close the folder. Can be called twice."""
        self.put_back()
        self.folder.close()

    def be_kept_by(self, keeper: int) -> None:
        """Write into the record that process `keeper` holds the lease from now on, in its name."""
        self._pid = keeper
        self.record.keeper, self.record.keeper_started = keeper, started(keeper)
        if self.files[1] >= 0:
            rewrite(self.files[1], self.record)

    def keep_on_exec(self) -> None:
        """Make the locks outlive ``execve``, under numbers that a script's own files do not use."""
        files = (*self.files, self.folder.fd)
        self.files = [_inheritable(number) if number >= 0 else number for number in files]
        self.folder.fd = -1


def _inheritable(handle: int) -> int:
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
        given = _given(folder)
        return {
            name: depth
            for name, depth in claims.items()
            if (below := level_name(name, depth - 1)) in given
            and obstacle(look, slot(below), UNITS) is not None
        }
    finally:
        os.close(look)


def _given(folder: Folder) -> set[str]:
    """Return the names that leases hold of which this process is surely a part."""
    living = [record for record in read_records(folder) if record.living]
    inherited = _inherited(folder)
    own = [r for r in living if r.name in inherited] + list(_above(living))
    return {name for record in own for name in record.devices}


def _inherited(folder: Folder) -> set[str]:
    """Return the names of the records that this process has open for writing."""
    names = set()
    files = dict(_record_files(folder))
    for number in open_files():
        try:
            status, flags = os.fstat(number), fcntl.fcntl(number, fcntl.F_GETFL)
        except OSError:
            continue
        name = files.get((status.st_dev, status.st_ino))
        if name is not None and flags & os.O_ACCMODE == os.O_RDWR:
            names.add(name)
    return names


def _record_files(folder: Folder) -> Iterable[tuple[tuple[int, int], str]]:
    try:
        with os.scandir(folder.records_path) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                yield (status.st_dev, status.st_ino), entry.name
    except OSError:  # there is none, or one has just ended
        return


def _above(records: Iterable[Record]) -> Iterable[Record]:
    """Yield the leases whose owner or keeper is an ancestor of this process."""
    namespace = pid_namespace()
    parents: list[int] | None = None
    for record in records:
        if namespace is None or record.pidns != namespace:
            continue
        if parents is None:
            parents = list(ancestors())
        owners = ((record.pid, record.started), (record.keeper, record.keeper_started))
        for pid, began in owners:
            if pid in parents and began is not None and started(pid) == began:
                yield record
                break
