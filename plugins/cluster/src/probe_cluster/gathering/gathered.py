"""Ask all nodes at once through an engine, and keep what came: a row for each, whatever happened.

The loop knows no engine. It takes answers in any order, checks each report, and closes the rows
of the nodes that did not answer when the overall time is over.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace

from probe_cluster.gathering.answers import document_of
from probe_cluster.gathering.known_texts import KnownTexts
from probe_cluster.gathering.model import LONGER, Answer, Limits, Sink, Target
from probe_cluster.gathering.summaries import summary_of
from probe_cluster.shared import ClusterError, plain
from probe_core import __version__
from probe_core.commands import parse_json, parse_report, write_json
from probe_core.wording import clean_text, counted, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_cluster.gathering.differences import DifferenceDoc
    from probe_cluster.gathering.model import (
        BasicsDoc,
        Collector,
        EngineDoc,
        LinkDoc,
        LinkFindingDoc,
    )
    from probe_cluster.gathering.summaries import Summary
    from probe_core.model.document import Json, ReportDoc

    """Is called with each answer, and once a second."""


_BEAT_S = 0.1
"""Seconds between two looks at the clock, for the progress line."""

_MARGIN_S = 5.0
"""Seconds for a collector to end its processes: the end of their input, SIGTERM, then SIGKILL."""


@dataclass(slots=True)
class Node:
    """One node of a gather. `status` is None until it answers."""

    id: str
    name: str
    status: str | None = None
    """One of `STATUSES`."""
    reason: str | None = None
    """Why there is no report."""
    fix: str | None = None
    """What to do about it."""
    text: bytes | None = field(default=None, repr=False)
    """The report as the node wrote it: JSON in ASCII; None where texts are not kept, too."""
    summary: Summary | None = field(default=None, repr=False)
    engine: EngineDoc | None = None
    """What the engine itself counts there; None where it counts nothing."""
    seconds: float | None = None
    """From the start of the gather to the answer."""
    sent: bool | None = None
    """Whether the probe that answered was sent there; None where that is unknown."""
    basics: BasicsDoc | None = None
    """What is known of the node without a report."""

    def report(self) -> ReportDoc:
        """Return the report's document, checked and complete. Raises `ValueError` without one."""
        if self.text is None:
            reason = self.reason or "this gather kept no texts"
            raise ValueError(f"node {self.id!r} has no report: {reason}")
        return parse_report(self.text)


@dataclass(slots=True)
class Gathered:
    """What came of all nodes."""

    collector: str
    # asyncio.run makes the repr of its result (signal.getsignal does, seen in CPython 3.11): with
    # the texts of 1,000 reports that took twice their memory.
    nodes: dict[str, Node] = field(default_factory=dict, repr=False)
    """By id, in the order in which the engine lists them."""
    problem: str | None = None
    """What is wrong with the engine as a whole: nodes may be missing that it did not list."""
    seconds: float = 0.0
    targets: dict[str, Target] = field(default_factory=dict, repr=False)
    """How the engine reaches each node."""
    links: list[LinkDoc] = field(default_factory=list)
    """The pairs that were to be measured; see `probe_cluster.network`."""
    findings: list[LinkFindingDoc] = field(default_factory=list)
    """What is wrong with the links."""
    network_problem: str | None = None
    """Why no pair could be measured at all."""

    @property
    def all_measured(self) -> bool:
        """Return whether each pair that was to be measured has both figures."""
        return self.network_problem is None and all(
            link["bandwidth"] and link["round_trip"] for link in self.links
        )

    @property
    def missing(self) -> list[Node]:
        """Return the nodes without a report."""
        return [node for node in self.nodes.values() if node.status not in (None, "ok")]

    @property
    def waiting(self) -> list[Node]:
        """Return the nodes that have not answered yet."""
        return [node for node in self.nodes.values() if node.status is None]

    @property
    def complete(self) -> bool:
        """Return whether each node gave its report and the engine itself is well."""
        return bool(self.nodes) and not self.missing and self.problem is None

    def differences(self) -> list[DifferenceDoc]:
        """Return in what the nodes differ, the most serious first."""
        from probe_cluster.gathering.differences import differences

        return differences(list(self.nodes.values()))


