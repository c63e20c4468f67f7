"""Ends what keeps devices leased: every process under a lease, its keeper last."""

from __future__ import annotations

import os
from time import monotonic, sleep

from probe_core.fastpath import signal
from probe_core.leasing.folder import file_name
from probe_core.leasing.listing import leases, members, owner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.model.document import LeaseDoc

__all__ = ["end", "of"]

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
