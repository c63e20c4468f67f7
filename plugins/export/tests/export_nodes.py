"""Nodes to export: made by the whole pipeline, from what a prober says on an empty machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reports import validated

import probe_core

GIB = 1 << 30
H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-80GB"
READY = [{"step": "responding", "status": "ok", "evidence": "it answered"}]
LOST = [{"step": "responding", "status": "broken", "evidence": "NVML 15", "code": "gpu-lost"}]
MIG = [{"step": "granted", "status": "broken", "evidence": "MIG is on", "code": "mig-mode"}]


def gpu(number: int, name: str, memory: int = 80, **fields: Any) -> dict[str, Any]:
    address = f"0000:{number:02x}:00.0"
    return {
        "ids": [f"pci:{address}", f"uuid:GPU-00000000-0000-0000-0000-{number:012d}"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "compute_capability": "9.0",
        "driver": {"name": "nvidia", "version": "550.163.01", "cuda": "12.4"},
        "memory": {"kind": "dedicated", "total": memory * GIB},
        "nodes": [f"/dev/nvidia{number - 1}", "/dev/nvidiactl", "/dev/nvidia-uvm"],
        "step_facts": READY,
        **fields,
    }


def instance(parent: dict[str, Any], number: int, profile: str) -> dict[str, Any]:
    return {
        **gpu(99, f"{parent['name']} MIG {profile}", 40),
        "ids": [f"uuid:MIG-00000000-0000-0000-0000-{number:012d}"],
        "parent": parent["ids"][0],
        "profile": profile,
        "nodes": [
            *parent["nodes"],
            f"/dev/nvidia-caps/nvidia-cap{number}",
            f"/dev/nvidia-caps/nvidia-cap{number + 1}",
        ],
    }


CARD = gpu(2, A100, step_facts=MIG)
MIXED = [gpu(2, "NVIDIA GeForce RTX 4090", 24), gpu(1, "NVIDIA GeForce RTX 3090", 24)]
MIG_NODE = [gpu(1, A100), CARD, instance(CARD, 21, "3g.40gb"), instance(CARD, 30, "3g.40gb")]
NO_INSTANCE = {"step": "granted", "status": "broken", "evidence": "no instance is listed"}
EMPTY = gpu(3, A100, step_facts=[{**NO_INSTANCE, "code": "mig-without-instances"}])
LOST_NODE = [gpu(1, H100), gpu(2, H100, step_facts=LOST)]


def node(sightings: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return the report of a machine on which a prober sees these devices."""
    (folder / "proc").mkdir(parents=True, exist_ok=True)
    (folder / "sys" / "devices").mkdir(parents=True, exist_ok=True)  # as on every Linux
    (folder / "proc" / "meminfo").write_text("MemTotal: 65536000 kB\nMemAvailable: 64000000 kB\n")
    (folder / "given.json").write_text(json.dumps(sightings))
    machine = probe_core.Machine(str(folder))
    report = probe_core.probe(machine=machine, only=["given"], probers={"given": "given_export"})
    document: dict[str, Any] = report.to_json()
    return validated(document)
