"""The drop-in's surface: what code and tests written against old exo's module ask of it."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
from typing import Any
from unittest.mock import patch

import pydantic
import pytest

from probe_exo import device_capabilities as module
from probe_exo.device_capabilities import *  # noqa: F403 - as forks of exo import it
from probe_exo.device_capabilities import (
    TFLOPS,
    UNKNOWN_DEVICE_CAPABILITIES,
    DeviceCapabilities,
    DeviceFlops,
    mac_device_capabilities,
)
from probe_exo.mac import gpu_cores, hardware, rdma_enabled

MACBOOK_PRO = b"""
Hardware:

    Hardware Overview:

      Model Name: MacBook Pro
      Model Identifier: Mac15,9
      Chip: Apple M3 Max
      Total Number of Cores: 16 (12 performance and 4 efficiency)
      Memory: 128 GB
      System Firmware Version: 10000.000.0
      Hardware UUID: 00000000-0000-0000-0000-000000000000
"""
MACBOOK_AIR = MACBOOK_PRO.replace(b"Pro", b"Air").replace(b"M3 Max", b"M2").replace(b"128", b"8")


def example() -> DeviceCapabilities:
    flops = DeviceFlops(fp32=14.20, fp16=28.40, int8=56.80)
    return DeviceCapabilities(model="MacBook Pro", chip="Apple M3 Max", memory=131072, flops=flops)


def test_every_name_is_there() -> None:
    assert set(module.__all__) == {
        "CHIP_FLOPS",
        "TFLOPS",
        "UNKNOWN_DEVICE_CAPABILITIES",
        "DeviceCapabilities",
        "DeviceFlops",
        "device_capabilities",
        "linux_device_capabilities",
        "mac_device_capabilities",
        "windows_device_capabilities",
    }
    for name in ("", "linux_", "mac_", "windows_"):
        assert inspect.iscoroutinefunction(getattr(module, f"{name}device_capabilities"))
    assert TFLOPS == 1.00


def test_strings_are_old_exos() -> None:
    assert str(example()) == (
        "Model: MacBook Pro. Chip: Apple M3 Max. Memory: 131072MB. "
        "Flops: fp32: 14.20 TFLOPS, fp16: 28.40 TFLOPS, int8: 56.80 TFLOPS"
    )


def test_to_dict_is_old_exos() -> None:
    assert example().to_dict() == {
        "model": "MacBook Pro",
        "chip": "Apple M3 Max",
        "memory": 131072,
        "flops": {"fp32": 14.20, "fp16": 28.40, "int8": 56.80},
    }


def test_both_are_pydantic_models_with_these_fields_alone() -> None:
    assert issubclass(DeviceCapabilities, pydantic.BaseModel)
    assert list(DeviceCapabilities.model_fields) == ["model", "chip", "memory", "flops"]
    assert list(DeviceFlops.model_fields) == ["fp32", "fp16", "int8"]
    assert DeviceCapabilities(**example().to_dict()) == example()
    assert DeviceCapabilities.model_validate_json(example().model_dump_json()) == example()


def test_what_peers_send_is_coerced_and_more_is_ignored() -> None:
    flops = {"fp32": "1", "fp16": 2, "int8": 4, "fp8": 8}
    sent: dict[str, Any] = {"model": "m", "chip": "c", "memory": "131072", "flops": flops, "new": 1}
    found = DeviceCapabilities(**sent)
    assert (found.memory, found.flops.fp32, found.flops.fp16) == (131072, 1.0, 2.0)
    assert not hasattr(found, "new")
    with pytest.raises(pydantic.ValidationError):
        DeviceCapabilities(**sent | {"memory": "much"})


def test_instances_can_be_changed_and_not_hashed() -> None:
    found = example()
    found.memory = 1
    assert found != example()
    assert found != "text"
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


def test_a_model_of_the_hosts_can_hold_one() -> None:
    class Node(pydantic.BaseModel):
        capabilities: DeviceCapabilities

    assert Node(capabilities=example()).model_dump()["capabilities"]["memory"] == 131072


def test_the_unknown_node() -> None:
    assert UNKNOWN_DEVICE_CAPABILITIES.to_dict() == {
        "model": "Unknown Model",
        "chip": "Unknown Chip",
        "memory": 0,
        "flops": {"fp32": 0.0, "fp16": 0.0, "int8": 0.0},
    }


@patch("subprocess.check_output")
def test_a_macbook_pro_as_old_exos_tests_ask(check_output: Any) -> None:
    check_output.return_value = MACBOOK_PRO
    found = asyncio.run(mac_device_capabilities())
    assert isinstance(found, DeviceCapabilities)
    assert (found.model, found.chip, found.memory) == ("MacBook Pro", "Apple M3 Max", 131072)
    assert str(found) == str(example())
    assert "the number that old exo's tests pin" in found.reasons["int8"]


@patch("subprocess.check_output")
def test_a_macbook_air_as_old_exos_tests_ask(check_output: Any) -> None:
    check_output.return_value = MACBOOK_AIR
    found = asyncio.run(mac_device_capabilities())
    assert (found.model, found.chip, found.memory) == ("MacBook Air", "Apple M2", 8192)
    # Not pinned: chipdb's figure of the larger of the two M2, and why.
    assert found.flops.fp32 == pytest.approx(3.57888, abs=1e-4)
    assert found.reasons["fp32"] == "the largest of apple/m2-10c, apple/m2-8c"
    assert found.flops.int8 == 0.0
    assert found.reasons["int8"] == "no dense int8 path of apple/m2-10c is known"


DISPLAYS = b"""
Graphics/Displays:
    Apple M3 Max:
      Chipset Model: Apple M3 Max
      Type: GPU
      Total Number of Cores: 30
