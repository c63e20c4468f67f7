"""What decides for a device: which library is loaded, and whole judgements with their reasons."""

from __future__ import annotations

from typing import Any

import pytest
from test_wheels_verdicts import amd, intel, nvidia

from probe_wheels.devices import Gpu
from probe_wheels.frameworks import (
    _checked,
    carriers,
    main_libraries,
    on_torch,
    tag_version,
    toolkit_of,
)
from probe_wheels.judging import Scene, file_toolkit, judge, loaded_libraries, title
from probe_wheels.verdicts import Judgement, judge_library


def package(name: str, files: Any = None, build: str | None = None, **text: Any) -> Any:
    return {
        "name": name, "version": "1.0", "build": build, "site": "/s", "path": "/s",
        "files": files or {}, "text": text, "gfx": [], "requires": [], "missing": [], "outside": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/libbitsandbytes_cuda128.so", ("cuda", (12, 8))),
        ("libbitsandbytes_cuda118_nocublaslt.so", ("", ())),
        ("libbitsandbytes_cuda12.8.so", ("cuda", (12,))),
        ("libbitsandbytes_rocm64.so", ("rocm", (6, 4))),
        ("libbitsandbytes_rocm714.dll", ("rocm", (7, 14))),
        ("libbitsandbytes_rocm6.so", ("rocm", (6, 0))),
        ("libbitsandbytes_xpu2025.so", ("xpu", (2025,))),
        ("libbitsandbytes_xpu123456.so", ("", ())),
        ("libbitsandbytes_cuda.so", ("", ())),
        ("cuda128/lib.so", ("", ())),
    ],
)
def test_the_toolkit_in_a_name(path: str, expected: Any) -> None:
    assert file_toolkit(path) == expected


PATHS = [f"b_{name}.so" for name in ("cuda118", "cuda121", "cuda126", "rocm63", "rocm64", "xpu1")]
H100, MI300, ARC = nvidia("9.0"), amd("gfx942"), intel("xe-hpg", "12.56")


@pytest.mark.parametrize(
    ("torch", "gpu", "environ", "loaded"),
    [
        (package("torch", cuda="12.6"), H100, {}, "cuda126"),
        (package("torch", cuda="12.5"), H100, {}, "cuda121"),
        (package("torch", cuda="12.0"), H100, {}, "cuda121"),
        (package("torch", cuda="13.0"), H100, {}, "cuda118"),
        (package("torch", cuda="11.7"), H100, {}, "cuda118"),
        (package("torch", build="cu126"), H100, {}, "cuda126"),
        (package("torch", build="cu121", cuda=None), H100, {}, "cuda121"),
        (package("torch", cuda="12.6"), H100, {"BNB_CUDA_VERSION": "121"}, "cuda121"),
        (package("torch", cuda="12.6"), H100, {"BNB_CUDA_VERSION": "new"}, "cuda126"),
        (package("torch", hip="6.4.4"), MI300, {"BNB_ROCM_VERSION": "63"}, "rocm64"),
        (package("torch", rocm="6.3"), MI300, {}, "rocm63"),
        (package("torch", hip="6.2"), MI300, {}, "rocm63"),
        (package("torch", build="rocm6.4"), MI300, {}, "rocm64"),
        (package("torch", build="xpu"), ARC, {}, "xpu1"),
        (package("torch", xpu="20250101"), ARC, {}, "xpu1"),
        (None, H100, {}, "cuda118"),
        (None, MI300, {}, "rocm63 rocm64"),
        (None, nvidia("3.5"), {}, "cuda118 cuda121 cuda126"),
        (package("torch", cuda="12.6"), Gpu("a", "apple", "M1"), {}, None),
    ],
)
def test_the_library_that_the_installed_pytorch_loads(
    torch: Any, gpu: Gpu, environ: dict[str, str], loaded: str | None
) -> None:
    scene = Scene([package("numpy"), *([torch] if torch else [])], environ)
    found = loaded_libraries(PATHS, gpu, scene)
    assert found == (PATHS if loaded is None else [f"b_{name}.so" for name in loaded.split()])


FOR_OTHERS = ("other-vendor", "code for PyTorch's vendor", "another PyTorch")
FOR_CPU = ("cpu-build", "its CPU library", "a PyTorch build for sm_90")


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        (package("torch", hip="6.4"), FOR_OTHERS),
        (package("torch", build="rocm6.4"), FOR_OTHERS),
        (package("torch", build="xpu"), FOR_OTHERS),
        (package("torch", build="cpu"), FOR_CPU),
        (package("torch", cuda=None), FOR_CPU),
        (package("torch"), FOR_CPU),
    ],
)
def test_a_pytorch_without_the_vendor_loads_none(torch: Any, expected: tuple[str, ...]) -> None:
    found = loaded_libraries(PATHS, H100, Scene([torch]))
    assert isinstance(found, Judgement)
    assert (found.verdict, found.has, found.needs) == expected


