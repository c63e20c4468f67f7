"""Takes leases: all of the devices asked for or none, in turn with everybody else.

A look takes nothing. Who waits holds no device: only devices that are about to be used are locked,
on an open file of their own, which is closed again when one of them was not free. So a request that
is stopped at any moment keeps others from nothing but what it was just given.
"""

from __future__ import annotations

import fcntl
import os
from time import monotonic, sleep, time

from probe_core.leasing.queues import CLAIM_STALE_S, Claims, Place
from probe_core.leasing.ranges import UNITS, gaps, key_of, obstacle, slot, try_lock, unlock
from probe_core.leasing.records import read_records, rewrite, sign, tidy, unsign
from probe_core.proc import started
from probe_core.selection.candidates import free_memory
from probe_core.selection.request import capacity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.ranges import Key
    from probe_core.leasing.records import Record
    from probe_core.model.document import DeviceDoc
    from probe_core.selection.request import Choose

_POLL_S, _PAUSE_S = 0.005, 0.02
"""Seconds between two looks of who is first and of who is not, since the kernel cannot be asked to
wait for one of several locks: nobody notices 5 ms before a model loads (judgements)."""

_SETTLE_S = CLAIM_STALE_S + 0.05
"""Seconds for which a request that would be refused looks again while nobody says that a device is
its own: its owner is just signing or just letting go, or a stopped one claims it."""

_VERIFY_S = 0.05
"""Seconds after which a device that only survivors of a killed owner keep is looked at again; on a
node with thousands of processes a look takes longer, and the next one waits ten times as long."""

_MIB = 1 << 20


