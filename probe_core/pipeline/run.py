"""One probe from beginning to end: each step a call with data in and data out, and timed.

machine → scan the buses → discover → select → run → merge → resolve → ready → see → report
"""

from __future__ import annotations

from time import monotonic

from probe_core.config import IgnoredSetting
from probe_core.machine import Machine
from probe_core.machine.files import has_one_node
from probe_core.pipeline.probers import Builtins, Cancelled, find, run_selected, select_probers
from probe_core.pipeline.settings import Chips
from probe_core.probers.bus import X86, may_have_tree
from probe_core.registry.select import host_probers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.config import Config
    from probe_core.isolation.launch import Waiting
    from probe_core.model.document import FindingDoc, NodeDoc, ReportDoc, Sighting
    from probe_core.registry.document import Registered
    from probe_core.registry.host import Host

__all__ = ["Cancelled", "described", "document", "run_pipeline"]


class Stopwatch:
    """Milliseconds per step."""

    __slots__ = ("_last", "_start", "laps")

    def __init__(self) -> None:
        self._start = self._last = monotonic()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note the time since the last lap under `name`."""
        now = monotonic()
        self.laps[name] = round((now - self._last) * 1000, 3)
        self._last = now

    def total(self) -> dict[str, float]:
        """Return all laps and their sum."""
        return {**self.laps, "total": round((monotonic() - self._start) * 1000, 3)}


def run_pipeline(
    machine: Machine,
    config: Config,
    ignored: Sequence[IgnoredSetting] = (),
    *,
    registered: Mapping[str, Registered] | None = None,
    host: Host | None = None,
    wake_fd: int = -1,
    waiting: Waiting | None = None,
    meanwhile: Callable[[], object] | None = None,
    load: Callable[[str], object] | None = None,
) -> ReportDoc:
    """Probe `machine` and return the report's document.

    `ignored` are the settings that could not be used; `waiting` is told of probers that are slow,
    see `isolation.launch.run_probers`. `meanwhile` is called once while plugins run, if any does.
    `load` is called with each part of `gate` before it is needed.
    Raises `Cancelled` when `wake_fd` became readable, and nothing else that a prober could cause.
    """
    watch = Stopwatch()
    have: Callable[[str], object] = load or bool  # a command imports what it uses
    if load is not None:
        for part in _parts_of(machine):
            load(part)
    builtins = Builtins(machine, config)
    if builtins.scan is not None and builtins.scan.shows_any:
        have("buses")
    watch.lap("bus")
    found = find(machine, registered or {})
    watch.lap("discover")
    decisions = select_probers(found, builtins.scan, machine, config, host)
    watch.lap("select")

    chips = Chips(config, found.mentioned, wake_fd)
    node: NodeDoc | None = None
    runs_any = any(decision.cause is None for decision in decisions)
    if runs_any:
        have("children")

    def beside() -> None:
        """Do what needs no child's answer while the children start, in time spent waiting."""
        nonlocal node
        have("devices")
        from probe_core.pipeline.conclude import warm_up

        warm_up(builtins.collect(), chips, machine.os, have)
        node = described(None, machine, config)
        if meanwhile is not None:
            meanwhile()

    def kept(sighting: Sighting, prober: str) -> None:
        """Look up a device's chip while its prober asks the next one."""
        from probe_core.pipeline.conclude import look_up

        look_up(sighting, prober, chips.open())

    runs = run_selected(
        decisions,
        builtins,
        machine,
        config,
        host,
        wake_fd=wake_fd,
        waiting=waiting,
        meanwhile=beside,
        kept=kept,
    )
    collected = builtins.collect()
    collected.add_all(runs, decisions, have)
    if runs_any or collected.has_devices():
        have("devices")
    watch.lap("run")

    # Not at the top: no child waits for modules that only its answer needs.
    from probe_core.pipeline import conclude

    node = described(node, machine, config)
    devices, conflicts = conclude.merge_devices(collected, node, machine)
    watch.lap("merge")
    named = host.resolve_chip if host is not None else None
    unresolved = conclude.resolve(devices, chips.open(), named, have)
    measured = conclude.add_measured(devices, node, machine, have)
    collected.findings += conclude.unresponsive(collected, devices)
    watch.lap("resolve")
    readiness = conclude.Readiness(devices, machine, decisions, collected.outcomes, have)
    watch.lap("ready")
    views, hidden = conclude.see_devices(devices, machine, have)
    readiness.conclude()
    broken = readiness.findings(collected.findings)
    asked = conclude.ask_runtimes(views, devices, machine, config, waiting)
    watch.lap("see")
    document = conclude.assemble(node, devices, decisions, collected, chips.version())
    if asked:
        document["asked"] = asked
    expected, compared = conclude.expected(devices, node, machine, config, chips)
    if expected is not None:
        document["expected"] = expected
    findings = [
        *conclude.ignored_settings(ignored),
        *conclude.unknown_names(config, found.names),
        *collected.findings,
        *found.findings,
        *chips.findings,
        *unresolved,
        *broken,
        *hidden,
        *conclude.disagreements(asked),
        *conflicts,
        *measured,
        *compared,
        *conclude.last_findings(document, decisions),
    ]
    document["findings"] = conclude.by_severity(findings)
    if host is not None:
        host.observe("report", {"devices": len(devices)})
        document["findings"] += host.findings
    document["timings_ms"] = watch.total()
    return document


