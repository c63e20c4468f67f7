"""A machine to probe, and what running a prober on it showed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from probe_core.isolation.launch import run_probers
from probe_core.isolation.run import Run
from probe_core.machine import Machine
from probe_core.registry.manifest import apply_manifest
from probe_core.registry.prober import Prober

__all__ = ["Case", "prober_of", "run_case", "watch_case"]


class Case:
    """A machine, and what the bus prober would have seen on it (built in, so asked here)."""

    def __init__(self, machine: Machine, bus: Sequence[Mapping[str, Any]] | None = None) -> None:
        self.machine = machine
        self.bus = list(_bus(machine) if bus is None else bus)


def _bus(machine: Machine) -> Sequence[Mapping[str, Any]]:
    from probe_core.api import NotApplicable, Request
    from probe_core.probers import builtin_probers

    for prober in builtin_probers():
        if prober.name == "bus" and prober.builtin is not None:
            answer = prober.builtin(Request(machine))
            return [] if isinstance(answer, NotApplicable) else list(answer)
    return []


def prober_of(name: str, target: str) -> Prober:
    """Return the prober with its manifest applied, as discovery makes it."""
    prober = Prober(name, target, "the distribution under test")
    apply_manifest(prober, None)
    return prober


def run_case(prober: Prober, case: Case, *, active: bool = False) -> Run:
    """Run the prober as the core does: in a child, under its deadline."""
    return run_probers([prober], case.machine, case.bus, active=active)[0]


def watch_case(prober: Prober, case: Case) -> tuple[Run, dict[str, Any]]:
    """Run the prober under the spy; returns the run and what the spy noted.

    ``events``: things done beyond reading files, as ``[name, what]``, those of the import first;
    ``changed``: what of the process was different after the call.
    """
    spied = Prober(prober.name, "probe_core.testing.spy", prober.distribution)
    spied.deadline_s, spied.needs_site = prober.deadline_s, prober.needs_site
    environ = {**case.machine.environ, "PROBE_CORE_SPY": prober.target}
    machine = Machine(case.machine.root, environ, case.machine.os, case.machine.arch)
    run = run_case(spied, Case(machine, case.bus))
    notes = [f["what"] for f in run.findings if isinstance(f, dict) and f.get("code") == "spy"]
    assert notes, f"the prober did not come to its end: {run.status}, {run.reason}"
    noted: dict[str, Any] = json.loads(notes[0])
    return run, noted
