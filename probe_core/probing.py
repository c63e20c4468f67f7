"""The public calls: probe this machine, now or awaited; register probers; start as a child.

Callers who ask the same at the same time share one probe.
"""

from __future__ import annotations

import os
from time import monotonic

from probe_core.background import (
    INTERRUPTIONS,
    TICK_S,
    Call,
    notified,
    outlast,
    uninterrupted,
)
from probe_core.config import ConfigError, refuse_unknown
from probe_core.fastpath import native_id, new_lock
from probe_core.machine import Machine
from probe_core.pipeline.run import Cancelled, document
from probe_core.pipeline.settings import load_settings
from probe_core.registry.select import RESERVED, host_probers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, Unpack

    from probe_core.config import Settings
    from probe_core.model import Report
    from probe_core.model.document import FindingDoc
    from probe_core.registry.document import Registered

    Environment = frozenset[tuple[str, str]]
    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""
    Target = str | ModuleType | Mapping[str, object]
    Probe = Callable[[int, bool], Report]
    """Takes a descriptor that becomes readable when nobody waits any more, and whether a report
    counts that was made before."""

__all__ = [
    "Cancelled",
    "checked_machine",
    "checked_path",
    "checked_probers",
    "child_entry",
    "document",
    "probe",
    "probe_async",
    "register",
    "registered_probers",
    "share",
    "share_awaited",
    "unregister",
]

_registrations = 0
"""How often that changed: a probe that began before is of no use for those who ask after."""

_cache: dict[object, tuple[Environment | None, Report | None]] = {}

MAX_CACHED = 16
"""Reports that are kept. A host asks with one or two sets of settings; each report takes 10 to
500 kB, so a host that varies them for ever would grow for ever."""


def register(name: str, target: Target) -> None:
    """Add a prober for this process, as an entry point would; it wins over one of that name.

    `target` is ``"module"``, ``"module:attribute"``, a module, or a mapping with ``target`` and
    what a manifest may say (``priority``, ``deadline_s``, ``active``, ``when`` …): for frozen
    applications, which have no entry points. Raises `ConfigError` for anything else, and for a
    name that the core keeps for itself.
    """
    if isinstance(name, str) and name.lower() in RESERVED:
        taken = ", ".join(sorted(RESERVED))
        raise ConfigError(f"the prober name {name!r} is taken: the core keeps {taken}; rename it")
    host_probers[name] = _as_registered(name, target)
    _forget_reports()


def unregister(name: str) -> None:
    """Remove a prober added by `register`; unknown names are ignored."""
    host_probers.pop(name, None)
    _forget_reports()


def _forget_reports() -> None:
    global _registrations
    _registrations += 1
    _cache.clear()


def registered_probers() -> Mapping[str, Registered]:
    """Return what `register` added."""
    return dict(host_probers)


def _as_registered(name: object, target: object) -> Registered:
    if isinstance(target, str):
        return {"target": target}
    items = getattr(target, "items", None)
    if callable(items):
        fields: Any = dict(items())  # checked one by one when the prober is made
        if not isinstance(fields.get("target"), str):
            raise ConfigError(f"the prober {name!r} needs a 'target', such as 'module:attribute'")
        registered: Registered = fields
        return registered
    module = getattr(target, "__name__", None)
    if getattr(target, "__spec__", None) is None or not isinstance(module, str):
        raise ConfigError(
            f"the prober {name!r} is a {type(target).__name__}; it runs in a process of its own,"
            " so it must be importable there: give a module or 'module:attribute'"
        )
    return {"target": module}


def probe(
    *,
    config: str | os.PathLike[str] | None = None,
    machine: Machine | None = None,
    probers: Mapping[str, Target] | None = None,
    hooks: Iterable[object] = (),
    refresh: bool = False,
    **settings: Unpack[Settings],
) -> Report:
    """Return what this node is. Takes at most the longest deadline and a second; never hangs.

    `settings` are arguments by name (``only``, ``timeout`` …): `probe_core.config.SETTINGS`, the
    page of settings and ``probe --help-all`` have them all. `config` is a TOML file of settings.
    `probers` are added to the registered ones for this call; `hooks` are objects with host hooks.
    `machine` is another machine than this one.

    The report is cached for the process; `refresh` probes again. Raises `ConfigError` for an
    argument of a wrong type or value, which it names, and nothing that hardware, drivers or
    plugins could cause.
    """
    refuse_unknown(probe, settings)
    return _Call(settings, config, machine, probers, hooks, refresh).report()


