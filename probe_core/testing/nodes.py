"""Reports of made-up nodes for the contract of formats: each passed through the whole pipeline."""

from __future__ import annotations

import json

from probe_core.machine import Machine
from probe_core.testing.sightings import FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from probe_core.model.document import ReportDoc

__all__ = ["NODES", "USABLE", "node_report"]

_GIB = 1 << 30
_ANSWERS = [{"step": "responding", "status": "ok", "evidence": "it answered"}]
_LOST = [{"step": "responding", "status": "broken", "evidence": "NVML 15", "code": "gpu-lost"}]
_MIG = [{"step": "granted", "status": "broken", "evidence": "MIG is on", "code": "mig-mode"}]


def _gpu(number: int, name: str | None, **fields: Any) -> dict[str, Any]:
    uuid = f"uuid:GPU-00000000-0000-0000-0000-{number:012d}"
    sighting = {
        "ids": [f"pci:0000:{number:02x}:00.0", uuid],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "driver": {"name": "nvidia", "version": "550.163.01", "cuda": "12.4"},
        "memory": {"kind": "dedicated", "total": 80 * _GIB},
        "nodes": [f"/dev/nvidia{number - 1}", "/dev/nvidiactl"],
        "step_facts": _ANSWERS,
    }
    return sighting | fields


def _instance(parent: Mapping[str, Any], number: int) -> dict[str, Any]:
    profile = "3g.40gb"
    caps = [f"/dev/nvidia-caps/nvidia-cap{number + step}" for step in (0, 1)]
    return _gpu(
        9,
        f"{parent['name']} MIG {profile}",
        ids=[f"uuid:MIG-00000000-0000-0000-0000-{number:012d}"],
        parent=parent["ids"][0],
        profile=profile,
        memory={"kind": "dedicated", "total": 40 * _GIB},
        nodes=[*parent["nodes"], *caps],
    )


_H100 = "NVIDIA H100 80GB HBM3"
_CARD = _gpu(2, "NVIDIA A100-SXM4-80GB", step_facts=_MIG)

NODES: dict[str, Sequence[Mapping[str, Any]]] = {
    "none": [],
    "eight": [_gpu(number, _H100) for number in range(1, 9)],
    "mixed": [_gpu(1, "NVIDIA GeForce RTX 3090"), _gpu(2, "NVIDIA GeForce RTX 4090")],
    "partitioned": [_CARD, _instance(_CARD, 21), _instance(_CARD, 30)],
    "lost": [_gpu(1, _H100), _gpu(2, _H100, step_facts=_LOST)],
    "all-lost": [_gpu(1, _H100, step_facts=_LOST)],
    "nameless": [_gpu(1, None, memory=None, driver=None)],
    "odd": [
        _gpu(1, 'it\'s "odd" \\ $HOME `x`, =#: \u00e9\u4e2d\ud800\n'),
        _gpu(2, "X" * 300),
        _gpu(3, "-._ (nvgpu)"),
    ],
}
"""Name to what a prober detects: whole, cut, lost and hardly described GPUs."""

USABLE = {
    "none": 0,
    "eight": 8,
    "mixed": 2,
    "partitioned": 2,
    "lost": 1,
    "all-lost": 0,
    "nameless": 1,
    "odd": 3,
}
"""Name to the number of accelerators that a job can be given."""


def node_report(name: str, folder: Path) -> ReportDoc:
    """Return the document of a made-up node; `folder` is where its files are written."""
    from probe_core import probe

    (folder / "proc").mkdir(parents=True, exist_ok=True)
    (folder / "proc" / "meminfo").write_text("MemTotal: 65536000 kB\nMemAvailable: 64000000 kB\n")
    (folder / FILE.lstrip("/")).write_text(json.dumps(NODES[name]))
    machine = Machine(str(folder), {}, "linux", "x86_64")
    probers = {"sightings": {"target": "probe_core.testing.sightings"}}
    document: Any = probe(machine=machine, only=["sightings"], probers=probers).to_json()
    report: ReportDoc = document
    return report
