"""One probe from beginning to end: each step a call with data in and data out, and timed.

machine → scan the buses → discover → select → run → merge → resolve → ready → see → report
"""

from __future__ import annotations

from time import monotonic

from probe_core.config import IgnoredSetting
from probe_core.machine import Machine, has_one_node
from probe_core.model.ids import ACCELERATORS, SEVERITIES
from probe_core.pipeline.probers import (
    Builtins,
    expects_child,
    find,
    run_selected,
    select_probers,
)
from probe_core.probers.bus import X86, may_have_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_chipdb import Database
    from probe_core.config import Config
    from probe_core.isolation.launch import Waiting
    from probe_core.isolation.run import Run
    from probe_core.model.document import AnswerDoc, DeviceDoc, FindingDoc, NodeDoc, ReportDoc
    from probe_core.pipeline.probers import Found
    from probe_core.pipeline.validate import Collected
    from probe_core.readiness import Scene
    from probe_core.registry.document import Registered
    from probe_core.registry.host import Host
    from probe_core.registry.prober import Decision
    from probe_core.resolve import Figures
    from probe_core.visibility import Views

    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""

__all__ = ["document", "run_pipeline"]


def run_pipeline(
    machine: Machine,
    config: Config,
    ignored: Sequence[IgnoredSetting] = (),
    *,
    registered: Callable[[], Mapping[str, Registered]] = dict,
    host: Host | None = None,
    wake_fd: int = -1,
    waiting: Waiting | None = None,
    meanwhile: Callable[[], object] | None = None,
    load: Load | None = None,
) -> ReportDoc:
    """Probe `machine` and return the report's document.

    `ignored` are the settings that could not be used. `registered` returns the probers that are not
    installed, by name. `waiting` is told of probers that are slow, see
    `isolation.launch.run_probers`. `meanwhile` is called once while plugins run, if any does.
    `load` is called with each part of `gate` before it is needed.
    Raises `Cancelled` when `wake_fd` became readable, and nothing else that a prober could cause.
    """
    probe = _Probe(machine, config, ignored, host, wake_fd, waiting, load or bool)
    if load is not None:  # a command has none: it imports what it uses
        _load_wanted(
            load,
            tree=may_have_tree(machine),
            # A tree of files is that of any computer.
            cores=machine.arch not in X86 or not machine.live,
            nodes=not has_one_node(machine),
        )
    builtins = probe.scan_buses()
    starts_ahead = expects_child(builtins.scan, machine, config)
    if starts_ahead and load is not None:
        load("children")
    runs = run_selected(
        lambda: probe.discover_and_select(registered),
        builtins,
        machine,
        config,
        host,
        starts_ahead=starts_ahead,
        wake_fd=wake_fd,
        waiting=waiting,
        meanwhile=lambda: probe.warm_up(meanwhile),
        arrived=probe.look_up,
        answered=probe.merge_resolve_judge_see,
    )
    if not probe.has_answers:
        probe.merge_resolve_judge_see(runs)
    if config.active and machine.live and probe.views:  # the user allowed it
        probe.ask_runtimes()
    return probe.report()


