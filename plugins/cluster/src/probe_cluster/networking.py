"""Measure between the nodes of a gather, through the engine that gathered them."""

from __future__ import annotations

from collections import Counter

from probe_cluster.errors import ClusterError
from probe_cluster.link_findings import link_findings
from probe_cluster.link_rows import failed_link
from probe_cluster.measuring import bounds, groups_of, measure
from probe_cluster.network_model import Network
from probe_cluster.pairing import choose_pairs
from probe_core.commands import size
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_cluster.gather_model import Collector, Engine, Limits
    from probe_cluster.gathering import Gathered
    from probe_cluster.measuring import Progress
    from probe_cluster.pairing import Pair

__all__ = ["engine_of", "measure_links"]


_RENAME = "give each node a host name of its own"


def engine_of(collector: Collector) -> Engine:
    """Return the collector as one that can measure. Raises `ClusterError` where it cannot."""
    if not hasattr(collector, "agents"):
        raise ClusterError(f"--network: {collector.name} cannot start programs on the nodes")
    engine: Engine = collector  # type: ignore[assignment]
    return engine


async def measure_links(
    gathered: Gathered,
    collector: Collector,
    network: Network | None = None,
    *,
    limits: Limits,
    announce: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> None:
    """Measure pairs of the nodes that gave a report; `gathered` has the links afterwards.

    `announce` is called with a sentence on what it costs, before anything starts. Where there is
    no pair `gathered.network_problem` says why. Raises `ClusterError` where the engine cannot
    measure.
    """
    network = network or Network()
    engine = engine_of(collector)
    try:
        pairs = _pairs(gathered, network)
    except ClusterError as error:
        gathered.network_problem = str(error)
        return
    unusable = {} if engine.process_each else _ambiguous(gathered)
    names = {node.id: node.name for node in gathered.nodes.values()}
    possible = [pair for pair in pairs if unusable.keys().isdisjoint(pair)]
    if announce is not None and possible:
        announce(_announcement(possible, network, engine, limits))
    summaries = {node.id: node.summary for node in gathered.nodes.values()}
    nics = {id_: summary.nics for id_, summary in summaries.items() if summary is not None}
    measured = await measure(
        engine, gathered.targets, possible, network, limits, nics=nics, progress=progress
    )
    links = dict(zip(possible, measured, strict=True))
    gathered.links = [
        links.get(pair) or failed_link(pair, _reason(pair, unusable), _RENAME) for pair in pairs
    ]
    gathered.findings = link_findings(gathered.links, network, names)


def _pairs(gathered: Gathered, network: Network) -> list[Pair]:
    """Return the pairs of the nodes that gave a report. Raises `ClusterError`."""
    ids = [node.id for node in gathered.nodes.values() if node.status == "ok"]
    if len(ids) < 2:
        raise ClusterError("--network: fewer than two nodes gave a report, so no pair is measured")
    by_name = {node.name: node.id for node in gathered.nodes.values()}
    return choose_pairs(ids, by_name, network.pairs)


def _ambiguous(gathered: Gathered) -> dict[str, str]:
    """Return the nodes whose agents one launcher could not tell from others: same host name."""
    bases = Counter(id_.rpartition("#")[0] or id_ for id_ in gathered.nodes)
    return {
        id_: f"{counted(bases[base], 'node')} have the name {base}"
        for id_ in gathered.nodes
        if bases[base := id_.rpartition("#")[0] or id_] > 1
    }


def _reason(pair: Pair, unusable: dict[str, str]) -> str:
    return next(unusable[end] for end in pair if end in unusable)


def _announcement(pairs: list[Pair], network: Network, engine: Engine, limits: Limits) -> str:
    nodes = len({end for pair in pairs for end in pair})
    cost = bounds(groups_of(pairs, engine, limits), network)
    return (
        f"measures {counted(len(pairs), 'pair')} of {counted(nodes, 'node')} through {engine.name}:"
        f" about {cost.expected:.0f} s, at most {cost.seconds:.0f} s and {size(cost.size)}"
        f"; a node is in one pair at a time"
    )
