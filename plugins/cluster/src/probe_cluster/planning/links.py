"""How fast two nodes talk: by the kind of cable, as a person names it, or in figures.

The bit rates are those of the standards (IEEE 802.3, USB4/Thunderbolt, InfiniBand); what a message
takes beyond its bytes was measured by those who are named here, and is replaced by giving figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from itertools import pairwise
from math import log2

from probe_cluster.shared import ClusterError, figure_of, parse_speed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb import Chip


@dataclass(frozen=True, slots=True)
class Link:
    """A connection: bytes per second, and seconds until the first of them arrives."""

    kind: str
    bandwidth: float
    latency: float
    reduce: float | None = None
    """Seconds of an all-reduce of one token's activations; None where layers are not split over
    such a link: sockets take longer than what is gained."""

    def seconds(self, size: int) -> float:
        """Return how long `size` bytes take."""
        return self.latency + size / self.bandwidth

    def reduce_among(self, width: int) -> float | None:
        """Return the seconds of an all-reduce of so many devices; None as `reduce`.

        `reduce` is that of four. Over PCIe each doubling of the devices is one exchange more: two
        RTX 5090 take half of it (noonghunna/club-3090 issues 851 and 858).
        """
        if self.reduce is None or not self.kind.startswith("pcie"):
            return self.reduce
        return self.reduce * log2(width) / 2


# Seconds until the first byte arrives, software included.
# Sockets of desktop systems: Thunderbolt 5 between Macs, 300 us, where RDMA takes less than 50
# (jeffgeerling.com, December 2025; exo issue 2295: round trips of 380 to 950 us); 1GbE between two
# Raspberry Pi 5: an all-reduce, two messages at least, in 900 us (distributed-llama PR 64).
_TCP, _RDMA = 300e-6, 50e-6
# Sockets of servers' network cards: 70 to 100 us on an E810 (kyuz0/amd-strix-halo-vllm-toolboxes).
_TCP_FAST = 100e-6
# Half of the average round trip to the nearest of three Macs, 7.5 ms; to the farthest 30 ms (exo
# issue 2295).
_WIFI = 3.75e-3
# NVLink, PCIe, InfiniBand: aiconfigurator systems/*.yaml. RoCE: a third of an all-reduce of 16 KiB,
# 31 us (dgx-spark-playbooks PR 103); 5 us on an E810.
_DIRECT = 10e-6
# A switch forwards whole frames: at 100 Mbit/s the last, of 1,538 bytes, takes 123 us once more.
_TCP_SLOW = _TCP + 123e-6
# Half of a round trip of a byte on loopback, measured on two virtual x86-64 cores with Linux; of
# 16 KiB it was 7.0 us, which is 8.0 with the bandwidth below.
_LOOPBACK = 6.4e-6

# Seconds of one all-reduce, of which a split layer has two. Set, not fitted: dgx-spark-playbooks
# PR 103 (200G RoCE, 16 KiB), jeffgeerling.com 2025 (Thunderbolt), aiconfigurator (NVLink).
_REDUCE_RDMA, _REDUCE_NETWORK, _REDUCE_NVLINK, _REDUCE_PCIE = 15e-6, 30e-6, 10e-6, 30e-6

KINDS: dict[str, Link] = {
    name: Link(name, gbits * 1e9 / 8, latency, reduce)
    for name, gbits, latency, reduce in (
        ("same-host", 80.0, _LOOPBACK, None),
        # Of no generation: the slowest there is, an RTX 2080's, until the chips are known.
        ("nvlink", 200.0, _DIRECT, _REDUCE_NVLINK),
        # One direction of the widest boards: the chip database on V100, aiconfigurator
        # systems/*.yaml; xGMI of MI300X: seven of 64 GB/s (recalled).
        ("nvlink2", 1200.0, _DIRECT, _REDUCE_NVLINK),
        ("nvlink3", 2400.0, _DIRECT, _REDUCE_NVLINK),
        ("nvlink4", 3600.0, _DIRECT, _REDUCE_NVLINK),
        ("nvlink5", 7200.0, _DIRECT, _REDUCE_NVLINK),
        ("xgmi", 3584.0, _DIRECT, _REDUCE_RDMA),
        ("pcie4", 256.0, _DIRECT, _REDUCE_PCIE),
        ("pcie5", 512.0, _DIRECT, _REDUCE_PCIE),
        ("rdma", 80.0, _RDMA, _REDUCE_RDMA),  # Thunderbolt 5 with RDMA
        ("infiniband", 100.0, _DIRECT, _REDUCE_NETWORK),
        ("hdr", 200.0, _DIRECT, _REDUCE_NETWORK),
        ("ndr", 400.0, _DIRECT, _REDUCE_NETWORK),
        ("roce", 200.0, _DIRECT, _REDUCE_NETWORK),  # ConnectX-7 of a DGX Spark
        ("thunderbolt5", 80.0, _TCP, None),
        ("thunderbolt4", 40.0, _TCP, None),
        ("thunderbolt3", 40.0, _TCP, None),
        ("usb4", 10.0, _TCP, None),  # with IP on Linux: geerlingguy/ai-benchmarks 21
        ("400gbe", 400.0, _TCP_FAST, None),
        ("200gbe", 200.0, _TCP_FAST, None),
        ("100gbe", 100.0, _TCP_FAST, None),
        ("40gbe", 40.0, _TCP_FAST, None),
        ("25gbe", 25.0, _TCP_FAST, None),
        ("10gbe", 10.0, _TCP_FAST, None),
        ("5gbe", 5.0, _TCP, None),
        ("2.5gbe", 2.5, _TCP, None),
        ("1gbe", 1.0, _TCP, None),
        ("100mbe", 0.1, _TCP_SLOW, None),
        ("wifi", 0.4, _WIFI, None),
        ("wifi6", 0.8, _WIFI, None),
        ("wifi7", 1.5, _WIFI, None),
    )
}
"""Kind → link. ``thunderbolt`` alone means the slower, ``ethernet`` means 1 Gbit/s."""

_ALIASES = {
    "thunderbolt": "thunderbolt4", "tb5": "thunderbolt5", "tb4": "thunderbolt4",
    "tb3": "thunderbolt3", "ethernet": "1gbe", "gigabit": "1gbe", "ib": "infiniband",
    "wi-fi": "wifi", "wlan": "wifi", "wifi5": "wifi", "pcie": "pcie4",
    "edr": "infiniband", "connectx-7": "roce", "cx7": "roce", "infinityfabric": "xgmi",
    "thunderboltrdma": "rdma", "thunderbolt5rdma": "rdma", "tb5rdma": "rdma", "rdmaovertb5": "rdma",
    "rocev2": "roce",
}  # fmt: skip
_TIMES = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3}
DEFAULT = "1gbe"


@cache
def own_nvlink(chip: str) -> Link | None:
    """Return the NVLink of a chip by its name: all its links, one direction.

    None where the chip database knows none. Of chips with one name, as of a card and of a laptop's
    GPU, the slowest of those with a connector.
    """
    found = [own for own in map(_nvlink, _chips(chip)) if own is not None]
    return min(found, key=lambda link: link.bandwidth, default=None)


def _chips(name: str) -> Sequence[Chip]:
    import probe_chipdb

    match = probe_chipdb.load().match(name=name)
    return match.candidates if match.chip is None else (match.chip,)


def _nvlink(chip: Chip) -> Link | None:
    kind, both_ways = chip.interconnect or ("", 0.0)
    if not kind.startswith("NVLink "):
        return None
    name = kind.lower().replace(" ", "")
    return replace(KINDS["nvlink"], kind=name, bandwidth=both_ways * 1e9 / 2)


def nvlink_of(chip: str, kind: str) -> Link:
    """Return the NVLink of a chip where a person names ``nvlink``, or a generation of it.

    Raises `ClusterError` for a chip that has none, has another, or of which it is not known.
    """
    own = own_nvlink(chip)
    if own is None:
        others = {each.interconnect[0] for each in _chips(chip) if each.interconnect}
        raise ClusterError(
            f"{chip} has no connector for {kind}: such cards talk over {others.pop()}; leave the"
            " link out"
            if len(others) == 1
            else f"the chip database does not tell whether {chip} has NVLink, and how fast it is;"
            " leave the link out"
        )
    if kind not in ("nvlink", own.kind):
        raise ClusterError(
            f"{chip} has {own.kind}, {own.bandwidth / 1e9:g} GB/s one way, not {kind}"
        )
    return own


def nvlink_between(chips: Iterable[str], link: Link) -> Link:
    """Return the link of computers with these chips: of NVLink what their chips have.

    Raises `ClusterError` as `nvlink_of`, and where NVLink joins no computers.
    """
    if not link.kind.startswith("nvlink"):
        return link
    found = {chip: nvlink_of(chip, link.kind) for chip in chips}
    for chip in found:
        # Racks of GB200, and of GH200 with switches, are one NVLink domain.
        if any(own.form_factor != "superchip" for own in _chips(chip)):
            raise ClusterError(
                f"{link.kind} joins the cards of one computer, and computers only in racks of"
                f" superchips: cards of {chip} in one computer are written 2x {chip}, {link.kind}"
            )
    return min(found.values(), key=lambda each: each.bandwidth)


class Links:
    """Who is connected to whom; what nobody named is the default link. Both ways alike."""

    def __init__(
        self,
        named: Mapping[tuple[str, str], Link] | None = None,
        default: Link | None = None,
        software: float = 0.0,
    ) -> None:
        self.default = default or KINDS[DEFAULT]
        self.named_default = default
        """The default link, where somebody named it."""
        self.software = software
        """Seconds that the engine adds to each hop, whatever the link is."""
        self._named: dict[tuple[str, str], Link] = {}
        for (first, second), link in (named or {}).items():
            self.connect(first, second, link)

    def connect(self, first: str, second: str, link: Link) -> None:
        """Name the link of two nodes; of two links between them the faster for a token stays."""
        if first == second:
            raise ClusterError(f"a link leads from {first!r} to itself", node=first)
        key = (min(first, second), max(first, second))
        old = self._named.get(key)
        if old is None or _cost(link) < _cost(old):
            self._named[key] = link

    def add_measured(self, measured: Mapping[tuple[str, str], Link]) -> None:
        """Take measured links where a person named none: what is typed in was meant."""
        for (first, second), link in measured.items():
            self._named.setdefault((min(first, second), max(first, second)), link)

    def replace(self, first: str, second: str, link: Link) -> None:
        """Set the link of two nodes, whatever it was."""
        self._named[min(first, second), max(first, second)] = link

    def between(self, first: str, second: str) -> Link:
        """Return the link of two nodes."""
        return self._named.get((min(first, second), max(first, second)), self.default)

    def is_assumed(self, first: str, second: str) -> bool:
        """Return whether nobody named the link of two nodes, nor a default one."""
        named = (min(first, second), max(first, second)) in self._named
        return self.named_default is None and not named

    def seconds(self, first: str, second: str, size: int) -> float:
        """Return the time of a hop of `size` bytes, the engine's share included."""
        return self.between(first, second).seconds(size) + self.software

    def among(self, ids: Iterable[str], software: float) -> Links:
        """Return the links of these nodes, with what an engine adds to each hop."""
        known = set(ids)
        own = {pair: link for pair, link in self._named.items() if known.issuperset(pair)}
        return Links(own, self.named_default, software)

    def named(self) -> Mapping[tuple[str, str], Link]:
        """Return the links that were named, by the two ids in order."""
        return dict(self._named)

    def check(self, ids: Iterable[str]) -> None:
        """Raise `ClusterError` for a link to a node that is not there."""
        ids = set(ids)
        for key in self._named:
            for name in key:
                if name not in ids:
                    names = ", ".join(sorted(ids))
                    raise ClusterError(f"a link names node {name!r}; there are {names}", node=name)


