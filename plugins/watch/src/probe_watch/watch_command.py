"""`probe watch`: what the devices do now, on a screen, as lines, with alerts and for Prometheus."""

from __future__ import annotations

import sys
from functools import partial

from probe_core.commands import (
    CommandError,
    Option,
    add_options,
    add_probe_options,
    command_settings,
    probe_options,
    seconds_of,
)
from probe_watch.figures import NODE
from probe_watch.rounds import Intake

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc
    from probe_watch.alert_commands import AlertCommands
    from probe_watch.alerts import Alerts
    from probe_watch.app import WatchApp
    from probe_watch.node import Node
    from probe_watch.peer import Peer

HELP = """Show what the devices of this computer do now: load, memory, temperature, power.

On a terminal a screen is drawn, elsewhere a line is printed for each device and sample. Its keys
are in its last line, and ? explains all. What sleeps is not woken; what hangs is named."""

EXAMPLES = (
    ("probe watch", "the screen, a sample a second"),
    ("probe watch --json -n 60 > samples.jsonl", "a minute of samples for a program"),
    ("probe watch --interval 5 --on-alert 'logger -t gpu alert'", "run a command at each alert"),
    ("probe watch --listen 127.0.0.1:10935", "serve the figures for Prometheus as well"),
    ("probe watch --hosts desk,studio", "other computers, by ssh"),
    ("probe watch --json --all > day.jsonl", "record; --replay day.jsonl shows it again"),
)

LEAST_S, MOST_S = 0.1, 3600.0
_MOST_COUNT = 1_000_000_000

OWN_OPTIONS = (
    Option("interval", "SECONDS", "seconds between samples (default: 1; with --hosts 3 to 6)"),
    Option("count", "COUNT", "end after as many samples", short="-n"),
    Option("json", "", "a JSON object a line"),
    Option("all", "", "with --json: all fields of a sample"),
    Option("plain", "", "lines of text, also on a terminal"),
    Option("on-alert", "COMMAND", "run COMMAND at the start and end of an alert"),
    Option("peer", "HOST:PORT", "measure the latency of a TCP connection to it"),
    Option("listen", "HOST:PORT", "serve the samples for Prometheus as well"),
    Option(
        "hosts", "HOSTS", "other computers by ssh: a,b,c, a file of names or of `probe cluster`"
    ),
    Option("probe", "COMMAND", "with --hosts: what starts probe there (default: probe)"),
    Option("replay", "FILE", "show a file of `probe watch --json --all` again"),
    Option("readonly", "", "signal no process from the screen"),
)

OPTIONS = (*OWN_OPTIONS, *probe_options())
"""A line of these is read without argparse; ``--device`` may be repeated, which only that reads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, OWN_OPTIONS)
    parser.add_argument(
        "--device", metavar="ID", action="append", help="this device alone; may be repeated"
    )
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Watch until a count, a key or a signal; returns the exit status."""
    for option in ("machine", "static"):
        if getattr(args, option, None) is not None:
            sentence = "a recording has no live figures; `probe watch` samples this computer"
            raise CommandError(f"--{option}: {sentence}, so leave the option out")
    if args.hosts is not None or args.replay is not None:
        return _elsewhere(args, context)
    interval = _interval(args, 1.0)
    count = None if args.count is None else _whole(args.count)
    if args.all and not args.json:
        raise CommandError("--all adds fields to --json; give both")
    if args.plain and args.json:
        raise CommandError("--plain and --json are two forms of the same lines; give one")
    if sys.stdout is None and args.listen is None and args.on_alert is None:
        # As by `>&-`: it would run for ever, and nobody would see a sample.
        raise CommandError("standard output is closed; give --listen or --on-alert, or open it")
    commands = _commands(args.on_alert, context)
    alerts = _alerts(context, _peer(args.peer, interval))
    if args.listen is None:
        return _watch(args, context, (interval, count), Intake(alerts, commands))
    from probe_export.live import serving
    from probe_watch.metrics import Published

    published = Published(alerts, context)
    # Bound before anything is asked: a driver that hangs refuses no scrape.
    with serving(args.listen, published) as endpoint:
        context.err(f"probe watch: serving {endpoint.url}")
        intake = Intake(alerts, commands, published.publish)
        return _watch(args, context, (interval, count), intake)


def _watch(
    args: argparse.Namespace, context: Context, rhythm: tuple[float, int | None], intake: Intake
) -> int:
    picture = _picture(args, context)
    # Lines need no report: without it the first sample comes as soon as the samplers answer.
    report = context.report() if picture or _needs_report(args) else None
    chosen = _devices(getattr(args, "device", None), report)
    if chosen and intake.alerts.peer is not None:
        chosen.append(NODE)  # the latency is a figure of the node's

    order = (*rhythm, chosen, report)
    known = report["devices"] if report is not None else ()
    if picture:
        from socket import gethostname

        from probe_watch.node import Node, drivers
        from probe_watch.screen import local, run_screen

        node = Node("", intake.alerts)
        node.describe(known)
        node.about = [gethostname(), *drivers(known)]
        app = _app([node], args, rhythm[0], context)
        rounds = partial(context.samples_async, *order)
        return run_screen(app, local(rounds, node, intake), intake)
    from probe_watch.lines import Lines, run_lines

    devices = [d for d in known if chosen is None or d["id"] in chosen]
    lines = Lines(context, intake.alerts, json=args.json, full=args.all, devices=devices)
    return run_lines(partial(context.samples, *order), intake, lines)


