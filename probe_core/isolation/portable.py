"""Start, watch and end children where there is no `posix_spawn` or `poll` (Windows).

The same runs as in `posix`, driven by `subprocess` and one thread per pipe. It works on every
system, which is how it is tested; on Windows the child is put in a process group of its own.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading

from probe_core.isolation import sessions
from probe_core.isolation.limits import stay_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from probe_core.isolation.run import Run

    Clock = Callable[[], float]
    Events = queue.SimpleQueue[tuple["Child", str, bytes]]

__all__ = ["Driver"]

REAP_S = 0.5


class Child:
    """A started process, and the threads that serve its pipes."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes]) -> None:
        self.run = run
        self.process = process
        self.pid = process.pid
        self.threads: list[threading.Thread] = []

    def serve(self, call: Callable[..., None], *arguments: object) -> None:
        """Have a thread serve one pipe."""
        thread = threading.Thread(target=call, args=(self, *arguments), daemon=True)
        self.threads.append(thread)
        thread.start()


class Driver:
    """Starts, watches and ends the children of one probe."""

    def __init__(self) -> None:
        self._events: Events = queue.SimpleQueue()
        self._children: list[Child] = []

    def start(self, run: Run, argv: Sequence[str], environ: dict[str, str], request: bytes) -> None:
        """Start one child; raises `OSError` when it cannot be started."""
        child = Child(run, _popen(argv, environ))
        self._children.append(child)
        if sys.platform == "linux":
            stay_small(child.pid)
        child.serve(_send, b"%08x" % len(request) + request)
        child.serve(_pump, "out", child.process.stdout, self._events)
        child.serve(_pump, "err", child.process.stderr, self._events)

    def watch(self, clock: Clock) -> None:
        """Feed the runs until each has an outcome."""
        _watch(self._children, clock, self._events)

    def end_all(self, clock: Clock) -> None:
        """Kill every child, reap within bounds, close the pipes whose threads have ended."""
        _end_all(self._children, clock)
        self._children = []


def _popen(argv: Sequence[str], environ: dict[str, str]) -> subprocess.Popen[bytes]:
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    flags |= getattr(subprocess, "CREATE_NO_WINDOW", 0)
    return subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        bufsize=0,
        creationflags=flags,
        start_new_session=sys.platform != "win32",
    )


def _send(child: Child, data: bytes) -> None:
    pipe = child.process.stdin
    assert pipe is not None
    try:
        # Left open when all is sent: its end tells the child that the parent died.
        while data:
            data = data[pipe.write(data) :]
    except (OSError, ValueError):
        pass


def _pump(child: Child, name: str, pipe: IO[bytes], events: Events) -> None:
    try:
        while data := pipe.read(65536):
            events.put((child, name, data))
    except (OSError, ValueError):
        pass
    events.put((child, "end-" + name, b""))


def _watch(children: Sequence[Child], clock: Clock, events: Events) -> None:
    while waiting := [child for child in children if not child.run.over]:
        left = min(child.run.deadline for child in waiting) - clock()
        try:
            _take(*events.get(timeout=max(0.0, left)), clock())
        except queue.Empty:
            pass
        for child in waiting:
            if clock() >= child.run.deadline:
                child.run.expire(clock())


def _take(child: Child, name: str, data: bytes, now: float) -> None:
    if name == "out":
        child.run.feed(data, now)
    elif name == "err":
        child.run.feed_stderr(data)
    elif name == "end-out" and not child.run.over:
        try:
            code = child.process.wait(0.1)
        except subprocess.TimeoutExpired:
            child.run.closed(now)
        else:
            how = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
            child.run.exited(f"it {how}", now)


def _end_all(children: Sequence[Child], clock: Clock) -> None:
    for child in children:
        _kill_tree(child)
    limit = clock() + REAP_S
    for child in children:
        try:
            child.process.wait(max(0.0, limit - clock()))
        except subprocess.TimeoutExpired:
            child.run.abandoned = True
    if children and sys.platform == "linux":
        started = {child.pid: child.run.mark for child in children if not child.run.abandoned}
        sessions.end_leftovers(started, limit, clock)
    for child in children:
        if not child.run.abandoned:
            _close(child, max(0.0, limit - clock()))


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
        child.process.terminate()  # the keeper ends all that is left
        return
    else:
        import os
        import signal

        try:
            os.killpg(child.pid, signal.SIGKILL)
        except OSError:
            pass
    child.process.kill()  # does nothing once it was reaped