class Acquisition:
    """One request for devices of a node, until it is met or given up.

    `record` says how: shared, how much of each, for which command. `installed` are the node's
    devices (partitions name their GPU among them). `depths` maps what an outer lease gave to its
    depth, proven; see `holders`.
    """

    def __init__(
        self,
        folder: Folder,
        devices: Sequence[DeviceDoc],
        installed: Sequence[DeviceDoc],
        record: Record,
        depths: Mapping[str, int],
    ) -> None:
        self.folder = folder
        self.record = record
        self.keys = [key_of(device, installed, depths) for device in devices]
        self._left: Mapping[str, Sequence[int]] = {}
        self._verify = 0.0
        self._needed = -(-(record.reserve or 0) // _MIB)
        self._look = folder.locks()

    def attempt(self, choose: Choose) -> Leased | None:
        """Take what `choose` picks of the free devices, now; None when it picks nothing."""
        self._claims = Claims(self._look)
        leased = self._try(choose)
        until, settles = monotonic() + _SETTLE_S, True
        while leased is None and settles and monotonic() < until:
            # Asked before it is tried again: what comes free between the two is seen then.
            if settles := self._settles():
                sleep(_POLL_S)
            leased = self._try(choose)
        return leased

    def wait(self, choose: Choose, deadline: float, needed: int) -> Leased | None:
        """Queue, then take what `choose` picks; None when the deadline passed.

        `deadline` is of `time.monotonic`. Who needs several devices claims at the head of the queue
        what is free already.
        """
        self._claims = Claims(self._look)  # what was claimed in an earlier wait is not any more
        # One queue of all requests that the same devices would do for.
        place = Place(self._look, "\n".join(["the queue", *sorted(key.own for key in self.keys)]))

        def can_take() -> bool:
            return choose([key.device for key in self._free()]) is not None

        try:
            while True:
                is_due = place.is_due(can_take)
                leased = self._try(choose) if is_due else None
                if leased is not None:
                    return leased
                if is_due and needed > 1:
                    place.beat.renew()
                    self._claims.make([key.own for key in self._free()])
                if (remaining := deadline - monotonic()) <= 0:
                    return None
                sleep(min(_POLL_S if is_due else _PAUSE_S, remaining))
        finally:
            unlock(self._look)

    def _try(self, choose: Choose) -> Leased | None:
        """Take what `choose` picks of what is free and claimed by nobody else."""
        free = self._free()
        while (chosen := choose([key.device for key in free])) is not None:
            keys = {key.device["id"]: key for key in free}
            result = self._take([keys[device["id"]] for device in chosen])
            if isinstance(result, Leased):
                return result
            free.remove(result)
        return None

    def _take(self, chosen: Sequence[Key]) -> Leased | Key:
        """Lock all of these devices and sign for them; return the one that was not free, if any."""
        leased = Leased([key.device for key in chosen], self.record, self.folder)
        try:
            # Partitions before wholes: the read lock on their GPU would weaken its own lock. In one
            # order for all, so that of two requests that meet one gets what both want.
            for key in sorted(chosen, key=lambda key: (not key.whole, key.own)):
                if not self._lock(leased.files[0], key):
                    leased.put_back()
                    return key
            self.record.since = round(time(), 3)
            self.record.devices = [key.own for key in chosen]
            self.record.wholes = sorted({key.whole for key in chosen if key.whole})
            leased.files[1] = sign(self.folder, self.record)
            return leased
        except BaseException:  # Ctrl-C in a notebook: the process goes on, and holds nothing
            leased.put_back()
            raise

    def _lock(self, handle: int, key: Key) -> bool:
        if key.whole is not None and not try_lock(handle, slot(key.whole), UNITS, share=True):
            return False
        if self.record.reserve is None:
            return try_lock(handle, slot(key.own), UNITS, share=self.record.share)
        # A byte for each MiB, wherever nobody else has one: the kernel keeps the sum.
        needed = self._needed
        for begin, end in self._rooms(key):
            length = min(end - begin, needed)
            if try_lock(handle, begin, length):
                needed -= length
            if needed == 0:
                return True
        return False

    def _rooms(self, key: Key) -> Sequence[tuple[int, int]]:
        """Return the runs of bytes of a device's memory that nobody has reserved.

        Of one that nobody reserved from, what is in use is no reserver's, and stays.
        """
        start = slot(key.own)
        amount = capacity(key.device)
        if obstacle(self._look, start, UNITS) is None:
            amount = free_memory(key.device) or 0
        return list(gaps(self._look, start, min(amount // _MIB, UNITS)))

    def _free(self) -> list[Key]:
        """Return what is free: locked and claimed by nobody else, and of no lease that lives on."""
        unlocked = [key for key in self.keys if self._is_unlocked(key)]
        kept = self._kept(read_records(self.folder)) if unlocked else []
        devices = {name for record in kept for name in record.devices}
        wholes = {name for record in kept for name in record.wholes}
        return [key for key in unlocked if devices.isdisjoint(key.names) and key.own not in wholes]

    def _is_unlocked(self, key: Key) -> bool:
        if self._is_claimed(key):
            return False
        if key.whole is not None and obstacle(self._look, slot(key.whole), UNITS, share=True):
            return False
        if self.record.reserve is not None:
            return sum(end - begin for begin, end in self._rooms(key)) >= self._needed
        return obstacle(self._look, slot(key.own), UNITS, share=self.record.share) is None

    def _is_claimed(self, key: Key) -> bool:
        return any(map(self._claims.hold, key.names))

    def _kept(self, records: Sequence[Record]) -> list[Record]:
        """Return the records of what is not free though nobody else has locked its bytes.

        Of a lease that lives on though the file of locks was replaced, and of one whose owner was
        killed with all that watched over it, while something that it started still runs.
        """
        in_the_way = [r for r in records if not (self.record.share and r.share)]
        now = monotonic()
        if now >= self._verify and any(not record.living for record in in_the_way):
            from probe_core.leasing.holders import remains  # of what was killed, which is rare

            self._left = remains(in_the_way)
            tidy(self.folder, [name for name, pids in self._left.items() if not pids])
            took = monotonic() - now
            self._verify = now + took + max(_VERIFY_S, 10 * took)
        return [r for r in in_the_way if r.living or self._left.get(r.name)]

    def shared(self) -> set[str]:
        """Return the ids of the devices that somebody leases, or a part of."""
        return {k.device["id"] for k in self.keys if obstacle(self._look, slot(k.own), UNITS)}

    def _settles(self) -> bool:
        """Return whether a device that is not free may be so in a moment.

        Its owner is dead, and what watches over it has milliseconds of work; or none is named yet,
        or no more.
        """
        living = [record for record in read_records(self.folder) if record.living]
        return any(self._is_claimed(key) or self._changes(key, living) for key in self.keys)

    def _changes(self, key: Key, living: Sequence[Record]) -> bool:
        of_it = [r for r in living if key.names.intersection((*r.devices, *r.wholes))]
        if of_it:
            return any(record.alive() is False for record in of_it)
        return any(obstacle(self._look, slot(name), UNITS) for name in key.names)

    def close(self) -> None:
        """End the request."""
        unlock(self._look)  # also for a child that was forked meanwhile
        os.close(self._look)


_HIGH_DESCRIPTORS = (900, 200, 60)
"""Numbers from which a command inherits the locks' files, the first that the limit on open files
allows (1,024 by default on Linux, 256 on macOS). Scripts redirect descriptors up to 9 (POSIX sh,
2.7 Redirection), and bash reads its script from 255."""


class Leased:
    """Leased devices: `devices` in the order chosen, and the open `files` that hold the locks.

    The first of them locks the devices, the second the record (-1 without one); the third, after
    `keep_on_exec`, is the folder, whose lock keeps systemd-tmpfiles away.
    """

    def __init__(self, devices: Sequence[DeviceDoc], record: Record, folder: Folder) -> None:
        self.devices = list(devices)
        self.record = record
        self.folder = folder
        self._path = f"{folder.records_path}/{record.name}"
        self._pid = os.getpid()
        self.files = [folder.locks(), -1]  # last: an interrupt before it leaves nothing open

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
