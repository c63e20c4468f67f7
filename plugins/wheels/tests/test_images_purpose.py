"""What an image is for: whether it does without a GPU, and which of its code decides.

Each expected answer follows from a rule of the explanation page, or from data/frameworks.toml and
data/images.toml, which name their sources.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import image_files as make
import pytest
import wheel_files as build
from test_images_answers import CPU, LEVEL_ZERO, split
from test_images_limits import WSL, library
from test_images_matrix import recorded, rendering
from weights import mostly_heavy_rows

from probe_wheels.images.answers import Answer, answer_of
from probe_wheels.images.contents import Contents, contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.nodes import Node, read_node
from probe_wheels.images.sources import open_images

MAC: dict[str, object] = {
    "schema": 1, "os": "darwin", "arch": "arm64", "environ": {}, "origin": "invented for tests",
    "files": {}, "links": {},
}  # fmt: skip
NODES: dict[str, dict[str, object]] = {
    "t4-418": make.node("10de:1eb8", "418.87.00", mode="legacy"),
    "t4-470": make.node("10de:1eb8", "470.256.02", mode="legacy"),
    "v100-535": make.node("10de:1db6", "535.154.05", mode="cdi"),
    "v100-595": make.node("10de:1db6", "595.45.04", mode="cdi"),
    "k80-470": make.node("10de:102d", "470.256.02", mode="cdi"),
    "k80-535": make.node("10de:102d", "535.154.05", mode="cdi"),
    "3090-535": make.node("10de:2204", "535.183.01", mode="cdi"),
    "h100-580": make.node("10de:2330", "580.95.05", mode="cdi"),
    "h100-legacy": make.node("10de:2330", "580.95.05", mode="legacy"),
    "5090-590": make.node("10de:2b85", "590.44.01", mode="cdi"),
    "mi300x": rendering("server--8x-amd-instinct-mi300x", 109, "6.10.5"),
    "780m": rendering("laptop--amd-radeon-780m-and-npu", 109, "6.10.5"),
    "7900": rendering("desktop--amd-radeon-rx-7900-xtx", 110, "6.14.14"),
    "a770": rendering("desktop--intel-arc-a770-of-unknown-memory", 109),
    "gaudi": recorded("server--8x-intel-gaudi-2"),
    "pi-5": recorded("raspberry-pi-5--videocore-vii"),
    "pi-zero": recorded("raspberry-pi-zero--arm1176"),
    "opteron": recorded("opteron-6272--16-cores-in-8-modules"),
    "xeon-e5472": recorded("xeon-e5472--2-packages-in-1-of-8-equal-nodes"),
    "no driver": recorded("desktop--nvidia-geforce-rtx-3060-without-driver"),
    "wsl": WSL,
    "mac": MAC,
    "cpu": CPU,
}
ALL = ("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
UTILITY = ("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility")
BASE = make.base()
ARM: make.Files = {"usr/bin/serve": make.binary(machine=40)}


def program(*needed: str, targets: str = "") -> bytes:
    """A program that is linked with these libraries, with code for these targets in it."""
    code = [(".nv_fatbin", build.fatbin({targets: 9}))] if targets else []
    return make.binary(
        "libc.so.6", *needed, interpreter=make.LOADERS[62], glibc="2.17", sections=code
    )


def hip(processors: str) -> bytes:
    code = build.pages([build.bundle(processors.split())] * 9)
    return make.binary("libc.so.6", glibc="2.17", sections=[(".hip_fatbin", code)])


def requiring(name: str, version: str, files: make.Files, required: str) -> make.Files:
    """An installed distribution that requires another one."""
    found = make.wheel(name, version, files)
    for path, content in found.items():
        if path.endswith("/METADATA"):
            assert isinstance(content, str)
            found[path] = content.replace("\n\n", f"\nRequires-Dist: {required}\n\n")
    return found


def starting(*words: str, environ: tuple[str, ...] = ALL) -> dict[str, object]:
    return make.config(environ, Entrypoint=list(words), Cmd=None)


CU118 = make.torch("sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", "11.8")
CU126 = make.torch("sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", "12.6")
CU130 = make.torch("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", "13.0")
CPU_TORCH = make.wheel("torch", "2.9.1+cpu", {"torch/version.py": "cuda = None\nhip = None\n"})
IPEX_TORCH = make.wheel(
    "torch", "2.3.1+cxx11.abi", {"torch/version.py": "cuda = None\nhip = None\n"}
)
IPEX = requiring(
    "intel-extension-for-pytorch", "2.3.110+xpu",
    {"intel_extension_for_pytorch/lib/libintel-ext-pt-gpu.so": build.sycl("12.55.8")}, "torch",
)  # fmt: skip
RAPIDS: make.Files = {
    "opt/conda/conda-meta/libcudf-25.06.00-cuda12_250605.json": json.dumps(
        {"files": ["lib/libcudf.so"]}
    ),
    "opt/conda/lib/libcudf.so": library(targets="sm_75 sm_80 sm_90"),
}
OLLAMA_ROCM: make.Files = {
    "usr/lib/ollama/rocm/libggml-hip.so": hip("gfx942 gfx1100"),
    "usr/lib/ollama/rocm/libamdhip64.so.6.3.60301": library(),
    "usr/lib/ollama/libggml-cpu-x64.so": library(),
}
CUDNN = make.wheel(
    "nvidia-cudnn-cu12", "9.3.0", {"nvidia/cudnn/lib/libcudnn_cnn.so.9": library(targets="sm_90")}
)
CUDA_12 = {
    f"usr/local/cuda/lib64/{name}": library()
    for name in ("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9")
}
TENSORFLOW = make.wheel(
    "tensorflow", "2.19.0",
    {"tensorflow/libtensorflow_cc.so.2": library(targets="sm_70 sm_80 sm_90"),
     "tensorflow/python/platform/build_info.py":
     "build_info = collections.OrderedDict([('cuda_version', '12.5.1')])\n"},
)  # fmt: skip
ONNX_RUNTIME = make.wheel(
    "onnxruntime-gpu", "1.22.0",
    {"onnxruntime/capi/libonnxruntime_providers_cuda.so":
     library("libcudart.so.12", targets="sm_70 sm_75 sm_80 sm_90")},
)  # fmt: skip
JAX = {
    **make.wheel("jaxlib", "0.6.2", {"jaxlib/xla_client.so": library()}),
    **make.wheel(
        "jax-cuda12-plugin", "0.6.2",
        {"jax_cuda12_plugin/xla_cuda_plugin.so": library(targets="sm_70 sm_80 sm_90")},
    ),
}  # fmt: skip
XGBOOST = {
    **make.wheel(
        "xgboost", "3.0.2", {"xgboost/lib/libxgboost.so": library(targets="sm_70 sm_80 sm_90")}
    ),
    **make.wheel(
        "nvidia-nccl-cu12", "2.27.3", {"nvidia/nccl/lib/libnccl.so.2": library(targets="sm_90")}
    ),
}
NUMBA = make.wheel("numba", "0.61.2", {"numba/_dispatcher.so": library()})
OPENVINO = make.wheel("openvino", "2025.2.0", {"openvino/libs/libopenvino.so": library()})
ONNX_CPU = make.wheel("onnxruntime", "1.22.0", {"onnxruntime/capi/state.so": library()})
OPENCL: make.Files = {
    "usr/lib/libOpenCL.so.1": library(),
    "usr/lib/intel-opencl/libigdrcl.so": library(),
    "usr/lib/libigc.so.2": library(),
}
BITSANDBYTES = make.wheel(
    "bitsandbytes", "0.48.0",
    {"bitsandbytes/libbitsandbytes_cuda126.so": library(targets="sm_75 sm_80 sm_90")},
)  # fmt: skip
CUPY = make.wheel(
    "cupy-cuda12x", "13.5.0", {"cupy/_core.so": library(targets="sm_70 sm_75 sm_80 sm_90")}
)
VLLM = make.wheel("vllm", "0.10.1", {"vllm/_C.abi3.so": library(targets="sm_80 sm_86 sm_90")})
DEEPSPEED = requiring(
    "deepspeed", "0.17.2", {"deepspeed/ops/op.so": library(targets="sm_70 sm_75 sm_80")}, "torch"
)
DCGM: make.Files = {
    "bin/sh": program(),
    "usr/bin/dcgm-exporter": program(),
    "usr/local/dcgm/dcgm-exporter-entrypoint.sh": '#!/bin/sh\nexec dcgm-exporter "$@"\n',
    "usr/libexec/dcgm/plugins/cuda12/libDiagnostic.so": library(targets="sm_80 sm_90"),
}
BLENDER: make.Files = {
    "opt/blender/blender": program(),
    "opt/blender/lib/libOpenImageDenoise_device_cpu.so.2": library(),
    "opt/blender/lib/libOpenImageDenoise_device_cuda.so.2": library(targets="sm_80 sm_90"),
    "opt/blender/lib/libOpenImageDenoise_device_hip.so.2": hip("gfx1030 gfx1100"),
    "opt/blender/lib/libcycles_kernel_oneapi_aot.so": build.sycl("12.55.8"),
    "opt/blender/lib/libembree4.so.4": build.sycl("12.55.8"),
}
TRITON: make.Files = {
    "opt/tritonserver/bin/tritonserver": program(),
    "opt/tritonserver/backends/pytorch/libtorch_cuda.so": library(targets="sm_75 sm_80 sm_90"),
    "opt/tritonserver/backends/onnxruntime/libonnxruntime_providers_cuda.so": library(
        targets="sm_75 sm_80 sm_90"
    ),
}
TENSORRT: make.Files = {
    f"usr/lib/libnvinfer_builder_resource_{name}.so.10.9.0": library()
    for name in ("ptx", "sm75", "sm80", "sm86", "sm89", "sm90")
}
LINKED_GGML = library("libggml-cpu.so", "libggml-cuda.so")
WHISPER: make.Files = {
    "bin/bash": program(),
    "app/whisper-cli": program("libggml.so"),
    "app/libggml-base.so": library(),
    "app/libggml-cpu.so": library(),
    "app/libggml-cuda.so": library("libcuda.so.1", targets="sm_80 sm_90"),
}
NO_NOTE: make.Files = {
    "usr/local/cuda/compat/libcuda.so.550.54.15": make.binary(),
    "usr/local/cuda/compat/libcuda.so.1": make.link("libcuda.so.550.54.15"),
}
CU124 = make.torch("sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", "12.4")
NGC_124 = (
    *ALL, "CUDA_VERSION=12.4.1",
    ("NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470,driver<471"
     " brand=unknown,driver>=470,driver<471 brand=nvidia,driver>=470,driver<471"),
)  # fmt: skip
NGC_12 = (*ALL, "CUDA_VERSION=12.6.3", "NVIDIA_REQUIRE_CUDA=cuda>=9.0")
IMAGES: dict[str, tuple[dict[str, object], make.Files]] = {
    "tensorflow": (make.config(ALL), {**BASE, **TENSORFLOW, **CUDA_12}),
    "tensorflow alone": (make.config(), {**BASE, **TENSORFLOW}),
    "onnx runtime": (make.config(ALL), {**BASE, **ONNX_RUNTIME, **CUDA_12}),
    "onnx runtime alone": (make.config(ALL), {**BASE, **ONNX_RUNTIME}),
    "jax": (make.config(ALL), {**BASE, **JAX}),
    "xgboost": (make.config(), {**BASE, **XGBOOST}),
    "xgboost with cuda": (make.config((*ALL, "CUDA_VERSION=12.4.1")), {**BASE, **XGBOOST}),
    "xgboost, linked": (
        starting("/usr/bin/train"), {**BASE, **XGBOOST, "usr/bin/train": program("libcuda.so.1")},
    ),
    "numba": (make.config(), {**BASE, **NUMBA}),
    "numba, torch": (make.config(ALL), {**BASE, **NUMBA, **CU126, **ONNX_CPU}),
    "torch": (make.config(ALL), {**BASE, **CU126}),
    "torch for the cpu": (make.config(), {**BASE, **CPU_TORCH, **BITSANDBYTES}),
    "torch, cupy": (make.config(ALL), {**BASE, **CU130, **CUPY}),
    "vllm": (make.config(ALL), {**BASE, **CU126, **VLLM}),
    "deepspeed": (make.config(ALL), {**BASE, **CU118, **DEEPSPEED}),
    "deepspeed, 12.6": (make.config(ALL), {**BASE, **CU126, **DEEPSPEED}),
    "frigate": (
        make.config(("NVIDIA_VISIBLE_DEVICES=all",)), {**BASE, **OPENVINO, **ONNX_CPU, **OPENCL},
    ),
    "openvino": (make.config(), {**BASE, **OPENVINO}),
    "sycl by opencl": (make.config(), {**BASE, **OPENCL, "app/engine.so": build.sycl("12.55.8")}),
    "sycl": (make.config(), {**BASE, **LEVEL_ZERO, "app/engine.so": build.sycl("12.55.8")}),
    "dcgm-exporter": (
        starting(
            "/usr/local/dcgm/dcgm-exporter-entrypoint.sh",
            environ=(*UTILITY, "NVIDIA_DISABLE_REQUIRE=true", "CUDA_VERSION=12.9.1"),
        ),
        {**BASE, **DCGM},
    ),
    "dcgm-exporter, compute": (
        starting(
            "dcgm-exporter",
            environ=(ALL[0], "NVIDIA_DRIVER_CAPABILITIES=compute"),
        ),
        {**BASE, **DCGM},
    ),
    "device plugin": (
        starting("nvidia-device-plugin", environ=UTILITY),
        {**BASE, "usr/bin/nvidia-device-plugin": program()},
    ),
    "gpu exporter": (
        starting("/usr/bin/nvidia_gpu_exporter", environ=(*ALL, "CUDA_VERSION=11.6.2")),
        {**BASE, "usr/bin/nvidia_gpu_exporter": program()},
    ),
    "nvidia-smi": (starting("nvidia-smi", environ=(*ALL, "CUDA_VERSION=12.4.1")), BASE),
    "nvidia-smi, compute": (
        starting("nvidia-smi", environ=(ALL[0], "NVIDIA_DRIVER_CAPABILITIES=compute")), BASE,
    ),
    "blender": (starting("/opt/blender/blender", environ=()), {**BASE, **BLENDER}),
    "triton": (
        starting("/opt/tritonserver/bin/tritonserver", environ=NGC_12), {**BASE, **TRITON},
    ),
    "tensorrt": (make.config(NGC_12), {**BASE, **TENSORRT}),
    "tensorrt wheel": (
        make.config(ALL),
        {**BASE, **make.wheel(
            "tensorrt-cu12-libs", "10.7.0",
            {"tensorrt_libs/libnvinfer.so.10": library(targets="sm_75 sm_80 sm_90 ptx_90@8.0"),
             "tensorrt_libs/libnvinfer_builder_resource_sm75.so.10.7.0": library(),
             "tensorrt_libs/libnvinfer_builder_resource_sm90.so.10.7.0": library()},
        )},
    ),
    "compat without a note": (make.config(NGC_124), {**BASE, **CU124, **NO_NOTE}),
    "compat that nothing names": (
        make.config((*ALL, "CUDA_VERSION=12.4.1", "NVIDIA_REQUIRE_CUDA=cuda>=9.0")),
        {**BASE, **CU124, **NO_NOTE},
    ),
    "compat, note in capitals": (
        make.config(ALL),
        {**BASE, **CU124,
         "usr/local/cuda/compat/libcuda.so.550.54.15": make.binary(note='{"Driver": [470]}')},
    ),
    "musl of debian": (
        make.config(),
        {"lib/ld-musl-x86_64.so.1": make.binary(),
         "usr/bin/serve": make.binary(
             "libc.so", "libpthread.so.0", interpreter="/lib/ld-musl-x86_64.so.1")},
    ),
    "musl, a library missing": (
        make.config(),
        {"lib/ld-musl-x86_64.so.1": make.binary(),
         "usr/bin/serve": make.binary(
             "libc.so", "libcrypto.so.3", interpreter="/lib/ld-musl-x86_64.so.1")},
    ),
    "programs": (
        make.config(NGC_12),
        {**BASE, "opt/a/bin/a": program(targets="sm_75"), "opt/b/bin/b": program(targets="sm_90")},
    ),
    "builds for chips": (
        make.config(NGC_12),
        {**BASE, **{f"usr/local/bin/router-{n}": program(targets=f"sm_{n}") for n in (75, 90)},
         "usr/lib/libkernels_sm75.so": library(targets="sm_75"),
         "usr/lib/libkernels_sm90a.so": library(targets="sm_90a")},
    ),
    "program and another": (
        starting("/work/add", environ=NGC_12),
        {**BASE, "work/add": program(targets="sm_90"), "opt/x/bin/x": program(targets="sm_80")},
    ),
    "programs of unknown cuda": (
        make.config(ALL),
        {**BASE, **{f"usr/local/bin/router-{n}": program(targets=f"sm_{n}") for n in (75, 80)}},
    ),
    "clinfo": (
        starting("clinfo", environ=()),
        {**BASE, **OPENCL, "usr/bin/clinfo": program("libOpenCL.so.1")},
    ),
    "pyopencl": (
        make.config(), {**BASE, **make.wheel("pyopencl", "2025.1", {"pyopencl/_cl.so": library()})},
    ),
    "jellyfin": (
        starting("/jellyfin/jellyfin", environ=(ALL[0], "NVIDIA_DRIVER_CAPABILITIES=all")),
        {**BASE, "jellyfin/jellyfin": program()},
    ),
    "libraries of nvidia": (
        make.config(),
        {**BASE, **make.wheel(
            "nvidia-cublas-cu12", "12.8", {"nvidia/lib/libcublas.so.12": library(targets="sm_90")}
        )},
    ),
    "gromacs": (
        make.config(NGC_12),
        {**BASE, "usr/local/gromacs/lib/libgromacs_mpi.so.9": library(targets="sm_80 sm_90")},
    ),
    "ipex": (make.config(), {**BASE, **LEVEL_ZERO, **IPEX_TORCH, **IPEX}),
    "nvidia-smi, then torch": (
        make.config(ALL, Cmd=["sh", "-c", "nvidia-smi && python train.py"]),
        {**BASE, **CU126, "usr/bin/sh": program()},
    ),
    "torch, told of an exporter": (
        make.config(ALL, Cmd=["serve", "--beside", "dcgm-exporter"]), {**BASE, **CU126},
    ),
    "tini, dcgm-exporter": (
        starting("/usr/bin/tini", "--", "dcgm-exporter", environ=UTILITY),
        {**BASE, **DCGM, "usr/bin/tini": program()},
    ),
    "rhel 9": (make.config(), {**BASE, "etc/os-release": 'ID="rhel"\nVERSION_ID="9.5"\n'}),
    "rocky 10": (make.config(), {**BASE, "etc/os-release": 'ID="rocky"\nVERSION_ID="10.0"\n'}),
    "debian 10": (make.config(), {**BASE, "etc/os-release": 'ID=debian\nVERSION_ID="10"\n'}),
    "drawing": (
        make.config(("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=graphics,utility")),
        BASE,
    ),
    "drawing, torch": (
        make.config(("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=graphics,utility")),
        {**BASE, **CU126},
    ),
    "rapids": (make.config(ALL), {**BASE, **RAPIDS, **CUPY, **NUMBA}),
    "deepspeed, to be compiled": (
        make.config(ALL),
        {**BASE, **CU118, **requiring("deepspeed", "0.17.2", {"deepspeed/x.py": ""}, "torch")},
    ),
    "deepspeed with nvcc": (
        make.config(ALL),
        {**BASE, **CU118, "usr/local/cuda/bin/nvcc": program(),
         **requiring("deepspeed", "0.17.2", {"deepspeed/x.py": ""}, "torch")},
    ),
    "tensorflow for c": (
        make.config(NGC_12), {**BASE, "app/libtensorflow.so.2": library(targets="sm_80 sm_90")},
    ),
    "migraphx": (
        make.config(),
        {**BASE, **make.wheel("onnxruntime-migraphx", "1.22.0", {"o/state.so": library()}),
         "opt/rocm/.info/version": "6.3.1-48\n"},
    ),
    "rocm": (make.config(), {**BASE, "opt/rocm/.info/version": "6.3.1-48\n"}),
    "ollama for rocm": (make.config(), {**BASE, **OLLAMA_ROCM}),
    "ollama for a newer rocm": (
        make.config(),
        {**BASE, **{path.replace("6.3.60301", "7.2.70200"): content
                    for path, content in OLLAMA_ROCM.items()}},
    ),
    "decoder of a library": (
        make.config((*ALL, "CUDA_VERSION=12.4.1"), Cmd=["/app/play"]),
        {**BASE, "app/play": program("libcudacodec.so.4"),
         "usr/lib/libcudacodec.so.4": library("libnvcuvid.so.1")},
    ),
    "needed by its path": (
        make.config(Cmd=["/app/play"]),
        {**BASE, "app/play": program("/opt/lib/libown.so"), "opt/lib/libown.so": library()},
    ),
    "needed by a path that is not there": (
        make.config(Cmd=["/app/play"]), {**BASE, "app/play": program("/opt/lib/libown.so")},
    ),
    "tensorflow for the cpu": (
        make.config(),
        {**BASE, **make.wheel("tensorflow-cpu", "2.19.0", {"tensorflow/x.so": library()})},
    ),
    "ffmpeg behind a script": (
        starting("/ffmpegwrapper.sh"),
        {**BASE, "ffmpegwrapper.sh": "#!/bin/sh\n", "bin/sh": program(), "bin/ffmpeg": program()},
    ),
    "a script alone": (
        starting("/entry.sh"), {**BASE, "entry.sh": "#!/bin/sh\n", "bin/sh": program()},
    ),
    "container toolkit": (
        make.config(("CUDA_VERSION=13.0.1", "NVIDIA_VISIBLE_DEVICES=void")), BASE,
    ),
    "oneapi": (
        make.config(),
        {**BASE, "opt/intel/oneapi/mkl/2025.1/lib/libmkl_sycl_blas.so.5": build.sycl("12.55.8")},
    ),
    "rocm's libraries": (
        make.config(),
        {**BASE, "opt/rocm-6.3.1/lib/librpp.so.1": hip("gfx90a"),
         "opt/rocm-6.3.1/.info/version": "6.3.1-48\n", "opt/rocm": make.link("rocm-6.3.1")},
    ),
    "cuda's sample": (
        make.config(ALL, Cmd=["/usr/local/cuda/extras/demo_suite/vectorAdd"]),
        {**BASE, "usr/local/cuda/extras/demo_suite/vectorAdd": program(targets="sm_80")},
    ),
    "tensorflow, its cuda": (
        make.config((*ALL, "CUDA_VERSION=12.5.1")), {**BASE, **TENSORFLOW, **CUDA_12},
    ),
    # A T4 is of the brand Tesla, or of one that the hook calls unknown.
    "tensorflow, its brand": (
        make.config(
            (*ALL, "NVIDIA_REQUIRE_CUDA=cuda>=12.5 brand=tesla,driver>=470,driver<471")
        ),
        {**BASE, **TENSORFLOW, **CUDA_12},
    ),
    "whisper.cpp by a shell": (
        starting("bash", "-c"), {**BASE, **WHISPER, "app/libggml.so": LINKED_GGML},
    ),
    "whisper.cpp, backends by name": (
        starting("bash", "-c"), {**BASE, **WHISPER, "app/libggml.so": library("libggml-base.so")},
    ),
    "whisper.cpp for rocm": (
        starting("bash", "-c"),
        {**BASE, "bin/bash": program(), "app/whisper-cli": program("libggml.so"),
         "app/libggml.so": library("libggml-hip.so"), "app/libggml-hip.so": hip("gfx942"),
         "app/libggml-cpu.so": library()},
    ),
    "compat, torch for the cpu": (
        make.config((*ALL, "CUDA_VERSION=12.4.1")), {**BASE, **CPU_TORCH, **NO_NOTE},
    ),
    "torch for the cpu, triton": (
        make.config(),
        {**BASE, **CPU_TORCH, **make.wheel("triton", "3.1.0", {"triton/_C.so": library()})},
    ),
    "cuda, onnx runtime for the cpu": (
        make.config((*ALL, "CUDA_VERSION=12.4.1")), {**BASE, **ONNX_CPU},
    ),
    "rockchip": (make.config(), {**BASE, "usr/lib/librknnrt.so": library()}),
    "arm": (make.config(arch="arm"), ARM),
    "arm v6": ({**make.config(arch="arm"), "variant": "v6"}, ARM),
    "plain": (make.config(), BASE),
}  # fmt: skip
R, L, N, U = "runs", "less", "no", "unknown"
CASES = [
    # TensorFlow, ONNX Runtime and JAX take the CPU where they find no GPU.
    ("tensorflow", "h100-580", R, ""),
    ("tensorflow", "cpu", L, "devices"),
    ("tensorflow", "mi300x", L, "devices"),
    ("tensorflow", "no driver", L, "devices"),
    ("tensorflow", "wsl", U, "devices"),
    # One that it has no code for TensorFlow ignores, as where it cannot open CUDA's libraries.
    ("tensorflow", "5090-590", L, "code"),
    ("tensorflow alone", "h100-580", L, "loader"),
    ("tensorflow alone", "cpu", L, "devices"),
    ("onnx runtime", "h100-580", R, ""),
    ("onnx runtime", "cpu", L, "devices"),
    ("onnx runtime", "5090-590", N, "code"),
    ("onnx runtime alone", "h100-580", L, "loader"),
    ("onnx runtime alone", "5090-590", L, "loader"),
    ("jax", "h100-580", R, ""),
    ("jax", "t4-470", L, "code"),
    ("jax", "cpu", L, "devices"),
    # The first device of XGBoost and of Numba is the CPU; a base with CUDA wants a GPU.
    ("xgboost", "h100-580", R, ""),
    ("xgboost", "3090-535", L, "driver"),
    ("xgboost", "cpu", R, ""),
    ("xgboost", "mi300x", R, ""),
    ("xgboost", "wsl", R, ""),
    ("xgboost with cuda", "cpu", L, "devices"),
    ("xgboost, linked", "cpu", N, "devices"),
    ("numba", "cpu", R, ""),
    ("numba", "h100-580", R, ""),
    ("numba, torch", "h100-580", R, ""),
    ("numba, torch", "cpu", N, "devices"),
    ("torch", "cpu", N, "devices"),
    # What runs on a PyTorch for the CPU has no use for its own code.
    ("torch for the cpu", "cpu", R, ""),
    ("torch for the cpu", "h100-580", R, ""),
    # A CuPy that runs is no PyTorch, and vLLM without its kernels serves nothing.
    ("torch, cupy", "v100-535", N, "code"),
    ("torch, cupy", "h100-580", R, ""),
    ("vllm", "v100-535", N, "code"),
    ("vllm", "h100-580", R, ""),
    # What requires PyTorch is built with its CUDA.
    ("deepspeed", "t4-470", R, ""),
    ("deepspeed", "h100-580", L, "code"),
    ("deepspeed, 12.6", "t4-470", N, "code"),
    # OpenVINO takes OpenCL, too; code for SYCL does not. A build for the CPU beside it is no loss.
    ("frigate", "a770", R, ""),
    ("frigate", "cpu", R, ""),
    ("frigate", "h100-580", R, ""),
    ("frigate", "gaudi", R, ""),
    ("openvino", "a770", L, "runtime"),
    ("sycl by opencl", "a770", N, "runtime"),
    ("sycl", "a770", R, ""),
    ("sycl", "gaudi", N, "devices"),
    # Who watches GPUs, or hands them out, needs NVML alone, and ends without one.
    ("dcgm-exporter", "h100-legacy", R, ""),
    ("dcgm-exporter", "v100-535", R, ""),
    ("dcgm-exporter", "5090-590", R, ""),
    ("dcgm-exporter", "cpu", N, "devices"),
    ("dcgm-exporter", "mi300x", N, "devices"),
    ("dcgm-exporter, compute", "h100-legacy", N, "libcuda"),
    ("dcgm-exporter, compute", "h100-580", R, ""),
    ("device plugin", "h100-legacy", R, ""),
    ("device plugin", "cpu", N, "devices"),
    ("gpu exporter", "5090-590", R, ""),
    ("gpu exporter", "cpu", U, "devices"),
    # nvidia-smi is the host's.
    ("nvidia-smi", "h100-legacy", R, ""),
    ("nvidia-smi", "cpu", N, "devices"),
    ("nvidia-smi, compute", "h100-legacy", N, "libcuda"),
    ("nvidia-smi, compute", "h100-580", R, ""),
    # Blender and Triton Inference Server start on the CPU, and pass over GPUs without code.
    ("blender", "cpu", L, "devices"),
    ("blender", "h100-580", R, ""),
    ("blender", "3090-535", U, "driver"),
    ("blender", "a770", L, "runtime"),
    ("triton", "h100-580", R, ""),
    ("triton", "v100-535", L, "code"),
    ("triton", "cpu", L, "devices"),
    # TensorRT builds for the chips that it has a library for.
    ("tensorrt", "h100-580", R, ""),
    ("tensorrt", "5090-590", U, "code"),
    ("tensorrt", "v100-535", N, "code"),
    ("tensorrt wheel", "h100-580", R, ""),
    ("tensorrt wheel", "5090-590", L, "code"),
    ("tensorrt wheel", "v100-535", N, "code"),
    # Of several programs with code the one that the image starts decides, else each.
    ("programs", "h100-580", L, "code"),
    ("programs", "v100-535", N, "code"),
    # Of builds for several chips the one that fits is taken.
    ("builds for chips", "h100-580", R, ""),
    ("builds for chips", "3090-535", N, "code"),
    ("program and another", "h100-580", L, "code"),
    ("program and another", "3090-535", N, "code"),
    ("programs of unknown cuda", "3090-535", U, "driver"),
    # A program that is linked with OpenCL itself may need it; Jellyfin needs none.
    ("clinfo", "cpu", U, "devices"),
    ("clinfo", "a770", U, "devices"),
    ("pyopencl", "h100-580", U, "devices"),
    ("jellyfin", "cpu", R, ""),
    ("jellyfin", "h100-580", R, ""),
    # Libraries alone, which nothing here uses, may be of use or not.
    ("libraries of nvidia", "cpu", U, "devices"),
    ("libraries of nvidia", "h100-580", R, ""),
    ("rockchip", "cpu", U, "devices"),
    # GROMACS takes the CPU; Intel's extension brings GPUs to a PyTorch for the CPU.
    ("gromacs", "cpu", L, "devices"),
    ("gromacs", "h100-580", R, ""),
    ("gromacs", "5090-590", L, "code"),
    ("ipex", "a770", R, ""),
    ("ipex", "cpu", N, "devices"),
    # What a shell starts, and other words, tell nothing of the program.
    ("nvidia-smi, then torch", "5090-590", N, "code"),
    ("torch, told of an exporter", "5090-590", N, "code"),
    ("tini, dcgm-exporter", "5090-590", R, ""),
    # Red Hat's bases are built for a level of x86-64.
    ("rhel 9", "opteron", R, ""),
    ("rocky 10", "opteron", N, "platform"),
    ("rocky 10", "cpu", R, ""),
    ("rocky 10", "h100-580", R, ""),
    ("debian 10", "opteron", R, ""),
    # What only draws needs no libcuda; RAPIDS does not run by its CuPy alone.
    ("drawing", "h100-legacy", R, ""),
    ("drawing, torch", "h100-legacy", N, "libcuda"),
    ("rapids", "h100-580", R, ""),
    ("rapids", "v100-535", N, "code"),
    ("deepspeed, to be compiled", "t4-470", L, "code"),
    ("deepspeed with nvcc", "t4-470", R, ""),
    ("tensorflow for c", "cpu", L, "devices"),
    ("tensorflow for c", "h100-580", R, ""),
    ("jax", "k80-470", L, "code"),
    # ROCm has its version in HIP's library, and chips that it does not support.
    ("migraphx", "mi300x", R, ""),
    ("migraphx", "780m", U, "code"),
    ("migraphx", "cpu", L, "devices"),
    ("rocm", "mi300x", R, ""),
    ("rocm", "780m", U, "code"),
    ("ollama for rocm", "mi300x", R, ""),
    ("ollama for a newer rocm", "mi300x", U, "driver"),
    # One GPU that is unknown and one without code are no firm CPU.
    ("ollama for a newer rocm", "7900", U, "driver"),
    # The driver's libraries of libraries are mounted by capability, too.
    ("decoder of a library", "h100-legacy", N, "libcuda"),
    ("decoder of a library", "h100-580", R, ""),
    ("needed by its path", "cpu", R, ""),
    ("needed by a path that is not there", "cpu", N, "loader"),
    # TensorFlow and JAX need AVX, which a Xeon E5472 has not.
    ("tensorflow for the cpu", "xeon-e5472", N, "platform"),
    ("tensorflow for the cpu", "opteron", R, ""),
    ("jax", "xeon-e5472", N, "platform"),
    ("xgboost", "xeon-e5472", R, ""),
    ("ffmpeg behind a script", "cpu", R, ""),
    ("a script alone", "cpu", U, "devices"),
    # A base with CUDA that wants no GPU, and the libraries of toolkits, ask for none.
    ("container toolkit", "cpu", R, ""),
    ("container toolkit", "mi300x", R, ""),
    ("oneapi", "cpu", R, ""),
    ("rocm's libraries", "mi300x", R, ""),
    ("rocm's libraries", "cpu", N, "devices"),
    ("cuda's sample", "cpu", N, "devices"),
    ("cuda's sample", "5090-590", N, "code"),
    # A driver of before CUDA 10.2 has no newer one; what does not start uses no CPU either.
    ("tensorflow, its cuda", "t4-418", N, "start check"),
    ("tensorflow, its cuda", "h100-legacy", R, ""),
    ("tensorflow, its brand", "t4-470", U, "start check"),
    # ggml's own library tells what a shell will start: a backend that is linked needs libcuda.
    ("whisper.cpp by a shell", "cpu", N, "devices"),
    ("whisper.cpp by a shell", "h100-580", R, ""),
    ("whisper.cpp, backends by name", "cpu", L, "devices"),
    ("whisper.cpp for rocm", "cpu", L, "devices"),
    ("compat, torch for the cpu", "3090-535", L, "libcuda"),
    ("torch for the cpu, triton", "cpu", R, ""),
    ("cuda, onnx runtime for the cpu", "cpu", L, "devices"),
    # A compat library without a note serves the branches that the image's requirement lets in.
    ("compat without a note", "t4-470", R, ""),
    ("compat without a note", "v100-535", U, "libcuda"),
    ("compat that nothing names", "t4-470", U, "libcuda"),
    ("compat, note in capitals", "t4-470", R, ""),
    # musl is its own libc.so and libpthread.so, whatever they are called.
    ("musl of debian", "cpu", R, ""),
    ("musl, a library missing", "cpu", N, "loader"),
    # The last branch for Volta is 580, that for Kepler 470.
    ("torch", "v100-535", R, ""),
    ("torch", "v100-595", N, "driver"),
    ("torch", "k80-535", N, "driver"),
    # Some processors of 64 bits run programs of 32 bits.
    ("arm", "pi-5", U, "platform"),
    ("arm", "pi-zero", N, "platform"),
    ("arm v6", "pi-zero", R, ""),
    ("arm", "cpu", N, "platform"),
    # Containers of Linux run in a virtual machine there.
    ("plain", "mac", U, "platform"),
    ("torch", "mac", N, "devices"),
]  # fmt: skip


@cache
def node(name: str) -> Node:
    path = Path(mkdtemp()) / "node.json"
    path.write_text(json.dumps(NODES[name]))
    return read_node(str(path))


@cache
def contents(name: str) -> Contents:
    config, files = IMAGES[name]
    path = make.saved(Path(mkdtemp()) / "a.tar", config, split(files))
    return contents_of(open_images(str(path), Opening())[0])


@pytest.mark.parametrize(("image", "place", "word", "step"), mostly_heavy_rows(CASES, 4))
def test_an_image_of_a_purpose(image: str, place: str, word: str, step: str) -> None:
    answer: Answer = answer_of(contents(image), node(place))
    told = (answer.word, answer.step.name if answer.step else "")
    assert told == (word, step), answer.step and answer.step.reason


@pytest.mark.parametrize(
    ("files", "word"),
    [(TENSORFLOW, U), (TENSORFLOW | CUDNN, R), (ONNX_RUNTIME, R), (XGBOOST, R)],
)
def test_an_environment_has_libraries_of_its_own(
    files: make.Files, word: str, tmp_path: Path
) -> None:
    """TensorFlow opens cuDNN by name: as a wheel it is there, and of the system nobody knows."""
    for path, content in files.items():
        raw = content.encode() if isinstance(content, str) else content
        assert isinstance(raw, bytes)
        make.folder(tmp_path / "lib", {path.removeprefix("usr/lib/"): raw})
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    found = contents_of(open_images(str(tmp_path), Opening())[0])
    assert found.is_environment
    assert answer_of(found, node("h100-580")).word == word
