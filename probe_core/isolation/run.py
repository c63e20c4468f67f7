"""One prober's run as the parent sees it: fed with bytes and events, it ends in an outcome.

Pure state, no I/O, so that the POSIX and the portable driver share it and tests can feed it any
bytes. What it knows of the end it keeps as facts in `details`; `reason` is the sentence made of
them, which no code reads.
"""

from __future__ import annotations

from probe_core.isolation.patience import CLEANUP_S, Patience
from probe_core.isolation.wire import FRAME_LIMIT, MAX_DEVICES, MAX_FINDINGS, MAX_FRAMES
from probe_core.jsontext import parse
from probe_core.model.statuses import FAILURES, STATUSES
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from probe_core.isolation.attempts import Unresponsive
    from probe_core.model.document import OutcomeFacts
    from probe_core.registry.prober import Prober

    Phase = Literal["start", "import", "call", "cleanup"]

__all__ = ["Run"]

_WHEN = {
    "start": "before it could start",
    "import": "while its module was imported",
    "call": "before it had answered",
    "cleanup": "after all devices were read",
}

TAIL_LIMIT = 8 << 10
"""Bytes of standard error that are kept: Python's dump of some threads, or a traceback."""

_TAIL_LINES, _LINE_LIMIT = 20, 400
"""What of the tail a report shows: a screenful, in lines and characters of one."""

TOTAL_LIMIT = 32 << 20
"""Bytes of all frames. 256 devices of the documented size are well below 1 MiB."""

STRAY_LIMIT = 64 << 10
"""Bytes without the run's secret that are taken for a mistake, and not for a flood."""

_REASON_LIMIT, _FACT_LIMIT = 1024, 400
"""Characters of a reason, and of a code or fix that the prober gave."""

_LATE = 0.8
"""Share of the deadline after which a crash with a timeout dump is a timeout.

The watchdog's dump is due at nine tenths, see `confine.limit`.
"""


