"""`probe export FORMAT`: this node in the form that another system reads."""

from __future__ import annotations

from probe_core.commands import (
    CommandError,
    Option,
    add_options,
    add_probe_options,
    probe_options,
    replace_named_file,
    seconds_of,
)
from probe_export import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc
    from probe_export.installed import Exporter, Format, Rules

HELP = "Write this node in the form that another system reads: a scheduler, a monitor, a shell."

EXAMPLES = (
    ("probe export --list", "the formats"),
    ("probe export nfd --output features.d/probe", "labels of a Kubernetes node"),
    ("probe export prometheus --listen 127.0.0.1:10935", "an endpoint for Prometheus"),
    ("probe export ray", "options for `ray start`: the GPUs that work"),
)

_LEAST_SECONDS, _MOST_SECONDS = 1, 86_400.0

_MODE = 0o644
"""Of the file: node_exporter and nfd-worker run as users of their own."""


OWN_OPTIONS = (
    Option("list", "", "print the formats"),
    Option("output", "FILE", "replace FILE in one step, mode 0644"),
    Option("watch", "SECONDS", "with --output: again and again"),
    Option("listen", "HOST:PORT", "serve /metrics over HTTP: prometheus"),
)

OPTIONS = (*OWN_OPTIONS, *probe_options())
"""With `POSITIONAL` all that a sound command line has: the core reads that without argparse."""

POSITIONAL = "format"

_WITH_FIGURES = "probe_export.prometheus:export"
"""The format whose endpoint serves samples beside the report."""

BRIEF = True
"""No thread and no open file is left at its end. What runs for long collects garbage again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe export`."""
    from probe_export.installed import format_names

    parser.add_argument(
        "format",
        nargs="?",
        choices=format_names(),
        metavar="FORMAT",
        help="one of --list",
    )
    add_options(parser, OWN_OPTIONS)
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the text once, or until a signal ends it."""
    if args.list:
        return _list(args, context)
    seconds = None
    if args.watch is not None:
        seconds = seconds_of("watch", args.watch, _LEAST_SECONDS, _MOST_SECONDS)
    if args.format is None:
        raise CommandError("name a format; `probe export --list` prints them")
    from probe_export.installed import installed_formats, load

    formats, _ = installed_formats(_rules(args, context), args.format)
    export = load(args.format, formats)
    if args.listen is not None:
        return _serve(args, context, formats[args.format], export)
    if args.output == "":
        raise CommandError("--output is empty; name a file")
    if args.output is not None:
        return _write(args.output, seconds, context, _lapsing(formats, args, seconds, export))
    if seconds is not None:
        raise CommandError("--watch replaces a file; name it with --output FILE")
    context.out(export(context.report()).removesuffix("\n"))
    return 0


def _list(args: argparse.Namespace, context: Context) -> int:
    from probe_core.commands import columns
    from probe_export.installed import installed_formats

    formats, notes = installed_formats(_rules(args, context))
    rows = [(name, entry.summary) for name, entry in formats.items() if entry.problem is None]
    for line in columns(rows, context.width, flexible=1) if rows else ():
        context.out(line)
    for note in notes:
        context.err(f"probe export: {note}")
    return 0


def _rules(args: argparse.Namespace, context: Context) -> Rules:
    from probe_core.commands import plugin_rules

    options = {} if args.allow is None else {"allow": args.allow}
    try:
        return plugin_rules(options, context.environ, args.config)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _lapsing(
    formats: dict[str, Format], args: argparse.Namespace, seconds: float | None, export: Exporter
) -> Exporter:
    """Return `export` with the line that lets its text lapse, where the format has such a line.

    Three periods: two writes may fail before a reader forgets the node.
    """
    line = formats[args.format].expiry
    if seconds is None or not line:
        return export

    def dated(report: ReportDoc) -> str:
        from time import gmtime, strftime, time

        end = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time() + 3 * seconds))
        return f"{line.replace('{time}', end)}\n{export(report)}"

    return dated


def _write(path: str, seconds: float | None, context: Context, export: Exporter) -> int:
    if seconds is None:
        _replace(path, export(context.report()))
        return 0
    import gc

    from probe_export.ending import pause, until_signal

    gc.enable()
    with until_signal():
        while True:
            try:
                _replace(path, export(context.report()))
            except ExportError as error:
                # A full disk may have room again: the file that is there stays.
                context.err(f"probe export: {error}")
            pause(seconds)
    return 0


def _replace(path: str, text: str) -> None:
    try:
        replace_named_file(path, text.encode(), mode=_MODE)
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}", 2) from None


def _not_served(args: argparse.Namespace, context: Context) -> str:
    from probe_core.wording import joined
    from probe_export.installed import installed_formats

    formats, _ = installed_formats(_rules(args, context))
    served = [name for name, entry in formats.items() if entry.content_type]
    return f"--listen serves {joined(served, 'and')} alone, not {args.format}"


def _serve(args: argparse.Namespace, context: Context, chosen: Format, export: Exporter) -> int:
    if not chosen.content_type:
        raise CommandError(_not_served(args, context))
    if args.output is not None or args.watch is not None:
        raise CommandError("--listen takes neither --output nor --watch")
    import gc

    from probe_export.live import serve_node, serve_text

    def text() -> str:
        try:
            return export(context.report())
        except CommandError as error:
            context.err(f"probe export: {error}")
            raise

    gc.enable()
    if chosen.target == _WITH_FIGURES:
        serve_node(args, context)
    else:
        serve_text(args.listen, text, chosen.content_type, context)
    return 0
