"""`device_capabilities()` on nodes: several GPUs, choices, deadlines, caching, and no exception."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from probe_exo import device_capabilities as module
from probe_exo.device_capabilities import (
    UNKNOWN_DEVICE_CAPABILITIES,
    DeviceCapabilities,
    device_capabilities,
    linux_device_capabilities,
    mac_device_capabilities,
    windows_device_capabilities,
)

Given = Callable[..., None]
Gpu = Callable[..., dict[str, Any]]


def ask(**asked: Any) -> DeviceCapabilities:
    return asyncio.run(device_capabilities(refresh=True, **asked))


def test_one_gpu(given: Given, gpu: Gpu) -> None:
    given(gpu())
    found = ask()
    assert found.model == "Linux Box (NVIDIA GEFORCE RTX 4090)"
    assert found.chip == "NVIDIA GEFORCE RTX 4090"
    assert found.memory == 24564
    assert str(found.flops) == "fp32: 82.58 TFLOPS, fp16: 165.15 TFLOPS, int8: 660.60 TFLOPS"
    assert found.reasons == {}


@pytest.mark.heavy
def test_two_gpus_are_summed_and_one_can_be_chosen(
    given: Given, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(gpu(1), gpu(2))
    both = ask()
    assert (both.memory, round(both.flops.fp16, 1)) == (2 * 24564, 330.3)
    assert ask(devices="primary").memory == 24564
    assert ask(devices="pci:0000:02:00.0").memory == 24564
    monkeypatch.setenv("EXO_PROBE_DEVICES", "primary")
    assert ask().memory == 24564


@pytest.mark.heavy
def test_a_hidden_gpu_is_not_counted(
    given: Given, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    given(gpu(1), gpu(2))
    found = ask()
    assert found.memory == 24564
    assert found.reasons["devices"].startswith("not counted: pci:0000:01:00.0: ")


def test_a_node_without_gpu_is_its_cpu(given: Given) -> None:
    given()
    found = ask()
    assert found.model == "Linux Box (Device: CPU)"
    assert found.memory > 0
    assert found.reasons["devices"] == "no GPU is counted, so the CPU is"


def test_the_platform_functions_agree_with_it(given: Given, gpu: Gpu) -> None:
    given(gpu())
    expected = ask()
    assert asyncio.run(linux_device_capabilities()) == expected
    assert asyncio.run(windows_device_capabilities()) == expected


@pytest.mark.heavy
@pytest.mark.parametrize(("value", "memory"), [("4096", 4096), (" 1 ", 1)])
def test_override_memory(
    given: Given, monkeypatch: pytest.MonkeyPatch, value: str, memory: int
) -> None:
    given()
    monkeypatch.setenv("OVERRIDE_MEMORY_MB", value)
    found = ask()
    assert (found.memory, found.reasons["memory"]) == (
        memory,
        f"OVERRIDE_MEMORY_MB={value.strip()}",
    )


@pytest.mark.heavy
@pytest.mark.parametrize("value", ["much", "-1", "0", "1e9", "4096MB", "9" * 40])
def test_an_override_that_is_no_amount_is_ignored_and_told(
    given: Given, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    given()
    expected = ask().memory
    monkeypatch.setenv("OVERRIDE_MEMORY_MB", value)
    found = ask()
    assert found.memory == expected
    assert "is ignored: it is no number of MiB" in found.reasons["memory"]


def test_an_unknown_choice_is_an_answer_with_a_reason(given: Given) -> None:
    given()
    found = ask(devices="gpu:99")
    assert found == UNKNOWN_DEVICE_CAPABILITIES
    assert found.reasons["chip"].startswith("EXO_PROBE_DEVICES: ")
    assert "the report has no device 'gpu:99'; it has cpu:0" in found.reasons["chip"]


def test_whatever_breaks_is_an_answer_with_a_reason(given: Given) -> None:
    given()
    with patch("probe_exo.node.probe_document", side_effect=ZeroDivisionError("boom")):
        found = ask()
    assert found == UNKNOWN_DEVICE_CAPABILITIES
    assert found.reasons["memory"] == "ZeroDivisionError: boom"


@pytest.mark.heavy
def test_a_hanging_mac_ends_by_the_deadline_and_leaves_the_loop_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DEADLINE_S", 0.15)
    ticks = 0

    async def main() -> DeviceCapabilities:
        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        found = await mac_device_capabilities()
        ticking.cancel()
        return found

    released = threading.Event()

    def hang(*_: Any, **__: Any) -> bytes:
        released.wait(10)
        return b""

    start = time.monotonic()
    with patch("subprocess.check_output", hang):
        found = asyncio.run(main())
        assert time.monotonic() - start < 5
        released.set()
        time.sleep(0.2)  # the thread ends under the patch
    assert ticks >= 5
    assert found.reasons["chip"] == "no answer within 0.15 s; it is looked up further"


def test_the_answer_is_cached_and_everybody_gets_a_copy(given: Given, gpu: Gpu) -> None:
    given(gpu())

    async def main() -> None:
        first = await device_capabilities(refresh=True)
        first.memory = 1
        first.flops.fp32 = 0.0
        second = await device_capabilities()
        assert second.memory == 24564
        assert second.flops.fp32 > 82
        # Its time, 100 µs at most, is measured by tests/bench.
        with patch("probe_exo.node.probe_document", side_effect=AssertionError):
            for _ in range(100):
                assert await device_capabilities() == second

    asyncio.run(main())


def test_many_at_once_share_one_probe(given: Given) -> None:
    given()
    probes = 0

    def counted(*_: Any, **__: Any) -> Any:
        nonlocal probes
        probes += 1
        time.sleep(0.05)
        return {"schema": 1, "node": {"os": "linux"}, "devices": [], "primary": None}

    async def main() -> list[DeviceCapabilities]:
        return await asyncio.gather(*(device_capabilities(devices="all") for _ in range(8)))

    with patch("probe_exo.node.probe_document", counted):
        from probe_exo import node

        node._reports.clear()
        module._cached.clear()
        found = asyncio.run(main())
    node._reports.clear()
    module._cached.clear()
    assert probes == 1
    assert all(one == found[0] for one in found)


def test_trio_is_served_too(given: Given, gpu: Gpu) -> None:
    trio = pytest.importorskip("trio")
    given(gpu())
    found = trio.run(linux_device_capabilities)
    assert found.memory == 24564