async def gather(
    collector: Collector,
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
    texts: bool = True,
    arrived: Arrived | None = None,
    known: Known | None = None,
    stop: asyncio.Event | None = None,
) -> Gathered:
    """Ask all nodes of `collector` at once for their reports.

    Each node has a deadline, and all together have one: see `Limits`. A node that fails costs its
    own row alone. Without `texts` only the summary of each report is kept, which is what a table
    and the differences need: of 10,000 nodes the texts are a gigabyte. `arrived` is called with a
    node when it is listed and when it answers, its text with it. `known` are nodes of an earlier
    gather: those with an answer are not asked again. When `stop` is set the gather ends, and the
    nodes that have not answered are ``interrupted``. Raises `ClusterError` when the engine does not
    answer, or lists no node.
    """
    limits = limits or Limits()
    stop = stop or asyncio.Event()
    task = _Gather(collector.name, progress, texts, arrived, stop)
    listed = await _listed(collector, limits, stop)
    for target in listed:
        task.add(target)
    ids = {target.id for target in listed}
    for target, answer in (known or {}).values():
        if listed and target.id not in ids:  # the engine does not reach it this time
            continue
        task.add(target)
        if answer is not None:
            task.answer(answer)
    if known and not task.waiting():
        return task.result()
    await task.run(collector, limits)
    return task.result()


async def _listed(collector: Collector, limits: Limits, stop: asyncio.Event) -> Sequence[Target]:
    """Return the nodes of the engine. Raises `ClusterError` where it does not list them in time."""
    listing = asyncio.ensure_future(collector.targets())
    stopped = asyncio.ensure_future(stop.wait())
    seconds = limits.total(1)
    try:
        await asyncio.wait({listing, stopped}, timeout=seconds, return_when="FIRST_COMPLETED")
        if listing.done():
            return listing.result()
        how = "before the interruption" if stop.is_set() else f"within {seconds:g} s"
        raise ClusterError(f"{collector.name} did not list its nodes {how}")
    finally:
        stopped.cancel()
        listing.cancel()


class _Gather:
    """One gather while it runs."""

    def __init__(
        self,
        collector: str,
        progress: Progress | None,
        texts: bool,
        arrived: Arrived | None,
        stop: asyncio.Event,
    ) -> None:
        self._start = time.monotonic()
        self._texts = texts
        self._gathered = Gathered(collector)
        self._progress = progress
        self._arrived = arrived
        self._stop = stop
        self._known = KnownTexts()
        self._targets = self._gathered.targets

    def waiting(self) -> list[Target]:
        """Return the nodes that have not answered yet."""
        ids = {node.id for node in self._gathered.waiting}
        return [target for id_, target in self._targets.items() if id_ in ids]

    def add(self, target: Target) -> None:
        """Take a node, or what the engine counts on a node that is listed already."""
        node = self._gathered.nodes.get(target.id)
        if node is None:
            self._targets[target.id] = target
            name = clean_text(target.name or target.id)
            node = Node(target.id, name, engine=target.engine)
            self._gathered.nodes[target.id] = node
            if self._arrived is not None:
                self._arrived(node)
        elif target.engine is not None:
            node.engine = target.engine

    def answer(self, answer: Answer) -> None:
        """Take an answer; the first of a node counts."""
        self.add(Target(answer.id))
        node = self._gathered.nodes[answer.id]
        if node.status is not None:
            return
        node.seconds = time.monotonic() - self._start
        checked = _checked(answer, node, self._known, self._texts or self._arrived is not None)
        node.status, node.reason, node.fix = checked.status, checked.reason, checked.fix
        node.text, node.sent, node.basics = checked.text, checked.sent, checked.basics
        if self._arrived is not None:
            self._arrived(node)
            if not self._texts:
                node.text = None
        self._show()

    def problem(self, sentence: str) -> None:
        self._gathered.problem = self._gathered.problem or clean_text(sentence, 600)

    def _add_links(self, links: Sequence[LinkDoc], findings: Sequence[LinkFindingDoc]) -> None:
        self._gathered.links += links
        self._gathered.findings += findings

    def _show(self) -> None:
        if self._progress is not None:
            self._gathered.seconds = time.monotonic() - self._start
            self._progress(self._gathered)

    async def run(self, collector: Collector, limits: Limits) -> None:
        """Run the collector until it ends, the overall time is over, or the gather is stopped."""
        sink = Sink(self.answer, self.add, self.problem, self.waiting, self._add_links)
        asked = self.waiting()
        work = asyncio.ensure_future(collector.collect(asked, limits, sink))
        stopped = asyncio.ensure_future(self._stop.wait())
        total = limits.total(len(asked))
        until = time.monotonic() + total
        try:
            while not (work.done() or stopped.done()):
                remaining = until - time.monotonic()
                if remaining <= 0:
                    break
                beat = _BEAT_S if self._progress is not None else remaining
                await asyncio.wait(
                    {work, stopped}, timeout=min(beat, remaining), return_when="FIRST_COMPLETED"
                )
                self._show()
        finally:
            stopped.cancel()
            await _stopped(work)
        self._close(collector.name, work, total)

    def _close(self, name: str, work: asyncio.Future[None], total: float) -> None:
        """Give each node without an answer its reason."""
        error = None if work.cancelled() or not work.done() else work.exception()
        if isinstance(error, ClusterError) and not self._gathered.nodes:
            raise error
        if error is not None:
            text = str(error) if isinstance(error, ClusterError) else error_text(error)
            self.problem(f"{name}: {text}")
        ended = work.done() and not work.cancelled()
        if error is None and not ended and self._stop.is_set():
            self.problem(_interrupted(self._gathered))
        elif error is None and not ended and not self._gathered.nodes:
            # A job waits in the queue of its engine, which lists no node until it starts.
            self.problem(f"{name} lists no node: none started within {total:g} s; {_QUEUE}")
        for node in self._gathered.waiting:
            if error is not None:
                self.answer(Answer(node.id, "failed", f"{name} failed: {self._gathered.problem}"))
            elif ended:
                self.answer(Answer(node.id, "missing", f"{name} ended without an answer of it"))
            elif self._stop.is_set():
                reason = "the gather was interrupted before it answered"
                self.answer(Answer(node.id, "interrupted", reason, _RESUME))
            else:
                reason = f"it gave no answer within the {total:g} s for all nodes"
                self.answer(Answer(node.id, "timeout", reason, LONGER))

    def result(self) -> Gathered:
        """Return what came. Raises `ClusterError` when there is no node at all."""
        gathered = self._gathered
        gathered.seconds = time.monotonic() - self._start
        if not gathered.nodes:
            raise ClusterError(gathered.problem or f"{gathered.collector} lists no node")
        return gathered


