"""Run the command of `--on-alert`: few at once, none for long, none left at the end.

The command is a program with arguments and no shell: what it is given about a device stands in its
environment, and no name of a device can become a part of a command line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque

from probe_watch.lines import timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_watch.alerts import Edge

__all__ = ["LIMIT_S", "MOST_AT_ONCE", "AlertCommands", "variables"]

MOST_AT_ONCE = 4
"""A node with eight GPUs that grow hot together starts eight mails, not eight at a time."""

MOST_WAITING = 256
"""Edges that wait for their turn: four alerts of sixty-four devices."""

LIMIT_S = 30.0
"""Seconds that a command may take: a mail or a request takes a few."""

GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL."""

STEP_S = 0.05
"""Seconds between two looks at the commands that run."""

_GUARD = """
import os, signal, sys, threading
def end_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
null = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
try:
    command = os.posix_spawnp(
        sys.argv[1], sys.argv[1:], os.environ, file_actions=null, setsigdef=[signal.SIGTERM]
    )
except OSError:
    os._exit(126)
threading.Thread(target=end_with_parent, daemon=True).start()
status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
os._exit(status if status >= 0 else 128 - status)
"""
"""Leads the group of a command and ends it when its standard input closes: with this program,
however that ends. SIGTERM is for the command alone, which so has its grace."""


def variables(edge: Edge) -> dict[str, str]:
    """Return the variables that tell a command about an edge; unknown values are empty."""
    return {
        "PROBE_ALERT_NAME": edge.rule.name,
        "PROBE_ALERT_STATE": edge.state,
        "PROBE_ALERT_SEVERITY": edge.severity,
        "PROBE_ALERT_DEVICE": edge.device,
        "PROBE_ALERT_VALUE": "" if edge.value is None else f"{edge.value:g}",
        "PROBE_ALERT_THRESHOLD": f"{edge.threshold:g}",
        "PROBE_ALERT_UNIT": edge.rule.unit,
        "PROBE_ALERT_SINCE": timestamp(edge.since),
        "PROBE_ALERT_TIME": timestamp(edge.time),
        "PROBE_ALERT_REASON": edge.reason or "",
    }


class _Running:
    """A command that runs, in a process group of its own."""

    __slots__ = ("end", "process", "terminated")

    def __init__(self, process: subprocess.Popen[bytes], end: float) -> None:
        self.process = process
        self.end = end
        self.terminated = False

    def wait(self, seconds: float | None = None) -> int:
        """Return the status when it has ended; close the pipe that tells it of this program."""
        status = self.process.wait(seconds)
        if self.process.stdin is not None:
            self.process.stdin.close()
        return status

    def signal(self, number: int) -> None:
        """Send a signal to the command and to what it has started."""
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


class AlertCommands:
    """The commands of `--on-alert`. A thread starts and ends them while there are any.

    So a command ends in time however long the interval of the samples is.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = list(command)
        self._environ = dict(environ)
        self._lock = threading.Lock()
        self._waiting: deque[Edge] = deque()
        self._running: list[_Running] = []
        self._notes: list[str] = []
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, edges: Iterable[Edge]) -> None:
        """Queue edges. Where there is no room a note says which is left out."""
        with self._lock:
            for edge in edges:
                if len(self._waiting) < MOST_WAITING:
                    self._waiting.append(edge)
                else:
                    problem = f"{MOST_WAITING} alerts wait; {edge.rule.name} is left out"
                    self._notes.append(f"--on-alert: {problem}")
            if self._waiting and self._thread is None:
                self._start_thread()

    def notes(self) -> list[str]:
        """Return sentences about what failed since the last call."""
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        """End all commands, in two seconds at most; those that wait never start."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join(2 * GRACE_S)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._look_after, name="probe-watch-alerts", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._waiting.clear()
            self._notes.append(f"--on-alert: no thread can be started: {error}")
        else:
            self._thread = thread

    def _look_after(self) -> None:
        while not self._closing.is_set():
            with self._lock:
                self._poll(time.monotonic())
                if not self._running and not self._waiting:
                    self._thread = None
                    return
            self._closing.wait(STEP_S)
        self._end_all()

    def _poll(self, now: float) -> None:
        """Start what may start, and end what takes too long."""
        for running in list(self._running):
            if _has_ended(running.process):
                # What it left in the background would outlive this program. Before the wait, as
                # long as its number cannot be another process's.
                running.signal(signal.SIGKILL)
                status = running.wait()
                self._running.remove(running)
                if status and not running.terminated:
                    self._note(f"ended with {_status(status)}")
            elif now >= running.end:
                self._hurry(running, now)
        while self._waiting and len(self._running) < MOST_AT_ONCE:
            self._start(self._waiting.popleft(), now)

    def _hurry(self, running: _Running, now: float) -> None:
        if running.terminated:
            running.signal(signal.SIGKILL)
            return
        running.terminated = True
        running.end = now + GRACE_S
        running.signal(signal.SIGTERM)
        self._note(f"took longer than {LIMIT_S:g} s and is ended")

    def _note(self, problem: str) -> None:
        self._notes.append(f"--on-alert: {self._command[0]} {problem}")

    def _start(self, edge: Edge, now: float) -> None:
        try:
            process = subprocess.Popen(
                [*_guard(), *self._command],
                env=self._environ | variables(edge),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._note(f"cannot be started: {reason}")
            return
        self._running.append(_Running(process, now + LIMIT_S))

    def _end_all(self) -> None:
        for running in self._running:
            running.signal(signal.SIGTERM)
        end = time.monotonic() + GRACE_S
        while time.monotonic() < end and not all(_has_ended(r.process) for r in self._running):
            time.sleep(STEP_S)
        for running in self._running:
            running.signal(signal.SIGKILL)
        for running in self._running:
            try:
                running.wait(GRACE_S / 2)
            except subprocess.TimeoutExpired:  # stuck in the kernel
                pass


def _guard() -> list[str]:
    """Return what a command is started by; nothing where Python cannot be started so."""
    if not sys.executable or getattr(sys, "frozen", False) or not hasattr(os, "posix_spawnp"):
        return []
    return [sys.executable, "-I", "-S", "-c", _GUARD]


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended; it stays a zombie where the system can look at it so."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, process.pid, flags) is not None
    except ChildProcessError:  # a caller that ignores SIGCHLD has the kernel reap it
        return True


def _status(status: int) -> str:
    """Return how a command ended; above 128 a signal ended it, as shells write it."""
    number = -status if status < 0 else status - 128
    return f"signal {number}" if number > 0 else f"status {status}"
