"""Start, watch and end children where there is no `posix_spawn` or `poll` (Windows, eventlet).

The same runs as in `posix`, driven by `subprocess` and one thread per pipe. It works on every
system, which is how it is tested; on Windows the child is put in a process group of its own.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from functools import partial

from probe_core.background import TICK_S
from probe_core.isolation import processes
from probe_core.isolation.processes import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from probe_core.isolation.run import Run

    Clock = Callable[[], float]
    Events = queue.SimpleQueue[tuple["Child", str, bytes]]

__all__ = ["Driver"]

REAP_S = 0.5
"""As in `ending`."""

_EXIT_S = 0.1
"""Seconds in which a process that closed its result pipe must have ended, if it was dying."""

_READ_BYTES = 64 << 10
"""Bytes of one read: what a pipe holds on Linux, and more than Windows gives at once."""


class Child:
    """A started process, and the threads that read and write its pipes."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes]) -> None:
        self.run = run
        self.process = process
        self.pid = process.pid
        self.threads: list[threading.Thread] = []

    def start_thread(self, call: Callable[..., None], *arguments: object) -> None:
        """Have a thread read or write one pipe."""
        thread = threading.Thread(target=call, args=(self, *arguments), daemon=True)
        self.threads.append(thread)
        thread.start()


class Driver:
    """Starts, watches and ends the children of one probe."""

    has_threads = True
    """It joins the threads of its pipes, see `start_thread`."""

    def __init__(self) -> None:
        self._events: Events = queue.SimpleQueue()
        self._children: list[Child] = []

    def start_thread(self, call: Callable[[], None]) -> None:
        """Start the thread in which everything else here is called; may raise `RuntimeError`.

        One that `threading` knows: joining another thread in one that it does not know would
        leave a dummy entry in `threading.enumerate()`.
        """
        threading.Thread(target=call, name="probe-core", daemon=True).start()

    def start_ahead(self, argv: list[str], environ: dict[str, str]) -> None:
        """Do nothing: the threads of a process need its run."""

    def start(
        self, run: Run, argv: list[str], environ: dict[str, str], request: Callable[[], bytes]
    ) -> None:
        """Start one child, then send it the request; raises `OSError` when it cannot be started."""
        child = Child(run, _popen(argv, environ))
        self._children.append(child)
        data = request()
        child.start_thread(_send, b"%08x" % len(data) + data)
        child.start_thread(_pump, "result", child.process.stdout, self._events)
        child.start_thread(_pump, "stderr", child.process.stderr, self._events)

    def send(self, run: Run, data: bytes) -> None:
        """Send more to a resident process, which reads: a message fits into its pipe."""
        for child in self._children:
            if child.run is run:
                _write(child, data)

    def end(self, runs: Sequence[Run], clock: Clock) -> None:
        """End some children as `end_all` does all."""
        ending = [child for child in self._children if child.run in runs]
        self._children = [child for child in self._children if child not in ending]
        _end_all(ending, clock)

    def check(self, clock: Clock) -> None:
        """Look at how much memory the children take that are asked something."""
        Watch().check(self._children, clock)

    def wake_on(self, fd: int) -> None:
        """Do nothing: the caller looks at its descriptor at each tick."""

    def watch(
        self, clock: Clock, cancelled: Callable[[], bool], attend: Callable[[float], None]
    ) -> bool:
        """Feed the runs until each has an outcome, or `cancelled` is true at a tick.

        Return whether each has one. `attend` is called with the time before each wait, and may
        start more children.
        """
        return _watch(self._children, clock, self._events, cancelled, attend)

    def end_all(self, clock: Clock) -> None:
        """Kill every child, reap within bounds, close the pipes whose threads have ended."""
        _end_all(self._children, clock)
        self._children = []
        # What was printed before the last frame may have come after it, from another thread.
        for _ in range(self._events.qsize()):
            child, event, data = self._events.get()
            if event == "stderr":
                child.run.feed_stderr(data)


