"""`probe topology` and `probe partition` on processors of several clusters, kinds and sockets.

A system-on-chip whose kernel numbers its clusters as packages was nine devices with the whole
chip's peak each: its node had nine times what it has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import recorded
from reports import machine_of, report_of

from probe_core.cli import main

# Cores, and GHz times operations per clock of each kind of core: 8 for one 128-bit pipe.
NODES = {
    "phone-pixel-8--9-cores-in-3-clusters": (9, 4 * 1.704 * 8 + 4 * 2.367 * 16 + 2.914 * 32),
    "phone-kirin-980--2-kinds-of-cores-at-3-clocks": (
        8,
        4 * 1.805 * 8 + (2 * 1.901 + 2 * 2.6) * 16,
    ),
    "phone-exynos-7420--cores-that-the-kernel-does-not-name": (8, (4 * 1.5 + 4 * 2.1) * 8),
    "rock-5b--mali-g610-and-rk3588-npu": (8, 4 * 1.8 * 8 + 4 * 2.304 * 16),
    "dgx-spark--nvidia-gb10": (20, 10 * 2.808 * 16 + 10 * 3.9 * 48),
    "spacemit-k1--8-cores-in-2-clusters": (8, 8 * 1.6 * 2),
    "core-i7-1370p--hybrid-that-the-kernel-does-not-list": (14, 6 * 5.0 * 32 + 8 * 3.9 * 16),
    "kunpeng-920--2-sockets-of-2-numa-nodes": (16, 16 * 2.6 * 16),
    "dual-socket-epyc-9124--cpu": (32, 32 * 3.711914 * 32),
    "opteron-6272--16-cores-in-8-modules": (16, 16 * 2.1 * 8),
    "power9--memory-of-6-gpus-as-numa-nodes": (8, 8 * 3.45 * 16),
}
"""Machine → (cores, GFLOPS of fp32)."""


def write_report(name: str, folder: Path) -> Path:
    """Write the report of a recorded machine, as `probe --json` does."""
    report = report_of(machine_of(recorded.read(name), folder / f"root-{name}"))
    path = folder / f"{name.partition('--')[0]}.json"
    path.write_text(json.dumps(report))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.heavy
@pytest.mark.parametrize("name", NODES)
def test_every_core_counts_once(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write_report(name, tmp_path)
    cores, gflops = NODES[name]
    processors = [d for d in json.loads(path.read_text())["devices"] if d["kind"] == "cpu"]
    assert sum(device["units"] for device in processors) == cores
    listed = [device["cpu"].get("clusters") or [] for device in processors]
    assert all(
        sum(kind["cores"] for kind in kinds) == device["units"]
        for device, kinds in zip(processors, listed, strict=True)
        if kinds
    )
    nodes = run(capsys, "topology", "--devices", "cpu", str(path))["nodes"]
    (node,) = nodes.values()
    assert node["flops"]["fp32"] == pytest.approx(gflops / 1000, abs=1e-4)


def test_layers_follow_the_cores_of_each_node(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """fp16 of 0.60 TFLOPS beside fp32 of 3.80: counted nine times, the phone had 9 of 16 layers."""
    names = "phone-pixel-8--9-cores-in-3-clusters", "dual-socket-epyc-9124--cpu"
    files = [str(write_report(name, tmp_path)) for name in names]
    asked = ["--model", "llama-3.2-1b", "--bits", "4.5", "--strategy", "flops"]
    (plan,) = run(capsys, "partition", *asked, *files)["plans"]
    layers = {stage["node"]: stage["layers"] for stage in plan["stages"]}
    assert layers == {"dual-socket-epyc-9124": 14, "phone-pixel-8": 2}


def test_a_limited_processor_offers_its_allowed_cores(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """6 of 32 cores, and CPU time of 4.5: the node's memory is counted within its limit, too."""
    path = write_report("batch-job--6-of-32-cpus-and-6-of-8-memory-nodes", tmp_path)
    (node,) = run(capsys, "topology", str(path))["nodes"].values()
    assert node["flops"]["fp32"] == pytest.approx(4.5 * 2.3 * 8 / 1000)
    assert node["memory"] == 6 * 16536959 // 1024
