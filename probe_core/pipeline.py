"""The way of the data: discover, select, run, merge, resolve, see, report; each step timed.

Plain data goes in and a plain document comes out, so that nothing but the steps themselves is
imported: a node without accelerators pays for no data classes, plugins or libraries.
"""

from __future__ import annotations

from time import monotonic

from probe_core.assemble import (
    assemble,
    ignored_settings,
    in_severity,
    last_findings,
    share_memory,
    with_cpu,
)
from probe_core.findings import finding
from probe_core.merge import merge
from probe_core.node import describe
from probe_core.outcomes import Collected
from probe_core.probers import builtin_probers
from probe_core.registry.discover import discover
from probe_core.registry.prober import FALLBACK, Prober
from probe_core.registry.select import Decision, select, unknown_names
from probe_core.resolve import open_chipdb, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from probe_chipdb import Database
    from probe_core.config import Config
    from probe_core.findings import Finding
    from probe_core.host import Host
    from probe_core.machine import Machine
    from probe_core.registry.discover import Registered
    from probe_core.visibility import Views

__all__ = ["Cancelled", "run_pipeline"]

_stuck: set[str] = set()
"""Names of probers whose child could not be killed; they are not started again in this process."""


class Cancelled(Exception):
    """The caller gave up waiting; the children are gone."""


