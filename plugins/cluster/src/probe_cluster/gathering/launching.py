"""Start a task on each node, by one process a node or one for all, and take what comes of it."""

from __future__ import annotations

import asyncio
import os
import time

from probe_cluster.gathering.answers import (
    answer_of,
    damaged,
    late,
    message_of,
    unanswered,
    unsent,
)
from probe_cluster.gathering.lines import Streams
from probe_cluster.gathering.model import Answer, Target
from probe_cluster.gathering.process import run
from probe_cluster.gathering.sending import Parcel, program
from probe_cluster.shared import ClusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_cluster.gathering.lines import Stream
    from probe_cluster.gathering.model import Limits, Message, Sink, Wire, Write
    from probe_cluster.gathering.process import Ended
    from probe_cluster.network.start import Relay, Start


# What the agents of a measurement print, and why one is not there.

NO_PYTHON = "no Python 3.8 or newer is on its PATH, and `probe` names none"


def agent_message(stream: Stream) -> Message:
    """Return the message of a stream; one that cannot be read has the kind ``lost``."""
    try:
        message = message_of(stream)
    except ValueError:
        return {"kind": "lost", "reason": "its agent prints what cannot be read"}
    return {"kind": "lost", "reason": NO_PYTHON} if message.get("kind") == "no-python" else message


def lost_sentence(ended: Ended) -> str:
    """Return why the process that started an agent is gone."""
    if ended.unstarted is not None:
        return ended.unstarted
    sentence = ended.cause()
    if ended.status is None:
        return "its agent was ended"
    tail = f": {sentence}" if sentence else ""
    return f"its agent ended with {ended.status}{tail}"


# One process a node, all at once up to the fan-out: for engines that reach nodes one by one.


async def run_each(
    targets: Sequence[Target],
    command: Callable[[Target], Sequence[str]],
    limits: Limits,
    sink: Sink,
) -> None:
    """Run the command of each target, at most `limits.fanout` at a time."""
    slots = asyncio.Semaphore(max(1, limits.fanout))

    parcel = Parcel(limits)
    parcel.begin()

    async def ask(target: Target) -> None:
        async with slots:
            await _Asked(target, limits, sink, parcel).run(command(target))

    try:
        async with asyncio.TaskGroup() as group:
            for target in targets:
                group.create_task(ask(target))
    finally:
        await parcel.end()


class _Asked:
    """One node that has a process of its own here, whose input is that of the node's program."""

    def __init__(self, target: Target, limits: Limits, sink: Sink, parcel: Parcel) -> None:
        self._target = target
        self._limits = limits
        self._sink = sink
        self._parcel = parcel
        self._started = False
        self._write: Write | None = None
        self._sending: asyncio.Future[None] | None = None

    async def run(self, command: Sequence[str]) -> None:
        """Run the process until it ends, or for as long as a node may take."""
        lines = Streams(self._take)
        seconds = self._limits.node
        try:
            ended = await run(command, lines.feed, seconds, opened=self._open)
        finally:
            if self._sending is not None:
                self._sending.cancel()
        host = self._target.name or self._target.id
        # The first answer counts: this is that of a node that gave none.
        self._sink.answer(
            unanswered(self._target.id, host, ended, started=self._started, seconds=seconds)
        )

    def _open(self, write: Write) -> None:
        self._write = write
        write(program())

    def _take(self, stream: Stream) -> None:
        # The process reaches one node: whatever that node calls itself, the answer is this one's.
        id_ = self._target.id
        try:
            message = message_of(stream)
        except ValueError as error:
            self._sink.answer(damaged(id_, error))
            return
        if message.get("kind") == "start":
            self._started = True
        elif message.get("kind") == "need":
            self._sending = asyncio.ensure_future(self._send())
        else:
            self._sink.answer(answer_of(id_, message))

    async def _send(self) -> None:
        assert self._write is not None
        try:
            self._write(await self._parcel.data())
        except ValueError as error:
            self._sink.answer(unsent(self._target.id, error))
            self._write(b"")


async def attend_each(
    targets: Sequence[Target], command: Callable[[Target], Sequence[str]], start: Start, wire: Wire
) -> None:
    """Run the agent of each target, all at once, until they end."""

    async def attend(target: Target) -> None:
        def opened(write: Write) -> None:
            write(start.program)
            wire.attach(target.id, write)

        lines = Streams(lambda stream: wire.message(target.id, agent_message(stream)))
        ended = await run(command(target), lines.feed, None, opened=opened)
        wire.lost(target.id, lost_sentence(ended))

    async with asyncio.TaskGroup() as group:
        for target in targets:
            group.create_task(attend(target))


# One process that starts a task on each node: for engines that launch by themselves.

_LOOK_S = 0.1
"""Seconds between two looks at whether all nodes have answered or are beyond their deadline."""

_SETTLE_S = 2.0
"""Seconds for the launcher to end by itself after the last answer, before it is ended."""


