"""The first half of a probe: which probers there are, which of them run, and what they saw."""

from __future__ import annotations

from time import monotonic

from probe_core.pipeline.collect import Collected
from probe_core.probers import builtin_probers
from probe_core.registry.discover import discover
from probe_core.registry.prober import FALLBACK, Prober
from probe_core.registry.select import Decision, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.registry.discover import Registered
    from probe_core.registry.host import Host

    Lap = Callable[[str], None]

__all__ = ["Cancelled", "Gathered"]

_stuck: set[str] = set()
"""Names of probers whose child could not be killed; they are not started again in this process."""


class Cancelled(Exception):
    """The caller gave up waiting; the children are gone."""


class Gathered:
    """What the first half of a run gathers: which probers there are, and what they saw."""

    def __init__(self, machine: Machine, config: Config, host: Host | None) -> None:
        self.machine = machine
        self.config = config
        self.host = host
        self.collected = Collected()
        self.decisions: list[Decision] = []
        self.findings: list[FindingDoc] = []
        self.names = {"bus", "cpu", FALLBACK}
        self._bus: list[dict[str, Any]] | None = None

    def builtin(self, lap: Lap) -> None:
        """Run the built-in probers, in process."""
        probers = [p for p in builtin_probers() if p.name not in self.config.disable]
        self._bus = _run_builtin(probers, self.machine, self.config, self.collected)
        lap("bus")

    def others(
        self,
        registered: Mapping[str, Registered],
        wake_fd: int,
        lap: Lap,
        meanwhile: Callable[[], object],
    ) -> None:
        """Find, select and run all other probers; `meanwhile` is called while they run.

        Raises `Cancelled` when `wake_fd` became readable.
        """
        probers, self.findings = discover(registered)
        self.names |= {prober.name for prober in probers}
        lap("discover")
        self.decisions = _select(probers, self.config, self.machine, self._bus, self.host)
        lap("select")
        _run(self, self._bus or (), wake_fd, meanwhile)
        lap("run")


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
    seen: Gathered,
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
