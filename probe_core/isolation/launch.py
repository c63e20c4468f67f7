"""The processes of one prober: the first, and those that go around a device it is silent over.

The first process is not killed for being silent: the device may be slow, and its answer then counts
more than any that left the device out. It has until the deadline, like all others.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from probe_core.background import uninterrupted
from probe_core.fastpath import native_id
from probe_core.isolation import MARK_VARIABLE
from probe_core.isolation.worker import Worker
from probe_core.model.ids import FAILURES, normalise_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from probe_core.isolation.messages import RequestMessage, RoundMessage
    from probe_core.isolation.portable import Driver as PortableDriver
    from probe_core.isolation.posix import Driver as PosixDriver
    from probe_core.isolation.run import Run
    from probe_core.machine import Machine
    from probe_core.registry.prober import Prober

    Bus = Sequence[Mapping[str, object]]
    How = Literal["hangs", "crashes", "raises"]
    BusSource = Callable[[], Bus]
    """Returns what the bus prober saw; it is called once the first child is on its way."""
    Choice = Callable[[], Sequence[Prober]]
    """Returns the probers to run, while the first child's interpreter starts."""
    Driver = PosixDriver | PortableDriver
    Observe = Callable[[str, Mapping[str, object]], None]
    Waiting = Callable[[float, Sequence[Run]], None]
    """Takes the time and the runs that have no outcome yet."""
    Arrived = Callable[[Run, object], object]
    """Takes a run and what it brought as a device, as decoded."""
    Answered = Callable[[list[Run]], object]
    """Takes one run for each prober, with its outcome."""


MAX_ATTEMPTS = 4
"""Processes of one prober: of a node's eight GPUs one or two fail, more when the driver is gone.
There is one more where the first asked several at once, and could not tell which of them failed."""

LEAST_S = 0.1
"""Seconds that must remain for another process: less than that is its start alone."""

_CODES: dict[How, str] = {
    "hangs": "driver-hangs",
    "crashes": "driver-crashes",
    "raises": "prober-raises",
}
"""How a prober failed over a device, and the code of the outcome and the finding."""


class Unresponsive:
    """A device over which a prober's process hung, died or raised.

    `ids` are all ids that are known of it, `device` is the one that the prober announced. `reason`
    is a sentence without a subject; `stuck_at` is the line that ran, where it is known.
    """

    __slots__ = ("device", "how", "ids", "reason", "stuck_at")

    def __init__(
        self, device: str, ids: frozenset[str], how: How, reason: str, stuck_at: str | None
    ) -> None:
        self.device = device
        self.ids = ids
        self.how = how
        self.reason = reason
        self.stuck_at = stuck_at

    @property
    def code(self) -> str:
        """The finding's code."""
        return _CODES[self.how]


class Another:
    """What one more run of a prober must do: devices to `avoid`, and whether it asks serially."""

    __slots__ = ("avoid", "serial")

    def __init__(self, avoid: frozenset[str], *, serial: bool) -> None:
        self.avoid = avoid
        self.serial = serial


