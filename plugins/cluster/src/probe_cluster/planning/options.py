"""Options that the commands over models and reports share."""

from __future__ import annotations

from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from probe_cluster import Links, Member


MODEL_HELP = (
    "parameters (70b), a known name (llama-3.1-70b, org/Name-Instruct), or the path of a"
    " config.json, a GGUF, a .safetensors file or their folder"
)
"""What a model can be."""


def add_model_options(group: argparse._ArgumentGroup) -> None:
    """Add what completes or overrides the figures of a model."""
    for flag, metavar, meaning in (
        ("params", "N", "parameters, such as 70b, where M lacks them"),
        ("active-params", "N", "parameters that one token touches (mixture of experts)"),
        ("layers", "N", "layers, where M lacks them"),
        ("bits", "N", "bits per parameter as stored, or q4_k_m, 4bit, fp8 (as published, else 16)"),
        ("context", "TOKENS", "count the KV cache of so many tokens, such as 32k (0)"),
        ("kv-bits", "N", "bits per value of the KV cache, or q8_0, q4_0, fp8 (16)"),
    ):
        group.add_argument(f"--{flag}", metavar=metavar, help=meaning)


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add FILES, --link, --default-link and --devices."""
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="what `probe --json` wrote on a node; desk=FILE gives the node an id;"
        " or what `probe cluster --json` wrote, with its measured links",
    )
    add_have(parser)
    parser.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="A:B=KIND",
        help="how two nodes are connected: thunderbolt5, rdma, 10gbe, wifi, or 10GB/s,50us",
    )
    parser.add_argument("--default-link", metavar="KIND", help="all other connections (1gbe)")
    parser.add_argument(
        "--devices",
        default="all",
        metavar="WHICH",
        help="what counts on a node: all visible GPUs (default), primary, or cpu",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_have(parser: argparse.ArgumentParser) -> None:
    """Add --have: computers that nobody has probed."""
    parser.add_argument(
        "--have",
        action="append",
        default=[],
        metavar="MACHINES",
        help='computers that you do not have: "2x Mac Studio M3 Ultra 512GB, thunderbolt5",'
        ' "4x RTX 3090 + Threadripper 128GB", or a file of such lines',
    )


def links_of(args: argparse.Namespace) -> Links:
    """Return the links of the options; raises `CommandError`."""
    from probe_cluster.planning.links import Links, parse_kind, parse_link
    from probe_cluster.shared import ClusterError

    try:
        links = Links(default=parse_kind(args.default_link) if args.default_link else None)
        for text in args.link:
            links.connect(*parse_link(text))
    except ClusterError as error:
        raise CommandError(str(error)) from None
    return links


def members_of(args: argparse.Namespace, links: Links) -> list[Member]:
    """Return the members that the files describe; raises `CommandError`.

    `links` gets those that the document of a cluster measured.
    """
    from probe_cluster.planning.members import with_memory
    from probe_cluster.planning.reading import read_members
    from probe_cluster.shared import ClusterError

    try:
        assumed = getattr(args, "assume_bandwidth", None)
        if not args.files and not args.have:
            raise ClusterError("there is no node: give a FILE of `probe --json`, or --have")
        members = read_members(
            args.files,
            have=args.have,
            devices=args.devices,
            bandwidth=_bandwidths(getattr(args, "bandwidth", [])),
            assumed=_speed(assumed) if assumed else None,
            links=links,
        )
        members = with_memory(members, memories_of(getattr(args, "memory", [])))
        links.check(member.id for member in members)
    except ClusterError as error:
        raise CommandError(str(error)) from None
    return members


def layers_of(texts: Iterable[str]) -> dict[str, int]:
    """Return the layers by hand of ``NODE=N``; raises `CommandError`."""
    layers = {}
    for text in texts:
        id_, _, count = text.rpartition("=")
        if not id_ or not count.isdecimal() or len(count) > 6:
            raise CommandError(f"--layers-on {text}: write it as studio=32")
        layers[id_] = int(count)
    return layers


def memories_of(texts: Iterable[str]) -> dict[str, int]:
    """Return the bytes of ``NODE=SIZE``; raises `CommandError`."""
    from probe_cluster.shared import parse_bytes

    memories = {}
    for text in texts:
        id_, _, amount = text.rpartition("=")
        value = parse_bytes(amount)
        if not id_ or value is None:
            raise CommandError(f"--memory {text}: write it as studio=96GiB")
        memories[id_] = value
    return memories


def _bandwidths(texts: Iterable[str]) -> dict[str, float]:
    bandwidths = {}
    for text in texts:
        id_, equals, speed = text.rpartition("=")
        if not equals or not id_:
            raise CommandError(f"--bandwidth {text}: write it as pi=17GB/s")
        bandwidths[id_] = _speed(speed)
    return bandwidths


def _speed(text: str) -> float:
    from probe_cluster.shared import parse_speed

    value = parse_speed(text)
    if value is None:
        raise CommandError(f"{text!r} is no bandwidth, such as 17GB/s")
    return value
