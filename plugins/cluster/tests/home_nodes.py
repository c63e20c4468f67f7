"""Nodes of homes, from documented figures: what their vendors' probers say, and their memory.

Not recorded from real machines: the figures are those of the makers and of the facts that others
published (GB10's MemTotal, the RTX 4090's 25757220864 bytes).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import probe_core

GIB = 1 << 30

Sighting = dict[str, Any]


def rtx_4090(slot: int = 1, free: int = 25_200_000_000) -> Sighting:
    return {
        "ids": [f"pci:0000:{slot:02x}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA GeForce RTX 4090",
        "pci": {"id": "10de:2684"},
        "memory": {"kind": "dedicated", "total": 25_757_220_864, "free": free},
        "backends": ["cuda"],
        "driver": {"name": "nvidia", "version": "580.95.05"},
    }


def unified(vendor: str, **more: Any) -> Sighting:
    return {"kind": "gpu", "vendor": vendor, "memory": {"kind": "unified"}} | more


M3_MAX = unified("apple", ids=["dt:/arm-io/sgx"], name="Apple M3 Max", units=40)
M2 = unified("apple", ids=["dt:/arm-io/sgx"], name="Apple M2", units=10)
GB10 = unified("nvidia", ids=["pci:000f:01:00.0"], name="NVIDIA GB10", backends=["cuda"])
ORIN = unified("nvidia", ids=["dt:/bus@0/gpu@17000000"], name="Jetson AGX Orin 64GB")
MALI = unified(
    "arm",
    ids=["dt:/gpu@fb000000"],
    name="Mali-G610",
    units=4,
    gpu_id="arm:0xa867",
    clocks={"max_mhz": 1000},
)
STRIX_HALO = {
    "ids": ["pci:0000:c5:00.0"],
    "kind": "gpu",
    "vendor": "amd",
    "pci": {"id": "1002:1586", "revision": "c1"},
    "gfx": "gfx1151",
    "units": 40,
    "memory": {
        "kind": "unified",
        "total": 112 * GIB,
        "usable": 110 * GIB,
        "parts": {"vram": 16 * GIB, "gtt": 96 * GIB},
    },
}

NODES: dict[str, tuple[list[Sighting], int, int]] = {
    # name: (sightings, MemTotal, MemAvailable)
    "desk": ([rtx_4090()], 64 * GIB, 50 * GIB),
    "twin": ([rtx_4090(1), rtx_4090(2)], 128 * GIB, 100 * GIB),
    "studio": ([M3_MAX], 128 * GIB, 110 * GIB),
    "air": ([M2], 8 * GIB, 5 * GIB),
    "spark": ([GB10], 127_600_748 * 1024, 118 * GIB),
    "halo": ([STRIX_HALO], 109 * GIB, 100 * GIB),
    "orin": ([ORIN], 61 * GIB, 55 * GIB),
    "rock": ([MALI], 16 * GIB, 14 * GIB),
    "nas": ([], 32 * GIB, 20 * GIB),
}

CPUINFO = "processor : 0\nvendor_id : GenuineIntel\nmodel name : Intel(R) N100\ncpu cores : 4\n"


def write_machine(folder: Path, name: str) -> Path:
    """Write the node as a recorded machine: a folder that stands for its /."""
    sightings, total, available = NODES[name]
    root = folder / name
    files = {
        "given.json": json.dumps(sightings),
        "proc/meminfo": f"MemTotal: {total // 1024} kB\nMemAvailable: {available // 1024} kB\n",
        "proc/cpuinfo": CPUINFO,
        "sys/class/dmi/id/product_name": f"{name} of this home\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def report_of(name: str, folder: Path) -> dict[str, Any]:
    """Probe the recorded machine and return its report's document."""
    machine = probe_core.Machine(str(write_machine(folder, name)))
    report = probe_core.probe(machine=machine, only=["given"], probers={"given": "given_prober"})
    return report.to_json()
