"""GPUs that answer badly, slowly or not at all, and those that only look so."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Ask = Callable[..., dict[str, Any]]
Steps = Callable[[dict[str, Any]], dict[str, tuple[str, str | None]]]

T4 = (
    "driver 580.95.05\ncuda 13000\ngpu\nname Tesla T4\npci 00000000:04:00.0 0x1EB810DE 0\n"
    "uuid GPU-14\nmemory 16106127360 0 16106127360 0\ncc 7.5\ncores 2560\n"
)
WELL = dict.fromkeys(("library", "responding", "granted"), ("ok", None))


def hanging(fake: ModuleType, trees: ModuleType, root: Path, count: int, rule: str) -> str:
    """Return a profile of `count` GPUs, the first of which never answers, and build the machine."""
    tree = trees.Tree(root)
    tree.add_driver()
    for number in range(count):
        address = f"0000:{number + 1:02x}:00.0"
        tree.add_pci(address, "2330", subsystem="10de:16c1")
        uuid = f"GPU-00000000-0000-4000-8000-{number:012x}"
        tree.add_information(address, "NVIDIA H100 80GB HBM3", uuid, minor=number)
    text: str = fake.many(count)
    head, first, *rest = text.split("gpu\n")
    return "gpu\n".join([head, f"{first}{rule}\n", *rest])


@pytest.mark.heavy
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("rule", ["on handle hang", "on nvmlDeviceGetMemoryInfo_v2 crash"])
def test_silent_gpu_hides_no_other(
    ask: Ask,
    fake: ModuleType,
    trees: ModuleType,
    steps: Steps,
    tmp_path: Path,
    count: int,
    rule: str,
) -> None:
    text = hanging(fake, trees, tmp_path, count, rule)
    if rule.endswith("crash"):
        assert ask(text, tmp_path)["died"] == -signal.SIGSEGV
    else:
        with pytest.raises(subprocess.TimeoutExpired):
            ask(text, tmp_path, timeout=1)
    silent = "pci:0000:01:00.0"
    said = ask(text, tmp_path, avoid=[silent])
    *living, dead = said["devices"]
    assert [gpu["ids"][0] for gpu in living] == [
        f"pci:0000:{number + 1:02x}:00.0" for number in range(1, count)
    ]
    assert [gpu["node_index"] for gpu in living] == [{"nvml": n} for n in range(1, count)]
    assert [steps(gpu) for gpu in living] == [WELL] * (count - 1)
    assert dead["ids"] == [silent, "uuid:GPU-00000000-0000-4000-8000-000000000000"]
    assert dead["name"] == "NVIDIA H100 80GB HBM3"
    assert steps(dead) == {"library": ("ok", None), "responding": ("broken", "driver-hangs")}
    assert "backends" not in dead
    assert silent not in said["touched"]
    assert said["findings"] == []


def test_index_of_a_silent_gpu_is_never_asked(
    ask: Ask, fake: ModuleType, trees: ModuleType, tmp_path: Path
) -> None:
    text = hanging(fake, trees, tmp_path, 2, "on handle hang")
    log = tmp_path / "calls"
    ask(text, tmp_path, avoid=["pci:0000:01:00.0"], log=log)
    calls = log.read_text().split()
    assert calls.count("nvmlDeviceGetHandleByPciBusId_v2") == 1
    assert "nvmlDeviceGetHandleByIndex_v2" not in calls


def test_silent_gpu_without_an_address(ask: Ask) -> None:
    """A sandbox without /sys: the index is all that names it, and it is announced as such."""
    text = T4 + "on handle hang\n" + T4[T4.index("gpu\n") :].replace(":04:", ":05:")
    said = ask(text, avoid=["nvidia:index-0"])
    assert [gpu["ids"][0] for gpu in said["devices"]] == ["pci:0000:05:00.0"]
    assert said["touched"] == ["nvidia:index-1", "pci:0000:05:00.0"]


@pytest.mark.parametrize("rule", ["hang", "crash"])
def test_shutdown_costs_nothing(ask: Ask, steps: Steps, rule: str) -> None:
    said = ask(f"on nvmlShutdown {rule}\n{T4}")
    assert steps(said["devices"][0]) == WELL


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("lines", "code", "findings", "evidence"),
    [
        (
            "on handle 0\non * 15",
            "gpu-lost",
            ["gpu-lost"],
            "NVML_ERROR_GPU_IS_LOST from nvmlDeviceGetPciInfo",
        ),
        (
            "on nvmlDeviceGetUUID 16",
            "gpu-reset-required",
            ["gpu-reset-required"],
            "NVML_ERROR_RESET_REQUIRED from nvmlDeviceGetUUID",
        ),
        (
            "remapped 0 1 1 0",
            "row-remap-pending",
            [],
            "nvmlDeviceGetRemappedRows: rows wait for a reset",
        ),
        (
            "remapped 0 1 1 1",
            "row-remap-failed",
            [],
            "nvmlDeviceGetRemappedRows: a row could not be remapped",
        ),
        (
            "power 60000 70000 60000 70000",
            "power-capped",
            [],
            "NVML's power limit is 60 W, the default 70 W",
        ),
        (
            "power 70000 70000 60000 70000 62500",
            "power-capped",
            [],
            "NVML's power limit is 62.5 W, the default 70 W",
        ),
        (
            "throttle 48",
            "thermal-slowdown",
            [],
            "nvmlDeviceGetCurrentClocksEventReasons: hw-slowdown, hw-thermal",
        ),
        (
            "throttle 88",
            "thermal-slowdown",
            [],
            "nvmlDeviceGetCurrentClocksEventReasons: hw-power-brake, hw-slowdown",
        ),
    ],
)
def test_what_is_wrong_with_it(
    ask: Ask, steps: Steps, lines: str, code: str, findings: list[str], evidence: str
) -> None:
    said = ask(f"{T4}{lines}\n")
    (gpu,) = said["devices"]
    assert steps(gpu)["responding"] == ("broken", code)
    assert gpu["step_facts"][1]["evidence"] == evidence
    # The core makes a finding of each broken step; the prober's own say more.
    assert [(f["code"], f["severity"]) for f in said["findings"]] == [
        (name, "error") for name in findings
    ]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "lines",
    [
        "throttle 1",  # idle
        "throttle 4\npower 70000 70000 60000 70000",  # at its own limit, under load
        "throttle 102",  # clocks that somebody set, and the display's
        "remapped 3 1 0 0",  # rows that were replaced
        "power 70000 65000 60000 70000",  # a limit above the default
        "on nvmlDeviceGetMemoryBusWidth 3",
    ],
)
def test_what_only_looks_wrong(ask: Ask, steps: Steps, lines: str) -> None:
    said = ask(f"{T4}{lines}\n")
    assert steps(said["devices"][0]) == WELL
    assert said["findings"] == []


def test_one_call_that_fails_proves_no_fault(ask: Ask, steps: Steps) -> None:
    said = ask(f"{T4}on nvmlDeviceGetMemoryBusWidth 999\n")
    assert steps(said["devices"][0])["responding"] == ("unknown", None)
    assert [f["code"] for f in said["findings"]] == ["gpu-errors"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("1", ("broken", "fabric-not-ready")),
        ("2", ("broken", "fabric-not-ready")),
        ("3 999", ("broken", "fabric-not-ready")),
        ("3", None),
        ("3 0", None),
        ("0", None),  # PCIe cards: the fabric manager says "Nothing to do"
    ],
)
def test_fabric(ask: Ask, steps: Steps, state: str, expected: tuple[str, str] | None) -> None:
    said = ask(f"{T4}nvlinks 18 26562\nfabric {state}\n")
    assert steps(said["devices"][0]).get("runtime") == expected
    assert steps(said["devices"][0])["granted"] == ("ok", None)
    assert len(said["findings"]) == (expected is not None)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("code", "step", "status", "word"),
    [
        (4, "permission", "broken", "no-permission"),
        (9, "library", "broken", "driver-not-loaded"),
        (10, "responding", "broken", "query-fails"),
        (13, "library", "broken", "library-broken"),
        (15, "responding", "unknown", "gpu-lost"),
        (17, "granted", "broken", "cgroup-denied"),
        (18, "library", "broken", "version-mismatch"),
        (20, "responding", "unknown", "out-of-memory"),
        (999, "responding", "broken", "query-fails"),
    ],
)
def test_init_fails_for_every_gpu_of_the_driver(
    ask: Ask,
    trees: ModuleType,
    steps: Steps,
    tmp_path: Path,
    code: int,
    step: str,
    status: str,
    word: str,
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.file("/dev/nvidiactl", "")
    tree.add_pci("0000:01:00.0", "2684")
    tree.add_pci("0000:02:00.0", "2684")
    tree.add_pci("0000:03:00.0", "2684", driver="vfio-pci")
    said = ask(f"on nvmlInit {code}\n", tmp_path)
    assert [gpu["ids"][0] for gpu in said["devices"]] == ["pci:0000:01:00.0", "pci:0000:02:00.0"]
    assert [steps(gpu) for gpu in said["devices"]] == [{step: (status, word)}] * 2


@pytest.mark.heavy
def test_lost_at_init_is_certain_of_the_only_one(
    ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("0000:01:00.0", "2684")
    (gpu,) = ask("on nvmlInit 15\n", tmp_path)["devices"]
    assert steps(gpu) == {"responding": ("broken", "gpu-lost")}


@pytest.mark.heavy
def test_unknown_error_in_a_container_is_its_cgroup(
    ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.file("/.dockerenv", "")
    tree.add_pci("0000:01:00.0", "2684")
    (gpu,) = ask("on nvmlInit 999\n", tmp_path)["devices"]
    assert steps(gpu) == {"granted": ("broken", "cgroup-denied")}


def test_versions_that_differ_are_both_evidence(
    ask: Ask, trees: ModuleType, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver("580.95.05")
    tree.add_pci("0000:01:00.0", "2684")
    tree.file("/usr/lib64/libnvidia-ml.so.580.105.08", "")
    (tmp_path / "usr/lib64/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.105.08")
    (gpu,) = ask("version-mismatch", tmp_path)["devices"]
    (fact,) = gpu["step_facts"]
    assert fact["evidence"] == (
        "NVML_ERROR_LIB_RM_VERSION_MISMATCH from nvmlInit: kernel driver and library differ in"
        " version (kernel driver 580.95.05, library 580.105.08)"
    )


def test_library_that_is_no_library(
    ask: Ask, library: Path, trees: ModuleType, steps: Steps, tmp_path: Path
) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("0000:01:00.0", "2684")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "libnvidia-ml.so.1").touch()
    said = ask("t4", tmp_path, folder=broken)
    assert said["error"]["code"] == "library-broken"
    (fact,) = said["devices"][0]["step_facts"]
    assert (fact["step"], fact["code"]) == ("library", "library-broken")
    assert "file too short" in fact["evidence"]


def test_count_that_fails(ask: Ask, trees: ModuleType, steps: Steps, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("0000:01:00.0", "2684")
    said = ask(f"on nvmlDeviceGetCount_v2 10\n{T4}", tmp_path)
    assert steps(said["devices"][0]) == {"responding": ("broken", "query-fails")}
    assert "nvmlDeviceGetCount" in said["error"]["reason"]


def test_limits_are_reported(ask: Ask) -> None:
    (gpu,) = ask("t4")["devices"]
    assert gpu["power"] == {
        "limit_watts": 70.0,
        "default_watts": 70.0,
        "max_watts": 70.0,
        "reasons": ["idle"],
    }
    assert gpu["ecc"] == {"enabled": True, "pending": True}
    assert (gpu["compute_mode"], gpu["persistence"]) == ("default", False)


def test_reasons_before_driver_535(ask: Ask) -> None:
    rule = "on nvmlDeviceGetCurrentClocksEventReasons 13"
    (gpu,) = ask(f"{T4}throttle 4\n{rule}\n")["devices"]
    assert gpu["power"] == {"reasons": ["sw-power-cap"]}
    assert "power.reasons" not in gpu["unknown"]
