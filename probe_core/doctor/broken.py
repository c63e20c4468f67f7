"""The findings about broken steps: each cause with its evidence and its exact fix.

They are made of the steps that the report has. A prober's own finding about the same break gives
its reason and, where the core has no exact command, its fix.
"""

from __future__ import annotations

from probe_core.model.causes import CAUSES
from probe_core.model.findings import finding
from probe_core.model.kinds import ACCELERATORS
from probe_core.readiness.findings import Usable, finding_of, severity_of
from probe_core.readiness.remedies import is_exact, meaning_of
from probe_core.readiness.steps import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probe_core.doctor.check import Request
    from probe_core.doctor.document import ShownFindingDoc
    from probe_core.model.document import DeviceDoc, FindingDoc, StepDoc

    Group = list[tuple[DeviceDoc, StepDoc]]

__all__ = ["Broken", "broken_findings", "of_cause", "shown"]

_NAMES = frozenset({"nouveau", "nova", "radeon", "amdgpu", "macOS", "libcuda", "nvidia", "xe"})
"""Names that a sentence may begin with, and that are written in lower case."""

_BY_VISIBILITY = "visible"
"""The step whose findings visibility makes, one for each variable."""


class Broken:
    """The findings of broken steps, and the report's own findings that they stand for."""

    __slots__ = ("findings", "reported")

    def __init__(self) -> None:
        self.findings: list[ShownFindingDoc] = []
        self.reported: list[FindingDoc] = []


def broken_findings(request: Request) -> Broken:
    """Return a finding for each cause and kind of device that has a broken step."""
    devices = request.report["devices"]
    usable = Usable(devices)
    result = Broken()
    for group in _groups(request):
        own = _own_findings(group, request.report["findings"])
        result.reported += own
        result.findings.append(_finding(group, own, request, usable))
    return result


def _groups(request: Request) -> Iterator[Group]:
    groups: dict[tuple[str, str, str | None], Group] = {}
    for device in request.report["devices"]:
        if device["kind"] in ACCELERATORS:
            for entry in _broken_steps(device):
                step = _named(device, entry, request.report["findings"])
                key = (step["step"], step["code"] or "", device["name"] or device["vendor"])
                groups.setdefault(key, []).append((device, step))
    yield from groups.values()


def _broken_steps(device: DeviceDoc) -> Iterator[StepDoc]:
    readiness = device.get("readiness")
    for step in readiness["steps"] if readiness else ():
        if step["status"] == "broken" and step["step"] != _BY_VISIBILITY:
            yield step


def _named(device: DeviceDoc, step: StepDoc, reported: Iterable[FindingDoc]) -> StepDoc:
    """Return a step that says no more than that a plugin cannot query by the cause it gave."""
    if step["code"] != "query-fails":
        return step
    for entry in reported:
        cause = CAUSES.get(entry["evidence"] or "")
        is_own = entry["prober"] in (device["vendor"], *device["seen_by"])
        if entry["code"] == "prober-unavailable" and is_own and cause is not None:
            return broken(cause.step, cause.code, entry["why"])
    return step


def _own_findings(group: Group, reported: Iterable[FindingDoc]) -> list[FindingDoc]:
    """Return the report's findings about the same break."""
    code, step = group[0][1]["code"], group[0][1]["step"]
    codes = {code, "no-driver" if step == "driver" else "device-blocked"}
    ids = {device["id"] for device, _ in group}
    return [
        entry
        for entry in reported
        if (entry["device"] in ids and (entry["step"] == step or entry["code"] == code))
        or (entry["device"] is None and entry["step"] == step and entry["code"] in codes)
    ]


def _finding(
    group: Group, own: Sequence[FindingDoc], request: Request, usable: Usable
) -> ShownFindingDoc:
    step = group[0][1]
    base = finding_of(group, request.scene, usable)
    result = shown(base)
    result["code"] = step["code"] or base["code"]
    # The device stands beside it: the sentence need not name it again.
    result["what"] = _sentence(meaning_of(group[0][0], step, request.scene))
    by_prober = next((entry for entry in own if entry["prober"] is not None), None)
    if by_prober is not None:
        result["why"], result["prober"] = by_prober["why"], by_prober["prober"]
        if not is_exact(*group[0], request.scene):
            result["fix"] = by_prober["fix"]
    result["severity"] = severity_of(*group[0], request.scene, usable, own)
    if len(group) > 1:
        result["devices"] = [device["id"] for device, _ in group]
    return result


def _sentence(text: str) -> str:
    """Return a clause as a sentence, unless it begins with the name of a program or file."""
    name = text.partition(" ")[0]
    is_name = not name.isalpha() or name in _NAMES
    return text if is_name else text[:1].upper() + text[1:]


def shown(entry: FindingDoc) -> ShownFindingDoc:
    """Return a copy of a finding of the report, to which the doctor adds keys of its own."""
    copy: ShownFindingDoc = {
        "code": entry["code"],
        "severity": entry["severity"],
        "what": entry["what"],
        "why": entry["why"],
        "fix": entry["fix"],
        "device": entry["device"],
        "prober": entry["prober"],
        "setting": entry["setting"],
        "variable": entry["variable"],
        "step": entry["step"],
        "evidence": entry["evidence"],
    }
    return copy


def of_cause(
    request: Request, code: str, evidence: str, devices: Sequence[DeviceDoc] = ()
) -> ShownFindingDoc:
    """Return the finding of a cause that readiness does not judge.

    Without devices it is a warning: nothing shows that one of them is out of use.
    """
    cause = CAUSES[code]
    if devices:
        step = broken(cause.step, code, evidence)
        group = [(device, step) for device in devices]
        return _finding(group, (), request, Usable(()))
    return shown(
        finding(
            code,
            _sentence(cause.meaning),
            evidence,
            cause.fix,
            severity="warning" if cause.severity == "error" else cause.severity,
            step=cause.step,
            evidence=evidence,
        )
    )
