"""The order of findings: the first break first, and what follows from it folded under it."""

from __future__ import annotations

from time import perf_counter

from probe_core import __version__
from probe_core.doctor.causes import broken_findings, builtin_checks, fixed, shown
from probe_core.doctor.check import ENVIRONMENT, failed, unknown
from probe_core.doctor.log import first_sign
from probe_core.model.causes import CAUSES
from probe_core.model.findings import NO_FIX
from probe_core.model.ids import ACCELERATORS, STEPS, driver_text
from probe_core.model.verdict import NodeVerdict, state_of, state_word
from probe_core.readiness.actions import parts_of_text
from probe_core.readiness.chain import conclusion
from probe_core.readiness.hardware import BY_STATUS
from probe_core.wording import error_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from probe_core.doctor.causes import Broken
    from probe_core.doctor.check import Check, Request, ResultDoc
    from probe_core.doctor.document import (
        CheckDoc,
        DeviceStateDoc,
        DoctorDoc,
        NodeDoc,
        ShownFindingDoc,
        WheelDoc,
    )
    from probe_core.doctor.remote import RemoteCheck
    from probe_core.model.document import DeviceDoc, ReportDoc, StepDoc


_SEVERITIES = {"error": 0, "warning": 1, "info": 2}
_LAST = len(STEPS)

# What a plugin says when its hardware does not answer: the break itself says it better.
_OF_PLUGINS = (
    "prober-unavailable",
    "prober-failed",
    "prober-raises",
    "driver-hangs",
    "driver-crashes",
    "driver-disagrees",
)

# What the kernel logged of a device that is out of use: part of that break, not one of its own.
_OF_LOG = ("xid-seen", "amdgpu-reset-seen")
_OF_DEVICE = ("hardware", "responding")

# The general fix of a step that a plugin broke points to the finding about that plugin.
_NO_FIXES = ("", NO_FIX, CAUSES["query-fails"].fix)

# Code to the code of what it follows from: an environment's wheels are built for its Python.
_FOLLOWS = {"wheel-other-architecture": "environment-other-architecture"}

# A value that has another effect than it suggests, and what it hides so.
_FAULTS = ("variable-stops-at", "variable-skips", "variable-breaks")
_HIDDEN = "hidden-by-variable"


def ordered(findings: Sequence[ShownFindingDoc], request: Request) -> list[ShownFindingDoc]:
    """Return the findings by severity and step; alike ones together, consequences folded."""
    merged = _alike(findings)
    merged.sort(key=_rank)
    return _folded(merged, request)


def _rank(finding: ShownFindingDoc) -> tuple[int, bool, bool, bool, int]:
    """Return a key by severity, then by how deep the evidence lies.

    A plugin that root must not run comes first: without it nobody asked its devices. What the
    kernel or a library says of a break comes before how a plugin ended, and both before what the
    report has of plugins and settings.
    """
    step, code = finding["step"], finding["code"]
    place = STEPS.index(step) if step in STEPS else _LAST
    is_break = code in CAUSES or "wheel" in finding
    is_refusal = code == "prober-refused"
    return _severity(finding), not is_refusal, not is_break, code in _OF_PLUGINS, place


def _severity(finding: ShownFindingDoc) -> int:
    return _SEVERITIES.get(finding["severity"], 1)


def _alike(findings: Iterable[ShownFindingDoc]) -> list[ShownFindingDoc]:
    """Join the findings about several devices with one cause, reason and fix."""
    by_key: dict[tuple[str, ...], ShownFindingDoc] = {}
    for finding in findings:
        key = (
            finding["code"],
            finding["severity"],
            finding["why"],
            finding["fix"],
            finding.get("wheel", ""),
            # Without a device the sentence is what tells two apart.
            "" if devices_of(finding) else finding["what"],
        )
        first = by_key.setdefault(key, finding)
        if first is not finding:
            devices = dict.fromkeys([*devices_of(first), *devices_of(finding)])
            first["devices"] = list(devices)
    return list(by_key.values())


def _folded(findings: Sequence[ShownFindingDoc], request: Request) -> list[ShownFindingDoc]:
    """Put what a plugin reports under the break of its devices that explains it.

    A break that has no fix of its own takes over that of what it explains.
    """
    result: list[ShownFindingDoc] = []
    vendors = {device["id"]: device for device in request.report["devices"]}
    for finding in findings:
        cause = next((other for other in findings if _explains(other, finding, vendors)), None)
        if cause is None:
            result.append(finding)
        else:
            cause.setdefault("follows", []).append(
                {"code": finding["code"], "what": finding["what"]}
            )
            if cause["fix"] in _NO_FIXES:
                fixed(cause, parts_of_text(finding["fix"]), request)
            elif _knows_more(finding, cause):
                cause["fix"] = finding["fix"]
                if "action" in finding:
                    cause["action"] = finding["action"]
    return result


