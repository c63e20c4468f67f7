"""Ends what keeps devices leased: every process that is proven to be under a lease, no other."""

from __future__ import annotations

import os
from time import monotonic, sleep

from probe_core.fastpath import signal
from probe_core.leasing.listing import leases, proof_of
from probe_core.leasing.processes import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.proof import Proof
    from probe_core.model.document import LeaseDoc

_GRACE_S = 3.0
"""Seconds between asking processes to end and killing them: time to write a checkpoint's last
block, no time for a whole one (a judgement)."""
_DEATH_S = 2.0
"""Seconds that killed processes have to be gone; one stuck in the kernel never is."""
_LOOK_S = 0.02
_SETTLED_S = 0.3
"""Seconds after which what cannot be ended is given up: while 200 commands began and ended, a lease
was once given up at the first look, although its holder ran before and after. Why is not known."""


def of(entries: Sequence[LeaseDoc], which: str) -> list[LeaseDoc]:
    """Return the entries that `which` names: ``all``, devices, or processes of owners.

    An empty text names those whose owner has ended and left something running. ``all`` names what
    has a record: who locked what has none is not known, for an open file can be handed to another
    user's process.
    """
    if not which:
        return [entry for entry in entries if entry["state"] == "inherited"]
    names = {name.strip() for name in which.split(",")}
    return [
        entry
        for entry in entries
        if ("all" in names and entry["since"] is not None)
        or entry["device"] in names
        or str(entry["pid"]) in names
    ]


def end(
    folder: Folder, entries: Sequence[LeaseDoc], *, others: Collection[int] = ()
) -> list[LeaseDoc]:
    """End the processes under these leases; return the leases that are left.

    They are signalled with SIGTERM, and killed when three seconds have passed: this user's, and
    those of the users in `others`. The keepers are not signalled: they end, and free the devices,
    when nothing is left. What nothing here can end is looked at for 0.3 s, and not waited for.
    """
    users = {os.geteuid(), *others}
    settled, begun = monotonic() + _SETTLED_S, False
    for number, seconds in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _DEATH_S)):
        until = monotonic() + seconds
        signalled: set[int] = set()
        while monotonic() < until:
            remaining = _remaining(folder, entries)
            proofs = [(entry, proof_of(folder, entry)) for entry in remaining]
            if any(_can_end(proof, users) for _, proof in proofs):
                settled, begun = monotonic() + _SETTLED_S, True
            elif (begun and not remaining) or monotonic() >= settled:
                return _remaining(folder, entries)
            for entry, proof in proofs:
                due = {pid for pid, uid in proof.members.items() if uid in users} - signalled
                _signal(folder, entry, due, number)
                signalled |= due
            sleep(_LOOK_S)
    return _remaining(folder, entries)


def _can_end(proof: Proof, users: set[int]) -> bool:
    """Return whether the lease ends by a signal of this user, or by itself: its keeper alone is."""
    only_keeper = bool(proof.below) and not proof.members
    return only_keeper or not users.isdisjoint(proof.members.values())


def _remaining(folder: Folder, entries: Sequence[LeaseDoc]) -> list[LeaseDoc]:
    """Return the entries that are left; a device that is locked without a record counts as such."""
    own = {(entry["device"], entry["uid"], entry["pid"], entry["since"]) for entry in entries}
    devices = {entry["device"] for entry in entries}
    return [
        entry
        for entry in leases(folder, devices)
        if (entry["device"], entry["uid"], entry["pid"], entry["since"]) in own
        or (entry["since"] is None and entry["device"] in devices)
    ]


def _signal(folder: Folder, entry: LeaseDoc, pids: Collection[int], number: int) -> None:
    """Signal processes that are proven anew, by handles from before: a number may be reused."""
    began = {pid: started(pid) for pid in pids}
    handles = {pid: _handle_of(pid) for pid in pids}
    try:
        members = proof_of(folder, entry).members if pids else {}
        for pid, handle in handles.items():
            if pid in members and started(pid) == began[pid]:
                _send(pid, handle, number)
    finally:
        for handle in handles.values():
            if handle >= 0:
                os.close(handle)


def _handle_of(pid: int) -> int:
    """Return a pidfd; -1 on macOS, before Linux 5.3, and of a process that has just ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _send(pid: int, handle: int, number: int) -> None:
    try:
        if handle < 0:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except OSError:  # it has just ended
        return
