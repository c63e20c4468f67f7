"""`probe report`: one page about this node, or about several, to hand to somebody."""

from __future__ import annotations

from probe_core.commands import (
    CommandError,
    Option,
    add_options,
    add_probe_options,
    probe_options,
    replace_named_file,
    without_identities,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc

HELP = (
    "Write one page about this computer, to hand to somebody: what it is, what is wrong and what"
    " fixes it, a picture, and the source of every figure. The page is one HTML file without a"
    " script or a request. UUIDs, serial numbers and the names of host and user are left out."
)

EXAMPLES = (
    ("probe report -o report.html", "one page to open in a browser, to mail, to print"),
    ("probe report --text", "the same as text of 80 columns"),
    ("probe report -o nodes.html --cluster a.json b.json", "several nodes, each by `probe --json`"),
)

_ORIGIN = "Made by probe report. One file: no script, no font, no request."
_LEFT_OUT = (
    "UUIDs are numbered; serial numbers and the names of the host and the user are left out:"
    " --private includes them."
)
_PRIVATE = "With --private: it may hold UUIDs, serial numbers and names of hosts and users."


_FORM = (
    Option("output", "FILE", "replace FILE in one step; - for standard output", short="-o"),
    Option("text", "", "text of 80 columns instead of HTML"),
)
_CHOICE = (
    Option("device", "ID", "this device alone, with its parts and findings"),
    Option("private", "", "also UUIDs, serial numbers, host and user names"),
)

OPTIONS = (*_FORM, *_CHOICE, *probe_options())
"""A line of these is read without argparse; ``--cluster`` takes several, which only that reads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe report`."""
    add_options(parser, _FORM)
    parser.add_argument(
        "--cluster",
        nargs="+",
        metavar="FILE",
        help="several nodes: reports, NAME=FILE, or a document of `probe cluster --json`",
    )
    add_options(parser, _CHOICE)
    add_probe_options(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the page."""
    if args.output is None and not args.text and context.terminal:
        raise CommandError("a terminal shows no HTML; name a file (-o report.html), or use --text")
    cluster = getattr(args, "cluster", None)
    if cluster and args.device is not None:
        raise CommandError("--device chooses of one node, and --cluster shows several; use one")
    if args.private and args.hostname is None:
        args.hostname = True
    content = _cluster(args, context) if cluster else _node(args, context)
    if args.output in (None, "-"):
        context.out(content.removesuffix("\n"))
        return 0
    try:
        replace_named_file(args.output, content.encode())
    except OSError as error:
        problem = f"{args.output} cannot be written: {error.strerror or error}"
        raise CommandError(problem) from None
    return 0


def _notes(args: argparse.Namespace) -> tuple[str, ...]:
    return _ORIGIN, _PRIVATE if args.private else _LEFT_OUT


def _prepared(report: ReportDoc, args: argparse.Namespace, context: Context) -> ReportDoc:
    return report if args.private else without_identities(report, context.environ)


def _node(args: argparse.Namespace, context: Context) -> str:
    report = context.report()
    notes = _notes(args)
    if args.device is not None:
        from probe_report.page import only

        count = len(report["devices"])
        report = only(report, args.device)
        shown = len(report["devices"])
        notes = (f"{shown} of {count} devices, chosen with --device.", *notes)
    from probe_report.page import page_of

    page = page_of(_prepared(report, args, context), notes, raw=not args.text)
    if args.text:
        from probe_report.terminal import page_lines

        return "\n".join([*map(context.encodable, page_lines(page)), ""])
    from probe_report.html import page_html

    return page_html(page)


def _cluster(args: argparse.Namespace, context: Context) -> str:
    from probe_report.cluster import cluster_of, members_of

    members, differences = members_of(
        args.cluster,
        private=args.private,
        prepare=lambda report: _prepared(report, args, context),
    )
    cluster = cluster_of(members, differences, _notes(args))
    if args.text:
        from probe_report.terminal import cluster_lines

        return "\n".join([*map(context.encodable, cluster_lines(cluster)), ""])
    from probe_report.html import cluster_html

    return cluster_html(cluster)
