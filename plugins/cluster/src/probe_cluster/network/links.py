"""A measured link: what is asked of it, its row, what is wrong with it, and its table."""

from __future__ import annotations

from dataclasses import dataclass

from probe_cluster.shared import bits, milliseconds, rate
from probe_core.commands import folded, grid, paint
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_cluster.gathering.gathered import Gathered
    from probe_cluster.gathering.model import LinkDoc, LinkFindingDoc, Message
    from probe_cluster.gathering.summaries import Nic
    from probe_cluster.network.pairs import Pair
    from probe_core.commands import Context

    Nics = Mapping[str, Mapping[str, Nic]]
    """Node's id → interface → what its report says of it."""


PAIR_S = 1.0
"""Seconds of traffic in each direction: TCP's slow start is over after 0.2 s on most paths."""

PAIR_BYTES = 4 << 30
"""Bytes at most in each direction: a third of a second at 100 Gbit/s, more than 1 s at 25."""

LEAST_BANDWIDTH = 100e6 / 8
"""Bytes per second, 100 Mbit/s: below it a cable or a port is at fault, or it is radio."""

MOST_ROUND_TRIP = 0.1
"""Seconds: 100 ms are another continent, or a queue that is full."""


@dataclass(frozen=True, slots=True)
class Network:
    """What to measure between the nodes, and what is too slow."""

    pairs: str = ""
    """Empty: the rule of `pairs`; ``all``, a number, or ``a:b,c:d``."""
    seconds: float = PAIR_S
    """Seconds of traffic in each direction of a pair."""
    size: int = PAIR_BYTES
    """Bytes at most in each direction of a pair."""
    least_bandwidth: float = LEAST_BANDWIDTH
    """Bytes per second; less is a finding."""
    most_round_trip: float = MOST_ROUND_TRIP
    """Seconds; more is a finding."""


# One measured link as plain data, from what the agents of its two ends print.

SAME_HOST = "same-host"

FIREWALL = "let the nodes connect to each other on all TCP ports, then measure again"
_AGAIN = "check that both nodes run, then measure again"


def failed_link(pair: Pair, reason: str, fix: str | None = None) -> LinkDoc:
    """Return the link of a pair that was not measured."""
    return {
        "ends": list(pair),
        "kind": None,
        "latency": None,
        "round_trip": None,
        "bandwidth": None,
        "bandwidths": [None, None],
        "interfaces": [None, None],
        "speed": None,
        "reason": reason,
        "fix": fix or _AGAIN,
    }


def measured_link(
    pair: Pair, answers: Sequence[Message], hellos: Sequence[Message], nics: Nics
) -> LinkDoc:
    """Return the link of a pair; each agent measures what arrives at its end.

    Latency is half of the median round trip, bandwidth that of the slower direction.
    """
    rates = [rate(answer.get("rate")) for answer in answers]
    received = [None if value is None else float(round(value)) for value in rates]
    trips = [rate(answer.get("round_trip")) for answer in answers]
    trip = next((value for value in trips if value is not None), None)
    speeds = [value for value in received if value is not None]
    interfaces = [_interface(*ends) for ends in zip(answers, hellos, strict=True)]
    kind, speed = _hardware(pair, hellos, interfaces, nics)
    enough = len(speeds) == 2
    return {
        "ends": list(pair),
        "kind": kind,
        "latency": None if trip is None else round(trip / 2, 9),
        "round_trip": None if trip is None else round(trip, 9),
        "bandwidth": min(speeds) if enough else None,
        # What the second end receives is the direction from the first.
        "bandwidths": received[::-1],
        "interfaces": interfaces,
        "speed": speed,
        "reason": None if enough else "too few bytes arrived to compute a bandwidth",
        "fix": None if enough else _AGAIN,
    }


def _interface(answer: Message, hello: Message) -> str | None:
    """Return the interface that has the address of the measured connection."""
    pairs = hello.get("addresses")
    for entry in pairs if isinstance(pairs, list) else []:
        if isinstance(entry, list) and len(entry) == 2 and entry[1] == answer.get("address"):
            return clean_text(str(entry[0]), 60) or None
    return None


def _hardware(
    pair: Pair, hellos: Sequence[Message], interfaces: Sequence[str | None], nics: Nics
) -> tuple[str | None, float | None]:
    """Return the kind of both interfaces and the speed of the slower, where the reports say so."""
    if len({str(hello.get("boot")) for hello in hellos}) == 1:
        return SAME_HOST, None
    ends = [
        nics.get(id_, {}).get(interface or "")
        for id_, interface in zip(pair, interfaces, strict=True)
    ]
    kinds = {nic.kind for nic in ends if nic is not None}
    speeds = [nic.bandwidth for nic in ends if nic is not None and nic.bandwidth is not None]
    is_alike = None not in ends and len(kinds) == 1
    return (*kinds,)[0] if is_alike else None, min(speeds) if len(speeds) == 2 else None


# Which measured links are too slow, or not there at all: findings with the two nodes as facts.