class Run:
    """The state of one run.

    `sightings` are the frames' devices as decoded, not yet validated; `arrived` is called with each
    as it comes. `status` is None until the
    run has ended. `pid` is the process that the prober runs in, as the core's own code reported it
    from there before it imported the plugin. `phase` is where the run is, and stays where it ended.
    `patience` knows which device it asks. `avoid` are ids of devices that it must not ask;
    `unresponsive` are those that other runs had to go around, see `attempts`. `rejected` says, of a
    replayed run, what was rejected when it was live. Times are seconds on the monotonic clock.
    """

    resident = False
    """Whether its process stays and is asked again, so that its request pipe stays in use."""

    def __init__(
        self,
        prober: Prober,
        token: str,
        mark: str,
        started: float,
        *,
        deadline: float | None = None,
        avoid: frozenset[str] = frozenset(),
    ) -> None:
        self.prober = prober
        self.avoid = avoid
        self.token = token.encode("ascii")
        self.mark = mark
        self.pid: int | None = None
        self.started = started
        self.deadline = started + prober.deadline_s if deadline is None else deadline
        self.patience = Patience(prober.deadline_s, self.deadline)
        self.sightings: list[Any] = []
        self.arrived: Callable[[object], object] | None = None
        self.findings: list[Any] = []
        self.unresponsive: list[Unresponsive] = []
        self.rejected: list[str] = []
        self.status: str | None = None
        self.reason: str | None = None
        self.details: OutcomeFacts = {}
        self.phase: Phase = "start"
        self.tail = b""
        self.ended = started
        self.abandoned = False
        self._buffer = b""
        self.forgive()

    def forgive(self) -> None:
        """Count anew what ends a process that floods its pipe."""
        self._received = self._frames = self._strays = 0

    @property
    def over(self) -> bool:
        """Whether the run has an outcome."""
        return self.status is not None

    @property
    def partial(self) -> bool:
        """Whether devices arrived before a failure, or around a device that failed."""
        failed = self.status in FAILURES | {"unavailable"} or bool(self.unresponsive)
        return failed and bool(self.sightings)

    @property
    def due(self) -> float:
        """When to call `pass_time`, unless something comes before."""
        return min(self.deadline, self.patience.due)

    def finish(self, status: str, reason: str | None, now: float) -> None:
        """End the run, once; a later end is ignored.

        What fails after all devices were sent costs none of them: the answer stands.
        """
        if self.status is not None:
            return
        if status in FAILURES:
            self.details["phase"] = self.phase
            if self.phase == "cleanup":
                self.details["code"] = "shutdown-hangs" if status == "timeout" else "shutdown-fails"
                status = "ok" if self.sightings or self.findings else "not_applicable"
        else:
            self.patience.answered()
        self.status, self.reason, self.ended = status, reason, now

    def pass_time(self, now: float) -> None:
        """End the run at its deadline, and a cleanup that takes too long; note a silent device."""
        if now >= self.deadline:
            self.expire(now)
        elif self.patience.pass_time(now) and self.phase == "cleanup":
            self.finish("timeout", f"its cleanup took longer than {CLEANUP_S:g} s", now)

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
            self._take_line(line, now)
        if len(self._buffer) > FRAME_LIMIT + 100:  # the secret and a blank are in front of it
            self.finish("protocol", f"it sent a frame of more than {FRAME_LIMIT >> 20} MiB", now)

    def feed_stderr(self, data: bytes) -> None:
        """Take bytes from standard error; the last few KiB are kept."""
        self.tail = (self.tail + data)[-TAIL_LIMIT:]

    def expire(self, now: float) -> None:
        """End the run because its deadline has passed."""
        if self.over:
            return
        # Imported here: a node on which no prober fails does not need it.
        from probe_core.isolation.crash_dump import location, stuck_frame

        step = "importing its module" if self.phase in ("start", "import") else "its call"
        frame = stuck_frame(self.stderr_tail())
        if frame:
            self.details["stuck_at"] = location(frame)
        place = f" (at {frame})" if frame else ""
        asked = f" {asked}" if (asked := self._asking()) else ""
        reason = f"{step} took longer than {self.prober.deadline_s:g} s{asked}{place}"
        self.finish("timeout", reason, now)

    def exited(self, exit_code: int | None, now: float) -> None:
        """End the run because its process ended without an end frame.

        `exit_code` is negative for a signal, as in `subprocess`; None when the host reaped it.
        """
        if self.over:
            return
        from probe_core.isolation.crash_dump import crash_headline, has_timeout_dump

        late = now > self.started + _LATE * (self.deadline - self.started)
        if late and has_timeout_dump(self.tail):
            # It ran until the watchdog read its stack, which can crash a thread that is busy.
            self.expire(now)
            return
        cause = self._last_frame() or crash_headline(self.stderr_tail())
        hint = f" ({cause})" if cause else ""
        when = self._asking() or _WHEN[self.phase]
        self.finish("crashed", f"{self._note_exit(exit_code)} {when}{hint}", now)

    def closed(self, now: float) -> None:
        """End the run because the result pipe was closed while the process lives."""
        self.finish("protocol", "it closed its result pipe before it had answered", now)

    def stderr_tail(self) -> list[str]:
        """Return the last lines of standard error, fit for a terminal."""
        lines = [line for line in self.tail.splitlines() if not line.startswith(self.token)]
        texts = (line.decode("utf-8", "replace") for line in lines[-_TAIL_LINES:])
        return [clean_text(text, _LINE_LIMIT) for text in texts]

    def _note_exit(self, exit_code: int | None) -> str:
        """Keep how the process ended as facts, and return it as the beginning of a sentence."""
        if exit_code is None:
            return "it ended (the host reaped it, so its status is unknown)"
        if exit_code < 0:
            from probe_core.isolation.crash_dump import signal_name

            self.details["signal"] = name = signal_name(-exit_code)
            return f"it was killed by {name}"
        self.details["exit_status"] = exit_code
        return f"it exited with status {exit_code}"

    def _asking(self) -> str:
        device = self.patience.device
        return f"while it asked {clean_text(device)}" if device else ""

    def _last_frame(self) -> str | None:
        """Return why the child's own code gave up: the frame that it had no pipe left for.

        It is in the tail of standard error, behind the secret, as on the result pipe.
        """
        for line in self.tail.splitlines():
            token, _, text = line.partition(b" ")
            if token == self.token:
                try:
                    return clean_text(str(parse(text)["reason"]), _FACT_LIMIT)
                except (ValueError, KeyError, TypeError, RecursionError):
                    return None
        return None

    def _take_line(self, line: bytes, now: float) -> None:
        token, _, text = line.partition(b" ")
        if token != self.token:
            # A plugin wrote to the wrong descriptor: noise, until it is a flood.
            self._strays += len(line)
            if self._strays > STRAY_LIMIT:
                self.finish("protocol", "it flooded the result pipe with other data", now)
            return
        try:
            self._frames += 1
            if self._frames > MAX_FRAMES:
                self.finish("protocol", f"it sent more than {MAX_FRAMES:,} frames", now)
                return
            frame = parse(text)
            self._take_frame(frame["kind"], frame, now)
        except (ValueError, KeyError, TypeError, RecursionError):
            self.finish("protocol", "it sent a frame that cannot be read", now)

    def _take_frame(self, kind: str, frame: dict[str, Any], now: float) -> None:
        if kind == "hello":
            if self.phase == "start":
                self.pid = int(frame["pid"])
            self.phase = "import"
        elif kind == "loaded":
            self.phase = "call"
        elif kind == "finding":
            if len(self.findings) < MAX_FINDINGS:
                self.findings.append(frame["finding"])
            self.patience.touch(self.patience.device, now)
        elif kind == "touching":
            self.patience.touch(frame["device"], now)
        elif kind == "done":
            self.phase = "cleanup"
            self.patience.clean_up(now)
        elif kind == "end":
            self._take_end(frame, now)
        elif len(self.sightings) >= MAX_DEVICES:
            self.finish("resource", f"more than {MAX_DEVICES} devices", now)
        else:
            self._take_device(kind, frame)

    def _take_device(self, kind: str, frame: dict[str, Any]) -> None:
        if kind == "device":
            self.sightings.append(frame["device"])
            if self.arrived is not None:
                self.arrived(frame["device"])
        elif kind == "oversize":
            self.sightings.append(f"a device of {frame['bytes']} bytes")
        else:
            raise ValueError(kind)
        self.phase = "call"
        self.patience.answered()

    def _take_end(self, frame: dict[str, Any], now: float) -> None:
        status, reason = frame["status"], frame.get("reason")
        if status not in STATUSES:
            raise ValueError(status)
        if reason is not None:
            reason = clean_text(str(reason), _REASON_LIMIT)
        if status != "ok" and not reason:
            reason = STATUSES[status]
        code, fix = frame.get("code"), frame.get("fix")
        if isinstance(code, str) and code:
            self.details["code"] = clean_text(code, _FACT_LIMIT)
        if isinstance(fix, str) and fix:
            self.details["fix"] = clean_text(fix, _FACT_LIMIT)
        self.finish(status, reason, now)
