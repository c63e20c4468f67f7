"""`probe plugins`: which plugins are installed, which are sound, and why one reported nothing."""

from __future__ import annotations

from probe_core.cli.plugins_new import TEMPLATES
from probe_core.commands import text
from probe_core.commands.options import COLOR, add_options, add_probe_options
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from probe_core.commands import Context
    from probe_core.model.document import FindingDoc, OutcomeDoc, ReportDoc

HELP = "List, check and explain the installed plugins."
_ACTIONS = ("list", "check", "why-not", "run", "new")
_NEEDS = {"why-not": "a plugin's name", "new": "a plugin's name", "run": "a file, module or name"}
"""What an action cannot do without, in words."""
_SOUND = ("ok", "not_applicable", "unavailable", "skipped")
_MISTAKES = ("manifest-problem", "value-rejected", "distribution-broken")
"""Codes of the findings that are a plugin's own fault; its other mistakes are outcomes."""

EXAMPLES = (
    ("probe plugins", "all plugins, and whether they run here"),
    ("probe plugins why-not nvidia", "why one did not run or reported nothing"),
    ("probe plugins check", "run all of them, and name their mistakes"),
    ("probe plugins new acme", "write a plugin to start from"),
    ("probe plugins run acme.py --debug", "run one's own in this process"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe plugins`."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=_ACTIONS,
        help="list (default): all plugins and whether they run; check: run and check them;"
        " why-not NAME: why one did not run or reported nothing;"
        " run FILE.py, MODULE or NAME: run one in this process, for its author;"
        " new NAME: write a plugin",
    )
    parser.add_argument("name", nargs="?", help="a plugin's name; of `run` also a file or module")
    parser.add_argument("--debug", action="store_true", help="`run`: open pdb where it raises")
    parser.add_argument(
        "--isolated",
        action="store_true",
        help="`run`: in a child with a deadline, as in a report",
    )
    parser.add_argument("--folder", default=".", help="where `new` writes (default: here)")
    parser.add_argument(
        "--template",
        default=TEMPLATES[0],
        choices=TEMPLATES,
        help="what `new` reads: files of a driver (default), or a vendor's C library",
    )
    parser.add_argument("--pci", metavar="ID", help="PCI vendor id of the devices of `new` (10de)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--long", action="store_true", help="list priority, deadline and package")
    add_options(parser, [COLOR])
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Carry out one action."""
    from probe_core.commands import CommandError

    if args.action in _NEEDS and not args.name:
        raise CommandError(f"{args.action} needs {_NEEDS[args.action]}")
    if args.action == "new":
        from probe_core.cli.plugins_new import run as write_new

        return write_new(args, context)
    if args.action == "run":
        from probe_core.cli.plugins_run import run as run_here

        return run_here(args, context)
    report = context.report()
    if args.name is not None:
        _refuse_unknown(args.name, report)
    if args.action == "why-not":
        return _why_not(args.name, report, context)
    if args.action == "check":
        return _check(args, report, context)
    status = _list(args, report, context)
    if not args.json:
        from probe_core.cli.printed import printed_lines

        for line in printed_lines(report["outcomes"]):
            context.out(line)
    return status


def _list(args: argparse.Namespace, report: ReportDoc, context: Context) -> int:
    decisions = [d for d in report["decisions"] if args.name in (None, d["prober"])]
    if args.json:
        context.json(decisions)
        return 0
    from probe_core.cli.plugin_list import grouped_lines, long_lines

    lines = long_lines if args.long else grouped_lines
    for line in lines(report, decisions, context):
        context.out(line)
    return 0


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
        for start, verdict in _verdicts(outcomes, mistakes):
            hanging = start if "|" in start else " " * len(start)
            for line in text.folded(verdict, context.width, start, hanging):
                context.out(line)
    return 0 if sound else 1


def _verdicts(outcomes: list[OutcomeDoc], mistakes: list[FindingDoc]) -> Iterator[tuple[str, str]]:
    """Yield what a paragraph begins with, and the paragraph."""
    for outcome in outcomes:
        mark = "ok  " if outcome["status"] in _SOUND else "FAIL"
        reason = f": {outcome['reason']}" if outcome["reason"] else ""
        devices = f", {_devices(outcome)}" if outcome["status"] == "ok" else ""
        spent = f" in {outcome['elapsed_ms']:.0f} ms" if outcome["status"] != "skipped" else ""
        name = f"{outcome['prober']} ({outcome['distribution']})"
        yield f"{mark} ", f"{name} {outcome['status']}{devices}{spent}{reason}"
        for line in outcome.get("stderr", ()):
            yield "     | ", line
    for finding in mistakes:
        yield "FAIL ", f"{finding['what']}: {finding['why']}; {finding['fix']}"


def _why_not(name: str, report: ReportDoc, context: Context) -> int:
    """Say in one paragraph why a plugin did not run, failed or reported nothing."""
    outcome = next(o for o in report["outcomes"] if o["prober"] == name)
    skipped = next((d["reason"] for d in report["decisions"] if d["prober"] == name), None)
    paragraph = " ".join(_explanation(outcome, skipped))
    for line in text.folded(paragraph, context.width):
        context.out(line)
    for stderr in outcome.get("stderr", ()):
        for line in text.folded(stderr, context.width, "  | "):
            context.out(line)
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
    return counted(outcome["devices"], "device")


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
