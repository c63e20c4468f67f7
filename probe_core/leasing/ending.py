"""Ends what keeps devices leased: every process that is proven to be under a lease, no other."""

from __future__ import annotations

import os
from time import monotonic, sleep

from probe_core.fastpath import signal
from probe_core.leasing.listing import holdings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.holders import Proof
    from probe_core.leasing.listing import Holding

_GRACE_S = 3.0
"""Seconds between asking processes to end and killing them: time to write a checkpoint's last
block, no time for a whole one (a judgement)."""
_DEATH_S = 2.0
"""Seconds that killed processes have to be gone; one stuck in the kernel never is."""
_LOOK_S = 0.02
_SETTLED_S = 0.3
"""Seconds after which what cannot be ended is given up: while 200 commands began and ended, a lease
was once given up at the first look, although its holder ran before and after. Why is not known."""


def of(found: Sequence[Holding], which: str) -> list[Holding]:
    """Return the leases that `which` names: ``all``, devices, or processes of owners.

    An empty text names those whose owner has ended and left something running. ``all`` names what
    has a record: who locked what has none is not known, for an open file can be handed to another
    user's process.
    """
    if not which:
        return [holding for holding in found if holding.doc["state"] == "inherited"]
    names = {name.strip() for name in which.split(",")}
    return [
        holding
        for holding in found
        if ("all" in names and holding.doc["since"] is not None)
        or holding.doc["device"] in names
        or str(holding.doc["pid"]) in names
    ]


def end(folder: Folder, ended: Sequence[Holding], *, others: Collection[int] = ()) -> list[Holding]:
    """End the processes under these leases; return the leases that are left.

    They are signalled with SIGTERM, and killed when three seconds have passed: this user's, and
    those of the users in `others`. The keepers are not signalled: they end, and free the devices,
    when nothing is left. What nothing here can end is looked at for 0.3 s, and not waited for.
    """
    users = {os.geteuid(), *others}
    settled, begun = monotonic() + _SETTLED_S, False
    handles: dict[int, int] = {}
    try:
        _open({pid for holding in ended for pid in holding.proof.members}, handles)
        for number, seconds in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _DEATH_S)):
            until = monotonic() + seconds
            signalled: set[int] = set()
            while monotonic() < until:
                proofs = [holding.proof for holding in _remaining(folder, ended)]
                if any(_can_end(proof, users) for proof in proofs):
                    settled, begun = monotonic() + _SETTLED_S, True
                elif (begun and not proofs) or monotonic() >= settled:
                    return _remaining(folder, ended)
                members = [pair for proof in proofs for pair in proof.members.items()]
                due = {pid for pid, uid in members if uid in users} - signalled
                # Who was proven before its handle was opened, and is now: a number may be reused.
                for pid in due & handles.keys():
                    _send(handles[pid], number)
                signalled |= due & handles.keys()
                _open(due, handles)
                sleep(_LOOK_S)
        return _remaining(folder, ended)
    finally:
        for handle in handles.values():
            if handle >= 0:
                os.close(handle)


def _can_end(proof: Proof, users: set[int]) -> bool:
    """Return whether the lease ends by a signal of this user, or by itself: its keeper alone is."""
    only_keeper = bool(proof.below) and not proof.members
    return only_keeper or not users.isdisjoint(proof.members.values())


def _remaining(folder: Folder, ended: Sequence[Holding]) -> list[Holding]:
    """Return the leases that are left; a device that is locked without a record counts as such."""
    own = {holding.identity for holding in ended}
    devices = {holding.doc["device"] for holding in ended}
    return [
        holding
        for holding in holdings(folder, devices)
        if holding.identity in own
        or (holding.doc["since"] is None and holding.doc["device"] in devices)
    ]


def _open(pids: Collection[int], handles: dict[int, int]) -> None:
    """Add a pidfd of each process that has none; the number negated where the system has none."""
    for pid in pids:
        if pid not in handles:
            try:
                handles[pid] = os.pidfd_open(pid)
            except ProcessLookupError:  # it has just ended
                continue
            except (AttributeError, OSError):  # macOS, before Linux 5.3
                handles[pid] = -pid


def _send(handle: int, number: int) -> None:
    try:
        if handle < 0:
            os.kill(-handle, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except OSError:  # it has just ended
        return
