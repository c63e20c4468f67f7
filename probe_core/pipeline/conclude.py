"""What follows once the probers have answered: merge, resolve, judge, see, assemble.

Plain data goes in and plain data comes out, so that nothing but the steps themselves is imported:
a node without accelerators pays for no data classes, plugins or libraries. `run` has their order.
"""

from __future__ import annotations

from probe_core import __version__
from probe_core.config import BASELINE, MEASURED, state_file
from probe_core.model.device import FIELDS
from probe_core.model.field import ordered
from probe_core.model.findings import finding
from probe_core.model.ids import ACCELERATORS, KIND_ORDER, NO_PLACE, pci_place
from probe_core.pipeline.merge import Observation, merge
from probe_core.pipeline.validate import failed
from probe_core.probers.cpu import last_resort
from probe_core.registry.prober import FALLBACK
from probe_core.resolve import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_chipdb import Database
    from probe_core.config import Config, IgnoredSetting
    from probe_core.isolation.launch import Waiting
    from probe_core.machine import Machine
    from probe_core.model.document import (
        AnswerDoc,
        DecisionDoc,
        DeviceDoc,
        Fallback,
        FindingDoc,
        MemoryDoc,
        NodeDoc,
        NodeMemoryDoc,
        OutcomeDoc,
        ReportDoc,
    )
    from probe_core.pipeline.validate import Collected
    from probe_core.readiness import Scene
    from probe_core.registry.prober import Decision
    from probe_core.visibility import Views

    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""

__all__ = [
    "add_expected",
    "add_measured",
    "ask_runtimes",
    "assemble",
    "broken",
    "ignored_settings",
    "kept_files",
    "last_findings",
    "merge_devices",
    "resolve",
]


