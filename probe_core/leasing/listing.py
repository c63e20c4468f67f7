"""Which devices are leased, by whom and since when, from the lock files of a folder."""

from __future__ import annotations

import os

from probe_core.leasing.acquire import DOOR
from probe_core.leasing.folder import Folder
from probe_core.leasing.locks import drop, take, try_take
from probe_core.leasing.owners import Owner, read_owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import LeaseDoc

__all__ = ["leases"]


def leases(folder: Folder) -> list[LeaseDoc]:
    """Return one entry for each owner: device, pid, uid, since, share, command, state, kept_by.

    ``state`` is ``running``; ``inherited`` where the owner ended and what it started keeps the
    lease (``kept_by`` then names the processes, as far as this user may see them); ``unknown``
    where its process cannot be seen from here (another PID namespace).
    """
    door = folder.open(DOOR)
    try:
        take(door, deadline=None)  # a look takes the lock for an instant: not while others try
        try:
            entries = [entry for name in folder.names() for entry in _entries(folder, name)]
        finally:
            drop(door)
    finally:
        os.close(door)
    return entries


def _entries(folder: Folder, name: str) -> list[LeaseDoc]:
    handle = folder.open(name)
    try:
        if try_take(handle):
            return []
        owners = read_owners(handle)
    finally:
        os.close(handle)
    sharers = [owner for owner in owners if owner.share]
    if sharers:
        # A sharer that ended does not erase its record; one lock is as good as the other's.
        owners = [owner for owner in sharers if owner.alive() is not False] or sharers[-1:]
    device = _device_of(name)
    entries = [_entry(device, owner) for owner in owners or [Owner()]]
    for entry in entries:
        if entry["state"] == "inherited":
            entry["kept_by"] = _openers(f"{folder.path}/{name}")
    return entries


def _openers(path: str) -> list[int]:
    """Return the processes that have the file open, as far as this user may look."""
    pids = []
    real = os.path.realpath(path)
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            files = os.listdir(f"/proc/{pid}/fd")
            if any(os.readlink(f"/proc/{pid}/fd/{number}") == real for number in files):
                pids.append(int(pid))
        except OSError:  # another user's, or just gone
            continue
    return sorted(pids)


def _entry(device: str, owner: Owner) -> LeaseDoc:
    return {
        "device": device,
        "state": {True: "running", False: "inherited", None: "unknown"}[owner.alive()],
        "pid": owner.pid,
        "uid": owner.uid,
        "since": owner.since,
        "share": owner.share,
        "command": owner.command,
        "kept_by": [],
    }


def _device_of(name: str) -> str:
    """Return the device's id of a lock file's name, the reverse of `folder.file_name`."""
    head, *parts = name.removesuffix(".lock").split("%")
    for part in parts:
        try:
            head += chr(int(part[:2], 16)) + part[2:]
        except ValueError:
            head += "%" + part
    return head
