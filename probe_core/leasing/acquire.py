"""The locks that one look at the devices takes: kept when all were had, else closed."""

from __future__ import annotations

import os
from stat import S_ISREG
from time import monotonic, sleep, time

from probe_core.leasing import LeaseError
from probe_core.leasing.folder import Key, key_of
from probe_core.leasing.leased import Leased
from probe_core.leasing.locks import CLAIM, POLL_S, Door, try_take
from probe_core.leasing.owners import (
    living_sharers,
    own_record,
    read_owners,
    survivors,
    write_record,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.owners import Owner
    from probe_core.model.document import DeviceDoc

    Choose = Callable[[Sequence[DeviceDoc]], Sequence[DeviceDoc] | None]


class Locks:
    """The locks that one look takes: kept when all were had, else closed."""

    __slots__ = ("_files", "_request", "_wholes")

    def __init__(self, request: Acquisition) -> None:
        self._request = request
        self._files: dict[str, int] = {}
        self._wholes: dict[str, int] = {}

    def take(self, device: DeviceDoc, key: Key) -> bool:
        """Lock a device and what it is a part of; return whether both were had."""
        if key.whole is not None and key.whole not in self._wholes:
            handle = self.open(key.whole, share=True)
            if handle < 0:
                return False
            self._wholes[key.whole] = self._files.pop(key.whole)
        handle = self.open(key.own, share=self._request.terms.share)
        if handle < 0 or not self._request.terms.share:
            return handle >= 0
        from probe_core.leasing.plan import shares_with

        return shares_with(device, read_owners(handle), self._request.terms)

    def open(self, name: str, *, share: bool) -> int:
        """Return the open lock file of that name, locked; -1 where it is used, or unusable."""
        folder = self._request.folder
        while True:
            try:
                handle = folder.open(name)
            except LeaseError as error:
                self._request.unusable[name] = error
                return -1
            self._files[name] = handle  # now: what is interrupted from here on is closed
            if not try_take(handle, share=share):
                os.close(self._files.pop(name))
                return -1
            if folder.same(name, handle):
                break
            # Somebody tidied the folder between open and lock: again.
            os.close(self._files.pop(name))
        obstacles = [owner for owner in read_owners(handle) if not (share and owner.share)]
        if self._request.find_survivors(name, obstacles):
            return -1
        if obstacles and not share:
            write_record(handle)  # nothing is left of them: nobody need look again
        return handle

    def sign(self, devices: Sequence[DeviceDoc]) -> Leased:
        """Write who leases the devices into their lock files."""
        terms = self._request.terms
        record = own_record(
            terms.command, share=terms.share, now=time(), mark=terms.mark, reserve=terms.reserve
        )
        for handle in self._files.values():
            sharers = living_sharers(read_owners(handle)) if terms.share else []
            write_record(handle, *sharers, record)
        signed, wholes = list(self._files.values()), list(self._wholes.values())
        return Leased(devices, signed, wholes, self._request.folder, terms.mark)

    def withdraw(self) -> None:
        """Give all of them back, without the records that were written into them."""
        mark = self._request.terms.mark
        for handle in self._files.values():
            owners = read_owners(handle)
            others = [owner for owner in owners if owner.mark != mark]
            if len(others) < len(owners):
                write_record(handle, *others)
        self.close()

    def close(self) -> None:
        """Give all of them back."""
        for handle in (*self._files.values(), *self._wholes.values()):
            os.close(handle)


# Takes leases: all of the devices asked for or none, in turn with everybody else.
#
# Who waits holds no device's lock: a file that its last owner emptied shows that a device came
# free, and only devices that are about to be used are locked. So a request that is stopped at any
# moment keeps others from nothing but what it was just given. A file that is not empty though
# nobody locks it is of an owner that was killed: its device is free when nothing that ran under
# the
# lease is left.

_ENDING_S = 0.2
"""Seconds for which a request that would be refused looks again while a lease is just ending: its
owner is dead, and what watched over it has milliseconds of work (a judgement)."""

_VERIFY_S = 0.05
"""Seconds after which a device that only survivors of a killed owner keep is looked at again; on a
node with thousands of processes a look takes longer, and the next one waits ten times as long."""


class Terms:
    """How devices are leased: `share` them, `reserve` bytes of each, for `command`, under `mark`.

    `depths` maps what an outer lease gave to its depth, proven; see `outer`.
    """

    __slots__ = ("command", "depths", "mark", "reserve", "share")

    def __init__(
        self,
        *,
        share: bool = False,
        reserve: int | None = None,
        command: Sequence[str] = (),
        mark: str = "",
        depths: Mapping[str, int] | None = None,
    ) -> None:
        self.share = share or reserve is not None
        self.reserve = reserve
        self.command = command
        self.mark = mark
        self.depths = depths or {}


class Acquisition:
    """One request for devices of a node, until it is met or given up.

    `installed` are the node's devices (partitions name their GPU among them). `unusable` maps
    lock files that cannot be used to why.
    """

    __slots__ = ("_door", "_survived", "folder", "keys", "terms", "unusable")

    def __init__(
        self,
        folder: Folder,
        devices: Sequence[DeviceDoc],
        installed: Sequence[DeviceDoc],
        terms: Terms,
    ) -> None:
        self.folder = folder
        self.terms = terms
        self.keys: list[tuple[DeviceDoc, Key]] = [
            (device, key_of(device, installed, terms.depths)) for device in devices
        ]
        self.unusable: dict[str, LeaseError] = {}
        self._survived: dict[str, float] = {}
        self._door = Door(folder)

    def attempt(self, choose: Choose) -> Leased | None:
        """Take what `choose` picks of the free devices, now; None when it picks nothing."""
        leased = self._try(choose, None)
        until = monotonic() + _ENDING_S
        # Nothing is shared without the door, and who had it may have been slow, not stopped.
        while leased is None and monotonic() < until and (self._door.passed or self._ending()):
            sleep(POLL_S)
            leased = self._try(choose, None)
        return leased

    def wait(self, choose: Choose, deadline: float | None, needed: int) -> Leased | None:
        """Queue, then take what `choose` picks; None when the deadline passed.

        `deadline` is of `time.monotonic`; None waits for ever. Who needs several devices claims
        at the head of the queue what is free already.
        """
        from probe_core.leasing.queues import Place

        place = Place(self.folder, self.queue)
        try:
            while True:
                first = place.first()
                leased = self._try(choose, place.arrival, deadline) if first else None
                if leased is not None:
                    return leased
                if first and needed > 1:
                    place.claim(key.own for _, key in self._free(place.arrival))
                remaining = None if deadline is None else deadline - monotonic()
                if remaining is not None and remaining <= 0:
                    return None
                if first:
                    sleep(POLL_S if remaining is None else min(POLL_S, remaining))
                else:
                    place.pause(remaining)
        finally:
            place.leave()

    @property
    def queue(self) -> str:
        """Name of the queue of all requests that the same devices would do for."""
        from binascii import crc32

        # Requests that compete get the same name; a collision of CRCs only makes two queues one.
        names = "\n".join(sorted(key.own for _, key in self.keys))
        return f"{crc32(names.encode('ascii', 'replace')):08x}"

    def _try(
        self, choose: Choose, arrival: str | None, deadline: float | None = None
    ) -> Leased | None:
        """Take what `choose` picks of what is free and claimed by nobody who came before."""
        free = self._free(arrival)
        # Most looks of those who wait end here, without the door and without a lock.
        if choose([device for device, _ in free]) is None:
            return None
        opened = self._door.take(deadline)
        # Shared records are written by several, so that only the door keeps them whole.
        if self.terms.share and not opened:
            return None
        try:
            return self._take_chosen(choose, free)
        finally:
            if opened:
                self._door.drop()

    def _take_chosen(self, choose: Choose, free: Sequence[tuple[DeviceDoc, Key]]) -> Leased | None:
        while True:
            chosen = choose([device for device, _ in free])
            if chosen is None:
                return None
            keys = {id(device): key for device, key in free}
            locks = Locks(self)
            try:
                refused = next((d for d in chosen if not locks.take(d, keys[id(d)])), None)
                if refused is None:
                    return locks.sign(chosen)
            except BaseException:  # Ctrl-C in a notebook: the process goes on, and holds nothing
                locks.withdraw()
                raise
            locks.close()
            free = [(device, key) for device, key in free if device is not refused]

    def _free(self, arrival: str | None) -> list[tuple[DeviceDoc, Key]]:
        """Return what may be free: surely not what others claimed, or seem to hold."""
        claims = self._claims(arrival)
        return [
            (device, key)
            for device, key in self.keys
            if key.own not in claims and key.whole not in claims and self._seems_free(key.own)
        ]

    def _claims(self, arrival: str | None) -> Collection[str]:
        if not any(name.startswith(CLAIM) for name in os.listdir(self.folder.fd)):
            return ()
        from probe_core.leasing.queues import claimed

        return claimed(self.folder, arrival)

    def _seems_free(self, name: str) -> bool:
        try:
            status = os.stat(name, dir_fd=self.folder.fd, follow_symlinks=False)
        except OSError:  # not made yet, or the folder was deleted: opening it tells
            return True
        if S_ISREG(status.st_mode) and status.st_size == 0:
            return True
        return monotonic() >= self._survived.get(name, 0.0) and self._is_abandoned(name)

    def _is_abandoned(self, name: str) -> bool:
        """Return whether a signed file can be locked as asked and nothing runs under its leases."""
        locks = Locks(self)
        try:
            return locks.open(name, share=self.terms.share) >= 0
        finally:
            locks.close()

    def find_survivors(self, name: str, owners: Sequence[Owner]) -> bool:
        """Look whether anything runs under the leases of owners that hold no lock.

        Where something does, it is remembered when a further look is due: one reads all of /proc.
        """
        begin = monotonic()
        if not survivors(owners):
            return False
        now = monotonic()
        self._survived[name] = now + max(_VERIFY_S, 10 * (now - begin))
        return True

    def shared(self) -> set[str]:
        """Return the ids of the devices that somebody leases in share, or a part of."""
        return {device["id"] for device, key in self.keys if self._has_sharers(key.own)}

    def _has_sharers(self, name: str) -> bool:
        try:
            handle = self.folder.open(name, create=False)
        except LeaseError:
            return False
        try:
            return any(owner.share for owner in read_owners(handle))
        finally:
            os.close(handle)

    def _ending(self) -> bool:
        """Return whether a device that is not free may be so in a moment."""
        return any(self._is_ending(name) for _, key in self.keys for name in (key.own, key.whole))

    def _is_ending(self, name: str | None) -> bool:
        if name is None or name in self.unusable:
            return False
        try:
            handle = self.folder.open(name, create=False)
        except LeaseError:
            return False
        try:
            owners = read_owners(handle)
            # No record yet, or no more: its owner is just signing, or just about to let go.
            return not owners or any(owner.alive() is False for owner in owners)
        finally:
            os.close(handle)

    def close(self) -> None:
        """End the request. Can be called once."""
        self._door.close()
