"""The public calls: probe this machine, now or awaited; register probers; start as a child."""

from __future__ import annotations

import os

from probe_core.background import share
from probe_core.config import ConfigError, refuse_unknown
from probe_core.machine import Machine
from probe_core.pipeline.probers import Cancelled
from probe_core.pipeline.run import document
from probe_core.pipeline.settings import load_settings
from probe_core.registry.prober import RESERVED, host_probers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
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

__all__ = [
    "checked_machine",
    "checked_path",
    "checked_probers",
    "child_entry",
    "document",
    "probe",
    "probe_async",
    "register",
    "registered_probers",
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
        from probe_core.awaiting import in_thread, share_awaited

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


__all__ += ["Cancelled"]
