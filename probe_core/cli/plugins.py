"""`probe plugins`: which plugins are installed, which are sound, and why one reported nothing."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.commands.options import add_probe_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from probe_core.commands import Context
    from probe_core.model.document import DecisionDoc, FindingDoc, OutcomeDoc, ReportDoc

HELP = "List, check and explain the installed plugins."
_ACTIONS = ("list", "check", "why-not", "new")
_SOUND = ("ok", "not_applicable", "unavailable", "skipped")
_MISTAKES = ("manifest-problem", "value-rejected", "distribution-broken")
"""Codes of the findings that are a plugin's own fault; its other mistakes are outcomes."""

_BUILT_IN = ("bus", "cpu", "fallback")

# The reason is the last column and what the table is for: a narrow terminal wraps it.
_LEAST_WIDTH = 160
EXAMPLES = (
    ("probe plugins", "all plugins, and whether they run here"),
    ("probe plugins why-not nvidia", "why one did not run or reported nothing"),
    ("probe plugins check", "run all of them, and name their mistakes"),
    ("probe plugins new acme", "write a plugin to start from"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe plugins`."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=_ACTIONS,
        help="list (default): all plugins and whether they run; check: run and check them;"
        " why-not NAME: why one did not run or reported nothing; new NAME: write a plugin",
    )
    parser.add_argument("name", nargs="?", help="a plugin's name")
    parser.add_argument("--folder", default=".", help="where `new` writes (default: here)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Carry out one action."""
    from probe_core.commands import CommandError

    if args.action in ("why-not", "new") and not args.name:
        raise CommandError(f"{args.action} needs a plugin's name")
    if args.action == "new":
        return _new(args, context)
    report = context.report()
    if args.name is not None:
        _refuse_unknown(args.name, report)
    if args.action == "why-not":
        return _why_not(args.name, report, context)
    return _check(args, report, context) if args.action == "check" else _list(args, report, context)


def _list(args: argparse.Namespace, report: ReportDoc, context: Context) -> int:
    decisions = [d for d in report["decisions"] if args.name in (None, d["prober"])]
    if args.json:
        context.json(decisions)
        return 0
    rows = [("PLUGIN", "PACKAGE", "PRIORITY", "DEADLINE", "RUNS", "WHY NOT")]
    rows += [_row(decision) for decision in decisions]
    rows += [(name, "probe-core", "", "", "built in", "") for name in _BUILT_IN]
    for line in text.columns(rows, max(context.width, _LEAST_WIDTH), right=(2, 3), flexible=5):
        context.out(line)
    return 0


def _row(decision: DecisionDoc) -> tuple[str, str, str, str, str, str]:
    return (
        decision["prober"],
        decision["distribution"],
        str(decision["priority"]),
        f"{decision['deadline_s']:g} s",
        "yes" if decision["selected"] else "no",
        decision["reason"] or "",
    )


def _check(args: argparse.Namespace, report: ReportDoc, context: Context) -> int:
    """Judge plugins by what running them shows; 1 when one is not sound."""
    outcomes = [o for o in report["outcomes"] if args.name in (None, o["prober"])]
    # A finding about no prober (an unreadable distribution) is not the one's that is asked about.
    mistakes = [
        finding
        for finding in report["findings"]
        if finding["code"] in _MISTAKES and args.name in (None, finding["prober"])
    ]
    sound = not mistakes and all(outcome["status"] in _SOUND for outcome in outcomes)
    if args.json:
        context.json({"outcomes": outcomes, "findings": mistakes, "sound": sound})
    else:
        for line in _verdicts(outcomes, mistakes):
            context.out(line)
    return 0 if sound else 1


def _verdicts(outcomes: list[OutcomeDoc], mistakes: list[FindingDoc]) -> Iterator[str]:
    for outcome in outcomes:
        mark = "ok  " if outcome["status"] in _SOUND else "FAIL"
        reason = f": {outcome['reason']}" if outcome["reason"] else ""
        devices = f", {_devices(outcome)}" if outcome["status"] == "ok" else ""
        spent = f" in {outcome['elapsed_ms']:.0f} ms" if outcome["status"] != "skipped" else ""
        name = f"{outcome['prober']} ({outcome['distribution']})"
        yield f"{mark} {name} {outcome['status']}{devices}{spent}{reason}"
        for line in outcome.get("stderr", ()):
            yield f"     | {line}"
    for finding in mistakes:
        yield f"FAIL {finding['what']}: {finding['why']}; {finding['fix']}"


def _why_not(name: str, report: ReportDoc, context: Context) -> int:
    """Say in one paragraph why a plugin did not run, failed or reported nothing."""
    outcome = next(o for o in report["outcomes"] if o["prober"] == name)
    skipped = next((d["reason"] for d in report["decisions"] if d["prober"] == name), None)
    paragraph = " ".join(_explanation(outcome, skipped))
    for line in text.wrapped(paragraph, context.width):
        context.out(line)
    for line in outcome.get("stderr", ()):
        context.out(f"  | {line}")
    return 0


def _explanation(outcome: OutcomeDoc, skipped: str | None) -> Iterator[str]:
    """Yield sentences; `skipped` is why the plugin was not selected."""
    yield f"The plugin {outcome['prober']!r} of {outcome['distribution'] or 'the host'}"
    status, reason = outcome["status"], outcome["reason"]
    if status == "skipped":
        yield _ended(f"was not run: {skipped or reason}")
    elif status == "ok":
        yield f"ran, and reported {_devices(outcome)}: nothing is wrong with it."
    elif status == "not_applicable":
        yield _ended(f"ran, and detected nothing of its own: {reason}")
    else:
        yield _ended(f"was run and ended as {status}: {reason}")
        if outcome["partial"]:
            yield f"What it had reported before is in the report: {_devices(outcome)}."
        if fix := outcome.get("fix"):
            yield _ended(f"What would help: {fix}")


def _ended(sentence: str) -> str:
    """Return a sentence with one full stop: authors end their reasons with one, or with none."""
    return sentence.removesuffix(".") + "."


def _devices(outcome: OutcomeDoc) -> str:
    count = outcome["devices"]
    return f"{count} device" if count == 1 else f"{count} devices"


def _refuse_unknown(name: str, report: ReportDoc) -> None:
    from probe_core.commands import CommandError, did_you_mean
    from probe_core.wording import clean_text

    # A static report names the probers of the machine that it was made on.
    names = {outcome["prober"] for outcome in report["outcomes"]} | {"fallback"}
    if name not in names:
        hint = did_you_mean(clean_text(name, 80), names)
        raise CommandError(f"no plugin {clean_text(name, 80)!r} is installed: {hint}")
    if name == "fallback":
        raise CommandError("the fallback is the core's own: it always runs, and cannot be chosen")


def _new(args: argparse.Namespace, context: Context) -> int:
    from probe_core.commands import CommandError
    from probe_core.testing.scaffold import write

    try:
        files = write(args.name, args.folder)
    except (OSError, ValueError) as error:
        raise CommandError(f"the plugin {args.name!r} was not written: {error}") from None
    for path in files:
        context.out(str(path))
    return 0
