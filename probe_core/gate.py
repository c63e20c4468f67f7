"""The gate through which comes whatever a probe imports: in steps, and in threads of ours alone.

Python runs signal handlers, and finalizers, in the middle of whatever a thread does, imports among
them: one that probes would meet modules that are half made. And a fork copies the locks of the
modules that another thread imports just then, which nobody opens in the copy. So no thread of the
host imports for a probe. A step imports, in a thread of its own or in the one that probes; all
callers wait for it, a signal handler above a waiting one too; and a fork waits until no step is at
work.

A command is a process of its own, without handlers and forks: it does not come here.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from probe_core.background import TICK_S, OwnThread, uninterrupted
from probe_core.fastpath import native_id, new_reentrant_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["NotPreparedError", "bring", "load", "load_inside_import", "prepare"]

PATIENCE_S = 5.0
"""Seconds without a new module after which a step is taken to wait for its own caller, where that
is inside an import; and for which a fork waits. A judgement: a module of a slow network drive takes
less. Others wait as long as an import takes, as they would for their own.
"""

_PARTS: dict[str, tuple[str, ...]] = {
    "probe": (
        "probe_core.probing",
        "probe_core.api",
        "probe_core.config",
        "probe_core.model.findings",
        "probe_core.model.report",
        "probe_core.pipeline.conclude",
        "probe_core.pipeline.node",
        "probe_core.probers.bus",
        "probe_core.probers.cpu",
        "probe_core.probers.cpu_files",
        "probe_core.resolve",
        "probe_core.machine.surroundings",
        "probe_core.machine.trust",
        "probe_chipdb.cpu",
        "probe_chipdb.database",
        "probe_chipdb.peaks",
        "probe_chipdb.table",
    ),
    "brands": ("probe_chipdb.cpu_brand", "probe_chipdb.spelling", "probe_chipdb.patterns"),
    "tree": ("probe_core.probers.tree",),
    "kinds": ("probe_core.machine.engines", "probe_core.resolve.cores"),
    "cores": ("probe_core.probers.clusters", "probe_core.probers.cpuinfo_other"),
    "nodes": (
        "probe_core.machine.engines",
        "probe_core.machine.numa",
        "probe_core.pipeline.node_memory",
        "probe_core.sizes",
    ),
    "fabric": ("probe_core.pipeline.fabric",),
    "buses": (
        "probe_core.machine.links",
        "probe_core.machine.numa",
        "probe_core.model.parts",
        "probe_core.probers.functions",
        "probe_core.sysfs.accel",
        "probe_core.sysfs.drivers",
        "probe_core.sysfs.drm",
        "probe_core.sysfs.nodes",
        "probe_core.sysfs.pci",
        "probe_core.sysfs.pcie",
        "probe_core.sysfs.power",
    ),
    "children": (
        "marshal",
        "select",
        "probe_core.isolation.launch",
        "probe_core.isolation.processes",
        "probe_core.isolation.run",
        "probe_core.isolation.shared",
        *(
            ("probe_core.isolation.posix", "probe_core.isolation.ending")
            if hasattr(os, "posix_spawn")
            else ("probe_core.isolation.portable",)
        ),
    ),
    "devices": (
        "probe_core.machine.access",
        "probe_core.isolation.look",
        "probe_core.model.parts",
        "probe_core.pipeline.accelerators",
        "probe_core.readiness.library",
        "probe_core.readiness.runtime",
        "probe_core.resolve.accelerators",
        "probe_core.visibility.opencl",
        "probe_core.visibility.tinygrad",
        "probe_core.visibility.vulkan",
        "probe_chipdb.candidates",
        "probe_chipdb.chip",
        "probe_chipdb.chip_peaks",
        "probe_chipdb.exclusions",
        "probe_chipdb.matching",
        "probe_chipdb.name_facts",
        "probe_chipdb.name_form",
        "probe_chipdb.name_lookup",
        "probe_chipdb.patterns",
    ),
    "nvidia": ("itertools", "probe_core.visibility.container", "probe_core.visibility.cuda"),
    "amd": ("probe_core.readiness.rocm", "probe_core.visibility.amd"),
    "intel": ("probe_core.visibility.oneapi",),
    "uncertain": ("probe_core.resolve.uncertain", "probe_chipdb.shared"),
    "vulkan drivers": ("probe_core.visibility.vulkan_drivers",),
    "tinygrad's DEV": ("probe_core.visibility.tinygrad_dev",),
    "explain": ("probe_core.visibility.explain",),
    "measured": (
        "probe_core.measured.compare",
        "probe_core.model.parts",
        "probe_core.pipeline.file_reading",
    ),
    "failures": ("probe_core.pipeline.failures",),
    "drivers": (
        "probe_core.readiness.modules",
        "probe_core.readiness.nvidia",
        "probe_core.readiness.unbound",
    ),
    "driver nodes": ("probe_core.readiness.driver_nodes",),
    "closed nodes": (
        "probe_core.readiness.closed",
        "probe_core.readiness.device_rules",
        "probe_core.readiness.driver_nodes",
    ),
    "broken": (
        "probe_core.model.causes",
        "probe_core.readiness.closed",
        "probe_core.readiness.distributions",
        "probe_core.readiness.driver_nodes",
        "probe_core.readiness.findings",
        "probe_core.readiness.nvidia_fixes",
        "probe_core.readiness.packages",
        "probe_core.readiness.purpose",
        "probe_core.readiness.rocm",
        "probe_core.readiness.unbound",
    ),
    "values": ("probe_core.setting_values",),
    "settings": (
        "tomllib",
        "probe_core.isolation.look",
        "probe_core.pipeline.chip_reading",
        "probe_core.pipeline.file_reading",
    ),
    "static": (
        "probe_core.pipeline.file_reading",
        "probe_core.pipeline.accelerators",
        "probe_core.pipeline.static",
        "probe_core.pipeline.refresh",
        "probe_core.model.parts",
        "json",
    ),
    "hooks": ("probe_core.registry.host", "probe_core.hookspecs", "pluggy", "copy"),
    "active": ("probe_core.runtimes",),
    "awaiting": ("probe_core.awaiting",),
}
"""What is imported together, by when it is needed; `prepare` imports all."""


class NotPreparedError(RuntimeError):
    """A probe was asked for inside an import that it needs itself, and cannot wait for that.

    That is where a signal handler, or a finalizer, runs while its own thread imports one of these
    modules; or in the copy that a fork made then. `probe_core.prepare()`, called before, imports
    all of them.
    """


_UNPREPARED = (
    "a probe was asked for inside an import that it needs itself;"
    " call probe_core.prepare() before that"
)


def prepare() -> None:
    """Import all that a probe may need, once: for hosts that fork workers or set signal handlers.

    Call it before either. Nothing is probed, and no thread remains. A host that does not call it
    pays the same with its first probe. Raises `NotPreparedError` inside an import of these modules.
    """
    for part in _PARTS:
        load(part)


def load(part: str) -> None:
    """Have a part of what a probe imports; what cannot be imported fails where it is needed."""
    _pass(_PARTS[part])


def load_inside_import(part: str) -> None:
    """Have a part now where this thread is inside an import; raises `NotPreparedError`.

    Another thread may need what that import has half made, and would wait for it while this one
    waits for that thread.
    """
    known = _steps.get(_PARTS[part])
    if (known is None or not known.complete) and _is_importing():
        load(part)


def bring(home: str) -> ModuleType:
    """Return one module of this package, and raise what its import raises."""
    name = f"probe_core.{home}"
    error = _pass((name,))
    if error is not None:
        _steps.pop((name,), None)  # what failed may be tried again
        raise error
    return sys.modules[name]


_steps: dict[tuple[str, ...], _Step] = {}


def _pass(names: tuple[str, ...]) -> BaseException | None:
    """Return when the modules are imported, with the last error of those that cannot be."""
    known = _steps.get(names)
    if known is not None and known.complete:
        return known.error
    working = _forks.working
    if working is not None and working.thread == native_id():  # a module that it imports asks
        return _import(names)
    _forks.watch()
    while True:
        if _forks.is_damaged:
            raise NotPreparedError(_UNPREPARED)
        step = _steps.setdefault(names, _Step(names))
        step.take()
        if step.complete:
            return step.error
        _steps.pop(names, None)  # it was interrupted, or this process is a copy: anew


def _import(names: tuple[str, ...]) -> BaseException | None:
    failed = None
    for name in names:
        try:
            __import__(name)  # importlib itself may be half made
        except (Exception, SystemExit) as error:
            failed = error
    return failed


class _Step(OwnThread):
    """Some modules, the thread that imports them, and those who wait for it.

    `complete` is whether it tried all, `lost` whether this process is a copy of the one in which it
    ran. `is_guest` is whether its thread is one that probes, and goes on afterwards: a thread for
    each step took a tenth of the processor's time of a first probe (CPython 3.11, two cores).
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.complete = self.lost = self.is_guest = False
        self.error: BaseException | None = None
        self._names = names

    def take(self) -> None:
        """Start it, unless somebody has; return when it has ended, or this process is a copy."""
        if native_id() in uninterrupted:
            self._run(False)
        else:
            self.begin()
        self._wait()
        if not (self.lost or self.is_guest):
            self.join()

    def _work(self) -> None:
        self.is_guest = self.thread in uninterrupted
        with _forks.lock:
            _forks.working = self
            try:
                self.error = _import(self._names)
                self.complete = True
            finally:
                # While forks still wait: a copy that sees a step at work counts as damaged.
                _forks.working, self.over = None, True

    def _wait(self) -> None:
        count, until = -1, 0.0
        while not (self.over or self.lost):
            if len(sys.modules) != count:
                count, until = len(sys.modules), monotonic() + PATIENCE_S
            if self.caller == native_id() or (monotonic() > until and _is_importing()):
                raise NotPreparedError(_UNPREPARED)
            self.wait(monotonic() + TICK_S)