def _knows_more(finding: ShownFindingDoc, cause: ShownFindingDoc) -> bool:
    """Return whether the kernel's number of an error says what ends a state that a plugin told."""
    return finding["code"] in _OF_LOG and cause["prober"] is not None


def _explains(
    cause: ShownFindingDoc, finding: ShownFindingDoc, devices: dict[str, DeviceDoc]
) -> bool:
    if cause["code"] == _FOLLOWS.get(finding["code"]):
        return True
    if finding["code"] == _HIDDEN and cause["code"] in _FAULTS:
        return cause["variable"] == finding["variable"]
    if finding["code"] in _OF_LOG and cause["step"] in _OF_DEVICE:
        concerned = {*devices_of(finding)}
        is_worse = cause["severity"] == "error" and cause["code"] not in _OF_LOG
        return is_worse and bool(concerned) and concerned <= {*devices_of(cause)}
    if cause is finding or finding["code"] not in _OF_PLUGINS or cause["step"] not in STEPS:
        return False
    # A notice explains no error: one card is slow to start, and another hangs.
    if _severity(cause) > _severity(finding):
        return False
    evidence = finding["evidence"] or ""
    # How a plugin's process ended is what shows of a driver that hangs or crashes.
    if cause["code"] in _OF_PLUGINS and cause["code"] != BY_STATUS.get(evidence, evidence):
        return False
    if finding["code"] == "prober-unavailable" and finding["evidence"] == cause["code"]:
        return True
    concerned = _concerned(finding, devices)
    return bool(concerned) and concerned <= {*devices_of(cause)}


def _concerned(finding: ShownFindingDoc, devices: Mapping[str, DeviceDoc]) -> set[str]:
    """Return the devices that a finding is about; of a plugin as a whole those that are its own."""
    named = devices_of(finding)
    if named:
        return {*named}
    prober = finding["prober"]
    return {
        name
        for name, device in devices.items()
        if device["kind"] in ACCELERATORS and prober in (device["vendor"], *device["seen_by"])
    }


# Run every check over one look at a machine, and put the doctor's document together.

SCHEMA = 1


def all_checks() -> list[Check]:
    """Return the core's checks, in the order of the chain."""
    from probe_core.doctor import installation
    from probe_core.doctor.checks import further_checks

    return builtin_checks([*further_checks(), *installation.CHECKS])


def examine(
    request: Request,
    *,
    remote: Iterable[RemoteCheck] = (),
    only: Collection[str] = (),
) -> DoctorDoc:
    """Return the doctor's document; `only` names the checks to run, all where it is empty.

    `remote` are the answers of other distributions' checks. Raises nothing that a machine, or a
    check, could cause.
    """
    broken = broken_findings(request)
    findings = [*broken.findings, *_reported(request, broken)]
    if only:  # findings of checks may have codes of their own, and come below
        findings = [finding for finding in findings if finding["code"] in only]
    codes = {finding["code"] for finding in findings}
    checks: list[CheckDoc] = []
    wheels: list[WheelDoc] = []
    for check in all_checks():
        needs_more = ENVIRONMENT in check.needs and request.environment is None
        if (only and check.code not in only) or needs_more:
            continue
        started = perf_counter()
        # A cause that is among the findings already is not looked for once more.
        result = failed() if check.code in codes else _result(check, request)
        findings += map(shown, result["findings"])
        checks.append(_entry(check.code, result, (perf_counter() - started) * 1000))
    for answer in remote:
        if answer.result is not None and (not only or answer.code in only):
            findings += map(shown, answer.result["findings"])
            request.facts.update(answer.result.get("facts", {}))
            wheels += answer.result.get("wheels", ())
            entry = _entry(answer.code, answer.result, answer.ms)
            checks.append({**entry, "distribution": answer.distribution})
    document = _document(request, findings, checks, not only and request.device is None)
    if wheels:
        document["wheels"] = wheels
    return document


def _result(check: Check, request: Request) -> ResultDoc:
    try:
        return check.run(request)
    except Exception as error:  # whatever a file held, the other checks run
        return unknown(f"the check raised: {error_text(error, 200)}")


def _entry(code: str, result: ResultDoc, milliseconds: float) -> CheckDoc:
    entry: CheckDoc = {"code": code, "status": result["status"], "ms": round(milliseconds, 3)}
    if result["reason"] is not None:
        entry["reason"] = result["reason"]
    if "fix" in result:
        entry["fix"] = result["fix"]
    return entry


def _reported(request: Request, broken: Broken) -> list[ShownFindingDoc]:
    """Return the report's own findings but for those about the broken steps."""
    about_steps = {id(entry) for entry in broken.reported}
    own = [shown(entry) for entry in request.report["findings"] if id(entry) not in about_steps]
    _explain_absent(request, own)
    return own


