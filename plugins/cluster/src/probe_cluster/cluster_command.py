"""`probe cluster`: the reports of many nodes through an engine that reaches them, and one view."""

from __future__ import annotations

from probe_cluster.network.options import add_network_options, network_of
from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import asyncio

    from probe_cluster.gathering.folder import Folder
    from probe_cluster.gathering.gathered import Gathered, Node
    from probe_cluster.gathering.model import Collector, Limits
    from probe_cluster.gathering.terminal import ProgressLine
    from probe_cluster.network.links import Network
    from probe_core.commands import Context

HELP = (
    "Gather the reports of many nodes at once, and show what each has and in what they differ."
    " Exit status 1 when a node is missing, or a pair could not be measured, and 130 after Ctrl-C,"
    " which shows what came."
)

EXAMPLES = (
    ("probe cluster ssh://desk,studio,alice@rock", "by ssh; nothing is installed there"),
    ("probe cluster --json --slurm -N 4 -p gpu", "by srun, with its options last"),
    ("probe cluster --output reports --kubectl app=probe", "one file for each node"),
    ("probe cluster --output reports --resume --hosts nodes", "ask those that are missing"),
    ("probe cluster --network --hosts desk,studio", "latency and bandwidth between them, too"),
)

_NO_NODE = 1

_INTERRUPTED = 130
"""128 + SIGINT, as shells write it."""

_SSH = "ssh://"

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
        " or what `probe cluster --json` wrote; or ssh://HOST,HOST",
    )
    group = parser.add_argument_group("engines")
    group.add_argument(
        "--hosts",
        metavar="HOSTS",
        help="by ssh: a,b,c or a file with a host on each line; ssh://a,b is the same",
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
    parser.add_argument(
        "--no-send",
        action="store_true",
        help="ask installed probes alone; else nodes without one are sent this one",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="write each report to DIR/NODE.json as it arrives"
    )
    parser.add_argument(
        "--resume", action="store_true", help="ask those alone whose report DIR does not have"
    )
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
    from probe_cluster.gathering.document import document_lines

    folder = _folder(args, collector)
    ended_by: list[int] = []
    gathered = _gathered(collector, limits, network, context, folder, ended_by, texts=args.json)
    if folder is not None:
        folder.close(gathered)
    for line in document_lines(gathered) if args.json else _table(gathered, context):
        context.out(line)
    if folder is not None and folder.problem is not None:
        raise folder.problem  # what was gathered was shown all the same
    if gathered.network_problem is not None:
        context.err(f"probe cluster: {gathered.network_problem}")
    if ended_by:
        return _ended(ended_by[0])
    return 0 if gathered.complete and gathered.all_measured else _NO_NODE


def _folder(args: argparse.Namespace, collector: Collector) -> Folder | None:
    """Return where the reports go. Raises `ClusterError`, before any node is asked."""
    if args.output is None:
        if args.resume:
            raise CommandError("cluster: --resume belongs to --output: it continues what is there")
        return None
    if args.resume and not getattr(collector, "resumes", False):
        raise CommandError(f"cluster: --resume: {collector.name} takes no list of nodes")
    from probe_cluster.gathering.folder import Folder

    return Folder(args.output, collector.name, resume=args.resume)


def _ended(number: int) -> int:
    """Return the exit status after Ctrl-C, and end by another signal as it would have ended."""
    import os
    import signal
    import sys

    if number == signal.SIGINT:
        return _INTERRUPTED
    sys.stdout.flush()
    os.kill(os.getpid(), number)  # its handler is the system's again
    return 128 + number


def _table(gathered: Gathered, context: Context) -> list[str]:
    from probe_cluster.gathering.terminal import table
    from probe_cluster.network.links import link_lines

    return [*table(gathered, context), *link_lines(gathered, context)]


def _gathered(
    collector: Collector,
    limits: Limits,
    network: Network | None,
    context: Context,
    folder: Folder | None,
    ended_by: list[int],
    *,
    texts: bool,
) -> Gathered:
    """Return what came; a signal ends the gather, and its number is put into `ended_by`."""
    import asyncio

    from probe_cluster.gathering.gathered import gather
    from probe_cluster.gathering.stopping import stopped_by_signals
    from probe_cluster.gathering.terminal import progress_line

    progress = progress_line(context.environ)

    def arrived(node: Node) -> None:
        if folder is not None:
            folder.take(node)
        if progress is not None:
            progress.arrived(node)

    async def gathered_and_measured() -> Gathered:
        stop = asyncio.Event()
        with stopped_by_signals(stop, ended_by):
            gathered = await gather(
                collector,
                limits=limits,
                progress=progress,
                texts=texts,
                arrived=arrived if folder is not None or progress is not None else None,
                known=folder.known if folder is not None else None,
                stop=stop,
            )
            if network is not None and not stop.is_set():
                await _measure(gathered, collector, network, limits, context, progress, stop)
            return gathered

    try:
        return asyncio.run(gathered_and_measured())
    finally:
        if progress is not None:
            progress.erase()


async def _measure(
    gathered: Gathered,
    collector: Collector,
    network: Network,
    limits: Limits,
    context: Context,
    progress: ProgressLine | None,
    stop: asyncio.Event,
) -> None:
    import asyncio

    from probe_cluster.network.measure import measure_links

    if progress is not None:
        progress.erase()
    work = asyncio.ensure_future(
        measure_links(
            gathered,
            collector,
            network,
            limits=limits,
            announce=lambda sentence: context.err(f"probe cluster: {sentence}"),
            progress=progress.pairs if progress is not None else None,
        )
    )
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({work, stopped}, return_when="FIRST_COMPLETED")
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
            gathered.network_problem = "interrupted before all pairs were measured"
        else:
            work.result()
    finally:
        stopped.cancel()


def _collector(args: argparse.Namespace) -> Collector:
    """Return the collector of the options; raises `CommandError` unless there is exactly one."""
    from probe_cluster import gathering

    options = [f"--{engine}" for engine in _ENGINES if getattr(args, engine) is not None]
    urls = [word for word in args.files if word.startswith(_SSH)]
    if len(options) + bool(args.files) != 1 or 0 < len(urls) < len(args.files):
        engines = ", ".join(f"--{engine}" for engine in _ENGINES)
        problem = "name the nodes once" if options or urls else "no nodes are named"
        raise CommandError(f"cluster: {problem}: FILE…, or one of {engines}")
    if args.kubectl is None and (args.namespace or args.container):
        raise CommandError("cluster: --namespace and --container belong to --kubectl")
    if args.hosts is not None or urls:
        from probe_cluster.gathering.ssh import parse_hosts

        hosts = ",".join(url.removeprefix(_SSH).rstrip("/") for url in urls) or args.hosts
        return gathering.Ssh(parse_hosts(hosts))
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
        send=not args.no_send and args.probe is None,
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
