"""Options that the commands over many reports share."""

from __future__ import annotations

from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from probe_cluster import Links, Member

__all__ = ["add_cluster_options", "links_of", "members_of"]


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add FILES, --link, --default-link and --devices."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="what `probe --json` wrote on a node; desk=FILE gives the node an id",
    )
    parser.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="A:B=KIND",
        help="how two nodes are connected: thunderbolt5, rdma, 10gbe, wifi, or 10GB/s,50us",
    )
    parser.add_argument(
        "--default-link", default="1gbe", metavar="KIND", help="all other connections (1gbe)"
    )
    parser.add_argument(
        "--devices",
        default="all",
        metavar="WHICH",
        help="what counts on a node: all visible GPUs (default), primary, or cpu",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def links_of(args: argparse.Namespace) -> Links:
    """Return the links of the options; raises `CommandError`."""
    from probe_cluster.errors import ClusterError
    from probe_cluster.links import Links, parse_kind, parse_link

    try:
        links = Links(default=parse_kind(args.default_link))
        for text in args.link:
            links.connect(*parse_link(text))
    except ClusterError as error:
        raise CommandError(str(error)) from None
    return links


def members_of(args: argparse.Namespace, links: Links) -> list[Member]:
    """Return the members that the files describe; raises `CommandError`."""
    from probe_cluster.errors import ClusterError
    from probe_cluster.reading import read_members

    try:
        assumed = getattr(args, "assume_bandwidth", None)
        members = read_members(
            args.files,
            devices=args.devices,
            bandwidth=_bandwidths(getattr(args, "bandwidth", [])),
            assumed=_speed(assumed) if assumed else None,
        )
        links.check(member.id for member in members)
    except ClusterError as error:
        raise CommandError(str(error)) from None
    return members


def _bandwidths(texts: Iterable[str]) -> dict[str, float]:
    bandwidths = {}
    for text in texts:
        id_, equals, speed = text.rpartition("=")
        if not equals or not id_:
            raise CommandError(f"--bandwidth {text}: write it as pi=17GB/s")
        bandwidths[id_] = _speed(speed)
    return bandwidths


def _speed(text: str) -> float:
    from probe_cluster.links import parse_speed

    value = parse_speed(text)
    if value is None:
        raise CommandError(f"{text!r} is no bandwidth, such as 17GB/s")
    return value