class Launch:
    """One run of a launcher. The deadline of each node starts when the first of them starts.

    Until then the job may wait in a queue, which the overall time alone bounds. `listed` returns
    the nodes that a node's first message names, for an engine that lists them only then. With
    `both` the nodes' lines come on standard error. The launcher passes its input on to all nodes:
    their program, and what they ask for; one that does not gets both as variables, in `environ`.
    """

    def __init__(
        self,
        command: Sequence[str],
        limits: Limits,
        sink: Sink,
        listed: Callable[[str], Sequence[str]] | None = None,
        *,
        both: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._limits = limits
        self._sink = sink
        self._listed = listed
        self._both = both
        self._environ = environ
        self._parcel = Parcel(limits)
        self._first: float | None = None
        self._numbers: dict[str, int] = {}
        self._agents: dict[str, str] = {}
        self._ended_at: float | None = None
        self._write: Write | None = None
        self._sending: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run the launcher. Raises `ClusterError` when it fails before any node starts."""
        lines = Streams(self._take)
        if self._environ is None:
            opened, environ = self._open, None
        else:
            opened, environ = None, {**os.environ, **self._environ}
        work = asyncio.ensure_future(
            run(self._command, lines.feed, None, both=self._both, opened=opened, environ=environ)
        )
        try:
            while not work.done() and not self._over():
                await asyncio.wait({work}, timeout=_LOOK_S)
        finally:
            stopped = not work.done()
            work.cancel()
            await asyncio.wait({work})
            if self._sending is not None:
                self._sending.cancel()
            await self._parcel.end()
        if stopped or work.cancelled():
            self._close_late()
        else:
            self._close(work.result())

    def _open(self, write: Write) -> None:
        self._write = write
        write(program())

    def _over(self) -> bool:
        """Return whether nothing more is to be waited for."""
        if self._first is None:
            return False
        if not self._sink.open_targets():
            self._ended_at = self._ended_at or time.monotonic()
            return time.monotonic() > self._ended_at + _SETTLE_S
        self._ended_at = None
        return time.monotonic() > self._first + self._limits.node

    def _take(self, stream: Stream) -> None:
        """Take a message of one of the nodes."""
        try:
            message = message_of(stream)
        except ValueError as error:
            # Of which agent is unknown: of two nodes of one name the first that is open.
            self._sink.answer(damaged(self._open_id(stream.node), error))
            return
        agent = str(message.get("agent") or f"{stream.node} without a program")
        id_ = self._agents.get(agent) or self._started(stream.node, agent, message)
        if message.get("kind") == "need":
            self._sending = self._sending or asyncio.ensure_future(self._send())
        elif message.get("kind") != "start":
            self._sink.answer(answer_of(id_, message))

    def _started(self, node: str, agent: str, message: Message) -> str:
        self._first = self._first or time.monotonic()
        number = self._numbers[node] = self._numbers.get(node, 0) + 1
        # Two nodes may have one host name; their programs' own numbers keep them apart.
        id_ = self._agents[agent] = node if number == 1 else f"{node}#{number}"
        for name in self._listed(str(message.get("nodelist") or "")) if self._listed else ():
            self._sink.target(Target(name))
        self._sink.target(Target(id_))
        return id_

    def _open_id(self, node: str) -> str:
        waiting = {target.id for target in self._sink.open_targets()}
        ids = [node, *(f"{node}#{number}" for number in range(2, self._numbers.get(node, 1) + 1))]
        return next((id_ for id_ in ids if id_ in waiting), node)

    async def _send(self) -> None:
        """Send the archive once: the launcher gives it to all nodes, and some do not need it."""
        try:
            data = await self._parcel.data()
            if self._write is not None:
                self._write(data)
        except ValueError as error:
            for target in self._sink.open_targets():
                self._sink.answer(unsent(target.id, error))

    def _close_late(self) -> None:
        """Give the nodes their reason after the launcher was ended."""
        running = set(self._agents.values())
        for target in self._sink.open_targets():
            self._sink.answer(late(target.id, target.id in running, self._limits.node))

    def _close(self, ended: Ended) -> None:
        """Give the nodes their reason after the launcher ended by itself."""
        if ended.unstarted is not None:
            raise ClusterError(f"{ended.unstarted}; install that command on this computer")
        sentence = ended.cause() or "it printed nothing"
        if self._first is None:
            how = f"{self._command[0]} ended with {ended.status} before any node started"
            raise ClusterError(f"{how}: {sentence}")
        running = set(self._agents.values())
        for target in self._sink.open_targets():
            started = target.id in running
            answer = unanswered(target.id, target.id, ended, started=started, seconds=0)
            line = _line_about(target.id, ended.stderr)
            self._sink.answer(Answer(target.id, answer.status, line or answer.reason, answer.fix))
        # Where the engine named its nodes, a missing one has its own row.
        if ended.status != 0 and self._listed is None:
            self._sink.problem(f"{self._command[0]} ended with {ended.status}: {sentence}")


def _line_about(node: str, stderr: str) -> str | None:
    """Return the launcher's own line about a node, such as "srun: error: n3: task 2: Killed"."""
    patterns = (f"{node}:", f"{node} ", f"{node},")
    lines = (line.strip() for line in reversed(stderr.splitlines()))
    return next(
        (line for line in lines if any(pattern in f"{line} " for pattern in patterns)), None
    )


async def attend_all(
    command: Sequence[str],
    targets: Sequence[Target],
    wire: Wire,
    *,
    program: bytes = b"",
    folder: str | None = None,
) -> None:
    """Run one launcher whose input, `program` first, reaches the agents of all nodes."""

    def opened(write: Write) -> None:
        if program:
            write(program)
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
    return Streams(lambda stream: wire.message(stream.node, agent_message(stream)))


def _all_lost(ended: Ended, targets: Sequence[Target], wire: Wire) -> None:
    for target in targets:
        wire.lost(target.id, lost_sentence(ended))
