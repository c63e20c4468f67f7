"""From broken steps to findings: the cause, the evidence, and the fix for this situation.

One finding for a device and a cause; equal devices with one cause share it.
"""

from __future__ import annotations

from probe_core.machine.access import MISSING
from probe_core.model.causes import CAUSES
from probe_core.model.findings import finding
from probe_core.model.ids import ACCELERATORS, SEVERITIES
from probe_core.model.verdict import broken_step, is_integrated, usable_here
from probe_core.readiness.fixes import fix_of, meaning_of
from probe_core.readiness.node import required
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, Severity, StepDoc
    from probe_core.model.verdict import Answer
    from probe_core.readiness.scene import Scene

    Group = list[tuple[DeviceDoc, StepDoc]]

__all__ = ["Usable", "finding_of", "findings", "severity_of"]

# What keeps the processor's own graphics from a process, and is missed by nobody beside a card.
_OPTIONAL = ("driver", "node", "permission", "granted")

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
    usable = Usable(devices)
    for device in devices:
        _judge_severity(device, reported, scene, usable)
        step = broken_step(device)
        if step is None or step["step"] in _TOLD_ELSEWHERE:
            continue
        if _is_told(device, step, reported):
            continue
        if _cause(step) in shared:
            continue
        key = (step["step"], step["code"] or "", device["name"] or device["vendor"])
        groups.setdefault(key, []).append((device, step))
    return [finding_of(group, scene, usable) for group in groups.values()]


class Usable:
    """What this process was given: the vendors of accelerators, and whether one is a card."""

    __slots__ = ("has_card", "vendors")

    def __init__(self, devices: Iterable[DeviceDoc]) -> None:
        accelerators = (d for d in devices if d["kind"] in ACCELERATORS)
        usable = [d for d in accelerators if _is_granted(usable_here(d))]
        self.vendors = {device["vendor"] for device in usable}
        self.has_card = any(d["kind"] == "gpu" and not is_integrated(d) for d in usable)


def _is_granted(answer: Answer) -> bool:
    """Return whether a device was given to this process: a variable hides only what it has.

    A job's variable may count the host's GPUs where a container was given one (NVIDIA/pyxis#47).
    """
    return answer.usable is not False or answer.step == "visible"


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


def finding_of(group: Group, scene: Scene, usable: Usable) -> FindingDoc:
    """Return the finding about equal devices that have one broken step."""
    device, step = group[0]
    code = _code(step)
    return finding(
        code,
        f"{_names([device for device, _ in group])}: {meaning_of(device, step, scene)}",
        step["evidence"] or f"the step {step['step']} is broken",
        fix_of(device, step, scene),
        severity=severity_of(device, step, scene, usable),
        device=device["id"] if len(group) == 1 else None,
        prober=step.get("prober"),
        step=step["step"],
        evidence=step["evidence"],
    )


def severity_of(
    device: DeviceDoc,
    step: StepDoc,
    scene: Scene,
    usable: Usable,
    reported: Iterable[FindingDoc] = (),
) -> Severity:
    """Return the severity of a broken step, which the report and the doctor share.

    It is the cause's own, or a notice where other devices show that the break is meant or not
    missed; never less than what probers `reported` of the same break.
    """
    cause = CAUSES.get(step["code"] or "")
    is_minor = _is_slice(device, step, scene, usable) or _is_spare(device, step, usable)
    worst: Severity = "error" if cause is None or step.get("blocks") else cause.severity
    own: Severity = "info" if is_minor else worst
    return max((own, *(entry["severity"] for entry in reported)), key=SEVERITIES.index)


def _judge_severity(
    device: DeviceDoc, reported: Iterable[FindingDoc], scene: Scene, usable: Usable
) -> None:
    """Write the severity of each broken step to it, and to what probers `reported` of the same."""
    readiness = device.get("readiness")
    for step in readiness["steps"] if readiness else ():
        if step["status"] != "broken":
            continue
        same = [
            entry
            for entry in reported
            if device["id"] == entry["device"] and entry["step"] == step["step"]
        ]
        step["severity"] = severity_of(device, step, scene, usable, same)
        for entry in same:
            entry["severity"] = severity_of(device, step, scene, usable, [entry])


def _is_slice(device: DeviceDoc, step: StepDoc, scene: Scene, usable: Usable) -> bool:
    """Return whether a part of the devices was left out on purpose.

    A container that has a card was given what it has, and of other devices no node; one override
    is meant for one of several GPUs, as a rule leaves out one of them.
    """
    lacks_nodes = step["step"] == "node" and scene.container is not None and usable.has_card
    if lacks_nodes and all(scene.access(path) == MISSING for path in required(device, scene)):
        return True
    by_vendor = step["step"] in ("node", "granted") or step["code"] == "hsa-override-foreign"
    return by_vendor and device["vendor"] in usable.vendors


def _is_spare(device: DeviceDoc, step: StepDoc, usable: Usable) -> bool:
    """Return whether a device is the processor's own graphics beside a card that is used.

    Over ssh hardly any user is in its group, and servers with cards boot with nomodeset.
    """
    return usable.has_card and step["step"] in _OPTIONAL and is_integrated(device)


def _code(step: StepDoc) -> str:
    """Return the finding's code: a passthrough driver had one before causes were told apart."""
    if step["code"] == "reserved-for-vm" or step["code"] not in CAUSES:
        return "no-driver" if step["step"] == "driver" else "device-blocked"
    return step["code"] or "device-blocked"


def _names(devices: list[DeviceDoc]) -> str:
    """Return "2 × NVIDIA A100 (0000:01:00.0 and 0000:02:00.0)"."""
    name, count = devices[0]["name"], len(devices)
    own = [device["id"].removeprefix("pci:") for device in devices[:4]]
    ids = joined([*own, f"{count - 4} more"] if count > 4 else own, "and")
    if name is None:
        return ids
    return f"{name} ({ids})" if count == 1 else f"{count} × {name} ({ids})"