class Attempts:
    """The runs of one prober, in the order in which they were started."""

    def __init__(self, first: Run, bus: Callable[[], Bus]) -> None:
        self.runs = [first]
        self._bus = bus

    def attend(self, now: float) -> Another | None:
        """Return what one more run must do, or None; end the runs that nobody needs any more."""
        first = self.runs[0]
        # Asked of every prober whenever any sends something: 2,500 times where fifty run at once.
        has_failed = first.status in FAILURES if first.over else first.patience.exhausted
        if len(self.runs) == 1 and not has_failed:
            return None
        if self._best() is not None:
            for run in self.runs:
                run.finish("skipped", "an earlier process of this prober has answered", now)
            return None
        most = MAX_ATTEMPTS + any(run.serial for run in self.runs)
        if len(self.runs) >= most or first.deadline - now < LEAST_S:
            return None
        if any(run.over and run.status not in FAILURES for run in self.runs):
            return None
        return next((a for run in self.runs if (a := self._around(run)) is not None), None)

    def united(self) -> Run:
        """Return the first run with what all of them brought."""
        first = self.runs[0]
        if any(run.status is None for run in self.runs):  # cancelled
            first.status = None
        if first.status not in FAILURES:
            return first
        best = self._best()
        first.unresponsive = self._unresponsive()
        self._unite(first, [best] if best else [])
        return first

    def _best(self) -> Run | None:
        """Return the run whose answer counts: the first that did not fail, once it is known."""
        for run in self.runs:
            if not run.over:
                return None
            if run.status not in FAILURES:
                return run
        return None

    def _around(self, run: Run) -> Another | None:
        """Return the run that goes around the device of `run`; None if one does.

        Where several devices may be the one, another run asks one after the other. So do all that
        follow: what fails twice is better found than fast.
        """
        suspects = _suspects(run)
        if len(suspects) > 1:
            is_last = run is self.runs[-1]
            return Another(run.avoid, serial=True) if is_last and not run.serial else None
        if not suspects:
            return None
        avoid = run.avoid | self._ids(suspects[0])
        if any(avoid <= other.avoid for other in self.runs):
            return None
        return Another(avoid, serial=any(other.serial for other in self.runs))

    def _ids(self, device: str) -> frozenset[str]:
        """Return the ids of a device, also those that the bus knows, so that each form is known."""
        try:
            ids = {device, normalise_id(device)}
        except ValueError:
            return frozenset((device,))
        for sighting in self._bus():
            known = sighting.get("ids")
            if isinstance(known, (list, tuple)) and not ids.isdisjoint(known):
                ids.update(known)
        return frozenset(ids)

    def _unresponsive(self) -> list[Unresponsive]:
        """Return each device that failed, once."""
        devices: dict[str, Unresponsive] = {}
        for run in self.runs:
            device = _culprit(run)
            if device is not None and device not in devices:
                ids, stuck_at = self._ids(device), run.details.get("stuck_at")
                devices[device] = Unresponsive(device, ids, _how(run), str(run.reason), stuck_at)
        return list(devices.values())

    def _unite(self, first: Run, best: list[Run]) -> None:
        """Give the first run what the others brought; the best one's devices count before all."""
        ordered = best + [run for run in reversed(self.runs) if run not in best]
        sightings, findings = _united(ordered)
        first.sightings, first.findings = sightings, findings
        first.ended = max(run.ended for run in self.runs)
        if not first.unresponsive:
            if best and best[0].serial and best[0].status == "ok":
                first.status = "ok"
                first.reason = f"{first.reason}; another process asked one after the other"
            return
        first.details["code"] = first.unresponsive[0].code
        first.details["avoided"] = [lost.device for lost in first.unresponsive]
        # Without a device that answered there is nothing that another process made good.
        if best and best[0].status == "ok":
            first.status = "ok"
            first.reason = f"{first.reason}; another process read the other devices"


def _suspects(run: Run) -> list[str]:
    """Return the devices over which a run may be silent for too long, or may have failed."""
    if not run.over:
        return run.patience.silent
    if run.status == "timeout":
        return run.patience.suspects(run.ended)
    return list(run.patience.asked) if run.status in FAILURES else []


def _culprit(run: Run) -> str | None:
    """Return the device over which a run is silent for too long, or failed, where it is one."""
    suspects = _suspects(run)
    return suspects[0] if len(suspects) == 1 else None


def _how(run: Run) -> How:
    if run.status == "call_error":
        return "raises"
    return "hangs" if run.status == "timeout" else "crashes"


def _united(runs: Sequence[Run]) -> tuple[list[object], list[object]]:
    """Return devices and findings of all runs; of one device that of the first in `runs`.

    A run that was to avoid a device knows least of it: any other that reports it goes before.
    """
    pairs = [(sighting, _texts(sighting), run) for run in runs for sighting in run.sightings]
    pairs.sort(key=lambda pair: not pair[1].isdisjoint(pair[2].avoid))
    sightings: list[object] = []
    seen: dict[str, Run] = {}
    for sighting, ids, run in pairs:
        if all(seen.get(identity, run) is run for identity in ids):
            sightings.append(sighting)
            seen.update(dict.fromkeys(ids, run))
    findings: list[object] = []
    for run in runs:
        findings += [finding for finding in run.findings if finding not in findings]
    return sightings, findings


