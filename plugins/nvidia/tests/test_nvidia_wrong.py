"""The table of causes, word for word: what a person reads, and what scripts compare."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request
from probe_core.probers import bus
from probe_nvidia import wrong
from probe_nvidia.causes import COUNT, INIT, TABLE, Cause, name_of
from probe_nvidia.scene import Scene

GPUS = "start the container with `docker run --gpus all`, or CDI: `--device nvidia.com/gpu=all`"
NO_FILE = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(("place", "key"), TABLE, ids=str)
def test_each_row_says_what_and_what_helps(place: str, key: int | str | None) -> None:
    cause = TABLE[place, key]
    if place == COUNT:
        return  # it decides the fact alone: the outcome is "unavailable" for all
    assert re.fullmatch(r"[a-z]+(-[a-z]+|-\{code\})*", cause.word)
    assert cause.fix
    assert cause.why or place != INIT
    assert bool(cause.what) == (place != INIT)
    assert (cause.step is None) <= (cause.code is None)


def test_an_unknown_code_has_a_cause(trees: ModuleType, tmp_path: Path) -> None:
    failure = failure_of(trees.Tree(tmp_path), 77)
    assert (failure.code, failure.reason) == (
        "nvml-error-77",
        "NVML cannot be used (NVML error 77): nvmlInit failed",
    )
    assert failure.fact == {
        "step": "responding",
        "status": "unknown",
        "evidence": "NVML error 77 from nvmlInit: nvmlInit failed",
        "code": "nvml-error-77",
    }


def failure_of(tree: Any, code: int, detail: str | None = None, **environ: str) -> wrong.Failure:
    machine = Machine(str(tree.root), environ)
    seen = bus.probe_devices(Request(machine))
    seen = [] if isinstance(seen, NotApplicable) else seen
    return wrong.library_failure(code, Scene(Request(machine, seen)), detail)


def served(tree: Any) -> None:
    tree.add_driver()
    tree.add_pci("0000:01:00.0", "2684")


def other(tree: Any) -> None:
    tree.add_pci("0000:01:00.0", "2684", driver="nouveau")


def module(tree: Any) -> None:
    tree.file("/sys/firmware/devicetree/base/compatible", "nvidia,tegra194\0")


def nothing(tree: Any) -> None:
    pass


# Machine, code, whether in a container → outcome's code, sentence, fix, step, the step's code.
CASES = [
    (
        (nothing, 12, False),
        "driver-not-installed",
        "NVIDIA's driver is not installed: no library (libnvidia-ml.so.1, nvml.dll), no module",
        "install NVIDIA's driver for this system",
        ("library", "library-missing"),
    ),
    (
        (other, 12, False),
        "other-driver",
        "the kernel driver nouveau holds the GPU, and NVIDIA's library needs NVIDIA's driver",
        "install NVIDIA's driver and keep nouveau from loading (blacklist)",
        ("library", "library-missing"),
    ),
    (
        (other, 9, False),
        "other-driver",
        "the kernel driver nouveau holds the GPU, and NVIDIA's library needs NVIDIA's driver",
        "install NVIDIA's driver and keep nouveau from loading (blacklist)",
        ("library", "driver-not-loaded"),
    ),
    (
        (nothing, 9, False),
        "driver-not-loaded",
        "the library is installed, but NVIDIA's kernel driver is not loaded",
        "modprobe nvidia; if that fails see dmesg (Secure Boot, DKMS build, new kernel)",
        ("library", "driver-not-loaded"),
    ),
    (
        (served, 12, False),
        "library-missing",
        "there is no libnvidia-ml.so.1 in this system, though the kernel driver is loaded",
        "install the driver's libraries (on Debian the package libnvidia-ml1)",
        ("library", "library-missing"),
    ),
    (
        (served, 12, True),
        "library-missing",
        "there is no libnvidia-ml.so.1 in the container, though the kernel driver is loaded",
        GPUS,
        ("library", "library-missing"),
    ),
    (
        (served, 9, True),
        "device-nodes-missing",
        "the device node /dev/nvidiactl is missing",
        GPUS,
        ("library", "driver-not-loaded"),
    ),
    (
        (module, 9, False),
        "driver-not-loaded",
        "the nvgpu driver is not loaded",
        "modprobe nvgpu; see dmesg",
        ("library", "driver-not-loaded"),
    ),
    (
        (module, 12, False),
        "library-missing",
        "NVIDIA's driver is not installed: no library (libnvidia-ml.so.1, nvml.dll), no module",
        "install NVIDIA's driver for this system",
        ("library", "library-missing"),
    ),
    (
        (served, 18, True),
        "version-mismatch",
        "kernel driver and library differ in version (kernel driver 580.95.05)",
        "remove the driver's libraries from the image: the host's belong into the container",
        ("library", "version-mismatch"),
    ),
    (
        (served, 999, False),
        "unknown-error",
        "the driver gives no cause",
        "look for NVRM and Xid in dmesg; check who may open /dev/nvidia*",
        ("responding", "query-fails"),
    ),
    (
        (served, 999, True),
        "unknown-error",
        "the container seems cut off from its GPUs' nodes, as after systemctl daemon-reload",
        (
            "restart the container; CDI or the cgroupfs driver prevents it "
            "(nvidia-container-toolkit#251)"
        ),
        ("granted", "cgroup-denied"),
    ),
    (
        (served, 13, False),
        "library-too-old",
        "the library lacks a function that nvidia-ml-py needs",
        "check which libnvidia-ml.so.1 the loader finds (a stub? LD_LIBRARY_PATH?)",
        ("library", "library-broken"),
    ),
    (
        (served, 17, False),
        "blocked-by-system",
        "the operating system blocked the request",
        "check the cgroup device rules and security policy of this service or container",
        ("granted", "cgroup-denied"),
    ),
]


@pytest.mark.parametrize(("scene", "word", "why", "fix", "broken"), CASES)
def test_why_the_library_cannot_start(
    trees: ModuleType,
    tmp_path: Path,
    scene: tuple[Any, int, bool],
    word: str,
    why: str,
    fix: str,
    broken: tuple[str, str],
) -> None:
    build, code, inside = scene
    tree = trees.Tree(tmp_path)
    build(tree)
    if inside:
        tree.file("/.dockerenv", "")
    failure = failure_of(tree, code, NO_FILE if code == 12 else None)
    name = name_of(code)
    assert (failure.code, failure.fix) == (word, fix)
    assert failure.reason == f"NVML cannot be used ({name}): {why}"
    assert failure.fact == {
        "step": broken[0],
        "status": "broken",
        "evidence": f"{name} from nvmlInit: {NO_FILE if code == 12 else why}",
        "code": broken[1],
    }


@pytest.mark.parametrize(("code", "status"), [(15, "gpu-lost"), (16, "gpu-reset-required")])
def test_a_lost_gpu_is_the_one_only_where_there_is_no_other(
    trees: ModuleType, tmp_path: Path, code: int, status: str
) -> None:
    tree = trees.Tree(tmp_path)
    served(tree)
    fact = failure_of(tree, code).fact
    assert (fact["step"], fact["status"], fact["code"]) == ("responding", "broken", status)
    tree.add_pci("0000:02:00.0", "2684")
    fact = failure_of(tree, code).fact
    assert (fact["step"], fact["status"], fact["code"]) == ("responding", "unknown", status)


def test_a_cause_without_a_sentence_gives_the_evidence() -> None:
    cause = Cause("responding", "gpu-lost", fix="reset it", what="{} fails")
    finding = cause.finding("GPU 3", "pci:0000:03:00.0", "what NVML said")["finding"]
    assert {name: value for name, value in finding.items() if value is not None} == {
        "code": "gpu-lost",
        "severity": "error",
        "what": "GPU 3 fails",
        "why": "what NVML said",
        "fix": "reset it",
        "device": "pci:0000:03:00.0",
        "step": "responding",
        "evidence": "what NVML said",
    }


@pytest.mark.parametrize(
    ("code", "fact"),
    [
        (10, {"status": "broken", "code": "query-fails"}),
        (999, {"status": "broken", "code": "query-fails"}),
        (4, {"status": "unknown"}),
        (None, {"status": "unknown"}),
    ],
)
def test_a_count_that_fails_says_what_is_certain(code: int | None, fact: dict[str, str]) -> None:
    error = Exception("odd")
    error.value = code  # type: ignore[attr-defined]
    failure = wrong.uncounted(error)
    name = name_of(code) + " from nvmlDeviceGetCount" if code else ""
    evidence = name or "nvmlDeviceGetCount: Exception('odd')"
    assert failure.reason == f"NVML does not report how many GPUs there are: {evidence}"
    assert failure.fact == {"step": "responding", "evidence": evidence, **fact}
