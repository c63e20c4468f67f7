"""`probe since`: what changed since the devices worked, the likeliest cause first."""

from __future__ import annotations

from time import gmtime, strftime, time

from probe_changes.chain import read_chain
from probe_changes.journal_command import passive_request, refuse_others
from probe_changes.since import entries_until_now, history, sentence
from probe_changes.store import Store
from probe_core.commands import (
    Argument,
    CommandError,
    Option,
    grid,
    probe_options,
    wrapped,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_changes.since import SinceDoc
    from probe_core.commands import Context

HELP = (
    "Name what changed since the devices worked, the likeliest cause first, or within a time. It"
    " reads the journal that `probe journal` keeps, and looks at this computer's files. Nothing is"
    " written, no device is woken."
)

EXAMPLES = (
    ("probe since", "what changed before a device stopped working"),
    ("probe since 3d", "all changes of the last three days"),
)

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SHOWN = 20

ARGUMENTS: tuple[Argument | Option, ...] = (
    Argument("age", "a time such as 12h, 3d, 2w", count="?", metavar="AGE"),
    Option("device", "ID", "this device alone"),
    Option("json", "", "print one JSON document"),
    *probe_options(),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the changes."""
    refuse_others(args)
    since = _since(args.age) if args.age is not None else None
    store = Store.of_user(context.environ)
    if not store.exists():
        return _without_journal(args, context)
    request = passive_request(args, context)
    try:
        entries, journal = entries_until_now(store, request, time())
    except OSError as error:
        raise CommandError(f"{store.path}: {error.strerror or error}", 1) from None
    document = history(entries, journal, since=since, device=args.device)
    if args.json:
        context.json(document)
        return 0
    for problem in document["problems"]:
        context.err(f"probe since: {problem}")
    _print(document, since, context)
    return 0


def _without_journal(args: argparse.Namespace, context: Context) -> int:
    """Say that nothing was noted so far; nobody did anything wrong."""
    reason = "there is no journal yet; `probe journal` begins one"
    if args.json:
        context.json({**history([], read_chain("")), "problems": [reason]})
    else:
        context.out(f"Nothing is known of before: {reason}.")
    return 0


def _since(age: str) -> str:
    """Return the label of the time that an age is ago; raises `CommandError`."""
    number, unit = age[:-1], age[-1:]
    if unit not in _UNITS or not number.isdecimal() or len(number) > 6:
        raise CommandError(f"{age[:40]} is no time; write 12h, 3d or 2w")
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time() - int(number) * _UNITS[unit]))


def _print(document: SinceDoc, since: str | None, context: Context) -> None:
    changes = document["changes"]
    for line in wrapped(_headline(document, since), context.width):
        context.out(line)
    if not changes:
        return
    rows = [("", "CHANGE", "NOTED (UTC)")]
    for place, change in enumerate(changes[:_SHOWN]):
        mark = "likely" if place == 0 and document["device"] else ""
        rows.append((mark, sentence(change), change["time"].replace("T", " ").rstrip("Z")))
    for line in grid(rows, context.width, wrap="CHANGE"):
        context.out(line)
    if len(changes) > _SHOWN:
        context.out(f"and {len(changes) - _SHOWN} more: `probe since --json`")


def _headline(document: SinceDoc, since: str | None) -> str:
    if document["device"] is not None:
        broken = (document["broken"] or "").replace(":", ", ")
        worked = (document["worked"] or "").replace("T", " ").rstrip("Z")
        rest = (
            "changed before it fell" if document["changes"] else "nothing that is watched changed"
        )
        return f"{document['device']} worked last at {worked} ({broken} since then); {rest}:"
    if since is not None:
        began = document["began"] or ""
        when = max(since, began).replace("T", " ").rstrip("Z")
        if since < began:
            when = f"the journal's oldest entry, {when}"
        return f"Changed since {when}:" if document["changes"] else f"Nothing changed since {when}."
    if document["changes"]:
        return "No device stopped working. Changed since the journal began:"
    return "No device stopped working, and nothing changed since the journal began."
