"""`probe cluster`: the reports of many nodes through an engine that reaches them, and one view."""

from __future__ import annotations

from probe_cluster.network.options import add_network_options, network_of
from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_cluster.gathering.gathered import Gathered
    from probe_cluster.gathering.model import Collector, Limits
    from probe_cluster.network.links import Network
    from probe_core.commands import Context

HELP = (
    "Gather the reports of many nodes at once, and show what each has and in what they differ."
    " Exit status 1 when a node is missing, or a pair could not be measured."
)

EXAMPLES = (
    ("probe cluster --hosts desk,studio,alice@rock", "by ssh"),
    ("probe cluster --json --slurm -N 4 -p gpu", "by srun, with its options last"),
    ("probe cluster --output reports --kubectl app=probe", "one file for each node"),
    ("probe cluster --network --hosts desk,studio", "latency and bandwidth between them, too"),
)

_NO_NODE = 1

_ENGINES = ("hosts", "slurm", "mpi", "kubectl", "ray")

_MOST_SECONDS = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe cluster`."""
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="what `probe --json` wrote on a node; desk=FILE gives the node an id;"
        " or what `probe cluster --json` wrote",
    )
    group = parser.add_argument_group("engines")
    group.add_argument(
        "--hosts", metavar="HOSTS", help="by ssh: a,b,c or a file with a host on each line"
    )
    group.add_argument("--kubectl", metavar="SELECTOR", help="pods with this label, by kubectl")
    group.add_argument("--namespace", metavar="NAME", help="with --kubectl: where the pods are")
    group.add_argument("--container", metavar="NAME", help="with --kubectl: which of a pod's")
    group.add_argument(
        "--ray",
        nargs="?",
        const="auto",
        metavar="ADDRESS",
        help="the nodes of a Ray cluster; without an address that of this computer",
    )
    for engine in ("slurm", "mpi"):
        launcher = "srun" if engine == "slurm" else "mpirun"
        group.add_argument(
            f"--{engine}",
            nargs="...",
            metavar="OPTION",
            help=f"by {launcher}; all that follows are its options, so write this one last",
        )
    add_network_options(parser)
    group = parser.add_argument_group("limits")
    group.add_argument("--timeout", metavar="SECONDS", help="of each node (30)")
    group.add_argument("--overall", metavar="SECONDS", help="of all nodes together")
    group.add_argument("--fanout", metavar="N", help="processes at once, by ssh and kubectl (64)")
    group.add_argument("--probe", metavar="COMMAND", help="what starts probe on a node (probe)")
    parser.add_argument("--output", metavar="DIR", help="write each report to DIR/NODE.json")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace, context: Context) -> int:
    """Gather, print, and return 1 when a node is missing."""
    from probe_cluster.shared import ClusterError

    try:
        collector, limits = _collector(args), _limits(args)
        network = _network(args, context, collector)
    except ClusterError as error:
        raise CommandError(f"cluster: {error}") from None
    try:
        return _run(args, context, collector, limits, network)
    except ClusterError as error:
        raise CommandError(f"cluster: {error}", _NO_NODE) from None


def _network(args: argparse.Namespace, context: Context, collector: Collector) -> Network | None:
    """Return what to measure. Raises `ClusterError` where the engine cannot, before it is asked."""
    if args.network is None:
        return network_of(args, {})
    from probe_cluster.network.measure import engine_of
    from probe_core.commands import command_settings

    engine_of(collector)
    return network_of(args, command_settings("cluster", context.environ))


def _run(
    args: argparse.Namespace,
    context: Context,
    collector: Collector,
    limits: Limits,
    network: Network | None,
) -> int:
    from probe_cluster.gathering.document import document_lines, make_folder, write_reports
    from probe_cluster.shared import ClusterError

    if args.output is not None:
        make_folder(args.output)
    texts = args.json or args.output is not None
    gathered = _gathered(collector, limits, network, context, texts=texts)
    unwritten = None
    if args.output is not None:
        try:
            write_reports(gathered, args.output)
        except ClusterError as error:
            unwritten = error  # what was gathered is shown all the same
    for line in document_lines(gathered) if args.json else _table(gathered, context):
        context.out(line)
    if unwritten is not None:
        raise unwritten
    if gathered.network_problem is not None:
        context.err(f"probe cluster: {gathered.network_problem}")
    return 0 if gathered.complete and gathered.all_measured else _NO_NODE


def _table(gathered: Gathered, context: Context) -> list[str]:
    from probe_cluster.gathering.terminal import table
    from probe_cluster.network.links import link_lines

    return [*table(gathered, context), *link_lines(gathered, context)]


def _gathered(
    collector: Collector,
    limits: Limits,
    network: Network | None,
    context: Context,
    *,
    texts: bool,
) -> Gathered:
    import asyncio

    from probe_cluster.gathering.gathered import gather
    from probe_cluster.gathering.terminal import progress_line

    progress = progress_line(context.environ)
    ended_by: list[int] = []

    async def gathered_and_measured() -> Gathered:
        _cancel_at_signals(ended_by)
        gathered = await gather(collector, limits=limits, progress=progress, texts=texts)
        if network is not None:
            from probe_cluster.network.measure import measure_links

            if progress is not None:
                progress.erase()
            await measure_links(
                gathered,
                collector,
                network,
                limits=limits,
                announce=lambda sentence: context.err(f"probe cluster: {sentence}"),
                progress=progress.pairs if progress is not None else None,
            )
        return gathered

    try:
        return asyncio.run(gathered_and_measured())
    except asyncio.CancelledError:
        import os

        if ended_by:  # by its own signal, whose handler is the system's again
            os.kill(os.getpid(), ended_by[0])
        raise
    finally:
        if progress is not None:
            progress.erase()


def _cancel_at_signals(ended_by: list[int]) -> None:
    """Let SIGTERM and SIGHUP end the engine's processes, too: each has a session of its own."""
    import asyncio
    import signal
    from contextlib import suppress

    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def end(number: int) -> None:
        ended_by.append(number)
        if task is not None:
            task.cancel()

    for name in ("SIGTERM", "SIGHUP"):
        # Windows has no such loop, and threads other than the main one no signals.
        with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
            number = getattr(signal, name)
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
                loop.add_signal_handler(number, end, number)


def _collector(args: argparse.Namespace) -> Collector:
    """Return the collector of the options; raises `CommandError` unless there is exactly one."""
    from probe_cluster import gathering

    options = [f"--{engine}" for engine in _ENGINES if getattr(args, engine) is not None]
    if len(options) + bool(args.files) != 1:
        engines = ", ".join(f"--{engine}" for engine in _ENGINES)
        problem = "name the nodes once" if options else "no nodes are named"
        raise CommandError(f"cluster: {problem}: FILE…, or one of {engines}")
    if args.kubectl is None and (args.namespace or args.container):
        raise CommandError("cluster: --namespace and --container belong to --kubectl")
    if args.hosts is not None:
        from probe_cluster.gathering.ssh import parse_hosts

        return gathering.Ssh(parse_hosts(args.hosts))
    if args.slurm is not None:
        return gathering.Slurm(args.slurm)
    if args.mpi is not None:
        return gathering.Mpi(args.mpi)
    if args.kubectl is not None:
        return gathering.Kubectl(args.kubectl, namespace=args.namespace, container=args.container)
    if args.ray is not None:
        return gathering.Ray(args.ray)
    return gathering.Files(args.files)


def _limits(args: argparse.Namespace) -> Limits:
    import shlex

    from probe_cluster.gathering.model import FANOUT, NODE_S, Limits

    try:
        command = tuple(shlex.split(args.probe or "probe"))
    except ValueError as error:
        raise CommandError(f"cluster: --probe {args.probe}: {error}") from None
    if not command:
        raise CommandError("cluster: --probe is empty; write the path of probe")
    return Limits(
        node=_seconds("timeout", args.timeout) or NODE_S,
        overall=_seconds("overall", args.overall),
        fanout=_fanout(args.fanout) if args.fanout is not None else FANOUT,
        command=command,
    )


def _seconds(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= _MOST_SECONDS:
        raise CommandError(f"cluster: --{option} {text}: write seconds, 0.1 to 86400")
    return seconds


def _fanout(text: str) -> int:
    if not (text.isdecimal() and len(text) < 5 and int(text) > 0):
        raise CommandError(f"cluster: --fanout {text}: write a number from 1 to 9999")
    return int(text)