async def probe_async(
    *,
    config: str | os.PathLike[str] | None = None,
    machine: Machine | None = None,
    probers: Mapping[str, Target] | None = None,
    hooks: Iterable[object] = (),
    refresh: bool = False,
    **settings: Unpack[Settings],
) -> Report:
    """Return what `probe` returns, without blocking the event loop (asyncio, or trio with anyio).

    Takes the arguments of `probe`. When the awaiting task is cancelled, the children are killed
    before the cancellation goes on.
    """
    refuse_unknown(probe_async, settings)
    return await _Call(settings, config, machine, probers, hooks, refresh).awaited()


class _Call:
    """One call of `probe`, its arguments checked."""

    __slots__ = (
        "_config",
        "_environ",
        "_file",
        "_findings",
        "_hooks",
        "_ignored",
        "_key",
        "_machine",
        "_probers",
        "_refresh",
        "_settings",
    )

    def __init__(
        self,
        settings: Mapping[str, object],
        file: object,
        machine: object,
        probers: object,
        hooks: object,
        refresh: object,
    ) -> None:
        self._settings = settings
        self._file = checked_path(file)
        self._machine = checked_machine(machine)
        self._probers = checked_probers(probers)
        self._hooks = _checked_hooks(hooks)
        if not isinstance(refresh, bool):
            raise ConfigError(_wrong("refresh", refresh, "True or False"))
        self._refresh = refresh
        self._key: object = None
        self._environ: Environment = frozenset()
        self._findings: Sequence[FindingDoc] = ()

    def report(self) -> Report:
        """Return the report: the cached one, or that of a probe."""
        report = self._alone(-1)
        if report is None:
            report = share((self._key, self._environ), self._refresh, self._probe_for_all)
        self._log()
        return report

    async def awaited(self) -> Report:
        """Return the report to a task, which may be cancelled meanwhile."""
        from probe_core.gate import load

        load("awaiting")
        from probe_core.awaiting import in_thread

        # Settings may be files, and those may be slow.
        report = await in_thread(self._alone)
        if report is None:
            key = self._key, self._environ
            report = await share_awaited(key, self._refresh, self._probe_for_all)
        self._log()
        return report

    def _log(self) -> None:
        """Log what this call's own probe found, in the caller's thread.

        Not in the thread that probes: logging asks for the current thread's name, and before Python
        3.13 `threading` then keeps an entry for that thread, which it did not start, for ever.
        """
        if self._findings:
            from probe_core.model.findings import log

            log(self._findings)

    def _alone(self, wake_fd: int) -> Report | None:
        """Return the report that no others are concerned with; None where they may share a probe.

        That is the cached one where nothing has changed since, and a probe of another machine, or
        with probers or hooks of its own. It gives up when `wake_fd` becomes readable.
        """
        from probe_core.gate import load, load_inside_import

        load_inside_import("probe")
        machine = self._machine or Machine()
        environ = machine.environ if machine.live else os.environ
        self._config, self._ignored = load_settings(self._settings, environ, self._file, load)
        if self._machine or self._probers or self._hooks:
            return self._probe(wake_fd)
        # Another process (fork) or other settings are another report; a changed environment too,
        # for a program that hides devices from itself must not be shown them.
        reasons = tuple(setting.reason for setting in self._ignored)
        self._key = os.getpid(), _registrations, self._config.key(), reasons
        self._environ = frozenset(machine.environ.items())
        return None if self._refresh else self._cached()

    def _cached(self) -> Report | None:
        environ, report = _cache.get(self._key, (None, None))
        return report if environ == self._environ else None

    def _probe_for_all(self, wake_fd: int, is_fresh: bool) -> Report:
        """Probe, and cache the report; one that was made just before counts unless `is_fresh`."""
        report = None if is_fresh else self._cached()
        if report is None:
            report = self._probe(wake_fd)
            _keep(self._key, self._environ, report)
        return report

    def _probe(self, wake_fd: int) -> Report:
        from probe_core.gate import load

        load("probe")
        from probe_core.model.report import Report

        plain = document(
            self._config,
            self._ignored,
            machine=self._machine,
            probers=self._probers,
            hooks=self._hooks,
            wake_fd=wake_fd,
            load=load,
        )
        self._findings = plain["findings"]
        return Report.of(plain)


