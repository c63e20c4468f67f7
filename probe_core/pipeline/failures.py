"""Findings about probers that failed, did not run, are missing or report what cannot be true."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.ids import FAILURES, pci_model, single
from probe_core.pipeline.validate import MAX_REJECTIONS
from probe_core.wording import INVALID, clean_text, error_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from probe_core.isolation.launch import Unresponsive
    from probe_core.isolation.run import Run
    from probe_core.model.document import DeviceDoc, FindingDoc, OutcomeDoc, StepDoc
    from probe_core.pipeline.merge import Group, Observation
    from probe_core.registry.prober import Decision, Prober

    Failed = tuple[str, Unresponsive]
    """A prober's name, and the device."""


def findings_about(run: Run, outcome: OutcomeDoc) -> list[FindingDoc]:
    """Return the finding about the prober whose run this was; none where its answer is whole."""
    if run.stuck:
        return [unkillable(run.prober)]
    if outcome.get("phase") == "cleanup":
        return [_cleanup(run.prober, outcome)]
    return without_answer(run.prober, outcome)


def without_answer(prober: Prober, outcome: OutcomeDoc) -> list[FindingDoc]:
    """Return the finding about a prober that failed or could not ask; none about any other."""
    if outcome["status"] in FAILURES:
        return [_failure(prober, outcome)]
    if outcome["status"] == "unavailable":
        return [_unavailable(prober, outcome)]
    return []


def _failure(prober: Prober, outcome: OutcomeDoc) -> FindingDoc:
    fix = f"`probe plugins why-not {prober.name}` shows more; PROBE_DISABLE={prober.name} skips it"
    if outcome["status"] == "timeout":
        fix = (
            "read the kernel's log for its driver; PROBE_TIMEOUT=30 gives a slow one more time,"
            f" PROBE_DISABLE={prober.name} skips it"
        )
    return finding(
        "prober-failed",
        f"{prober.owner}: prober {prober.name!r} failed ({outcome['status']})",
        outcome["reason"] or outcome["status"],
        fix,
        severity="error",
        prober=prober.name,
        setting="timeout" if outcome["status"] == "timeout" else None,
        evidence=outcome["status"],
    )


def _cleanup(prober: Prober, outcome: OutcomeDoc) -> FindingDoc:
    return finding(
        str(outcome["code"]),
        f"{prober.owner}: prober {prober.name!r} failed after it had read all devices",
        outcome["reason"] or outcome["status"],
        "nothing to do for this report; programs that use the same library may hang at their end",
        severity="info",
        prober=prober.name,
        evidence=outcome.get("signal"),
    )


def _unavailable(prober: Prober, outcome: OutcomeDoc) -> FindingDoc:
    return finding(
        "prober-unavailable",
        f"{prober.owner}: prober {prober.name!r} could not query its hardware",
        outcome["reason"] or outcome["status"],
        outcome.get("fix") or f"`probe plugins why-not {prober.name}` shows more",
        prober=prober.name,
        evidence=outcome.get("code"),
    )


def unkillable(prober: Prober) -> FindingDoc:
    """Return the finding about a prober or sampler whose process was abandoned."""
    return finding(
        "prober-unkillable",
        f"{prober.owner}: the process of prober {prober.name!r} cannot be killed",
        "it is stuck in the kernel, usually in a hung driver; it was abandoned",
        "look into the kernel's log, reset the device or reboot the node",
        severity="error",
        prober=prober.name,
        step="responding",
    )


# What a report says of devices over which a prober's process hung, died or raised.
#
# The prober had to go around them, see `probe_core.isolation.launch`.

KERNEL_LINES = {
    "nvidia": "`NVRM: Xid`",
    "amd": "`amdgpu: ring … timeout` or `GPU reset begin!`",
    "intel": "`GPU HANG: ecode` or `GUC: Engine reset failed`",
}
"""What a vendor's kernel driver logs when its device stops responding.

Xid: NVIDIA's catalogue. Ring timeout and reset: pop-os/cosmic-epoch#3764. GPU HANG, GUC:
clearlinux/distribution#2907.
"""

_BUS_LINE = "`AER: … Uncorrected (Fatal) error`"  # pcieport's, as in rwth-i6/returnn#1500

_VERBS = {"hangs": "hung", "crashes": "died", "raises": "raised an exception"}


def mark_unresponsive(
    run: Run, outcome: OutcomeDoc, observations: Sequence[Observation]
) -> list[Failed]:
    """Note the devices that a run had to go around, in its outcome and in what is known of them."""
    if not run.unresponsive:
        return []
    outcome["partial"] = outcome["devices"] > 0
    for lost in run.unresponsive:
        mark(observations, run.prober.name, lost)
    return [(run.prober.name, lost) for lost in run.unresponsive]


