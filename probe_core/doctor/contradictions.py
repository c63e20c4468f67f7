"""What a check finds against the report, so that one document does not say two things of a device.

A report reads what is cheap and open to everybody; the doctor's checks read more, such as the log
of the kernel, which is often root's. Where a check finds an error of a device that the report has
in use, the document has the worse of the two, and the finding says both.
"""

from __future__ import annotations

from probe_core.model.readiness import STEPS
from probe_core.model.verdict import state_of
from probe_core.readiness.chain import conclusion
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.doctor.document import ShownFindingDoc
    from probe_core.model.document import DeviceDoc, ReportDoc, StepDoc


def reconciled(report: ReportDoc, findings: Sequence[ShownFindingDoc]) -> ReportDoc:
    """Return the report with the devices' readiness as its steps and all findings amount to.

    A finding against a device that the report has in use is given `contradicts`.
    """
    errors = [finding for finding in findings if _is_break(finding)]
    if not errors:
        return report
    devices = [_worse(device, errors) for device in report["devices"]]
    return {**report, "devices": devices, "findings": [*report["findings"], *errors]}


def _is_break(finding: ShownFindingDoc) -> bool:
    """Return whether a finding is an error of a device itself, not of a program for it."""
    is_step = finding["step"] in STEPS and "wheel" not in finding
    return is_step and finding["severity"] == "error" and bool(devices_of(finding))


def devices_of(finding: ShownFindingDoc) -> list[str]:
    """Return the ids of the devices that a finding is about."""
    device = finding["device"]
    return finding.get("devices") or ([device] if device else [])


def _worse(device: DeviceDoc, errors: Iterable[ShownFindingDoc]) -> DeviceDoc:
    """Return a device with the steps that errors of checks break; itself where none does."""
    result = device
    for finding in errors:
        steps = {step["step"]: step for step in result["readiness"]["steps"]}
        own = steps.get(finding["step"] or "")
        is_said = own is not None and own["status"] == "broken"
        if device["id"] not in devices_of(finding) or is_said or state_of(result) == "blocked":
            continue
        finding["contradicts"] = _other_side(device)
        steps[finding["step"] or ""] = _step(finding)
        result = {**result, "readiness": conclusion(steps.values())}
    return result


def _other_side(device: DeviceDoc) -> str:
    """Return what the report has of the device: its state, and the steps that it rests on."""
    steps = device["readiness"]["steps"]
    held = [step["step"] for step in steps if step["status"] == "ok"]
    verb = "holds" if len(held) == 1 else "hold"
    rest = f": {joined(held, 'and')} {verb}" if held else ""
    return f"the report has it as {state_of(device)}{rest}"


def _step(finding: ShownFindingDoc) -> StepDoc:
    text = finding["evidence"] or finding["why"]
    step: StepDoc = {
        "step": finding["step"] or "",
        "status": "broken",
        "evidence": f"{text}; but {finding['contradicts']}",
        "code": finding["code"],
        "severity": "error",
        # A cause that limits others by rule is an error here: the device is out of use.
        "blocks": True,
    }
    return step
