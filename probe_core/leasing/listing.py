"""Who holds what since when, from the lock files of a folder."""

from __future__ import annotations

import os

from probe_core.leasing.folder import Folder
from probe_core.leasing.hold import DOOR
from probe_core.leasing.locks import drop, take, try_take
from probe_core.leasing.record import Holder, read_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["leases"]


def leases(folder: Folder) -> list[dict[str, Any]]:
    """Return one entry for each holder: device, pid, uid, since, share, command, state, kept_by.

    ``state`` is ``running``; ``inherited`` where the holder ended and what it started holds on
    (``kept_by`` then names the processes, as far as this user may see them); ``unknown`` where
    its process cannot be seen from here (another PID namespace).
    """
    door = folder.open(DOOR)
    try:
        take(door, deadline=None)  # a look takes the lock for an instant: not while others try
        try:
            found = [entry for name in folder.names() for entry in _entries(folder, name)]
        finally:
            drop(door)
    finally:
        os.close(door)
    return found


def _entries(folder: Folder, name: str) -> list[dict[str, Any]]:
    handle = folder.open(name)
    try:
        if try_take(handle):
            return []
        holders = read_records(handle)
    finally:
        os.close(handle)
    device = _device(name)
    shared = [one for one in holders if one.share]
    if shared:
        # A sharer that ended does not erase its record; one lock is as good as the other's.
        holders = [one for one in shared if one.alive() is not False] or shared[-1:]
    entries = [_entry(device, holder) for holder in holders or [Holder()]]
    for entry in entries:
        if entry["state"] == "inherited":
            entry["kept_by"] = _openers(f"{folder.path}/{name}")
    return entries


def _openers(path: str) -> list[int]:
    """Return the processes that have the file open, as far as this user may look."""
    found = []
    real = os.path.realpath(path)
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            files = os.listdir(f"/proc/{pid}/fd")
            if any(os.readlink(f"/proc/{pid}/fd/{number}") == real for number in files):
                found.append(int(pid))
        except OSError:  # another user's, or just gone
            continue
    return sorted(found)


def _entry(device: str, holder: Holder) -> dict[str, Any]:
    alive = holder.alive()
    return {
        "device": device,
        "state": {True: "running", False: "inherited", None: "unknown"}[alive],
        "pid": holder.pid,
        "uid": holder.uid,
        "since": holder.since,
        "share": holder.share,
        "command": holder.command,
        "kept_by": [],
    }


def _device(name: str) -> str:
    """Return the device's id of a lock file's name."""
    parts = name.removesuffix(".lock").split("%")
    plain = parts[0]
    for part in parts[1:]:
        try:
            plain += chr(int(part[:2], 16)) + part[2:]
        except ValueError:
            plain += "%" + part
    return plain
