"""A machine to probe, and what running a prober on it showed."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from probe_core.isolation.launch import run_probers
from probe_core.isolation.run import Run
from probe_core.machine import Machine
from probe_core.machine.trust import Trust
from probe_core.registry.prober import Prober, apply_manifest
from probe_core.testing.rehearsal import bus_sightings
from probe_core.testing.stage import VARIABLE


class Case:
    """A machine, and the process in which it is probed.

    `bus` is what the bus prober would have seen; by default the built-in one is asked.

    `live` makes the machine count as the live one though its files lie below its root: for probers
    that then ask a library or a tool, of which you put a fake into `variables` or `sys_path`.
    `variables` are set in the environment of the prober's process (``LD_LIBRARY_PATH``), unlike the
    machine's own `environ`. `sys_path` are folders to import from before all others.
    """

    def __init__(
        self,
        machine: Machine,
        bus: Sequence[Mapping[str, Any]] | None = None,
        *,
        live: bool = False,
        variables: Mapping[str, str] | None = None,
        sys_path: Sequence[str | Path] = (),
    ) -> None:
        self.machine = machine
        self.bus = list(bus_sightings(machine) if bus is None else bus)
        self.live = live
        self.variables = dict(variables or {})
        self.sys_path = list(map(str, sys_path))

    def without_bus(self) -> Case:
        """Return the same, as when the bus prober is disabled."""
        return Case(
            self.machine, [], live=self.live, variables=self.variables, sys_path=self.sys_path
        )

    def run(self, name: str, target: str) -> Run:
        """Run a prober here as the core does; ``status``, ``reason``, ``sightings`` … tell its end.

        `name` is that of its entry point, `target` its ``module`` or ``module:attribute``.
        """
        return run_case(prober_of(name, target), self)

    @contextmanager
    def surroundings(self, **variables: str) -> Iterator[None]:
        """Set this process's variables and path meanwhile, for a prober's process to inherit."""
        path = [*self.sys_path, *sys.path]
        with (
            mock.patch.dict("os.environ", {**self.variables, **variables}),
            mock.patch.object(sys, "path", path),
        ):
            yield


def prober_of(name: str, target: str) -> Prober:
    """Return the prober with its manifest applied, as discovery makes it."""
    prober = Prober(name, target, "the distribution under test")
    apply_manifest(prober, None, Trust())
    return prober


def run_case(prober: Prober, case: Case) -> Run:
    """Run the prober as the core does: in a child, under its deadline, active if it is so."""
    with case.surroundings():
        if case.live:
            return _staged(prober, case, live=True)
        return run_probers([prober], case.machine, case.bus, active=prober.active)[0]


def watch_case(prober: Prober, case: Case, avoid: Sequence[str] = ()) -> tuple[Run, dict[str, Any]]:
    """Run the prober under the spy, with ids in `request.avoid`; returns the run and the notes.

    ``events``: things done beyond reading files, as ``[name, what]``, those of the import first;
    ``changed``: what of the process was different after the call; ``touched``: what it announced
    with `request.touching`; ``left``: temporary files that are still there; ``read``: the paths
    that it read, listed or looked for through `request.machine`.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        temporary, read = Path(folder, "temporary"), Path(folder, "read.json")
        temporary.mkdir()
        with case.surroundings(**dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))):
            run = _staged(prober, case, live=case.live, noting=str(read), avoid=avoid)
        leftover = sorted(path.name for path in temporary.iterdir())
        paths = json.loads(read.read_text("utf-8")) if read.exists() else []
    # The spy's notes come as a finding: the only way out of the child that always works.
    notes = [f["what"] for f in run.findings if isinstance(f, dict) and f.get("code") == "spy"]
    assert notes, f"the prober did not come to its end: {run.status}, {run.reason}"
    noted: dict[str, Any] = json.loads(notes[0])
    return run, {**noted, "left": leftover, "read": paths}


def _staged(
    prober: Prober, case: Case, *, live: bool, noting: str = "", avoid: Sequence[str] = ()
) -> Run:
    """Run a prober of the kit in the prober's place, which calls it as told.

    `noting` is the file for the paths that it reads; "" where it is not watched.
    """
    machine = staged_machine(case, prober.target, live=live, noting=noting, avoid=list(avoid))
    return run_probers([staged(prober)], machine, case.bus, active=prober.active)[0]


def staged(prober: Prober) -> Prober:
    """Return the kit's prober with the name and limits of another, to be started as that is."""
    stage = Prober(prober.name, "probe_core.testing.stage", prober.distribution)
    stage.deadline_s, stage.needs_site = prober.deadline_s, prober.needs_site
    return stage


def staged_machine(case: Case, target: str, **orders: object) -> Machine:
    """Return the machine that tells ``probe_core.testing.stage`` to do as `target` does there."""
    orders = {"target": target, "live": case.live, "avoid": [], **orders}
    environ = {**case.machine.environ, VARIABLE: json.dumps(orders)}
    return Machine(case.machine.root, environ, case.machine.os, case.machine.arch)