def _texts(sighting: object) -> set[str]:
    """Return the ids of a sighting that nobody has checked yet, in the written form."""
    ids = sighting.get("ids") if isinstance(sighting, dict) else None
    texts = set()
    for identity in ids if isinstance(ids, list) else ():
        if isinstance(identity, str):
            try:
                texts.add(normalise_id(identity))
            except ValueError:
                continue
    return texts


# Run all selected probers at once, and return when each has an outcome or its deadline passed.

CHILD_ARGUMENT = "--probe-core-child"
"""First argument of a frozen application that is started as a child; see `child_entry`."""

_CODE = "import sys;sys.path.append({root!a});from probe_core.isolation.start import main;main()"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

MAX_CHILDREN = 128
"""Probers run at once at most: each takes four descriptors of the host, of usually 1,024."""

_COPIES = 100
"""Attempts to copy an environment that other threads change: each may fail, not all of them."""

declared = False
"""Whether a frozen application called `child_entry`, so that its executable can be a child."""


def run_probers(
    probers: Sequence[Prober] | Choice,
    machine: Machine,
    bus: Bus | BusSource,
    *,
    active: bool = False,
    wake_fd: int = -1,
    observe: Observe | None = None,
    meanwhile: Callable[[], object] | None = None,
    arrived: Arrived | None = None,
    answered: Answered | None = None,
    waiting: Waiting | None = None,
    replayed: Sequence[Run] = (),
    portable: bool = False,
) -> list[Run]:
    """Run `probers` in parallel, launched in the order given; one `Run` with an outcome for each.

    `probers` may be a function, which is called in the caller's thread after the first child was
    started: that child then has the time in which they are found. Without any it is ended.
    `bus` is for all of them; a function is called in another thread, after the first child was
    started: it takes the time in which that child's interpreter starts.
    `meanwhile` is called once, after the last child was started: work that does not need them.
    `arrived` is called with each device, in the order in which they come, while others still run.
    `answered` is called once all have an outcome, while they end: work that does not need to know
    whether each process could be ended. They and `observe` are called in the caller's thread.
    `waiting` is called at least every 0.1 s while children run, and at last with no run, in a
    thread that no signal handler interrupts. `replayed` are runs of recorded answers: they are
    handed over with the others, by the rank of their probers.

    Takes at most the longest deadline and a bounded time for reaping. When `wake_fd` becomes
    readable the children are killed and the runs that had not ended are left without a status.
    """
    launcher = _Launcher(new_driver(portable, wake_fd), machine, bus, active, observe)
    launcher.waiting, launcher.arrived, launcher.replayed = waiting, arrived, replayed

    def work(worker: Worker) -> None:
        try:
            chosen = launcher.choose(probers, worker) if callable(probers) else probers
            if not chosen:
                return
            for prober in chosen:
                launcher.launch(prober, worker)
                if worker.stopping:
                    return
            if meanwhile is not None:
                worker.post(meanwhile)
            attend = launcher.attend
            is_over = launcher.driver.watch(
                monotonic, lambda: worker.stopping, lambda now: attend(worker, now)
            )
            if is_over and answered is not None:
                worker.post(lambda: answered(launcher.united()))
        finally:
            launcher.driver.end_all(monotonic)
            if waiting is not None:
                waiting(monotonic(), ())

    # In a thread of its own, because signal handlers raise in the main thread.
    in_place = native_id() in uninterrupted and not launcher.driver.has_threads
    Worker(work, launcher.driver.start_thread, in_place).run()
    for attempts in launcher.attempts:
        first, *others = attempts.runs
        for run in others:  # what outlived its end
            first.still_there += run.still_there
    return launcher.united()


