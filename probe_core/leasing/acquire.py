"""Takes leases: all of the devices asked for or none, in turn with everybody else.

A look takes nothing. Who waits holds no device: only devices that are about to be used are locked,
on an open file of their own, which is closed again when one of them was not free. So a request that
is stopped at any moment keeps others from nothing but what it was just given.
"""

from __future__ import annotations

import os
from time import monotonic, sleep, time

from probe_core.leasing.keys import key_of
from probe_core.leasing.leased import Leased
from probe_core.leasing.queues import CLAIM_STALE_S, PAUSE_S, Claims, Place
from probe_core.leasing.ranges import UNITS, gaps, obstacle, slot, try_lock, unlock
from probe_core.leasing.records import own_record, read_records, remains, sign, tidy, unsign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.keys import Key
    from probe_core.leasing.records import Record
    from probe_core.model.document import DeviceDoc

    Choose = Callable[[Sequence[DeviceDoc]], Sequence[DeviceDoc] | None]

__all__ = ["POLL_S", "Acquisition", "Terms"]

POLL_S = 0.005
"""Seconds between two looks, since the kernel cannot be asked to wait for one of several locks:
nobody notices 5 ms before a model loads (a judgement)."""

_SETTLE_S = CLAIM_STALE_S + 0.05
"""Seconds for which a request that would be refused looks again while nobody says that a device is
its own: its owner is just signing or just letting go, or a stopped one claims it."""

_VERIFY_S = 0.05
"""Seconds after which a device that only survivors of a killed owner keep is looked at again; on a
node with thousands of processes a look takes longer, and the next one waits ten times as long."""

_MIB = 1 << 20


