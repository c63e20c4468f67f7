"""Which build is chosen for which node, what is printed for it, and that uv accepts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_wheels_verdicts import amd, intel, nvidia

from probe_core.cli import main
from probe_core.machine import Machine
from probe_core.testing import Tree
from probe_wheels import rules
from probe_wheels.choice import choose, pin_of
from probe_wheels.devices import Gpu
from probe_wheels.env_command import (
    _document,
    _lines,
    _variables,
    alone,
    conda_variables,
    pip_requirements,
    uv_variables,
    variant_variables,
)
from probe_wheels.rules import TORCH, cuda_of_driver
from probe_wheels.variants import features_of, properties

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
        ([nvidia("3.7", "470.82.01")], "cu118", 0),
        ([nvidia("3.5", "470.82.01")], "cpu", 1),
        ([nvidia("7.0"), nvidia("8.0")], "cu126", 0),
        ([nvidia("7.0"), nvidia("12.0")], "cu128", 0),
        ([nvidia("6.1"), nvidia("12.0")], "cu126", 1),
        ([nvidia("12.1", arch="aarch64")], "cu130", 0),
        ([nvidia("11.0", "", arch="aarch64")], "cu130", 0),
        # Builds for JetPack are published, and not known here.
        ([nvidia("8.7", "", arch="aarch64")], "", 1),
        ([nvidia("7.2", "", arch="aarch64")], "", 1),
        ([gpu(nvidia("8.7", "", arch="aarch64"), usable=False, step="visible")], "cpu", 1),
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
        ([gpu(nvidia("8.9"), usable=False, step="driver"), amd("gfx1100")], "rocm7.2", 1),
        ([gpu(nvidia("8.9"), usable=False, step="visible"), amd("gfx1100")], "rocm7.2", 1),
        ([gpu(nvidia("8.9"), usable=False, step="driver")], "cpu", 1),
        # What a repair of permissions or libraries changes is not the build.
        ([gpu(nvidia("8.9"), usable=False, step="permission")], "cu130", 0),
        ([gpu(nvidia("8.9"), usable=False, step="library"), amd("gfx1100")], "rocm7.2", 1),
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
    assert uv_variables(choice).get("UV_TORCH_BACKEND") == (backend or None)
    for name, value in uv_variables(choice).items():
        if name == "UV_AMD_GPU_ARCHITECTURE":
            assert value in TORCH["uv"]["amd"]


def test_alpine_has_no_builds() -> None:
    assert choose([nvidia("8.9")], musl=True).backend == "cpu"
    assert choose([nvidia("8.7", "", arch="aarch64")], musl=True).backend == "cpu"


@pytest.mark.parametrize("installer", ["uv", "pip", "conda", "variants"])
def test_of_a_jetson_no_build_for_the_cpu_is_printed(installer: str) -> None:
    choice = choose([nvidia("8.7", "", arch="aarch64")])
    variables = _variables(installer, choice)
    assert variables == {}
    args = SimpleNamespace(installer=installer, explain=False)
    report: Any = {"node": {"os": "linux"}}
    lines = _lines(args, choice, variables, report, ("cu129", ""))  # type: ignore[arg-type]
    assert lines == [
        (
            "# which build of PyTorch fits this Jetson is not known: NVIDIA publishes builds for"
            " JetPack, which are not listed here: look into its page 'Installing PyTorch for Jetson"
            " Platform' and the package index of the Jetson AI Lab"
        ),
        "# without GPU 8.7 (sm_87): no build of PyTorch's index has code for sm_87 on aarch64",
    ]
    document = _document(installer, choice, variables, ("cu129", ""))
    assert (document["backend"], document["requirement"]) == (None, None)


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


@pytest.mark.parametrize(
    ("capabilities", "cuda", "names"),
    [
        (("8.9",), "12", ["jax[cuda12]", "cupy-cuda12x"]),
        (("12.0",), "13", ["jax[cuda13]", "cupy-cuda13x"]),
        (("7.0",), "12", ["jax[cuda12]", "cupy-cuda12x"]),
        (("7.0", "12.0"), "12", ["jax[cuda12]", "cupy-cuda12x"]),
        (("3.7",), "11", ["cupy-cuda11x"]),
    ],
)
def test_of_an_unknown_driver_one_thing_is_assumed_for_all(
    capabilities: tuple[str, ...], cuda: str, names: list[str]
) -> None:
    choice = choose([nvidia(capability, "") for capability in capabilities])
    assert choice.assumed == choice.toolkit
    assert choice.toolkit.partition(".")[0] == cuda
    assert choice.reason.endswith(
        f"; the driver's version is unknown: one that runs CUDA {cuda} is assumed,"
        " for all frameworks"
    )
    assert pip_requirements(choice) == names
    assert "UV_CUDA_DRIVER_VERSION" not in uv_variables(choice)
    assert conda_variables(choice)["CONDA_OVERRIDE_CUDA"] == choice.toolkit
    forced = variant_variables(choice)["NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"]
    listed = properties(choice.served, rules.version_of(choice.assumed))
    assert listed[0] == f"nvidia :: cuda_version_lower_bound :: {forced}"
    assert forced == choice.toolkit


@pytest.mark.parametrize("driver", [OLD, NEW, "470.82.01", "570.86.15", "525.60.13", ""])
@pytest.mark.parametrize("capability", ["3.7", "6.1", "7.5", "8.0", "9.0", "10.0", "12.0"])
def test_frameworks_of_one_node_are_of_one_cuda(driver: str, capability: str) -> None:
    choice = choose([nvidia(capability, driver)])
    majors = {name[-3:-1] for name in pip_requirements(choice)}
    assert majors == ({choice.toolkit.partition(".")[0]} if choice.served else set())
    assert bool(choice.assumed) == (bool(choice.served) and not driver)


def test_variables_and_properties_of_variants_fit_all_devices() -> None:
    choice = choose([nvidia("9.0"), nvidia("8.0")])
    assert variant_variables(choice) == {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "13.0",
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "8.0",
    }
    # A variant is taken where all its properties are listed: older versions and targets, too.
    features = features_of("nvidia", choice.served)
    assert features["cuda_version_lower_bound"][:3] == ["13.0", "12.9", "12.8"]
    assert {"12.6", "12"} <= set(features["cuda_version_lower_bound"])
    assert features["cuda_version_upper_bound"][-1] == "13.1"
    # No machine code runs on both: that of 8.0 does not on 9.0.
    assert features["sm_arch"][:3] == ["80_virtual", "75_virtual", "72_virtual"]
    ada = features_of("nvidia", [nvidia("8.9")])["sm_arch"]
    assert ada[:3] == ["89_real", "86_real", "80_real"]
    listed = properties(choice.served)
    assert listed[0] == "nvidia :: cuda_version_lower_bound :: 13.0"
    assert len(listed) == len(set(listed)) == sum(map(len, features.values()))
    assert properties(choose([amd("gfx1100")]).served) == ["amd :: gfx_arch :: gfx1100"]
    assert properties(choose([amd("gfx1100"), amd("gfx1201")]).served) == []
    assert properties(choose([]).served) == []


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ((580, 95, 5), (13, 0)),
        ((579, 1), (12, 9)),
        ((570, 26), (12, 8)),
        ((560, 28, 3), (12, 6)),
        ((555, 42, 2), (12, 5)),
        ((525, 60, 13), (12, 0)),
        ((340, 108), ()),
    ],
)
def test_the_cuda_of_a_driver(driver: tuple[int, ...], cuda: tuple[int, ...]) -> None:
    assert cuda_of_driver(driver, "linux") == cuda


def run(capsys: pytest.CaptureFixture[str], machine: str, *arguments: str) -> tuple[int, list[str]]:
    (path,) = MACHINES.glob(f"{machine}--*.json")
    status = main(["env", "--machine", str(path), *arguments])
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_json_and_one_device(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = run(capsys, "dgx-h100", "--json", "--device", "pci:0000:43:00.0")
    document = json.loads("\n".join(lines))
    assert status == 0
    assert (document["backend"], document["devices"]) == ("cu130", ["pci:0000:43:00.0"])
    assert document["alone"]["backend"] == "cu132"
    status, lines = run(capsys, "dgx-h100", "--device", "pci:0000:ff:00.0")
    assert (status, lines) == (2, [])


def printed(
    installer: str, gpus: list[Gpu], *, explain: bool = True, os: str = "linux", uv: str = "cu132"
) -> list[str]:
    choice, args = choose(gpus), SimpleNamespace(installer=installer, explain=explain)
    report: Any = {"node": {"os": os}}
    own = (uv, "it compares the driver alone")
    return _lines(args, choice, _variables(installer, choice), report, own)  # type: ignore[arg-type]


ADA, KEPLER, RDNA3 = nvidia("8.9"), nvidia("3.7", "470.82.01"), amd("gfx1100")
FOR_ADA = "# GPU 8.9 (sm_89): PyTorch's build for CUDA 13.0 has code for sm_89"
FOR_KEPLER = [
    "# GPU 3.7 (sm_37): PyTorch's build for CUDA 11.8 has code for sm_37",
    "# that is the last series with its code: install 'torch<2.7'",
]
FOR_RDNA3 = "# GPU gfx1100 (gfx1100): PyTorch's build for ROCm has code for gfx1100"
FOR_NONE = "# this node has no GPU of NVIDIA, AMD, Intel or Apple"
UV_ALONE = "# uv alone would take cu132, another one: it compares the driver alone"
PIP_ALONE = "# pip alone takes PyPI's build, whatever the GPU is; it looks at no hardware"
CONDA_ALONE = "# conda alone takes the newest CUDA of the driver, whatever the GPU is"
INDEX = "# PyTorch: the index {} of its documentation (pip takes its address)"
BY_UV = "{}, or: uv pip install {} --torch-backend={}"


@pytest.mark.parametrize(
    ("installer", "gpus", "lines"),
    [
        ("uv", [ADA], [FOR_ADA, UV_ALONE, "export UV_TORCH_BACKEND=cu130",
                       "export UV_CUDA_DRIVER_VERSION=580.95.05"]),
        ("uv", [RDNA3], [FOR_RDNA3, UV_ALONE, "export UV_TORCH_BACKEND=rocm7.2",
                         "export UV_AMD_GPU_ARCHITECTURE=gfx1100"]),
        ("uv", [], [FOR_NONE, UV_ALONE, "export UV_TORCH_BACKEND=cpu"]),
        ("pip", [ADA], [FOR_ADA, PIP_ALONE, BY_UV.format(INDEX.format("cu130"), "torch", "cu130"),
                        "jax[cuda13]", "cupy-cuda13x"]),
        ("pip", [KEPLER], [*FOR_KEPLER, PIP_ALONE,
                           BY_UV.format(INDEX.format("cu118"), "'torch<2.7'", "cu118"),
                           "cupy-cuda11x"]),
        ("pip", [], [FOR_NONE, PIP_ALONE, INDEX.format("cpu")]),
        ("conda", [ADA], [FOR_ADA, CONDA_ALONE, "export CONDA_OVERRIDE_CUDA=13.0",
                          "export CONDA_OVERRIDE_CUDA_ARCH=8.9"]),
        ("conda", [], [FOR_NONE, CONDA_ALONE, 'export CONDA_OVERRIDE_CUDA=""']),
        ("variants", [RDNA3],
         [FOR_RDNA3, UV_ALONE, "export AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH=gfx1100",
          "# the static list of the variant protocol's draft, the best value first:",
          "# amd :: gfx_arch :: gfx1100"]),
        ("variants", [], [FOR_NONE, UV_ALONE]),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_printed_for_an_installer(
    installer: str, gpus: list[Gpu], lines: list[str]
) -> None:
    assert printed(installer, gpus) == lines
    short = [line for line in lines if line not in (UV_ALONE, PIP_ALONE, CONDA_ALONE)]
    assert printed(installer, gpus, explain=False) == short


def test_variables_of_windows_and_the_build_that_uv_takes_too() -> None:
    same = "# uv alone would take cu130, the same: it compares the driver alone"
    assert printed("uv", [ADA], os="windows", uv="cu130") == [
        *(FOR_ADA, same, '$env:UV_TORCH_BACKEND = "cu130"'),
        '$env:UV_CUDA_DRIVER_VERSION = "580.95.05"',
    ]
    assert printed("conda", [], os="windows")[-1] == '$env:CONDA_OVERRIDE_CUDA = ""'


def test_a_name_cannot_become_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    from probe_wheels.env_command import _comments

    evil = nvidia("3.5")
    evil.name = "GPU\nrm -rf ~\x1b[2J"
    (_, line) = _comments(choose([evil]))
    assert line.startswith("# without GPU rm -rf ~ [2J (sm_35): no published build")


UV = Path(sys.executable).parent / "uv"


@pytest.mark.heavy
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
    ran = _uv(tmp_path, **uv_variables(choose(gpus)))
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_tables_of_a_wheel_are_those_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(__file__).parents[1] / "package_files.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=60)
    made = tmp_path / "probe_wheels" / "data"
    names = sorted(path.stem for path in rules.FOLDER.glob("*.toml"))
    assert sorted(path.stem for path in made.iterdir()) == names
    assert names == ["drivers", "frameworks", "images", "torch"]
    edited = [rules._table(name) for name in names]
    assert edited == [rules.DRIVERS, rules.FRAMEWORKS, rules.IMAGES, rules.TORCH]
    monkeypatch.setattr(rules, "FOLDER", made)
    assert [rules._table(name) for name in names] == edited


def test_a_checkout_reads_what_is_edited() -> None:
    assert list(rules.FOLDER.glob("*.json")) == []


@pytest.mark.heavy
@pytest.mark.skipif(not UV.exists(), reason="uv is not installed beside this Python")
def test_the_tables_have_what_uv_has(tmp_path: Path) -> None:
    """What uv itself lists when it refuses a value, and what it takes and refuses of processors."""
    wrong = _uv(tmp_path, UV_TORCH_BACKEND="cu134")
    listed = wrong.stderr.partition("possible values: ")[2].partition("]")[0].split(", ")
    assert sorted(listed) == sorted(TORCH["uv"]["backends"])
    for name in TORCH["uv"]["amd"]:
        assert _uv(tmp_path, UV_AMD_GPU_ARCHITECTURE=name).returncode == 0, name
    for name in ("gfx803", "gfx1032", "gfx1103", "gfx1152", "gfx90a:xnack-"):
        assert _uv(tmp_path, UV_AMD_GPU_ARCHITECTURE=name).returncode == 2, name


def _uv(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "UV_OFFLINE": "1", **variables}
    command = [str(UV), "pip", "compile", "--no-cache", "--no-config", "-q", "-"]
    command += ["--python", sys.executable]
    return subprocess.run(
        command, input="", capture_output=True, text=True, env=environ, cwd=folder, check=False
    )


def windows(base: Gpu) -> Gpu:
    return gpu(base, os="windows")


BLOCKED = {"usable": False, "step": "driver"}

# What the build tables of PyTorch, the rules of CUDA's drivers and uv's source give for each:
# (GPUs, the choice, the pin, what uv alone takes, files of the node)
NODES: dict[str, tuple[list[Gpu], str, str, str, dict[str, str]]] = {
    "b200-570": ([nvidia("10.0", "570.26")], "cu128", "torch<2.12", "cu129", {}),
    "b300": ([nvidia("10.3")], "cu130", "torch", "cu132", {}),
    "gb200-570": (
        [nvidia("10.0", "570.26", arch="aarch64")], "cu129", "torch<2.11", "cu129", {},
    ),
    "gh200-550": ([nvidia("9.0", OLD, arch="aarch64")], "cu126", "torch", "cu129", {}),
    "l40s-at-the-floor": ([nvidia("8.9", "525.60.13")], "cu126", "torch", "cu129", {}),
    "l40s-below-it": ([nvidia("8.9", "525.60.11")], "cu118", "torch<2.8", "cu118", {}),
    "v100-and-t4": ([nvidia("7.0"), nvidia("7.5")], "cu126", "torch", "cu132", {}),
    "gtx-750-ti": ([nvidia("5.0", "535.183.01")], "cu126", "torch", "cu129", {}),
    "k80": ([nvidia("3.7", "470.82.01")], "cu118", "torch<2.7", "cu118", {}),
    "k40": ([nvidia("3.5", "470.82.01")], "cpu", "torch", "cu118", {}),
    "rtx-5090-beside-1080": (
        [gpu(nvidia("12.0"), primary=True), nvidia("6.1")], "cu130", "torch", "cu132", {},
    ),
    "orin": (
        [nvidia("8.7", "", arch="aarch64")], "", "torch", "cu129",
        {"/sys/module/nvidia/version": "540.4.0"},
    ),
    "driver-of-proc-alone": (
        [gpu(nvidia("8.9", ""), **BLOCKED)], "cpu", "torch", "cu129",
        {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64  550.144.03  x"},
    ),
    "nouveau": ([gpu(nvidia("8.6", ""), **BLOCKED)], "cpu", "torch", "cpu", {}),
    "windows-560": ([windows(nvidia("8.9", "560.94"))], "cu126", "torch", "cu129", {}),
    "windows-on-arm": ([windows(nvidia("12.1", arch="aarch64"))], "cpu", "torch", "cu132", {}),
    "mi300x-without-tools": ([amd("gfx942")], "rocm7.2", "torch", "cpu", {}),
    "mi300x-with-tools": (
        [amd("gfx942:sramecc+:xnack-")], "rocm7.2", "torch", "rocm7.2",
        {"/opt/rocm/bin/rocm_agent_enumerator": "x"},
    ),
    "mi50": ([amd("gfx906")], "rocm7.2", "torch", "cpu", {}),
    "strix-halo": ([amd("gfx1151")], "rocm7.2", "torch", "cpu", {}),
    "rx-580": ([amd("gfx803")], "cpu", "torch", "cpu", {}),
    "rx-6600": (
        [amd("gfx1032")], "cpu", "torch", "cpu", {"/usr/bin/rocm_agent_enumerator": "x"},
    ),
    "passthrough-beside-an-apu": (
        [gpu(nvidia("9.0", ""), **BLOCKED), amd("gfx1036")], "cpu", "torch", "cpu", {},
    ),
    "uhd-630": ([intel("gen9")], "cpu", "torch", "xpu", {}),
    "arc-on-arm": ([gpu(intel("xe-hpg"), arch="aarch64")], "cpu", "torch", "xpu", {}),
    "arc-on-windows": ([windows(intel("xe2"))], "xpu", "torch", "xpu", {}),
    "arc-beside-nvidia": (
        [gpu(nvidia("8.6"), primary=True), intel("xe-hpg")], "cu130", "torch", "cu132", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_nodes_of_the_field(tmp_path: Path, name: str) -> None:
    gpus, backend, requirement, own, files = NODES[name]
    tree = Tree(tmp_path)
    for path, text in files.items():
        tree.file(path, text)
    pci = [
        {"id": f"{'8086' if g.vendor == 'intel' else '10de'}:1", "class": "030000"} for g in gpus
    ]
    report: Any = {"node": {"os": gpus[0].os}, "devices": [{"pci": entry} for entry in pci]}
    choice = choose(gpus)
    assert (choice.backend, pin_of(choice.series)) == (backend, requirement)
    assert alone(gpus, report, tree.machine())[0] == own
    variables = uv_variables(choice)
    assert variables.get("UV_TORCH_BACKEND") == (backend or None)
    processor = variables.get("UV_AMD_GPU_ARCHITECTURE")
    assert processor is None or processor in TORCH["uv"]["amd"]
    if backend == "cpu":
        assert list(variables) == ["UV_TORCH_BACKEND"]


def test_alpine_with_an_intel_display_gets_the_cpu_from_uv_too(tmp_path: Path) -> None:
    pci = {"id": "8086:56a0", "class": "030000"}
    report: Any = {"node": {"os": "linux"}, "devices": [{"pci": pci}]}
    machine = Tree(tmp_path).machine()
    assert alone([intel("xe-hpg")], report, machine)[0] == "xpu"
    assert alone([intel("xe-hpg")], report, machine, musl=True)[0] == "cpu"


@pytest.mark.parametrize(
    ("files", "backend"),
    [
        (("/lib/ld-musl-x86_64.so.1",), "cpu"),
        # Debian's package musl, for cross-compilers: programs use glibc.
        (("/lib/ld-musl-x86_64.so.1", "/lib/x86_64-linux-gnu/libc.so.6"), "cu130"),
        (("/lib/ld-musl-x86_64.so.1", "/usr/lib/libc.so.6"), "cu130"),
        # Alpine's gcompat
        (("/lib/ld-musl-x86_64.so.1", "/lib/libc.so.6", "/etc/alpine-release"), "cpu"),
    ],
)
def test_musl_beside_glibc_changes_no_build(
    files: tuple[str, ...], backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "10de:2684", driver="nvidia")
    tree.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Module  580.95.05  Tue\n")
    for path in files:
        tree.file(path, "")
    assert main(["env", "--machine", str(tmp_path)]) == 0
    assert f"export UV_TORCH_BACKEND={backend}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["pci:0000:01:00.0", "01:00.0"])
def test_a_device_is_named_as_the_table_shows_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "10de:2684", driver="nvidia")
    assert main(["env", "--machine", str(tmp_path), "--device", name]) == 0
    assert "RTX 4090 (sm_89)" in capsys.readouterr().out


def test_uv_finds_rocms_tool_by_path_alone(tmp_path: Path) -> None:
    report: Any = {"node": {"os": "linux"}, "devices": []}
    Tree(tmp_path).file("/opt/rocm/bin/rocm_agent_enumerator", "x")
    machine = Machine(str(tmp_path), {"PATH": "/usr/bin"})
    assert alone([amd("gfx942")], report, machine)[0] == "cpu"
    machine = Machine(str(tmp_path), {"PATH": "/usr/bin:/opt/rocm/bin"})
    assert alone([amd("gfx942")], report, machine)[0] == "rocm7.2"


def test_a_recording_without_architecture_gets_no_build_for_the_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "10de:1db6", driver="nvidia")
    tree.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Module  580.95.05  Tue\n")
    tree.release("6.8.0")
    assert main(["env", "--json", "--machine", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["backend"] == "cu126"
    assert document["why"].endswith("; the node's architecture is unknown: x86_64 is assumed")
