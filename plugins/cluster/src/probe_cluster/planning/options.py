"""Options that the commands over models and reports share."""

from __future__ import annotations

from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from probe_cluster import Links, Member

    Number = TypeVar("Number", int, float)


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

    links = Links(default=parse_kind(args.default_link) if args.default_link else None)
    for text in args.link:
        links.connect(*parse_link(text))
    return links


def members_of(args: argparse.Namespace, links: Links) -> list[Member]:
    """Return the members that the files describe; raises `CommandError`.

    `links` gets those that the document of a cluster measured.
    """
    from probe_cluster.planning.members import with_memory
    from probe_cluster.planning.reading import read_members
    from probe_cluster.shared import ClusterError

    assumed = getattr(args, "assume_bandwidth", None)
    if not args.files and not args.have:
        raise ClusterError("there is no node: give a FILE of `probe --json`, or --have")
    members = read_members(
        args.files,
        have=args.have,
        devices=args.devices,
        bandwidth=_by_node("--bandwidth", getattr(args, "bandwidth", []), _speed, "pi=17GB/s"),
        assumed=_speed(assumed) if assumed else None,
        links=links,
    )
    members = with_memory(members, memories_of(getattr(args, "memory", [])))
    links.check(member.id for member in members)
    return members


def layers_of(texts: Iterable[str]) -> dict[str, int]:
    """Return the layers by hand of ``NODE=N``; raises `CommandError`."""
    return _by_node("--layers-on", texts, _count, "studio=32")


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 7 else None


def memories_of(texts: Iterable[str]) -> dict[str, int]:
    """Return the bytes of ``NODE=SIZE``; raises `CommandError`."""
    from probe_cluster.shared import parse_bytes

    return _by_node("--memory", texts, parse_bytes, "studio=96GiB")


def _by_node(
    option: str, texts: Iterable[str], parse: Callable[[str], Number | None], example: str
) -> dict[str, Number]:
    found = {}
    for text in texts:
        id_, _, amount = text.rpartition("=")
        value = parse(amount) if id_ else None
        if value is None:
            raise CommandError(f"{option} {text}: write it as {example}")
        found[id_] = value
    return found


def _speed(text: str) -> float:
    from probe_cluster.shared import parse_speed

    value = parse_speed(text)
    if value is None:
        raise CommandError(f"{text!r} is no bandwidth, such as 17GB/s")
    return value
