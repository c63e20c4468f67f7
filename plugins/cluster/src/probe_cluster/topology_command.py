"""`probe topology`: what is where in this computer, or many nodes' reports on one page.

Without files it is this computer; with files the view of a cluster, or the document that old exo
exchanges.
"""

from __future__ import annotations

from probe_cluster.planning.options import add_cluster_options, links_of, members_of
from probe_cluster.shared import names
from probe_core.commands import (
    CommandError,
    add_options,
    bandwidth,
    folded,
    grid_rows,
    paint,
    probe_options,
    rate,
    size,
)
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from probe_cluster import Links, Member
    from probe_core.commands import Context

HELP = (
    "Show what is between the devices and network cards of this computer, and which NUMA node and"
    " CPUs are near each. With files: many nodes' reports as one view, what each offers, and how"
    " they are connected."
)

_HEAD = ("NODE", "CHIP", "MEMORY", "AVAILABLE", "FP32", "FP16", "INT8", "BANDWIDTH", "MODEL")
_RIGHT = _HEAD[2:8]
EXAMPLES = (
    ("probe topology", "this computer: a matrix in the words of nvidia-smi topo -m"),
    ("probe topology --svg > topology.svg", "its drawing"),
    ("probe topology desk.json laptop.json", "two computers, each by its `probe --json`"),
    ("probe topology desk=a.json pi=b.json --link desk:pi=10gbe", "with names and a link"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe topology`."""
    add_cluster_options(parser)
    parser.add_argument("--active", metavar="NODE", help="the node that works now")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--svg", action="store_true", help="draw this computer as an SVG picture")
    forms.add_argument("--dot", action="store_true", help="draw this computer for Graphviz")
    # `--active` names a node here; whether devices may be woken is asked of no recorded machine.
    add_options(parser, [option for option in probe_options() if option.name != "active"])


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the view."""
    cluster = args.files or args.have or args.link or args.active
    if not cluster:
        return _computer(args, context)
    if args.svg or args.dot or args.machine:
        option = "--machine" if args.machine else "--svg" if args.svg else "--dot"
        raise CommandError(f"{option} is for one computer, and not for the view of a cluster")
    links = links_of(args)
    members = members_of(args, links)
    ids = [member.id for member in members]
    if args.active and args.active not in ids:
        raise CommandError(f"--active {args.active}: there is no such node; there are {names(ids)}")
    if args.json:
        from probe_cluster.planning.old_exo import Topology

        context.json(Topology.of(members, links, args.active).to_json())
        return 0
    for line in _lines(members, links, context):
        context.out(line)
    return 0


def _computer(args: argparse.Namespace, context: Context) -> int:
    from probe_cluster.computer.model import topology_of

    if args.json and (args.svg or args.dot):
        raise CommandError("--json, --svg and --dot are three forms; use one")
    topology = context.examined(topology_of)
    if args.json:
        context.json(topology.to_json())
    elif args.svg or args.dot:
        from probe_cluster.computer.drawing import dot_of, svg_of

        context.out(svg_of(topology) if args.svg else dot_of(topology))
    else:
        from probe_cluster.computer.text import lines_of

        for line in lines_of(topology, context.width):
            context.out(line)
    return 0


def _lines(members: Sequence[Member], links: Links, context: Context) -> list[str]:
    rows = [_HEAD, *(_row(member) for member in members)]
    shown = [[context.encodable(cell) for cell in row] for row in rows]
    leaving = ("MODEL", "BANDWIDTH", "INT8", "FP32")
    heads, *body = grid_rows(shown, context.width, right=_RIGHT, wrap="CHIP", leaving=leaving)
    lines = [paint(head, "dim", context.colour) for head in heads]
    lines += [line for row in body for line in row]
    lines += ["", *folded(_total(members), context.width)]
    for connection in _connections(links):
        lines += folded(connection, context.width)
    for member in members:
        for name, reason in member.reasons.items():
            lines += folded(f"{member.id}: {name}: {reason}", context.width)
    return lines


def _row(member: Member) -> tuple[str, ...]:
    return (
        member.id,
        member.chip or "unknown",
        size(member.memory),
        size(member.available),
        rate(member.fp32),
        rate(member.fp16),
        rate(member.int8),
        bandwidth(member.bandwidth),
        member.model or "",
    )


def _total(members: Sequence[Member]) -> str:
    """Return what the memories are and add up to: what cards have, and what CPUs share."""
    own: dict[str, list[int]] = {}
    for member in members:
        if member.memory is not None:
            own.setdefault(_memory_kind(member), []).append(member.memory)
    sums = [f"{size(sum(amounts))} {kind}" for kind, amounts in sorted(own.items())]
    unknown = sum(member.memory is None for member in members)
    sums += [f"the memory of {counted(unknown, 'node')} unknown"] if unknown else []
    total = sum(map(sum, own.values()))
    together = f", {size(total)} together" if len(own) > 1 else ""
    return f"{counted(len(members), 'node')}: {', '.join(sums)}{together}"


def _memory_kind(member: Member) -> str:
    if member.offer is None or member.offer.unified is False:
        return "of GPU memory"
    return "of RAM, without a GPU to use" if member.offer.kind == "cpu" else "shared by CPU and GPU"


def _connections(links: Links) -> list[str]:
    lines = [f"{first} – {second}: {link.kind}" for (first, second), link in links.named().items()]
    assumed = "" if links.named_default else " (assumed)"
    return [*sorted(lines), f"all other connections: {links.default.kind}{assumed}"]