def mark(observations: Sequence[Observation], prober: str, lost: Unresponsive) -> None:
    """Add to what is known of the device that it does not respond.

    The prober's own sighting of it has the fact, else the bus's. A prober that already says that
    the step is broken knows better, and an exception is no sign of a device that hangs.
    """
    if lost.how == "raises":
        return
    own = [o for o in observations if not lost.ids.isdisjoint(o.sighting["ids"])]
    own.sort(key=lambda observation: observation.prober != prober)
    if not own or any(_is_broken(observation) for observation in own):
        return
    fact: StepDoc = {
        "step": "responding",
        "status": "broken",
        "evidence": _evidence(prober, lost),
        "code": lost.code,
    }
    sighting = own[0].sighting
    # A new list: the bus's sighting was handed to the probers, and others hold it.
    own[0].sighting = {**sighting, "step_facts": [*sighting.get("step_facts", ()), fact]}


def _is_broken(observation: Observation) -> bool:
    facts = observation.sighting.get("step_facts", ())
    return any(fact["step"] == "responding" and fact["status"] == "broken" for fact in facts)


def _evidence(prober: str, lost: Unresponsive) -> str:
    place = f" at {lost.stuck_at}" if lost.stuck_at and lost.stuck_at not in lost.reason else ""
    return clean_text(f"{prober}: {lost.reason}{place}", 600)


def unresponsive_findings(
    failed: Iterable[Failed], devices: Sequence[DeviceDoc]
) -> list[FindingDoc]:
    """Return a finding for each device; `devices` are those of the report, with their names."""
    return [_finding(prober, lost, _device_of(lost, devices)) for prober, lost in failed]


def _device_of(lost: Unresponsive, devices: Sequence[DeviceDoc]) -> DeviceDoc | None:
    return next((d for d in devices if not lost.ids.isdisjoint(d["ids"])), None)


def _finding(prober: str, lost: Unresponsive, device: DeviceDoc | None) -> FindingDoc:
    identity = device["id"] if device else clean_text(lost.device)
    name = _name(device)
    label = f"{identity} ({name})" if name else identity
    return finding(
        lost.code,
        f"the process of prober {prober!r} {_VERBS[lost.how]} while it asked {label}",
        clean_text(lost.reason, 600),
        _fix(prober, lost, device),
        severity="error",
        device=identity,
        prober=prober,
        step=None if lost.how == "raises" else "responding",
        evidence=lost.stuck_at or _evidence(prober, lost),
    )


def _name(device: DeviceDoc | None) -> str | None:
    """Return the model: its name, else its PCI ids, which name it as surely."""
    if device is None:
        return None
    return device["name"] or pci_model(device)


def _fix(prober: str, lost: Unresponsive, device: DeviceDoc | None) -> str:
    if lost.how == "raises":
        return f"`probe plugins why-not {prober}` shows more; report it to the prober's author"
    vendor = (device["vendor"] if device else None) or ""
    lines = [KERNEL_LINES[vendor]] if vendor in KERNEL_LINES else []
    if device is None or device["id"].startswith("pci:"):
        lines.append(_BUS_LINE)
    wanted = f" ({', '.join(lines)})" if lines else ""
    return f"read the kernel's log{wanted}, then reset the device or reboot the node"


# What a report says of a prober that is not installed, must not run, or reports what no device is.

_EXTRAS = {"nvidia": "nvidia", "amd": "amd", "intel": "intel", "arm": "mali"}
"""Vendor to the extra of probe-core that installs its prober."""

_OTHER_REMEDY = "install a prober for it"


_IF_IT_COMPUTES = "nothing, unless it is an accelerator: then install a prober for it"


def missing_probers(devices: Iterable[DeviceDoc], ran: Collection[str]) -> list[FindingDoc]:
    """Return the findings about devices of which no prober that `ran` knows anything."""
    groups: dict[str, list[DeviceDoc]] = {}
    for device in devices:
        # A crypto card needs no driver of an accelerator: nothing is wrong.
        is_unsure = device["kind"] == "coprocessor"
        fix = _IF_IT_COMPUTES if is_unsure else _remedy(device, ran)
        groups.setdefault(fix, []).append(device)
    return [_no_prober(group, fix) for fix, group in groups.items()]


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
    was = "was" if len(names) == 1 else "were"
    return finding(
        "prober-missing",
        f"{joined(counted, 'and')} {was} detected on the bus only; no plugin for it ran",
        "no plugin that ran knows this kind of device, so memory and clocks are not live",
        fix,
        severity="info",
        device=devices[0]["id"] if len(devices) == 1 else None,
        step="hardware",
    )


