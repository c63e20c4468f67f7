"""Which devices are leased, by whom and since when, from the lock files of a folder."""

from __future__ import annotations

import os
from time import monotonic, sleep

from probe_core.fastpath import signal
from probe_core.leasing import LeaseError
from probe_core.leasing.folder import Folder, file_name
from probe_core.leasing.locks import POLL_S, is_held
from probe_core.leasing.owners import MARK, Owner, in_group, living_sharers, read_owners, survivors
from probe_core.leasing.processes import descendants, marked, openers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_core.model.document import LeaseDoc


_ENDING_S = 0.2
"""Seconds for which a lease that is just ending is looked at again, see `acquire`."""


def leases(folder: Folder) -> list[LeaseDoc]:
    """Return one entry for each owner: device, pid, uid, since, share, command, state, kept_by.

    ``state`` is ``running``; ``inherited`` where the owner ended and what it started keeps the
    lease (``kept_by`` then names the processes, as far as this user may see them); ``unknown``
    where its process cannot be seen from here (another PID namespace). ``reserve`` is the part of
    the device's memory that is leased, in bytes; None where it is all of it, or shared as it comes.
    A lock file that cannot be used is passed over.
    """
    until = monotonic() + _ENDING_S
    while True:
        entries = _all_entries(folder)
        # A command that was killed just now: its keeper still has to notice.
        ending = [e for e in entries if e["state"] == "inherited" and not e["kept_by"]]
        if not ending or monotonic() >= until:
            return entries
        sleep(POLL_S)


def _all_entries(folder: Folder) -> list[LeaseDoc]:
    entries: list[LeaseDoc] = []
    for name in folder.names():
        try:
            entries += _entries(folder, name)
        except LeaseError:  # a link or a pipe that somebody put there
            continue
    return entries


def _entries(folder: Folder, name: str) -> list[LeaseDoc]:
    handle = folder.open(name, create=False)
    try:
        owners = read_owners(handle)
        if not _seems_held(handle, owners):
            return []
    finally:
        os.close(handle)
    sharers = [owner for owner in owners if owner.share]
    if sharers:  # somebody holds the lock: where all seem to have ended, the last record stays
        owners = living_sharers(sharers) or sharers[-1:]
    device = _device_of(name)
    path = os.path.realpath(f"{folder.path}/{name}")
    return [_entry(device, owner, path) for owner in owners or [Owner()]]


def _seems_held(handle: int, owners: Sequence[Owner]) -> bool:
    """Return whether anybody holds the lock, or anything runs under the leases of `owners`.

    No lock is taken for it: a look would keep others from theirs. An owner that cannot be seen from
    here (another PID namespace) may hold it, for all that the kernel shows.
    """
    held = is_held(handle)
    if held or survivors(owners):
        return True
    unseen = any(owner.alive() is None for owner in owners)
    return unseen or (held is None and any(owner.alive() for owner in owners))


def members(owner: Owner, path: str) -> list[int]:
    """Return the processes under a lease, but for its owner and its keeper: as far as may be seen.

    Those that descend from the keeper, that have the lease's mark, are in its control group, or
    have the lock's file open.
    """
    roots = [pid for pid in (owner.pid if owner.alive() else None, _keeper(owner)) if pid]
    pids = descendants(roots) if roots else set()
    if owner.mark:
        pids.update(marked(MARK, [owner.mark])[owner.mark])
    pids.update(in_group(owner))
    if not owner.share:
        pids.update(openers(path))
    return sorted(pids.difference([*roots, os.getpid()]))


def _keeper(owner: Owner) -> int | None:
    return owner.keeper if owner.keeper_alive() else None


def _entry(device: str, owner: Owner, path: str) -> LeaseDoc:
    state = {True: "running", False: "inherited", None: "unknown"}[owner.alive()]
    return {
        "device": device,
        "state": state,
        "pid": owner.pid,
        "uid": owner.uid,
        "since": owner.since,
        "share": owner.share,
        "command": owner.command,
        "kept_by": members(owner, path) if state == "inherited" else [],
        "reserve": owner.reserve,
    }


def owner_of(entry: LeaseDoc, folder: Folder) -> Owner | None:
    """Return the record of an entry, as it is now; None where the lease has ended."""
    try:
        handle = folder.open(file_name(entry["device"]), create=False)
    except LeaseError:
        return None
    try:
        owners = read_owners(handle)
    finally:
        os.close(handle)
    return next((owner for owner in owners if owner.pid == entry["pid"]), None)


def _device_of(name: str) -> str:
    """Return the device's id of a lock file's name, the reverse of `folder.file_name`."""
    head, *parts = name.removesuffix(".lock").split("%")
    for part in parts:
        try:
            head += chr(int(part[:2], 16)) + part[2:]
        except ValueError:
            head += "%" + part
    return head


# Ends what keeps devices leased: every process under a lease, its keeper last.

_GRACE_S = 3.0
"""Seconds between asking processes to end and killing them: time to write a checkpoint's last
block, no time for a whole one (a judgement)."""
_DEATH_S = 2.0
"""Seconds that killed processes have to be gone; one stuck in the kernel never is."""
_LOOK_S = 0.02


def of(entries: Sequence[LeaseDoc], which: str) -> list[LeaseDoc]:
    """Return the entries that `which` names: ``all``, devices, or processes of owners.

    An empty text names those whose owner has ended and left something running.
    """
    if not which:
        return [entry for entry in entries if entry["state"] == "inherited"]
    names = {name.strip() for name in which.split(",")}
    return [
        entry
        for entry in entries
        if "all" in names or entry["device"] in names or str(entry["pid"]) in names
    ]


def end(folder: Folder, entries: Sequence[LeaseDoc]) -> list[LeaseDoc]:
    """End the processes under these leases; return the leases that are left.

    They are signalled with SIGTERM, and killed when three seconds have passed. The keepers are not
    signalled: they end, and free the devices, when nothing is left.
    """
    for number, seconds in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _DEATH_S)):
        until = monotonic() + seconds
        signalled: set[int] = set()
        while remaining := _remaining(folder, entries):
            if monotonic() >= until:
                break
            for entry in remaining:
                signalled |= _signal_all(folder, entry, number, signalled)
            sleep(_LOOK_S)
    return _remaining(folder, entries)


def _remaining(folder: Folder, entries: Sequence[LeaseDoc]) -> list[LeaseDoc]:
    own = [(entry["device"], entry["pid"], entry["since"]) for entry in entries]
    return [e for e in leases(folder) if (e["device"], e["pid"], e["since"]) in own]


def _signal_all(
    folder: Folder, entry: LeaseDoc, number: int, signalled: Collection[int]
) -> set[int]:
    """Signal the processes under a lease that were not yet, the newest among them; return them.

    A lease that a program took for itself has no keeper: the program is signalled then.
    """
    owner = owner_of(entry, folder)
    if owner is None:
        return set()
    path = os.path.realpath(f"{folder.path}/{file_name(entry['device'])}")
    pids = set(members(owner, path)) - {owner.keeper or 0}
    if owner.pid is not None and owner.alive() and not owner.keeper_alive():
        pids.add(owner.pid)
    pids.difference_update(signalled)
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:  # it has just ended, or is another user's
            continue
    return pids
