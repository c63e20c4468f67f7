"""One GPU, or the whole library, fails: the rest is reported, and the reason is exact."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Ask = Callable[..., dict[str, Any]]

T4S = ("0000:10:00.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0")
UUID = "GPU-14000000-0000-4000-8000-00000000000{}"


def four_t4(tree: Any, *, information: bool = True) -> None:
    tree.add_driver()
    for number, address in enumerate(T4S):
        tree.add_pci(address, "1eb8", subsystem="10de:12a2")
        if information:
            tree.add_information(address, "Tesla T4", UUID.format(number), minor=number)


def test_gpu_without_handle_is_the_one_not_seen(
    ask: Ask, trees: ModuleType, tmp_path: Path
) -> None:
    four_t4(trees.Tree(tmp_path))
    said = ask("lost-handle", tmp_path)
    *good, lost = said["devices"]
    assert [gpu["ids"][0] for gpu in good] == [f"pci:{T4S[n]}" for n in (0, 1, 3)]
    assert [gpu["units"] for gpu in good] == [40, 40, 40]
    why = "NVML_ERROR_GPU_IS_LOST from nvmlDeviceGetHandleByIndex"
    unread = ["memory.total", "memory.free", "compute_capability", "units", "clocks.max_mhz"]
    assert lost == {
        "ids": ["pci:0000:12:00.0", f"uuid:{UUID.format(2)}"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "Tesla T4",
        "driver": {"name": "nvidia", "version": "580.95.05"},
        "node_index": {"nvml": 2},
        "power_state": "unknown",
        "unknown": dict.fromkeys(unread, why),
        "nodes": ["/dev/nvidia2", "/dev/nvidiactl", "/dev/nvidia-uvm"],
        "step_facts": [
            {
                "step": "library",
                "status": "ok",
                "evidence": "nvmlInit succeeded, driver 580.95.05",
            },
            {"step": "responding", "status": "broken", "evidence": why, "code": "gpu-lost"},
        ],
    }
    (finding,) = said["findings"]
    assert (finding["code"], finding["severity"]) == ("gpu-lost", "error")
    assert finding["device"] == "pci:0000:12:00.0"
    assert finding["why"] == why


def test_lost_gpu_without_any_address_is_still_told(ask: Ask) -> None:
    said = ask("lost-handle")
    assert len(said["devices"]) == 3
    (finding,) = said["findings"]
    assert (finding["code"], finding["device"]) == ("gpu-lost", None)
    assert finding["what"] == "GPU number 2 of NVML fails"


def test_gpu_lost_after_its_handle(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    four_t4(trees.Tree(tmp_path))
    log = tmp_path / "calls"
    said = ask("lost-call", tmp_path, log=log)
    lost = said["devices"][2]
    # The kernel driver's own files still know what it is.
    assert lost["ids"] == ["pci:0000:12:00.0", f"uuid:{UUID.format(2)}"]
    assert lost["name"] == "Tesla T4"
    assert lost["power_state"] == "unknown"
    assert "backends" not in lost
    assert set(lost["unknown"].values()) == {"NVML_ERROR_GPU_IS_LOST from nvmlDeviceGetUUID"}
    assert [gpu["memory"]["total"] for n, gpu in enumerate(said["devices"]) if n != 2] == [
        16106127360
    ] * 3
    assert [f["code"] for f in said["findings"]] == ["gpu-lost"]
    # A lost GPU may take seconds for each answer: after the first it is asked nothing more.
    assert log.read_text().split().count("nvmlDeviceGetMemoryInfo_v2") == 3


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("code", "finding"),
    [
        (3, []),
        (4, []),
        (13, []),
        (10, ["gpu-errors"]),
        (999, ["gpu-errors"]),
        (16, ["gpu-reset-required"]),
    ],
)
def test_error_of_one_call_costs_one_field(ask: Ask, code: int, finding: list[str]) -> None:
    said = ask(
        "driver 580.95.05\ncuda 13000\ngpu\nname Tesla T4\npci 00000000:04:00.0 0x1EB810DE 0\n"
        "uuid GPU-14\nmemory 16106127360 0 16106127360 0\ncc 7.5\ncores 2560\n"
        "clocks 1 1590 5001 1\n"
        f"bus-width 256\non nvmlDeviceGetMemoryBusWidth {code}\n"
    )
    (gpu,) = said["devices"]
    assert (gpu["name"], gpu["units"]) == ("Tesla T4", 40)
    assert gpu["clocks"] == {"max_mhz": 1590, "memory_max_mhz": 5001}
    assert gpu["unknown"]["bus_width_bits"].endswith("from nvmlDeviceGetMemoryBusWidth")
    assert "bus_width_bits" not in gpu
    assert ("memory" in gpu) == (code != 16)
    assert [f["code"] for f in said["findings"]] == finding


def test_gpus_outside_the_container_are_told(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    four_t4(trees.Tree(tmp_path), information=False)
    trees.Tree(tmp_path).file("/.dockerenv", "")
    profile = "gpu\nname Tesla T4\npci 00000000:11:00.0 0x1EB810DE 0\n"
    said = ask(profile, tmp_path)
    granted, *others = said["devices"]
    assert granted["ids"] == ["pci:0000:11:00.0"]
    assert [gpu["ids"] for gpu in others] == [[f"pci:{T4S[n]}"] for n in (0, 2, 3)]
    (finding,) = said["findings"]
    assert (finding["code"], finding["severity"]) == ("gpu-not-listed", "info")
    assert finding["what"] == "NVML does not list " + ", ".join(f"pci:{T4S[n]}" for n in (0, 2, 3))


def test_no_devices_where_the_driver_serves_some(
    ask: Ask, trees: ModuleType, tmp_path: Path
) -> None:
    four_t4(trees.Tree(tmp_path))
    error = ask("no-devices", tmp_path)["error"]
    assert error["code"] == "no-devices"
    assert error["reason"].endswith(", ".join(f"pci:{address}" for address in T4S))


CODES = {
    3: "not-supported",
    4: "no-permission",
    9: "driver-not-loaded",
    10: "driver-timeout",
    11: "irq-issue",
    13: "library-too-old",
    15: "gpu-lost",
    16: "gpu-reset-required",
    17: "blocked-by-system",
    18: "version-mismatch",
    20: "out-of-memory",
    23: "out-of-resources",
    27: "nvml-error-27",
    999: "unknown-error",
}


@pytest.mark.heavy
@pytest.mark.parametrize("code", CODES)
def test_each_code_of_init(ask: Ask, trees: ModuleType, tmp_path: Path, code: int) -> None:
    four_t4(trees.Tree(tmp_path))
    trees.Tree(tmp_path).file("/dev/nvidiactl", "")
    said = ask(f"on nvmlInit {code}\n", tmp_path)
    assert said["error"]["code"] == CODES[code]
    assert said["error"]["reason"].startswith("NVML cannot be used (NVML")
    assert said["error"]["fix"]
    # What the kernel driver's files know is reported all the same.
    assert [gpu["ids"][1] for gpu in said["devices"]] == [
        f"uuid:{UUID.format(n)}" for n in range(4)
    ]
    assert said["devices"][0]["unknown"]["units"] == said["error"]["reason"]


def test_version_mismatch_names_the_kernel_drivers_version(
    ask: Ask, trees: ModuleType, tmp_path: Path
) -> None:
    four_t4(trees.Tree(tmp_path))
    error = ask("version-mismatch", tmp_path)["error"]
    assert error["reason"] == (
        "NVML cannot be used (NVML_ERROR_LIB_RM_VERSION_MISMATCH): "
        "kernel driver and library differ in version (kernel driver 580.95.05)"
    )


@pytest.mark.heavy
def test_slow_init_is_waited_for(ask: Ask) -> None:
    assert len(ask("init-slow")["devices"]) == 1


@pytest.mark.heavy
def test_init_that_hangs_is_left_to_the_deadline(ask: Ask) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        ask("init-hang", timeout=0.6)


def test_crash_at_init_kills_the_child_only(ask: Ask) -> None:
    assert ask("init-crash")["died"] == -signal.SIGSEGV


def test_what_was_seen_before_a_crash_is_out(ask: Ask) -> None:
    said = ask("call-crash", flush=True)
    assert said["died"] == -signal.SIGSEGV
    (line,) = said["stderr"].splitlines()
    assert json.loads(line)["ids"][0] == "pci:0000:04:00.0"