def _keep(key: object, environ: Environment, report: Report) -> None:
    """Cache a report, and drop the oldest beyond `MAX_CACHED`."""
    _cache[key] = (environ, report)
    while len(_cache) > MAX_CACHED:
        try:
            _cache.pop(next(iter(_cache)), None)
        except (RuntimeError, StopIteration):  # another thread changes it at this moment
            return


def _wrong(argument: str, value: object, expected: str) -> str:
    shown = repr(value)[:80] if isinstance(value, (str, int)) else f"a {type(value).__name__}"
    return f"the argument {argument!r} is {shown}: expected {expected}"


def checked_path(path: object) -> str | None:
    """Return the path of the configuration file; raises `ConfigError` for anything else."""
    if path is None:
        return None
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigError(_wrong("config", path, "the path of a file"))
    return text


def checked_machine(machine: object) -> Machine | None:
    """Return the argument `machine`; raises `ConfigError` for anything else."""
    if machine is None or isinstance(machine, Machine):
        return machine
    hint = f"Machine({machine!r})" if isinstance(machine, str) else "Machine('FOLDER')"
    raise ConfigError(_wrong("machine", machine, f"a probe_core.Machine, such as {hint}"))


def checked_probers(probers: object) -> dict[str, Registered]:
    """Return the argument `probers` as `register` keeps them; raises `ConfigError`."""
    if probers is None:
        return {}
    items = getattr(probers, "items", None)
    if not callable(items):
        raise ConfigError(_wrong("probers", probers, "a mapping of names to modules"))
    return {str(name): _as_registered(name, target) for name, target in items()}


def _checked_hooks(hooks: object) -> list[object]:
    if isinstance(hooks, (str, bytes)) or not hasattr(hooks, "__iter__"):
        raise ConfigError(_wrong("hooks", hooks, "a list of objects with host hooks"))
    return list(hooks)


def child_entry() -> None:
    """Let a frozen application be started as a prober's process; call it first in its main module.

    Returns at once in the application itself. In a child it runs the prober and ends the process.
    """
    import sys

    from probe_core.isolation import launch

    launch.declared = True
    if sys.argv[1:2] == [launch.CHILD_ARGUMENT]:
        from probe_core.isolation.start import main

        main()


# One probe for all who ask the same at the same time: threads, asyncio's tasks and trio's alike.
#
# A *flight* is a probe in a thread that no caller owns. A caller takes a *seat* in the flight that
# answers him, and waits. He may leave at any moment; when the last one leaves, the flight gives
# up.
#
# A signal handler may ask while the thread below it does, at any of its instructions. So there is
# no lock here: each step is one that Python does not divide (`setdefault`, `pop`), and whoever
# finds that his flight gave up because of others takes the next one.


NEXT_S = 0.5
"""Seconds after which a flight begins at the latest, although the one before it has not ended.

Those who ask for a fresh report meanwhile share it. So they wait for little more than their own
probe also where a driver hangs, and where none does a probe has ended by then.
"""

_flights: dict[Hashable, Flight] = {}
"""A flight by what was asked: the newest, or one from which `Flight.next` leads there."""

_running: dict[Flight, None] = {}
"""The flights that have a thread."""


def share(key: Hashable, refresh: bool, probe: Probe) -> Report:
    """Return the report of a probe that all callers with this key share.

    With `refresh` it begins after the call. Raises what the probe raised, and whatever a signal
    handler raises here: the last to leave does so when the children have ended.
    """
    seat = _Seat(key, refresh, probe)
    outlast(seat.wait, seat.leave, INTERRUPTIONS)
    return seat.report()


async def share_awaited(key: Hashable, refresh: bool, probe: Probe) -> Report:
    """Return what `share` returns, awaited in a task that may be cancelled."""
    from probe_core.awaiting import loop_event  # it imports threading, which `share` does not need

    seat = _Seat(key, refresh, probe)
    try:
        while seat.takes_another():
            done, seat.notify = loop_event()
            if not seat.board().over:
                await done.wait()
    finally:
        seat.leave()
    return seat.report()


