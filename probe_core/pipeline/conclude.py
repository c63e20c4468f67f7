"""What follows once the probers have answered: merge, resolve, judge, see, assemble.

Plain data goes in and plain data comes out, so that nothing but the steps themselves is imported:
a node without accelerators pays for no data classes, plugins or libraries. `run` has their order.
"""

from __future__ import annotations

from probe_core import __version__
from probe_core.config import BASELINE, MEASURED, state_file
from probe_core.machine import has_served_mounts
from probe_core.model.findings import NO_FIX, finding
from probe_core.model.ids import (
    ACCELERATORS,
    KIND_ORDER,
    NO_PLACE,
    pci_place,
    pci_vendor,
    whole,
)
from probe_core.pipeline.merge import Observation, merge, with_every_field
from probe_core.pipeline.validate import failed
from probe_core.probers.cpu import last_resort, verdict
from probe_core.registry.prober import FALLBACK, unknown_names
from probe_core.resolve import load_chips, look_up, resolve
from probe_core.wording import clean_text, error_text, gib, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from probe_core.config import Config, IgnoredSetting
    from probe_core.isolation.launch import Waiting
    from probe_core.machine import Machine
    from probe_core.model.document import (
        AnswerDoc,
        DecisionDoc,
        DeviceDoc,
        ExpectedDoc,
        FindingDoc,
        MemoryDoc,
        NodeDoc,
        NodeMemoryDoc,
        OutcomeDoc,
        ReportDoc,
    )
    from probe_core.pipeline.settings import Chips
    from probe_core.pipeline.validate import Collected
    from probe_core.readiness import Scene
    from probe_core.registry.prober import Decision, Prober
    from probe_core.visibility import Views

    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""

__all__ = [
    "add_measured",
    "add_visible",
    "ask_runtimes",
    "assemble",
    "broken",
    "by_severity",
    "expected",
    "ignored_settings",
    "judge",
    "last_findings",
    "look_up",
    "merge_devices",
    "resolve",
    "see_devices",
    "unknown_names",
    "unresponsive",
    "warm_up",
]


def warm_up(collected: Collected, chips: Chips, os: str, load: Load) -> None:
    """Load what the last steps need for the hardware on the buses, while the children start.

    That is modules, and chipdb's rows of these chips: a fifth of a probe with GPUs, taken from time
    that would be spent waiting. Nothing is judged: no library has answered, and the causes of that
    would be loaded in vain.
    """
    seen = [observation.sighting for observation in collected.observations]
    load_chips(seen, chips.open())
    if any(sighting["kind"] in ACCELERATORS for sighting in seen):
        import probe_core.readiness.library
    vendors = {str(sighting["vendor"]) for sighting in seen if sighting["kind"] == "gpu"}
    if "amd" in vendors:
        load("amd")
    if "nvidia" in vendors:
        import probe_core.readiness.modules
        import probe_core.readiness.nvidia  # noqa: F401
    if vendors:
        from probe_core.visibility import load_rules

        load_rules(vendors, os)


