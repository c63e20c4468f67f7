"""One process that starts a task on each node: for engines that launch by themselves."""

from __future__ import annotations

import asyncio
import time

from probe_cluster.collectors.agent_messages import lost_sentence, message_of
from probe_cluster.collectors.answers import stream_answer, unanswered
from probe_cluster.errors import ClusterError
from probe_cluster.gather_model import Answer, Target
from probe_cluster.node_lines import Streams
from probe_cluster.node_process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_cluster.collectors.relay import Relay
    from probe_cluster.gather_model import Limits, Sink, Wire, Write
    from probe_cluster.node_lines import Stream
    from probe_cluster.node_process import Ended

__all__ = ["Launch", "attend_all", "attend_with_relay"]

_LOOK_S = 0.1
"""Seconds between two looks at whether all nodes have answered or are beyond their deadline."""

_SETTLE_S = 2.0
"""Seconds for the launcher to end by itself after the last answer, before it is ended."""


class Launch:
    """One run of a launcher. The deadline of each node starts when the first of them starts.

    Until then the job may wait in a queue, which the overall time alone bounds. `listed` returns
    the nodes that the data of a start line names, for an engine that lists them only then. With
    `both` the nodes' lines come on standard error.
    """

    def __init__(
        self,
        command: Sequence[str],
        limits: Limits,
        sink: Sink,
        listed: Callable[[bytes], Sequence[str]] | None = None,
        *,
        both: bool = False,
    ) -> None:
        self._command = command
        self._limits = limits
        self._sink = sink
        self._listed = listed
        self._both = both
        self._first: float | None = None
        self._names: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._running: set[str] = set()
        self._ended_at: float | None = None

    async def run(self) -> None:
        """Run the launcher. Raises `ClusterError` when it fails before any node starts."""
        lines = Streams(self._stream_ended, self._node_started)
        work = asyncio.ensure_future(run(self._command, lines.feed, None, both=self._both))
        try:
            while not work.done() and not self._over():
                await asyncio.wait({work}, timeout=_LOOK_S)
        finally:
            stopped = not work.done()
            work.cancel()
            await asyncio.wait({work})
        if stopped or work.cancelled():
            self._close_late()
        else:
            self._close(work.result())

    def _over(self) -> bool:
        """Return whether nothing more is to be waited for."""
        if self._first is None:
            return False
        if not self._sink.open_targets():
            self._ended_at = self._ended_at or time.monotonic()
            return time.monotonic() > self._ended_at + _SETTLE_S
        self._ended_at = None
        return time.monotonic() > self._first + self._limits.node

    def _node_started(self, node: str, data: bytes) -> None:
        self._first = self._first or time.monotonic()
        number = self._names[node] = self._names.get(node, 0) + 1
        # Two nodes may have one host name; the tag of their lines keeps them apart.
        id_ = node if number == 1 else f"{node}#{number}"
        for name in self._listed(data) if self._listed is not None else ():
            self._sink.target(Target(name))
        self._sink.target(Target(id_))
        self._running.add(id_)

    def _stream_ended(self, stream: Stream) -> None:
        # Of several streams of one name the order of their ends is unknown: each takes a free id.
        for number in range(1, self._names[stream.node] + 1):
            id_ = stream.node if number == 1 else f"{stream.node}#{number}"
            if id_ in self._running:
                self._running.discard(id_)
                self._sink.answer(stream_answer(id_, stream))
                return

    def _close_late(self) -> None:
        """Give the nodes their reason after the launcher was ended."""
        for target in self._sink.open_targets():
            running = target.id in self._running
            step = "`probe --json` runs there since" if running else "nothing came of it for"
            reason = f"{step} {self._limits.node:g} s"
            fix = "give it more time: --timeout SECONDS"
            self._sink.answer(Answer(target.id, "timeout", reason, fix))

    def _close(self, ended: Ended) -> None:
        """Give the nodes their reason after the launcher ended by itself."""
        if ended.unstarted is not None:
            raise ClusterError(f"{ended.unstarted}; install that command on this computer")
        sentence = ended.last_line() or "it printed nothing"
        if self._first is None:
            how = f"{self._command[0]} ended with {ended.status} before any node started"
            raise ClusterError(f"{how}: {sentence}")
        for target in self._sink.open_targets():
            running = target.id in self._running
            answer = unanswered(target.id, target.id, ended, started=running, seconds=0)
            line = _line_about(target.id, ended.stderr)
            self._sink.answer(Answer(target.id, answer.status, line or answer.reason, answer.fix))
        if ended.status != 0 and not self._names_all_listed():
            self._sink.problem(f"{self._command[0]} ended with {ended.status}: {sentence}")

    def _names_all_listed(self) -> bool:
        """Return whether the engine named its nodes, so that a missing one has its own row."""
        return self._listed is not None


def _line_about(node: str, stderr: str) -> str | None:
    """Return the launcher's own line about a node, such as "srun: error: n3: task 2: Killed"."""
    patterns = (f"{node}:", f"{node} ", f"{node},")
    lines = (line.strip() for line in reversed(stderr.splitlines()))
    return next(
        (line for line in lines if any(pattern in f"{line} " for pattern in patterns)), None
    )


async def attend_all(
    command: Sequence[str], targets: Sequence[Target], wire: Wire, *, folder: str | None = None
) -> None:
    """Run one launcher whose input reaches the agents of all nodes, until it ends."""

    def opened(write: Write) -> None:
        for target in targets:
            wire.attach(target.id, write)

    ended = await run(command, _messages(wire).feed, None, folder=folder, opened=opened)
    _all_lost(ended, targets, wire)


async def attend_with_relay(
    command: Sequence[str], targets: Sequence[Target], wire: Wire, relay: Relay
) -> None:
    """Run one launcher whose agents take their commands from `relay`, until it ends."""
    for target in targets:
        wire.attach(target.id, relay.write)
    feed = _messages(wire).feed
    ended = await run(command, feed, None, environ=relay.environ, both=True)
    _all_lost(ended, targets, wire)


def _messages(wire: Wire) -> Streams:
    return Streams(lambda stream: wire.message(stream.node, message_of(stream)))


def _all_lost(ended: Ended, targets: Sequence[Target], wire: Wire) -> None:
    for target in targets:
        wire.lost(target.id, lost_sentence(ended))