class Terms:
    """How devices are leased: `share` them, `reserve` bytes of each, for `command`, under `mark`.

    `depths` maps what an outer lease gave to its depth, proven; see `leased`.
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

    `installed` are the node's devices (partitions name their GPU among them).
    """

    __slots__ = ("_claims", "_ended", "_left", "_look", "_verify", "folder", "keys", "terms")

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
        self._left: Mapping[str, Sequence[int]] = {}
        self._ended: set[str] = set()
        self._verify = 0.0
        self._look = folder.locks()
        try:
            self._claims = Claims(self._look)
        except BaseException:  # Ctrl-C
            os.close(self._look)
            raise

    def attempt(self, choose: Choose) -> Leased | None:
        """Take what `choose` picks of the free devices, now; None when it picks nothing."""
        leased = self._try(choose)
        until = monotonic() + _SETTLE_S
        while leased is None and monotonic() < until and self._settles():
            sleep(POLL_S)
            leased = self._try(choose)
        return leased

    def wait(self, choose: Choose, deadline: float | None, needed: int) -> Leased | None:
        """Queue, then take what `choose` picks; None when the deadline passed.

        `deadline` is of `time.monotonic`; None waits for ever. Who needs several devices claims
        at the head of the queue what is free already.
        """
        self._claims = Claims(self._look)  # what was claimed in an earlier wait is not any more
        place = Place(self._look, self._queue)
        try:
            while True:
                first = place.first()
                leased = self._try(choose) if first else None
                if leased is not None:
                    return leased
                if first and needed > 1:
                    self._claims.make([key.own for _, key in self._free()])
                remaining = PAUSE_S if deadline is None else deadline - monotonic()
                if remaining <= 0:
                    return None
                sleep(min(POLL_S if first else PAUSE_S, remaining))
        finally:
            unlock(self._look)

    @property
    def _queue(self) -> str:
        """Name of the queue of all requests that the same devices would do for."""
        return "\n".join(["the queue", *sorted(key.own for _, key in self.keys)])

    def _try(self, choose: Choose) -> Leased | None:
        """Take what `choose` picks of what is free and claimed by nobody else."""
        free = self._free()
        while (chosen := choose([device for device, _ in free])) is not None:
            keys = {device["id"]: key for device, key in free}
            result = self._take([(device, keys[device["id"]]) for device in chosen])
            if isinstance(result, Leased):
                return result
            free = [(device, key) for device, key in free if key is not result]
        return None

    def _take(self, chosen: Sequence[tuple[DeviceDoc, Key]]) -> Leased | Key:
        """Lock all of these devices and sign for them; return the one that was not free, if any."""
        handle = self.folder.locks()
        try:
            # Partitions before wholes: the read lock on their GPU would weaken its own lock. In one
            # order for all, so that of two requests that meet one gets what both want.
            for device, key in sorted(chosen, key=lambda pair: (not pair[1].whole, pair[1].own)):
                if not self._lock(handle, device, key):
                    os.close(handle)
                    return key
            return self._signed(handle, chosen)
        except BaseException:  # Ctrl-C in a notebook: the process goes on, and holds nothing
            os.close(handle)
            raise

    def _signed(self, handle: int, chosen: Sequence[tuple[DeviceDoc, Key]]) -> Leased:
        terms = self.terms
        record = own_record(
            terms.command,
            [key.own for _, key in chosen],
            share=terms.share,
            now=time(),
            mark=terms.mark,
            reserve=terms.reserve,
        )
        record.wholes = sorted({key.whole for _, key in chosen if key.whole})
        tidy(self.folder, self._ended)
        signature = sign(self.folder, record)
        try:
            return Leased([device for device, _ in chosen], handle, signature, record, self.folder)
        except BaseException:
            if signature >= 0:
                unsign(f"{self.folder.records_path}/{record.name}", signature)
                os.close(signature)
            raise

    def _lock(self, handle: int, device: DeviceDoc, key: Key) -> bool:
        if key.whole is not None and not try_lock(handle, slot(key.whole), UNITS, share=True):
            return False
        if self.terms.reserve is None:
            return try_lock(handle, slot(key.own), UNITS, share=self.terms.share)
        return self._reserve(handle, device, key)

    def _reserve(self, handle: int, device: DeviceDoc, key: Key) -> bool:
        """Lock a byte for each MiB, wherever nobody else has one: the kernel keeps the sum."""
        needed = self._needed
        for begin, end in self._rooms(device, key):
            length = min(end - begin, needed)
            if try_lock(handle, begin, length):
                needed -= length
            if needed == 0:
                return True
        return False

    @property
    def _needed(self) -> int:
        return -(-(self.terms.reserve or 0) // _MIB)

    def _rooms(self, device: DeviceDoc, key: Key) -> Sequence[tuple[int, int]]:
        """Return the runs of bytes of a device's memory that nobody has reserved.

        Of one that nobody reserved from, what is in use is no reserver's, and stays.
        """
        from probe_core.leasing.plan import capacity
        from probe_core.selection.candidates import free_memory

        start = slot(key.own)
        amount = capacity(device)
        if obstacle(self._look, start, UNITS) is None:
            amount = free_memory(device) or 0
        return list(gaps(self._look, start, min(amount // _MIB, UNITS)))

    def _free(self) -> list[tuple[DeviceDoc, Key]]:
        """Return what is free: locked and claimed by nobody else, and of no lease that lives on."""
        unlocked = [(device, key) for device, key in self.keys if self._is_unlocked(device, key)]
        kept = self._kept(read_records(self.folder)) if unlocked else []
        devices = {name for record in kept for name in record.devices}
        wholes = {name for record in kept for name in record.wholes}
        return [
            (device, key)
            for device, key in unlocked
            if devices.isdisjoint((key.own, key.whole)) and key.own not in wholes
        ]

    def _is_unlocked(self, device: DeviceDoc, key: Key) -> bool:
        if self._is_claimed(key):
            return False
        if key.whole is not None and obstacle(self._look, slot(key.whole), UNITS, share=True):
            return False
        if self.terms.reserve is not None:
            rooms = self._rooms(device, key)
            return sum(end - begin for begin, end in rooms) >= self._needed
        return obstacle(self._look, slot(key.own), UNITS, share=self.terms.share) is None

    def _is_claimed(self, key: Key) -> bool:
        claims = self._claims
        return claims.hold(key.own) or (key.whole is not None and claims.hold(key.whole))

    def _kept(self, records: Sequence[Record]) -> list[Record]:
        """Return the records of what is not free though nobody else has locked its bytes.

        Of a lease that lives on though the file of locks was replaced, and of one whose owner was
        killed with all that watched over it, while something that it started still runs.
        """
        in_the_way = [r for r in records if not (self.terms.share and r.share)]
        if any(not record.living for record in in_the_way):
            self._look_for_remains(in_the_way)
        return [r for r in in_the_way if r.living or self._left.get(r.name)]

    def _look_for_remains(self, records: Sequence[Record]) -> None:
        begin = monotonic()
        if begin < self._verify:
            return
        self._left = remains(records)
        self._ended = {name for name, pids in self._left.items() if not pids}
        now = monotonic()
        self._verify = now + max(_VERIFY_S, 10 * (now - begin))

    def shared(self) -> set[str]:
        """Return the ids of the devices that somebody leases, or a part of."""
        return {
            device["id"] for device, key in self.keys if obstacle(self._look, slot(key.own), UNITS)
        }

    def _settles(self) -> bool:
        """Return whether a device that is not free may be so in a moment.

        Its owner is dead, and what watches over it has milliseconds of work; or none is named yet,
        or no more.
        """
        living = [record for record in read_records(self.folder) if record.living]
        return any(self._is_claimed(key) or self._changes(key, living) for _, key in self.keys)

    def _changes(self, key: Key, living: Sequence[Record]) -> bool:
        names = {name for name in (key.own, key.whole) if name is not None}
        of_it = [r for r in living if names.intersection((*r.devices, *r.wholes))]
        if of_it:
            return any(record.alive() is False for record in of_it)
        return any(obstacle(self._look, slot(name), UNITS) for name in names)

    def close(self) -> None:
        """End the request. Can be called twice."""
        if self._look >= 0:
            unlock(self._look)  # also for a child that was forked meanwhile
            os.close(self._look)
            self._look = -1
