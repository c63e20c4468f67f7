"""Facts for current exo: identity, engines, compute; plain frozen values with reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import probe_core
from probe_cluster import ClusterError
from probe_core.machine import Machine
from probe_exo import node_backends, node_compute, node_identity

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
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.model = "other"  # type: ignore[misc]


def test_identity_of_this_node_names_its_gpu(given: Callable[..., None], gpu: Gpu) -> None:
    given(gpu())
    assert node_identity().chip == "NVIDIA GeForce RTX 4090"


def test_cuda_engines_where_a_cuda_gpu_is_visible(given: Callable[..., None], gpu: Gpu) -> None:
    given(gpu())
    found = node_backends()
    assert found.backends == ("MlxCpu", "MlxCuda", "Vllm")
    assert list(found.why_not) == ["MlxMetal"]


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