def _app(
    nodes: Sequence[Node], args: argparse.Namespace, interval: float, context: Context
) -> WatchApp:
    from probe_watch.app import WatchApp
    from probe_watch.terminal import driver_class, is_monochrome

    theme = _settings(context).get("theme")
    return WatchApp(
        nodes,
        interval,
        colour=context.colour and not is_monochrome(context.environ["TERM"]),
        encodable=partial(drawn, context),
        theme=theme if isinstance(theme, str) else None,
        readonly=args.readonly,
        driver=driver_class(),
    )


def drawn(context: Context, text: str) -> str:
    """Return `text` as the terminal can show it: bars and frames, too."""
    from probe_watch.app import ASCII

    return context.encodable(text if context.encodable("█") == "█" else text.translate(ASCII))


def _elsewhere(args: argparse.Namespace, context: Context) -> int:
    """Show other computers, or a recording: on a screen alone, and without what is of here."""
    name = "hosts" if args.hosts is not None else "replay"
    of_here = ("json", "plain", "all", "on_alert", "listen", "peer", "count", "device")
    for option in (*of_here, *(("replay",) if name == "hosts" else ())):
        if getattr(args, option, None) not in (None, False):
            raise CommandError(f"--{name} does not go with --{option.replace('_', '-')}")
    if not _picture(args, context):
        raise CommandError(f"--{name} draws a screen, and this is no terminal for one")
    from probe_watch.node import Node
    from probe_watch.screen import Replay, remote, run_screen

    def made(host: str) -> Node:
        return Node(host, _alerts(context, None))

    if name == "replay":
        from probe_watch.recorded import Recording

        recording, node = Recording(args.replay), made("")
        app = _app([node], args, _interval(args, 1.0), context)
        return run_screen(app, Replay(recording, app).follow, Intake(node.alerts))
    from shlex import split

    from probe_watch.hosts import interval_for, names_of

    nodes = [made(host) for host in names_of(args.hosts)]
    interval = _interval(args, interval_for(len(nodes)))
    source = remote(interval, split(args.probe or "probe"))
    app = _app(nodes, args, interval, context)
    return run_screen(app, source, Intake(nodes[0].alerts))


def _interval(args: argparse.Namespace, default: float) -> float:
    text = f"{default:g}" if args.interval is None else args.interval
    return seconds_of("interval", text, LEAST_S, MOST_S)


def _whole(text: str) -> int:
    count = int(text) if text.isdecimal() and len(text) < 12 else 0
    if not 1 <= count <= _MOST_COUNT:
        raise CommandError(f"--count {text}: expected a whole number from 1")
    return count


def _commands(text: str | None, context: Context) -> AlertCommands | None:
    """Return what runs the words of `--on-alert`: split as a shell does it, by no other rule."""
    if text is None:
        return None
    import shlex
    from shutil import which

    from probe_watch.alert_commands import AlertCommands

    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise CommandError(f"--on-alert {text}: {str(error).lower()}") from None
    if not parts:
        raise CommandError("--on-alert: expected a program and its arguments")
    if which(parts[0]) is None:
        raise CommandError(f"--on-alert {parts[0]}: no such program; for a shell give sh -c '…'")
    return AlertCommands(parts, context.environ)


def _peer(text: str | None, interval: float) -> Peer | None:
    if text is None:
        return None
    from probe_watch.peer import Peer, place_of

    place = place_of(text)
    if place is None:
        raise CommandError(f"--peer {text}: expected HOST:PORT, such as desk:22")
    return Peer(place, interval)


def _alerts(context: Context, peer: Peer | None) -> Alerts:
    from probe_watch.alerts import Alerts, RuleError, rules_of

    table = _settings(context)
    try:
        for key in table:
            if key not in ("alerts", "theme"):
                raise RuleError(f"command.watch.{key} is no setting; there are alerts and theme")
        return Alerts(rules_of(table.get("alerts", {})), peer)
    except RuleError as error:
        raise CommandError(f"the file of settings: {error}") from None


def _settings(context: Context) -> Mapping[str, Any]:
    file = getattr(context.args, "config", None)
    return command_settings("watch", context.environ, file)


def _needs_report(args: argparse.Namespace) -> bool:
    """Return whether a probe is needed: to know devices by name, or to refuse a wrong option."""
    of_probing = (getattr(args, option.dest) for option in probe_options())
    typed = any(value not in (None, False) for value in of_probing)
    # A recording names its devices, which only a report can.
    return typed or args.all or getattr(args, "device", None) is not None


def _devices(names: Sequence[str] | None, report: ReportDoc | None) -> list[str] | None:
    """Return the ids of the devices that were named; raises `CommandError` for another name."""
    if not names or report is None:
        return None
    from probe_core.model.naming import named_by, short_ids

    listed = [device["ids"] for device in report["devices"]]
    chosen = []
    for name in names:
        places = named_by(name, listed)
        if name == NODE:
            chosen.append(NODE)
        elif not places:
            known = ", ".join(short_ids(device["id"] for device in report["devices"]).values())
            raise CommandError(f"--device {name}: no such device; there are {known}")
        chosen += [report["devices"][place]["id"] for place in places]
    return chosen


def _picture(args: argparse.Namespace, context: Context) -> bool:
    """Return whether a screen is drawn: on a terminal that can be, unless lines are asked for."""
    if args.json or args.plain or not context.terminal:
        return False
    import os

    return context.environ.get("TERM", "") not in ("", "dumb") and hasattr(os, "ttyname")
