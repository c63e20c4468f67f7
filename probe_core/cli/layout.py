"""`probe layout`: the environment of each of several instances on this node."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from probe_core.cli.context import Context
    from probe_core.selection import Selection

NAME = "layout"
HELP = (
    "Divide the visible devices into groups that are linked or near each other, always the same "
    "way, and print each instance's environment. Takes no lease: `probe exec --layout` does."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe layout`."""
    from probe_core.cli.options import add_probe_options

    parser.add_argument("layout", metavar="NxM", help="N instances of M devices each (4x2)")
    parser.add_argument("--index", type=int, metavar="K", help="only instance K, from 0")
    parser.add_argument("--memory", metavar="SIZE", help="free memory that each device must have")
    parser.add_argument("--for", dest="consumer", metavar="RUNTIME", help="whose numbers count")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Divide and print."""
    from probe_core.cli.context import CommandError
    from probe_core.pipeline.refresh import refresh
    from probe_core.selection import SelectionError, select

    groups, _, size = args.layout.partition("x")
    if not (groups + size).isdecimal() or not groups or not size:
        raise CommandError(f"layout: {args.layout!a} is no layout; write it as 4x2", 2)
    document = context.report()
    refresh(document, context.environ)
    try:
        found = select(document, args.layout, memory=args.memory, runtime=args.consumer)
    except SelectionError as error:
        raise CommandError(f"layout: {error}", 2 if error.code == "syntax" else 3) from None
    wanted = range(len(found.groups)) if args.index is None else [args.index]
    if args.index is not None and not 0 <= args.index < len(found.groups):
        last = len(found.groups) - 1
        raise CommandError(f"layout: there is no instance {args.index}; 0 to {last} exist", 3)
    return _print(args, context, document, found, wanted)


def _print(
    args: argparse.Namespace,
    context: Context,
    document: Any,
    found: Selection,
    wanted: Sequence[int],
) -> int:
    from probe_core.leasing.shell import lines
    from probe_core.selection.environment import confine
    from probe_core.selection.for_tinygrad import versions

    said = []
    for index in wanted:
        group = found.groups[index]
        changes = confine(document, group, context.environ, versions=versions())
        said.append({"index": index, "devices": [one["id"] for one in group], "set": changes})
        if not args.json:
            names = ", ".join(f"{one['id']} ({one.get('name')})" for one in group)
            context.out(f"# instance {index}: {names}")
            for line in lines(changes):
                context.out(line)
    if args.json:
        context.json({"layout": args.layout, "consumer": found.runtime, "instances": said})
    return 0