class _Seat:
    """One caller, and the flight that he is in.

    Every method may be interrupted, and called again.
    """

    def __init__(self, key: Hashable, refresh: bool, probe: Probe) -> None:
        self.refresh = refresh
        self.notify: Callable[[], object] = bool
        self._key = key
        self._probe = probe
        self._flight: Flight | None = None
        self._has_left = False

    def wait(self) -> None:
        """Return when the flight that answers has ended."""
        while self.takes_another():
            self.board().wait()

    def takes_another(self) -> bool:
        """Return whether there is no flight yet, or it gave up although this seat was taken."""
        return self._flight is None or self._flight.gave_up

    def board(self) -> Flight:
        """Take a seat in the flight that answers, and have it begin; return it."""
        flight = _flights.setdefault(self._key, Flight(self._key, self._probe))
        self._flight = flight
        while not flight.admit(self):
            flight = self._flight = flight.next(self._probe)
            _flights[self._key] = flight
        flight.begin()
        return flight

    def leave(self) -> None:
        """Leave; the last one returns when the children have ended, the others at once."""
        if self._flight is not None and not self._has_left:
            self._flight.dismiss(self)
            self._has_left = True

    def report(self) -> Report:
        """Return what the flight brought, or raise what it met."""
        assert self._flight is not None
        report: Report = self._flight.result()
        return report


class Flight(Call):
    """One probe, and the seats that are taken in it.

    `gave_up` is whether it ended without an answer, because nobody seemed to wait, or because this
    process is a copy of the one in which it ran.
    """

    def __init__(self, key: Hashable, probe: Probe, before: Flight | None = None) -> None:
        super().__init__()
        self._key = key
        self._probe = probe
        self._before = before
        self._next: dict[str, Flight] = {}
        self._seats: dict[_Seat, None] = {}
        self._begun = self._fresh = False

    def admit(self, seat: _Seat) -> bool:
        """Give a caller a seat, unless this flight cannot answer him any more.

        It notes first what others look at last, and looks last at what they note first.
        """
        self._fresh = self._fresh or seat.refresh
        self._seats[seat] = None
        is_late = self.over or self._closed or (seat.refresh and self._begun)
        if is_late or self._is_below():
            self._seats.pop(seat, None)
            return False
        return True

    def _is_below(self) -> bool:
        """Return whether this thread does the probe, in which a handler or a finalizer asks."""
        own = native_id()
        return own == self.caller or (own == self.thread and own in uninterrupted)

    def next(self, probe: Probe) -> Flight:
        """Return the flight that begins when this one has ended, or soon: one for all who ask."""
        return self._next.setdefault("next", Flight(self._key, probe, self))

    def dismiss(self, seat: _Seat) -> None:
        """Take a seat back; where it was the last, end the children and wait for that."""
        self._seats.pop(seat, None)
        if self._seats:
            self.join()
        else:
            self.give_up(seat)

    def drop(self) -> None:
        """End it in a copy of the process, in which its thread is missing."""
        self.gave_up = self.over = True
        self.thread, self._pipe_lock = 0, new_lock()
        self._close()

    def _work(self) -> None:
        _running[self] = None
        if self.thread != os.getpid():  # the number of the main thread, which gevent has do it all
            uninterrupted.add(self.thread)
        try:
            self._await_turn()
            self._begun = True
            super()._work()
        finally:
            if self._result is None and (self._closed or not isinstance(self._error, Exception)):
                self.gave_up, self._error = True, None
            uninterrupted.discard(self.thread)

    def _do(self, wake_fd: int) -> object:
        return self._probe(wake_fd, self._fresh)

    def _await_turn(self) -> None:
        before, until = self._before, monotonic() + NEXT_S
        self._before = None
        while before is not None and not before.over and not self._closed:
            now = monotonic()
            if now >= until:
                return
            before.wait(min(until, now + TICK_S))

    def _end(self) -> None:
        _running.pop(self, None)
        if _flights.get(self._key) is self:
            _flights.pop(self._key, None)
        super()._end()

    def _tell(self) -> None:
        for seat in list(self._seats):
            notified(seat.notify)


def _drop_all() -> None:
    """Begin without flights in a copy of the process, and without their descriptors."""
    for flight in [*_running, *_flights.values()]:
        flight.drop()
    _running.clear()
    _flights.clear()
    uninterrupted.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)
