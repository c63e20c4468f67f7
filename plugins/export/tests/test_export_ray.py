"""`ray start $(probe export ray)` with the real Ray, which PROBE_RAY_PYTHON names."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from export_nodes import LOST_NODE, MIXED, node

from probe_export import export
from probe_export.ray import nvidia_type

PYTHON = os.environ.get("PROBE_RAY_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="no Ray: name a Python in PROBE_RAY_PYTHON")

NODES = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
(node,) = ray.nodes()
print(json.dumps([node["Resources"], node["Labels"]]))
"""


@pytest.fixture
def folder() -> Iterator[str]:
    """A short path: a socket of Ray is below it, and 107 bytes are the most."""
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as path:
        yield path


def started(options: str, folder: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return the resources and labels of a node that is started with these options."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # As a shell splits $(…): at blanks, and no quote is taken away.
    start = [str(Path(PYTHON).with_name("ray")), "start", *options.split()]
    start += ["--head", "--block", f"--port={port}", "--num-cpus=1", "--include-dashboard=false"]
    start += ["--node-ip-address=127.0.0.1", f"--temp-dir={folder}", "--disable-usage-stats"]
    environ = {**os.environ, "RAY_TMPDIR": folder}
    with open(f"{folder}/output", "w+") as output:
        process = subprocess.Popen(start, stdout=output, stderr=output, env=environ, cwd="/")
        try:
            ask = [PYTHON, "-c", NODES, f"127.0.0.1:{port}"]
            for _ in range(10):  # Ray itself tries for some seconds
                done = subprocess.run(ask, capture_output=True, text=True, check=False, cwd="/")
                if done.returncode == 0 or process.poll() is not None:
                    break
            output.seek(0)
            assert done.returncode == 0, output.read() + done.stderr
        finally:
            process.terminate()
            process.wait(60)
    resources, labels = json.loads(done.stdout.splitlines()[-1])
    return resources, labels


@pytest.mark.parametrize(
    ("sightings", "types", "labels"),
    [
        (
            MIXED,
            ["GeForce-RTX-3090", "GeForce-RTX-4090"],
            {"probe/gpu.GeForce-RTX-3090.count": "1", "probe/gpu.GeForce-RTX-4090.count": "1"},
        ),
        (LOST_NODE, ["H100"], {"probe/gpu.H100.count": "1", "probe/missing.gpu-lost": "1"}),
    ],
)
def test_ray_itself_takes_the_options(
    sightings: Any, types: list[str], labels: dict[str, str], tmp_path: Path, folder: str
) -> None:
    line = export("ray", node(sightings, tmp_path / "node"))  # type: ignore[arg-type]
    resources, counted = started(line, folder)
    kinds = {key: value for key, value in resources.items() if key.startswith("accelerator_type:")}
    assert kinds == {f"accelerator_type:{name}": 1.0 for name in types}
    assert resources["GPU"] == len(types)
    assert {key: counted[key] for key in counted if key.startswith("probe/")} == labels


TYPES = """
import json, sys
from ray._private.accelerators.nvidia_gpu import NvidiaGPUAcceleratorManager as manager
print(json.dumps([manager._gpu_name_to_accelerator_type(name) for name in json.load(sys.stdin)]))
"""


def test_types_are_spelled_as_ray_itself_spells_them() -> None:
    names = [
        *"ABC",
        "NVIDIA",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA B300 SXM6 AC",
        "NVIDIA CMP 170HX",
        "NVIDIA GB10",
        "NVIDIA GeForce RTX 4090",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA T4G",
        "NVIDIA TITAN V",
        "Orin (nvgpu)",
        "Quadro RTX 8000",
        "x y",
    ]
    done = subprocess.run(
        [PYTHON, "-c", TYPES], input=json.dumps(names), capture_output=True, text=True, check=True,
        cwd="/",
    )  # fmt: skip
    assert [nvidia_type(name) for name in names] == json.loads(done.stdout)
