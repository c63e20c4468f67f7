"""Nodes whose pages are tested: recorded ones, and sightings that the whole pipeline takes in."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import recorded
from reports import report_of, report_of_recording, validated

import probe_core

GIB = 1 << 30
H100 = "1b 43 52 61 9d c3 d1 df".split()
SWITCHES = {"1b": "18", "43": "18", "52": "50", "61": "50", "9d": "98", "c3": "98", "d1": "d0",
            "df": "d0"}  # fmt: skip
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{{7*7}}{% raw %}"


def gpu(address: str, name: str, total: float, used: float, **fields: Any) -> dict[str, Any]:
    memory = {"kind": "dedicated", "total": int(total * GIB), "used": int(used * GIB)}
    return {
        "ids": [f"pci:0000:{address}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "memory": {**memory, "free": int((total - used) * GIB)},
        "driver": {"name": "nvidia", "version": "580.95.05", "cuda": "13.0"},
        "step_facts": [{"step": "responding", "status": "ok", "evidence": "NVML answered"}],
        **fields,
    }


def nvlink(peer: str, count: int, to: str) -> dict[str, Any]:
    rate = count * 26_562_000_000
    return {"kind": "nvlink", "peer": f"pci:{peer}", "count": count, "to": to, "bandwidth": rate}


def _h100(number: int, address: str) -> dict[str, Any]:
    switch = SWITCHES[address]
    port, upstream = f"0000:{int(switch, 16) - 1:02x}:01.0", f"0000:{switch}:00.0"
    uuid = f"uuid:GPU-a1000000-0000-4000-8000-00000000000{number}"
    used = [71.2, 68.9, 71.0, 70.8, 12.4, 0.4, 0.4, 0.4][number]
    links = [nvlink(f"0000:0{bus}:00.0", 5 if bus in "89" else 4, "switch") for bus in "789a"]
    card = gpu(address, "NVIDIA H100 80GB HBM3", 79.6, used, links=links)
    card["ids"].append(uuid)
    downstream = f"0000:{int(switch, 16) + 1:02x}:{number:02x}.0"
    return {**card, "bridges": [downstream, upstream, port]}


DGX = [_h100(number, address) for number, address in enumerate(H100)]
PAIR = [
    gpu("01", "NVIDIA GeForce RTX 4090", 24, 21.6, bridges=["0000:00:01.0"]),
    gpu("02", "NVIDIA GeForce RTX 3090", 24, 3.2, bridges=["0000:00:01.1"],
        pci={"id": "10de:2204"}, numa_node=0),
]  # fmt: skip
STRIX = [
    {
        "ids": ["pci:0000:c5:00.0"], "kind": "gpu", "vendor": "amd",
        "name": "AMD Radeon 8060S Graphics", "pci": {"id": "1002:1586"}, "gfx": "gfx1151",
        "memory": {"kind": "unified", "total": 20 * GIB, "free": 19 * GIB,
                   "parts": {"vram": GIB >> 1, "gtt": 20 * GIB}},
        "driver": {"name": "amdgpu", "version": "6.16"}, "bridges": ["0000:00:08.1"],
    },
    {
        "ids": ["pci:0000:c6:00.1"], "kind": "npu", "vendor": "amd", "pci": {"id": "1022:17f0"},
        "power_state": "suspended", "driver": {"name": "amdxdna"}, "bridges": ["0000:00:08.2"],
    },
]  # fmt: skip


def _broken(step: str, code: str, evidence: str) -> list[dict[str, str]]:
    return [{"step": step, "status": "broken", "code": code, "evidence": evidence}]


BROKEN = [
    gpu("1b", HOSTILE, 79.6, 10, numa_node=0, driver={"name": HOSTILE, "version": "V" * 120}),
    gpu("43", "NVIDIA H100 80GB HBM3", 79.6, 0.4,
        step_facts=_broken("responding", "gpu-lost", "NVML_ERROR_GPU_IS_LOST (15)")),
    gpu("52", "NVIDIA H100 80GB HBM3", 79.6, 0.4,
        step_facts=_broken("permission", "no-permission", "/dev/nvidia2: EACCES")),
    gpu("61", "NVIDIA H100 80GB HBM3", 79.6, 0.4, power_state="suspended", memory={}),
]  # fmt: skip


def probed(sightings: list[dict[str, Any]], folder: Path, name: str) -> dict[str, Any]:
    """Return the report of a recorded machine on which a prober detects the sightings, too."""
    data = recorded.read(name)
    root = recorded.unpack(data, folder / "root")
    (root / "given.json").write_text(json.dumps(sightings))
    machine = probe_core.Machine(str(root), data["environ"], data["os"], data["arch"])
    probers = {"given": {"target": "given_report", "priority": 500}}
    return report_of(machine, only=["given"], probers=probers)


def measurement(figure: str, best: float, **fields: Any) -> dict[str, Any]:
    dtype = None if figure in ("read", "write", "copy") else figure
    return {
        "figure": "compute" if dtype else figure, "kind": "matmul" if dtype else "memory",
        "dtype": dtype, "unit": "TFLOPS" if dtype else "B/s", "best": best, "median": best * 0.97,
        "runs": 50, "by": "tinygrad 0.14.0", "driver": "nvidia 580.95.05",
        "date": "2026-11-20T21:40:00Z", "disturbed": [], "stale": None, **fields,
    }  # fmt: skip


def with_measured(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report as a core writes it that found measured figures of the GPUs."""
    report = copy.deepcopy(report)
    for device in report["devices"]:
        if device["kind"] == "gpu":
            device["measured"] = [
                measurement("fp16", 794.5),
                measurement("fp32", 70.1, disturbed=["median"]),
                measurement("copy", 3.01e12),
            ]
    return report


