"""`probe mcp`: a server of the Model Context Protocol on standard input and output."""

from __future__ import annotations

from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context

HELP = (
    "Answer a client of the Model Context Protocol on standard input and output: report, doctor,"
    " visible, chip, fit and expect. Each tool only reads, and each answer is bounded. It ends with"
    " its input, once each request is answered."
)
EXAMPLES = (
    ("probe mcp", "what a client starts"),
    ("probe mcp --list", "the tools, and what each says of itself"),
    ("probe mcp --machine machine.json", "a recorded machine in place of this computer"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe mcp`."""
    parser.add_argument("--list", action="store_true", help="print the tools; serve nothing")
    parser.add_argument("--machine", metavar="FILE", help="a recorded machine")


def run(args: argparse.Namespace, context: Context) -> int:
    """Serve, or list the tools."""
    if args.machine is not None:
        from probe_core.commands.typed import refuse_missing

        refuse_missing("--machine", args.machine)
    if args.list:
        from probe_mcp.tools import TOOLS, Tools

        for name in TOOLS:
            summary = (getattr(Tools, name).__doc__ or "").strip().splitlines()[0]
            context.out(f"{name:<8} {summary}")
        return 0
    try:
        from probe_mcp.server import serve  # dear: 0.9 s and 68 MB, for this command alone
    except ImportError as error:
        problem = f"mcp: {error.name or 'the SDK'} cannot be imported"
        raise CommandError(f"{problem}; install probe-mcp anew, which brings it", 1) from None
    serve(args.machine)
    return 0