class Stopwatch:
    """Milliseconds per step."""

    __slots__ = ("_last", "_start", "taken")

    def __init__(self) -> None:
        self._start = self._last = monotonic()
        self.taken: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note the time since the last lap under `name`."""
        now = monotonic()
        self.taken[name] = round((now - self._last) * 1000, 3)
        self._last = now

    def total(self) -> dict[str, float]:
        """Return all laps and their sum."""
        return {**self.taken, "total": round((monotonic() - self._start) * 1000, 3)}


def run_pipeline(
    machine: Machine,
    config: Config,
    ignored: Sequence[str] = (),
    *,
    registered: Mapping[str, Registered] | None = None,
    host: Host | None = None,
    wake_fd: int = -1,
) -> dict[str, Any]:
    """Probe `machine` and return the report's document.

    `ignored` are sentences about settings that could not be used. Raises `Cancelled` when
    `wake_fd` became readable, and nothing else that a prober could cause.
    """
    watch = Stopwatch()
    seen = _Seen(machine, config, host)
    seen.builtin(watch)
    seen.others(registered or {}, wake_fd, watch)
    return _conclude(seen, ignored, watch)


class _Seen:
    """What the first half of a run gathers: which probers there are, and what they saw."""

    def __init__(self, machine: Machine, config: Config, host: Host | None) -> None:
        self.machine = machine
        self.config = config
        self.host = host
        self.chips = _Chips(config.chipdb)
        self.collected = Collected()
        self.decisions: list[Decision] = []
        self.findings: list[Finding] = []
        self.names = {"bus", "cpu", FALLBACK}
        self._bus: list[dict[str, Any]] | None = None

    def builtin(self, watch: Stopwatch) -> None:
        """Run the built-in probers, in process."""
        probers = [p for p in builtin_probers() if p.name not in self.config.disable]
        self._bus = _run_builtin(probers, self.machine, self.config, self.collected)
        watch.lap("bus")

    def others(self, registered: Mapping[str, Registered], wake_fd: int, watch: Stopwatch) -> None:
        """Find, select and run all other probers."""
        probers, self.findings = discover(registered)
        self.names |= {prober.name for prober in probers}
        watch.lap("discover")
        self.decisions = _select(probers, self.config, self.machine, self._bus, self.host)
        watch.lap("select")
        rehearse = _rehearsal(self.collected, self.chips, self.machine)
        _run(self, self._bus or (), wake_fd, rehearse)
        watch.lap("run")


def _conclude(seen: _Seen, ignored: Sequence[str], watch: Stopwatch) -> dict[str, Any]:
    """Merge, resolve, see, and put the report together."""
    machine, config, host, collected = seen.machine, seen.config, seen.host, seen.collected
    devices, clashes = merge(collected.said)
    devices = with_cpu(devices, machine)
    node = describe(machine)
    share_memory(devices, node["memory"])
    watch.lap("merge")
    database = seen.chips.open()
    unresolved = resolve(devices, database, host.resolve_chip if host else None)
    watch.lap("resolve")
    views, hidden = _see(devices, machine)
    asked = _ask_runtimes(views, devices, machine, config)
    watch.lap("see")
    document = assemble(node, devices, seen.decisions, collected, database)
    if asked:
        document["asked"] = asked
    document["findings"] = in_severity(
        [
            *ignored_settings(ignored),
            *unknown_names(config, seen.names),
            *collected.findings,
            *seen.findings,
            *seen.chips.findings,
            *unresolved,
            *hidden,
            *_disagreements(asked),
            *clashes,
            *last_findings(document, node, seen.decisions),
        ]
    )
    if host is not None:
        host.observe("report", {"devices": len(devices)})
        document["findings"] += host.findings
    document["timings_ms"] = watch.total()
    return document


class _Chips:
    """The chip database, opened at most once."""

    __slots__ = ("_database", "_file", "findings")

    def __init__(self, file: str | None) -> None:
        self._file = file
        self._database: Database | None = None
        self.findings: list[Finding] = []

    def open(self) -> Database | None:
        """Return the database, or None with the reason among `findings`."""
        if self._database is None and not self.findings:
            extra = [self._file] if self._file else ()
            self._database, self.findings = open_chipdb(extra)
        return self._database


def _rehearsal(collected: Collected, chips: _Chips, machine: Machine) -> Callable[[], object]:
    """Return what to do while the children start: the last steps, on what the buses showed.

    Its result is thrown away. What stays are loaded modules and chipdb's memory of the chips it
    was asked for: a fifth of a probe with GPUs, taken from time that would be spent waiting.
    """
    said = list(collected.said)

    def rehearse() -> None:
        devices, _ = merge(said)
        share_memory(devices, {"total": None, "available": None, "limit": None})
        resolve(devices, chips.open())
        _see(devices, machine)

    return rehearse


def _run_builtin(
    builtin: Sequence[Prober], machine: Machine, config: Config, collected: Collected
) -> list[dict[str, Any]] | None:
    """Run the built-in probers in process; return what the bus prober saw, None if it failed."""
    from probe_core.api import NotApplicable, Request
    from probe_core.wording import error_text

    bus: list[dict[str, Any]] | None = None
    for prober in builtin:
        start = monotonic()
        sightings: list[dict[str, Any]] = []
        status, reason = "ok", None
        try:
            assert prober.builtin is not None
            answer = prober.builtin(Request(machine, active=config.active))
            if isinstance(answer, NotApplicable):
                status, reason = "not_applicable", answer.reason
            else:
                sightings = list(answer)
        except Exception as error:  # whatever a file held, the node starts
            status, reason = "call_error", error_text(error)
        if prober.name == "bus" and status != "call_error":
            bus = sightings
        elapsed = (monotonic() - start) * 1000
        collected.take(prober, sightings, status=status, reason=reason, elapsed_ms=elapsed)
    return bus


def _select(
    probers: Sequence[Prober],
    config: Config,
    machine: Machine,
    bus: Sequence[Mapping[str, Any]] | None,
    host: Host | None,
) -> list[Decision]:
    vendors = None
    if bus is not None:
        vendors = {one["pci"]["id"][:4] for one in bus if "id" in one.get("pci", {})}
    veto = host.veto if host is not None else None
    decisions = select(probers, config, machine, vendors, veto, _stuck)
    if host is not None:
        for decision in decisions:
            runs = {"selected": decision.cause is None, "reason": decision.reason}
            host.observe("selected", {"prober": decision.prober.name, **runs})
    return decisions


def _run(
    seen: _Seen,
    bus: Sequence[Mapping[str, Any]],
    wake_fd: int,
    meanwhile: Callable[[], object],
) -> None:
    """Run what was selected, each in a child of its own; no child, and no import, for nothing."""
    chosen = [decision for decision in seen.decisions if decision.cause is None]
    if chosen:
        from probe_core.isolation.launch import cannot_start, run_probers

        problem = cannot_start()
        if problem:
            for decision in chosen:
                decision.cause, decision.reason = "no-child", problem
        else:
            runs = run_probers(
                [decision.prober for decision in chosen],
                seen.machine,
                bus,
                active=seen.config.active,
                wake_fd=wake_fd,
                observe=seen.host.observe if seen.host is not None else None,
                meanwhile=meanwhile,
            )
            if any(run.status is None for run in runs):
                raise Cancelled
            _stuck.update(run.prober.name for run in runs if run.abandoned)
            for run in runs:
                seen.collected.take_run(run)
    for decision in seen.decisions:
        if decision.cause is not None:
            seen.collected.skip(decision)


def _see(devices: Sequence[dict[str, Any]], machine: Machine) -> tuple[Views, list[Finding]]:
    from probe_core import visibility

    try:
        views = visibility.see(devices, machine.environ, os=machine.os)
        visibility.annotate(list(devices), views)
        return views, visibility.findings(views)
    except Exception as error:  # a byte string in a variable must not keep the node from starting
        for device in devices:
            device.setdefault("visibility", {})
        what = "visibility could not be worked out"
        why = f"{type(error).__name__}: {error}"
        fix = "report this with the variables that are set"
        return {}, [finding("config-ignored", what, why, fix)]


def _ask_runtimes(
    views: Views, devices: Sequence[dict[str, Any]], machine: Machine, config: Config
) -> dict[str, dict[str, Any]]:
    """Ask CUDA and HIP themselves what they show, where the user allowed it."""
    if not (config.active and machine.live and views):
        return {}
    from probe_core.visibility.asking import ask

    deadline = {} if config.timeout is None else {"deadline_s": config.timeout}
    return ask(views, devices, machine.environ, **deadline)


def _disagreements(asked: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    if not asked:
        return []
    from probe_core.visibility.asking import disagreements

    return disagreements(asked)
