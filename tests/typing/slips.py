"""Three slips that a type checker must refuse; `test_typing` counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, FindingDoc, ReportDoc


def misspelt_item(device: DeviceDoc) -> object:
    return device["unkown"]


def misspelt_get(report: ReportDoc) -> bool:
    return any(device["memory"].get("knid") == "dedicated" for device in report["devices"])


def misspelt_value(device: DeviceDoc) -> FindingDoc:
    return {
        "code": "acme",
        "severity": "warnign",
        "what": device["id"],
        "why": "",
        "fix": "",
        "device": None,
        "prober": None,
        "setting": None,
        "variable": None,
        "step": None,
        "evidence": None,
    }
