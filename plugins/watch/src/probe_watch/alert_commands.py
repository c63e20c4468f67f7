"""Run the command of `--on-alert`: few at once, none for long, none left at the end.

The command is a program with arguments that no shell reads, though one starts it and leads its
group: what it is given about a device stands in its environment, and no name of a device can become
a part of a command line.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from queue import Empty, Full, Queue
from time import monotonic

from probe_watch.lines import timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_watch.alerts import Edge

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

_GUARD = f"""
exec 3<&0
trap : TERM
{{ trap : TERM; cat <&3 >/dev/null; kill -TERM 0; sleep {GRACE_S:g}; kill -KILL 0; }} &
(exec "$@") 3<&- </dev/null &
command=$!
wait $command
status=$?
while kill -0 $command; do wait $command; status=$?; done
exit $status
"""
"""Leads the group of a command and ends it when its own input does: with this program, however that
ends. A signal interrupts `wait`; the shell heeds SIGTERM so that the command has its grace."""


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


class AlertCommands:
    """The commands of `--on-alert`. While edges wait, threads run the command, one each at a time.

    So a command ends in time however long the interval of the samples is.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = command
        self._environ = environ
        self._waiting: Queue[Edge] = Queue(MOST_WAITING)
        self._threads: list[threading.Thread] = []
        self._notes: list[str] = []
        self._closing = threading.Event()

    def add(self, edges: Iterable[Edge]) -> None:
        """Queue edges. Where there is no room a note says which is left out."""
        for edge in edges:
            try:
                self._waiting.put_nowait(edge)
            except Full:
                self._notes.append(
                    f"--on-alert: {MOST_WAITING} alerts wait; {edge.rule.name} is left out"
                )
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(min(self._waiting.qsize(), MOST_AT_ONCE - len(self._threads))):
            thread = threading.Thread(target=self._work, name="probe-watch-alert", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # tried again with the next round
                self._notes.append(f"--on-alert: no thread can be started: {error}")
                return
            self._threads.append(thread)

    def notes(self) -> list[str]:
        """Return sentences about what failed since the last call."""
        notes = self._notes[:]
        del self._notes[: len(notes)]  # a thread may have added one meanwhile
        return notes

    def close(self) -> None:
        """End all commands, in two seconds at most; those that wait never start."""
        self._closing.set()
        end = monotonic() + 2 * GRACE_S
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                edge = self._waiting.get_nowait()
            except Empty:  # what comes from now on is a new thread's, in a round at the latest
                return
            problem = self._run(edge)
            if problem and not self._closing.is_set():
                self._notes.append(f"--on-alert: {self._command[0]} {problem}")

    def _run(self, edge: Edge) -> str | None:
        """Run the command to its end; returns what went wrong."""
        try:
            process = subprocess.Popen(
                ["sh", "-c", _GUARD, "sh", *self._command],
                env={**self._environ, **variables(edge)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            return f"cannot be started: {getattr(error, 'strerror', None) or error}"
        assert process.stdin is not None
        end = monotonic() + LIMIT_S
        # What it left in the background ends with the input as well.
        with process.stdin:
            while process.poll() is None and monotonic() < end and not self._closing.wait(STEP_S):
                pass
            is_over = process.poll() is not None
        try:
            status = process.wait(2 * GRACE_S)
        except subprocess.TimeoutExpired:  # stuck in the kernel
            return f"took longer than {LIMIT_S:g} s and does not end"
        if not is_over:
            return f"took longer than {LIMIT_S:g} s and was ended"
        return f"ended with {_status(status)}" if status else None


def _status(status: int) -> str:
    """Return how a command ended: 128 and a signal's number is how shells write the signal.

    255, which ssh and xargs end with, and others above that no signal has, are a status.
    """
    number = -status if status < 0 else status - 128
    return f"signal {number}" if number in signal.valid_signals() else f"status {status}"
