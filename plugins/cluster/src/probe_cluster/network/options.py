"""The options of `probe cluster --network`, and their defaults in the file of settings."""

from __future__ import annotations

from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from probe_cluster.network.links import Network


_TABLE = "command.cluster"

_OPTIONS = {
    "least_bandwidth": ("RATE", "a link below this is a finding (100Mbit/s)"),
    "most_round_trip": ("TIME", "a round trip above this is a finding (100ms)"),
    "pair_seconds": ("SECONDS", "traffic in each direction of a pair (1)"),
    "pair_bytes": ("SIZE", "bytes at most in each direction of a pair (4GiB)"),
}
"""Key in the table of the file, and option → metavar, meaning."""


def add_network_options(parser: argparse.ArgumentParser) -> None:
    """Add --network and what bounds it."""
    group = parser.add_argument_group("network")
    group.add_argument(
        "--network",
        nargs="?",
        const="",
        metavar="PAIRS",
        help="measure latency and bandwidth between nodes: all, a number of pairs, or a:b,c:d"
        " (all of up to 8 nodes; of more a ring and as many random pairs)",
    )
    for key, (metavar, meaning) in _OPTIONS.items():
        group.add_argument(f"--{key.replace('_', '-')}", metavar=metavar, help=meaning)


def network_of(args: argparse.Namespace, table: Mapping[str, object]) -> Network | None:
    """Return what to measure, None without --network.

    `table` are the defaults in the file of settings. Raises `CommandError`.
    """
    from probe_cluster.network.links import Network

    options = {key: getattr(args, key) for key in _OPTIONS}
    if args.network is None:
        for key, value in options.items():
            if value is not None:
                option = key.replace("_", "-")
                raise CommandError(f"cluster: --{option} belongs to --network")
        return None
    figures: dict[str, float] = {}
    for key in table:
        if key not in _OPTIONS:
            known_keys = ", ".join(_OPTIONS)
            raise CommandError(f"cluster: [{_TABLE}] has {key!r}; its keys are {known_keys}")
    for key, option in options.items():
        value, origin = (option, f"--{key.replace('_', '-')}")
        if value is None:
            value, origin = table.get(key), f"[{_TABLE}] {key}"
        if value is not None:
            figures[key] = _figure(key, str(value), origin)
    usual = Network()
    return Network(
        pairs=args.network,
        seconds=figures.get("pair_seconds", usual.seconds),
        size=int(figures.get("pair_bytes", usual.size)),
        least_bandwidth=figures.get("least_bandwidth", usual.least_bandwidth),
        most_round_trip=figures.get("most_round_trip", usual.most_round_trip),
    )


def _figure(key: str, text: str, origin: str) -> float:
    from probe_cluster.shared import parse_bytes, parse_speed

    readers: dict[str, tuple[Callable[[str], float | None], float, float, str]] = {
        "least_bandwidth": (parse_speed, 1.0, 1e12, "a rate, such as 1Gbit/s"),
        "most_round_trip": (_seconds, 1e-6, 3600.0, "a time, such as 100ms"),
        "pair_seconds": (_seconds, 0.2, 60.0, "seconds, 0.2 to 60"),
        "pair_bytes": (parse_bytes, 1 << 20, float(1 << 40), "a size, 1MiB to 1TiB"),
    }
    read, least, most, example = readers[key]
    value = read(text)
    if value is None or not least <= value <= most:
        raise CommandError(f"cluster: {origin} {text}: write {example}")
    return value


def _seconds(text: str) -> float | None:
    """Return the seconds of ``100ms``, ``250us`` or ``2``; None for anything else."""
    number = text.strip().lower()
    scale = 1.0
    for unit, factor in (("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0)):
        if number.endswith(unit):
            number, scale = number.removesuffix(unit), factor
            break
    try:
        return float(number) * scale
    except ValueError:
        return None