def _is_importing() -> bool:
    """Return whether this thread is inside an import, whose locks it then holds."""
    try:
        raise RuntimeError
    except RuntimeError as error:
        frame = error.__traceback__ and error.__traceback__.tb_frame
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class _Forks:
    """Keeps steps and forks apart: `lock` is held by the step that is `working`, and by a fork.

    `is_damaged` is whether this process is a copy that was made inside a step: a fork waits, but
    not for ever. Modules are half made here for good.
    """

    def __init__(self) -> None:
        self.is_damaged = False
        # A handler of a signal may fork just before or behind another fork of its thread.
        self.lock = new_reentrant_lock()
        self.working: _Step | None = None
        self._watched: dict[str, object] = {}
        self._locked: list[bool] = []

    def watch(self) -> None:
        """Have Python call the methods below; once, and not where nothing is imported."""
        mine = object()
        if hasattr(os, "register_at_fork") and self._watched.setdefault("by", mine) is mine:
            os.register_at_fork(
                before=self._before, after_in_parent=self._after, after_in_child=self._copied
            )

    def _before(self) -> None:
        working = self.working
        if working is not None and native_id() in (working.thread, working.caller):
            self._locked.append(False)  # it would wait for itself
        else:
            self._locked.append(self.lock.acquire(True, PATIENCE_S))

    def _after(self) -> None:
        if self._locked and self._locked.pop():
            self.lock.release()

    def _copied(self) -> None:
        self.is_damaged = self.is_damaged or self.working is not None
        self.lock, self.working = new_reentrant_lock(), None
        self._locked.clear()
        for names, step in list(_steps.items()):
            if not step.over:
                step.lost = True
                del _steps[names]


_forks = _Forks()
