"""Measure the pairs: an agent on each node, and as many pairs at a time as share no computer."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from dataclasses import dataclass

from probe_cluster.network.links import FIREWALL, Network, failed_link, link_findings, measured_link
from probe_cluster.network.pairs import batches, choose_pairs, rounds
from probe_cluster.network.session import Agent, AgentProblem, Session
from probe_cluster.network.start import Start
from probe_cluster.shared import ClusterError
from probe_core.commands import size
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_cluster.gathering.gathered import Gathered
    from probe_cluster.gathering.model import (
        Collector,
        Engine,
        Limits,
        LinkDoc,
        Message,
        Target,
    )
    from probe_cluster.network.links import Nics
    from probe_cluster.network.pairs import Pair

    Progress = Callable[[int, int, float], None]
    """Is called with the pairs that are measured, all pairs, and the seconds so far."""


_START_S = 20.0
"""Seconds for an agent to start: a login, and an interpreter from a network file system."""

_ASIDE_S = 1.5
"""Seconds of a pair beside its traffic: two logins of the pair, 200 round trips. Measured 0.1 s on
one computer; on a path of 100 ms the round trips take 0.6 s, and TCP and the proofs 1 s."""

_CONNECT_S = 7.0
"""Seconds in which the agent that connects has ended its attempts; see `agent`."""

_PORT_S = 5.0
"""Seconds for an agent to say on which port it listens. A stopped process does not."""

_END_S = 2.0
"""Seconds for the agents to end by themselves when their input is closed."""

_BEAT_S = 0.1


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a measurement costs: seconds that are expected, and the most; bytes at most."""

    expected: float
    seconds: float
    size: int


def bounds(groups: Sequence[Sequence[Pair]], network: Network) -> Bounds:
    """Return the bounds of pairs, whose agents are started anew for each group."""
    pair = 2 * network.seconds + _ASIDE_S
    count = sum(map(rounds, groups))
    # A firewall costs a pair two attempts; five such rounds are waited for.
    most = 2 * count * pair + len(groups) * _START_S + min(5, count) * 2 * _CONNECT_S
    size = 2 * sum(map(len, groups)) * network.size
    return Bounds(count * pair + 2.0 * len(groups), most, size)


def groups_of(pairs: Sequence[Pair], engine: Engine, limits: Limits) -> list[list[Pair]]:
    """Return the pairs by the agents that run at once."""
    return list(batches(pairs, limits.fanout)) if engine.process_each else [list(pairs)]


async def measure(
    engine: Engine,
    targets: Mapping[str, Target],
    pairs: Sequence[Pair],
    network: Network,
    limits: Limits,
    *,
    nics: Nics | None = None,
    progress: Progress | None = None,
) -> list[LinkDoc]:
    """Return a link for each pair, in their order. Raises nothing of its own.

    All agents are ended before it returns, also when it is cancelled.
    """
    groups = groups_of(pairs, engine, limits)
    task = _Measurement(network, nics or {}, len(pairs), progress)
    until = time.monotonic() + bounds(groups, network).seconds
    for group in groups:
        names = dict.fromkeys(end for pair in group for end in pair)
        remaining = until - time.monotonic()
        if remaining > 0:
            start = Start(limits.command, remaining + 5)
            await _run(engine, [targets[name] for name in names], start, group, task, until)
    late = "the time for all pairs was over before it was measured"
    return [task.links.get(pair) or failed_link(pair, late) for pair in pairs]


async def _run(
    engine: Engine,
    targets: Sequence[Target],
    start: Start,
    pairs: Sequence[Pair],
    task: _Measurement,
    until: float,
) -> None:
    """Start the agents, measure the pairs, and end the agents."""
    session = Session({target.id: clean_text(target.name or target.id) for target in targets})
    work = asyncio.ensure_future(engine.agents(targets, start, session.wire()))
    work.add_done_callback(session.engine_ended)
    try:
        async with asyncio.timeout(until - time.monotonic()):
            await task.run(session, pairs)
    except TimeoutError:
        pass
    finally:
        session.end()
        await asyncio.wait({work}, timeout=_END_S)
        work.cancel()
        await asyncio.wait({work}, timeout=_END_S + 1)


class _Measurement:
    """The links so far, and the pairs that run."""

    def __init__(self, network: Network, nics: Nics, total: int, progress: Progress | None) -> None:
        self.links: dict[Pair, LinkDoc] = {}
        self._network = network
        self._nics = nics
        self._total = total
        self._progress = progress
        self._start = time.monotonic()

    async def run(self, session: Session, pairs: Sequence[Pair]) -> None:
        """Measure the pairs, each as soon as no other uses one of its computers."""
        pending = list(pairs)
        running: dict[asyncio.Task[None], set[str]] = {}
        start = asyncio.ensure_future(session.started(_START_S))
        try:
            while pending or running:
                busy = set().union(*running.values())
                for pair in list(pending):
                    if not session.ready(pair):
                        continue
                    machines = {session.machine(end) for end in pair}
                    if busy.isdisjoint(machines):
                        busy |= machines
                        pending.remove(pair)
                        running[asyncio.ensure_future(self._pair(session, pair))] = machines
                beat = asyncio.ensure_future(asyncio.sleep(_BEAT_S))
                await asyncio.wait({beat, *running}, return_when="FIRST_COMPLETED")
                beat.cancel()
                running = {task: used for task, used in running.items() if not task.done()}
                self._show()
        finally:
            for unfinished in (start, *running):
                unfinished.cancel()

    def _show(self) -> None:
        if self._progress is not None:
            self._progress(len(self.links), self._total, time.monotonic() - self._start)

    async def _pair(self, session: Session, pair: Pair) -> None:
        """Measure a pair; where the second end cannot connect to the first, the other way round."""
        problems = []
        try:
            for listener, caller in (pair, pair[::-1]):
                agents = session.agents[listener], session.agents[caller]
                try:
                    answers = await _exchange(session, *agents, self._network)
                except AgentProblem as problem:
                    problems.append(str(problem))
                    if problem.final:
                        break
                    continue
                by_end = dict(zip((listener, caller), answers, strict=True))
                ends = [by_end[end] for end in pair]
                hellos = [session.agents[end].hello for end in pair]
                link = measured_link(pair, ends, hellos, self._nics)
                if problems:  # one way alone is open
                    link["reason"], link["fix"] = problems[0], FIREWALL
                self.links[pair] = link
                return
            fix = FIREWALL if len(problems) > 1 else None
            self.links[pair] = failed_link(pair, problems[0], fix)
        except (KeyError, TypeError, ValueError) as error:  # an agent that prints other things
            self.links[pair] = failed_link(pair, f"an agent gave no usable answer: {error!r}")


async def _exchange(
    session: Session, listener: Agent, caller: Agent, network: Network
) -> tuple[Message, Message]:
    """Return the results of both agents. Raises `AgentProblem`."""
    number = session.next_number()
    seconds = 2 * network.seconds + _CONNECT_S + 6
    order = {
        "pair": number,
        "token": secrets.token_hex(32),
        "seconds": seconds,
        "each": network.seconds,
        "bytes": network.size,
    }
    listener.check()
    caller.check()
    try:
        listener.order({"do": "listen", **order})
        port = (await listener.answer(number, _PORT_S, "opened no port"))["port"]
        peers = [[address, port] for address in listener.addresses(same=caller)]
        caller.order({"do": "connect", "peer": peers, **order})
        called = await caller.answer(number, seconds, "measured nothing")
        served = await listener.answer(number, _PORT_S, "measured nothing")
    finally:
        listener.order({"do": "stop", "pair": number})
    return served, called


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
