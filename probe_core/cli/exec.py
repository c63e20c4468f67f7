"""`probe exec`: run a command on devices that are free, and keep everybody else off them."""

from __future__ import annotations

from probe_core.commands.options import SHARED_OPTIONS, Argument, Option, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_core.commands import Context
    from probe_core.leasing import Lease
    from probe_core.model.document import DeviceDoc, FindingDoc, ReportDoc

HELP = (
    "Run a command on devices that are free: visible here, not leased by another process, and not"
    " in use outside any lease. The lease ends with the last process that the command started."
    " Exit status: the command's; 3 when no such devices are free; 126 or 127 when the command"
    " cannot be run. In a service of systemd the command gets its sockets and watchdog"
    " (LISTEN_PID, WATCHDOG_PID); the main process is `probe exec`, so that NotifyAccess= has to be"
    " all, and a PIDFile= is not kept."
)
UNMET, USAGE = 3, 2
"""Exit statuses: no such devices are free; a wrong command line. No shell gives 3 by itself."""

NEXT = "next"
"""The index of the first group that is free."""


def _index(text: str) -> int | str:
    if text == NEXT:
        return NEXT
    if not text.isdecimal():
        raise ValueError(f"not a number from 0 on, or `{NEXT}`")
    return int(text)


_WHICH = under(
    "which devices",
    Option("gpus", "N", "how many devices (default: 1)", short="-n", read=int),
    Option(
        "device",
        "LIST",
        "these devices: indices as the runtime counts, UUIDs or ids (0,2 or 0-3 or GPU-1a2b)",
    ),
    Option("memory", "SIZE", "free memory that each device must have (20GiB)"),
    Option("reserve", "SIZE", "lease this much memory of each device, and leave others the rest"),
    Option("layout", "NxM", "divide the devices into N groups of M"),
    Option("index", "K", "take group K of the layout, from 0; or the `next` free one", read=_index),
    Option("all", "", "run the command once in each group of the layout"),
    Option("for", "RUNTIME", "which runtime's indices are meant (cuda, hip …)", dest="runtime"),
)
_HOW = under(
    "how",
    Option(
        "style",
        "STYLE",
        "name devices by uuid or index; auto (default): by what the command can read",
        absent="auto",
        choices=("auto", "uuid", "index"),
    ),
    Option(
        "share",
        "",
        "shared mode: other `--share` commands, and processes without a lease, use them too",
        alias="--shared",
    ),
    Option(
        "wait",
        "SECONDS",
        "queue until devices are free (without SECONDS: for ever)",
        absent=0.0,
        read=float,
        bare=float("inf"),
    ),
    Option(
        "require-working",
        "",
        "first open the devices as the command would; exit with 3 where that fails",
    ),
    Option("dry-run", "", "print what would be set, as shell lines"),
)
_COMMAND = Argument(
    "command", "the command and its arguments", count="...", metavar="-- COMMAND [ARGUMENTS]"
)
ARGUMENTS = (*_WHICH, *_HOW, _COMMAND, *SHARED_OPTIONS)
EXAMPLES = (
    ("probe exec -- python train.py", "one GPU"),
    ("probe exec -n 2 --memory 20GiB -- python train.py", "two with 20 GiB free each"),
    ("probe exec --device 0,2 -- ./server", "these, as the runtime counts them"),
    ("probe exec --wait 600 -- make bench", "queue for up to ten minutes"),
    ("probe exec -n 2 --dry-run", "only print the variables"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Lease, set the environment, and run the command until it ends."""
    from probe_core.cli.refusals import refuse_without_locks

    refuse_without_locks()
    from probe_core.commands.context import CommandError
    from probe_core.leasing.execute import CannotRun, replace, resolve

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    _check(args, command)
    if args.dry_run:
        return _dry_run(args, context, command)
    try:
        # The path first: a command that does not exist must not queue for devices.
        path = resolve(command[0], context.environ)
        lease = _leased(args, context, command)
        _require_working(args, lease, path, command)
        from probe_core.leasing.keeper import can_keep
        from probe_core.leasing.keeper import run as keep

        programs = [(path, command, environ) for environ in _environments(args, lease)]
        if can_keep():
            keep(lease.kept, programs)
        if len(programs) > 1:
            raise CannotRun("--all needs Linux", USAGE)
        lease.keep_on_exec()
        replace(path, command, lease.environ)
    except CannotRun as error:
        raise CommandError(f"exec: {error}", error.status) from None


def _check(args: argparse.Namespace, command: list[str]) -> None:
    from probe_core.commands.context import CommandError

    if not command and not args.dry_run:
        raise CommandError("exec: no command; write `probe exec --gpus 1 -- COMMAND`", USAGE)
    for group in (("gpus", "device", "layout"), ("index", "all"), ("share", "reserve")):
        values = {flag: getattr(args, flag) for flag in group}
        flags = [flag for flag, value in values.items() if value is not None and value is not False]
        if len(flags) > 1:
            raise CommandError(f"exec: --{flags[0]} and --{flags[1]} exclude each other", USAGE)
    if args.layout is None and (args.index is not None or args.all):
        flag = "all" if args.all else "index"
        raise CommandError(f"exec: --layout and --{flag} belong together", USAGE)
    if args.runtime is not None:
        from probe_core.cli.refusals import known_runtime

        known_runtime(args.runtime)
    if args.layout is not None:
        from probe_core.cli.refusals import check_layout

        check_layout(args.layout)
    if args.layout is not None and args.index is None and not args.all:
        raise CommandError(
            "exec: --layout needs --index K, --index next for the first free group, or --all", USAGE
        )
    if not args.wait >= 0:  # written so that NaN is refused
        raise CommandError("exec: --wait takes seconds, 0 or more", USAGE)


def _prepared(command: list[str], environ: Mapping[str, str]) -> Mapping[str, str]:
    """Do what needs no report, and return what `versions` does.

    While a library answers it takes no time of its own.
    """
    import probe_core.leasing.keeper
    import probe_core.leasing.obtain  # noqa: F401
    from probe_core.fastpath import call_c
    from probe_core.selection.interpreter import versions

    call_c("getpid")  # the first call loads what calls C
    return versions(command, environ)


def _report(
    args: argparse.Namespace, context: Context, meanwhile: Callable[[], None] | None = None
) -> ReportDoc:
    report = context.report(meanwhile)
    if getattr(args, "machine", None):
        # A recorded machine's visibility is that of its own environment; the command gets ours.
        from probe_core.pipeline.refresh import refresh

        refresh(report, context.environ)
    return report


def _leased(args: argparse.Namespace, context: Context, command: list[str]) -> Lease:
    installed: list[Mapping[str, str]] = []

    def prepare() -> None:
        installed.append(_prepared(command, context.environ))

    report = _report(args, context, prepare)  # before the imports
    if not installed:
        prepare()
    from probe_core.cli.refusals import refusal
    from probe_core.commands.context import CommandError
    from probe_core.leasing import LeaseError
    from probe_core.leasing.obtain import hand_out
    from probe_core.selection import SelectionError
    from probe_core.selection.environment import unconfined
    from probe_core.selection.request import Request

    request = Request(
        args.gpus,
        args.device if args.layout is None else args.layout,
        index=args.index,
        memory=args.memory,
        share=bool(args.share),
        reserve=args.reserve,
        avoids=not args.share,
        runtime=args.runtime,
    )
    try:
        leased = hand_out(
            report,
            request,
            dict(context.environ),
            wait=args.wait,
            command=command,
            measure=lambda: _report(args, context),
            versions=installed[0],
            style=args.style,
        )
    except SelectionError as error:
        _show(report["findings"], (), context)
        raise refusal(error) from None
    except LeaseError as error:
        raise CommandError(f"exec: {error}", UNMET) from None
    free = unconfined(report, leased.devices)
    if free:
        from probe_core.cli.table import unconfined_line

        line = unconfined_line(free)
        context.out(f"# {line}") if args.dry_run else context.err(f"probe: exec {line}")
    if not args.dry_run:
        _show(report["findings"], leased.ids, context)
        for line in _exclusions(leased.excluded):
            context.err(f"probe: exec {line}")
        for note in leased.kept.folder.notes:
            context.err(f"probe: exec {note}")
    return leased


def _show(findings: Iterable[FindingDoc], devices: Iterable[str], context: Context) -> None:
    """Tell what failed before the command runs: about the probe itself, and about its devices."""
    ids = {None, *devices}
    shown = [f for f in findings if f["severity"] != "info" and f.get("device") in ids]
    if not shown:
        return
    from probe_core.cli.table import finding_lines
    from probe_core.commands.context import Context

    plain = Context(environ={**context.environ, "NO_COLOR": "1"})
    for line in finding_lines(shown, plain):
        if line:
            context.err(line)


def _require_working(args: argparse.Namespace, lease: Lease, path: str, command: list[str]) -> None:
    if not args.require_working:
        return
    from probe_core.cli.trial import try_devices
    from probe_core.commands.context import CommandError

    problem = try_devices(lease, path, command)
    if problem is not None:
        lease.release()
        raise CommandError(f"exec: {problem}", UNMET)


def _groups(args: argparse.Namespace, lease: Lease) -> list[Sequence[DeviceDoc]]:
    size = int(args.layout.lower().rpartition("x")[2])
    return [lease.devices[at : at + size] for at in range(0, len(lease.devices), size)]


def _environments(args: argparse.Namespace, lease: Lease) -> list[Mapping[str, str]]:
    """Return the environment of each process to start: of every group of a layout, or of one."""
    if not args.all:
        return [lease.environ]
    groups = _groups(args, lease)
    numbered = {"PROBE_INSTANCES": str(len(groups))}
    return [
        {**lease.environ_of(group), **numbered, "PROBE_INSTANCE": str(number)}
        for number, group in enumerate(groups)
    ]


def _dry_run(args: argparse.Namespace, context: Context, command: list[str]) -> int:
    """Print the environment that the command would get; the lease is released at once."""
    with _leased(args, context, command) as lease:
        for line in _exclusions(lease.excluded):
            context.out(f"# {line}")
        if not args.all:
            _print_changes(lease.changes, context)
            return 0
        from probe_core.cli.layout import process_line

        environments = _environments(args, lease)
        for number, group in enumerate(_groups(args, lease)):
            context.out(process_line(number, group, context))
            _print_changes(_differences(context.environ, environments[number]), context)
    return 0


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    names = sorted(before.keys() | after.keys())
    return {name: after.get(name) for name in names if after.get(name) != before.get(name)}


def _print_changes(changes: Mapping[str, str | None], context: Context) -> None:
    from probe_core.leasing.ranges import OUTER_LEASE
    from probe_core.leasing.records import MARK
    from probe_core.selection.environment import lines

    # The variables that name the lease would be about one that has ended.
    own = (OUTER_LEASE, MARK)
    for line in lines({name: value for name, value in changes.items() if name not in own}):
        context.out(line)


def _exclusions(excluded: Mapping[str, str]) -> list[str]:
    if not excluded:
        return []
    from probe_core.cli.table import exclusions

    return exclusions(excluded)
