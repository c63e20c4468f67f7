"""`probe`: one table a person likes to read, or one JSON document for a script."""

from __future__ import annotations

from probe_core.commands.options import JSON, SHARED_OPTIONS, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc


HELP = "Show the devices of this computer: accelerators, CPU, available memory and peak FLOPS."

ARGUMENTS = (
    JSON,
    Option("strict", "", "exit with 1 when something is wrong"),
    Option("all", "", "also list display adapters, which cannot compute"),
    *SHARED_OPTIONS,
)
"""All arguments but those that end the process: with these alone argparse is not imported."""

EXAMPLES = (
    ("probe", "this computer at a glance"),
    ("probe doctor", "why is my GPU missing, and what fixes it"),
    ("probe --json | jq .devices", "the same facts for a script"),
    ("probe exec --gpus 2 -- python train.py", "run on two free GPUs, exclusively"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the report."""
    # A script that wants JSON does not pay for the table.
    report = context.report(None if args.json else _import_table)
    if args.json:
        context.json(report, shared=("devices", "peaks", "sources"))
    else:
        from probe_core.cli.table import lines, printed_lines

        for line in (*lines(report, context), *printed_lines(report["outcomes"])):
            context.out(line)
    return 1 if args.strict and (has_failed(report) or _is_unchecked(report)) else 0


def _is_unchecked(report: ReportDoc) -> bool:
    """Return whether somebody expects what no chip is called, so that it was not compared."""
    expected = report.get("expected")
    return expected is not None and bool(expected.get("unknown"))  # a static report may lack it


def _import_table() -> None:
    """Import what prints the report, in the time that plugins take to answer."""
    import probe_core.cli.table  # noqa: F401


def has_failed(report: ReportDoc) -> bool:
    """Return whether somebody should act: see `NodeVerdict.failed`."""
    from probe_core.model.verdict import NodeVerdict

    return NodeVerdict(report).failed
