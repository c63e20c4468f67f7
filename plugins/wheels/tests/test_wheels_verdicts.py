"""Verdicts on what real wheels hold: their sets of targets with counts, read in November 2026."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wheel_files as build

from probe_wheels.choice import JETPACK
from probe_wheels.devices import Gpu
from probe_wheels.distributions import read_distributions
from probe_wheels.files import Budget
from probe_wheels.findings import findings_of
from probe_wheels.judging import Scene, is_cpu_build, judge
from probe_wheels.rules import runs_on_gfx

# Of each wheel the library that decides, with what it was read to hold (rounded where noted).
TORCH_29 = {
    "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120": 391,
    "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120 sm_120a": 1,
    "sm_70 sm_75 sm_80 sm_86 sm_90 sm_90a sm_100 sm_100a sm_120": 2,
    "sm_70 sm_75 sm_80 sm_86 sm_90 sm_90a sm_100 sm_120": 3,
}
TORCH_214 = {
    "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120": 416,
    "sm_75 sm_80 sm_86 sm_90 sm_100 sm_100a sm_103f sm_120": 59,
}
LINALG_214 = {"sm_80 sm_86 sm_90 sm_100 sm_120": 65}
ONNX = {
    "sm_75 sm_80 sm_86 sm_89 sm_90a sm_120a": 217,
    "sm_80 sm_86 sm_89 sm_90a sm_120a": 91,
    "sm_90a": 292,
    "sm_120a": 9,
}
FAISS = {"sm_70 sm_80": 182}
TENSORFLOW = {"sm_60 sm_70 sm_80 sm_89 sm_90 ptx_90@8.3": 249}
XFORMERS = {"sm_75 sm_80 sm_90a ptx_80@8.7": 11}
CTRANSLATE = {"sm_53 sm_60 sm_61 sm_70 sm_75 sm_80 sm_86 ptx_86@8.7": 34}
VLLM_011 = {"sm_52 ptx_52@8.7": 1, "sm_80 sm_86 sm_89 sm_90": 79}
BITS = {
    "118": {"sm_60 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90": 1},
    "126": {"sm_60 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90": 1},
    "128": {"sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120": 1},
    "130": {"sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120": 1},
}
VERSION = "__version__ = '{0}'\ncuda: Optional[str] = {1}\nhip: Optional[str] = {2}\nxpu = None\n"


def nvidia(capability: str, driver: str = "580.95.05", arch: str = "x86_64") -> Gpu:
    gpu = Gpu(f"pci:{capability}", "nvidia", f"GPU {capability}")
    major, _, minor = capability.partition(".")
    gpu.capabilities = ((int(major), int(minor)),)
    gpu.driver = tuple(int(part) for part in driver.split(".")) if driver else ()
    gpu.arch, gpu.usable = arch, True
    return gpu


def amd(processor: str | None) -> Gpu:
    gpu = Gpu(f"pci:{processor}", "amd", f"GPU {processor}")
    gpu.processor, gpu.usable = processor, True
    return gpu


def intel(family: str, *releases: str) -> Gpu:
    gpu = Gpu(f"pci:{family}", "intel", f"GPU {family}")
    gpu.families, gpu.releases, gpu.usable = (family,), releases, True
    return gpu


def torch(cuda: str | None, version: str = "2.9.1+cu128", hip: str | None = None) -> str:
    return VERSION.format(version, repr(cuda), repr(hip))


WHEELS: dict[str, tuple[str, str, dict[str, bytes | str]]] = {
    "torch-2.9": (
        "torch",
        "2.9.1",
        {
            "torch/version.py": torch("12.8"),
            "torch/lib/libtorch_cuda.so": build.cuda(TORCH_29),
            "torch/lib/libtorch_cuda_linalg.so": build.cuda({"sm_50 sm_60 sm_70 sm_80": 107}),
            "torch/lib/libcusparseLt.so.0": build.cuda({"sm_80 ptx_52@8.5": 900}),
        },
    ),
    "torch-2.14": (
        "torch",
        "2.14.1",
        {
            "torch/version.py": torch("13.0", "2.14.1+cu130"),
            "torch/lib/libtorch_cuda.so": build.cuda(TORCH_214),
            "torch/lib/libtorch_cuda_linalg.so": build.cuda(LINALG_214),
        },
    ),
    "torch-cpu": ("torch", "2.9.1+cpu", {"torch/version.py": torch(None, "2.9.1+cpu")}),
    "torch-rocm": (
        "torch",
        "2.9.1+rocm6.4",
        {
            "torch/version.py": torch(None, "2.9.1+rocm6.4", "6.4.43482"),
            "torch/lib/libtorch_hip.so": build.hip("gfx90a gfx942 gfx1030 gfx1100 gfx1103", 8),
            "torch/lib/rocblas/library/TensileLibrary_lazy_gfx942.dat": b"",
            "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat": b"",
            "torch/lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco": b"",
            "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat": b"",
        },
    ),
    "onnx-gpu": (
        "onnxruntime-gpu",
        "1.31.1",
        {
            "onnxruntime/capi/libonnxruntime_providers_cuda.so": build.cuda(ONNX),
            "onnxruntime/capi/build_and_package_info.py": "cuda_version = '13.0'\n",
        },
    ),
    "onnx": ("onnxruntime", "1.31.1", {"onnxruntime/capi/x.so": build.elf([(".text", b"")])}),
    "faiss": (
        "faiss-gpu-cu12",
        "1.14.1.post1",
        {"faiss_gpu_cu12.libs/libfaiss-6b43fd57.so": build.cuda(FAISS)},
    ),
    "tensorflow": (
        "tensorflow",
        "2.21.0",
        {"tensorflow/libtensorflow_cc.so.2": build.cuda(TENSORFLOW)},
    ),
    "xformers": ("xformers", "0.0.35", {"xformers/_C.so": build.cuda(XFORMERS)}),
    "ctranslate2": (
        "ctranslate2",
        "4.8.5",
        {"ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5": build.cuda(CTRANSLATE)},
    ),
    "flash-attn": (
        "flash-attn",
        "2.8.3",
        {"flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so": build.cuda({"sm_80 sm_90": 70})},
    ),
    "vllm": ("vllm", "0.11.0", {"vllm/_C.abi3.so": build.cuda(VLLM_011)}),
    "bitsandbytes": (
        "bitsandbytes",
        "0.50.2",
        {
            **{
                f"bitsandbytes/libbitsandbytes_cuda{tag}.so": build.cuda(groups)
                for tag, groups in BITS.items()
            },
            "bitsandbytes/libbitsandbytes_rocm64.so": build.hip("gfx90a gfx1100", 2),
            "bitsandbytes/libbitsandbytes_rocm714.so": build.hip("gfx1030 gfx1100", 2),
        },
    ),
    "jaxlib": ("jaxlib", "0.10.2", {"jaxlib/libjax_common.so": build.elf([(".text", b"")])}),
    "jax-plugin": (
        "jax-cuda13-pjrt",
        "0.12.0",
        {
            "jax_plugins/xla_cuda13/xla_cuda_plugin.so": build.cuda(
                {"sm_75 sm_80 sm_90 sm_100 sm_110 sm_120 ptx_120@9.0": 52}
            )
        },
    ),
    "triton": ("triton", "3.9.0", {"triton/_C/libtriton.so": build.elf([(".text", b"")])}),
    "unknown": ("acme-kernels", "1.0", {"acme/_ops.so": build.cuda({"sm_90a": 4})}),
    "dpnp": (
        "dpnp",
        "0.20.0",
        {"dpnp/lib.so": build.elf([("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", b"x")])},
    ),
    "mlx": ("mlx", "0.32.4", {"mlx/core.so": build.elf([(".text", b"")])}),
}


def verdicts(folder: Path, wheels: list[str], *gpus: Gpu, **environ: str) -> list[str]:
    site = build.environment(folder / "env")
    for wheel in wheels:
        name, version, files = WHEELS[wheel]
        build.install(site, name, version, files)
    documents = read_distributions([str(site)], Budget())
    return [verdict["verdict"] for verdict in judge(gpus, Scene(documents, environ))]


NATIVE, JIT, LACKS, DRIVER = "native", "jit-only", "lacks-device", "needs-newer-driver"


@pytest.mark.parametrize(
    ("wheel", "gpu", "expected"),
    [
        # libtorch_cuda decides, not linalg with its 5.0, nor a cuSPARSELt with PTX for 5.2.
        ("torch-2.9", nvidia("6.1"), LACKS),
        ("torch-2.9", nvidia("7.0"), NATIVE),
        ("torch-2.9", nvidia("8.9"), NATIVE),
        ("torch-2.9", nvidia("10.3"), NATIVE),
        ("torch-2.9", nvidia("12.1"), NATIVE),
        ("torch-2.9", nvidia("11.0"), LACKS),
        ("torch-2.9", nvidia("9.0", "520.61.05"), DRIVER),
        ("torch-2.9", nvidia("9.0", "525.60.13"), NATIVE),
        ("torch-2.9", nvidia("9.0", ""), NATIVE),
        ("torch-2.9", amd("gfx1100"), "other-vendor"),
        ("torch-2.14", nvidia("7.0"), LACKS),
        ("torch-2.14", nvidia("7.5"), NATIVE),
        ("torch-2.14", nvidia("8.0", "570.26"), DRIVER),
        ("torch-cpu", nvidia("8.9"), "cpu-build"),
        ("torch-cpu", amd("gfx1100"), "cpu-build"),
        ("torch-rocm", amd("gfx1100"), NATIVE),
        ("torch-rocm", amd("gfx90a:sramecc+:xnack-"), NATIVE),
        # It has kernels for gfx1103, and its rocBLAS has none.
        ("torch-rocm", amd("gfx1103"), LACKS),
        ("torch-rocm", amd("gfx1032"), LACKS),
        ("torch-rocm", amd(None), "unknown"),
        ("torch-rocm", nvidia("8.9"), "other-vendor"),
        # Kernels for newer chips exist only there: not every container has code for all.
        ("onnx-gpu", nvidia("7.5"), NATIVE),
        ("onnx-gpu", nvidia("8.9"), NATIVE),
        ("onnx-gpu", nvidia("9.0"), NATIVE),
        ("onnx-gpu", nvidia("10.0"), LACKS),
        ("onnx-gpu", nvidia("12.0"), NATIVE),
        ("onnx-gpu", nvidia("12.1"), LACKS),
        ("onnx-gpu", nvidia("8.6", "550.54.14"), DRIVER),
        ("onnx", nvidia("8.6"), "cpu-build"),
        ("faiss", nvidia("8.9"), NATIVE),
        ("faiss", nvidia("7.5"), NATIVE),
        ("faiss", nvidia("9.0"), LACKS),
        ("tensorflow", nvidia("6.1"), NATIVE),
        ("tensorflow", nvidia("12.0"), JIT),
        ("tensorflow", nvidia("12.0", "535.54.03"), DRIVER),
        ("xformers", nvidia("8.6"), NATIVE),
        ("xformers", nvidia("7.0"), LACKS),
        ("xformers", nvidia("12.0"), JIT),
        ("xformers", nvidia("12.0", "565.57.01"), DRIVER),
        ("ctranslate2", nvidia("6.1"), NATIVE),
        ("ctranslate2", nvidia("9.0"), JIT),
        # One container of 80 is no support.
        ("vllm", nvidia("6.1"), LACKS),
        ("vllm", nvidia("8.6"), NATIVE),
        ("jaxlib", nvidia("8.6"), "cpu-build"),
        ("jax-plugin", nvidia("7.0"), LACKS),
        ("jax-plugin", nvidia("11.0"), NATIVE),
        ("triton", nvidia("6.1"), "compiles"),
        ("triton", intel("xe-hpg"), "other-vendor"),
        ("unknown", nvidia("9.0"), NATIVE),
        ("unknown", nvidia("10.0"), LACKS),
        ("dpnp", intel("xe-hpg"), JIT),
        ("dpnp", intel("gen9"), LACKS),
        ("mlx", nvidia("9.0"), "cpu-build"),
    ],
)
def test_one_wheel_on_one_device(tmp_path: Path, wheel: str, gpu: Gpu, expected: str) -> None:
    assert verdicts(tmp_path, [wheel], gpu) == [expected]


def test_code_in_kernel_packs_of_another_distribution(tmp_path: Path) -> None:
    """TheRock's torch has its code in amd-torch-device-gfx1100 and the like."""
    site = build.environment(tmp_path / "env")
    library = build.elf([(".rocm_kpack_ref", b"x"), (".hip_fatbin", bytes(4096))])
    build.install(site, "torch", "2.10+rocm7.14", {"torch/lib/libtorch_hip.so": library})
    gpus = [amd("gfx1100"), amd("gfx942")]
    documents = read_distributions([str(site)], Budget())
    assert [v["verdict"] for v in judge(gpus, Scene(documents))] == ["unknown", "unknown"]
    contents = b"\x81\xaagfx_arches\x91\xa7gfx1100"
    pack = b"KPAK" + bytes(4) + (16).to_bytes(8, "little") + contents
    files = {"torch/lib/.kpack/torch_gfx1100.kpack": pack}
    build.install(site, "amd-torch-device-gfx1100", "2.10", files)
    documents = read_distributions([str(site)], Budget())
    verdicts = [v for v in judge(gpus, Scene(documents)) if v["wheel"].startswith("torch ")]
    assert [v["verdict"] for v in verdicts] == [NATIVE, LACKS]