def merge_devices(
    collected: Collected, node: NodeDoc, machine: Machine, load: Load
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Return one device per physical thing, a processor among them, and findings on conflicts."""
    try:
        devices, conflicts = merge(collected.observations, load)
    except Exception:  # should it ever raise: without the probers whose sightings it cannot take
        load("failures")
        from probe_core.pipeline.failures import merge_without_culprits

        devices, conflicts = merge_without_culprits(collected.observations)
    if all(device["kind"] != "cpu" for device in devices):
        processors, _ = merge([Observation(FALLBACK, 0, last_resort(machine))])
        devices += processors
    for device in devices:
        if device["kind"] == "cpu":  # it runs this
            device["readiness"] = {"state": "ready", "broken": None, "steps": []}
    share_memory(devices, node["memory"])
    return devices, conflicts


def kept_files(machine: Machine) -> tuple[str | None, bool]:
    """Return the file of measured figures where one may be, and whether a baseline is kept.

    A recorded computer has neither.
    """
    if not machine.live:
        return None, False
    measured = state_file(machine.environ, MEASURED)
    # Where its server does not answer, the reading says so.
    may_be = _is_there(measured) is not False
    return measured if may_be else None, bool(_is_there(state_file(machine.environ, BASELINE)))


def _is_there(path: str | None) -> bool | None:
    """Return whether a file is there; None where its server does not answer."""
    from probe_core.pipeline.settings import is_file

    try:
        return path is not None and is_file(path)
    except OSError:
        return None


def add_measured(
    devices: Sequence[DeviceDoc], node_id: str | None, path: str, load: Load
) -> Sequence[FindingDoc]:
    """Add what `probe bench` keeps of this computer at `path`."""
    load("measured")
    from probe_core.measured.compare import attach
    from probe_core.pipeline.file_reading import read_named

    return attach(devices, node_id, path, read_named)


def add_expected(
    document: ReportDoc,
    devices: Sequence[DeviceDoc],
    machine: Machine,
    config: Config,
    database: Database | None,
) -> Sequence[FindingDoc]:
    """Add how the accelerators compare with what should be here."""
    from probe_core.pipeline.expected import compare
    from probe_core.pipeline.file_reading import read_named

    node = document["node"]
    expected, findings = compare(config, machine, node, devices, database, read_named)
    if expected is not None:
        document["expected"] = expected
    return findings


def broken(
    devices: Sequence[DeviceDoc],
    scene: Scene | None,
    reported: Sequence[FindingDoc],
    load: Load,
) -> Sequence[FindingDoc]:
    """Return findings about broken steps that none of the `reported` findings is about."""
    if scene is None:
        return ()
    from probe_core.model.verdict import broken_step

    if all(broken_step(device) is None for device in devices):
        return ()
    load("broken")
    from probe_core.readiness.findings import findings

    return findings(devices, scene, reported)


def ask_runtimes(
    views: Views,
    devices: Sequence[DeviceDoc],
    machine: Machine,
    config: Config,
    waiting: Waiting | None,
) -> tuple[dict[str, AnswerDoc], list[FindingDoc]]:
    """Ask CUDA and HIP themselves what they show.

    Return the answers, and findings where they are not what the rules say.
    """
    from probe_core.runtimes import ask, disagreements

    deadline = {} if config.timeout is None else {"deadline_s": config.timeout}
    asked = ask(views, devices, machine.environ, waiting=waiting, **deadline)
    return asked, disagreements(asked)


# Which device is the primary one, and in which order a report lists the devices.


def in_order(devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the devices as reports list them: GPUs, other accelerators, CPUs, displays.

    Those of a kind stand by their strongest id, whatever order a prober yields them in: PCI
    addresses first. Parts (MIG instances, XCDs) stand behind their parent, in their prober's order.
    """
    ordered = sorted(devices, key=_order)
    if all(device["parent"] is None for device in ordered):
        return ordered
    from probe_core.pipeline.accelerators import behind_parents

    return behind_parents(ordered)


def _order(device: DeviceDoc) -> tuple[int, tuple[int, ...], tuple[int, str]]:
    """Return the key of a device in a report's list; parts are equal, so that they keep theirs."""
    if device["parent"] is not None:
        return KIND_ORDER[device["kind"]], NO_PLACE, (0, "")
    identity = device["id"]
    # Length first: `cpu:10` stands behind `cpu:2`.
    return KIND_ORDER[device["kind"]], pci_place(device) or NO_PLACE, (len(identity), identity)


def choose(devices: Sequence[DeviceDoc], priorities: Mapping[str, int]) -> DeviceDoc | None:
    """Return the primary device: the best accelerator that is not blocked, else the first CPU."""
    accelerators = [device for device in devices if device["kind"] in ACCELERATORS]
    if accelerators:
        from probe_core.pipeline.accelerators import best

        chosen = best(accelerators, priorities)
        if chosen is not None:
            return chosen
    processors = [device for device in devices if device["kind"] == "cpu"]
    # A cpuset may leave this process no CPU of the first socket.
    allowed = [cpu for cpu in processors if (cpu.get("allowed") or {}).get("threads") != 0]
    return next(iter(allowed or processors), None)


# Put the report's document together from what the steps made; plain data in, plain data out.

SCHEMA = 1
"""The report's schema number: raised only when a field changes meaning, never for additions."""


def share_memory(devices: Sequence[DeviceDoc], system: NodeMemoryDoc) -> None:
    """Give devices that use the system's memory its size; say what is usable of each memory.

    `limited_by` says what keeps that below the total: a prober's word for a limit of the driver
    stays, where no tighter one is known.
    """
    for device in devices:
        memory = device["memory"]
        is_shared = memory["kind"] in ("unified", "shared")
        if is_shared and memory["total"] is None and system["total"] is not None:
            memory["total"] = system["total"]
            device["sources"]["memory.total"] = "node"
            device["unknown"].pop("memory.total", None)
        _limit(memory, system, is_shared=is_shared)
        if memory["total"] is None:
            device["unknown"].setdefault("memory.total", "no prober could read it")


def _limit(memory: MemoryDoc, system: NodeMemoryDoc, *, is_shared: bool) -> None:
    """Set `usable` to the least limit, and `limited_by` to what it is of."""
    # A prober may know a limit (what firmware keeps); nobody can take more than is free now.
    free_now = memory["free"]
    if is_shared:
        # What firmware carved out for an APU (its `vram`) is no part of the system's own count.
        available, carved = system["available"], memory["parts"].get("vram", 0)
        free_now = None if available is None else available + carved
    usable, name = memory["usable"], memory.pop("limited_by", None) or "driver"
    if free_now is not None and (usable is None or free_now < usable):
        usable = free_now
        name = "used" if not is_shared else "cgroup" if system["limit"] is not None else "system"
    memory["usable"], total = usable, memory["total"]
    if usable is not None and total is not None and usable < total:
        memory["limited_by"] = name


def assemble(
    node: NodeDoc,
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    collected: Collected,
    asked: dict[str, AnswerDoc],
    database: Database | None,
) -> ReportDoc:
    """Return the report without its timings; `findings` is still empty."""
    priorities = {seen.prober: seen.priority for seen in collected.observations}
    listed = in_order(devices)
    primary = choose(listed, priorities)
    # Which net the node fell into: something failed, so that there may be an accelerator, or none.
    fallback: Fallback | None = None
    if primary is None or primary["kind"] not in ACCELERATORS:
        found = troubles(listed, decisions, collected.outcomes)
        fallback = "degraded" if found else "no-accelerator"
    document: ReportDoc = {
        "schema": SCHEMA,
        "probe_core": __version__,
        "chipdb": database.version if database is not None else None,
        "node": node,
        "primary": primary["id"] if primary else None,
        "devices": [ordered(device, FIELDS) for device in listed],
        "outcomes": collected.outcomes,
        "decisions": [_decision(decision) for decision in decisions],
        "fallback": fallback,
        "findings": [],
        "timings_ms": {},
    }
    if asked:
        document["asked"] = asked
    return document


def _decision(decision: Decision) -> DecisionDoc:
    prober = decision.prober
    return {
        "prober": prober.name,
        "distribution": prober.owner,
        "selected": decision.cause is None,
        "cause": decision.cause,
        "reason": decision.reason,
        "priority": prober.priority,
        "deadline_s": prober.deadline_s,
        "active": prober.active,
        "setting": decision.setting,
        "variable": decision.variable,
    }


def ignored_settings(ignored: Sequence[IgnoredSetting]) -> list[FindingDoc]:
    """Return a finding for each setting of the environment or a file that was left out."""
    return [
        finding(
            "restriction-unusable" if setting.seals else "config-ignored",
            "a restriction is unusable: no plugin ran"
            if setting.seals
            else "a setting was ignored",
            setting.reason,
            "correct it; `probe --help` lists the settings",
            severity="error" if setting.seals else "warning",
            setting=setting.name,
            variable=setting.variable,
            evidence=setting.origin,
        )
        for setting in ignored
    ]


def last_findings(
    document: ReportDoc, decisions: Sequence[Decision], load: Load = bool
) -> list[FindingDoc]:
    """Return what is known only once the report stands: devices without a prober, memory."""
    findings: list[FindingDoc] = []
    unconfirmed = [d for d in document["devices"] if d["seen_by"] == ["bus"]]
    untrusted = untrusted_decisions(decisions)
    if untrusted:
        load("failures")
        from probe_core.pipeline.failures import untrusted_probers

        findings += untrusted_probers(untrusted)
    if unconfirmed:
        from probe_core.pipeline.accelerators import unqueried

        ran = {o["prober"] for o in document["outcomes"] if o["status"] != "skipped"}
        findings += unqueried(unconfirmed, decisions, untrusted, ran, load)
    memory, engine = document["node"]["memory"], document["node"].get("container")
    if memory["limit"] is not None:
        load("nodes")
        from probe_core.pipeline.node_memory import memory_limited

        findings.append(memory_limited(memory["limit"], memory.get("limited_by") or "", engine))
    processors = [device for device in document["devices"] if device["kind"] == "cpu"]
    if any(device.get("allowed") for device in processors):
        load("kinds")
        from probe_core.resolve.cores import processors_limited

        findings.append(processors_limited(processors, engine))
    if memory["total"] is None:
        findings.append(
            finding(
                "no-cpu-facts",
                "the machine's memory is unknown",
                "neither /proc/meminfo nor psutil answered",
                "mount /proc, or install psutil",
            )
        )
    return findings


# What keeps a node degraded: an accelerator that ought to work, a prober that failed.


def troubles(
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    outcomes: Iterable[OutcomeDoc],
) -> list[DeviceDoc | OutcomeDoc | Decision]:
    """Return what keeps an accelerator from use that ought to work.

    That is broken devices, probers that failed, and those that this process must not run.
    """
    failures = [outcome for outcome in outcomes if failed(outcome)]
    untrusted = untrusted_decisions(decisions)
    accelerators = [device for device in devices if device["kind"] in ACCELERATORS]
    if not accelerators:
        return [*failures, *untrusted]
    from probe_core.pipeline.accelerators import troubles

    return troubles(accelerators, decisions, failures, untrusted)


def untrusted_decisions(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the decisions of root not to run a plugin that somebody else could have written.

    Whether its hardware is here nobody knows: of such a plugin not even the manifest is read.
    """
    return [d for d in decisions if d.cause == "trust" and d.setting is None]
