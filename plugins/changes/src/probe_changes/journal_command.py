"""`probe journal`: note what changed on this computer, show it, verify it, sign it."""

from __future__ import annotations

import os

from probe_changes.store import Store
from probe_core.commands import (
    Argument,
    CommandError,
    Option,
    Request,
    grid,
    probe_options,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from probe_changes.chain import EntryDoc, Journal
    from probe_core.commands import Context

HELP = (
    "Note what changed on this computer since the last time: driver, kernel, libraries, firmware,"
    " nodes, variables, devices, and which device works. Reads the kernel's files alone: no library"
    " is loaded and no device is woken. `show` lists the entries, `verify` says whether any was"
    " altered, `unit` prints a timer for systemd. Exit status of `verify`: 1 where something is"
    " wrong."
)

EXAMPLES = (
    ("probe journal", "note what changed; nothing is written where nothing did"),
    ("probe journal --sign ~/.ssh/id_ed25519", "note, then sign the whole"),
    ("probe journal verify --signers signers --identity ops", "prove that nothing was altered"),
)

ACTIONS = ("add", "show", "verify", "unit")

ARGUMENTS: tuple[Argument | Option, ...] = (
    Argument(
        "action",
        "add (default), show, verify or unit",
        count="?",
        metavar="ACTION",
        absent="add",
        choices=ACTIONS,
    ),
    Option("sign", "KEY", "sign the journal with a private key of OpenSSH"),
    Option("signers", "FILE", "verify: OpenSSH's file of allowed signers"),
    Option("identity", "WHO", "verify: whose signature it must be"),
    Option("json", "", "print one JSON document"),
    Option("quiet", "", "print nothing"),
    *probe_options(),
)

UNIT = """\
# ~/.config/systemd/user/probe-journal.service
[Unit]
Description=Note what changed on this computer

[Service]
Type=oneshot
ExecStart=probe journal
Nice=19
IOSchedulingClass=idle

# ~/.config/systemd/user/probe-journal.timer
[Unit]
Description=Note what changed on this computer, at boot and each hour

[Timer]
OnStartupSec=1min
OnUnitActiveSec=1h
AccuracySec=10min

[Install]
WantedBy=timers.target
"""

PASSIVE = "bus,cpu"
"""The probers that a journal asks: those of the kernel's files. No vendor's library is loaded."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Carry out the action; returns 1 where `verify` finds something."""
    refuse_others(args)
    if args.action != "verify" and (args.signers or args.identity):
        raise CommandError("--signers and --identity are for `probe journal verify`")
    if args.action == "unit":
        context.out(UNIT.rstrip("\n"))
        return 0
    store = Store.of_user(context.environ)
    if args.action == "add":
        return _add(store, args, context)
    journal = _read(store)
    if args.action == "show":
        _show(journal, args, context)
        return 0
    return _verify(store, journal, args, context)


def refuse_others(args: argparse.Namespace) -> None:
    """Raise `CommandError` for another computer, and off Linux."""
    import sys

    if args.machine is not None:
        raise CommandError("a journal is of this computer; leave out --machine")
    if sys.platform in ("darwin", "win32"):
        raise CommandError(ELSEWHERE)


ELSEWHERE = "what changed is told by files of Linux; there is no journal elsewhere"


def _read(store: Store) -> Journal:
    try:
        return store.read()
    except FileNotFoundError:
        hint = "`probe journal` begins one"
        raise CommandError(f"there is no journal yet; {hint}", 1) from None
    except OSError as error:
        raise CommandError(f"{store.path}: {error.strerror or error}", 1) from None


def passive_request(args: argparse.Namespace, context: Context) -> Request:
    """Probe by the kernel's files alone, and return what the doctor's rules ask."""
    args.only = PASSIVE
    return context.examined(lambda machine, report: Request(machine, report))


def _add(store: Store, args: argparse.Namespace, context: Context) -> int:
    request = passive_request(args, context)
    try:
        entry = store.append(request)
        if args.sign is not None:
            from probe_changes.signing import sign

            sign(store, args.sign)
    except OSError as error:
        hint = "name another folder in XDG_STATE_HOME"
        raise CommandError(f"{store.path}: {error.strerror or error}; {hint}", 1) from None
    if args.json:
        context.json({"path": store.path, "entry": entry, "signed": args.sign is not None})
        return 0
    if args.quiet:
        return 0
    context.out(_told(entry, store.path))
    if args.sign is not None:
        context.out(f"It is signed: {store.signature_path}")
    return 0


def _told(entry: EntryDoc | None, path: str) -> str:
    if entry is None:
        return f"Nothing changed; {path} stays as it is."
    if entry["kind"] == "start":
        return f"{path} begins, with {len(entry.get('facts', {}))} facts."
    count = len(entry.get("facts", {})) + len(entry.get("broken", {}))
    noun = "change" if count == 1 else "changes"
    return f"Entry {entry['n']} of {path}: {count} {noun}."


def _show(journal: Journal, args: argparse.Namespace, context: Context) -> None:
    if args.json:
        context.json({"entries": journal.entries, "problems": _problems(journal)})
        return
    rows = [("N", "TIME (UTC)", "WHAT")]
    for entry in journal.entries:
        rows += [
            (str(entry["n"]) if at == 0 else "", _time(entry) if at == 0 else "", text)
            for at, text in enumerate(_lines(entry))
        ]
    for line in grid(rows, context.width, wrap="WHAT"):
        context.out(line)
    for problem in _problems(journal):
        context.err(f"probe journal: {problem['text']}")


def _time(entry: EntryDoc) -> str:
    return entry["time"].replace("T", " ").rstrip("Z")


def _lines(entry: EntryDoc) -> Iterable[str]:
    if entry["kind"] in ("start", "anchor"):
        facts = entry.get("facts", {})
        what = "begins" if entry["kind"] == "start" else f"stands for {entry['n']} older entries"
        yield f"{what}: {len(facts)} facts"
    elif entry["kind"] == "alive":
        yield "nothing changed"
    else:
        yield from (f"{fact}: {value or 'none'}" for fact, value in entry.get("facts", {}).items())
    for device, code in entry.get("broken", {}).items():
        yield f"{device}: {code.replace(':', ' is broken: ') if code else 'works again'}"
    if "clock" in entry:
        yield f"the clock jumped by {entry['clock']} s"


def _problems(journal: Journal) -> list[dict[str, object]]:
    return [{"at": problem.at, "text": problem.text} for problem in journal.problems]


def _verify(store: Store, journal: Journal, args: argparse.Namespace, context: Context) -> int:
    problems, proof = _problems(journal), ""
    signed, identity = os.path.exists(store.signature_path), args.identity
    if bool(args.signers) != bool(identity):
        raise CommandError("--signers and --identity belong together")
    if args.signers:
        from probe_changes.signing import proven_until, verify_signature

        problem = verify_signature(store, args.signers, identity)
        until, differs = proven_until(store, journal) if problem is None else (0, "")
        if problem or differs:
            problems.append({"at": 0, "text": problem or differs})
        else:
            proof = f"signed by {identity} up to entry {until}"
    elif signed:
        proof = "signed; --signers FILE --identity WHO proves by whom"
    else:
        proof = "its end is proven by no signature; --sign KEY makes one"
    if args.json:
        document = {"count": journal.count, "head": journal.head, "problems": problems}
        context.json({**document, "proof": proof})
    else:
        whole = f"whole to entry {journal.count}"
        context.out("; ".join(filter(None, (whole, proof))) if not problems else "not whole:")
        for entry in problems:
            context.out(f"  {entry['text']}")
    return 1 if problems else 0