_RESUME = "ask those that are missing: --output DIR --resume"


def _interrupted(gathered: Gathered) -> str:
    count = len(gathered.nodes)
    if not count:
        return f"interrupted before {gathered.collector} listed a node"
    return f"interrupted: {count - len(gathered.waiting)} of {counted(count, 'node')} had answered"


_QUEUE = "look into its queue, or give it more time: --overall SECONDS"


async def _stopped(work: asyncio.Future[None]) -> None:
    """Cancel the collector and wait until it has ended its processes, within bounds."""
    if not work.done():
        work.cancel()
        await asyncio.wait({work}, timeout=_MARGIN_S)


def _checked(answer: Answer, node: Node, known: KnownTexts, texts: bool) -> Answer:
    """Return the answer, as invalid where its text is no report; its summary goes to the node.

    Its text is one line where `texts` are kept, else None.
    """
    if answer.status != "ok":
        return _readable(answer)
    try:
        text, document = document_of(answer.text or b"", known)
    except ValueError as error:
        return _invalid(answer, str(error), "run it again, or run `probe --json` on that node")
    try:
        if not isinstance(document, dict):
            raise ValueError("its answer is no table of JSON")
        node.summary = summary_of(document)
        return replace(answer, text=_one_line(text) if texts else None)
    except (ValueError, RecursionError) as error:
        reason = clean_text(str(error), 300) or "its answer is nested too deep"
        return _invalid(answer, reason, _version_fix(answer, document))


def _invalid(answer: Answer, reason: str, fix: str) -> Answer:
    return replace(answer, status="invalid", reason=reason, fix=fix, text=None)


def _version_fix(answer: Answer, document: Json) -> str:
    """Return what to do about a document that is whole and no report that is read here."""
    read = document.get("probe_core") if isinstance(document, dict) else None
    other = plain(read) or answer.version
    if other and other != __version__:
        return f"it is of probe-core {other}, and here is {__version__}: pip install -U probe-core"
    return "run `probe --json` on that node: another program may have its name"


def _one_line(text: bytes) -> bytes:
    """Return the report as one line of ASCII, which a document of all nodes can hold as it is."""
    text = text.strip()
    return text if text.isascii() and b"\n" not in text else write_json(parse_json(text)).encode()


def _readable(answer: Answer) -> Answer:
    reason = clean_text(answer.reason or "it gave no reason", 600)
    return replace(answer, reason=reason, text=None)


if TYPE_CHECKING:
    Progress = Callable[["Gathered"], None]
    Arrived = Callable[["Node"], None]
    Known = Mapping[str, tuple[Target, Answer | None]]
