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

_CODE = "import sys;sys.path.append({root!a});from probe_core.isolation.start import main;main()"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

MAX_CHILDREN = 128
"""Probers run at once at most: each takes four descriptors of the host."""

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
    runs: list[Run] = []
    # One more Ctrl-C, or a timer of the host, may raise after any instruction, so also while the
    # children are being ended, and in what would catch it: then the next one out ends them.
    end = _End(driver)
    with end, end, end, end, end, end, end, end:
        for prober in probers:
            runs.append(_new_run(prober))
            _tell(observe, "started", runs[-1])
            _start(driver, runs, machine, bus, active)
        if meanwhile is not None:
            meanwhile()
        driver.watch(time.monotonic)
    for run in runs:
        _tell(observe, "finished", run)
    return runs


class _End:
    """Ends a driver's children when it is left, which costs nothing once they are ended."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._driver.end_all(time.monotonic)


def _start(
    driver: Any,
    runs: list[Run],
    machine: Machine,
    bus: Sequence[Mapping[str, Any]],
    active: bool,
) -> None:
    """Start the last of `runs`, or end it with the reason why that cannot be."""
    run = runs[-1]
    if len(runs) > MAX_CHILDREN:
        reason = f"more than {MAX_CHILDREN} probers are selected, and this one comes last"
        run.finish("resource", reason, time.monotonic())
        return
    try:
        driver.start(run, _command(), *_job(run, machine, bus, active))
    except (OSError, ValueError) as error:
        run.finish("resource", f"no process could be started: {error}", time.monotonic())


def _driver(portable: bool, wake_fd: int) -> Any:
    """Return the way to start and watch children that suits this system."""
    import select

    # eventlet takes `poll` away from the select module.
    if portable or not hasattr(os, "posix_spawn") or not hasattr(select, "poll"):
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
) -> tuple[dict[str, str], bytes]:
    """Return (environment, request) of a run's child."""
    import marshal

    prober = run.prober
    request = {
        "token": run.token.decode(),
        "paths": _paths(),
        "target": prober.target,
        "needs_site": prober.needs_site,
        "deadline_s": prober.deadline_s,
        "ends": run.deadline,
        "active": active,
        "root": machine.root,
        "environ": {str(name): str(value) for name, value in machine.environ.items()},
        "os": machine.os,
        "arch": machine.arch,
        "bus": list(bus),
    }
    return {**_environ(), MARK_VARIABLE: run.mark}, marshal.dumps(request)


def _paths() -> list[str]:
    """Return this process's import path with absolute folders."""
    paths = []
    for path in sys.path:
        if isinstance(path, str) and "\0" not in path:  # imports choke on anything else
            try:
                paths.append(os.path.abspath(path or os.curdir))
            except OSError:  # the working directory was deleted
                continue
    return list(dict.fromkeys(paths))


def _environ() -> dict[str, str]:
    """Return a copy of the environment, which another thread may change meanwhile."""
    for _ in range(100):
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
    if sys.dont_write_bytecode:
        flags.append("-B")
    if sys.flags.utf8_mode:
        flags += ["-X", "utf8"]
    if sys.pycache_prefix:
        flags += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return [sys.executable, *flags, "-c", _CODE.format(root=_ROOT)]
