"""`probe plugins`: which probers are installed, which are sound, and why one said nothing."""

from __future__ import annotations

from probe_core.cli import text
from probe_core.cli.options import add_probe_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from probe_core.cli.context import Context

    Table = Mapping[str, Any]

NAME = "plugins"
HELP = "List, check and explain the installed probers."
_ACTIONS = ("list", "check", "why-not", "new")
_SOUND = ("ok", "not_applicable", "unavailable", "skipped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe plugins`."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=_ACTIONS,
        help="list (default): all probers and whether they run; check: run them and judge;"
        " why-not NAME: why one did not run or found nothing; new NAME: write a plugin",
    )
    parser.add_argument("name", nargs="?", help="a prober's name")
    parser.add_argument("--folder", default=".", help="where `new` writes (default: here)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Carry out one action."""
    from probe_core.cli.context import CommandError

    if args.action in ("why-not", "new") and not args.name:
        raise CommandError(f"probe plugins {args.action} needs a prober's name")
    if args.action == "new":
        return _new(args, context)
    document = context.report()
    if args.action == "why-not":
        return _why_not(args.name, document, context)
    return (
        _check(args, document, context)
        if args.action == "check"
        else _list(args, document, context)
    )


def _list(args: argparse.Namespace, document: Table, context: Context) -> int:
    decisions = [d for d in document["decisions"] if args.name in (None, d["prober"])]
    _refuse_unknown(args.name, document)
    if args.json:
        context.json(decisions)
        return 0
    rows = [("PROBER", "FROM", "PRIORITY", "DEADLINE", "RUNS", "WHY NOT")]
    for decision in decisions:
        runs = "yes" if decision["selected"] else "no"
        deadline = f"{decision['deadline_s']:g} s"
        rows.append(
            (
                decision["prober"],
                decision["distribution"],
                str(decision["priority"]),
                deadline,
                runs,
                decision["reason"] or "",
            )
        )
    rows += [(name, "probe-core", "", "", "built in", "") for name in ("bus", "cpu", "fallback")]
    for line in text.columns(rows, max(context.width, 160), right=(2, 3), flexible=5):
        context.out(line)
    return 0


def _check(args: argparse.Namespace, document: Table, context: Context) -> int:
    """Judge probers by what running them shows; 1 when one is not sound."""
    _refuse_unknown(args.name, document)
    outcomes = [o for o in document["outcomes"] if args.name in (None, o["prober"])]
    owners = {outcome["distribution"] for outcome in outcomes}
    told = [
        finding
        for finding in document["findings"]
        if finding["code"] in ("manifest-problem", "value-rejected", "distribution-broken")
        and (args.name is None or any(finding["what"].startswith(owner) for owner in owners))
    ]
    broken = [outcome for outcome in outcomes if outcome["status"] not in _SOUND]
    if args.json:
        context.json({"outcomes": outcomes, "findings": told, "sound": not (broken or told)})
        return 1 if broken or told else 0
    for outcome in outcomes:
        mark = "ok  " if outcome["status"] in _SOUND else "FAIL"
        reason = f": {outcome['reason']}" if outcome["reason"] else ""
        devices = f", {_devices(outcome)}" if outcome["status"] == "ok" else ""
        took = f" in {outcome['elapsed_ms']:.0f} ms" if outcome["status"] != "skipped" else ""
        context.out(
            f"{mark} {outcome['prober']} ({outcome['distribution']}) "
            f"{outcome['status']}{devices}{took}{reason}"
        )
        for line in outcome.get("stderr", ()):
            context.out(f"     | {line}")
    for finding in told:
        context.out(f"FAIL {finding['what']}: {finding['why']}; {finding['fix']}")
    return 1 if broken or told else 0


def _why_not(name: str, document: Table, context: Context) -> int:
    """Say in one paragraph why a prober did not run, failed or found nothing."""
    _refuse_unknown(name, document)
    decision: Table = next((d for d in document["decisions"] if d["prober"] == name), {})
    outcome: Table = next(o for o in document["outcomes"] if o["prober"] == name)
    parts = [f"The prober {name!r} of {outcome['distribution'] or 'the host'}"]
    if outcome["status"] == "skipped":
        parts.append(f"was not run: {decision.get('reason') or outcome['reason']}.")
    elif outcome["status"] == "ok":
        parts.append(f"ran, and reported {_devices(outcome)}: nothing is wrong with it.")
    elif outcome["status"] == "not_applicable":
        parts.append(f"ran, and found nothing of its own: {outcome['reason']}.")
    else:
        parts.append(f"was run and ended as {outcome['status']}: {outcome['reason']}.")
        if outcome["partial"]:
            parts.append(f"What it had reported before was kept: {_devices(outcome)}.")
        if outcome.get("fix"):
            parts.append(f"What would help: {outcome['fix']}.")
    for line in text.wrapped(" ".join(parts).replace("..", "."), context.width):
        context.out(line)
    for line in outcome.get("stderr", ()):
        context.out(f"  | {line}")
    return 0


def _devices(outcome: Table) -> str:
    count = outcome["devices"]
    return f"{count} device" if count == 1 else f"{count} devices"


def _refuse_unknown(name: str | None, document: Table) -> None:
    from probe_core.cli.context import CommandError
    from probe_core.wording import did_you_mean

    known = {outcome["prober"] for outcome in document["outcomes"]} | {"fallback"}
    if name is not None and name not in known:
        raise CommandError(f"no prober {name!r} is installed: {did_you_mean(name, known)}")
    if name == "fallback":
        raise CommandError("the fallback is the core's own: it always runs, and cannot be chosen")


def _new(args: argparse.Namespace, context: Context) -> int:
    from probe_core.cli.context import CommandError
    from probe_core.testing.scaffold import write

    try:
        files = write(args.name, args.folder)
    except (OSError, ValueError) as error:
        raise CommandError(f"the plugin {args.name!r} was not written: {error}") from None
    for path in files:
        context.out(str(path))
    return 0