def _explain_absent(request: Request, findings: Iterable[ShownFindingDoc]) -> None:
    """Give what is absent the first sign of why that the kernel logged, where it logged one."""
    expected = request.report.get("expected")
    for entry in expected["absent"] if expected else ():
        sign = first_sign(request, entry["place"], entry["port"])
        if sign is None:
            continue
        entry["sign"] = sign
        code = "fewer-than-expected" if entry["device"] is None else "off-the-bus"
        for found in findings:
            if found["code"] == code and found["device"] == entry["device"]:
                found["evidence"] = sign


def _document(
    request: Request,
    findings: list[ShownFindingDoc],
    checks: list[CheckDoc],
    whole: bool,
) -> DoctorDoc:
    report = reconciled(request.report, findings)
    devices = [device for device in report["devices"] if _is_asked(device, request)]
    selected = [finding for finding in findings if _concerns(finding, request)]
    failed = any(finding["severity"] == "error" for finding in selected)
    document: DoctorDoc = {
        "schema": SCHEMA,
        "probe_core": __version__,
        "system": _system(request),
        "healthy": not failed,
        "findings": ordered(selected, request),
        "devices": [_state(device) for device in devices],
        "checks": checks,
    }
    if whole:
        node = NodeVerdict(report)
        document["healthy"] = _is_healthy(node, failed)
        document["node"] = _node(node)
    return document


def _is_healthy(node: NodeVerdict, failed: bool) -> bool | None:
    if failed or node.failed:
        return False
    return None if node.state == "unknown" else True


def _node(node: NodeVerdict) -> NodeDoc:
    def ids(devices: Iterable[DeviceDoc]) -> list[str]:
        return [device["id"] for device in devices]

    return {
        "state": node.state,
        "usable": ids(node.usable),
        "grantable": ids(node.grantable),
        "missing": ids(node.missing),
        "set_aside": ids(node.set_aside),
        "cause": node.cause,
    }


def _is_asked(device: DeviceDoc, request: Request) -> bool:
    if device["kind"] not in ACCELERATORS:
        return False
    return request.device is None or device["id"] == request.device


def _concerns(finding: ShownFindingDoc, request: Request) -> bool:
    """Return whether a finding is about the device that is asked about, or about none."""
    if request.device is None or finding["device"] == request.device:
        return True
    shared = finding.get("devices")
    return request.device in shared if shared else finding["device"] is None


def _state(device: DeviceDoc) -> DeviceStateDoc:
    return {
        "id": device["id"],
        "name": device["name"],
        "kind": device["kind"],
        "vendor": device["vendor"],
        "driver": driver_text(device),
        "link": _link(device),
        "memory": device["memory"]["total"],
        "state": state_word(device),
        "readiness": device["readiness"],
    }


def _link(device: DeviceDoc) -> str | None:
    """Return "PCIe 4 ×16", and what it could be where that is more lanes."""
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    width = link and link.get("local_width")
    if not link or not width:
        return None
    most = link.get("local_max_width") or width
    generation = link.get("local_generation")
    text = f"PCIe {generation} ×{width}" if generation else f"PCIe ×{width}"
    return text if most <= width else f"{text} of {most}"


def _system(request: Request) -> str:
    """Return the distribution and kernel: "ubuntu 24.04, linux 6.8.0-86-generic"."""
    from probe_core.readiness.distributions import os_release

    node = request.report["node"]
    kernel = f"{node['os']} {node['kernel'] or ''}".strip()
    if node["os"] != "linux":
        return kernel
    fields = os_release(request.machine)
    name = f"{fields.get('ID', '')} {fields.get('VERSION_ID', '')}".strip()
    return f"{name}, {kernel}" if name else kernel


# What a check finds against the report, so that one document does not say two things of a device.
#
# A report reads what is cheap and open to everybody; the doctor's checks read more, such as the log
# of the kernel, which is often root's. Where a check finds an error of a device that the report has
# in use, the document has the worse of the two, and the finding says both.


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
        steps[finding["step"] or ""] = _broken_step(finding)
        result = {**result, "readiness": conclusion(steps.values())}
    return result


def _other_side(device: DeviceDoc) -> str:
    """Return what the report has of the device: its state, and the steps that it rests on."""
    steps = device["readiness"]["steps"]
    held = [step["step"] for step in steps if step["status"] == "ok"]
    verb = "holds" if len(held) == 1 else "hold"
    rest = f": {joined(held, 'and')} {verb}" if held else ""
    return f"the report has it as {state_of(device)}{rest}"


def _broken_step(finding: ShownFindingDoc) -> StepDoc:
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
