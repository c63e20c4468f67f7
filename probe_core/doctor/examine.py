"""Run every check over one look at a machine, and put the doctor's document together."""

from __future__ import annotations

from time import perf_counter

from probe_core import __version__
from probe_core.doctor.broken import broken_findings, shown
from probe_core.doctor.causes import builtin_checks
from probe_core.doctor.check import ENVIRONMENT
from probe_core.doctor.order import ordered
from probe_core.model.kinds import ACCELERATORS
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from probe_core.doctor.answers import RemoteCheck
    from probe_core.doctor.broken import Broken
    from probe_core.doctor.check import Check, CheckFindingDoc, Request, ResultDoc
    from probe_core.doctor.document import (
        CheckDoc,
        DeviceStateDoc,
        DoctorDoc,
        ShownFindingDoc,
        WheelDoc,
    )
    from probe_core.model.document import DeviceDoc

__all__ = ["SCHEMA", "all_checks", "examine", "is_healthy"]

SCHEMA = 1


def all_checks() -> list[Check]:
    """Return the core's checks, in the order of the chain."""
    from probe_core.doctor.checks import further_checks

    return builtin_checks(further_checks())


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
        if (only and check.code not in only) or _needs_more(check, request):
            continue
        started = perf_counter()
        result = _failed(check, codes) or _result(check, request)
        findings += map(_of_check, result["findings"])
        checks.append(_entry(check.code, result, (perf_counter() - started) * 1000))
    for answer in remote:
        if answer.result is not None and (not only or answer.code in only):
            findings += map(_of_check, answer.result["findings"])
            request.facts.update(answer.result.get("facts", {}))
            wheels += answer.result.get("wheels", ())
            entry = _entry(answer.code, answer.result, answer.ms)
            checks.append({**entry, "distribution": answer.distribution})
    document = _document(request, findings, checks)
    if wheels:
        document["wheels"] = wheels
    return document


def _needs_more(check: Check, request: Request) -> bool:
    return ENVIRONMENT in check.needs and request.environment is None


def _failed(check: Check, codes: Collection[str]) -> ResultDoc | None:
    """Return the result of a check whose cause is among the findings already."""
    if check.code not in codes:
        return None
    return {"status": "failed", "findings": [], "reason": None}


def _result(check: Check, request: Request) -> ResultDoc:
    try:
        return check.run(request)
    except Exception as error:  # whatever a file held, the other checks run
        reason = f"the check raised: {error_text(error, 200)}"
        return {"status": "unknown", "findings": [], "reason": reason}


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
    return [shown(entry) for entry in request.report["findings"] if id(entry) not in about_steps]


def _of_check(finding: CheckFindingDoc) -> ShownFindingDoc:
    result: ShownFindingDoc = finding  # type: ignore[assignment]  # the same with two more keys
    return result


def _document(
    request: Request,
    findings: list[ShownFindingDoc],
    checks: list[CheckDoc],
) -> DoctorDoc:
    devices = [device for device in request.report["devices"] if _is_asked(device, request)]
    selected = [finding for finding in findings if _concerns(finding, request)]
    selected = ordered(selected, request.report)
    return {
        "schema": SCHEMA,
        "probe_core": __version__,
        "system": _system(request),
        "healthy": not any(finding["severity"] == "error" for finding in selected),
        "findings": selected,
        "devices": [_state(device) for device in devices],
        "checks": checks,
    }


def is_healthy(document: DoctorDoc) -> bool:
    """Return whether no finding is an error or a warning."""
    return all(finding["severity"] == "info" for finding in document["findings"])


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
        "driver": _driver(device),
        "link": _link(device),
        "memory": device["memory"]["total"],
        "readiness": device["readiness"],
    }


def _driver(device: DeviceDoc) -> str | None:
    driver = device["driver"] or {}
    return " ".join(filter(None, (driver.get("name"), driver.get("version")))) or None


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