def nodes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return all of them by name; probing takes about a second."""
    dgx = probed(DGX, folder / "dgx", "dgx-h100--8x-nvidia-h100-80gb-hbm3")
    desktop = "desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770"
    return {
        "dgx": with_measured(dgx),
        "pair": probed(PAIR, folder / "pair", desktop),
        "strix": probed(STRIX, folder / "strix", "vm-without-accelerator--cpu"),
        "mali": report_of_recording("rock-5b--mali-g610-and-rk3588-npu"),
        "cpu": report_of_recording("dual-socket-epyc-9124--cpu"),
        "broken": validated(broken(folder / "broken")),
        "huge": huge(dgx),
    }


def broken(folder: Path) -> dict[str, Any]:
    """Return a node with a hostile name, a lost GPU, one without permission, one asleep."""
    report = probed(BROKEN, folder, "dgx-h100--8x-nvidia-h100-80gb-hbm3")
    report["findings"].append(
        {
            **report["findings"][0],
            "severity": "error", "code": HOSTILE, "what": f"what {HOSTILE}",
            "why": f"why {HOSTILE}", "fix": f"fix {HOSTILE}", "evidence": f"seen {HOSTILE}",
        }
    )  # fmt: skip
    return report


def huge(dgx: dict[str, Any]) -> dict[str, Any]:
    """Return a report of 64 different GPUs, 512 processors and 200 findings, at their longest."""
    report = copy.deepcopy(dgx)
    card = next(device for device in report["devices"] if device["kind"] == "gpu")
    cpu = next(device for device in report["devices"] if device["kind"] == "cpu")
    long = 'a sentence of some length & <with> "marks", that goes on and on; ' * 9
    report["devices"] = [
        {**copy.deepcopy(card), "id": f"pci:{n:04x}:01:00.0", "ids": [f"pci:{n:04x}:01:00.0"],
         "name": f"{'G' * 240} {n}", "numa_node": n, "unknown": {f"field.{n}": long}}
        for n in range(64)
    ] + [
        {**copy.deepcopy(cpu), "id": f"cpu:{n}", "ids": [f"cpu:{n}"], "name": f"{'C' * 240} {n}",
         "numa_node": n}
        for n in range(512)
    ]  # fmt: skip
    report["primary"] = report["devices"][0]["id"]
    report["findings"] = [
        {"code": f"code-{n}", "severity": ("error", "warning", "info")[n % 3],
         "what": f"{n} {long}",
         "why": f"{n} {long}", "fix": long, "device": None, "prober": None, "setting": None,
         "variable": None, "step": None, "evidence": long}
        for n in range(200)
    ]  # fmt: skip
    return report
