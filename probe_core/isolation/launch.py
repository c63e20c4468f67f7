"""Run all selected probers at once, and return when each has an outcome or its deadline passed."""

from __future__ import annotations

import os
import sys
import time

from probe_core.isolation.run import Run
from probe_core.isolation.sessions import MARK_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from probe_core.machine import Machine
    from probe_core.registry.prober import Prober

    Observe = Callable[[str, Mapping[str, Any]], None]

__all__ = ["CHILD_ARGUMENT", "run_probers"]

CHILD_ARGUMENT = "--probe-core-child"
"""First argument of a frozen application that is started as a child; see `child_entry`."""

_CODE = "import sys;sys.path[:]={paths!r};from probe_core.isolation.child import main;main()"

declared = False
"""Whether a frozen application called `child_entry`, so that its executable can be a child."""


def run_probers(
    probers: Sequence[Prober],
    machine: Machine,
    bus: Sequence[Mapping[str, Any]],
    *,
    active: bool = False,
    wake_fd: int = -1,
    observe: Observe | None = None,
    meanwhile: Callable[[], object] | None = None,
    portable: bool = False,
) -> list[Run]:
    """Run `probers` in parallel, launched in the order given; one `Run` with an outcome for each.

    `meanwhile` is called once, after the last child was started: work that does not need them.

    Takes at most the longest deadline and a bounded time for reaping. When `wake_fd` becomes
    readable the children are killed and the runs that had not ended are left without a status.
    """
    driver = _driver(portable, wake_fd)
    runs = [_new_run(prober) for prober in probers]
    children: list[Any] = []
    try:
        for run in runs:
            _tell(observe, "started", run)
            try:
                children.append(driver.start(run, *_job(run, machine, bus, active)))
            except OSError as error:
                run.finish("resource", f"no process could be started: {error}", time.monotonic())
        if meanwhile is not None:
            meanwhile()
        driver.watch(children, time.monotonic)
    finally:
        driver.end_all(children, time.monotonic)
    for run in runs:
        _tell(observe, "finished", run)
    return runs


def _driver(portable: bool, wake_fd: int) -> Any:
    """Return the way to start and watch children that suits this system."""
    if portable or sys.platform == "win32" or not hasattr(os, "posix_spawn"):
        from probe_core.isolation.portable import Driver as PortableDriver

        return PortableDriver()
    from probe_core.isolation.posix import Driver

    return Driver(wake_fd)


def _tell(observe: Observe | None, event: str, run: Run) -> None:
    if observe is not None:
        details = {"prober": run.prober.name, "status": run.status, "reason": run.reason}
        observe(event, details | {"devices": len(run.sightings)})


def _new_run(prober: Prober) -> Run:
    return Run(prober, os.urandom(8).hex(), os.urandom(8).hex(), time.monotonic())


def _job(
    run: Run, machine: Machine, bus: Sequence[Mapping[str, Any]], active: bool
) -> tuple[list[str], dict[str, str], bytes]:
    """Return (command line, environment, request) of a run's child."""
    import marshal

    prober = run.prober
    request = {
        "token": run.token.decode(),
        "target": prober.target,
        "needs_site": prober.needs_site,
        "deadline_s": prober.deadline_s,
        "active": active,
        "root": machine.root,
        "environ": dict(machine.environ),
        "os": machine.os,
        "arch": machine.arch,
        "bus": list(bus),
    }
    environ = {**os.environ, MARK_VARIABLE: run.mark}
    return _command(), environ, marshal.dumps(request)


def cannot_start() -> str | None:
    """Return why this application cannot start children; None when it can."""
    if getattr(sys, "frozen", False) and not declared:
        return "a frozen application must call probe_core.child_entry() first in its main module"
    if not sys.executable:
        return "this Python is embedded and does not know its own executable"
    return None


def _command() -> list[str]:
    if getattr(sys, "frozen", False):
        return [sys.executable, CHILD_ARGUMENT]
    # -I and -S: nobody's environment, user folder or .pth file runs in the child; the parent's
    # own path, which those have already shaped, is handed over instead.
    flags = ["-I", "-S"]
    if sys.dont_write_bytecode:
        flags.append("-B")
    if sys.pycache_prefix:
        flags += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    paths = list(dict.fromkeys(os.path.abspath(path or os.curdir) for path in sys.path))
    return [sys.executable, *flags, "-c", _CODE.format(paths=paths)]