def _cost(link: Link) -> float:
    # About one token's activations: 8,192 values of two bytes, as in a model of 70 billion.
    return link.seconds(16 << 10)


def parse_link(text: str) -> tuple[str, str, Link]:
    """Return the link of ``A:B=KIND`` or ``A:B=10GB/s,50us``. Raises `ClusterError`."""
    pair, equals, kind = text.rpartition("=")
    first, colon, second = pair.partition(":")
    if not (equals and colon and first and second and kind):
        raise ClusterError(f"{text!r} is no link, such as desk:studio=thunderbolt5{_of_all(text)}")
    return first, second, parse_kind(kind)


def _of_all(text: str) -> str:
    """Return a hint where `text` is a link without its nodes."""
    try:
        parse_kind(text)
    except ClusterError:
        return ""
    return f"; --default-link {text} is for all nodes"


def parse_kind(text: str) -> Link:
    """Return the link of a kind, or of a bandwidth with a latency. Raises `ClusterError`."""
    kind = text.strip().lower()
    squeezed = kind.replace(" ", "").replace("-", "").replace("_", "")
    for name in (
        kind,
        squeezed,
        squeezed.removesuffix("ethernet"),
        f"{squeezed.removesuffix('bit')}be",
    ):
        found = KINDS.get(_ALIASES.get(name, name))
        if found is not None:
            return found
    speed, _, delay = kind.partition(",")
    bandwidth = parse_speed(speed)
    latency = figure_of(delay, _TIMES) if delay else _TCP
    if bandwidth is None or latency is None:
        raise ClusterError(
            f"{text.strip()!r} is no kind of link{_near(squeezed)}: one of {', '.join(KINDS)},"
            " or figures: 10GB/s,50us"
        )
    # No socket is that fast. The time of three messages: 31 us at 10 us (dgx-spark-playbooks 103).
    reduce = 3 * latency if latency <= _RDMA_LATENCY else None
    return Link(text.strip(), bandwidth, latency, reduce)