def described(before: NodeDoc | None, machine: Machine, config: Config) -> NodeDoc:
    """Return the report's `node`; what was described `before` has the memory of now.

    Children took some of it then.
    """
    from probe_core.pipeline.node import describe, memory

    if before is None:
        return describe(machine, anonymous=config.anonymous, hostname=config.hostname)
    return {**before, "memory": memory(machine)}


def _parts_of(machine: Machine) -> list[str]:
    """Return which parts of the core only some machines need, as `gate` has them."""
    wanted = {
        "tree": may_have_tree(machine),
        # A tree of files is that of any computer.
        "cores": machine.arch not in X86 or not machine.live,
        "nodes": not has_one_node(machine),
    }
    return [part for part, is_wanted in wanted.items() if is_wanted]


def document(
    config: Config,
    ignored: Sequence[IgnoredSetting],
    *,
    machine: Machine | None = None,
    probers: Mapping[str, Registered] | None = None,
    hooks: Sequence[object] = (),
    wake_fd: int = -1,
    waiting: Waiting | None = None,
    meanwhile: Callable[[], object] | None = None,
    load: Callable[[str], object] | None = None,
) -> ReportDoc:
    """Return the report's document as plain data; `probe_core.probe` is this with a typed view.

    A static report named by the settings replaces probing. Where it cannot be used, no plugin runs.
    `probers` are added to those that the host registered; the rest is as `run_pipeline` has it.
    """
    unusable: list[FindingDoc] = []
    if load is not None:
        for part in _parts(config, hooks):
            load(part)
    if config.static:
        from probe_core.pipeline.static import load_static

        static, unusable = load_static(config.static)
        if static is not None:
            return _as_visible_here(static, machine)
        # Whoever names a report wants nothing to run on this node.
        config.sealed = IgnoredSetting(unusable[0]["why"], "static", seals=True)
    host = None
    if hooks:
        from probe_core.registry.host import Host

        host = Host(hooks)
    report = run_pipeline(
        machine or Machine(),
        config,
        ignored,
        registered={**host_probers, **(probers or {})},
        host=host,
        wake_fd=wake_fd,
        waiting=waiting,
        meanwhile=meanwhile,
        load=load,
    )
    report["findings"] = unusable + report["findings"]
    return report


def _parts(config: Config, hooks: Sequence[object]) -> list[str]:
    """Return which parts of the core only these settings and arguments need."""
    wanted = {"static": config.static, "hooks": hooks, "active": config.active}
    return [part for part, is_wanted in wanted.items() if is_wanted]


def _as_visible_here(static: ReportDoc, machine: Machine | None) -> ReportDoc:
    """Let this process's environment, not the one that was recorded, hide devices."""
    from probe_core.pipeline.refresh import refresh

    refresh(static, (machine or Machine()).environ)
    return static
