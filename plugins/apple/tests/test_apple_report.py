"""A whole report of a recorded Mac: the core runs the prober in its child and names the chips."""

from __future__ import annotations

from typing import Any

import pytest

import probe_core

GIB = 1 << 30


def report(mac: Any, **arguments: Any) -> dict[str, Any]:
    pytest.importorskip("probe_chipdb")
    target = {"target": "probe_apple.prober", "priority": 400}
    made = probe_core.probe(machine=mac.record(), probers={"apple": target}, **arguments)
    document: dict[str, Any] = made.to_json()
    return document


def test_m3_max_is_resolved_by_name_and_cores(mac: Any) -> None:
    mac.sysctls |= {"machdep.cpu.brand_string": "Apple M3 Max", "hw.memsize": 64 * GIB}
    mac.ioreg("IOAccelerator", {"model": "Apple M3 Max", "gpu-core-count": 30})
    mac.ioreg("H11ANEIn", {"DeviceProperties": {"ANEDevicePropertyNumANECores": 16}})
    document = report(mac)
    gpu, engine = document["devices"][:2]
    assert document["primary"] == gpu["id"] == "apple:gpu0"
    assert gpu["chip"]["id"] == "apple/m3-max-30c"
    assert gpu["fp32"] > 0
    assert engine["id"] == "apple:ane0"
    assert engine["chip"]["id"] == "apple/neural-engine-m3-max"
    assert gpu["visibility"]["metal"]["visible"] is True
    assert document["fallback"] is None