class _Probe:
    """The steps of one probe, in their order; each leaves its result and when it ended.

    `run_selected` calls most of them in the caller's thread, while children start, answer and end.
    """

    found: Found
    decisions: list[Decision]
    unknown: Sequence[FindingDoc]
    ignored: Sequence[FindingDoc]
    database: Database | None
    chips_left_out: Sequence[FindingDoc]
    node: NodeDoc
    measured_file: str | None
    has_baseline: bool
    collected: Collected
    devices: list[DeviceDoc]
    conflicts: Sequence[FindingDoc]
    unresolved: Sequence[FindingDoc]
    measured: Sequence[FindingDoc]
    contradictions: Sequence[FindingDoc]
    hidden: Sequence[FindingDoc]
    disagreements: Sequence[FindingDoc]

    def __init__(
        self,
        machine: Machine,
        config: Config,
        ignored: Sequence[IgnoredSetting],
        host: Host | None,
        wake_fd: int,
        waiting: Waiting | None,
        load: Load,
    ) -> None:
        self._begun = monotonic()
        self._laps: dict[str, float] = {}
        self._machine = machine
        self._config = config
        self._ignored = ignored
        self._host = host
        self._wake_fd = wake_fd
        self._waiting = waiting
        self._load = load
        self._runs_any = False
        self._is_prepared = self.has_answers = False
        self._figures: Figures | None = None
        self.scene: Scene | None = None
        self.views: Views = {}
        self.asked: dict[str, AnswerDoc] = {}
        self.measured = self.contradictions = self.hidden = self.disagreements = ()

    def scan_buses(self) -> Builtins:
        """See whose hardware is there, which takes two files of each PCI function."""
        self.builtins = Builtins(self._machine, self._config, self._load)
        self._laps["bus"] = monotonic()
        return self.builtins

    def discover_and_select(
        self, registered: Callable[[], Mapping[str, Registered]]
    ) -> list[Decision]:
        """Find the probers, and say of each whether it runs."""
        from probe_core.registry.prober import unknown_names

        machine, config = self._machine, self._config
        self.found = find(machine, registered())
        self._laps["discover"] = monotonic()
        scan = self.builtins.scan
        self.decisions = select_probers(self.found, scan, machine, config, self._host)
        self.unknown = unknown_names(config, self.found.names)
        self._laps["select"] = monotonic()
        self._runs_any = any(decision.cause is None for decision in self.decisions)
        if self._runs_any:
            self._load("children")
        return self.decisions

    def warm_up(self, meanwhile: Callable[[], object] | None) -> None:
        """Do what needs no child's answer while the children start, in time spent waiting."""
        self._load("devices")
        from probe_core.pipeline.accelerators import warm_up

        self._prepare()
        machine = self._machine
        self._figures = warm_up(self.collected, self.database, machine.os, self._load)
        if meanwhile is not None:
            meanwhile()

    def _prepare(self) -> None:
        """Take what rests on no child: devices that files show, the node, chips, kept files."""
        from probe_core.pipeline.conclude import ignored_settings, kept_files
        from probe_core.pipeline.node import describe
        from probe_core.pipeline.settings import open_chips
        from probe_core.registry import CHIPS

        machine, config, packages = self._machine, self._config, self.found.mentioned[CHIPS]
        self.ignored = ignored_settings(self._ignored)
        self.collected = self.builtins.collect()
        self.database, self.chips_left_out = open_chips(config, packages, self._wake_fd)
        self.node = describe(
            machine, anonymous=config.anonymous, hostname=config.hostname, load=self._load
        )
        self.measured_file, self.has_baseline = kept_files(machine)
        self._is_prepared = True

    def look_up(self, run: Run, device: object) -> None:
        """Check a device, and look up its chip, while its prober asks the next one."""
        sighting = self.collected.check(run, device)
        if sighting is not None:
            from probe_core.resolve.accelerators import look_up

            look_up(sighting, run.prober.name, self.database)

    def merge_resolve_judge_see(self, runs: Sequence[Run]) -> None:
        """Take the steps from the probers' answers to devices, while the children end."""
        machine, load, laps = self._machine, self._load, self._laps
        self.has_answers = True
        if not self._is_prepared:  # no child had to be waited for
            self._prepare()
        collected = self.collected
        collected.add_all(runs, self.decisions)
        if self._runs_any or collected.has_devices():
            load("devices")
        laps["run"] = monotonic()
        # Not at the top: no child waits for modules that only its answer needs.
        from probe_core.pipeline import conclude
        from probe_core.pipeline.node import memory

        self.node["memory"] = memory(machine)
        self.devices, self.conflicts = conclude.merge_devices(collected, self.node, machine, load)
        laps["merge"] = monotonic()
        named = self._host.resolve_chip if self._host is not None else None
        self.unresolved = conclude.resolve(self.devices, self.database, named, load, self._figures)
        if self.measured_file is not None:
            self.measured = conclude.add_measured(
                self.devices, self.node["id"], self.measured_file, load
            )
        laps["resolve"] = laps["ready"] = monotonic()
        if not any(device["kind"] in ACCELERATORS for device in self.devices):
            return
        from probe_core.pipeline import accelerators

        self.scene, self.contradictions = accelerators.judge(
            self.devices, machine, self.decisions, collected.outcomes, load
        )
        laps["ready"] = monotonic()
        self.views, self.hidden = accelerators.see(self.devices, machine, load)

    def ask_runtimes(self) -> None:
        """Ask the runtimes themselves what they show."""
        from probe_core.pipeline import conclude

        self.asked, self.disagreements = conclude.ask_runtimes(
            self.views, self.devices, self._machine, self._config, self._waiting
        )

    def report(self) -> ReportDoc:
        """Put the document together, and say what a person should know of it."""
        from probe_core.pipeline import conclude

        machine, config, load = self._machine, self._config, self._load
        decisions, devices, database = self.decisions, self.devices, self.database
        collected = self.collected
        collected.add_failures(devices)
        broken = conclude.broken(devices, self.scene, collected.findings, load)
        self._laps["see"] = monotonic()
        document = conclude.assemble(self.node, devices, decisions, collected, self.asked, database)
        compared: Sequence[FindingDoc] = ()
        if config.expect is not None or self.has_baseline:
            compared = conclude.add_expected(document, devices, machine, config, database)
        findings = [
            *self.ignored,
            *self.unknown,
            *collected.findings,
            *self.found.findings,
            *self.chips_left_out,
            *self.unresolved,
            *self.contradictions,
            *broken,
            *self.hidden,
            *self.disagreements,
            *self.conflicts,
            *self.measured,
            *compared,
            *conclude.last_findings(document, decisions, load),
        ]
        # Errors first; of one severity in the order of the steps.
        rank = SEVERITIES.index
        document["findings"] = sorted(findings, key=lambda f: rank(f["severity"]), reverse=True)
        if self._host is not None:
            self._host.observe("report", {"devices": len(devices)})
            document["findings"] += self._host.findings
        document["timings_ms"] = self._timings()
        return document

    def _timings(self) -> dict[str, float]:
        """Return the milliseconds of each step, and of all of them."""
        taken: dict[str, float] = {}
        since = self._begun
        for name, until in self._laps.items():
            taken[name], since = round((until - since) * 1000, 3), until
        return {**taken, "total": round((monotonic() - self._begun) * 1000, 3)}


