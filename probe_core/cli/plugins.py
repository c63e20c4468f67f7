"""`probe plugins list`: what failed first, then what ran, then what was not needed and why."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.commands.options import JSON, SHARED_OPTIONS, Argument, Option, SubCommand
from probe_core.commands.tables import grid, grid_rows
from probe_core.model.ids import FAILURES
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import DecisionDoc, FindingDoc, OutcomeDoc, ReportDoc


BUILT_IN = ("bus", "cpu", "fallback")

_FAILED, _RAN, _UNNEEDED, _OFF = "Failed here", "Run here", "Not needed here", "Not run"
_STYLES = {_FAILED: "red", _RAN: "green"}


def grouped_lines(
    report: ReportDoc, decisions: Sequence[DecisionDoc], context: Context
) -> Iterator[str]:
    """Yield the plugins in groups, each with its version and the shortest reason."""
    groups: dict[str, list[tuple[str, str, str]]] = {
        name: [] for name in (_FAILED, _RAN, _UNNEEDED, _OFF)
    }
    outcomes = {(o["prober"], o["distribution"]): o for o in report["outcomes"]}
    summaries = _summaries()
    for decision in decisions:
        outcome = outcomes.get((decision["prober"], decision["distribution"]))
        group, note = _judged(decision, outcome)
        summary = summaries.get((decision["prober"], decision["distribution"]), "")
        name = f"{decision['prober']} {_version(decision)}".strip()
        groups[group].append((name, summary if group == _RAN else "", note))
    if len(decisions) == len(report["decisions"]):
        groups[_RAN].append((", ".join(BUILT_IN), "built in", "ok"))
    is_first = True
    for title, rows in groups.items():
        if rows:
            yield from () if is_first else ("",)
            yield text.paint(f"{title}:", "bold", context.colour)
            yield from _rows(rows, title, context)
            is_first = False
    if context.terminal:
        yield ""
        hint = ["`probe plugins why-not NAME` tells more", "`--long`: priority, deadline, package"]
        for line in text.listed(map(context.encodable, hint), context.width):
            yield text.paint(line, "dim", context.colour)


def _rows(rows: Sequence[tuple[str, str, str]], title: str, context: Context) -> Iterator[str]:
    """Yield the rows of a group; the note at the end of a line is coloured."""
    heads = ("", "SUMMARY", "NOTE")  # for the columns alone: they are not printed
    shown = [heads, *([context.encodable(cell) for cell in row] for row in rows)]
    wrap = "SUMMARY" if title == _RAN else "NOTE"
    lines = grid_rows(shown, context.width, wrap=wrap, indent="  ")
    style = "dim" if title == _UNNEEDED else None
    for (_, _, note), own in zip(shown[1:], lines[1:], strict=True):
        for line in own:
            if note and line.endswith(note) and title in _STYLES:
                line = line[: -len(note)] + text.paint(note, _STYLES[title], context.colour)
            yield text.paint(line, style, context.colour)


def _judged(decision: DecisionDoc, outcome: OutcomeDoc | None) -> tuple[str, str]:
    """Return the group of a plugin, and what to say of it there."""
    if not decision["selected"]:
        group = _UNNEEDED if decision["cause"] == "when" else _OFF
        return group, decision["reason"] or ""
    if outcome is None:
        return _RAN, ""
    if outcome["status"] in FAILURES or outcome["status"] == "unavailable":
        status = outcome["status"].replace("_", " ")
        return _FAILED, f"{status}: {outcome['reason']}" if outcome["reason"] else status
    if outcome["status"] == "not_applicable":
        return _UNNEEDED, outcome["reason"] or ""
    return _RAN, f"ok, {outcome['elapsed_ms']:.0f} ms"


def _version(decision: DecisionDoc) -> str:
    """Return the version in ``probe-acme 1.0``; empty for a prober of the host's."""
    return decision["distribution"].partition(" ")[2]


def _summaries() -> Mapping[tuple[str, str], str]:
    """Return what the manifests say of the installed plugins, by name and distribution."""
    from probe_core.registry.prober import discover

    probers, _ = discover({})
    return {(prober.name, prober.owner): prober.summary for prober in probers}


def long_lines(report: ReportDoc, decisions: Sequence[DecisionDoc], context: Context) -> list[str]:
    """Return the plugins as one table with what their authors ask about."""
    rows: list[tuple[str, ...]] = [("PLUGIN", "PACKAGE", "PRIORITY", "DEADLINE", "RUNS", "WHY NOT")]
    rows += [tuple(map(context.encodable, _long_row(decision))) for decision in decisions]
    if len(decisions) == len(report["decisions"]):
        rows += [(name, "probe-core", "", "", "built in", "") for name in BUILT_IN]
    return grid(rows, context.width, right=("PRIORITY", "DEADLINE"), wrap="WHY NOT")


def _long_row(decision: DecisionDoc) -> tuple[str, ...]:
    return (
        decision["prober"],
        decision["distribution"],
        str(decision["priority"]),
        f"{decision['deadline_s']:g} s",
        "yes" if decision["selected"] else "no",
        decision["reason"] or "",
    )


# `probe plugins new`: the files of a plugin, a warning for a name that is taken, next steps.

TEMPLATES = ("sysfs", "ctypes")
"""Kinds of probers that can be written; here, because reading options must not import them."""


