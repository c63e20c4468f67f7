"""Run a command of an engine: bounded in time and output, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from dataclasses import dataclass
from itertools import takewhile

from probe_cluster.gathering.lines import MARK
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from typing import Any


_STDERR_TAIL = 256 << 10
_STDOUT_TAIL = 2048
"""Bytes of standard error that are kept, the last: a line or two of each of 1,000 nodes."""

_GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL: srun cancels its step at SIGTERM."""

_LEAVE_S = 1.5
"""Seconds between the end of its input and SIGTERM: what runs on a node ends with its input, and
removes what it made there, for which an engine that is ended leaves it no time (srun kills)."""

_DRAIN_S = 0.5
"""Seconds for the pipes to close after the process ended. A child that it left behind may hold
them: an ssh connection that is shared by ControlPersist holds standard error for minutes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `status` is None where it was ended, or never started."""

    status: int | None
    stderr: str
    timed_out: bool = False
    unstarted: str | None = None
    """Why it could not be started."""
    stdout: str = ""
    """The end of standard output, without the lines of nodes."""

    def last_line(self) -> str:
        """Return the last line of standard error that has letters, fit for a sentence."""
        return _last_line(self.stderr)

    def cause(self) -> str:
        """Return the line of standard error that names the cause, fit for a sentence.

        Open MPI explains an error in a box of many lines between two of dashes, whose first
        paragraph says what it is, and whose last line is of no help. What failed before, such as
        ssh, stands above it.
        """
        lines = self.stderr.splitlines()
        boxes = [number for number, line in enumerate(lines) if _BOX.fullmatch(line.strip())]
        if not boxes:
            errors = [line for line in lines if "error" in line.lower()]
            return _last_line("\n".join(errors)) or self.last_line()
        above = [line for line in lines[: boxes[0]] if not line.lower().startswith("warning")]
        paragraph = takewhile(str.strip, lines[boxes[0] + 1 :])
        return _last_line("\n".join(above)) or _last_line(" ".join(paragraph))

    def last_printed(self) -> str:
        """Return the last line that it wrote anywhere: an account may be closed on stdout."""
        return _last_line(self.stderr) or _last_line(self.stdout)


_BOX = re.compile("-{20,}")


def _last_line(text: str) -> str:
    for line in reversed(text.splitlines()):
        if any(char.isalpha() for char in line):
            return clean_text(line.strip(), 300)
    return ""


class _Pipes(asyncio.SubprocessProtocol):
    def __init__(self, feed: Callable[[bytes], None], both: bool) -> None:
        loop = asyncio.get_running_loop()
        self.feed = feed
        self._feeds = {1, 2} if both else {1}
        self.stderr = bytearray()
        self.stdout = b""
        self.exited = loop.create_future()
        self.closed = loop.create_future()
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd in self._feeds:
            self.feed(data)
        if fd == 1:
            self.stdout = (self.stdout + data)[-_STDOUT_TAIL:]
            return
        self.stderr += data
        if len(self.stderr) > 2 * _STDERR_TAIL:
            del self.stderr[:-_STDERR_TAIL]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open and not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


async def run(
    command: Sequence[str],
    feed: Callable[[bytes], None],
    seconds: float | None,
    *,
    folder: str | None = None,
    environ: Mapping[str, str] | None = None,
    opened: Callable[[Callable[[bytes], None]], None] | None = None,
    both: bool = False,
) -> Ended:
    """Run `command`, give `feed` its standard output as it comes, and return how it ended.

    `folder` is where it runs, `environ` its variables; None: those of this process. `opened` is
    called with what writes to its standard input; without it that is empty. With `both` its
    standard error is given to `feed`, too.

    It is ended after `seconds`, and when the caller is cancelled. Raises nothing of its own.
    """
    stdin = asyncio.subprocess.DEVNULL if opened is None else asyncio.subprocess.PIPE
    try:
        transport, pipes = await _started(
            asyncio.get_running_loop().subprocess_exec(
                lambda: _Pipes(feed, both), *command, stdin=stdin,
                start_new_session=os.name == "posix", cwd=folder, env=environ,
            )
        )  # fmt: skip
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Ended(None, "", unstarted=f"{command[0]}: {reason}")
    timed_out = False
    if opened is not None:
        opened(_writer(transport))
    try:
        done, _ = await asyncio.wait({pipes.exited}, timeout=seconds)
        timed_out = not done
        if done:
            await asyncio.wait({pipes.closed}, timeout=_DRAIN_S)
    finally:
        await _end(transport, pipes)
    stderr = _without_marked(bytes(pipes.stderr[-_STDERR_TAIL:]))
    stdout = _without_marked(pipes.stdout)
    status = None if timed_out else transport.get_returncode()
    return Ended(status, stderr, timed_out, stdout=stdout)


async def _started(start: Coroutine[Any, Any, Process]) -> Process:
    """Return the process. A caller that is cancelled meanwhile leaves none of its group behind.

    asyncio alone would kill the first process of the group, and not what that has started.
    """
    work = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        if work.exception() is None:
            await _end(*work.result())
        raise


def _without_marked(data: bytes) -> str:
    """Return output without the lines of nodes."""
    text = data.decode("utf-8", "replace")
    mark = MARK.decode("ascii")
    return "".join(line for line in text.splitlines(keepends=True) if mark not in line)


def _writer(transport: asyncio.SubprocessTransport) -> Callable[[bytes], None]:
    """Return what writes to the process; an empty write closes its input."""

    def write(data: bytes) -> None:
        pipe = transport.get_pipe_transport(0)
        if not isinstance(pipe, asyncio.WriteTransport) or pipe.is_closing():
            return
        if data:
            pipe.write(data)
        else:
            pipe.close()

    return write


async def _end(transport: asyncio.SubprocessTransport, pipes: _Pipes) -> None:
    """End the process and its group. A process that even SIGKILL does not end is abandoned."""
    if pipes.exited.done():
        transport.close()  # what it left behind is its own, such as a shared connection of ssh
        return
    try:
        if transport.get_pipe_transport(0) is not None:
            _writer(transport)(b"")
            await asyncio.wait({pipes.exited}, timeout=_LEAVE_S)
        if not pipes.exited.done():
            _signal(transport, "SIGTERM")
            await asyncio.wait({pipes.exited}, timeout=_GRACE_S)
    finally:
        # The first process may be gone and others of its group ignore SIGTERM.
        _signal(transport, "SIGKILL")
        if not pipes.exited.done():
            await asyncio.wait({pipes.exited}, timeout=_GRACE_S)
        transport.close()


def _signal(transport: asyncio.SubprocessTransport, name: str) -> None:
    try:
        if sys.platform == "win32":
            transport.kill()
        else:
            os.killpg(transport.get_pid(), getattr(signal, name))
    except (ProcessLookupError, PermissionError):
        pass


async def output(command: Sequence[str], seconds: float, limit: int) -> tuple[Ended, bytes]:
    """Return how `command` ended, and at most `limit` bytes of its standard output."""
    parts: list[bytes] = []
    size = 0

    def feed(data: bytes) -> None:
        nonlocal size
        if size < limit:
            parts.append(data)
            size += len(data)

    ended = await run(command, feed, seconds)
    return ended, b"".join(parts)[:limit]


if TYPE_CHECKING:
    Process = tuple[asyncio.SubprocessTransport, "_Pipes"]
