"""Takes leases: all of the devices asked for or none, in turn with everybody else.

One short lock, the *door*, is held while locks are tried, so that two requests never keep each
other from a set that is free. Who waits stands in the kernel's queue for a second lock, one for
each set of devices that would do, so that nobody stands behind a request that waits for something
else. The head of a queue alone looks whether devices come free. If it needs several it keeps
those that it has, so that it is not passed over for ever; but one head at a time (the *keeper*),
so that two never hold what the other one needs.
"""

from __future__ import annotations

import os
from time import monotonic, sleep, time

from probe_core.leasing.folder import Folder
from probe_core.leasing.keys import Key, held_here, key_of
from probe_core.leasing.locks import POLL_S, drop, take, try_take
from probe_core.leasing.record import own_record, read_records, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]
    Choose = Callable[[Sequence[Device]], Sequence[Device] | None]

__all__ = ["DOOR", "KEEPER", "Held", "Taker"]

DOOR, KEEPER = ".door", ".keeper"


class Held:
    """Devices under lease: `devices` in the order given, and the open files that hold the locks."""

    __slots__ = ("devices", "files", "folder")

    def __init__(self, devices: Sequence[Device], files: Sequence[int], folder: Folder) -> None:
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

    def hand_on(self) -> None:
        """Make the locks outlive ``execve``, under numbers that a script's own files do not use."""
        self.files = [_moved(handle) for handle in (*self.files, self.folder.fd)]
        self.folder.fd = -1


def _moved(handle: int) -> int:
    import fcntl

    for least in (900, 200, 60):
        try:
            moved = fcntl.fcntl(handle, fcntl.F_DUPFD, least)  # inherited, unlike the original
        except OSError:  # more files than the process may open
            continue
        os.close(handle)
        return moved
    os.set_inheritable(handle, True)
    return handle


class Taker:
    """One request for devices of a node, until it is met or given up.

    `every` are the node's devices (partitions name their GPU among them), `command` what is told
    to others, `share` whether others may use the devices too.
    """

    __slots__ = ("_door", "_files", "command", "folder", "keys", "share")

    def __init__(
        self,
        folder: Folder,
        wanted: Sequence[Device],
        every: Sequence[Device],
        environ: Mapping[str, str],
        *,
        share: bool = False,
        command: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.share = share
        self.command = command
        outer = held_here(environ)
        self.keys: list[tuple[Device, Key]] = [(one, key_of(one, every, outer)) for one in wanted]
        self._files: dict[str, int] = {}
        self._door = folder.open(DOOR)

    def attempt(self, choose: Choose) -> Held | None:
        """Take what `choose` picks of the free devices, at once; None when it picks nothing."""
        take(self._door, deadline=None)
        try:
            return self._chosen(choose, keep=False)
        finally:
            drop(self._door)

    def wait(self, choose: Choose, deadline: float | None) -> Held | None:
        """Stand in line, then take what `choose` picks; None when the deadline passed.

        `deadline` is of `time.monotonic`; None waits for ever.
        """
        queue = self.folder.open(self.queue)
        keeper = self.folder.open(KEEPER)
        try:
            if not take(queue, deadline=deadline):
                return None
            return self._watch(choose, deadline, keeper)
        finally:
            os.close(keeper)
            os.close(queue)

    @property
    def queue(self) -> str:
        """Name of the queue of all requests that the same devices would do for."""
        from binascii import crc32

        names = "\n".join(sorted(key.own for _, key in self.keys))
        return f".queue-{crc32(names.encode('ascii', 'replace')):08x}"

    def _watch(self, choose: Choose, deadline: float | None, keeper: int) -> Held | None:
        keep = False
        while True:
            keep = keep or try_take(keeper)
            take(self._door, deadline=None)
            try:
                held = self._chosen(choose, keep=keep)
            finally:
                drop(self._door)
            if held is not None:
                return held
            if deadline is not None and monotonic() >= deadline:
                return None
            sleep(POLL_S)

    def _chosen(self, choose: Choose, *, keep: bool) -> Held | None:
        free = [(device, key) for device, key in self.keys if self._lock(key)]
        picked = choose([device for device, _ in free])
        if picked is None:
            if not keep:
                self._let_go([key for _, key in free])
            return None
        self._let_go([key for device, key in free if device not in picked])
        mine = {id(device): key for device, key in free}
        files = []
        for device in picked:
            files += self._sign(mine[id(device)])
        return Held(picked, files, self.folder)

    def _lock(self, key: Key) -> bool:
        """Lock a device and what it is a part of; both or none."""
        if key.own in self._files:
            return True
        if key.whole is not None and key.whole not in self._files:
            whole = self._locked(key.whole, share=True)
            if whole < 0:
                return False
            self._files[key.whole] = whole
        own = self._locked(key.own, share=self.share)
        if own < 0:
            return False
        self._files[key.own] = own
        return True

    def _locked(self, name: str, *, share: bool) -> int:
        while True:
            handle = self.folder.open(name)
            if not try_take(handle, share=share):
                os.close(handle)
                return -1
            if self.folder.same(name, handle):
                return handle
            os.close(handle)  # somebody tidied the folder between open and lock: again

    def _let_go(self, keys: Sequence[Key]) -> None:
        for key in keys:
            handle = self._files.pop(key.own, None)
            if handle is not None:
                os.close(handle)

    def _sign(self, key: Key) -> list[int]:
        handle = self._files.pop(key.own)
        others = [one for one in read_records(handle) if one.share and one.alive() is not False]
        record = own_record(self.command, share=self.share, now=time())
        write_record(handle, record, others if self.share else ())
        if key.whole is None or key.whole not in self._files:
            return [handle]
        return [handle, os.dup(self._files[key.whole])]

    def give_up(self) -> None:
        """Give back what was kept while waiting."""
        for handle in self._files.values():
            os.close(handle)
        self._files = {}

    def close(self) -> None:
        """Give back what was not handed out, and end the request. Can be called once."""
        self.give_up()
        os.close(self._door)
