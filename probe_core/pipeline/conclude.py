"""What follows once the probers have answered: merge, resolve, judge, see, assemble.

Plain data goes in and a plain document comes out, so that nothing but the steps themselves is
imported: a node without accelerators pays for no data classes, plugins or libraries.
"""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.kinds import ACCELERATORS
from probe_core.pipeline.assemble import (
    assemble,
    by_severity,
    ignored_settings,
    last_findings,
    share_memory,
    with_cpu,
)
from probe_core.pipeline.chips import Chips
from probe_core.pipeline.merge import merge
from probe_core.pipeline.node import describe, identify
from probe_core.pipeline.ready import Readiness
from probe_core.registry.select import unknown_names
from probe_core.resolve import resolve
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.config import IgnoredSetting
    from probe_core.machine import Machine
    from probe_core.model.document import AnswerDoc, DeviceDoc, FindingDoc, NodeDoc, ReportDoc
    from probe_core.pipeline.collect import Collected
    from probe_core.pipeline.merge import Observation
    from probe_core.pipeline.run import Stopwatch
    from probe_core.pipeline.run_probers import ProberRun
    from probe_core.visibility import Views

__all__ = ["Conclusion"]


class Conclusion:
    """The last steps of one probe, and chipdb, which they look chips up in."""

    def __init__(self, run: ProberRun, wake_fd: int) -> None:
        self._run = run
        self._chips = Chips(run.config, run.mentioned, wake_fd)

    def rehearse(self) -> None:
        """Do the last steps on what the buses showed, while the children start.

        The result is thrown away. What stays are loaded modules and chipdb's memory of the chips
        it was asked for: a fifth of a probe with GPUs, taken from time that would be spent waiting.
        One device of each kind of hardware brings all of that: with one free core, work done twice
        delays the children.
        """
        chips = self._chips
        devices, _ = _merge(_one_of_each(self._run.collected.observations))
        share_memory(devices, {"total": None, "available": None, "limit": None})
        resolve(devices, chips.open(), memo=chips.peaks)
        accelerators = [device for device in devices if device["kind"] in ACCELERATORS]
        if accelerators:
            # Again, by the names that they have now, as probers bring them.
            resolve(accelerators, chips.open(), memo=chips.peaks)
            # Not judged yet: no library has answered, and the causes of that would be loaded in
            # vain.
            import probe_core.readiness.library  # noqa: F401
        _see(devices, self._run.machine)

    def document(self, ignored: Sequence[IgnoredSetting], watch: Stopwatch) -> ReportDoc:
        """Merge, resolve, see, and put the report together.

        `ignored` are the settings that could not be used.
        """
        run, chips = self._run, self._chips
        machine, config, host, collected = run.machine, run.config, run.host, run.collected
        devices, conflicts = _merge(collected.observations)
        devices = with_cpu(devices, machine)
        node = describe(machine, config.anonymous)
        identify(node, machine, config)
        share_memory(devices, node["memory"])
        watch.lap("merge")
        database = chips.open()
        unresolved = resolve(devices, database, host.resolve_chip if host else None, chips.peaks)
        measured = _measured(devices, node, machine)
        watch.lap("resolve")
        collected.findings += _unresponsive(collected, devices)  # by name, so after `resolve`
        readiness = Readiness(devices, machine, run.decisions, collected.outcomes)
        watch.lap("ready")
        views, hidden = _see(devices, machine)
        readiness.conclude()
        asked = _ask_runtimes(views, devices, run)
        watch.lap("see")
        version = database.version if database is not None else None
        document = assemble(node, devices, run.decisions, collected, version)
        if asked:
            document["asked"] = asked
        findings = [
            *ignored_settings(ignored),
            *unknown_names(config, run.names),
            *collected.findings,
            *run.findings,
            *chips.findings,
            *unresolved,
            *readiness.findings(collected.findings),
            *hidden,
            *_disagreements(asked),
            *conflicts,
            *measured,
            *last_findings(document, run.decisions),
        ]
        document["findings"] = by_severity(findings)
        if host is not None:
            host.observe("report", {"devices": len(devices)})
            document["findings"] += host.findings
        document["timings_ms"] = watch.total()
        return document


