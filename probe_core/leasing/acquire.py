"""Takes leases: all of the devices asked for or none, in turn with everybody else.

One short lock, the *door*, is held while locks are tried, so that two requests never keep each
other from a set that is free. Who waits queues in the kernel for a second lock, one for each set
of devices that would do, so that nobody queues behind a request that waits for something else.
The head of a queue alone looks whether devices come free. If it needs several it keeps those that
it has, so that it is not passed over for ever; but only one head at a time (the *collector*), so
that two never hold what the other one needs.
"""

from __future__ import annotations

import os
from time import monotonic, sleep, time

from probe_core.leasing.folder import Folder
from probe_core.leasing.keys import Key, key_of, outer_lease
from probe_core.leasing.locks import POLL_S, drop, take, try_take
from probe_core.leasing.owners import own_record, read_owners, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Choose = Callable[[Sequence[DeviceDoc]], Sequence[DeviceDoc] | None]

__all__ = ["COLLECTOR", "DOOR", "Acquisition", "Leased"]

DOOR, COLLECTOR = ".door", ".collector"

_HIGH_DESCRIPTORS = (900, 200, 60)
"""Numbers from which a command inherits the locks' files, the first that the limit on open files
allows (1,024 by default on Linux, 256 on macOS). Scripts redirect descriptors up to 9 (POSIX sh,
2.7 Redirection), and bash reads its script from 255."""


class Leased:
    """Leased devices: `devices` in the order chosen, and the open files that hold the locks."""

    __slots__ = ("devices", "files", "folder")

    def __init__(self, devices: Sequence[DeviceDoc], files: Sequence[int], folder: Folder) -> None:
        self.devices = list(devices)
        self.files = list(files)
        self.folder = folder

    def put_back(self) -> None:
        """Give the devices back, also where a child inherited the files; the folder stays open."""
        for handle in self.files:
            drop(handle)
            os.close(handle)
        self.files = []

    def release(self) -> None:
        """Give the devices back, and close the folder. Can be called twice."""
        self.put_back()
        self.folder.close()

    def keep_on_exec(self) -> None:
        """Make the locks outlive ``execve``, under numbers that a script's own files do not use.

        The folder's file goes with them: its shared lock keeps systemd-tmpfiles away.
        """
        self.files = [_inheritable(handle) for handle in (*self.files, self.folder.fd)]
        self.folder.fd = -1


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


class Acquisition:
    """One request for devices of a node, until it is met or given up.

    `installed` are the node's devices (partitions name their GPU among them), `command` what is
    shown to others, `share` whether others may use the devices too.
    """

    __slots__ = ("_door", "_files", "command", "folder", "keys", "share")

    def __init__(
        self,
        folder: Folder,
        devices: Sequence[DeviceDoc],
        installed: Sequence[DeviceDoc],
        environ: Mapping[str, str],
        *,
        share: bool = False,
        command: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.share = share
        self.command = command
        outer = outer_lease(environ)
        self.keys: list[tuple[DeviceDoc, Key]] = [
            (device, key_of(device, installed, outer)) for device in devices
        ]
        self._files: dict[str, int] = {}
        self._door = folder.open(DOOR)

    def attempt(self, choose: Choose) -> Leased | None:
        """Take what `choose` picks of the free devices, at once; None when it picks nothing."""
        take(self._door, deadline=None)
        try:
            return self._take_chosen(choose, keep=False)
        finally:
            drop(self._door)

    def wait(self, choose: Choose, deadline: float | None) -> Leased | None:
        """Queue, then take what `choose` picks; None when the deadline passed.

        `deadline` is of `time.monotonic`; None waits for ever.
        """
        queue = self.folder.open(self.queue)
        collector = self.folder.open(COLLECTOR)
        try:
            if not take(queue, deadline=deadline):
                return None
            return self._watch(choose, deadline, collector)
        finally:
            os.close(collector)
            os.close(queue)

    @property
    def queue(self) -> str:
        """Name of the queue of all requests that the same devices would do for."""
        from binascii import crc32

        # Requests that compete get the same name; a collision of CRCs only makes two queues one.
        names = "\n".join(sorted(key.own for _, key in self.keys))
        return f".queue-{crc32(names.encode('ascii', 'replace')):08x}"

    def _watch(self, choose: Choose, deadline: float | None, collector: int) -> Leased | None:
        keep = False
        while True:
            keep = keep or try_take(collector)
            take(self._door, deadline=None)
            try:
                leased = self._take_chosen(choose, keep=keep)
            finally:
                drop(self._door)
            if leased is not None:
                return leased
            if deadline is not None and monotonic() >= deadline:
                return None
            sleep(POLL_S)

    def _take_chosen(self, choose: Choose, *, keep: bool) -> Leased | None:
        free = [(device, key) for device, key in self.keys if self._lock(key)]
        chosen = choose([device for device, _ in free])
        if chosen is None:
            if not keep:
                self._unlock([key for _, key in free])
            return None
        self._unlock([key for device, key in free if device not in chosen])
        keys = {id(device): key for device, key in free}
        files = []
        for device in chosen:
            files += self._sign(keys[id(device)])
        return Leased(chosen, files, self.folder)

    def _lock(self, key: Key) -> bool:
        """Lock a device and what it is a part of; both or none."""
        if key.own in self._files:
            return True
        if key.whole is not None and key.whole not in self._files:
            whole = self._open_locked(key.whole, share=True)
            if whole < 0:
                return False
            self._files[key.whole] = whole
        own = self._open_locked(key.own, share=self.share)
        if own < 0:
            return False
        self._files[key.own] = own
        return True

    def _open_locked(self, name: str, *, share: bool) -> int:
        """Return the open lock file of that name, locked; -1 while somebody else holds it."""
        while True:
            handle = self.folder.open(name)
            if not try_take(handle, share=share):
                os.close(handle)
                return -1
            if self.folder.same(name, handle):
                return handle
            os.close(handle)  # somebody tidied the folder between open and lock: again

    def _unlock(self, keys: Sequence[Key]) -> None:
        for key in keys:
            handle = self._files.pop(key.own, None)
            if handle is not None:
                os.close(handle)

    def _sign(self, key: Key) -> list[int]:
        """Write who leases the device into its lock file; return the files that hold the locks."""
        handle = self._files.pop(key.own)
        sharers = [owner for owner in read_owners(handle) if owner.share]
        sharers = [owner for owner in sharers if owner.alive() is not False]
        record = own_record(self.command, share=self.share, now=time())
        write_record(handle, record, sharers if self.share else ())
        if key.whole is None or key.whole not in self._files:
            return [handle]
        return [handle, os.dup(self._files[key.whole])]

    def give_up(self) -> None:
        """Give back what was kept while waiting."""
        for handle in self._files.values():
            os.close(handle)
        self._files = {}

    def close(self) -> None:
        """Give back what was not chosen, and end the request. Can be called once."""
        self.give_up()
        os.close(self._door)