"""


def test_a_real_mac_tells_its_gpu_cores() -> None:
    def answer(command: list[str], **_: Any) -> bytes:
        return DISPLAYS if command[1] == "SPDisplaysDataType" else MACBOOK_PRO

    with patch("subprocess.check_output", answer):
        found = asyncio.run(mac_device_capabilities())
    assert found.flops.fp32 == pytest.approx(10.5984, abs=1e-4)  # 30 cores, not the pinned 40
    assert found.flops.fp16 == pytest.approx(10.5984, abs=1e-4)
    assert set(found.reasons) == {"int8"}


@pytest.mark.parametrize(
    ("old", "new", "cores"),
    [
        ("30", "30", 30),
        ("30", "9999", 9999),
        ("30", "10000", None),
        ("30", "30 (24 active)", None),
        ("Chipset Model: Apple M3 Max", "Chipset Model: Apple M3", None),
        ("Total Number of Cores: 30", "", None),
    ],
)
def test_cores_are_those_of_the_asked_chip_and_plain(old: str, new: str, cores: int | None) -> None:
    text = DISPLAYS.replace(old.encode(), new.encode())
    with patch("subprocess.check_output", return_value=text):
        assert gpu_cores("Apple M3 Max") == cores


@pytest.mark.parametrize(
    ("text", "model", "chip", "memory"),
    [
        (b"Model Name: iMac\nProcessor Name: 8-Core Intel Core i9\nMemory: 64 GB\n", "iMac",
         "8-Core Intel Core i9", 65536),
        (b"Model Name: Mac Studio\nChip: Apple M9 Nova\nMemory: 1.5 TB\n", "Mac Studio",
         "Apple M9 Nova", 1572864),
        (b"Model Name: Old\nMemory: 512 MB\n", "Old", "Unknown Chip", 512),
        (b"Model Name: Old\nMemory: 8192 KB\n", "Old", "Unknown Chip", 8),
        (b"", "Unknown Model", "Unknown Chip", 0),
        (b"\xff\xfe\nChip: Apple M2\nMemory: lots\n", "Unknown Model", "Apple M2", 0),
    ],
)  # fmt: skip
def test_other_macs(text: bytes, model: str, chip: str, memory: int) -> None:
    with patch("subprocess.check_output", return_value=text):
        found = asyncio.run(mac_device_capabilities())
    assert (found.model, found.chip, found.memory) == (model, chip, memory)
    for name in ("fp32", "fp16", "int8"):
        assert getattr(found.flops, name) > 0 or found.reasons[name]


@pytest.mark.parametrize(
    ("status", "enabled"),
    [(b"", None), (b"enabled\n", True), (b"RDMA: Enabled", True), (b"disabled", False),
     (b"enabled: no (disabled)", False), (b"?", False)],
)  # fmt: skip
def test_a_mac_says_whether_rdma_is_enabled(status: bytes, enabled: bool | None) -> None:
    with patch("subprocess.check_output", return_value=status) as asked:
        assert rdma_enabled() is enabled
    assert asked.call_args.args == (["rdma_ctl", "status"],)


@pytest.mark.parametrize(
    ("printed", "said", "memory", "chip"),
    [
        (b"Memory: 8 GB\nChip: Apple M2\n", b"17179869184\n", 8192, "Apple M2"),
        (b"", b"17179869184\n", 16384, "17179869184"),
        (b"", b"17179869184".rjust(20, b"0"), 16384, "00000000017179869184"),
    ],
    ids=range(3),
)
def test_the_kernel_is_asked_for_what_system_profiler_leaves_out(
    printed: bytes, said: bytes, memory: int, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(command: list[str], **_: Any) -> bytes:
        return said if command[:2] == ["sysctl", "-n"] else printed

    monkeypatch.setattr("sys.platform", "darwin")
    with patch("subprocess.check_output", answer):
        found = hardware()
    assert (found.memory_mib, found.chip) == (memory, chip)
    assert set(found.reasons) == {"model"}


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "No such file"), subprocess.TimeoutExpired("system_profiler", 10)],
)
def test_a_mac_that_cannot_be_asked_says_so(error: Exception) -> None:
    with patch("subprocess.check_output", side_effect=error):
        found = asyncio.run(mac_device_capabilities())
    assert found == UNKNOWN_DEVICE_CAPABILITIES
    assert found.reasons["memory"].startswith("system_profiler cannot be asked: ")
