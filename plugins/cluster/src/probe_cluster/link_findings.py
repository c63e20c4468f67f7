"""Which measured links are too slow, or not there at all: findings with the two nodes as facts."""

from __future__ import annotations

from probe_cluster.gather_model import LINK_CODES
from probe_cluster.link_units import bits, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_cluster.gather_model import LinkDoc, LinkFindingDoc
    from probe_cluster.network_model import Network

__all__ = ["LINK_CODES", "link_findings"]


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
    if bandwidth is None or trip is None:
        yield {
            "code": "link-unmeasured",
            "severity": "warning",
            "nodes": link["ends"],
            "what": f"{between} could not be measured",
            "why": link["reason"] or "no cause is known",
            "fix": link["fix"] or "",
            "evidence": link["reason"] or "",
        }
        return
    if bandwidth < network.least_bandwidth:
        least = bits(network.least_bandwidth)
        yield {
            "code": "link-slow",
            "severity": "warning",
            "nodes": link["ends"],
            "what": f"between {between} {bits(bandwidth)} arrive, less than {least}",
            "why": "a slow port, a bad cable, radio, or other traffic",
            "fix": "compare `ethtool INTERFACE` on both, and measure the pair again",
            "evidence": _rates(link),
        }
    if link["reason"] is not None:
        yield {
            "code": "link-one-way",
            "severity": "warning",
            "nodes": link["ends"],
            "what": f"of {between} only the one can connect to the other",
            "why": link["reason"],
            "fix": link["fix"] or "",
            "evidence": link["reason"],
        }
    if trip > network.most_round_trip:
        most = milliseconds(network.most_round_trip)
        yield {
            "code": "link-latency",
            "severity": "warning",
            "nodes": link["ends"],
            "what": f"a round trip between {between} takes {milliseconds(trip)}, more than {most}",
            "why": "a long path, a tunnel, radio, or a full queue",
            "fix": "see the path with `traceroute`, and keep these nodes out of one pipeline",
            "evidence": milliseconds(trip),
        }
