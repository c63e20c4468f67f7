"""Start a task on each node, by one process a node or one for all, and say what its end means."""

from __future__ import annotations

import asyncio
import shlex
import time

from probe_cluster.gathering.lines import Streams
from probe_cluster.gathering.model import LONGER, Answer, Target
from probe_cluster.gathering.process import run
from probe_cluster.shared import ClusterError
from probe_core.commands import parse_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_cluster.gathering.lines import Stream
    from probe_cluster.gathering.model import Limits, Message, Relay, Sink, Start, Wire, Write
    from probe_cluster.gathering.process import Ended


# What the end of a node's stream, or of its process, means: the answer, its reason and its fix.

INSTALL = "install it there: pip install probe-core, or name its place: --probe PATH"

# What OpenSSH 9 and kubectl 1.31 print, and what to do. A sentence that none of them matches is
# passed on as it is.
_FIXES = (
    # A host that was never connected to: with BatchMode ssh prints this line alone.
    (
        "Host key verification failed",
        "connect by hand to accept its key: ssh {0}; if it replaces another: ssh-keygen -R {1}",
    ),
    ("Permission denied", "let {1} accept a key without a password: ssh-copy-id {0}"),
    ("Could not resolve", "check the name {1}, or write its address"),
    ("Connection refused", "start the ssh server on {1}, or name its port in ~/.ssh/config"),
    ("No route to host", "check that {1} is on and reachable"),
    ("timed out", "check that {1} is on, and that no firewall drops the connection"),
    ("forbidden", "ask for the right to run `kubectl exec` and to list pods"),
    ("Unauthorized", "log in again, then try `kubectl get pods`"),
)

_CHANGED = ("Host key for ", " has changed and you have requested strict checking.")
"""What stands around the name under which OpenSSH keeps a key: [ADDRESS]:PORT, or the host."""


def stream_answer(id_: str, stream: Stream) -> Answer:
    """Return the answer of a stream that ended."""
    kind, data = stream.end or ("error", b"")
    if kind == "absent":
        return Answer(id_, "no-probe", "probe-core is not installed there, or not on PATH", INSTALL)
    if kind == "error":
        status, _, text = data.decode("utf-8", "replace").partition(" ")
        sentence = clean_text(text.strip(), 300) or "it printed nothing"
        reason = f"`probe --json` ended with {clean_text(status, 12)} there: {sentence}"
        return Answer(id_, "failed", reason, "run `probe --json` on that node")
    try:
        return Answer(id_, "ok", text=stream.text())
    except ValueError as error:
        return Answer(id_, "invalid", str(error), "run it again; other output was mixed with it")


def unanswered(id_: str, host: str, ended: Ended, *, started: bool, seconds: float) -> Answer:
    """Return the answer of a node whose process ended, or was ended, without one."""
    if ended.unstarted is not None:
        return Answer(id_, "failed", ended.unstarted, "install that command on this computer")
    if ended.timed_out:
        return _late(id_, started, seconds)
    status = f"the command ended with {ended.status}"
    if entry := _changed_key(ended.stderr):
        fix = f"compare the key, then forget the old one: ssh-keygen -R {shlex.quote(entry)}"
        return Answer(id_, "missing", f"the host key of {entry} has changed ({status})", fix)
    sentence = ended.last_line()
    reason = f"{sentence} ({status})" if sentence else f"{status} and no answer"
    return Answer(id_, "missing", reason, _fix(ended.stderr, host))


def _late(id_: str, started: bool, seconds: float) -> Answer:
    step = "`probe --json` runs there since" if started else "nothing came of it for"
    return Answer(id_, "timeout", f"{step} {seconds:g} s", LONGER)


def _changed_key(stderr: str) -> str | None:
    """Return the name in known_hosts of a host whose key is another one now."""
    before, after = _CHANGED
    for line in stderr.splitlines():
        if line.startswith(before) and line.rstrip().endswith(after):
            return clean_text(line.rstrip()[len(before) : -len(after)])
    return None


def _fix(stderr: str, host: str) -> str | None:
    for pattern, fix in _FIXES:
        if pattern in stderr:
            # Of user@host the host alone is a name in known_hosts and in the DNS.
            return fix.format(host, host.rpartition("@")[2])
    return None


# What the agents of a measurement print, and why one is not there.

NO_PYTHON = "no Python 3.8 or newer is on its PATH, and `probe` names none"


def message_of(stream: Stream) -> Message:
    """Return the message of a stream; one that cannot be read has the kind ``lost``."""
    if stream.end is None or stream.end[0] != "end":
        return {"kind": "lost", "reason": NO_PYTHON}
    try:
        message = parse_json(stream.text())
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return {"kind": "lost", "reason": "its agent prints what cannot be read"}
    return message


def lost_sentence(ended: Ended) -> str:
    """Return why the process that started an agent is gone."""
    if ended.unstarted is not None:
        return ended.unstarted
    sentence = ended.last_line()
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

    async def ask(target: Target) -> None:
        async with slots:
            await _ask(target, command(target), limits.node, sink)

    async with asyncio.TaskGroup() as group:
        for target in targets:
            group.create_task(ask(target))


async def _ask(target: Target, command: Sequence[str], seconds: float, sink: Sink) -> None:
    started: list[str] = []

    def answered(stream: Stream) -> None:
        # The process reaches one node: whatever that node calls itself, the answer is this one's.
        sink.answer(stream_answer(target.id, stream))

    lines = Streams(answered, lambda node, _: started.append(node))
    ended = await run(command, lines.feed, seconds)
    host = target.name or target.id
    # The first answer counts: this is that of a node that gave none.
    sink.answer(unanswered(target.id, host, ended, started=bool(started), seconds=seconds))


async def attend_each(
    targets: Sequence[Target], command: Callable[[Target], Sequence[str]], start: Start, wire: Wire
) -> None:
    """Run the agent of each target, all at once, until they end."""

    async def attend(target: Target) -> None:
        def opened(write: Write) -> None:
            write(start.program)
            wire.attach(target.id, write)

        lines = Streams(lambda stream: wire.message(target.id, message_of(stream)))
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
            self._sink.answer(_late(target.id, running, self._limits.node))

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
    return Streams(lambda stream: wire.message(stream.node, message_of(stream)))


def _all_lost(ended: Ended, targets: Sequence[Target], wire: Wire) -> None:
    for target in targets:
        wire.lost(target.id, lost_sentence(ended))