def merge_devices(
    collected: Collected, node: NodeDoc, machine: Machine
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Return one device per physical thing, a processor among them, and findings on conflicts."""
    devices, conflicts = _merge(collected.observations)
    if all(device["kind"] != "cpu" for device in devices):
        fallback, _ = merge([Observation(FALLBACK, 0, last_resort(machine))])
        devices += fallback
    share_memory(devices, node["memory"])
    return devices, conflicts


def add_measured(
    devices: Sequence[DeviceDoc], node: NodeDoc, machine: Machine, load: Load
) -> Sequence[FindingDoc]:
    """Add what `probe bench` keeps of this computer; a recorded one has no such file."""
    if not machine.live:
        return ()
    from probe_core.pipeline.settings import is_file

    path = state_file(machine.environ, MEASURED)
    if path is None:
        return ()
    try:
        if not is_file(path):
            return ()
    except OSError:  # its server does not answer, which the reading says
        pass
    load("measured")
    from probe_core.measured.compare import attach
    from probe_core.pipeline.file_reading import read_named

    return attach(devices, node["id"], path, read_named)


def expected(
    devices: Sequence[DeviceDoc],
    node: NodeDoc,
    machine: Machine,
    config: Config,
    chips: Chips,
) -> tuple[ExpectedDoc | None, Sequence[FindingDoc]]:
    """Return how the accelerators compare with what should be here; None where nobody says."""
    if config.expect is None and not (machine.live and _has_baseline(machine)):
        return None, ()
    from probe_core.pipeline.expected import compare
    from probe_core.pipeline.file_reading import read_named

    return compare(config, machine, node, devices, chips.open, read_named)


def _has_baseline(machine: Machine) -> bool:
    from probe_core.pipeline.settings import is_file

    path = state_file(machine.environ, BASELINE)
    try:
        return path is not None and is_file(path)
    except OSError:  # its server does not answer
        return False


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


def see_devices(
    devices: Sequence[DeviceDoc], machine: Machine, load: Load
) -> tuple[Views, list[FindingDoc]]:
    """Add to each device what the runtimes show of it; return their views, and findings."""
    vendors = {device["vendor"] for device in devices if device["kind"] == "gpu"}
    if not vendors:
        return {}, []  # no variable hides anything else, and the rules need not be imported
    if "amd" in vendors:
        load("amd")
    from probe_core import visibility

    try:
        views = visibility.see(devices, machine.environ, os=machine.os)
        visibility.annotate(devices, views)
    except Exception as error:  # a byte string in a variable must not keep the node from starting
        return {}, [_unseen(error)]
    if visibility.is_plain(views):
        return views, []
    load("explain")
    try:
        return views, visibility.findings(views)
    except Exception as error:
        return {}, [_unseen(error)]


def _unseen(error: Exception) -> FindingDoc:
    return finding(
        "config-ignored",
        "visibility could not be worked out",
        error_text(error),
        "report this with the variables that are set",
        step="visible",
    )


def ask_runtimes(
    views: Views,
    devices: Sequence[DeviceDoc],
    machine: Machine,
    config: Config,
    waiting: Waiting | None,
) -> tuple[dict[str, AnswerDoc], list[FindingDoc]]:
    """Ask CUDA and HIP themselves what they show, where the user allowed it.

    Return the answers, and findings where they are not what the rules say.
    """
    if not (config.active and machine.live and views):
        return {}, []
    from probe_core.runtimes import ask, disagreements

    deadline = {} if config.timeout is None else {"deadline_s": config.timeout}
    asked = ask(views, devices, machine.environ, waiting=waiting, **deadline)
    return asked, disagreements(asked)


def unresponsive(collected: Collected, devices: Sequence[DeviceDoc]) -> list[FindingDoc]:
    """Return findings about devices over which a prober hung or died, with their names."""
    if not collected.unresponsive:
        return []
    from probe_core.pipeline.failures import unresponsive_findings

    return unresponsive_findings(collected.unresponsive, devices)


# Whether this process can use each device, judged in the steps in which it becomes known.


def judge(
    devices: Sequence[DeviceDoc],
    machine: Machine,
    decisions: Sequence[Decision],
    outcomes: Sequence[OutcomeDoc],
    load: Load,
) -> tuple[Scene | None, list[FindingDoc]]:
    """Judge all that does not depend on visibility; return what was read for it, and findings.

    `load` is called with the part of `gate` that a broken device needs.
    """
    for device in devices:
        if device["kind"] == "cpu":  # it runs this
            device["readiness"] = {"state": "ready", "broken": None, "steps": []}
    if not any(device["kind"] in ACCELERATORS for device in devices):
        return None, []
    from probe_core import readiness

    unavailable = {o["prober"]: o for o in outcomes if o["status"] == "unavailable"}
    failures = _failures(decisions, outcomes)
    scene = readiness.Scene(machine, failures, unavailable, _looks(machine), load)
    return scene, readiness.judge(devices, scene)


def add_visible(devices: Sequence[DeviceDoc], scene: Scene | None) -> None:
    """Add what visibility shows to what `judge` wrote, once it is in the devices."""
    if scene is not None:
        from probe_core.readiness import conclude

        conclude(devices)


def broken(
    devices: Sequence[DeviceDoc],
    scene: Scene | None,
    reported: Sequence[FindingDoc],
    load: Load,
) -> list[FindingDoc]:
    """Return the findings about broken steps that none of the `reported` is about."""
    if scene is None:
        return []
    from probe_core.model.verdict import broken_step

    if all(broken_step(device) is None for device in devices):
        return []
    load("broken")
    from probe_core.readiness.findings import findings

    return findings(devices, scene, reported)


def _looks(machine: Machine) -> Callable[[str], bool] | None:
    """Return what says which paths of the machine may be looked at; None: all of them."""
    if not (machine.live and has_served_mounts()):
        return None
    from probe_core.isolation.look import Looks

    return Looks().allow


def _failures(
    decisions: Sequence[Decision], outcomes: Iterable[OutcomeDoc]
) -> dict[str, OutcomeDoc]:
    """Return the PCI vendors whose own prober failed or could not query its hardware."""
    return {
        vendor: outcome
        for outcome in outcomes
        if failed(outcome)
        for vendor in vendors_of(decisions, (outcome["prober"],))
    }


# Which device is the primary one, and in which order a report lists the devices.


def in_order(devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the devices as reports list them: GPUs, other accelerators, CPUs, displays.

    Those of a kind stand by their strongest id, whatever order a prober yields them in: PCI
    addresses first. Parts (MIG instances, XCDs) stand behind their parent, in their prober's order.
    """
    ordered = sorted(devices, key=_order)
    ids = {device["id"] for device in ordered}
    parts: dict[str, list[DeviceDoc]] = {}
    whole = []
    for device in ordered:
        parent = device["parent"]
        if parent is not None and parent in ids and parent != device["id"]:
            parts.setdefault(parent, []).append(device)
        else:
            whole.append(device)
    listed = [member for device in whole for member in _with_parts(device, parts)]
    # Two devices that call each other their parent are reached from no whole device.
    return listed + [device for orphans in parts.values() for device in orphans]


def _order(device: DeviceDoc) -> tuple[int, tuple[int, ...], tuple[int, str]]:
    """Return the key of a device in a report's list; parts are equal, so that they keep theirs."""
    if device["parent"] is not None:
        return KIND_ORDER[device["kind"]], NO_PLACE, (0, "")
    identity = device["id"]
    # Length first: `cpu:10` stands behind `cpu:2`.
    return KIND_ORDER[device["kind"]], _place(device), (len(identity), identity)


def _with_parts(device: DeviceDoc, parts: dict[str, list[DeviceDoc]]) -> list[DeviceDoc]:
    """Return a device with its parts behind it, and take them out of `parts`."""
    own = parts.pop(device["id"], [])
    return [device, *(member for part in own for member in _with_parts(part, parts))]


def choose(devices: Iterable[DeviceDoc], priorities: Mapping[str, int]) -> DeviceDoc | None:
    """Return the primary device: the best accelerator that is not blocked, else the first CPU.

    What the bus alone saw, with a driver of which nobody knows what its programs open, is none.
    Devices of which something is known to be well come before those of which nothing is. Then GPUs
    before other accelerators, the priority of the best prober that saw it, dedicated memory before
    shared, the higher fp16 peak, the larger memory, and the lower PCI address.
    """
    listed = list(devices)
    usable = _usable([device for device in listed if device["kind"] in ACCELERATORS])
    proven = [device for device in usable if not _is_unproven(device)]
    if proven:
        return min(proven, key=lambda device: _rank(device, priorities))
    processors = [device for device in listed if device["kind"] == "cpu"]
    # A cpuset may leave this process no CPU of the first socket.
    return next(
        (cpu for cpu in processors if _may_run_on(cpu)), processors[0] if processors else None
    )


def _may_run_on(device: DeviceDoc) -> bool:
    return (device.get("allowed") or {}).get("threads") != 0


def _usable(accelerators: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    if not accelerators:  # such a node pays for no rule
        return []
    from probe_core.model.verdict import usable_here

    return [device for device in accelerators if usable_here(device).usable is not False]


def _is_unproven(device: DeviceDoc) -> bool:
    """Return whether nothing shows that the device can be used: no answer, and no node is known."""
    from probe_core.model.ids import NODE_UNKNOWN
    from probe_core.model.verdict import state_of

    if state_of(device) != "unknown" or device["seen_by"] != ["bus"]:
        return False
    return any(step["code"] == NODE_UNKNOWN for step in device["readiness"]["steps"])


def _rank(
    device: DeviceDoc, priorities: Mapping[str, int]
) -> tuple[bool, int, int, bool, float, int, tuple[int, ...]]:
    from probe_core.model.verdict import state_of

    memory = device["memory"]
    return (
        state_of(device) == "unknown",
        KIND_ORDER[device["kind"]],
        -max(priorities.get(prober, 0) for prober in device["seen_by"]),
        memory["kind"] != "dedicated",
        -(device["fp16"] or 0.0),
        -(memory["total"] or 0),
        _place(device),
    )


def _place(device: DeviceDoc) -> tuple[int, ...]:
    """Return the numbers by which equal devices are ordered."""
    return pci_place(device) or NO_PLACE


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
    reason = "used" if not is_shared else "cgroup" if system["limit"] is not None else "system"
    limits = [
        (size, name)
        for size, name in (
            (memory["usable"], memory.pop("limited_by", None) or "driver"),
            (free_now, reason),
        )
        if size is not None
    ]
    memory["usable"], name = min(limits, key=lambda limit: limit[0], default=(None, ""))
    total = memory["total"]
    if memory["usable"] is not None and total is not None and memory["usable"] < total:
        memory["limited_by"] = name


def assemble(
    node: NodeDoc,
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    collected: Collected,
    asked: dict[str, AnswerDoc],
    chipdb_version: str | None,
) -> ReportDoc:
    """Return the report without its timings; `findings` is still empty."""
    priorities = {seen.prober: seen.priority for seen in collected.observations}
    ordered = in_order(devices)
    primary = choose(ordered, priorities)
    document: ReportDoc = {
        "schema": SCHEMA,
        "probe_core": __version__,
        "chipdb": chipdb_version,
        "node": node,
        "primary": primary["id"] if primary else None,
        "devices": [with_every_field(device) for device in ordered],
        "outcomes": collected.outcomes,
        "decisions": [_decision(decision) for decision in decisions],
        "fallback": verdict(primary, troubles(ordered, decisions, collected.outcomes)),
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


def last_findings(document: ReportDoc, decisions: Sequence[Decision]) -> list[FindingDoc]:
    """Return what is known only once the report stands: devices without a prober, memory."""
    ran = {o["prober"] for o in document["outcomes"] if o["status"] != "skipped"}
    findings: list[FindingDoc] = []
    unconfirmed = [d for d in document["devices"] if d["seen_by"] == ["bus"]]
    untrusted = untrusted_decisions(decisions)
    findings += _untrusted(untrusted)
    if unconfirmed:
        refused = refused_decisions(unconfirmed, decisions)
        findings += [_refused(d) for d in refused if d not in untrusted]
        explained = {*ran, *(decision.prober.name for decision in refused)}
        findings += bus_findings(unconfirmed, vendors_of(decisions, explained), ran)
    memory = document["node"]["memory"]
    if memory["limit"] is not None:
        findings.append(_memory_limited(memory["limit"], memory.get("limited_by") or ""))
    processors = [device for device in document["devices"] if device["kind"] == "cpu"]
    if any(device.get("allowed") for device in processors):
        findings.append(_processors_limited(processors))
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


def _memory_limited(limit: int, file: str) -> FindingDoc:
    """Return the finding of a limit in bytes, which a cgroup's `file` holds."""
    if "mems" in file.rpartition("/")[2]:
        fix = "allow more memory nodes: `docker run --cpuset-mems`, or `AllowedMemoryNodes=`"
    else:
        fix = "raise the limit: `docker run --memory`, or `MemoryMax=` of the systemd unit"
    return finding(
        "memory-limited",
        f"this process may use {gib(limit)} of memory",
        f"{clean_text(file) or 'a cgroup'} limits it; the machine has more",
        fix,
        severity="info",
        evidence=file or None,
    )


def _processors_limited(processors: Sequence[DeviceDoc]) -> FindingDoc:
    """Return the finding of a limit of the cores, or of the CPU time, that this process may use."""
    total, cores = 0, 0
    quotas: list[float] = []
    sources: dict[str, None] = {}
    for device in processors:
        limit, units = device.get("allowed") or {}, whole(device, "units") or 0
        own, by = limit.get("cores", units), limit.get("by")
        total += units
        cores += own if isinstance(own, int) else units
        quota = limit.get("quota")
        quotas += [quota] if isinstance(quota, (int, float)) else []
        sources |= dict.fromkeys(map(str, by)) if isinstance(by, list) else {}
    parts = [f"{cores} of {total} cores"] if cores < total else []
    parts += [f"{sum(quotas):g} CPUs of time"] if quotas else []
    return finding(
        "processors-limited",
        f"this process may use {joined(parts, 'and') or 'a part of the processors'}",
        f"set in {clean_text(joined(sources, 'and')) or 'a cgroup'}; the machine has more",
        "raise the limit: `docker run --cpus --cpuset-cpus`, or `CPUQuota=` and `AllowedCPUs=` of"
        " the systemd unit",
        severity="info",
        evidence=next(iter(sources), None),
    )


def by_severity(findings: list[FindingDoc]) -> list[FindingDoc]:
    """Return the findings, errors first; equal ones keep their order."""
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda entry: rank[entry["severity"]])


# What is to be said of devices that only the bus saw: displays, and those without a plugin.

_EXTRAS = {"nvidia": "nvidia", "amd": "amd", "intel": "intel", "arm": "mali"}
"""Vendor to the extra of probe-core that installs its prober."""

_OTHER_REMEDY = "install a prober for it"


_IF_IT_COMPUTES = "nothing, unless it is an accelerator: then install a prober for it"


def bus_findings(
    devices: Iterable[DeviceDoc], queried_vendors: Collection[str], ran: Collection[str]
) -> list[FindingDoc]:
    """Return the findings about `devices`, which only the bus reported.

    `queried_vendors` are the PCI vendors whose own prober ran: what it left out is its to explain.
    `ran` are the names of all probers that ran. A device that is blocked has a finding of its own,
    and no plugin helps it.
    """
    findings = []
    unqueried: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        if device["kind"] == "display":
            findings.append(_display(device))
        elif device["kind"] == "coprocessor":
            # A crypto card needs no driver of an accelerator: nothing is wrong.
            unqueried.setdefault(_IF_IT_COMPUTES, []).append(device)
        elif pci_vendor(device) not in queried_vendors and _usable([device]):
            unqueried.setdefault(_remedy(device, ran), []).append(device)
    return findings + [_no_prober(group, fix) for fix, group in unqueried.items()]


def _display(device: DeviceDoc) -> FindingDoc:
    return finding(
        "display-only",
        f"{device['id']} ({device['vendor'] or 'unknown vendor'}) is a display adapter",
        "it cannot compute, so it is not counted as an accelerator",
        NO_FIX,
        severity="info",
        device=device["id"],
        step="hardware",
    )


def _remedy(device: DeviceDoc, ran: Collection[str]) -> str:
    """Return what to install: not what just ran, and does not know this device."""
    extra = _EXTRAS.get(device["vendor"] or "")
    return f"pip install 'probe-core[{extra}]'" if extra not in (None, *ran) else _OTHER_REMEDY


def _no_prober(devices: list[DeviceDoc], fix: str) -> FindingDoc:
    """Say once, not eight times on a server, that no prober queried these devices."""
    names = [device["name"] or device["id"] for device in devices]
    counted = [
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    ]
    return finding(
        "prober-missing",
        f"{joined(counted, 'and')} {_was(names)} detected on the bus only; no plugin for it ran",
        "no plugin that ran knows this kind of device, so memory and clocks are not live",
        fix,
        severity="info",
        device=devices[0]["id"] if len(devices) == 1 else None,
        step="hardware",
    )


def _was(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


# The causes of a decision that say that somebody's prober would have run.
_REFUSALS = ("trust", "api")


def untrusted_decisions(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the decisions of root not to run a plugin that somebody else could have written.

    Whether its hardware is here nobody knows: of such a plugin not even the manifest is read.
    """
    return [d for d in decisions if d.cause == "trust" and d.setting is None]


def _untrusted(decisions: Sequence[Decision]) -> list[FindingDoc]:
    """Return a finding for each reason, which names path and owner: many plugins have the same."""
    by_reason: dict[str, list[Prober]] = {}
    for decision in decisions:
        by_reason.setdefault(decision.reason or "", []).append(decision.prober)
    return [_untrusted_finding(reason, probers) for reason, probers in by_reason.items()]


def _untrusted_finding(reason: str, probers: Sequence[Prober]) -> FindingDoc:
    first, count = probers[0], len(probers)
    what = f"{first.owner}: prober {first.name!r} did not run"
    if count > 1:
        what = f"{count} probers did not run: {joined([p.name for p in probers], 'and')}"
    return finding(
        "prober-refused",
        what,
        reason,
        "run `probe` as the user who installed it, or install it where root alone can write",
        severity="error",
        prober=first.name if count == 1 else None,
        evidence=reason,
    )


def refused_decisions(
    devices: Iterable[DeviceDoc], decisions: Sequence[Decision]
) -> list[Decision]:
    """Return the decisions that kept a prober from accelerators of its vendor among `devices`."""
    refused = [decision for decision in decisions if decision.cause in _REFUSALS]
    if not refused:
        return []
    present = {pci_vendor(device) for device in devices if device["kind"] in ACCELERATORS}
    return [d for d in refused if vendors_of([d], (d.prober.name,)) & present]


def _refused(decision: Decision) -> FindingDoc:
    prober = decision.prober
    is_chosen = decision.setting is not None
    fix = "install a version of it that fits this core, or upgrade probe-core"
    if is_chosen:
        fix = f"add {prober.distribution} to the allowlist, if it may run"
    return finding(
        "prober-refused",
        f"{prober.owner}: prober {prober.name!r} did not run, though its hardware is here",
        decision.reason or "",
        fix,
        severity="info" if is_chosen else "error",
        prober=prober.name,
        setting=decision.setting,
        variable=decision.variable,
        evidence=decision.cause,
    )


# What keeps a node degraded: an accelerator that ought to work, a prober that failed.


def vendors_of(decisions: Sequence[Decision], probers: Collection[str]) -> set[str]:
    """Return the PCI vendors that the manifests of `probers` name."""
    return {
        vendor.lower().removeprefix("0x")
        for decision in decisions
        if decision.prober.name in probers
        for when in decision.prober.when
        for vendor in when.get("pci_vendor", ())
    }


def troubles(
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    outcomes: Iterable[OutcomeDoc],
) -> list[DeviceDoc | OutcomeDoc | Decision]:
    """Return what keeps an accelerator from use that ought to work.

    That is broken devices, probers that failed, and those that this process must not run.

    A device that somebody keeps away on purpose (passthrough, a slice) is none, and explains why
    its vendor's prober cannot query anything.
    """
    accelerators = [device for device in devices if device["kind"] in ACCELERATORS]
    broken = [device for device in accelerators if _is_missing(device)]
    usable = {pci_vendor(device) for device in _usable(accelerators)}
    reserved = {pci_vendor(device) for device in accelerators} - usable
    reserved -= {pci_vendor(device) for device in broken}
    unexplained = [
        outcome
        for outcome in outcomes
        if failed(outcome) and not _is_explained(outcome, decisions, reserved)
    ]
    unconfirmed = [device for device in accelerators if device["seen_by"] == ["bus"]]
    untrusted = untrusted_decisions(decisions)
    refused = [d for d in refused_decisions(unconfirmed, decisions) if d.setting is None]
    return [*broken, *unexplained, *untrusted, *(d for d in refused if d not in untrusted)]


def _is_explained(
    outcome: OutcomeDoc, decisions: Sequence[Decision], reserved_vendors: set[str | None]
) -> bool:
    """Return whether a prober had nothing to query because all its devices are reserved."""
    vendors = vendors_of(decisions, (outcome["prober"],))
    return outcome["status"] == "unavailable" and bool(reserved_vendors & vendors)


def _is_missing(device: DeviceDoc) -> bool:
    """Return whether this process cannot use the device, though nobody chose so."""
    from probe_core.model.verdict import usable_here

    answer = usable_here(device)
    return answer.usable is False and answer.severity != "info"
