"""Start, watch and end children where there is no `posix_spawn` or `poll` (Windows).

The same runs as in `posix`, driven by `subprocess` and one thread per pipe. It works on every
system, which is how it is tested; on Windows the child is put in a process group of its own.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading

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
    """A started process, and the queue that its pipes' threads fill."""

    def __init__(self, run: Run, process: subprocess.Popen[bytes], events: Events) -> None:
        self.run = run
        self.process = process
        self.pid = process.pid
        self.events = events


class Driver:
    """Starts, watches and ends the children of one probe."""

    def __init__(self) -> None:
        self._events: Events = queue.SimpleQueue()

    def start(
        self, run: Run, argv: Sequence[str], environ: dict[str, str], request: bytes
    ) -> Child:
        """Start one child; raises `OSError` when it cannot be started."""
        return _start(run, argv, environ, request, self._events)

    def watch(self, children: Sequence[Child], clock: Clock) -> None:
        """Feed the runs until each has an outcome."""
        _watch(children, clock, self._events)

    def end_all(self, children: Sequence[Child], clock: Clock) -> None:
        """Kill every child, reap within bounds, close the pipes whose threads have ended."""
        _end_all(children, clock)


def _start(
    run: Run, argv: Sequence[str], environ: dict[str, str], request: bytes, events: Events
) -> Child:
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    flags |= getattr(subprocess, "CREATE_NO_WINDOW", 0)
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        bufsize=0,
        creationflags=flags,
        start_new_session=sys.platform != "win32",
    )
    child = Child(run, process, events)
    for name, pipe in (("out", process.stdout), ("err", process.stderr)):
        assert pipe is not None
        threading.Thread(target=_pump, args=(child, name, pipe), daemon=True).start()
    data = b"%08x" % len(request) + request
    threading.Thread(target=_send, args=(process, data), daemon=True).start()
    return child


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(data)  # left open: its end tells the child that the parent died
    except (OSError, ValueError):
        pass


def _pump(child: Child, name: str, pipe: IO[bytes]) -> None:
    try:
        while data := pipe.read(65536):
            child.events.put((child, name, data))
    except (OSError, ValueError):
        pass
    child.events.put((child, "end-" + name, b""))


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
    for child in children:
        if not child.run.abandoned and child.process.stdin is not None:
            child.process.stdin.close()


def _kill_tree(child: Child) -> None:
    if sys.platform == "win32":
        # A process group is no tree on Windows; taskkill ends the children too.
        subprocess.run(
            ["taskkill", "/F", "/T", "/PID", str(child.pid)], capture_output=True, check=False
        )
    else:
        import os
        import signal

        for kill, target in ((os.killpg, child.pid), (os.kill, child.pid)):
            try:
                kill(target, signal.SIGKILL)
            except OSError:
                pass
    try:
        child.process.kill()
    except OSError:
        pass