# What RDMA stays below and sockets do not.
_RDMA_LATENCY = 20e-6


def _near(kind: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(kind, [*KINDS, *_ALIASES], n=1)
    return f" (near: {near[0]})" if near else ""


# Routes between nodes over the links of others: a hub, a line or a star of cables.
#
# A route passes data on node by node, so its time is the sum of its links' times. It counts where
# it is faster than the two nodes' own link, which for a pair that nobody named is the default one.
# The nodes between must forward (IP forwarding, or a bridge): the kind of link says through which.

_MOST = 64
"""Nodes with links of their own for which routes are looked for: a millisecond for eight, and what
has more nodes than that has a switch."""

_Neighbours = Mapping[str, Mapping[str, Link]]


def routed(links: Links, size: int) -> Links:
    """Return links in which each pair has its fastest route for `size` bytes."""
    neighbours: dict[str, dict[str, Link]] = {}
    for (first, second), link in links.named().items():
        neighbours.setdefault(first, {})[second] = link
        neighbours.setdefault(second, {})[first] = link
    if not 2 < len(neighbours) <= _MOST:
        return links
    better = Links(links.named(), links.named_default, links.software)
    for start in sorted(neighbours):
        for end, way in _routes(neighbours, start, size).items():
            if start < end and len(way) > 2:
                route = _joined(way, neighbours)
                if route.seconds(size) < links.between(start, end).seconds(size):
                    better.replace(start, end, route)
    return better


def _routes(neighbours: _Neighbours, start: str, size: int) -> dict[str, tuple[str, ...]]:
    """Return the fastest way from a node to each other that links lead to (Dijkstra)."""
    done: dict[str, tuple[str, ...]] = {}
    queue: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 1, (start,))]
    while queue:
        seconds, nodes, way = heappop(queue)  # of equally fast ones that through fewer nodes
        if way[-1] in done:
            continue
        done[way[-1]] = way
        for end, link in neighbours[way[-1]].items():
            if end not in done:
                heappush(queue, (seconds + link.seconds(size), nodes + 1, (*way, end)))
    return done


def _joined(way: Sequence[str], neighbours: _Neighbours) -> Link:
    """Return one link with the time of a way: latencies add up, and so do the bytes' times."""
    parts = [neighbours[first][second] for first, second in pairwise(way)]
    kinds = dict.fromkeys(part.kind for part in parts)
    return Link(
        f"{'+'.join(kinds)} via {', '.join(way[1:-1])}",
        1 / sum(1 / part.bandwidth for part in parts),
        sum(part.latency for part in parts),
    )