def _popen(argv: list[str], environ: dict[str, str]) -> subprocess.Popen[bytes]:
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    flags |= getattr(subprocess, "CREATE_NO_WINDOW", 0)
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        bufsize=0,
        creationflags=flags,
        start_new_session=sys.platform != "win32",
    )


def _send(child: Child, data: bytes) -> None:
    # Left open when all is sent: its end tells the child that the parent died.
    _write(child, data)


def _write(child: Child, data: bytes) -> None:
    pipe = child.process.stdin
    assert pipe is not None
    try:
        while data:
            data = data[pipe.write(data) :]
    except (OSError, ValueError):
        pass


def _pump(child: Child, name: str, pipe: IO[bytes], events: Events) -> None:
    try:
        while data := pipe.read(_READ_BYTES):
            events.put((child, name, data))
    except (OSError, ValueError):
        pass
    events.put((child, f"end of {name}", b""))


def _watch(
    children: Sequence[Child],
    clock: Clock,
    events: Events,
    cancelled: Callable[[], bool],
    attend: Callable[[float], None],
) -> bool:
    watch, next_tick = Watch(), clock() + TICK_S
    while not cancelled():
        attend(clock())
        waiting = [child for child in children if not child.run.over]
        if not waiting:
            return True
        remaining = min(child.run.due for child in waiting) - clock()
        try:
            _handle(*events.get(timeout=max(0.0, min(remaining, TICK_S))), clock())
        except queue.Empty:
            pass
        for child in waiting:
            if clock() >= child.run.due:
                child.run.pass_time(clock())
        if clock() >= next_tick:
            next_tick = clock() + TICK_S
            watch.check(waiting, clock)
    return False


def _handle(child: Child, event: str, data: bytes, now: float) -> None:
    if event == "result":
        child.run.feed(data, now)
    elif event == "stderr":
        child.run.feed_stderr(data)
    elif event == "end of result" and not child.run.over:
        try:
            child.run.exited(child.process.wait(_EXIT_S), now)
        except subprocess.TimeoutExpired:
            child.run.closed(now)


def _end_all(children: Sequence[Child], clock: Clock) -> None:
    for child in children:
        _kill_tree(child)
    limit = clock() + REAP_S
    for child in children:
        try:
            child.process.wait(max(0.0, limit - clock()))
        except subprocess.TimeoutExpired:
            child.run.still_there.append(partial(_runs, child.process))
    if children and sys.platform == "linux":
        started = {child.pid: child.run.mark for child in children if not child.run.still_there}
        for pid, owner in processes.end_leftovers(started, limit, clock).items():
            run = next(child.run for child in children if child.pid == owner)
            processes.note_survivor(run, pid)
    for child in children:
        if not child.run.still_there:
            _close(child, max(0.0, limit - clock()))


def _runs(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None and processes.is_stuck(process.pid)


def _close(child: Child, patience: float) -> None:
    """Close the pipes, unless a thread still reads one that an escaped process holds."""
    for thread in child.threads:
        thread.join(patience)
    if not any(thread.is_alive() for thread in child.threads):
        for pipe in (child.process.stdin, child.process.stdout, child.process.stderr):
            if pipe is not None:
                pipe.close()


def _kill_tree(child: Child) -> None:
    if sys.platform == "win32":
        # A process group is no tree on Windows; taskkill ends the children too.
        command = ["taskkill", "/F", "/T", "/PID", str(child.pid)]
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=REAP_S)
        except (OSError, subprocess.TimeoutExpired):
            pass
    elif child.run.pid not in (None, child.pid):
        child.process.terminate()  # the supervisor ends all that is left
        return
    else:
        import os
        import signal

        try:
            os.killpg(child.pid, signal.SIGKILL)
        except OSError:
            pass
    child.process.kill()  # does nothing once it was reaped