class _Launcher:
    """Starts the processes of all probers, and those that go around a silent device."""

    def __init__(
        self,
        driver: Driver,
        machine: Machine,
        bus: Bus | BusSource,
        active: bool,
        observe: Observe | None,
    ) -> None:
        self.driver = driver
        self._machine = machine
        self._bus: BusSource = bus if callable(bus) else lambda: bus
        self._active = active
        self._observe = observe
        self.waiting: Waiting | None = None
        self.arrived: Arrived | None = None
        self.replayed: Sequence[Run] = ()
        self.attempts: list[Attempts] = []
        self._united: list[Run] = []
        self._inherited: dict[str, str] = {}
        self._mark = ""

    def choose(self, probers: Choice, worker: Worker) -> Sequence[Prober]:
        """Start the first process, and have the host say which probers to run."""
        self._inherited, self._mark = _environ(), os.urandom(8).hex()
        try:
            self.driver.start_ahead(_command(), {**self._inherited, MARK_VARIABLE: self._mark})
        except Exception:  # `_start` says why, if anything is to be run
            pass
        chosen: list[Prober] = []
        worker.call(lambda: chosen.extend(probers()))
        return chosen

    def launch(self, prober: Prober, worker: Worker) -> None:
        """Start a prober's first process, after the host was told."""
        from probe_core.isolation.run import Run  # a process that waits was started without it

        mark, self._mark = self._mark or os.urandom(8).hex(), ""
        run = Run(prober, os.urandom(8).hex(), mark, monotonic())
        arrived, observe = self.arrived, self._observe
        if arrived is not None:
            run.arrived = lambda device: worker.post(lambda: arrived(run, device))
        self.attempts.append(Attempts(run, self._bus))
        if observe is not None:
            worker.call(lambda: _notify(observe, "started", run, 1))
        if not worker.stopping:
            self._start(run)

    def attend(self, worker: Worker, now: float) -> None:
        """Go around devices that are silent, and say which probers are slow."""
        for attempts in self.attempts:
            another = attempts.attend(now)
            if another is not None and not worker.stopping:
                self._go_around(attempts, another, worker, now)
        if self.waiting is not None:
            slow = [a.runs[0] for a in self.attempts if not all(run.over for run in a.runs)]
            self.waiting(now, slow)

    def _go_around(self, attempts: Attempts, another: Another, worker: Worker, now: float) -> None:
        from probe_core.isolation.run import Run

        first = attempts.runs[0]
        token, mark = os.urandom(8).hex(), os.urandom(8).hex()
        run = Run(
            first.prober,
            token,
            mark,
            now,
            deadline=first.deadline,
            avoid=another.avoid,
            serial=another.serial,
        )
        attempts.runs.append(run)
        observe, number = self._observe, len(attempts.runs)
        if observe is not None:  # not waited for: the deadline runs
            worker.post(lambda: _notify(observe, "started", run, number))
        self._start(run)

    def _start(self, run: Run) -> None:
        """Start a process, or end its run with the reason why that cannot be."""
        if sum(len(attempts.runs) for attempts in self.attempts) > MAX_CHILDREN:
            reason = f"more than {MAX_CHILDREN} probers are selected, and this one comes last"
            run.finish("resource", reason, monotonic())
            return
        # Copied once: of fifty probers it would be a hundredth of the time.
        self._inherited = self._inherited or _environ()
        start(self.driver, run, self._machine, self._bus, self._active, inherited=self._inherited)

    def united(self) -> list[Run]:
        """Return one run per prober with what all its processes brought; tell the host of each.

        Recorded answers are among them, of which the host is not told.
        """
        for attempts in self.attempts[len(self._united) :]:
            for number, run in enumerate(attempts.runs[1:], start=2):
                if self._observe is not None:
                    _notify(self._observe, "finished", run, number)
            self._united.append(attempts.united())
            if self._observe is not None:
                _notify(self._observe, "finished", self._united[-1], 1)
        if self.replayed:
            return sorted([*self._united, *self.replayed], key=lambda run: run.prober.rank())
        return self._united


def start(
    driver: Driver,
    run: Run,
    machine: Machine,
    bus: Bus | BusSource,
    active: bool,
    first: RoundMessage | None = None,
    inherited: Mapping[str, str] | None = None,
) -> None:
    """Start the process of a run, or end the run with the reason why that cannot be.

    `first` is the round that a resident process begins with, `inherited` a copy of the environment.
    """
    try:
        environ = {**(inherited or _environ()), MARK_VARIABLE: run.mark}
        driver.start(run, _command(), environ, lambda: _request(run, machine, bus, active, first))
    except Exception as error:  # no room, or an audit hook of the host forbids it
        run.finish("resource", f"no process could be started: {error}", monotonic())


