"""From broken steps to findings: the cause, the evidence, and the fix for this situation.

One finding for a device and a cause; equal devices with one cause share it.
"""

from __future__ import annotations

from probe_core.model.causes import CAUSES
from probe_core.model.findings import SEVERITIES, finding
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.readiness import blocked, broken_step
from probe_core.readiness.remedies import fix_of, meaning_of
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, Severity, StepDoc
    from probe_core.readiness.scene import Scene

    Group = list[tuple[DeviceDoc, StepDoc]]

__all__ = ["finding_of", "findings", "severity_of", "usable_vendors"]

# Visibility explains each variable itself, and its findings carry the step.
_TOLD_ELSEWHERE = ("visible",)


def findings(
    devices: Sequence[DeviceDoc], scene: Scene, reported: Sequence[FindingDoc]
) -> list[FindingDoc]:
    """Return the findings about broken steps that none of the `reported` is about.

    A `reported` finding about a broken step gets the severity of its cause, where that is higher.
    """
    groups: dict[tuple[str, str, str | None], Group] = {}
    shared = _shared(devices, reported)
    usable = usable_vendors(devices)
    for device in devices:
        step = broken_step(device)
        if step is None or step["step"] in _TOLD_ELSEWHERE:
            continue
        _raise_severity(device, step, reported, usable)
        if _is_told(device, step, reported):
            continue
        if _cause(step) in shared:
            continue
        key = (step["step"], step["code"] or "", device["name"] or device["vendor"])
        groups.setdefault(key, []).append((device, step))
    return [finding_of(group, scene, usable) for group in groups.values()]


def usable_vendors(devices: Sequence[DeviceDoc]) -> set[str | None]:
    """Return the vendors of which at least one accelerator is not blocked."""
    return {device["vendor"] for device in devices if _is_usable(device)}


def _cause(step: StepDoc) -> tuple[str | None, str, str | None]:
    return step.get("prober"), step["step"], step["code"]


def _shared(
    devices: Sequence[DeviceDoc], reported: Sequence[FindingDoc]
) -> set[tuple[str | None, str, str | None]]:
    """Return the causes of which a prober's own finding names one device for all that share it."""
    steps = {device["id"]: broken_step(device) for device in devices}
    return {
        _cause(step)
        for entry in reported
        if (step := steps.get(entry["device"] or "")) is not None
        and entry["prober"] is not None
        and (entry["prober"], entry["step"]) == (step.get("prober"), step["step"])
    }


def _is_usable(device: DeviceDoc) -> bool:
    return device["kind"] in ACCELERATORS and not blocked(device)


def _is_told(device: DeviceDoc, step: StepDoc, reported: Sequence[FindingDoc]) -> bool:
    """Return whether a prober explains the same: for the device, or why it cannot query."""
    for entry in reported:
        if device["id"] == entry["device"] and (
            entry["step"] == step["step"] or entry["code"] == step["code"]
        ):
            return True
        if entry["code"] == "prober-unavailable" and entry["evidence"] == step["code"]:
            return True
    # How a plugin ended is a finding of its own.
    return step["code"] in ("query-fails", "driver-crashes", "driver-hangs") and not step.get(
        "prober"
    )


def finding_of(group: Group, scene: Scene, usable: Collection[str | None]) -> FindingDoc:
    """Return the finding about equal devices that have one broken step; see `usable_vendors`."""
    device, step = group[0]
    code = _code(step)
    return finding(
        code,
        f"{_names([device for device, _ in group])}: {meaning_of(device, step, scene)}",
        step["evidence"] or f"the step {step['step']} is broken",
        fix_of(device, step, scene),
        severity=severity_of(device, step, usable),
        device=device["id"] if len(group) == 1 else None,
        prober=step.get("prober"),
        step=step["step"],
        evidence=step["evidence"],
    )


def severity_of(
    device: DeviceDoc,
    step: StepDoc,
    usable: Collection[str | None],
    reported: Iterable[FindingDoc] = (),
) -> Severity:
    """Return the severity of a broken step, which the report and the doctor share.

    It is the cause's own, and a notice where a part of a vendor's devices was left out on purpose;
    never less than what probers `reported` of the same break.
    """
    cause = CAUSES.get(step["code"] or "")
    # One override is meant for one of several GPUs, as a rule leaves out one of them.
    is_slice = step["step"] in ("node", "granted") or step["code"] == "hsa-override-foreign"
    is_slice = is_slice and device["vendor"] in usable
    own: Severity = "error" if cause is None else cause.severity
    own = "info" if is_slice or _is_spare(device, step, usable) else own
    return max((own, *(entry["severity"] for entry in reported)), key=SEVERITIES.index)


def _raise_severity(
    device: DeviceDoc,
    step: StepDoc,
    reported: Iterable[FindingDoc],
    usable: Collection[str | None],
) -> None:
    for entry in reported:
        if device["id"] == entry["device"] and entry["step"] == step["step"]:
            entry["severity"] = severity_of(device, step, usable, [entry])


def _is_spare(device: DeviceDoc, step: StepDoc, usable: Collection[str | None]) -> bool:
    """Return whether a device is the processor's own graphics beside another vendor's card.

    Over ssh hardly any user is in its group, and nobody misses it where the card is used.
    """
    integrated = device["kind"] == "gpu" and device["memory"]["kind"] in ("shared", "unified")
    cards = {"amd", "intel", "nvidia"}.intersection(filter(None, usable)) - {device["vendor"]}
    return integrated and step["step"] == "permission" and bool(cards)


def _code(step: StepDoc) -> str:
    """Return the finding's code: a passthrough driver had one before causes were told apart."""
    if step["code"] == "reserved-for-vm" or step["code"] not in CAUSES:
        return "no-driver" if step["step"] == "driver" else "device-blocked"
    return step["code"] or "device-blocked"


def _names(devices: list[DeviceDoc]) -> str:
    """Return "2 × NVIDIA A100 (0000:01:00.0 and 0000:02:00.0)"."""
    name = devices[0]["name"]
    ids = joined((device["id"].removeprefix("pci:") for device in devices[:4]), "and")
    remainder = f" and {len(devices) - 4} more" if len(devices) > 4 else ""
    if name is None:
        return f"{ids}{remainder}"
    return f"{name} ({ids})" if len(devices) == 1 else f"{len(devices)} × {name} ({ids}{remainder})"
