"""The public calls: probe this machine, now or awaited; register probers; start as a child."""

from __future__ import annotations

import os

from probe_core.config import Config, ConfigError, load_config
from probe_core.machine import Machine
from probe_core.pipeline.run import Cancelled, run_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType
    from typing import Any

    from probe_core.model import Report
    from probe_core.model.document import FindingDoc
    from probe_core.registry.discover import Registered

    Target = str | ModuleType | Mapping[str, Any]

__all__ = [
    "child_entry",
    "document",
    "probe",
    "probe_async",
    "register",
    "registered_probers",
    "unregister",
]

_registered: dict[str, Registered] = {}
_cache: dict[object, tuple[Mapping[str, str], Report]] = {}


def register(name: str, target: Target) -> None:
    """Add a prober for this process, as an entry point would; it wins over one of that name.

    `target` is ``"module"``, ``"module:attribute"``, a module, or a mapping with ``target`` and
    what a manifest may say (``priority``, ``deadline_s``, ``active``, ``when`` …): for frozen
    applications, which have no entry points. Raises `ConfigError` for anything else.
    """
    _registered[name] = _as_registered(name, target)
    _cache.clear()


def unregister(name: str) -> None:
    """Remove a prober added by `register`; unknown names are ignored."""
    _registered.pop(name, None)
    _cache.clear()


def registered_probers() -> Mapping[str, Registered]:
    """Return what `register` added."""
    return dict(_registered)


def _as_registered(name: str, target: Target) -> Registered:
    if isinstance(target, str):
        return {"target": target}
    if hasattr(target, "items"):
        fields = dict(target)
        if not isinstance(fields.get("target"), str):
            raise ConfigError(f"the prober {name!r} needs a 'target', such as 'module:attribute'")
        return fields
    module = getattr(target, "__name__", None)
    if getattr(target, "__spec__", None) is None or not isinstance(module, str):
        raise ConfigError(
            f"the prober {name!r} is a {type(target).__name__}; it runs in a process of its own,"
            " so it must be importable there: give a module or 'module:attribute'"
        )
    return {"target": module}


def probe(
    *,
    only: Iterable[str] | str | None = None,
    disable: Iterable[str] | str | None = None,
    priority: Mapping[str, int] | None = None,
    timeout: float | None = None,
    active: bool | None = None,
    allow: Iterable[str] | None = None,
    chipdb: str | None = None,
    static: str | None = None,
    config: str | None = None,
    machine: Machine | None = None,
    probers: Mapping[str, Target] | None = None,
    hooks: Iterable[object] = (),
    refresh: bool = False,
) -> Report:
    """Return what this node is. Takes at most the longest deadline and a second; never hangs.

    `only` and `disable` name probers, `priority` overrides priorities (1 to 999), `timeout` is
    each prober's deadline in seconds, `active` allows opening devices, `allow` names trusted
    distributions, `chipdb` a TOML file of chips, `static` a report to give instead, `config` a
    TOML file of settings. `probers` are added to the registered ones for this call; `hooks` are
    objects with host hooks. `machine` is another machine than this one.

    The report is cached for the process; `refresh` looks again. Raises `ConfigError` for
    arguments that make no sense, and nothing that hardware, drivers or plugins could cause.
    """
    arguments = {
        "only": only,
        "disable": disable,
        "priority": priority,
        "timeout": timeout,
        "active": active,
        "allow": allow,
        "chipdb": chipdb,
        "static": static,
    }
    return _report(arguments, config, machine, probers, hooks, refresh, -1)


async def probe_async(**arguments: Any) -> Report:
    """Return what `probe` returns, without blocking the event loop (asyncio, or trio with anyio).

    Takes the arguments of `probe`. When the awaiting task is cancelled, the children are killed
    before the cancellation goes on.
    """
    from probe_core.awaiting import in_thread

    names = ("config", "machine", "probers", "hooks", "refresh")
    rest = {name: arguments.pop(name) for name in names if name in arguments}
    return await in_thread(lambda wake_fd: _report_with(arguments, rest, wake_fd))


def _report_with(arguments: dict[str, Any], rest: dict[str, Any], wake_fd: int) -> Report:
    return _report(
        arguments,
        rest.get("config"),
        rest.get("machine"),
        rest.get("probers"),
        rest.get("hooks", ()),
        rest.get("refresh", False),
        wake_fd,
    )


def _report(
    arguments: Mapping[str, Any],
    file: str | None,
    machine: Machine | None,
    probers: Mapping[str, Target] | None,
    hooks: Iterable[object],
    refresh: bool,
    wake_fd: int,
) -> Report:
    from probe_core.model import Report

    environ = (machine or Machine()).environ if machine is None or machine.live else os.environ
    config, ignored = load_config(arguments, environ, file)
    hooks = list(hooks)
    # Another process (fork) or other settings are another report; a changed environment too, for
    # a program that hides devices from itself must not be shown them.
    key = (os.getpid(), config.key(), tuple(ignored)) if not (machine or probers or hooks) else None
    if key is not None and not refresh and key in _cache and _cache[key][0] == environ:
        return _cache[key][1]
    found = document(
        config, ignored, machine=machine, probers=probers, hooks=hooks, wake_fd=wake_fd
    )
    report = Report.from_json(found)
    if key is not None:
        _cache[key] = (environ, report)
    return report


def document(
    config: Config,
    ignored: list[str],
    *,
    machine: Machine | None = None,
    probers: Mapping[str, Target] | None = None,
    hooks: Iterable[object] = (),
    wake_fd: int = -1,
) -> dict[str, Any]:
    """Return the report's document as plain data; `probe` is this with a typed view.

    A static report named by the settings replaces probing; one that cannot be used is told.
    """
    ignored = list(ignored)
    static_finding: list[FindingDoc] = []
    if config.static:
        from probe_core.pipeline.static import load_static

        static, static_finding = load_static(config.static)
        if static is not None:
            return _as_seen_here(static, machine)
    plugins = list(hooks)
    host = None
    if plugins:
        from probe_core.registry.host import Host

        host = Host(plugins)
    registered = {**_registered, **{n: _as_registered(n, t) for n, t in (probers or {}).items()}}
    found = run_pipeline(
        machine or Machine(),
        config,
        ignored,
        registered=registered,
        host=host,
        wake_fd=wake_fd,
    )
    found["findings"] = static_finding + found["findings"]
    return found


def _as_seen_here(static: dict[str, Any], machine: Machine | None) -> dict[str, Any]:
    """Let this process's environment, not the one that was recorded, hide devices."""
    from probe_core.pipeline.refresh import refresh

    refresh(static, (machine or Machine()).environ)
    return static


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
