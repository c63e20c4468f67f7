"""`probe exec`: run a command on devices that are free, and keep everybody else off them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from probe_core.commands import Context
    from probe_core.leasing import Lease
    from probe_core.model.document import ReportDoc

HELP = (
    "Run a command on devices that are free: visible here, and not leased by another process. The"
    " lease ends with the command. Exit status: the command's; 3 when no such devices are free;"
    " 126 or 127 when the command cannot be run."
)
UNMET, USAGE = 3, 2
"""Exit statuses: no such devices are free; a wrong command line. No shell gives 3 by itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe exec`."""
    from probe_core.commands.options import add_probe_options

    parser.add_argument("--gpus", "-n", type=int, metavar="N", help="how many devices (default: 1)")
    parser.add_argument(
        "--device",
        metavar="LIST",
        help="these devices: indices as the runtime counts, UUIDs or ids (0,2 or GPU-1a2b)",
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="free memory that each device must have (20GiB)"
    )
    parser.add_argument("--layout", metavar="NxM", help="divide the devices into N groups of M")
    parser.add_argument("--index", type=int, metavar="K", help="take group K of the layout, from 0")
    parser.add_argument(
        "--for",
        dest="runtime",
        metavar="RUNTIME",
        help="which runtime's indices are meant (cuda, hip …)",
    )
    parser.add_argument(
        "--share", action="store_true", help="shared mode: other `--share` commands use them too"
    )
    parser.add_argument(
        "--wait",
        nargs="?",
        type=float,
        const=float("inf"),
        default=0.0,
        metavar="SECONDS",
        help="queue until devices are free (without SECONDS: for ever)",
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
    from probe_core.commands import CommandError
    from probe_core.leasing.execute import CannotRun, replace, resolve

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    _check(args, command)
    if args.dry_run:
        return _dry_run(args, context)
    try:
        # The path first: a command that does not exist must not queue for devices.
        path = resolve(command[0], context.environ)
        lease = _leased(args, context, command)
        for line in _exclusions(lease.excluded):
            context.err(f"probe: exec {line}")
        lease.keep_on_exec()
        replace(path, command, lease.environ)
    except CannotRun as error:
        raise CommandError(f"exec: {error}", error.status) from None


def _check(args: argparse.Namespace, command: list[str]) -> None:
    from probe_core.commands import CommandError

    if not command and not args.dry_run:
        raise CommandError("exec: no command; write `probe exec --gpus 1 -- COMMAND`", USAGE)
    flags = [flag for flag in ("gpus", "device", "layout") if getattr(args, flag) is not None]
    if len(flags) > 1:
        raise CommandError(f"exec: --{flags[0]} and --{flags[1]} exclude each other", USAGE)
    if (args.layout is None) != (args.index is None):
        raise CommandError("exec: --layout and --index belong together", USAGE)
    if not args.wait >= 0:  # written so that NaN is refused
        raise CommandError("exec: --wait takes seconds, 0 or more", USAGE)


def _report(args: argparse.Namespace, context: Context) -> ReportDoc:
    report = context.report()
    if getattr(args, "machine", None):
        # A recorded machine's visibility is that of its own environment; the command gets ours.
        from probe_core.pipeline.refresh import refresh

        refresh(report, context.environ)
    return report


def _leased(args: argparse.Namespace, context: Context, command: list[str]) -> Lease:
    from probe_core.commands import CommandError
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
            runtime=args.runtime,
            report=_report(args, context),
            environ=context.environ,
            command=command,
            measure=lambda: _report(args, context),
            versions=versions(),
        )
    except SelectionError as error:
        raise CommandError(f"exec: {error}", USAGE if error.code == "syntax" else UNMET) from None
    except LeaseError as error:
        raise CommandError(f"exec: {error}", UNMET) from None


def _dry_run(args: argparse.Namespace, context: Context) -> int:
    """Print the environment that the command would get; the lease is released at once."""
    from probe_core.leasing.keys import OUTER_LEASE
    from probe_core.leasing.shell import lines

    with _leased(args, context, args.command) as lease:
        # The variable that names the lease would be about one that has ended.
        changes = {name: value for name, value in lease.changes.items() if name != OUTER_LEASE}
        for line in _exclusions(lease.excluded):
            context.out(f"# {line}")
        for line in lines(changes):
            context.out(line)
    return 0


def _exclusions(excluded: Mapping[str, str]) -> list[str]:
    from probe_core.cli.exclusions import exclusions

    return exclusions(excluded)
