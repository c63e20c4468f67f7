"""Devices as a report holds them, made up for the visibility tests."""

from __future__ import annotations

from typing import Any

Device = dict[str, Any]

UUIDS = [
    "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1",
    "GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293",
    "GPU-e429a63e-c61c-4795-b757-5132caeb8e70",
    "GPU-eee1dfbc-0a0f-6ad8-5ff6-dc942a8b9d98",
    "GPU-bbcd6503-5150-4e92-c266-97cc4390d04e",
    "GPU-472ea263-58d7-410d-cc82-f7fdece5bd28",
    "GPU-e56257c4-947f-6a5b-7ec9-0f45567ccf4e",
    "GPU-1c20e77d-1c1a-d9ed-fe37-18b8466a78ad",
]


_UNKNOWN = ("vendor", "name", "arch", "units", "pci", "driver", "power_state", "parent")
_EMPTY_MEMORY: dict[str, Any] = {"kind": None, "total": None, "free": None, "usable": None}


def whole(device: Device) -> Device:
    """Return a device with every key that a report's devices have, null where nothing is said."""
    return {
        **dict.fromkeys((*_UNKNOWN, "bandwidth", "fp32", "fp16", "int8")),
        **{part: [] for part in ("ids", "peaks", "backends", "links", "seen_by")},
        **{part: {} for part in ("visibility", "unknown", "sources", "others")},
        "chip": {"id": None, "by": None, "confidence": None, "candidates": []},
        **device,
        "memory": {**_EMPTY_MEMORY, "parts": {}, **device.get("memory", {})},
    }


def report(devices: list[Device], primary: str | None = None) -> dict[str, Any]:
    """Return a report's document that has these devices."""
    return {
        "schema": 1,
        "probe_core": "0.9.0",
        "chipdb": None,
        "node": {"os": "linux", "kernel": None, "arch": "x86_64", "model": None}
        | {"memory": dict.fromkeys(("total", "available", "limit"))},
        "primary": primary or (devices[0]["id"] if devices else None),
        "devices": devices,
        "outcomes": [],
        "decisions": [],
        "fallback": None,
        "findings": [],
        "timings_ms": {},
    }


def pci(slot: int) -> str:
    return f"pci:0000:{slot:02x}:00.0"


def nvidia(slot: int, *, name: str = "NVIDIA H100 80GB HBM3", **more: Any) -> Device:
    device: Device = {
        "id": pci(slot),
        "ids": [pci(slot), f"uuid:{UUIDS[(slot - 1) % 8]}"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "driver": {"name": "nvidia", "version": "580.95.05"},
        "parent": None,
        "memory": {"kind": "dedicated", "total": 80 << 30, "free": 79 << 30},
    }
    return whole(device | more)


def h100s(count: int = 8) -> list[Device]:
    return [nvidia(slot) for slot in range(1, count + 1)]


def mig(parent: Device, number: int, gi: int, ci: int = 0) -> Device:
    uuid = f"MIG-{number:08x}-0000-5000-8000-{gi:06x}{ci:06x}"
    device: Device = {
        "id": f"uuid:{uuid}",
        "ids": [f"uuid:{uuid}"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "MIG 1g.10gb",
        "parent": parent["id"],
        "driver": parent["driver"],
        "extra": {"gpu_instance": gi, "compute_instance": ci},
    }
    return whole(device)


def amd(slot: int, unique: int | None = None, kfd: int | None = None, **more: Any) -> Device:
    ids = [pci(slot)] + ([f"uuid:GPU-{unique:016x}"] if unique is not None else [])
    device: Device = {
        "id": pci(slot),
        "ids": ids,
        "kind": "gpu",
        "vendor": "amd",
        "name": "AMD Instinct MI300X",
        "pci": {"id": "1002:74a1"},
        "driver": {"name": "amdgpu"},
        "memory": {"kind": "dedicated"},
        "node_index": {} if kfd is None else {"kfd": kfd},
    }
    return whole(device | more)


def intel(slot: int, *, name: str = "Intel Arc B580", code: str = "e20b", **more: Any) -> Device:
    device: Device = {
        "id": pci(slot),
        "ids": [pci(slot)],
        "kind": "gpu",
        "vendor": "intel",
        "name": name,
        "pci": {"id": f"8086:{code}"},
        "driver": {"name": "xe"},
        "memory": {"kind": "dedicated"},
    }
    return whole(device | more)


def slots(ids: list[str]) -> list[int]:
    """Return the made-up slots of PCI ids: 1 for ``pci:0000:01:00.0``."""
    return [int(name.split(":")[2], 16) for name in ids]


def ready(device: Device) -> Device:
    """Return the device with every step up to `granted` in order."""
    return device | {"readiness": {"state": "ready", "broken": None, "steps": []}}


def blocked(device: Device, step: str, code: str, evidence: str = "a fact") -> Device:
    """Return the device as a broken step leaves it; what is behind the step is not judged."""
    reason = f"not judged: {step} is broken"
    steps = [
        {"step": step, "status": "broken", "evidence": evidence, "code": code},
        {"step": "visible", "status": "unknown", "evidence": reason, "code": None},
    ]
    return device | {"readiness": {"state": "blocked", "broken": step, "steps": steps}}
