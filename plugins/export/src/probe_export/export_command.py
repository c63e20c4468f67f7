"""`probe export FORMAT`: this node in the form that another system reads."""

from __future__ import annotations

from probe_core.commands import CommandError, add_probe_options, columns, replace_file
from probe_export.errors import ExportError
from probe_export.table import FORMATS, exporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context
    from probe_export.table import Exporter

HELP = "Write this node in the form that another system reads: a scheduler, a monitor, a shell."

EXAMPLES = (
    ("probe export --list", "the formats"),
    ("probe export nfd --output features.d/probe", "labels of a Kubernetes node"),
    ("probe export prometheus --listen 127.0.0.1:9101", "an endpoint for Prometheus"),
    ("probe export ray", "options for `ray start`: the GPUs that work"),
)

_LEAST_SECONDS, _MOST_SECONDS = 1, 86_400.0

_MODE = 0o644
"""Of the file: node_exporter and nfd-worker run as users of their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe export`."""
    parser.add_argument(
        "format", nargs="?", choices=sorted(FORMATS), metavar="FORMAT", help="one of --list"
    )
    parser.add_argument("--list", action="store_true", help="print the formats")
    parser.add_argument("--output", metavar="FILE", help="replace FILE in one step, mode 0644")
    parser.add_argument("--watch", metavar="SECONDS", help="with --output: again and again")
    parser.add_argument("--listen", metavar="HOST:PORT", help="prometheus alone: serve /metrics")
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the text once, or until a signal ends it."""
    if args.list:
        for line in columns(
            [(name, parts) for name, (_, _, parts) in sorted(FORMATS.items())], context.width
        ):
            context.out(line)
        return 0
    export = _exporter(args.format)
    seconds = _seconds(args.watch)
    if args.listen is not None:
        return _serve(args, context, export)
    if args.output is None:
        if seconds is not None:
            raise CommandError("--watch replaces a file; name it with --output FILE")
        context.out(export(context.report()).removesuffix("\n"))
        return 0
    return _write(args.output, seconds, context, export)


def _exporter(name: str | None) -> Exporter:
    if name is None:
        raise CommandError(f"name a format: {', '.join(sorted(FORMATS))}")
    return exporter(name)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise CommandError(f"--watch {text}: expected seconds, 1 to 86400")
    return seconds


def _write(path: str, seconds: float | None, context: Context, export: Exporter) -> int:
    if seconds is None:
        try:
            _replace(path, export(context.report()))
        except ExportError as error:
            raise CommandError(str(error)) from None
        return 0
    from probe_export.rhythm import Rhythm

    with Rhythm(seconds) as rhythm:
        while True:
            try:
                _replace(path, export(context.report()))
            except ExportError as error:
                # A full disk may have room again: the file that is there stays.
                context.err(f"probe export: {error}")
            if not rhythm.wait():
                return 0


def _replace(path: str, text: str) -> None:
    try:
        replace_file(path, text.encode(), mode=_MODE)
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}") from None


def _serve(args: argparse.Namespace, context: Context, export: Exporter) -> int:
    if args.format != "prometheus":
        raise CommandError(f"--listen serves prometheus alone, not {args.format}")
    if args.output is not None or args.watch is not None:
        raise CommandError("--listen takes neither --output nor --watch")
    from probe_export.serve import Endpoint, address

    try:
        endpoint = Endpoint(address(args.listen), lambda: export(context.report()))
    except ExportError as error:
        raise CommandError(str(error)) from None
    context.err(f"probe export: serving {endpoint.url}; Ctrl-C ends it")
    endpoint.serve()
    return 0