def untrusted_probers(decisions: Sequence[Decision]) -> list[FindingDoc]:
    """Return a finding for each reason, which names path and owner: many plugins have the same."""
    by_reason: dict[str, list[Prober]] = {}
    for decision in decisions:
        by_reason.setdefault(decision.reason or "", []).append(decision.prober)
    return [_untrusted(reason, probers) for reason, probers in by_reason.items()]


def _untrusted(reason: str, probers: Sequence[Prober]) -> FindingDoc:
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


def refused_prober(decision: Decision) -> FindingDoc:
    """Return the finding about a prober that must not run, though its hardware is here."""
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


def merge_without_culprits(
    observations: Sequence[Observation],
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Merge without the sightings of those probers whose sightings cannot be merged."""
    from probe_core.pipeline.merge import merge

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


# What a prober itself reports as a finding, and what cannot be true of its answer.

_SENTENCE_LIMIT = 600
"""Characters of a prober's finding: what `probe` prints in three lines at 200 columns."""


def reported(
    prober: Prober, findings: Iterable[object], problems: Sequence[str]
) -> list[FindingDoc]:
    """Return a prober's own findings, and one about the values that were rejected, if any were."""
    checked = filter(None, (check_finding(raw, prober.name) for raw in findings))
    return [*checked, _rejected_values(prober, problems)] if problems else [*checked]


def check_finding(raw: object, prober: str | None = None) -> FindingDoc | None:
    """Return a prober's finding with safe text, or None when a sentence or its code is missing.

    `prober` is who reported it: a prober cannot speak in another's name.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        return None
    sentences = [_text(raw, name, _SENTENCE_LIMIT) for name in ("what", "why", "fix")]
    code, severity = _text(raw, "code", 60), raw.get("severity")
    if code is None or None in sentences:
        return None
    return {
        "code": code,
        "severity": severity if severity in ("info", "warning", "error") else "warning",
        "what": sentences[0] or "",
        "why": sentences[1] or "",
        "fix": sentences[2] or "",
        "device": _text(raw, "device", 256),
        "prober": prober,
        "setting": None,
        "variable": _text(raw, "variable", 80),
        "step": _text(raw, "step", 80),
        "evidence": _text(raw, "evidence", _SENTENCE_LIMIT),
    }


def _text(raw: dict[str, object], name: str, limit: int) -> str | None:
    value = raw.get(name)
    return clean_text(value, limit) if isinstance(value, str) and value else None


def _rejected_values(prober: Prober, problems: Sequence[str]) -> FindingDoc:
    unlisted = len(problems) - MAX_REJECTIONS
    listed = "; ".join(problems[:MAX_REJECTIONS])
    return finding(
        "value-rejected",
        f"{prober.owner}: prober {prober.name!r} reported values that cannot be true",
        f"{listed}; and {unlisted} more" if unlisted > 0 else listed,
        "report it to its author; the values were left out",
        prober=prober.name,
    )


def identity_conflicts(groups: Sequence[Group]) -> list[FindingDoc]:
    """Report each id of devices that was not believed."""
    findings: list[FindingDoc] = []
    owners: dict[str, str] = {}
    if any(device.stray for device in groups):
        owners = {identity: device.name for device in groups for identity in device.ids}
    for device in groups:
        for prober, identity in device.stray:
            findings.append(_stray_id(device, prober, identity, owners.get(identity)))
        for prober, identity in device.refused:
            findings.append(_other_kind(device, prober, identity))
        if len(device.vague) > 1:
            findings.append(_several_uuids(device, device.vague))
    return findings


def _stray_id(device: Group, prober: str, identity: str, owner: str | None) -> FindingDoc:
    own = device.unique_ids.get(single(identity) or "")
    return finding(
        "identity-conflict",
        f"{prober} gives the device {device.name} the id {identity}, which is not its own",
        f"that is {owner}" if owner else f"its own is {own}",
        "disable the prober that is wrong (PROBE_DISABLE)",
        device=device.name,
        prober=prober,
        evidence=identity,
    )


def _other_kind(device: Group, prober: str, identity: str) -> FindingDoc:
    return finding(
        "identity-conflict",
        f"{prober} reports a processor under the id {identity}",
        f"that is {device.name}, which is no processor; the report has no other id of it",
        "disable the prober that is wrong (PROBE_DISABLE)",
        device=device.name,
        prober=prober,
        evidence=identity,
    )


def _several_uuids(device: Group, uuids: Sequence[str]) -> FindingDoc:
    probers = dict.fromkeys(member.prober for _, member in sorted(device.members.items()))
    return finding(
        "identity-conflict",
        f"the device {device.name} has {len(uuids)} UUIDs: {', '.join(uuids)}",
        f"sightings of {', '.join(probers)} share another id",
        "if these are two devices, disable the prober that joined them (PROBE_DISABLE)",
        device=device.name,
        evidence=", ".join(uuids),
    )