def link_findings(
    links: Sequence[LinkDoc], network: Network, names: Mapping[str, str]
) -> list[LinkFindingDoc]:
    """Return what is wrong with the links, in their order; `names` are those of the nodes."""
    return [finding for link in links for finding in _of_link(link, network, names)]


def _rates(link: LinkDoc) -> str:
    rates = " and ".join(bits(rate) for rate in link["bandwidths"] if rate is not None)
    speed = link["speed"]
    return rates if speed is None else f"{rates}, over interfaces of {bits(speed)}"


def _of_link(link: LinkDoc, network: Network, names: Mapping[str, str]) -> Iterator[LinkFindingDoc]:
    between = " and ".join(names.get(end, end) for end in link["ends"])
    bandwidth, trip = link["bandwidth"], link["round_trip"]
    reason, fix = link["reason"] or "", link["fix"] or ""
    if bandwidth is None or trip is None:
        what, why = f"{between} could not be measured", reason or "no cause is known"
        yield _finding("link-unmeasured", link, what, why, fix, reason)
        return
    if bandwidth < network.least_bandwidth:
        arrive, least = bits(bandwidth), bits(network.least_bandwidth)
        yield _finding(
            "link-slow",
            link,
            f"between {between} {arrive} arrive, less than {least}",
            "a slow port, a bad cable, radio, or other traffic",
            "compare `ethtool INTERFACE` on both, and measure the pair again",
            _rates(link),
        )
    if link["reason"] is not None:
        what = f"of {between} only the one can connect to the other"
        yield _finding("link-one-way", link, what, reason, fix, reason)
    if trip > network.most_round_trip:
        took, most = milliseconds(trip), milliseconds(network.most_round_trip)
        yield _finding(
            "link-latency",
            link,
            f"a round trip between {between} takes {took}, more than {most}",
            "a long path, a tunnel, radio, or a full queue",
            "see the path with `traceroute`, and keep these nodes out of one pipeline",
            took,
        )


def _finding(
    code: str, link: LinkDoc, what: str, why: str, fix: str, evidence: str
) -> LinkFindingDoc:
    return {
        "code": code,
        "severity": "warning",
        "nodes": link["ends"],
        "what": what,
        "why": why,
        "fix": fix,
        "evidence": evidence,
    }


# The measured links as a table: the slowest first, and what is wrong with them.

_HEAD = ("LINK", "ROUND TRIP", "BANDWIDTH", "BACK", "BY")
_RIGHT = ("ROUND TRIP", "BANDWIDTH", "BACK")

_SHOWN = 28
"""Links that have a row: all of eight nodes. `--json` has all."""


def link_lines(gathered: Gathered, context: Context) -> Iterator[str]:
    """Yield the lines; nothing where nothing was measured."""
    if not gathered.links:
        return
    names = {node.id: node.name for node in gathered.nodes.values()}
    measured = [link for link in gathered.links if link["bandwidth"] is not None]
    shown = sorted(measured, key=lambda link: link["bandwidth"] or 0.0)[:_SHOWN]
    if shown:
        rows = [_HEAD, *(_row(link, names) for link in shown)]
        encoded = [tuple(context.encodable(cell) for cell in row) for row in rows]
        head, *body = grid(encoded, context.width, right=_RIGHT, wrap="LINK")
        yield ""
        yield paint(head, "dim", context.colour)
        yield from body
    yield ""
    yield from folded(
        context.encodable(_total(gathered.links, measured, len(shown))), context.width
    )
    for finding in gathered.findings:
        sentence = f"{finding['severity']}: {finding['what']}: {finding['why']}; {finding['fix']}"
        for line in folded(context.encodable(sentence), context.width, hanging="  "):
            yield paint(line, "yellow", context.colour)


def _row(link: LinkDoc, names: dict[str, str]) -> tuple[str, ...]:
    there, back = (_bits(value) for value in link["bandwidths"])
    interfaces = dict.fromkeys(filter(None, link["interfaces"]))
    path = ", ".join(filter(None, [link["kind"], *interfaces]))
    ends = " – ".join(names.get(end, end) for end in link["ends"])
    trip = link["round_trip"]
    return (ends, "" if trip is None else milliseconds(trip), there, back, path)


def _bits(value: float | None) -> str:
    return "" if value is None else bits(value)


def _total(links: Sequence[LinkDoc], measured: Sequence[LinkDoc], shown: int) -> str:
    sentence = f"{len(measured)} of {counted(len(links), 'pair')} measured"
    speeds = [link["bandwidth"] for link in measured if link["bandwidth"] is not None]
    trips = [link["round_trip"] for link in measured if link["round_trip"] is not None]
    if speeds and trips:
        rates = _span(bits(min(speeds)), bits(max(speeds)))
        times = _span(milliseconds(min(trips)), milliseconds(max(trips)))
        sentence += f": {rates}, round trips {times}"
    if shown < len(measured):
        sentence += f"; the {shown} slowest are shown, --json has all"
    return sentence


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
