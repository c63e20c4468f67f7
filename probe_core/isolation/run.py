"""How long a prober may be silent: over one device that it announced, and over its cleanup."""

from __future__ import annotations

from probe_core.fastpath import signal
from probe_core.isolation import FRAME_LIMIT, MAX_DEVICES, MAX_FINDINGS, MAX_FRAMES
from probe_core.jsontext import parse
from probe_core.model.ids import FAILURES, ID_LIMIT, STATUSES
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Literal, TypeGuard

    from probe_core.isolation.launch import Unresponsive
    from probe_core.model.document import OutcomeFacts
    from probe_core.registry.prober import Prober

    Phase = Literal["start", "import", "call", "cleanup"]


QUIET_SHARE, QUIET_LEAST = 0.25, 0.1
"""How long a device may take before another process goes around it: a quarter of the time that
remains, but at least a tenth of the whole.

The first process goes on meanwhile, so a slow device costs a process and no device. Judgements: the
other devices need time too, with a library that takes seconds to start; and a healthy machine,
which needs milliseconds, must never start a second process.
"""

CLEANUP_S = 0.2
"""Seconds for what a prober does after `Request.done`. A judgement: the host waits for nothing."""

NEVER = float("inf")


class Patience:
    """What one run is silent over, and until when that is normal.

    `asked` are the devices that the prober announced and has not answered for yet, one or `several`
    side by side, each with the time since which it is silent and the line that runs, where that is
    known. `silent` are those that took too long; `exhausted` is whether anything did. `due` is when
    `pass_time` must be called. Times are seconds on the monotonic clock; `whole` are the seconds
    that a prober has, of which this process may have got fewer.
    """

    __slots__ = ("_deadline", "_whole", "asked", "due", "exhausted", "several", "silent")

    def __init__(self, whole: float, deadline: float) -> None:
        self._whole, self._deadline = whole, deadline
        self.answered()

    @property
    def device(self) -> str | None:
        """The device that is asked, where it is one alone."""
        return next(iter(self.asked)) if len(self.asked) == 1 else None

    def answered(self) -> None:
        """Note that nothing is waited for."""
        self.asked: dict[str, tuple[float, str | None]] = {}
        self.silent: list[str] = []
        self.several = self.exhausted = False
        self.due = NEVER

    def arrived(self) -> None:
        """Note a device: the answer of the one that is asked. Of several the prober says whose."""
        if not self.several:
            self.answered()

    def touch(self, device: object, now: float) -> None:
        """Note which device is being asked, and no other; what cannot be an id is not watched."""
        if _is_id(device):
            self.asked, self.several = {device: (now, None)}, False
            self._weigh(now)

    def ask(self, devices: Iterable[tuple[object, object]], now: float) -> None:
        """Note the devices that are asked side by side, each with the line that runs or None.

        Another line is a sign of life: a driver that serves one thread at a time is slow with all.
        """
        before = self.asked
        self.asked, self.several = {}, True
        for device, line in devices:
            if not _is_id(device):
                continue
            since, last = before.get(device, (now, None))
            at = clean_text(line, _LINE_LIMIT) if isinstance(line, str) else None
            self.asked[device] = now if last not in (None, at) else since, at
        self._weigh(now)

    def go_on(self, now: float) -> None:
        """Note that the prober said something, and asks the same device still."""
        if self.device is not None and not self.several:
            self.touch(self.device, now)

    def clean_up(self, now: float) -> None:
        """Note that all devices were sent."""
        self.answered()
        self.due = now + CLEANUP_S

    def suspects(self, now: float) -> list[str]:
        """Return the devices whose silence was their own: a quarter of all time there was.

        Of a prober that is slow throughout, the deadline meets any one of its devices.
        """
        least = QUIET_SHARE * self._whole
        return [device for device in self.silent if now - self.asked[device][0] >= least]

    def line(self) -> str | None:
        """Return the line that runs over the first of the silent devices, where it is known."""
        asked = self.silent or self.asked
        return next((line for device in asked if (line := self.asked[device][1])), None)

    def pass_time(self, now: float) -> bool:
        """Return whether it is exhausted just now."""
        if now < self.due:
            return False
        self._weigh(now)
        self.exhausted = True
        return True

    def _weigh(self, now: float) -> None:
        """Note which devices are silent for too long, and when the next will be."""
        least = QUIET_LEAST * self._whole
        ends = {
            device: since + max(QUIET_SHARE * (self._deadline - since), least)
            for device, (since, _) in self.asked.items()
        }
        self.silent = [device for device, end in ends.items() if end <= now]
        self.exhausted = bool(self.silent)
        self.due = min((end for end in ends.values() if end > now), default=NEVER)


def _asking(devices: Iterable[str]) -> str:
    names = ", ".join(devices)
    return f"while it asked {clean_text(names, _FACT_LIMIT)}" if names else ""


def _is_id(device: object) -> TypeGuard[str]:
    return isinstance(device, str) and 0 < len(device) <= ID_LIMIT


