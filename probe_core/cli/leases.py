"""`probe leases`: devices in use, their owners and since when."""

from __future__ import annotations

from probe_core.commands.options import JSON, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from probe_core.commands import Context
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


ARGUMENTS = (
    JSON,
    Option(
        "kill",
        "LIST",
        "end all processes under the leases of these devices or process numbers, or `all`;"
        " without LIST: what commands that have ended left running",
        bare="",
    ),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Read the lease folder."""
    from probe_core.cli.refusals import refuse_without_locks
    from probe_core.commands import CommandError
    from probe_core.leasing import LeaseError

    refuse_without_locks()
    try:
        if args.kill is not None:
            return _kill(args.kill, context)
        path, entries = _read(context)
    except LeaseError as error:
        raise CommandError(f"leases: {error}", 3) from None
    if args.json:
        context.json({"folder": path, "leases": entries})
    elif not entries:
        context.err(f"no device is leased ({path})")
    else:
        from probe_core.commands.tables import grid
        from probe_core.model.ids import short_ids

        ids = short_ids(entry["device"] for entry in entries)
        rows = [_HEAD, *([context.encodable(c) for c in _row(e, ids)] for e in entries)]
        for line in grid(rows, context.width, right=("PID",), wrap="COMMAND"):
            context.out(line)
    return 0


def _read(context: Context) -> tuple[str, list[LeaseDoc]]:
    """Return the lease folder's path and its entries; raises `LeaseError`."""
    from probe_core.leasing.folder import lease_folder

    folder = lease_folder(context.environ)
    try:
        from probe_core.leasing.listing import leases

        return folder.path, leases(folder)
    finally:
        folder.close()


def _kill(which: str, context: Context) -> int:
    """End leases; 3 where some are left, or where there is none such."""
    from probe_core.leasing.folder import lease_folder
    from probe_core.leasing.listing import end, leases, of

    folder = lease_folder(context.environ)
    try:
        listed = leases(folder)
        entries = of(listed, _whole(which, listed))
        if not entries:
            context.err(f"probe leases: no such lease ({folder.path})")
            return 0 if which in ("", "all") else 3
        remaining = end(folder, entries)
    finally:
        folder.close()
    ids = [(entry["device"], entry["pid"]) for entry in remaining]
    for entry in entries:
        subject = f"lease of {entry['device']} by process {entry['pid'] or '?'}"
        if (entry["device"], entry["pid"]) in ids:
            context.err(f"probe leases: {subject} is not ended: its processes are another user's,"
                        " or stuck in the kernel")  # fmt: skip
        else:
            context.out(f"ended the {subject}")
    return 3 if remaining else 0


def _whole(which: str, entries: Sequence[LeaseDoc]) -> str:
    """Return the list with the ids of leased devices whole that are short, as tables have them."""
    from probe_core.commands import CommandError
    from probe_core.model.ids import named_by

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
        entry["command"] or "?",
    )


def _state(entry: LeaseDoc) -> str:
    owners = ", ".join(str(pid) for pid in entry["kept_by"])
    return f"{entry['state']} by {owners}" if owners else str(entry["state"])


def _user(uid: int | None) -> str:
    if uid is None:
        return "?"
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


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
