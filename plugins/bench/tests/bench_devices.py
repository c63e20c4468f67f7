"""Devices of reports, with what the bench reads of them."""

from __future__ import annotations

from typing import cast

from probe_core.model.document import DeviceDoc


def cpu(**changes: object) -> DeviceDoc:
    entry: dict[str, object] = {
        "id": "cpu:0",
        "ids": ["cpu:0"],
        "kind": "cpu",
        "vendor": "amd",
        "name": "AMD EPYC",
        "units": 2,
        "memory": {"kind": "shared", "total": 8 << 30, "free": None, "usable": 4 << 30},
        "driver": None,
        "peaks": [],
        "bandwidth": None,
        "readiness": {"state": "ready", "broken": None, "steps": []},
    }
    return cast(DeviceDoc, entry | changes)


def gpu(state: str = "ready", **changes: object) -> DeviceDoc:
    step = {"step": "permission", "status": "broken", "evidence": None, "code": "no-access"}
    broken = {"state": state, "broken": "permission", "steps": [step]}
    whole = {"state": state, "broken": None, "steps": []}
    own: dict[str, object] = {
        "id": "pci:0000:01:00.0",
        "ids": ["pci:0000:01:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA H100",
        "units": 132,
        "memory": {"kind": "dedicated", "total": 80 << 30, "free": 79 << 30, "usable": 79 << 30},
        "driver": {"name": "nvidia", "version": "580.1"},
        "readiness": broken if state == "blocked" else whole,
    }
    return cpu(**(own | changes))