def _new(args: argparse.Namespace, context: Context) -> int:
    """Write the plugin `args.name` below `args.folder`."""
    from probe_core.commands import CommandError
    from probe_core.testing.scaffold import INVENTED_VENDOR, taken, write

    warnings = list(taken(args.name))  # before it is written, or it would find itself
    vendor = args.pci or INVENTED_VENDOR
    try:
        files = write(args.name, args.folder, kind=args.template, vendor=vendor)
    except (OSError, ValueError) as error:
        raise CommandError(f"the plugin {args.name!r} was not written: {error}") from None
    for path in files:
        context.out(str(path))
    for warning in warnings:
        context.err(f"probe: warning: {warning}; rename yours unless it is to replace that")
    if args.pci is None:
        sentence = f"its PCI vendor id is {vendor}, an invented one: `--pci ID` sets yours"
        context.err(f"probe: note: {sentence}")
    for step in _next_steps(args):
        context.out(step)
    return 0


def _next_steps(args: argparse.Namespace) -> tuple[str, ...]:
    from pathlib import Path

    root = Path(args.folder) / f"probe-{args.name}"
    prober = root / "src" / f"probe_{args.name.replace('-', '_')}" / "prober.py"
    return (
        "next:",
        f'  pip install -e "{root.resolve()}[test]"',
        f"  python -m pytest {root}",
        f"  probe plugins run {prober}",
    )


# `probe plugins`: which plugins are installed, which are sound, and why one reported nothing.

HELP = "List, check and explain the installed plugins."
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


def _reported(args: argparse.Namespace, context: Context) -> ReportDoc:
    """Return the report; raises `CommandError` for a plugin that is not installed."""
    report = context.report()
    if args.name is not None:
        _refuse_unknown(args.name, report)
    return report


def run(args: argparse.Namespace, context: Context) -> int:
    """List all plugins: `probe plugins` alone."""
    args.name = None
    return _list(args, context)


def _list(args: argparse.Namespace, context: Context) -> int:
    """List the plugins, and whether they run."""
    report = _reported(args, context)
    decisions = [d for d in report["decisions"] if args.name in (None, d["prober"])]
    if args.json:
        context.json(decisions)
        return 0
    lines = long_lines if args.long else grouped_lines
    for line in lines(report, decisions, context):
        context.out(line)
    from probe_core.cli.table import printed_lines

    for line in printed_lines(report["outcomes"]):
        context.out(line)
    return 0


def _check(args: argparse.Namespace, context: Context) -> int:
    """Judge plugins by what running them shows; 1 when one is not sound."""
    report = _reported(args, context)
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


def _why_not(args: argparse.Namespace, context: Context) -> int:
    """Say in one paragraph why a plugin did not run, failed or reported nothing."""
    name, report = args.name, _reported(args, context)
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


def _run(args: argparse.Namespace, context: Context) -> int:
    """Run one prober in this process, for its author."""
    from probe_core.cli.plugins_run import run as run_here

    return run_here(args, context)


_NAME = Argument("name", "a plugin's name: this one alone", count="?")

SUB_COMMANDS = {
    "list": SubCommand(
        "all plugins and whether they run (the default)",
        "List the installed plugins, and whether they run here.",
        (
            _NAME,
            JSON,
            Option("long", "", "list priority, deadline and package"),
            *SHARED_OPTIONS,
        ),
        _list,
        (
            ("probe plugins list", "all of them, by what became of them"),
            ("probe plugins list --long", "with priority, deadline and package"),
        ),
    ),
    "check": SubCommand(
        "run all plugins, or one, and name their mistakes",
        "Run the plugins and judge what they do. Exit status: 0 all are sound, 1 one is not.",
        (_NAME, JSON, *SHARED_OPTIONS),
        _check,
        (
            ("probe plugins check", "all of them"),
            ("probe plugins check acme", "one alone"),
        ),
    ),
    "why-not": SubCommand(
        "why one did not run or reported nothing",
        "Say why a plugin did not run, failed or reported nothing.",
        (
            Argument("name", "a plugin's name", missing="why-not needs a plugin's name"),
            *SHARED_OPTIONS,
        ),
        _why_not,
        (
            ("probe plugins why-not nvidia", "here"),
            ("probe plugins why-not nvidia --machine machine.json", "on a recorded machine"),
        ),
    ),
    "run": SubCommand(
        "run one in this process, for its author",
        "Run one plugin in this process: what it prints appears at once, and no deadline ends it.",
        (
            Argument(
                "name",
                "a plugin's name, its module or its file",
                metavar="FILE.py",
                missing="run needs a file, module or name",
            ),
            Option("debug", "", "open pdb where it raises"),
            Option("isolated", "", "in a child with a deadline, as in a report"),
            JSON,
            *SHARED_OPTIONS,
        ),
        _run,
        (
            ("probe plugins run acme.py --debug", "a file; pdb opens where it raises"),
            ("probe plugins run nvidia --isolated", "an installed one, as in a report"),
        ),
    ),
    "new": SubCommand(
        "write a plugin to start from",
        "Write the files of a new plugin: a prober, its tests and its metadata.",
        (
            Argument("name", "its name", missing="new needs a plugin's name"),
            Option("folder", "FOLDER", "where to write (default: here)", absent="."),
            Option(
                "template",
                "TEMPLATE",
                "what it reads: files of a driver (default), or a vendor's C library",
                absent=TEMPLATES[0],
                choices=TEMPLATES,
            ),
            Option("pci", "ID", "PCI vendor id of its devices (10de)"),
        ),
        _new,
        (
            ("probe plugins new acme --pci 1ac0", "one that reads a driver's files"),
            ("probe plugins new acme --template ctypes", "one that calls a C library"),
        ),
    ),
}
"""The commands of `probe plugins`, each with its own arguments; the first is the default."""

ARGUMENTS = SUB_COMMANDS["list"].arguments[1:]
"""Those of `probe plugins list` but its name: a first word is a command's."""