# One prober's run as the parent sees it: fed with bytes and events, it ends in an outcome.
#
# Pure state, no I/O, so that the POSIX and the portable driver share it and tests can feed it any
# bytes. What it knows of the end it keeps as facts in `details`; `reason` is the sentence made of
# them, which no code reads.

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
    from there before it imported the plugin, and `inherited` whether its supervisor ends all that
    the plugin starts. `phase` is where the run is, and stays where it ended.
    `patience` knows which devices it asks. `avoid` are ids of devices that it must not ask,
    `serial` is whether it asks one after the other; `unresponsive` are those that other runs had to
    go around, see `attempts`. `rejected` says, of a replayed run, what was rejected when it was
    live. `still_there` has a look at each process that had not ended in time: whether it is stuck.
    Times are seconds on the monotonic clock.
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
        serial: bool = False,
    ) -> None:
        self.prober = prober
        self.avoid = avoid
        self.serial = serial
        self.token = token.encode("ascii")
        self.mark = mark
        self.pid: int | None = None
        self.inherited = False
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
        self.still_there: list[Callable[[], bool]] = []
        self.was_stuck = False
        self._buffer = b""
        self.forgive()

    def forgive(self) -> None:
        """Count anew what ends a process that floods its pipe."""
        self._received = self._frames = self._strays = 0

    @property
    def stuck(self) -> bool:
        """Whether one of them is stuck in the kernel: on a busy machine it may just end late.

        Of a recording whether one was, when it was made: none of it is here to be looked at.
        """
        return self.was_stuck or any(is_there() for is_there in self.still_there)

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
        step = "importing its module" if self.phase in ("start", "import") else "its call"
        # Of several threads the prober knows which one hangs; a dump has them without names.
        frame = self.patience.line() or stuck_frame(self.stderr_tail())
        if frame:
            self.details["stuck_at"] = location(frame)
        place = f" (at {frame})" if frame else ""
        asked = _asking(self.patience.silent or self.patience.asked)
        late = f"{step} took longer than {self.prober.deadline_s:g} s"
        reason = f"{late} {asked}{place}" if asked else f"{late}{place}"
        self.finish("timeout", reason, now)

    def exited(self, exit_code: int | None, now: float) -> None:
        """End the run because its process ended without an end frame.

        `exit_code` is negative for a signal, as in `subprocess`; None when the host reaped it.
        """
        if self.over:
            return
        late = now > self.started + _LATE * (self.deadline - self.started)
        if late and has_timeout_dump(self.tail):
            # It ran until the watchdog read its stack, which can crash a thread that is busy.
            self.expire(now)
            return
        cause = self._last_frame() or crash_headline(self.stderr_tail())
        hint = f" ({cause})" if cause else ""
        when = _asking(self.patience.asked) or _WHEN[self.phase]
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
            self.details["signal"] = name = signal_name(-exit_code)
            return f"it was killed by {name}"
        self.details["exit_status"] = exit_code
        return f"it exited with status {exit_code}"

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
                self.inherited = frame.get("inherited") is True
            self.phase = "import"
        elif kind == "loaded":
            self.phase = "call"
        elif kind == "finding":
            if len(self.findings) < MAX_FINDINGS:
                self.findings.append(frame["finding"])
            self.patience.go_on(now)
        elif kind == "touching":
            self.patience.touch(frame["device"], now)
        elif kind == "asking":
            asked = [(device, line) for device, line in frame["device"][:MAX_DEVICES]]
            self.patience.ask(asked, now)
        elif kind == "raised":
            self.patience.due = NEVER
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
        self.patience.arrived()

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


# Read what Python itself writes to a child's standard error when it hangs or crashes.
#
# The only foreign text that the core interprets: `faulthandler` has no other way to report. Its
# forms
# are those of CPython's Python/traceback.c and Modules/faulthandler.c, as of 3.11:
#
#     Timeout (0:00:00.400000)!
#     Thread 0x00007f0000000000 (most recent call first):
#       File "/path/prober.py", line 5 in probe_devices
#
#     Fatal Python error: Segmentation fault


def has_timeout_dump(tail: bytes) -> bool:
    """Return whether the watchdog that `confine.limit` sets began to write a stack."""
    return b"Timeout (" in tail


def stuck_frame(lines: Sequence[str]) -> str | None:
    """Return the innermost frame of the thread dumped last, which is the main one."""
    for index in reversed(range(len(lines))):
        if lines[index].startswith(("Current thread", "Thread ")):
            frames = (line.strip() for line in lines[index + 1 :] if "File " in line)
            return next(frames, None)
    return None


def location(frame: str) -> str:
    """Return ``/path/prober.py:5 in probe_devices`` of a dump's frame."""
    path, separator, place = frame.removeprefix('File "').rpartition('", line ')
    return f"{path}:{place}" if separator else frame


def crash_headline(lines: Sequence[str]) -> str | None:
    """Return the last ``Fatal Python error: …``."""
    headlines = (line for line in reversed(lines) if line.startswith("Fatal Python error"))
    return next(headlines, None)


def signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11, ``signal 40`` for 40: without the enums that signal builds."""
    names = (n for n in dir(signal) if n.startswith("SIG") and n[3] != "_")
    return next((n for n in names if getattr(signal, n) == number), f"signal {number}")