ARC_UNKNOWN = intel("xe-hpg")
SUPPORTED = "Intel Arc, Core Ultra or Data Center GPU Max"


@pytest.mark.parametrize(
    ("library", "gpu", "torch", "expected"),
    [
        ({"cuda": [[["sm_90"], 2]]}, H100, False,
         ("native", "sm_90", "sm_90", "it has machine code that runs on sm_90")),
        ({"cuda": [[["sm_90"], 2]]}, nvidia("9.0", ""), False,
         ("native", "sm_90", "sm_90",
          "it has machine code that runs on sm_90; the driver's version is unknown")),
        ({"cuda": [[["ptx_80@8.0"], 2]]}, H100, False,
         ("jit-only", "PTX of sm_80", "machine code for sm_90",
          "it has no machine code for sm_90: the driver compiles its PTX at the first use")),
        ({"cuda": [[["ptx_80@8.8"], 2]]}, nvidia("9.0", "570.26"), False,
         ("needs-newer-driver", "PTX of sm_80", "driver 575.51.03 or newer",
          "its PTX 8.8 is newer than the driver can compile, and the driver is 570.26")),
        ({"cuda": [[["sm_80"], 2]]}, H100, False,
         ("lacks-device", "sm_80", "sm_90", "none of its code runs on sm_90")),
        ({"cuda": [[["sm_80"], 2]], "problem": "cut off"}, H100, False,
         ("unknown", "sm_80", "sm_90", "cut off")),
        ({"hip": [[["gfx942"], 1]]}, MI300, False,
         ("native", "gfx942", "gfx942", "it has machine code for gfx942")),
        ({"hip": [[["gfx90a"], 1]]}, MI300, False,
         ("lacks-device", "gfx90a", "gfx942", "none of its code is for gfx942")),
        ({"hip": [[["gfx90a"], 1]]}, amd(None), False,
         ("unknown", "gfx90a", "the processor of the GPU",
          "the processor (gfx) of GPU None is unknown")),
        ({"unread": 1}, MI300, False,
         ("unknown", "no code for a GPU", "gfx942",
          "its code is compressed, and nothing here can decompress it")),
        ({"packs": True}, MI300, False,
         ("unknown", "no code for a GPU", "gfx942",
          "its code lies in kernel packs, and none is in this environment")),
        ({"xe": ["12.55.8"], "intel": "native"}, ARC, True,
         ("native", "SYCL for IP 12.55.8", "xe-hpg", "it has machine code for xe-hpg")),
        ({"xe": ["20.1.4"], "intel": "native", "spirv": True}, ARC, True,
         ("jit-only", "SYCL for IP 20.1.4 and SPIR-V", "machine code for xe-hpg",
          "its machine code is for other chips: Level Zero compiles its SPIR-V")),
        ({"intel": "spirv", "spirv": True}, ARC, True,
         ("jit-only", "SYCL as SPIR-V", "machine code for xe-hpg",
          "its code is SPIR-V: Level Zero compiles it when it is loaded")),
        ({"intel": "native"}, ARC, False,
         ("unknown", "SYCL for named chips", "machine code for xe-hpg",
          "nobody here can tell which of Intel's chips its machine code is for")),
        ({"xe": ["20.1.4"], "intel": "native"}, ARC, False,
         ("lacks-device", "SYCL for IP 20.1.4", "machine code for xe-hpg",
          "none of its code runs on xe-hpg")),
        ({"xe": ["20.1.4"], "intel": "native"}, ARC_UNKNOWN, False,
         ("unknown", "SYCL for IP 20.1.4", "machine code for xe-hpg",
          "the IP version of GPU xe-hpg is unknown")),
        ({"xe": ["20.1.4"], "intel": "native"}, intel("gen9", "9.0"), False,
         ("lacks-device", "SYCL for IP 20.1.4", SUPPORTED, "gen9 is too old")),
        ({"xe": ["20.1.4"], "intel": "native"}, intel("xe-lp", "12.0"), True,
         ("lacks-device", "SYCL for IP 20.1.4", SUPPORTED, "PyTorch's XPU does not support xe-lp")),
    ],
)  # fmt: skip
def test_a_judgement_with_its_facts(
    library: Any, gpu: Gpu, torch: bool, expected: tuple[str, ...]
) -> None:
    found = judge_library(library, gpu, (), torch=torch)
    assert (found.verdict, found.has, found.needs, found.reason) == expected