def _measured(
    devices: Sequence[DeviceDoc], node: NodeDoc, machine: Machine
) -> Sequence[FindingDoc]:
    """Add what `probe bench` keeps of this computer; a recorded one has no such file."""
    if not machine.live:
        return ()
    from probe_core.measured import state_file
    from probe_core.pipeline.settings import is_file, read_named

    path = state_file(machine.environ)
    if path is None:
        return ()
    try:
        if not is_file(path):
            return ()
    except OSError:  # its server does not answer, which the reading says
        pass
    from probe_core.measured.compare import attach

    return attach(devices, node["id"], path, read_named)


def _one_of_each(observations: Sequence[Observation]) -> list[Observation]:
    """Return the first observation of each kind of hardware, by kind and PCI ids."""
    kinds: dict[str, Observation] = {}
    for observation in observations:
        sighting = observation.sighting
        kinds.setdefault(f"{sighting.get('kind')} {sighting.get('pci')}", observation)
    return list(kinds.values())


def _merge(observations: Sequence[Observation]) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Merge; should that ever raise, leave out the probers whose sightings it cannot take."""
    try:
        return merge(observations)
    except Exception:
        return _merge_without_culprits(observations)


def _merge_without_culprits(
    observations: Sequence[Observation],
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    accepted: list[Observation] = []
    findings: list[FindingDoc] = []
    for prober in dict.fromkeys(observation.prober for observation in observations):
        candidates = [*accepted, *(o for o in observations if o.prober == prober)]
        try:
            merge(candidates)
            accepted = candidates
        except Exception as error:  # whatever a prober reported, the node starts
            findings.append(
                finding(
                    "prober-failed",
                    f"the devices of {prober} could not be merged",
                    error_text(error),
                    "report this with its output",
                    severity="error",
                    prober=prober,
                )
            )
    devices, conflicts = merge(accepted)
    return devices, [*findings, *conflicts]


def _see(devices: Sequence[DeviceDoc], machine: Machine) -> tuple[Views, list[FindingDoc]]:
    if not any(device["kind"] == "gpu" for device in devices):
        return {}, []  # no variable hides anything else, and the rules need not be imported
    from probe_core import visibility

    try:
        views = visibility.see(devices, machine.environ, os=machine.os)
        visibility.annotate(devices, views)
        return views, visibility.findings(views)
    except Exception as error:  # a byte string in a variable must not keep the node from starting
        return {}, [
            finding(
                "config-ignored",
                "visibility could not be worked out",
                error_text(error),
                "report this with the variables that are set",
                step="visible",
            )
        ]


def _ask_runtimes(
    views: Views, devices: Sequence[DeviceDoc], run: ProberRun
) -> dict[str, AnswerDoc]:
    """Ask CUDA and HIP themselves what they show, where the user allowed it."""
    machine, config = run.machine, run.config
    if not (config.active and machine.live and views):
        return {}
    from probe_core.runtimes import ask

    deadline = {} if config.timeout is None else {"deadline_s": config.timeout}
    return ask(views, devices, machine.environ, waiting=run.waiting, **deadline)


def _unresponsive(collected: Collected, devices: Sequence[DeviceDoc]) -> list[FindingDoc]:
    if not collected.unresponsive:
        return []
    from probe_core.pipeline.collect import unresponsive_findings

    return unresponsive_findings(collected.unresponsive, devices)


def _disagreements(asked: Mapping[str, AnswerDoc]) -> list[FindingDoc]:
    if not asked:
        return []
    from probe_core.runtimes import disagreements

    return disagreements(asked)