def _load_wanted(load: Load, **parts: object) -> None:
    """Load those parts of the core, as `gate` has them, that this machine or call needs."""
    for part, is_wanted in parts.items():
        if is_wanted:
            load(part)


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
    load: Load | None = None,
) -> ReportDoc:
    """Return the report's document as plain data; `probe_core.probe` is this with a typed view.

    A static report named by the settings replaces probing. Where it cannot be used, no plugin runs.
    `probers` are added to those that the host registered; the rest is as `run_pipeline` has it.
    """
    unusable: list[FindingDoc] = []
    if load is not None:
        _load_wanted(load, static=config.static, hooks=hooks, active=config.active)
    if config.static:
        from probe_core.pipeline.static import load_static

        static, unusable = load_static(config.static)
        if static is not None:
            return _as_visible_here(static, machine)
        # Whoever names a report wants nothing to run on this node.
        config.sealed = IgnoredSetting(unusable[0]["why"], "static", seals=True)

    def registered() -> Mapping[str, Registered]:
        from probe_core.registry.prober import host_probers

        return {**host_probers, **(probers or {})}

    host = None
    if hooks:
        from probe_core.registry.host import Host

        host = Host(hooks)
    report = run_pipeline(
        machine or Machine(),
        config,
        ignored,
        registered=registered,
        host=host,
        wake_fd=wake_fd,
        waiting=waiting,
        meanwhile=meanwhile,
        load=load,
    )
    report["findings"] = unusable + report["findings"]
    return report


def _as_visible_here(static: ReportDoc, machine: Machine | None) -> ReportDoc:
    """Let this process's environment, not the one that was recorded, hide devices."""
    from probe_core.pipeline.refresh import refresh

    refresh(static, (machine or Machine()).environ)
    return static