def new_driver(portable: bool = False, wake_fd: int = -1) -> Driver:
    """Return the way to start and watch children that suits this system."""
    import select

    # eventlet takes `poll` away from the select module.
    if portable or not hasattr(os, "posix_spawn") or not hasattr(select, "poll"):
        from probe_core.isolation.portable import Driver as PortableDriver

        return PortableDriver()
    from probe_core.isolation.posix import Driver as PosixDriver

    return PosixDriver(wake_fd)


def _notify(observe: Observe, event: str, run: Run, attempt: int) -> None:
    details: dict[str, object] = {
        "prober": run.prober.name,
        "status": run.status,
        "reason": run.reason,
        "devices": len(run.sightings),
    }
    if attempt > 1:
        details |= {"attempt": attempt, "avoid": sorted(run.avoid)}
    observe(event, details)


def _request(
    run: Run,
    machine: Machine,
    bus: Bus | BusSource,
    active: bool,
    first: RoundMessage | None,
) -> bytes:
    import marshal

    prober = run.prober
    request: RequestMessage = {
        "token": run.token.decode(),
        "paths": import_paths(),
        "target": prober.target,
        "needs_site": prober.needs_site,
        "origin": prober.origin,
        "deadline_s": min(prober.deadline_s, run.deadline - run.started),
        "ends": run.deadline,
        "active": active,
        "root": machine.root,
        "environ": {str(name): str(value) for name, value in machine.environ.items()},
        "os": machine.os,
        "arch": machine.arch,
        "bus": list(bus() if callable(bus) else bus),
        "avoid": sorted(run.avoid),
        "serial": run.serial,
        "round": first,
    }
    return marshal.dumps(dict(request))


def import_paths() -> list[str]:
    """Return this process's import path with absolute folders.

    As root, without those into which others could put a module: of the path, only the plugin's own
    package was checked, and what it imports comes from there as well.
    """
    from probe_core.machine.trust import Trust, applies

    paths = []
    for path in sys.path:
        if isinstance(path, str) and "\0" not in path:  # imports choke on anything else
            try:
                paths.append(os.path.abspath(path or os.curdir))
            except OSError:  # the working directory was deleted
                continue
    distinct = list(dict.fromkeys(paths))
    if not applies():
        return distinct
    trust = Trust()
    return [path for path in distinct if trust.above(path) is None]


def _environ() -> dict[str, str]:
    """Return a copy of the environment, which another thread may change meanwhile."""
    for _ in range(_COPIES):
        try:
            return dict(os.environ)
        except (RuntimeError, KeyError):
            continue
    return {}


def cannot_start() -> str | None:
    """Return why this application cannot start children; None when it can."""
    if MARK_VARIABLE in os.environ:
        return "this is itself the process of a prober: probers start no probers"
    if getattr(sys, "frozen", False) and not declared:
        return "a frozen application must call probe_core.child_entry() first in its main module"
    if not sys.executable:
        return "this Python is embedded and does not know its own executable"
    # uWSGI, Blender and others are their own sys.executable, and would start once more.
    name = os.path.basename(sys.executable)
    if not getattr(sys, "frozen", False) and "py" not in name.lower():
        return f"this Python is embedded in {name}, which would start instead of a prober"
    return None


def _command() -> list[str]:
    if getattr(sys, "frozen", False):
        return [sys.executable, CHILD_ARGUMENT]
    # -I and -S: nobody's environment, user folder or .pth file runs in the child; the parent's
    # own path, which those have already shaped, is handed over in the request.
    flags = ["-I", "-S"]
    # As root, bytecode runs only from where it was checked, beside its module: in a folder for all
    # of it others may have any. None is written there, since the host's is not there either.
    prefix, is_refused = sys.pycache_prefix, False
    if prefix:
        from probe_core.machine.trust import applies

        is_refused = applies()
    if sys.dont_write_bytecode or is_refused:
        flags.append("-B")
    if sys.flags.utf8_mode:
        flags += ["-X", "utf8"]
    if prefix and not is_refused:
        flags += ["-X", f"pycache_prefix={prefix}"]
    return [sys.executable, *flags, "-c", _CODE.format(root=_ROOT)]