LIBTORCH_HIP = "torch/lib/libtorch_hip.so"
CODE: Any = {"cuda": [[["sm_90"], 4]], "machines": ["x86_64"]}
HIP: Any = {"hip": [[["gfx942"], 4]], "machines": ["x86_64"]}
OTHER_HIP: Any = {"hip": [[["gfx90a"], 4]], "machines": ["x86_64"]}
BNB = "b/libbitsandbytes_rocm{}.so"
PACK: Any = {"format": "kpack", "hip": [[["gfx942"], 1]]}


@pytest.mark.parametrize(
    ("documents", "gpu", "expected"),
    [
        ([package("own", {"a.so": CODE})], H100, [("native", "a.so")]),
        ([package("own", {"a.so": CODE})], MI300, [("other-vendor", None)]),
        ([package("own", {"a.so": {"vulkan": True}})], MI300, [("compiles", None)]),
        ([package("own", {"a.so": CODE})], nvidia("9.0", arch="aarch64"), [("unknown", "a.so")]),
        ([package("own")], H100, []),
        ([package("triton")], H100, [("compiles", None)]),
        ([package("triton")], ARC, [("other-vendor", None)]),
        ([package("torch", build="cpu")], H100, [("cpu-build", None)]),
        ([package("torch", cuda="12.8")], H100, [("unknown", None)]),
        ([package("torch")], H100, []),
        ([package("nvidia-cudnn-cu12", {"l/libcudnn.so.9": CODE})], H100,
         [("native", "l/libcudnn.so.9")]),
        ([package("nvidia-cudnn-cu12", {"l/libcudnn.so.9": CODE})], nvidia("7.0"), []),
        ([package("torch", {LIBTORCH_HIP: {"packs": True}}), package("p", {"k": PACK})],
         MI300, [("native", LIBTORCH_HIP), ("native", "k")]),
        # Of builds for several chips the one that fits is taken; of others the first decides.
        ([package("own", {"x/k_sm80.so": {"cuda": [[["sm_80"], 9]]}, "x/k_sm90.so": CODE})], H100,
         [("native", "x/k_sm90.so")]),
        ([package("own", {"x/a.so": {"cuda": [[["sm_80"], 9]]}, "x/b.so": CODE})], H100,
         [("lacks-device", "x/a.so")]),
        # Which of them a PyTorch that is to come has it load nobody knows: the worst counts.
        ([package("bitsandbytes", {BNB.format(63): HIP, BNB.format(64): OTHER_HIP})], MI300,
         [("lacks-device", BNB.format(64))]),
        ([package("bitsandbytes", {BNB.format(63): OTHER_HIP, BNB.format(64): HIP})], MI300,
         [("lacks-device", BNB.format(63))]),
        ([package("bitsandbytes", {BNB.format(63): HIP, BNB.format(64): HIP})], MI300,
         [("native", BNB.format(63))]),
    ],
)  # fmt: skip
def test_verdicts_of_distributions(documents: list[Any], gpu: Gpu, expected: list[Any]) -> None:
    found = judge([gpu], Scene(documents))
    assert [(verdict["verdict"], verdict["library"]) for verdict in found] == expected
    assert {verdict["device"] for verdict in found} <= {gpu.id}


def test_rocblas_without_kernels_fails_for_a_wheel_with_code() -> None:
    document = package("torch", {LIBTORCH_HIP: HIP}, hip="6.4")
    document["gfx"] = ["gfx1100", "gfx90a"]
    (verdict,) = judge([MI300], Scene([document]))
    assert verdict == {
        "wheel": "torch 1.0",
        "device": "pci:gfx942",
        "verdict": "lacks-device",
        "library": LIBTORCH_HIP,
        "has": "gfx942; rocBLAS for gfx1100, gfx90a",
        "needs": "rocBLAS kernels for gfx942",
        "why": "its rocBLAS has no kernels for gfx942, so every matrix product fails",
    }
    document["gfx"] = ["gfx942"]
    assert [v["verdict"] for v in judge([MI300, MI300], Scene([document]))] == ["native"] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({}, "torch 1.0"), ({"version": "1.0+cu128"}, "torch 1.0+cu128"),
        ({"version": "1.01+cu128"}, "torch 1.0"), ({"version": "2.0"}, "torch 1.0"),
    ],
)  # fmt: skip
def test_the_title_of_a_distribution(text: dict[str, str], expected: str) -> None:
    assert title(package("torch", **text)) == expected
    assert title(package("torch", **text) | {"version": "1.0+own"}) == "torch 1.0+own"


