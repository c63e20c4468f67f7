"""`probe leases`: who holds which device since when."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from probe_core.cli.context import Context

NAME = "leases"
HELP = "Show which devices are leased, by whom and since when. Asks no device."
_HEAD = ("DEVICE", "PID", "USER", "SINCE", "HOW", "STATE", "COMMAND")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe leases`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace, context: Context) -> int:
    """Read the lease folder."""
    from probe_core.cli.context import CommandError
    from probe_core.leasing.errors import LeaseError
    from probe_core.leasing.folder import lease_folder

    try:
        folder = lease_folder(context.environ)
        from probe_core.leasing.listing import leases

        try:
            found = leases(folder)
        finally:
            folder.close()
    except LeaseError as error:
        raise CommandError(f"leases: {error}", 3) from None
    if args.json:
        context.json({"folder": folder.path, "leases": found})
        return 0
    if not found:
        context.err(f"no device is leased ({folder.path})")
        return 0
    from probe_core.cli import text

    rows = [_HEAD, *(_row(one) for one in found)]
    for line in text.columns(rows, context.width, right=(1,), flexible=len(_HEAD) - 1):
        context.out(line)
    return 0


def _row(one: Any) -> tuple[str, ...]:
    how = {True: "shared", False: "exclusive", None: "?"}[one["share"]]
    return (
        one["device"],
        _known(one["pid"]),
        _user(one["uid"]),
        _time(one["since"]),
        how,
        _state(one),
        one["command"] or "?",
    )


def _state(one: Any) -> str:
    kept = ", ".join(str(pid) for pid in one["kept_by"])
    return f"{one['state']} by {kept}" if kept else str(one["state"])


def _known(value: object) -> str:
    return "?" if value is None else str(value)


def _user(uid: int | None) -> str:
    if uid is None:
        return "?"
    import pwd

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
        then = localtime(since)
    except (OverflowError, OSError, ValueError):
        return "?"
    today = localtime(time())[:3] == then[:3]
    return strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", then)
