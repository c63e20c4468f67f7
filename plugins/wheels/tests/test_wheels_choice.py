"""Which build is chosen for which node, what is printed for it, and that uv accepts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_wheels_verdicts import amd, intel, nvidia

from probe_core.cli import main
from probe_wheels.choice import choose, pin_of
from probe_wheels.devices import Gpu
from probe_wheels.installers import (
    conda_variables,
    driver_cuda,
    properties,
    uv_variables,
    variant_variables,
)
from probe_wheels.tables import TORCH

MACHINES = Path(__file__).parents[3] / "tests" / "machines"
OLD, NEW = "550.54.14", "580.95.05"


def gpu(base: Gpu, **facts: object) -> Gpu:
    for name, value in facts.items():
        setattr(base, name, value)
    return base


@pytest.mark.parametrize(
    ("gpus", "backend", "excluded"),
    [
        ([], "cpu", 0),
        ([nvidia("8.9")], "cu130", 0),
        ([nvidia("12.0")], "cu130", 0),
        ([nvidia("12.0", "570.86.15")], "cu128", 0),
        ([nvidia("9.0", OLD)], "cu126", 0),
        ([nvidia("8.6", "470.82.01")], "cu118", 0),
        ([nvidia("8.6", "390.46")], "cpu", 1),
        # uv would take cu132 for all of these: it compares the driver alone.
        ([nvidia("7.0")], "cu126", 0),
        ([nvidia("6.1")], "cu126", 0),
        ([nvidia("6.0")], "cu126", 0),
        ([nvidia("5.2")], "cu126", 0),
        ([nvidia("3.7", "470.82.01")], "cpu", 1),
        ([nvidia("7.0"), nvidia("8.0")], "cu126", 0),
        ([nvidia("7.0"), nvidia("12.0")], "cu128", 0),
        ([nvidia("6.1"), nvidia("12.0")], "cu126", 1),
        ([nvidia("12.1", arch="aarch64")], "cu130", 0),
        ([nvidia("11.0", "", arch="aarch64")], "cu130", 0),
        ([nvidia("8.7", "", arch="aarch64")], "cpu", 1),
        ([nvidia("7.2", "", arch="aarch64")], "cpu", 1),
        ([nvidia("9.0", OLD, arch="aarch64")], "cu126", 0),
        ([nvidia("9.0", arch="ppc64le")], "cpu", 1),
        ([amd("gfx1100")], "rocm7.2", 0),
        ([amd("gfx90a:sramecc+:xnack-")], "rocm7.2", 0),
        ([amd("gfx1103")], "cpu", 1),
        ([amd("gfx1032")], "cpu", 1),
        ([amd(None)], "cpu", 1),
        ([gpu(amd("gfx1100"), os="windows")], "cpu", 1),
        ([intel("xe-hpg")], "xpu", 0),
        ([intel("xe2")], "xpu", 0),
        ([intel("gen9")], "cpu", 1),
        ([intel("xe-lp")], "cpu", 1),
        # Mixed nodes: the device with a build decides, the primary one first.
        ([nvidia("8.9"), intel("xe-lp")], "cu130", 1),
        ([intel("xe-lp"), amd("gfx1100")], "rocm7.2", 1),
        ([nvidia("3.5"), amd("gfx1100")], "rocm7.2", 1),
        ([gpu(nvidia("8.9"), state="blocked", step="driver"), amd("gfx1100")], "rocm7.2", 1),
        ([gpu(nvidia("8.9"), visible=False), amd("gfx1100")], "rocm7.2", 1),
        ([gpu(nvidia("8.9"), state="blocked", step="driver")], "cpu", 1),
        # What a repair of permissions or libraries changes is not the build.
        ([gpu(nvidia("8.9"), state="blocked", step="permission")], "cu130", 0),
        ([gpu(nvidia("8.9"), state="blocked", step="library"), amd("gfx1100")], "rocm7.2", 1),
        # Nobody knows the driver: the build of an older one.
        ([nvidia("8.9", "")], "cu126", 0),
        ([nvidia("12.0", "")], "cu130", 0),
        ([gpu(amd("gfx1100"), primary=True), nvidia("8.9")], "rocm7.2", 1),
        ([amd("gfx1100"), gpu(amd("gfx1036"), discrete=False)], "rocm7.2", 1),
        ([Gpu("x", "apple", "Apple M3")], "cpu", 0),
    ],
)
def test_the_build_for_a_node(gpus: list[Gpu], backend: str, excluded: int) -> None:
    choice = choose(gpus)
    assert (choice.backend, len(choice.excluded)) == (backend, excluded)
    assert uv_variables(choice)["UV_TORCH_BACKEND"] == backend
    for name, value in uv_variables(choice).items():
        if name == "UV_AMD_GPU_ARCHITECTURE":
            assert value in TORCH["uv"]["amd"]


def test_alpine_has_no_builds() -> None:
    assert choose([nvidia("8.9")], musl=True).backend == "cpu"


def test_the_last_series_with_the_code_is_pinned() -> None:
    choice = choose([nvidia("7.0"), nvidia("12.0")])
    assert (choice.series, pin_of(choice.series)) == ("2.10", "torch<2.11")
    assert pin_of("") == "torch"


def test_variables_for_conda_hold_cuda_to_what_the_gpu_takes() -> None:
    assert conda_variables(choose([nvidia("8.9")])) == {
        "CONDA_OVERRIDE_CUDA": "13.0",
        "CONDA_OVERRIDE_CUDA_ARCH": "8.9",
    }
    assert conda_variables(choose([nvidia("7.0")]))["CONDA_OVERRIDE_CUDA"] == "12.9"
    assert conda_variables(choose([nvidia("7.0", OLD)]))["CONDA_OVERRIDE_CUDA"] == "12.4"
    assert conda_variables(choose([amd("gfx1100")])) == {"CONDA_OVERRIDE_CUDA": ""}


def test_variables_and_properties_of_variants_fit_all_devices() -> None:
    choice = choose([nvidia("9.0"), nvidia("8.0")])
    assert variant_variables(choice) == {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "13.0",
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "8.0",
    }
    assert properties(choice) == [
        "nvidia :: cuda_version_lower_bound :: 13.0",
        "nvidia :: sm_arch :: 80_real",
        "nvidia :: sm_arch :: 80_virtual",
    ]
    assert properties(choose([amd("gfx1100")])) == ["amd :: gfx_arch :: gfx1100"]
    assert properties(choose([])) == []


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ((580, 95, 5), (13, 0)),
        ((579, 1), (12, 9)),
        ((570, 26), (12, 8)),
        ((525, 60, 13), (12, 0)),
        ((340, 108), ()),
    ],
)
def test_the_cuda_of_a_driver(driver: tuple[int, ...], cuda: tuple[int, ...]) -> None:
    assert driver_cuda(driver, "linux") == cuda


def run(capsys: pytest.CaptureFixture[str], machine: str, *arguments: str) -> tuple[int, list[str]]:
    (path,) = MACHINES.glob(f"{machine}--*.json")
    status = main(["env", "--machine", str(path), *arguments])
    return status, capsys.readouterr().out.splitlines()


def test_the_command_on_recorded_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "dgx-h100", "--explain") == (
        0,
        [
            "# NVIDIA H100 80GB HBM3 (sm_90): PyTorch's build for CUDA 13.0 has code for sm_90",
            "# uv alone would take cu132, another one: it compares the driver alone (580.95.05)",
            "export UV_TORCH_BACKEND=cu130",
            "export UV_CUDA_DRIVER_VERSION=580.95.05",
        ],
    )
    assert run(capsys, "dgx-spark") == (
        0,
        [
            "# NVIDIA GB10 (sm_121): PyTorch's build for CUDA 13.0 has code for sm_121",
            "export UV_TORCH_BACKEND=cu130",
            "export UV_CUDA_DRIVER_VERSION=580.95.05",
        ],
    )


def test_json_and_one_device(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = run(capsys, "dgx-h100", "--json", "--device", "pci:0000:43:00.0")
    document = json.loads("\n".join(lines))
    assert status == 0
    assert (document["backend"], document["devices"]) == ("cu130", ["pci:0000:43:00.0"])
    assert document["alone"]["backend"] == "cu132"
    status, lines = run(capsys, "dgx-h100", "--device", "pci:0000:ff:00.0")
    assert (status, lines) == (2, [])


def test_a_name_cannot_become_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    from probe_wheels.env_command import _comments

    evil = nvidia("3.5")
    evil.name = "GPU\nrm -rf ~\x1b[2J"
    (_, line) = _comments(choose([evil]))
    assert line.startswith("# without GPU rm -rf ~ [2J (sm_35): no published build")


UV = Path(sys.executable).parent / "uv"


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed beside this Python")
@pytest.mark.parametrize(
    "gpus",
    [
        [nvidia("7.0")],
        [nvidia("8.9")],
        [nvidia("12.0", "570.86.15")],
        [nvidia("8.6", "470.82.01")],
        [nvidia("8.7", "", arch="aarch64")],
        [amd("gfx1100")],
        [amd("gfx1103")],
        [amd("gfx90a:sramecc+:xnack-")],
        [intel("xe2")],
        [],
    ],
)
def test_uv_accepts_what_is_printed(gpus: list[Gpu], tmp_path: Path) -> None:
    variables = uv_variables(choose(gpus))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "UV_OFFLINE": "1", **variables}
    command = [str(UV), "pip", "compile", "--no-cache", "--no-config", "-q", "-"]
    command += ["--python", sys.executable]
    ran = subprocess.run(
        command, input="", capture_output=True, text=True, env=environ, cwd=tmp_path
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_tables_are_those_of_the_data() -> None:
    script = Path(__file__).parents[1] / "build_tables.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")