@pytest.mark.parametrize(
    ("document", "toolkit"),
    [
        (package("own", cuda="12.8"), (12, 8)),
        (package("own", cuda_version="11.8.0", build="cu128"), (11, 8, 0)),
        (package("own", build="cu128", cuda="none"), (12, 8)),
        (package("own", build="cu12.8"), ()),
        (package("own", build="cpu"), ()),
        (package("faiss-gpu-cu12"), (12,)),
        (package("cupy-cuda102"), (10, 2)),
        (package("cupy_cuda12x"), (12,)),
        (package("tool-cu118-extra"), (11, 8)),
        (package("tool-custom"), ()),
        (package("own") | {"requires": ["numpy>=1", "nvidia-cublas-cu12==12.1; x"]}, (12,)),
        (package("own") | {"requires": ["nvidia-ml-py", "cuda-toolkit==13.0"]}, (13, 0)),
        (package("own") | {"requires": ["cuda-toolkit[cudart]==13.1", "nvidia-x-cu12"]}, (13, 1)),
        (package("own") | {"requires": ["nvidia-x", "other-cu12"]}, ()),
    ],
)
def test_the_cuda_that_a_distribution_says(document: Any, toolkit: tuple[int, ...]) -> None:
    assert toolkit_of(document) == toolkit


def test_versions_in_tags() -> None:
    tags = ["128", "92", "12", "10", "9", "49", "50", "1210", ""]
    assert [tag_version(tag) for tag in tags] == [
        (12, 8), (9, 2), (12,), (10,), (0, 9), (49,), (5, 0), (12, 10), (0, 0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "requires", "expected"),
    [
        ("own", ["torch>=2"], True), ("own", ["torch"], True), ("own", ["torch-x"], False),
        ("own", [], False), ("tensorflow", ["torch"], False), ("torch", ["torch"], False),
        ("flash-attn", [], True),
    ],
)  # fmt: skip
def test_what_runs_on_pytorch(name: str, requires: list[str], expected: bool) -> None:
    assert on_torch(package(name) | {"requires": requires}) is expected


def code(*counts: int) -> Any:
    return {"cuda": [[["sm_90"], count] for count in counts]}


def test_the_library_that_decides_comes_first() -> None:
    files = {"b.so": code(5), "a.so": code(2, 3), "c.so": code(9), "*.co": code(99), "d.so": {}}
    document = package("own", files | {"hip.so": HIP})
    assert main_libraries(document, None, "nvidia") == ["c.so", "a.so", "b.so", "*.co"]
    assert main_libraries(document, None, "amd") == ["hip.so"]
    table: Any = {"main": ["e.so", "b.so"]}
    assert main_libraries(document, table, "nvidia") == ["b.so"]
    none: Any = {"main": ["e.so"]}
    assert main_libraries(document, none, "nvidia")[0] == "c.so"


def test_distributions_that_carry_the_code_of_another() -> None:
    own = package("jaxlib", {"a.so": CODE})
    plugin = package("jax-cuda12-plugin", {"p.so": CODE})
    empty, other = package("jax-cuda13-plugin"), package("numpy", {"n.so": CODE})
    table: Any = {"elsewhere": ["jax-cuda*", "jaxlib"]}
    assert carriers(own, table, [own, plugin, empty, other]) == [plugin]
    table = {}
    assert carriers(own, table, [own, plugin]) == []


TABLE: Any = {"title": "T" * 400, "members": ["m"] * 64, "builds": [], "source": ""}


def test_a_described_framework_is_whole() -> None:
    assert _checked(TABLE | {"more": 1, "fix": {"nvidia": "f" * 400}, "main": ["a.so"]}) == {
        **TABLE, "main": ["a.so"], "parts": [], "elsewhere": [], "cpu": [], "compiles": [],
        "plain": "unknown", "fix": {"nvidia": "f" * 400},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([], "a framework is no table"),
        (TABLE | {"members": ["m"] * 65}, "members is no list of at most 64 texts"),
        (TABLE | {"builds": "nvidia"}, "builds is no list of at most 64 texts"),
        (TABLE | {"cpu": [7]}, "cpu is no list of at most 64 texts"),
        (TABLE | {"title": "T" * 401}, "title is no text of at most 400 characters"),
        (TABLE | {"follows": 7}, "follows is no text of at most 400 characters"),
        (TABLE | {"fix": []}, "fix is no table of commands"),
        (TABLE | {"fix": {"nvidia": "f" * 401}}, "fix is no table of commands"),
        (TABLE | {"fix": {"nvidia": "a\nb"}}, "fix is no table of commands"),
        (TABLE | {"fix": {"nvidia": "a", "amd": None}}, "fix is no table of commands"),
        ({"title": "T", "source": ""}, "members, builds is missing"),
    ],
)
def test_a_described_framework_that_is_none(table: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        _checked(table)
