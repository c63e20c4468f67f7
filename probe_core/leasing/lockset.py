"""The locks that one look at the devices takes: kept when all were had, else closed."""

from __future__ import annotations

import os
from time import time

from probe_core.leasing.errors import LeaseError
from probe_core.leasing.leased import Leased
from probe_core.leasing.locks import try_take
from probe_core.leasing.owners import living_sharers, own_record, read_owners, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.leasing.acquire import Acquisition
    from probe_core.leasing.keys import Key
    from probe_core.model.document import DeviceDoc

__all__ = ["Locks"]


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
        from probe_core.leasing.shares import shares_with

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
        if self._request.has_survivors(name, obstacles):
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
