"""The names of old exo before December 2024, which are not awaited, and `DeviceMemory`."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe_exo import device_capabilities as awaited
from probe_exo import device_capabilities_sync as module
from probe_exo.device_capabilities import mac_facts
from probe_exo.device_capabilities_sync import DeviceMemory, device_capabilities, device_memory

Given = Callable[..., None]
Gpu = Callable[..., dict[str, Any]]


def test_the_same_names_and_types_without_coroutines() -> None:
    assert set(awaited.__all__) <= set(module.__all__)
    for name in awaited.__all__:
        if name.endswith("device_capabilities"):
            assert not inspect.iscoroutinefunction(getattr(module, name))
        else:
            assert getattr(module, name) is getattr(awaited, name)


@pytest.mark.heavy
def test_it_answers_as_the_awaited_one_does(given: Given, gpu: Gpu) -> None:
    given(gpu(1), gpu(2))
    told = device_capabilities(refresh=True)
    assert told == asyncio.run(awaited.device_capabilities())
    assert (told.memory, told.chip) == (2 * 24564, "NVIDIA GEFORCE RTX 4090")
    assert device_capabilities("an inference engine") == told


@pytest.mark.heavy
def test_it_may_be_called_inside_a_loop(given: Given, gpu: Gpu) -> None:
    given(gpu())

    async def inside() -> int:
        return device_capabilities(refresh=True).memory

    assert asyncio.run(inside()) == 24564


def test_device_memory_has_total_and_available(
    given: Given, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(gpu())
    assert device_memory() == DeviceMemory(total=24564, available=24032)
    assert device_memory(devices="cpu").total > 0
    gpu_of_a_report = {
        "kind": "gpu",
        "memory": {"kind": "dedicated", "total": 9 << 30, "usable": 7 << 30},
    }
    document = {"schema": 1, "node": {}, "devices": [gpu_of_a_report | {"id": "g"}]}
    assert device_memory(document) == DeviceMemory(total=9 << 10, available=7 << 10)
    monkeypatch.setenv("OVERRIDE_MEMORY_MB", "2048")
    assert device_memory().to_dict() == {"total": 2048, "available": 2048}


SYSCTL = """#!/bin/sh
case "$2" in
  hw.memsize) echo 137438953472 ;;
  machdep.cpu.brand_string) echo "Apple M3 Max" ;;
  *) exit 1 ;;
esac
"""


@pytest.mark.parametrize("profiler", [None, "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho Model\n"])
def test_a_mac_whose_system_profiler_fails_asks_sysctl(
    profiler: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("sysctl", SYSCTL), ("system_profiler", profiler)):
        if text is not None:
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    facts = mac_facts()
    assert (facts.model, facts.chip, facts.memory) == ("Unknown Model", "Apple M3 Max", 131072)
    assert facts.fp32 > 10
    assert "system_profiler" in facts.reasons["model"]


def test_a_mac_without_sysctl_has_psutils_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    psutil = pytest.importorskip("psutil")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    facts = mac_facts()
    assert facts.memory == psutil.virtual_memory().total >> 20
    assert facts.chip == "Unknown Chip"
    assert set(facts.reasons) == {"model", "chip", "fp32", "fp16", "int8"}


@pytest.mark.heavy
def test_importing_it_needs_no_loop_and_prints_nothing() -> None:
    code = "from probe_exo.device_capabilities_sync import *; print(TFLOPS)"
    path = [entry for entry in sys.path if entry]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("1.0\n", "")
