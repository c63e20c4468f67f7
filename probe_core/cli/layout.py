"""`probe layout`: the environment of each of several processes on this computer."""

from __future__ import annotations

from probe_core.commands.options import JSON, SHARED_OPTIONS, Argument, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.selection import Selection

HELP = (
    "Divide the visible devices into groups that are linked or near each other, always the same "
    "way, and print each process's environment. Takes no lease: `probe exec --layout` does."
)
EXAMPLES = (
    ("probe layout 4x2", "four processes of two devices each"),
    ("probe layout 4x2 --index 0", "the environment of the first alone"),
    ("probe layout 2x1 --for hip --json", "for a launcher"),
)


ARGUMENTS = (
    Argument("layout", "N processes of M devices each (4x2)", metavar="NxM"),
    Option("index", "K", "only process K, from 0", read=int),
    Option("memory", "SIZE", "free memory that each device must have"),
    Option(
        "for",
        "RUNTIME",
        "the runtime that the devices must be visible to (cuda, hip …)",
        dest="runtime",
    ),
    JSON,
    *SHARED_OPTIONS,
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Divide and print."""
    from probe_core.cli.refusals import check_layout, known_runtime, refusal
    from probe_core.pipeline.refresh import refresh
    from probe_core.selection import SelectionError, select

    check_layout(args.layout)
    runtime = known_runtime(args.runtime)
    report = context.report()
    refresh(report, {**context.recorded, **context.environ})
    try:
        selection = select(report, args.layout, memory=args.memory, runtime=runtime)
    except SelectionError as error:
        raise refusal(error) from None
    indices = _indices(args.index, len(selection.groups))
    return _print(args, context, report, selection, indices)


def _indices(index: int | None, count: int) -> Iterable[int]:
    from probe_core.commands import CommandError

    if index is None:
        return range(count)
    if not 0 <= index < count:
        raise CommandError(f"layout: there is no process {index}; 0 to {count - 1} exist", 3)
    return [index]


def _print(
    args: argparse.Namespace,
    context: Context,
    report: ReportDoc,
    selection: Selection,
    indices: Iterable[int],
) -> int:
    from probe_core.cli.table import exclusions, unconfined_line
    from probe_core.selection.environment import confine, lines, unconfined, versions

    environ = {**context.recorded, **context.environ}
    processes = []
    if not args.json:
        for line in exclusions(selection.excluded):
            context.out(f"# layout {line}")
    for index in indices:
        group = selection.groups[index]
        changes = confine(report, group, environ, versions=versions())
        devices = [device["id"] for device in group]
        processes.append({"index": index, "devices": devices, "set": changes})
        if not args.json:
            context.out(process_line(index, group, context))
            if free := unconfined(report, group):
                context.out(f"# layout {unconfined_line(free)}")
            for line in lines(changes):
                context.out(line)
    if args.json:
        runtime = selection.runtime
        document = {"layout": args.layout, "consumer": runtime, "instances": processes}
        context.json({**document, "excluded": selection.excluded})
    return 0


def process_line(index: int, group: Iterable[DeviceDoc], context: Context) -> str:
    """Return the comment that names the devices of a process, above its variables."""
    from probe_core.model.naming import nameless

    names = ", ".join(f"{own['id']} ({own['name'] or nameless(own)})" for own in group)
    return f"# process {index}: {context.encodable(names)}"
