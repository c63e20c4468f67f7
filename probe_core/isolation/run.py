"""One prober's run as the parent sees it: fed with bytes and events, it ends in an outcome.

Pure state, no I/O, so that the POSIX and the portable driver share it and tests can feed it lies.
"""

from __future__ import annotations

import json

from probe_core.isolation.wire import FRAME_LIMIT
from probe_core.model.statuses import FAILURES, STATUSES
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.registry.prober import Prober

__all__ = ["Run"]

_MOMENTS = {"starting": "before it could start", "hello": "while its module was imported"}
TAIL_LIMIT = 8 << 10
TOTAL_LIMIT = 32 << 20
STRAY_LIMIT = 64 << 10


class Run:
    """The state of one run.

    `sightings` are the frames' devices as decoded, not yet validated. `status` is None until the
    run has ended. `pid` is the process that the prober runs in, as the core's own code said there
    before it imported the plugin. Times are seconds on the monotonic clock.
    """

    def __init__(self, prober: Prober, token: str, mark: str, started: float) -> None:
        self.prober = prober
        self.token = token.encode("ascii")
        self.mark = mark
        self.pid: int | None = None
        self.started = started
        self.deadline = started + prober.deadline_s
        self.sightings: list[Any] = []
        self.findings: list[Any] = []
        self.status: str | None = None
        self.reason: str | None = None
        self.details: dict[str, Any] = {}
        self.phase = "starting"
        self.tail = b""
        self.ended = started
        self.abandoned = False
        self._buffer = b""
        self._received = 0
        self._strays = 0

    @property
    def over(self) -> bool:
        """Whether the run has an outcome."""
        return self.status is not None

    @property
    def partial(self) -> bool:
        """Whether devices arrived before a failure."""
        return self.status in FAILURES | {"unavailable"} and bool(self.sightings)

    def finish(self, status: str, reason: str | None, now: float) -> None:
        """End the run, once; a later end is ignored."""
        if self.status is None:
            self.status, self.reason, self.ended = status, reason, now

    def feed(self, data: bytes, now: float) -> None:
        """Take bytes from the result pipe."""
        self._received += len(data)
        if self._received > TOTAL_LIMIT:
            self.finish("resource", f"it sent more than {TOTAL_LIMIT >> 20} MiB", now)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            if self.over:
                return
            self._line(line, now)
        if len(self._buffer) > FRAME_LIMIT + 100:
            self.finish("protocol", f"it sent a frame of more than {FRAME_LIMIT >> 20} MiB", now)

    def feed_stderr(self, data: bytes) -> None:
        """Take bytes from standard error; the last few KiB are kept."""
        self.tail = (self.tail + data)[-TAIL_LIMIT:]

    def expire(self, now: float) -> None:
        """End the run because its deadline has passed."""
        seconds = f"{self.prober.deadline_s:g} s"
        doing = "importing its module" if self.phase in ("starting", "hello") else "its call"
        where = self._stuck_at()
        self.finish("timeout", f"{doing} took longer than {seconds}{where}", now)

    def exited(self, how: str, now: float) -> None:
        """End the run because its process ended without an end frame; `how` says how."""
        if b"Timeout (" in self.tail and now > self.started + 0.8 * self.prober.deadline_s:
            # It ran until the watchdog read its stack, which can crash a thread that is busy.
            self.expire(now)
            return
        moment = _MOMENTS.get(self.phase, "before it had answered")
        self.finish("crashed", f"{how} {moment}{self._hint()}", now)

    def closed(self, now: float) -> None:
        """End the run because the result pipe was closed while the process lives."""
        self.finish("protocol", "it closed its result pipe before it had answered", now)

    def stderr_tail(self) -> list[str]:
        """Return the last lines of standard error, fit for a terminal."""
        lines = self.tail.decode("utf-8", "replace").splitlines()
        return [clean_text(line, 400) for line in lines[-20:]]

    def _line(self, line: bytes, now: float) -> None:
        token, _, text = line.partition(b" ")
        if token != self.token:
            # A plugin wrote to the wrong descriptor: noise, until it is a flood.
            self._strays += len(line)
            if self._strays > STRAY_LIMIT:
                self.finish("protocol", "it flooded the result pipe with foreign data", now)
            return
        try:
            frame = json.loads(text)
            self._frame(frame["kind"], frame, now)
        except (ValueError, KeyError, TypeError, RecursionError):
            self.finish("protocol", "it sent a frame that cannot be read", now)

    def _frame(self, kind: str, frame: dict[str, Any], now: float) -> None:
        if kind in ("hello", "loaded"):
            if self.phase == "starting":
                self.pid = int(frame["pid"])
            self.phase = kind
        elif kind == "device":
            self.sightings.append(frame["device"])
        elif kind == "finding":
            self.findings.append(frame["finding"])
        elif kind == "oversize":
            self.sightings.append(f"a device of {frame['bytes']} bytes")
        elif kind == "end":
            self._end(frame, now)
        else:
            raise ValueError(kind)

    def _end(self, frame: dict[str, Any], now: float) -> None:
        status, reason = frame["status"], frame.get("reason")
        if status not in STATUSES:
            raise ValueError(status)
        if reason is not None:
            reason = clean_text(str(reason), 1024)
        if status != "ok" and not reason:
            reason = STATUSES[status]
        words = {key: frame.get(key) for key in ("code", "fix")}
        self.details = {k: clean_text(w, 400) for k, w in words.items() if isinstance(w, str) and w}
        self.finish(status, reason, now)

    def _hint(self) -> str:
        """Return the child's own or faulthandler's word, from the tail of standard error."""
        for line in reversed(self.stderr_tail()):
            if line.startswith(("Fatal Python error", "probe-core: ")):
                return f" ({line})"
        return ""

    def _stuck_at(self) -> str:
        """Return where the watchdog's stack dump says the prober was, innermost frame first."""
        lines = self.stderr_tail()
        for index in reversed(range(len(lines))):
            if lines[index].startswith(("Current thread", "Thread ")):
                frames = [line.strip() for line in lines[index + 1 :] if "File " in line]
                return f" (at {frames[0]})" if frames else ""
        return ""