@pytest.mark.parametrize(
    ("section", "capability", "expected"),
    [
        (build.container(["sm_80"]) + b"\xff" * 64, "8.0", NATIVE),
        (build.container(["sm_80"]) + b"\xff" * 64, "9.0", "unknown"),
        # A container whose entry has a header of 0 bytes.
        (bytes(bytearray(build.container(["sm_80"]))[:20] + bytes(76)), "8.0", "unknown"),
    ],
)
def test_what_was_not_read_is_not_missing(
    tmp_path: Path, section: bytes, capability: str, expected: str
) -> None:
    site = build.environment(tmp_path / "env")
    library = build.elf([(".nv_fatbin", section)])
    build.install(site, "acme", "1.0", {"acme/x.so": library})
    documents = read_distributions([str(site)], Budget())
    assert [v["verdict"] for v in judge([nvidia(capability)], Scene(documents))] == [expected]
    assert documents[0]["files"]["acme/x.so"]["problem"]


def test_many_files_of_machine_code_are_counted_by_their_names(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    names = [f"cubins/gemm/sm100/k{n}.cubin" for n in range(30)]
    names += [f"cubins/fmha/fmhaSm100aKernel{n}.cubin" for n in range(20)]
    names += [f"cubins/fmhaSm103aKernel{n}.cubin" for n in range(20)] + ["cubins/sm90_x.cubin"]
    build.install(site, "flashinfer-cubin", "0.5", dict.fromkeys(names, b""))
    documents = read_distributions([str(site)], Budget())
    gpus = [nvidia("10.0"), nvidia("10.3"), nvidia("9.0"), nvidia("12.0")]
    expected = [NATIVE, NATIVE, LACKS, LACKS]
    assert [v["verdict"] for v in judge(gpus, Scene(documents))] == expected


def test_code_objects_of_amd_are_counted_by_their_names(tmp_path: Path) -> None:
    """aiter 0.1.7 has 1,281 for gfx942 and 1,220 for gfx950, and no library."""
    site = build.environment(tmp_path / "env")
    names = [f"aiter_meta/hsa/{name}/k{n}.co" for name in ("gfx942", "gfx950") for n in range(20)]
    files: dict[str, bytes | str] = dict.fromkeys(names, b"")
    hsaco = build.elf([(".text", b"")], machine=224, flags=0x54F)
    build.install(site, "amd-aiter", "0.1.7", {**files, "aiter/fwd.hsaco": hsaco})
    rocblas = {"torch/lib/hipblaslt/library/TensileLibrary_gfx1100.co": b""}
    build.install(site, "other", "1.0", {**rocblas, "other/x.so": build.hip("gfx942")})
    documents = read_distributions([str(site)], Budget())
    gpus = [amd("gfx942"), amd("gfx950"), amd("gfx1100")]
    expected = [NATIVE, NATIVE, LACKS, NATIVE, LACKS, LACKS]
    assert [v["verdict"] for v in judge(gpus, Scene(documents))] == expected


BITS_XPU = "12.60.7 12.70.4 12.71.4 12.55.8"


@pytest.mark.parametrize(
    ("versions", "spirv", "gpu", "expected"),
    [
        # bitsandbytes 0.50.2: an Arc B580 has no code there, whatever its section is called.
        (BITS_XPU, True, intel("xe2", "20.1"), JIT),
        (BITS_XPU, True, intel("xe2", "20.4"), JIT),
        (BITS_XPU, True, intel("xe-hpg", "12.55"), NATIVE),
        (BITS_XPU, True, intel("xe-hpg", "12.56"), NATIVE),
        (BITS_XPU, True, intel("xe-hpc", "12.60"), NATIVE),
        (BITS_XPU, True, intel("xe-hpc", "12.61"), JIT),
        (BITS_XPU, True, intel("xe-lpg", "12.71"), NATIVE),
        (BITS_XPU, True, intel("xe-lpg", "12.74"), JIT),
        (BITS_XPU, True, intel("xe-lpg", "12.70", "12.71", "12.74"), JIT),
        (BITS_XPU, True, intel("xe-hpg"), JIT),
        (BITS_XPU, True, intel("gen9"), LACKS),
        ("20.1.0", False, intel("xe2", "20.2"), NATIVE),
        ("20.1.0", False, intel("xe2", "20.4"), NATIVE),
        ("20.4.4", False, intel("xe2", "20.1"), LACKS),
        ("20.1.0", False, intel("xe-hpg", "12.55"), LACKS),
        ("20.1.0", False, intel("xe2"), "unknown"),
        ("", True, intel("xe2", "20.1"), JIT),
    ],
)
def test_sycl_runs_on_the_chips_that_it_was_built_for(
    tmp_path: Path, versions: str, spirv: bool, gpu: Gpu, expected: str
) -> None:
    site = build.environment(tmp_path / "env")
    build.install(site, "acme", "1.0", {"acme/x.so": build.sycl(versions, spirv=spirv)})
    documents = read_distributions([str(site)], Budget())
    assert [v["verdict"] for v in judge([gpu], Scene(documents))] == [expected]


def test_a_component_is_judged_with_the_framework_that_needs_it(tmp_path: Path) -> None:
    """libcufft 12.0 has one container, for sm_75, and runs on every GPU that CUDA 13 has."""
    site = build.environment(tmp_path / "env")
    files = {"nvidia/cu13/lib/libcufft.so.12": build.cuda({"sm_75": 1})}
    build.install(site, "nvidia-cufft", "12.0.0.61", files)
    documents = read_distributions([str(site)], Budget())
    gpus = [nvidia("7.5"), nvidia("9.0"), amd("gfx942")]
    assert [v["device"] for v in judge(gpus, Scene(documents))] == ["pci:7.5"]


def test_vulkan_serves_every_vendor(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    files = {"llama_cpp/lib/libggml-vulkan.so": build.needing("libvulkan.so.1")}
    build.install(site, "llama-cpp-python", "0.3.16", files)
    documents = read_distributions([str(site)], Budget())
    gpus = [nvidia("3.5"), amd("gfx803"), intel("gen9")]
    assert [v["verdict"] for v in judge(gpus, Scene(documents))] == ["compiles"] * 3


def test_the_driver_is_judged_by_what_a_library_needs(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    code = [(".nv_fatbin", build.fatbin({"sm_80": 3}))]
    raw = build.needing("libcudart.so.13", sections=code)
    build.install(site, "acme", "1.0", {"acme/x.so": raw})
    documents = read_distributions([str(site)], Budget())
    gpus = [nvidia("8.0", "579.99"), nvidia("8.6", "580.65.06")]
    assert [v["verdict"] for v in judge(gpus, Scene(documents))] == [DRIVER, NATIVE]


@pytest.mark.parametrize(
    ("target", "device", "xnack", "expected"),
    [
        ("gfx90a", "gfx90a:sramecc+:xnack-", None, True),
        ("gfx90a:xnack+", "gfx90a", None, False),
        ("gfx90a:xnack+", "gfx90a", True, True),
        ("gfx90a:xnack-", "gfx90a", True, False),
        ("gfx90a:sramecc-", "gfx90a:sramecc+", None, False),
        ("gfx9-4-generic", "gfx942", None, True),
        ("gfx9-generic", "gfx90a", None, False),
        ("gfx11-generic", "gfx1103", None, True),
        ("gfx1030", "gfx1031", None, False),
    ],
)
def test_amd_targets(target: str, device: str, xnack: bool | None, expected: bool) -> None:
    assert runs_on_gfx(target, device, xnack) is expected


def test_a_jetson_runs_its_own_code_alone(tmp_path: Path) -> None:
    """Until CUDA 13.2 code of 8.0 does not run on 8.7 (torch 2.14, DEVICE_REQUIREMENT)."""
    orin = nvidia("8.7", "")
    assert verdicts(tmp_path / "a", ["torch-2.14"], orin) == [LACKS]
    site = build.environment(tmp_path / "b" / "env")
    files = {
        "torch/version.py": torch("13.2", "2.14.1+cu132"),
        "torch/lib/libtorch_cuda.so": build.cuda(TORCH_214),
    }
    build.install(site, "torch", "2.14.1+cu132", files)
    documents = read_distributions([str(site)], Budget())
    assert [v["verdict"] for v in judge([orin], Scene(documents))] == [NATIVE]


@pytest.mark.parametrize(
    ("wheels", "gpu", "environ", "expected"),
    [
        (["torch-2.9", "bitsandbytes"], nvidia("12.0"), {}, NATIVE),
        (["torch-2.14", "bitsandbytes"], nvidia("7.0"), {}, LACKS),
        (["torch-2.9", "bitsandbytes"], nvidia("12.0"), {"BNB_CUDA_VERSION": "118"}, LACKS),
        (["torch-cpu", "bitsandbytes"], nvidia("12.0"), {}, "cpu-build"),
        (["torch-rocm", "bitsandbytes"], amd("gfx90a"), {}, NATIVE),
        (["torch-rocm", "bitsandbytes"], nvidia("9.0"), {}, "other-vendor"),
        (["bitsandbytes"], nvidia("7.0"), {}, NATIVE),
    ],
)
def test_bitsandbytes_follows_torch(
    tmp_path: Path, wheels: list[str], gpu: Gpu, environ: dict[str, str], expected: str
) -> None:
    assert verdicts(tmp_path, wheels, gpu, **environ)[0] == expected


def test_a_set_is_judged_by_the_distribution_that_carries_the_code(tmp_path: Path) -> None:
    assert verdicts(tmp_path, ["jaxlib", "jax-plugin"], nvidia("8.9")) == [NATIVE]


def test_what_a_device_must_do_without_is_a_note(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    name, version, files = WHEELS["torch-2.14"]
    build.install(site, name, version, files)
    documents = read_distributions([str(site)], Budget())
    (verdict,) = judge([nvidia("7.5")], Scene(documents))
    assert verdict["verdict"] == NATIVE
    assert verdict["wheel"] == "torch 2.14.1+cu130"
    assert verdict["why"] == (
        "it has machine code that runs on sm_75; libtorch_cuda_linalg.so has none"
    )


def test_another_machines_library_is_never_native(tmp_path: Path) -> None:
    assert verdicts(tmp_path, ["torch-2.9"], nvidia("9.0", arch="aarch64")) == ["unknown"]


def test_findings_have_the_facts_and_one_repair(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    for wheel in ("torch-2.14", "faiss"):
        name, version, files = WHEELS[wheel]
        build.install(site, name, version, files)
    documents = read_distributions([str(site)], Budget())
    v100 = nvidia("7.0")
    torch_finding, *others = findings_of(judge([v100], Scene(documents)), [v100])
    assert others == []
    assert torch_finding == {
        "code": "wheel-lacks-device",
        "severity": "error",
        "what": "torch 2.14.1+cu130 has no code for GPU 7.0",
        "why": "None of its code runs on sm_70.",
        "fix": "uv pip install --reinstall torch --torch-backend=cu126",
        "device": "pci:7.0",
        "prober": None,
        "setting": None,
        "variable": None,
        "step": "runtime",
        "evidence": "torch/lib/libtorch_cuda.so: sm_75, sm_80, sm_86, sm_90, sm_100, sm_100a,"
        " sm_103f, sm_120",
        "wheel": "torch 2.14.1+cu130",
        "has": "sm_75, sm_80, sm_86, sm_90, sm_100, sm_100a, sm_103f, sm_120",
        "needs": "sm_70",
    }


@pytest.mark.parametrize(
    ("wheel", "gpu", "severity", "fix"),
    [
        (
            "onnx",
            nvidia("8.6"),
            "warning",
            "pip uninstall -y onnxruntime && pip install onnxruntime-gpu",
        ),
        ("jaxlib", nvidia("8.6", "550.54.14"), "warning", "pip install -U 'jax[cuda12]'"),
        (
            "torch-cpu",
            nvidia("12.0"),
            "warning",
            "uv pip install --reinstall torch --torch-backend=cu130",
        ),
        (
            "torch-cpu",
            nvidia("3.5"),
            "info",
            ("use torch on the CPU: no published build of PyTorch has code for sm_35 on x86_64"),
        ),
        (
            "torch-cpu",
            amd("gfx1103"),
            "info",
            ("use torch on the CPU: no published build of PyTorch has code for gfx1103"),
        ),
        (
            "faiss",
            nvidia("9.0"),
            "error",
            ("install a build of faiss-gpu-cu12 for sm_90, or build it from source for sm_90"),
        ),
        (
            "vllm",
            nvidia("6.1"),
            "error",
            "use another GPU for vllm: it needs compute capability 7.0 or newer",
        ),
        (
            "vllm",
            nvidia("7.5"),
            "error",
            "install a build of vllm for sm_75, or build it from source for sm_75",
        ),
        (
            "flash-attn",
            nvidia("7.5"),
            "error",
            (
                "use PyTorch's scaled_dot_product_attention: FlashAttention 2 needs Ampere or newer"
                " (on Turing also 'flash-attn<2')"
            ),
        ),
        ("tensorflow", nvidia("12.0"), "info", "nothing to do"),
        (
            "triton",
            intel("xe2", "20.1"),
            "info",
            "use another GPU for triton: its makers publish no build for Intel",
        ),
        (
            "faiss",
            amd("gfx942"),
            "info",
            "use another GPU for faiss-gpu-cu12: its makers publish no build for AMD",
        ),
        (
            "dpnp",
            nvidia("9.0"),
            "warning",
            "use another GPU for dpnp, or see whether its documentation names another build",
        ),
        (
            "torch-2.14",
            nvidia("8.0", "570.26"),
            "error",
            (
                "install driver 580 of NVIDIA or a newer"
                " one; or: uv pip install --reinstall torch --torch-backend=cu126"
            ),
        ),
    ],
)
def test_repairs(tmp_path: Path, wheel: str, gpu: Gpu, severity: str, fix: str) -> None:
    site = build.environment(tmp_path / "env")
    name, version, files = WHEELS[wheel]
    build.install(site, name, version, files)
    documents = read_distributions([str(site)], Budget())
    (finding,) = findings_of(judge([gpu], Scene(documents)), [gpu])
    assert (finding["severity"], finding["fix"]) == (severity, fix)


def changed(gpu: Gpu, **facts: Any) -> Gpu:
    for name, value in facts.items():
        setattr(gpu, name, value)
    return gpu


H100, JETSON = nvidia("9.0"), changed(nvidia("8.7"), discrete=False)
ORIN = changed(nvidia("8.7", "", arch="aarch64"), discrete=False)
FOR_JETPACK = f"install torch for JetPack: {JETPACK}"
CARD, APU = amd("gfx1031"), changed(amd("gfx1036"), discrete=False)
ON_WINDOWS = changed(amd("gfx1031"), os="windows")
UNKNOWN_CAPABILITY = changed(nvidia("9.0"), capabilities=())
REINSTALL = "uv pip install --reinstall torch --torch-backend"
NO_BUILD = "use torch on the CPU: no published build of PyTorch has code for"
SIBLING = (
    "try: export HSA_OVERRIDE_GFX_VERSION=10.3.0  (it then takes the code for gfx1030, which often"
    " works and AMD does not support)"
)
NEWER = "install driver 580 of NVIDIA or a newer one"


@pytest.mark.parametrize(
    ("wheel", "kind", "gpu", "alone", "beside"),
    [
        ("torch", "lacks-device", H100, f"error {REINSTALL}=cu130", f"warning {REINSTALL}=cu130"),
        ("torch", "lacks-device", JETSON, f"error {NO_BUILD} sm_87 on x86_64", ""),
        ("torch", "lacks-device", ORIN, f"error {FOR_JETPACK}", ""),
        ("torch", "cpu-build", ORIN, f"warning {FOR_JETPACK}", ""),
        ("torch", "lacks-device", CARD, f"error {SIBLING}", f"warning {NO_BUILD} gfx1031"),
        ("torch", "lacks-device", APU, f"error {SIBLING}", ""),
        (
            "torch",
            "lacks-device",
            ON_WINDOWS,
            (
                "error use torch on the CPU: PyTorch's index has no build with ROCm for windows on"
                " x86_64"
            ),
            None,
        ),
        (
            "torch",
            "lacks-device",
            changed(nvidia("9.0"), usable=False),
            f"info {REINSTALL}=cu130",
            f"info {REINSTALL}=cu130",
        ),
        ("torch", "needs-newer-driver", H100, f"error {NEWER}; or: {REINSTALL}=cu130", None),
        ("torch", "needs-newer-driver", JETSON, f"error {NEWER}", ""),
        ("torch", "cpu-build", H100, f"warning {REINSTALL}=cu130", f"warning {REINSTALL}=cu130"),
        ("torch", "cpu-build", CARD, f"info {NO_BUILD} gfx1031", f"info {NO_BUILD} gfx1031"),
        ("torch", "other-vendor", H100, f"warning {REINSTALL}=cu130", ""),
        ("torch", "jit-only", H100, "info nothing to do", ""),
        (
            "torch",
            "other-vendor",
            UNKNOWN_CAPABILITY,
            "info use torch on the CPU: its compute capability is unknown",
            "",
        ),
        (
            "own-wheel",
            "lacks-device",
            UNKNOWN_CAPABILITY,
            "error install a build of own-wheel for GPU 9.0, or build it from source for GPU 9.0",
            None,
        ),
        (
            "own-wheel",
            "other-vendor",
            CARD,
            (
                "warning use another GPU for own-wheel, or see whether its documentation names"
                " another build"
            ),
            "",
        ),
        (
            "own-wheel",
            "cpu-build",
            CARD,
            "warning install a build of own-wheel for gfx1031, or build it from source for gfx1031",
            None,
        ),
        (
            "nvidia-cudnn-cu12",
            "lacks-device",
            H100,
            (
                "info install a build of nvidia-cudnn-cu12 for sm_90, or build it from source for"
                " sm_90"
            ),
            None,
        ),
        (
            "cupy-cuda12x",
            "lacks-device",
            H100,
            "error pip uninstall -y cupy-cuda12x && pip install cupy-cuda13x",
            None,
        ),
        (
            "cupy-cuda12x",
            "lacks-device",
            nvidia("9.0", "575.51"),
            "error pip uninstall -y cupy-cuda12x && pip install cupy-cuda12x",
            None,
        ),
        (
            "cupy-cuda12x",
            "cpu-build",
            nvidia("7.0"),
            "warning pip uninstall -y cupy-cuda12x && pip install cupy-cuda12x",
            None,
        ),
        (
            "cupy-cuda12x",
            "cpu-build",
            nvidia("7.5", ""),
            "warning pip uninstall -y cupy-cuda12x && pip install cupy-cuda13x",
            None,
        ),
        (
            "cupy-cuda12x",
            "lacks-device",
            nvidia("9.0", "580"),
            "error pip uninstall -y cupy-cuda12x && pip install cupy-cuda13x",
            None,
        ),
        (
            "vllm",
            "lacks-device",
            nvidia("7.0"),
            "error install a build of vllm for sm_70, or build it from source for sm_70",
            None,
        ),
        ("cupy-cuda12x", "needs-newer-driver", UNKNOWN_CAPABILITY, f"error {NEWER}", None),
    ],
)
def test_how_bad_a_verdict_is_and_what_repairs_it(
    wheel: str, kind: str, gpu: Gpu, alone: str, beside: str | None
) -> None:
    """`beside` another device that runs the wheel: "" is nothing to do, None not looked at."""
    verdict: Any = {
        "wheel": f"{wheel} 2", "verdict": kind, "device": gpu.id, "why": "it is so", "library": "",
        "has": "gfx1030", "needs": "driver 580 or newer",
    }  # fmt: skip
    (finding,) = findings_of([verdict], [gpu])
    assert f"{finding['severity']} {finding['fix']}" == alone
    assert finding["evidence"] == "gfx1030"
    if beside is not None:
        (finding,) = findings_of([verdict, verdict | {"verdict": "native"}], [gpu])
        assert f"{finding['severity']} {finding['fix']}" == (beside or "info nothing to do")


def test_an_apu_beside_a_card_is_a_hint(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    name, version, files = WHEELS["torch-rocm"]
    build.install(site, name, version, files)
    card, apu = amd("gfx1100"), amd("gfx1036")
    apu.discrete = False
    documents = read_distributions([str(site)], Budget())
    (finding,) = findings_of(judge([card, apu], Scene(documents)), [card, apu])
    assert (finding["severity"], finding["device"]) == ("info", "pci:gfx1036")
    # The override would count for the card, too, which then ran code of another generation.
    assert finding["fix"] == "nothing to do"
    (alone,) = findings_of(judge([apu], Scene(documents)), [apu])
    assert alone["fix"].startswith("try: export HSA_OVERRIDE_GFX_VERSION=10.3.0")
    other = amd("gfx1031")
    (_, second) = findings_of(judge([card, apu, other], Scene(documents)), [card, apu, other])
    assert "HSA_OVERRIDE" not in second["fix"]


@pytest.mark.parametrize(
    ("build", "text", "is_cpu"),
    [
        ("cpu", {}, True), ("cpu.cxx11", {"cuda": "12.8"}, True), ("cu128", {}, False),
        ("rocm6.4", {}, False), (None, {}, False), (None, {"cuda": "None"}, False),
        (None, {"cuda": None}, True), (None, {"cuda": None, "hip": "6.4"}, False),
        (None, {"is_cuda_build": "False"}, True), ("xpu", {"is_rocm_build": "True"}, False),
        (None, {"is_cuda_build": "False", "is_rocm_build": "True"}, False),
    ],
)  # fmt: skip
def test_what_says_that_it_is_built_for_the_cpu(
    build: str | None, text: dict[str, str | None], is_cpu: bool
) -> None:
    document: Any = {"name": "torch", "build": build, "text": text, "files": {}}
    assert is_cpu_build(document) is is_cpu
    cuda = {"targets": ["sm_90"], "problem": None}
    damaged: Any = document | {"files": {"torch/lib/a.so": cuda | {"problem": "it is cut"}}}
    assert is_cpu_build(damaged) is (build or "").startswith("cpu")
