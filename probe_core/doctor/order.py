"""The order of findings: the first break first, and what follows from it folded under it."""

from __future__ import annotations

from probe_core.model.causes import CAUSES
from probe_core.model.readiness import STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.doctor.document import ShownFindingDoc
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["ordered"]

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

# Code to the code of what it follows from: an environment's wheels are built for its Python.
_FOLLOWS = {"wheel-other-architecture": "environment-other-architecture"}


def ordered(findings: Sequence[ShownFindingDoc], report: ReportDoc) -> list[ShownFindingDoc]:
    """Return the findings by severity and step; alike ones together, consequences folded."""
    merged = _alike(findings)
    merged.sort(key=_rank)
    return _folded(merged, report)


def _rank(finding: ShownFindingDoc) -> tuple[int, bool, int]:
    """Return a key by severity; breaks come before what the report has of plugins and settings."""
    step = finding["step"]
    place = STEPS.index(step) if step in STEPS else _LAST
    is_break = finding["code"] in CAUSES or "wheel" in finding
    return _SEVERITIES.get(finding["severity"], 1), not is_break, place


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
            "" if _devices_of(finding) else finding["what"],
        )
        first = by_key.setdefault(key, finding)
        if first is not finding:
            devices = dict.fromkeys([*_devices_of(first), *_devices_of(finding)])
            first["devices"] = list(devices)
    return list(by_key.values())


def _devices_of(finding: ShownFindingDoc) -> list[str]:
    device = finding["device"]
    return finding.get("devices") or ([device] if device else [])


def _folded(findings: Sequence[ShownFindingDoc], report: ReportDoc) -> list[ShownFindingDoc]:
    """Put what a plugin reports under the break of its devices that explains it."""
    result: list[ShownFindingDoc] = []
    vendors = {device["id"]: device for device in report["devices"]}
    for finding in findings:
        cause = next((other for other in findings if _explains(other, finding, vendors)), None)
        if cause is None:
            result.append(finding)
        else:
            cause.setdefault("follows", []).append(
                {"code": finding["code"], "what": finding["what"]}
            )
    return result


def _explains(
    cause: ShownFindingDoc, finding: ShownFindingDoc, devices: dict[str, DeviceDoc]
) -> bool:
    if cause["code"] == _FOLLOWS.get(finding["code"]):
        return True
    if cause is finding or finding["code"] not in _OF_PLUGINS or cause["step"] not in STEPS:
        return False
    if cause["code"] in _OF_PLUGINS and cause["code"] != finding["evidence"]:
        return False
    if finding["code"] == "prober-unavailable" and finding["evidence"] == cause["code"]:
        return True
    concerned = [devices[name] for name in _devices_of(cause) if name in devices]
    prober = finding["prober"]
    return any(prober in (device["vendor"], *device["seen_by"]) for device in concerned)
