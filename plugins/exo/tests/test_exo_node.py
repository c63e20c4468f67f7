"""Facts for current exo: identity, engines, compute; plain frozen values with reasons."""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import probe_core
from probe_cluster import ClusterError
from probe_core.machine import Machine
from probe_exo import Installed, node_backends, node_compute, node_identity
from probe_exo.figures import engines, figures

Make = Callable[[dict[str, str]], Machine]
Gpu = Callable[..., dict[str, Any]]

ROCK = {
    "/proc/sys/kernel/osrelease": "6.12.9\n",
    "/proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n",
    "/proc/device-tree/model": "Radxa ROCK 5B\0",
    "/etc/os-release": 'NAME="Armbian"\nPRETTY_NAME="Armbian 25.8 bookworm"\n',
    "/etc/hostname": "rock\n",
}


def test_identity_of_a_recorded_board(machine: Make) -> None:
    found = node_identity(machine(ROCK))
    assert found.model == "Radxa ROCK 5B"
    assert (found.os_version, found.os_build_version) == ("Armbian 25.8 bookworm", "6.12.9")
    assert found.friendly_name == "rock"


def test_identity_where_nobody_knows_is_exos_unknown(machine: Make) -> None:
    found = node_identity(machine({"/proc/meminfo": ""}))
    assert (found.model, found.chip) == ("Unknown Model", "Unknown Chip")
    assert (found.os_version, found.os_build_version) == ("Linux", "Unknown")
    assert found.friendly_name == "Unknown"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.model = "other"  # type: ignore[misc]


def test_this_node_has_its_own_host_name(given: Callable[..., None]) -> None:
    given()
    assert node_identity().friendly_name == socket.gethostname()


def test_identity_of_this_node_names_its_gpu(given: Callable[..., None], gpu: Gpu) -> None:
    given(gpu())
    assert node_identity().chip == "NVIDIA GeForce RTX 4090"
    assert node_identity().os_version.startswith("Windows") is (sys.platform == "win32")


HIDDEN = {"cuda": {"visible": False, "index": None, "reason": "hidden"}}


@pytest.mark.parametrize(
    ("installed", "gpu", "backends", "why"),
    [
        (Installed("mlx-cuda-12"), {}, "MlxCpu MlxCuda", {"Vllm": "vllm is not installed"}),
        (Installed("mlx-cpu"), {}, "MlxCpu", {"MlxCuda": "mlx-cpu is installed"}),
        (Installed("mlx-cuda-12"), {"visibility": HIDDEN}, "MlxCpu", {"MlxCuda": "g: hidden"}),
        (Installed("mlx-cpu", "0.20.1"), {}, "MlxCpu Vllm", {}),
        (Installed("mlx-cpu", "0.20.1"), {"backends": []}, "MlxCpu", {}),
        (Installed("mlx-cpu", "0.20.1+cpu"), {"backends": []}, "MlxCpu Vllm", {}),
        (Installed(reasons={"mlx": "half"}), {}, "", {"MlxCpu": "half", "MlxCuda": "half"}),
        (Installed(unknown=frozenset(("mlx", "vllm"))), {}, "MlxCpu MlxCuda Vllm", {}),
    ],
)
def test_engines_are_those_that_are_installed(
    installed: Installed, gpu: dict[str, Any], backends: str, why: dict[str, str]
) -> None:
    device = {"id": "g", "kind": "gpu", "vendor": "nvidia", "backends": ["cuda"]} | gpu
    document = {"schema": 1, "node": {"os": "linux"}, "devices": [device]}
    found, why_not = engines(document, installed)
    assert list(found) == backends.split()
    assert why.items() <= why_not.items()
    assert set(found) | set(why_not) == {"MlxCpu", "MlxMetal", "MlxCuda", "Vllm"}


def test_this_nodes_engines_are_asked_of_its_wheels(
    given: Callable[..., None], gpu: Gpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given(gpu())
    installed = {name for name in node_backends().backends if name.startswith("Mlx")}
    if not installed:  # as in the environment of these tests
        assert "MlxCuda" in node_backends().why_not
    for name in (
        "mlx/core.so",
        "mlx/lib/libmlx.so",
        "mlx-1.dist-info/x",
        "mlx_cuda_13-1.dist-info/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert node_backends().backends[:2] == ("MlxCpu", "MlxCuda")


@pytest.mark.parametrize(
    ("devices", "os", "arch", "backends", "why"),
    [
        ([], "linux", "x86_64", ("MlxCpu",), "the node has no NVIDIA GPU"),
        ([], "darwin", "aarch64", ("MlxCpu", "MlxMetal"), "the node has no NVIDIA GPU"),
        ([], "darwin", "x86_64", ("MlxCpu",), "the node has no NVIDIA GPU"),
        ([{"backends": []}], "linux", "x86_64", ("MlxCpu",), "g: no CUDA driver answered for it"),
        (
            [
                {
                    "backends": ["cuda"],
                    "visibility": {"cuda": {"visible": False, "reason": "hidden"}},
                }
            ],
            "linux",
            "x86_64",
            ("MlxCpu",),
            "g: hidden",
        ),
        ([{"backends": ["cuda"]}], "windows", "x86_64", ("MlxCpu", "MlxCuda", "Vllm"), None),
    ],
)
def test_engines_of_a_report(
    devices: list[dict[str, Any]], os: str, arch: str, backends: tuple[str, ...], why: str | None
) -> None:
    gpus = [{"id": "g", "kind": "gpu", "vendor": "nvidia"} | device for device in devices]
    found = node_backends({"schema": 1, "node": {"os": os, "arch": arch}, "devices": gpus})
    assert found.backends == backends
    assert found.why_not.get("MlxCuda") == why


def test_compute_is_peak_fp16_and_bandwidth(given: Callable[..., None], gpu: Gpu) -> None:
    given(gpu(1), gpu(2))
    found = node_compute()
    assert found.fp16_tflops == pytest.approx(2 * 165.15, abs=0.01)
    assert found.memory_bandwidth == pytest.approx(1.008e12)
    assert found.devices == ("pci:0000:01:00.0", "pci:0000:02:00.0")
    assert node_compute(devices="primary").devices == ("pci:0000:01:00.0",)
    with pytest.raises(ClusterError, match="no device 'x'"):
        node_compute(devices="x")


def test_compute_that_is_unknown_says_why(machine: Make) -> None:
    report = probe_core.probe(machine=machine(ROCK), only=[])
    found = node_compute(report)
    assert (found.fp16_tflops, found.memory_bandwidth) == (None, None)
    assert set(found.reasons) == {"fp16_tflops", "memory_bandwidth", "devices"}


def test_figures_of_a_cpu_without_facts() -> None:
    cpu = {"id": "cpu:0", "kind": "cpu", "name": "Some CPU"}
    none = {"schema": 1, "node": {"os": "plan9"}, "devices": [cpu]}
    found = figures(none, "cpu")
    reasons = found.pop("reasons")  # type: ignore[misc]
    assert found == {
        "model": "Box (Device: CPU)",
        "chip": "Some CPU",
        "memory": 0,
        "fp32": 0.0,
        "fp16": 0.0,
        "int8": 0.0,
    }
    assert reasons["memory"] == reasons["memory_total"] == "the report has no memory of this node"
    some = {"os": "windows", "memory": {"total": (5 << 30) + 1}}
    found = figures(none | {"node": some}, "cpu")
    assert (found["model"], found["memory"]) == ("Windows Box (Device: CPU)", 5 << 10)
    assert "memory" not in found["reasons"]
