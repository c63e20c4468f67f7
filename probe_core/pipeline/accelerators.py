"""The last steps of a probe where more than processors is here: judge it, see it, choose the best.

Nodes without accelerators import none of this. Plain data goes in and plain data comes out, as in
`conclude`, which calls it.
"""

from __future__ import annotations

from probe_core.machine import has_served_mounts
from probe_core.model.findings import NO_FIX, finding
from probe_core.model.ids import (
    ACCELERATORS,
    KIND_ORDER,
    NO_PLACE,
    NODE_UNKNOWN,
    pci_place,
    pci_vendor,
)
from probe_core.model.verdict import state_of, usable_here
from probe_core.pipeline.validate import failed
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from probe_chipdb import Database
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, FindingDoc, OutcomeDoc
    from probe_core.pipeline.conclude import Load
    from probe_core.pipeline.validate import Collected
    from probe_core.readiness import Scene
    from probe_core.registry.prober import Decision
    from probe_core.resolve import Figures
    from probe_core.visibility import Views

__all__ = [
    "behind_parents",
    "best",
    "judge",
    "see",
    "troubles",
    "unqueried",
    "warm_up",
]


def warm_up(collected: Collected, database: Database | None, os: str, load: Load) -> Figures:
    """Load what the last steps need for the hardware on the buses, while the children start.

    That is modules, and the figures of these chips, which are returned: a fifth of a probe with
    GPUs, taken from time that would be spent waiting. Nothing is judged: no library has answered,
    and the causes of that would be loaded in vain.
    """
    from probe_core.resolve.accelerators import load_chips

    seen = [observation.sighting for observation in collected.observations]
    figures = load_chips(seen, database, load)
    if any(sighting["kind"] in ACCELERATORS for sighting in seen):
        import probe_core.readiness.library  # noqa: F401
    vendors = {str(sighting["vendor"]) for sighting in seen if sighting["kind"] == "gpu"}
    if vendors:
        from probe_core.visibility import load_rules, parts

        for part in parts(vendors, {}):
            load(part)
        load_rules(vendors, os)
    return figures


# Whether this process can use each device, judged in the steps in which it becomes known.


def judge(
    devices: Sequence[DeviceDoc],
    machine: Machine,
    decisions: Sequence[Decision],
    outcomes: Sequence[OutcomeDoc],
    load: Load,
) -> tuple[Scene, list[FindingDoc]]:
    """Judge whether this process can use each device, but for what the runtimes show of it.

    Return what was read for it, and findings. `load` is called with the part of `gate` that a
    broken device needs.
    """
    from probe_core import readiness

    unavailable = {o["prober"]: o for o in outcomes if o["status"] == "unavailable"}
    failures = {
        vendor: outcome
        for outcome in outcomes
        if failed(outcome)
        for vendor in _vendors_of(decisions, (outcome["prober"],))
    }
    allows = None
    if machine.live and has_served_mounts():
        from probe_core.isolation.look import Looks

        allows = Looks().allow
    scene = readiness.Scene(machine, failures, unavailable, allows, load)
    return scene, readiness.judge(devices, scene)


def see(
    devices: Sequence[DeviceDoc], machine: Machine, load: Load
) -> tuple[Views, list[FindingDoc]]:
    """Add to each device what the runtimes show of it, and what that makes of its readiness.

    Return the runtimes' views, and findings about what is hidden.
    """
    from probe_core.readiness import conclude

    views: Views = {}
    hidden: list[FindingDoc] = []
    vendors = {device["vendor"] for device in devices if device["kind"] == "gpu"}
    if vendors:  # no variable hides anything else, and the rules need not be imported
        from probe_core import visibility

        for part in visibility.parts(vendors, machine.environ):
            load(part)
        try:
            views = visibility.see(devices, machine.environ, os=machine.os)
            visibility.annotate(devices, views)
            if not visibility.is_plain(views):
                load("explain")
                hidden = visibility.findings(views)
        except Exception as error:  # a byte string in a variable must not stop the probe
            views, hidden = {}, [_unseen(error)]
    conclude(devices)
    return views, hidden


def _unseen(error: Exception) -> FindingDoc:
    return finding(
        "config-ignored",
        "visibility could not be worked out",
        error_text(error),
        "report this with the variables that are set",
        step="visible",
    )


# Which accelerator is the primary device, and where the parts of one stand in a report.


def best(accelerators: Sequence[DeviceDoc], priorities: Mapping[str, int]) -> DeviceDoc | None:
    """Return the best one that is not blocked; None where there is none.

    What the bus alone saw, with a driver of which nobody knows what its programs open, is none.
    Devices of which something is known to be well come before those of which nothing is. Then GPUs
    before other accelerators, the priority of the best prober that saw it, dedicated memory before
    shared, the higher fp16 peak, the larger memory, and the lower PCI address: the order of a
    report has it first.
    """
    usable = [device for device in accelerators if usable_here(device).usable is not False]
    proven = [device for device in usable if not _is_unproven(device)]
    return min(proven, key=lambda device: _rank(device, priorities), default=None)


def _is_unproven(device: DeviceDoc) -> bool:
    """Return whether nothing shows that the device can be used: no answer, and no node is known."""
    if state_of(device) != "unknown" or device["seen_by"] != ["bus"]:
        return False
    return any(step["code"] == NODE_UNKNOWN for step in device["readiness"]["steps"])


