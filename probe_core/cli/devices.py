"""`probe`: one table a person likes to read, or one JSON document for a script."""

from __future__ import annotations

from probe_core.commands.options import JSON, SHARED_OPTIONS, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

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

_FEW = 2
"""Devices with little in common: a CPU and one GPU. Of more, most are equal."""

EXAMPLES = (
    ("probe", "this computer at a glance"),
    ("probe doctor", "why is my GPU missing, and what fixes it"),
    ("probe --json | jq .devices", "the same facts for a script"),
    ("probe exec --gpus 2 -- python train.py", "run on two free GPUs, exclusively"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the report."""
    report = context.report()
    if args.json:
        context.json(report, _encoder(report))
    else:
        # A script that wants JSON does not pay for the table.
        from probe_core.cli.table import lines

        for line in lines(report, context):
            context.out(line)
        if any("stderr" in outcome for outcome in report["outcomes"]):
            from probe_core.cli.findings import printed_lines

            for line in printed_lines(report["outcomes"]):
                context.out(line)
    return 1 if args.strict and is_degraded(report) else 0


def _encoder(report: ReportDoc) -> Callable[[object], str] | None:
    if len(report["devices"]) <= _FEW:
        return None
    from probe_core.cli.json_report import write_report

    return write_report


def is_degraded(report: ReportDoc) -> bool:
    """Return whether something is wrong: the fallback stepped in, or a finding is an error."""
    errors = any(finding["severity"] == "error" for finding in report["findings"])
    return report["fallback"] == "degraded" or errors
