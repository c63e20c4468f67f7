"""`probe leases`: devices in use, their owners and since when."""

from __future__ import annotations

import os
import sys

from probe_core.commands.options import JSON, Option
from probe_core.proc import program, user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.leasing.holders import Proof
    from probe_core.leasing.listing import Holding
    from probe_core.model.document import LeaseDoc

HELP = (
    "Show the devices in use, their owners and since when; --kill ends what keeps them. Queries"
    " no device."
)
_HEAD = ("DEVICE", "PID", "USER", "SINCE", "HOW", "STATE", "COMMAND")
EXAMPLES = (
    ("probe leases", "who uses which device"),
    ("probe leases --kill", "end what ended commands left running"),
    ("probe leases --kill 4242", "end all processes under a lease, by its process number"),
)

_PRIVATE = (
    "This folder has this user's leases alone. For those of all users an administrator sets"
    " /run/probe-core up: `systemd-tmpfiles --create probe-core.conf`"
)

ARGUMENTS = (
    JSON,
    Option(
        "kill",
        "LIST",
        "end all processes under the leases of these devices or process numbers, or `all`;"
        " without LIST: what commands that have ended left running",
        bare="",
    ),
    Option("yes", "", "with --kill, as root: end other users' processes without asking"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Read the lease folder."""
    from probe_core.cli.refusals import refuse_without_locks
    from probe_core.commands import CommandError
    from probe_core.leasing import LeaseError

    refuse_without_locks()
    try:
        if args.kill is not None:
            return _kill(args.kill, context, confirmed=args.yes)
        path, entries, is_private = _read(context)
    except LeaseError as error:
        raise CommandError(f"leases: {error}", 3) from None
    if args.json:
        context.json({"folder": path, "leases": entries})
    elif not entries:
        context.err(f"no device is leased ({path or 'there is no folder of leases yet'})")
    else:
        from probe_core.commands.tables import grid
        from probe_core.model.naming import short_ids

        ids = short_ids(entry["device"] for entry in entries)
        rows = [_HEAD, *([context.encodable(c) for c in _row(e, ids)] for e in entries)]
        for line in grid(rows, context.width, right=("PID",), wrap="COMMAND"):
            context.out(line)
    if is_private and not args.json:
        context.err(_PRIVATE)
    return 0


def _read(context: Context) -> tuple[str | None, list[LeaseDoc], bool]:
    """Return the folder's path, its entries, and whether it is this user's; raises `LeaseError`.

    Nothing is made for a look: without a folder there is no lease.
    """
    from probe_core.leasing.folder import present_folder
    from probe_core.leasing.listing import holdings

    folder = present_folder(context.environ)
    if folder is None:
        return None, [], False
    with folder:
        return folder.path, [holding.doc for holding in holdings(folder)], folder.is_private


def _kill(which: str, context: Context, *, confirmed: bool) -> int:
    """End leases; 3 where some are left, or where there is none such."""
    from probe_core.leasing.ending import end, of
    from probe_core.leasing.folder import present_folder
    from probe_core.leasing.listing import holdings

    folder = present_folder(context.environ)
    if folder is None:
        context.err("probe leases: no such lease: there is no folder of leases yet")
        return 0 if which in ("", "all") else 3
    with folder:
        listed = holdings(folder)
        chosen = of(listed, _whole(which, [holding.doc for holding in listed]))
        unrecorded = _unrecorded(which, listed, chosen, context)
        if not chosen and unrecorded:
            return 3
        if not chosen:
            context.err(f"probe leases: no such lease ({folder.path})")
            return 0 if which in ("", "all") else 3
        others: set[int] = set()
        if os.geteuid() == 0 and which not in ("", "all"):
            others = _confirmed([holding.proof for holding in chosen], context, confirmed)
        remaining = end(folder, chosen, others=others)
    proofs = {holding.identity: holding.proof for holding in remaining}
    for holding in chosen:
        subject = f"lease of {holding.doc['device']} by process {holding.doc['pid'] or '?'}"
        proof = proofs.get(holding.identity)
        if proof is None:
            context.out(f"ended the {subject}")
        else:
            context.err(f"probe leases: {subject} is not ended: {_obstacle(proof)}")
    return 3 if remaining or unrecorded else 0


def _unrecorded(
    which: str, listed: Sequence[Holding], chosen: Sequence[Holding], context: Context
) -> int:
    """Name what `all` leaves since no record says whose it is; return how many those are."""
    if "all" not in which.split(","):
        return 0
    unrecorded = [holding for holding in listed if holding not in chosen]
    for holding in unrecorded:
        holder = f"lock of {holding.doc['device']} by process {holding.doc['pid'] or '?'}"
        context.err(f"probe leases: {holder} is not ended: no record says whose it is")
    return len(unrecorded)


def _confirmed(proofs: Iterable[Proof], context: Context, confirmed: bool) -> set[int]:
    """Return the other users whose processes root ends: shown first, and only when confirmed."""
    found = {pid: uid for proof in proofs for pid, uid in proof.members.items() if uid != 0}
    users = {uid for uid in found.values() if uid is not None}
    if not users or confirmed:
        return users

    for pid, uid in sorted(found.items()):
        context.err(context.encodable(f"process {pid} of {_user(uid)}: {program(pid) or '?'}"))
    if not sys.stdin.isatty():
        context.err("probe leases: these are other users' processes: --yes ends them, too")
        return set()
    context.err(f"End these {len(found)} processes of other users? [y/N]")
    return users if sys.stdin.readline().strip().lower() in ("y", "yes") else set()


def _obstacle(proof: Proof) -> str:
    """Return why a lease is left: nothing is signalled that is not proven to be under it."""
    if proof.foreign:
        pid, uid = min(proof.foreign.items())
        return f"process {pid} of {_user(uid)} holds it, and is not proven to be the lease's"
    if not proof.members:
        return "held, and its holder cannot be seen from here"
    users = {uid for uid in proof.members.values() if uid != os.geteuid()}
    if users:
        names = ", ".join(sorted(map(_user, users)))
        return f"its processes are {names}'s; root ends them by the device's name"
    return "its processes are stuck in the kernel"


def _whole(which: str, entries: Sequence[LeaseDoc]) -> str:
    """Return the list with the ids of leased devices whole that are short, as tables have them."""
    from probe_core.commands import CommandError
    from probe_core.model.naming import named_by

    devices = list(dict.fromkeys(entry["device"] for entry in entries))
    names = []
    for name in which.split(","):
        fits = [devices[place] for place in named_by(name.strip(), [[d] for d in devices])]
        if len(fits) > 1:
            listed = ", ".join(fits)
            raise CommandError(f"leases: {name!a} names several devices; write one of {listed}")
        names += fits or [name]
    return ",".join(names)


def _row(entry: LeaseDoc, ids: Mapping[str, str]) -> tuple[str, ...]:
    how = {True: "shared", False: "exclusive", None: "?"}[entry["share"]]
    return (
        ids[entry["device"]],
        "?" if entry["pid"] is None else str(entry["pid"]),
        _user(entry["uid"]),
        _time(entry["since"]),
        how,
        _state(entry),
        _command(entry),
    )


def _command(entry: LeaseDoc) -> str:
    text = entry["command"] or "?"
    return text if entry["proven"] or text == "?" else f"{text} (as its record says)"


def _state(entry: LeaseDoc) -> str:
    owners = ", ".join(str(pid) for pid in entry["kept_by"])
    return f"{entry['state']} by {owners}" if owners else str(entry["state"])


def _user(uid: int | None) -> str:
    return user_name(uid) or "?"


def _time(since: float | None) -> str:
    """Return the local time; the date too unless it is today's."""
    if since is None:
        return "?"
    from time import localtime, strftime, time

    try:
        start = localtime(since)
    except (OverflowError, OSError, ValueError):
        return "?"
    today = localtime(time())[:3] == start[:3]
    return strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", start)