def _rank(
    device: DeviceDoc, priorities: Mapping[str, int]
) -> tuple[bool, int, int, bool, float, int, tuple[int, ...]]:
    memory = device["memory"]
    return (
        state_of(device) == "unknown",
        KIND_ORDER[device["kind"]],
        -max(priorities.get(prober, 0) for prober in device["seen_by"]),
        memory["kind"] != "dedicated",
        -(device["fp16"] or 0.0),
        -(memory["total"] or 0),
        pci_place(device) or NO_PLACE,
    )


def behind_parents(devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the devices, each part behind its parent."""
    listed = list(devices)
    ids = {device["id"] for device in listed}
    parts: dict[str, list[DeviceDoc]] = {}
    whole = []
    for device in listed:
        parent = device["parent"]
        if parent is not None and parent in ids and parent != device["id"]:
            parts.setdefault(parent, []).append(device)
        else:
            whole.append(device)
    ordered = [member for device in whole for member in _with_parts(device, parts)]
    # Two devices that call each other their parent are reached from no whole device.
    return ordered + [device for orphans in parts.values() for device in orphans]


def _with_parts(device: DeviceDoc, parts: dict[str, list[DeviceDoc]]) -> list[DeviceDoc]:
    """Return a device with its parts behind it, and take them out of `parts`."""
    own = parts.pop(device["id"], [])
    return [device, *(member for part in own for member in _with_parts(part, parts))]


# What is to be said of devices that only the bus saw: displays, and those without a plugin.


def unqueried(
    devices: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    untrusted: Collection[Decision],
    ran: Collection[str],
    load: Load,
) -> list[FindingDoc]:
    """Return the findings about `devices`, which only the bus reported.

    `untrusted` are the decisions that have a finding already; `ran` are the names of all probers
    that ran: what one left out of its vendor is its to explain. A device that is blocked has a
    finding of its own, and no plugin helps it.
    """
    refused = _refused(devices, decisions)
    known = _vendors_of(decisions, {*ran, *(decision.prober.name for decision in refused)})
    displays = [_display(device) for device in devices if device["kind"] == "display"]
    others = [
        device
        for device in devices
        if device["kind"] == "coprocessor"
        or (
            device["kind"] != "display"
            and pci_vendor(device) not in known
            and usable_here(device).usable is not False
        )
    ]
    if not (refused or others):
        return displays
    load("failures")
    from probe_core.pipeline.failures import missing_probers, refused_prober

    findings = [refused_prober(decision) for decision in refused if decision not in untrusted]
    return [*findings, *displays, *missing_probers(others, ran)]


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


# The causes of a decision that say that somebody's prober would have run.
_REFUSALS = ("trust", "api")


def _refused(devices: Iterable[DeviceDoc], decisions: Sequence[Decision]) -> list[Decision]:
    """Return the decisions that kept a prober from accelerators of its vendor among `devices`."""
    refused = [decision for decision in decisions if decision.cause in _REFUSALS]
    if not refused:
        return []
    present = {pci_vendor(device) for device in devices if device["kind"] in ACCELERATORS}
    return [d for d in refused if _vendors_of([d], (d.prober.name,)) & present]


# What keeps a node degraded: an accelerator that ought to work, a prober that failed.


def _vendors_of(decisions: Sequence[Decision], probers: Collection[str]) -> set[str]:
    """Return the PCI vendors that the manifests of `probers` name."""
    return {
        vendor.lower().removeprefix("0x")
        for decision in decisions
        if decision.prober.name in probers
        for when in decision.prober.when
        for vendor in when.get("pci_vendor", ())
    }


def troubles(
    accelerators: Sequence[DeviceDoc],
    decisions: Sequence[Decision],
    failures: Iterable[OutcomeDoc],
    untrusted: Sequence[Decision],
) -> list[DeviceDoc | OutcomeDoc | Decision]:
    """Return what `conclude.troubles` does where there are accelerators.

    A device that somebody keeps away on purpose (passthrough, a slice) is none, and explains why
    its vendor's prober cannot query anything.
    """
    answers = [(device, usable_here(device)) for device in accelerators]
    refused = [(device, answer) for device, answer in answers if answer.usable is False]
    broken = [device for device, answer in refused if answer.severity != "info"]
    reserved = {pci_vendor(device) for device, answer in refused if answer.severity == "info"}
    if reserved:  # of a vendor's devices all, and not one that works or is broken
        present = [device for device, answer in answers if answer.usable is not False]
        reserved -= {pci_vendor(device) for device in present + broken}
    unexplained = [
        outcome for outcome in failures if not _is_explained(outcome, decisions, reserved)
    ]
    unconfirmed = [device for device in accelerators if device["seen_by"] == ["bus"]]
    barred = [d for d in _refused(unconfirmed, decisions) if d.setting is None]
    return [*broken, *unexplained, *untrusted, *(d for d in barred if d not in untrusted)]


def _is_explained(
    outcome: OutcomeDoc, decisions: Sequence[Decision], reserved_vendors: set[str | None]
) -> bool:
    """Return whether a prober had nothing to query because all its devices are reserved."""
    vendors = _vendors_of(decisions, (outcome["prober"],))
    return outcome["status"] == "unavailable" and bool(reserved_vendors & vendors)
