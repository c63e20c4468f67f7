"""`probe topology`: many nodes' reports on one page, or as the document that old exo exchanges."""

from __future__ import annotations

from probe_cluster.options import add_cluster_options, given_links, given_members
from probe_core.commands import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from probe_cluster import Links, Member
    from probe_core.commands.context import Context

NAME = "topology"
HELP = "Show many nodes' reports as one view: what each offers, and how they are connected."

_HEAD = ("NODE", "CHIP", "MEMORY", "AVAILABLE", "FP32", "FP16", "INT8", "BANDWIDTH", "MODEL")
_RIGHT = (2, 3, 4, 5, 6, 7)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe topology`."""
    add_cluster_options(parser)
    parser.add_argument("--active", metavar="NODE", help="the node that works now")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the view."""
    links = given_links(args)
    members = given_members(args, links)
    if args.json:
        from probe_cluster.topology import Topology

        context.json(Topology.of(members, links, args.active).to_json())
        return 0
    for line in _lines(members, links, context):
        context.out(line)
    return 0


def _lines(members: Sequence[Member], links: Links, context: Context) -> list[str]:
    rows = [_HEAD, *(_row(member) for member in members)]
    head, *body = text.columns(rows, context.width, right=_RIGHT, flexible=1)
    lines = [text.paint(head, "dim", context.colour), *body, "", _total(members)]
    lines += _connections(links)
    for member in members:
        for name, why in member.reasons.items():
            lines += text.wrapped(f"{member.id}: {name}: {why}", context.width)
    return lines


def _row(member: Member) -> tuple[str, ...]:
    return (
        member.id,
        member.chip or "unknown",
        text.size(member.memory),
        text.size(member.available),
        text.rate(member.fp32),
        text.rate(member.fp16),
        text.rate(member.int8),
        text.bandwidth(member.bandwidth),
        member.model or "",
    )


def _total(members: Sequence[Member]) -> str:
    known = [member.memory for member in members if member.memory is not None]
    more = "" if len(known) == len(members) else ", that is known"
    return f"{len(members)} nodes, {text.size(sum(known))} of memory{more}"


def _connections(links: Links) -> list[str]:
    lines = [f"{left} – {right}: {link.kind}" for (left, right), link in links.named().items()]
    return [*sorted(lines), f"all other connections: {links.default.kind} (assumed)"]
