"""`probe exec`: run a command on devices that are free, and keep everybody else off them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from probe_core.cli.context import Context
    from probe_core.leasing import Lease

NAME = "exec"
HELP = (
    "Run a command on devices that are free: visible here, and leased by nobody else. The lease "
    "ends with the command. Exit status: the command's; 3 when the devices cannot be had; 126 or "
    "127 when the command cannot be run."
)
UNMET, USAGE = 3, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe exec`."""
    from probe_core.cli.options import add_probe_options

    parser.add_argument("--gpus", "-n", type=int, metavar="N", help="how many devices (default: 1)")
    parser.add_argument(
        "--device",
        metavar="SEL",
        help="these devices: numbers as the runtime counts them, UUIDs or ids (0,2 or GPU-1a2b)",
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="free memory that each device must have (20GiB)"
    )
    parser.add_argument("--layout", metavar="NxM", help="divide the devices into N groups of M")
    parser.add_argument("--index", type=int, metavar="K", help="take group K of the layout, from 0")
    parser.add_argument(
        "--for", dest="consumer", metavar="RUNTIME", help="whose numbers count (cuda, hip …)"
    )
    parser.add_argument(
        "--share", action="store_true", help="let others that share use the devices too"
    )
    parser.add_argument(
        "--wait",
        nargs="?",
        type=float,
        const=float("inf"),
        default=0.0,
        metavar="SECONDS",
        help="queue until devices are free (for ever without SECONDS)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be set, as shell lines"
    )
    parser.add_argument(
        "command", nargs="...", metavar="-- COMMAND", help="the command and its arguments"
    )
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Lease, set the environment, and become the command."""
    from probe_core.cli.context import CommandError
    from probe_core.leasing.execute import CannotRun, replace, resolve

    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    _check(args, words)
    if args.dry_run:
        return _dry_run(args, context)
    try:
        path = resolve(words[0], context.environ)
        held = _held(args, context, words)
        held.keep_on_exec()
        replace(path, words, held.environ)
    except CannotRun as error:
        raise CommandError(f"exec: {error}", error.status) from None


def _check(args: argparse.Namespace, words: list[str]) -> None:
    from probe_core.cli.context import CommandError

    if not words and not args.dry_run:
        raise CommandError("exec: no command; write `probe exec --gpus 1 -- COMMAND`", USAGE)
    given = [flag for flag in ("gpus", "device", "layout") if getattr(args, flag) is not None]
    if len(given) > 1:
        raise CommandError(f"exec: --{given[0]} and --{given[1]} exclude each other", USAGE)
    if (args.layout is None) != (args.index is None):
        raise CommandError("exec: --layout and --index belong together", USAGE)
    if not args.wait >= 0:
        raise CommandError("exec: --wait takes seconds, 0 or more", USAGE)


def _document(args: argparse.Namespace, context: Context) -> dict[str, Any]:
    document = context.report()
    if getattr(args, "machine", None):  # a recorded machine was seen through its own environment
        from probe_core.pipeline.refresh import refresh

        refresh(document, context.environ)
    return document


def _held(args: argparse.Namespace, context: Context, words: list[str]) -> Lease:
    from probe_core.cli.context import CommandError
    from probe_core.leasing import LeaseError, SelectionError, lease
    from probe_core.selection.for_tinygrad import versions

    try:
        return lease(
            args.gpus,
            args.device if args.layout is None else args.layout,
            index=args.index,
            memory=args.memory,
            share=args.share,
            wait=True if args.wait == float("inf") else args.wait,
            runtime=args.consumer,
            report=_document(args, context),
            environ=context.environ,
            command=words,
            measure=lambda: _document(args, context),
            versions=versions(),
        )
    except SelectionError as error:
        raise CommandError(f"exec: {error}", USAGE if error.code == "syntax" else UNMET) from None
    except LeaseError as error:
        raise CommandError(f"exec: {error}", UNMET) from None


def _dry_run(args: argparse.Namespace, context: Context) -> int:
    """Print the environment that the command would get; the lease is given back at once."""
    from probe_core.leasing.keys import OUTER_LEASE
    from probe_core.leasing.shell import lines

    with _held(args, context, args.command) as held:
        for line in lines({k: v for k, v in held.changes.items() if k != OUTER_LEASE}):
            context.out(line)
    return 0
