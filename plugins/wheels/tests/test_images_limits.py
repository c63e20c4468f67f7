"""Images that come close to running: what a blind comparison of images with nodes got wrong once.

Each expected answer follows from a rule of the explanation page, which names its source.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import image_files as make
import pytest
import wheel_files as build
from test_images_answers import CPU, CU128, LEVEL_ZERO, MI300X, RENDER, look, split, with_files
from weights import mostly_heavy_rows

from probe_core.commands.recorded import opened
from probe_core.commands.reports import probe_document
from probe_core.model.document import StepDoc
from probe_wheels.images.answers import Answer, answer_of
from probe_wheels.images.contents import Contents, contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.least import processors_of_image, vendors_of_image
from probe_wheels.images.nodes import Node, node_of, read_node
from probe_wheels.images.sources import open_images

MACHINES = Path(__file__).parents[3] / "tests" / "machines"


def recorded(name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((MACHINES / f"{name}.json").read_text("utf-8"))
    return document


RADEON = recorded("desktop--amd-radeon-rx-7900-xtx")
WSL: dict[str, object] = {
    "schema": 1,
    "os": "linux",
    "arch": "x86_64",
    "environ": {},
    "origin": "invented for tests",
    "files": {"/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n", "/dev/dxg": ""},
    "links": {},
}
RECORDINGS: dict[str, dict[str, object]] = {
    "h100-570-legacy": make.node("10de:2330", "570.172.08", mode="legacy"),
    "h100-535-cdi": make.node("10de:2330", "535.230.02", mode="cdi"),
    "5090-595-cdi": make.node("10de:2b85", "595.45.04", mode="cdi"),
    "b200-580-cdi": make.node("10de:2901", "580.95.05", mode="cdi"),
    "p100-580-legacy": make.node("10de:15f8", "580.95.05", mode="legacy"),
    "t4-450-legacy": make.node("10de:1eb8", "450.248.02", mode="legacy"),
    "t4-450-cdi": make.node("10de:1eb8", "450.248.02", mode="cdi"),
    "mi300x-6.4": with_files(MI300X, {**RENDER, "/sys/module/amdgpu/version": "6.12.12\n"}),
    "rx7900-intree": RADEON,
    "wsl": WSL,
    "cpu": CPU,
    "laptop": recorded("laptop--sleeping-nvidia-geforce-rtx-4060-laptop-gpu"),
    "opteron": recorded("opteron-6272--16-cores-in-8-modules"),
    "xeon": recorded("xeon-gold-6230--idle-at-800-mhz"),
}
ALL = ("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
BRANDS = " ".join(
    f"brand={brand},driver>=570,driver<571" for brand in ("unknown", "tesla", "nvidia")
)
MUSL: dict[str, make.Content] = {
    "lib/ld-musl-x86_64.so.1": make.binary(),
    "usr/bin/serve": make.binary(interpreter="/lib/ld-musl-x86_64.so.1"),
}


def library(*needed: str, targets: str = "") -> bytes:
    code = [(".nv_fatbin", build.fatbin({targets: 9}))] if targets else []
    return make.binary("libc.so.6", *needed, glibc="2.17", sections=code)


def llama(*needed: str, backend: str = "libggml-cuda.so", code: bytes = b"") -> make.Files:
    """llama.cpp as its own images have it: the program, a backend, and the one of the CPU."""
    program = make.binary("libc.so.6", *needed, interpreter=make.LOADERS[62], glibc="2.17")
    return {
        **make.base(),
        "app/llama-server": program,
        "app/libggml.so": library(*(["libggml-cuda.so"] if needed else [])),
        "app/libggml-cpu-haswell.so": library(),
        f"app/{backend}": code or library("libcuda.so.1", targets="sm_80 sm_90"),
    }


def started(*environ: str) -> dict[str, object]:
    return make.config((*ALL, *environ), Entrypoint=["/app/llama-server"], Cmd=None)


HIP = make.binary(
    "libc.so.6",
    glibc="2.17",
    sections=[(".hip_fatbin", build.pages([build.bundle(["gfx1030"])] * 9))],
)
NGC = {
    **make.base(),
    **make.torch(CU128, "12.8"),
    "etc/shinit_v2": "# chooses the compat library\n",
}
STUB = {
    "usr/local/cuda": make.link("cuda-12.8"),
    "usr/local/cuda-12.8/lib64/stubs/libcuda.so": make.binary(),
    "usr/local/cuda-12.8/lib64/stubs/libcuda.so.1": make.link("libcuda.so"),
}
SAMPLE = make.binary(
    "libc.so.6",
    interpreter=make.LOADERS[62],
    glibc="2.17",
    sections=[(".nv_fatbin", build.fatbin({"sm_90": 9}))],
)


def linked_with(library: str) -> make.Files:
    """The program of `make.base`, which needs a library of the driver, and has no code for GPUs."""
    program = make.binary("libc.so.6", library, interpreter=make.LOADERS[62], glibc="2.17")
    return {"usr/bin/serve": program}


IMAGES: dict[str, tuple[dict[str, object], make.Files]] = {
    "cuda-12.4": (make.config((*ALL, "CUDA_VERSION=12.4.1")), make.base()),
    "cuda-11.8": (make.config((*ALL, "CUDA_VERSION=11.8.0")), make.base()),
    "every-brand": (
        make.config((*ALL, f"NVIDIA_REQUIRE_CUDA=cuda>=13.0 {BRANDS}")),
        {**make.base(), **make.torch(CU128, "12.8")},
    ),
    "llama-cuda": (started("CUDA_VERSION=12.4.0"), llama()),
    "llama-linked": (started(), llama("libggml.so")),
    "llama-without-cpu": (
        started(),
        {path: file for path, file in llama().items() if "libggml-cpu" not in path},
    ),
    "llama-hip": (
        started(),
        {**llama(backend="libggml-hip.so", code=HIP), "opt/rocm/.info/version": "6.4.1-83\n"},
    ),
    "ollama": (
        make.config(ALL),
        {
            **make.base(),
            "usr/lib/ollama/cuda_v12/libggml-cuda.so": library(
                "libcudart.so.12", targets="sm_80 sm_90"
            ),
            "usr/lib/ollama/cuda_v12/libcudart.so.12": library(),
            "usr/lib/ollama/libggml-cpu-x64.so": library(),
        },
    ),
    "ngc": (make.config((*ALL, "CUDA_VERSION=12.8.0", "NVIDIA_REQUIRE_CUDA=cuda>=9.0")), NGC),
    "torch": (make.config(ALL), {**make.base(), **make.torch(CU128, "12.8")}),
    "alpine-torch": (make.config(ALL), {**MUSL, **make.torch(CU128, "12.8")}),
    "plain": (make.config(), make.base()),
    "stub": (
        make.config((*ALL, "LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs")),
        {**make.base(), **make.torch(CU128, "12.8"), **STUB},
    ),
    "stub-configured": (
        make.config(ALL),
        {
            **make.base(),
            **make.torch(CU128, "12.8"),
            **STUB,
            "etc/ld.so.conf.d/stubs.conf": "/usr/local/cuda/lib64/stubs\n",
        },
    ),
    "stub-unused": (
        make.config(ALL),
        {**make.base(), **make.torch(CU128, "12.8"), **STUB},
    ),
    "stub-for-linkers": (
        make.config((*ALL, "LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs")),
        {
            **make.base(),
            **make.torch(CU128, "12.8"),
            **{path: file for path, file in STUB.items() if not path.endswith(".1")},
        },
    ),
    "libcuda-copied": (
        make.config(ALL),
        {**make.base(), **make.torch(CU128, "12.8"), "usr/lib/libcuda.so.1": make.binary()},
    ),
    "linked-with-libcuda": (make.config(), {**make.base(), **linked_with("libcuda.so.1")}),
    "linked-with-nvml": (
        make.config(("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility")),
        {**make.base(), **linked_with("libnvidia-ml.so.1")},
    ),
    "hip-and-libcuda": (
        make.config(),
        {
            **make.base(),
            **make.rocm_torch("gfx942", "6.4"),
            **linked_with("libcuda.so.1"),
        },
    ),
    "alpine-glibc": (
        make.config(ALL),
        {
            **MUSL,
            **make.torch(CU128, "12.8"),
            "usr/glibc-compat/lib/libc.so.6": make.binary(defines=("2.17", "2.35")),
        },
    ),
    "compat-linked": (
        make.config(ALL),
        {
            **make.base(),
            **make.torch(CU128, "12.8"),
            "usr/local/cuda/compat": make.link("/opt/compat-575"),
            "opt/compat-575/libcuda.so.575.57.08": make.binary(note='{"driver": [535]}'),
            "opt/compat-575/libcuda.so.1": make.link("libcuda.so.575.57.08"),
        },
    ),
    "older-libstdcxx": (
        make.config(),
        {
            **make.base(),
            "usr/lib/libstdc++.so.6": make.binary(defines=("GLIBCXX_3.4.28",)),
            "usr/bin/serve": make.binary(
                "libc.so.6", "libstdc++.so.6", interpreter=make.LOADERS[62], glibc="GLIBCXX_3.4.30"
            ),
        },
    ),
    "library-of-library": (
        make.config(),
        {
            **make.base(),
            **linked_with("libmine.so.1"),
            "usr/lib/libmine.so.1": make.binary("libtheirs.so.3"),
        },
    ),
    "newer-library": (
        make.config(),
        {
            **make.base("2.31"),
            **linked_with("libmine.so.1"),
            "usr/lib/libmine.so.1": make.binary("libc.so.6", glibc="2.34"),
        },
    ),
    "runtime-of-library": (
        make.config(ALL),
        {
            **make.base(),
            **make.wheel(
                "torch",
                "2.9.1+cu128",
                {
                    "torch/lib/libtorch_cuda.so": library("libc10_cuda.so", targets="sm_90"),
                    "torch/lib/libc10_cuda.so": library("libcudart.so.12"),
                },
            ),
        },
    ),
    "x86-64-v2": ({**make.config(), "variant": "v2"}, make.base()),
    "x86-64-v3": ({**make.config(), "variant": "v3"}, make.base()),
    "x86-64-v4": ({**make.config(), "variant": "v4"}, make.base()),
    "x86-64-v9": ({**make.config(), "variant": "v9"}, make.base()),
    "in-its-folder": (
        make.config(ALL, Cmd=["./bench"], WorkingDir="/work"),
        {**make.base(), "work/bench": SAMPLE},
    ),
    "anywhere": (
        make.config(ALL, Entrypoint=["/opt/nvidia/entry.sh"]),
        {
            **make.base(),
            **make.torch(CU128, "12.8"),
            "usr/bin/sh": make.base()["usr/bin/serve"],
            "opt/nvidia/entry.sh": '#!/bin/sh\nexec "$@"\n',
        },
    ),
    "no-program": (
        make.config(Entrypoint=["/opt/nvidia/entry.sh"]),
        {**make.base(), "opt/nvidia/entry.sh": "exec true\n"},
    ),
    "sycl": (
        make.config(),
        {**make.base(), **LEVEL_ZERO, "app/engine.so": build.sycl("12.55.8", spirv=False)},
    ),
}
R, L, N, U = "runs", "less", "no", "unknown"
ROCM = {"opt/rocm/.info/version": "6.4.1-83\n"}


def kernels(*processors: str) -> make.Files:
    """ROCm with a rocBLAS for these processors, as AMD's images have it."""
    bundles = build.pages([build.bundle(processors)] * 9)
    names = (f"opt/rocm/lib/rocblas/library/Kernels.so-000-{name}.hsaco" for name in processors)
    return {
        **ROCM,
        "opt/rocm/lib/librocblas.so.4": make.binary(sections=[(".hip_fatbin", bundles)]),
        **dict.fromkeys(names, b"k"),
    }


OPENVINO = make.wheel("onnxruntime-openvino", "1.22.0", {"onnxruntime/capi/state.so": library()})
CPU_TORCH = make.wheel("torch", "2.9.1+cpu", {"torch/version.py": "cuda = None\nhip = None\n"})
COMPAT_590 = {
    "usr/local/cuda/compat/libcuda.so.590.44.01": make.binary(note='{"driver": [570, 580]}'),
    "usr/local/cuda/compat/libcuda.so.1": make.link("libcuda.so.590.44.01"),
}
WATCHING = (*ALL, "CUDA_VERSION=13.1.0", "NVIDIA_DISABLE_REQUIRE=true")
IMAGES |= {
    "llama-rocblas": (
        started(),
        {**llama(backend="libggml-hip.so", code=HIP), **kernels("gfx942", "gfx1030")},
    ),
    "llama-vulkan": (
        make.config(Entrypoint=["/app/llama-server"]),
        {
            **llama(backend="libggml-vulkan.so", code=library("libvulkan.so.1")),
            "usr/lib/libvulkan.so.1": library(),
        },
    ),
    # A toolkit of pictures that can draw by Vulkan needs no GPU.
    "drawing": (
        make.config(),
        {
            **make.base(),
            "usr/lib/libgtk-4.so.1": library("libvulkan.so.1"),
            "usr/lib/libvulkan.so.1": library(),
        },
    ),
    "cuda-of-ubuntu": (
        make.config(ALL),
        {
            **make.base(),
            "usr/local/cuda-12.8/lib64/libcudart.so.12.8.90": library(),
            "usr/local/cuda-12.8/lib64/libcudart.so.12": make.link("libcudart.so.12.8.90"),
        },
    ),
    "llama-linked-compat": (started(), {**llama("libggml.so"), **COMPAT_590}),
    "llama-compat-first": (
        started("LD_LIBRARY_PATH=/usr/local/cuda/compat"),
        {**llama("libggml.so"), **COMPAT_590},
    ),
    "watching-compat": (
        make.config(("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility")),
        {**make.base(), **linked_with("libcuda.so.1"), **COMPAT_590},
    ),
    "neuron": (make.config(), {**make.base(), "opt/aws/neuron/lib/libnrt.so.1": library()}),
    "neuron-arm": (
        make.config(arch="arm64"),
        {**make.base(machine=183), "opt/aws/neuron/lib/libnrt.so.1": library()},
    ),
    "alpine-asking": (make.config(ALL), MUSL),
    "rocm": (make.config(), {**make.base(), **kernels("gfx942")}),
    "rocm-gfx90a": (make.config(), {**make.base(), **kernels("gfx90a")}),
    "ngc-real": (
        make.config(
            (
                *ALL,
                "CUDA_VERSION=12.8.0",
                "NVIDIA_REQUIRE_CUDA=cuda>=9.0",
                "LD_LIBRARY_PATH=/usr/local/cuda/compat/lib",
            )
        ),
        {
            **NGC,
            "usr/local/cuda/compat/lib.real/libcuda.so.570.86.10": make.binary(),
            "usr/local/cuda/compat/lib.real/libcuda.so.1": make.link("libcuda.so.570.86.10"),
        },
    ),
    "openvino": (make.config(ALL), {**make.base(), **OPENVINO}),
    "asking": (make.config(ALL), make.base()),
    "asking-cpu-torch": (make.config(ALL), {**make.base(), **CPU_TORCH}),
    "cuda-cpu-torch": (
        make.config((*ALL, "CUDA_VERSION=12.8.1")),
        {**make.base(), **CPU_TORCH},
    ),
    "watching": (make.config(WATCHING), {**make.base(), **COMPAT_590}),
}
IMAGES["drawing-asking"] = (make.config(ALL), IMAGES["drawing"][1])
IMAGES["ngc-linked"] = (
    IMAGES["ngc-real"][0],
    {**IMAGES["ngc-real"][1], "usr/local/cuda/compat/lib": make.link("lib.real")},
)
CASES = [
    # The rocBLAS beside a backend is no program of its own.
    ("llama-rocblas", "cpu", L, "devices"),
    ("llama-rocblas", "h100-570-legacy", L, "devices"),
    ("llama-rocblas", "mi300x-6.4", N, "code"),
    # Shaders for Vulkan need a driver for it, which nobody knows; without a GPU the CPU is used.
    ("llama-vulkan", "h100-570-legacy", U, "runtime"),
    ("llama-vulkan", "rx7900-intree", U, "runtime"),
    ("llama-vulkan", "cpu", L, "devices"),
    ("drawing", "cpu", R, ""),
    ("drawing", "h100-570-legacy", R, ""),
    ("drawing-asking", "h100-570-legacy", R, ""),
    ("drawing-asking", "cpu", U, "devices"),
    # The version of a toolkit is that of its file, not of the link to it.
    ("cuda-of-ubuntu", "5090-595-cdi", R, ""),
    ("cuda-of-ubuntu", "t4-450-cdi", N, "driver"),
    # ROCm alone is for AMD's GPUs, as CUDA alone is for NVIDIA's.
    ("rocm", "mi300x-6.4", R, ""),
    ("rocm", "rx7900-intree", U, "driver"),
    ("rocm", "h100-570-legacy", N, "devices"),
    ("rocm", "cpu", N, "devices"),
    ("rocm-gfx90a", "mi300x-6.4", U, "code"),
    # compat/lib is no link before NGC's start script makes it one.
    ("ngc-real", "h100-570-legacy", R, ""),
    ("ngc-real", "h100-535-cdi", U, "libcuda"),
    ("ngc-linked", "h100-570-legacy", U, "libcuda"),
    # OpenVINO's first device is the CPU.
    ("openvino", "cpu", R, ""),
    ("openvino", "h100-570-legacy", R, ""),
    ("openvino", "laptop", L, "runtime"),
    # A variable alone tells nothing of what a program does without a GPU.
    ("asking", "cpu", U, "devices"),
    ("asking", "h100-570-legacy", R, ""),
    # Code for other accelerators is not read.
    ("neuron", "cpu", U, "devices"),
    ("neuron", "h100-570-legacy", U, "devices"),
    ("neuron-arm", "cpu", N, "platform"),
    # The loader finds no library of a compat folder, unless a variable leads to it.
    ("llama-linked-compat", "cpu", N, "devices"),
    ("llama-compat-first", "cpu", L, "devices"),
    ("watching-compat", "h100-570-legacy", N, "libcuda"),
    ("alpine-asking", "h100-570-legacy", U, "glibc"),
    ("alpine-asking", "cpu", U, "glibc"),
    ("asking-cpu-torch", "h100-570-legacy", L, "code"),
    ("asking-cpu-torch", "cpu", U, "devices"),
    # A PyTorch for the CPU never loads libcuda, whatever its base is made for.
    ("cuda-cpu-torch", "h100-570-legacy", L, "code"),
    ("cuda-cpu-torch", "cpu", L, "devices"),
    ("cuda-cpu-torch", "t4-450-legacy", N, "start check"),
    # Nor does the CUDA of an image that switches the checks off and has no code.
    ("watching", "h100-535-cdi", U, "driver"),
    ("watching", "5090-595-cdi", R, ""),
    ("watching", "laptop", U, "libcuda"),
    ("watching", "cpu", N, "devices"),
    # A toolkit older than the chip has PTX for it at best: nobody knows what will be compiled.
    ("cuda-12.4", "h100-570-legacy", R, ""),
    ("cuda-12.4", "5090-595-cdi", U, "code"),
    ("cuda-11.8", "b200-580-cdi", U, "code"),
    # An H100 is of one of three brands, and each of them may start.
    ("every-brand", "h100-570-legacy", R, ""),
    ("every-brand", "t4-450-legacy", N, "start check"),
    # Without a device ggml uses the CPU; one without code it takes, and fails (llama.cpp#4215).
    ("llama-cuda", "h100-570-legacy", R, ""),
    ("llama-cuda", "cpu", L, "devices"),
    ("llama-cuda", "p100-580-legacy", N, "code"),
    ("llama-cuda", "t4-450-cdi", L, "code"),
    # What the hook refuses does not start at all.
    ("llama-cuda", "t4-450-legacy", N, "start check"),
    # A backend that is linked wants the host's libcuda, and one of the CPU has to be there.
    ("llama-linked", "cpu", N, "devices"),
    ("llama-without-cpu", "cpu", N, "devices"),
    ("llama-hip", "cpu", L, "devices"),
    ("llama-hip", "mi300x-6.4", N, "code"),
    ("llama-hip", "rx7900-intree", N, "code"),
    # Ollama passes over what its libraries have no code for.
    ("ollama", "p100-580-legacy", L, "code"),
    # NGC's start script chooses the libcuda below the image's CUDA.
    ("ngc", "h100-570-legacy", R, ""),
    ("ngc", "h100-535-cdi", U, "libcuda"),
    ("ngc", "p100-580-legacy", N, "code"),
    # WSL has GPUs that no recording tells of.
    ("torch", "wsl", U, "devices"),
    ("ollama", "wsl", U, "devices"),
    ("alpine-torch", "wsl", N, "glibc"),
    ("plain", "wsl", R, ""),
    # A stub has libcuda's name where the loader looks first, and its cuInit fails (error 34).
    ("stub", "h100-570-legacy", N, "libcuda"),
    ("stub", "b200-580-cdi", N, "libcuda"),
    ("stub-configured", "h100-570-legacy", U, "libcuda"),
    ("stub-unused", "h100-570-legacy", R, ""),
    ("stub-for-linkers", "h100-570-legacy", R, ""),
    ("libcuda-copied", "h100-570-legacy", U, "libcuda"),
    # The loader wants the driver's library, whether or not there is code for a GPU.
    ("linked-with-libcuda", "cpu", N, "devices"),
    ("linked-with-libcuda", "mi300x-6.4", N, "devices"),
    ("linked-with-libcuda", "h100-570-legacy", R, ""),
    ("hip-and-libcuda", "mi300x-6.4", N, "loader"),
    # What watches GPUs asks for the utilities alone, and needs no libcuda.
    ("linked-with-nvml", "h100-570-legacy", R, ""),
    ("linked-with-nvml", "cpu", N, "devices"),
    # A program for musl may start one for the glibc of another package, or not.
    ("alpine-glibc", "h100-570-legacy", U, "glibc"),
    # The folder of compat libraries may be a link.
    ("compat-linked", "h100-535-cdi", R, ""),
    ("compat-linked", "b200-580-cdi", R, ""),
    # The loader loads the libraries of libraries, and their versions.
    ("older-libstdcxx", "cpu", N, "glibc"),
    ("library-of-library", "cpu", N, "loader"),
    ("newer-library", "cpu", N, "glibc"),
    ("runtime-of-library", "h100-570-legacy", N, "loader"),
    # psABI: no AVX2 on an Opteron 6272, no AVX-512 on Raptor Lake.
    ("x86-64-v2", "opteron", R, ""),
    ("x86-64-v3", "opteron", N, "platform"),
    ("x86-64-v3", "laptop", R, ""),
    ("x86-64-v3", "h100-570-legacy", U, "platform"),
    ("x86-64-v4", "laptop", N, "platform"),
    ("x86-64-v4", "xeon", R, ""),
    ("x86-64-v9", "xeon", U, "platform"),
    # A program lies where the image has it, not only where distributions have theirs.
    ("in-its-folder", "b200-580-cdi", N, "code"),
    ("in-its-folder", "cpu", N, "devices"),
    ("anywhere", "h100-570-legacy", R, ""),
    ("no-program", "cpu", N, "loader"),
    # Xe-LP has the IP versions 12.0 to 12.10.
    ("sycl", "laptop", N, "code"),
]


@cache
def node(name: str) -> Node:
    path = Path(mkdtemp()) / f"{name}.json"
    path.write_text(json.dumps(RECORDINGS[name]))
    return read_node(str(path))


@cache
def contents(name: str) -> Contents:
    config, files = IMAGES[name]
    path = make.saved(Path(mkdtemp()) / f"{name}.tar", config, split(files))
    # It stays open, as in the command: libraries of plain layers are read when they are asked for.
    return contents_of(open_images(str(path), Opening())[0])


@pytest.mark.parametrize(("image", "place", "word", "step"), mostly_heavy_rows(CASES, 4))
def test_an_image_at_its_limits(image: str, place: str, word: str, step: str) -> None:
    answer: Answer = answer_of(contents(image), node(place))
    told = (answer.word, answer.step.name if answer.step else "")
    assert told == (word, step), answer.step and answer.step.reason


@pytest.mark.parametrize(
    ("image", "processors", "vendors"),
    [("rocm", ["gfx942"], ["amd"]), ("llama-vulkan", [], []), ("openvino", [], [])],
)
def test_a_cluster_hears_of_nothing_that_is_unknown(
    image: str, processors: list[str], vendors: list[str]
) -> None:
    assert processors_of_image(contents(image)) == processors
    assert vendors_of_image(contents(image)) == vendors


def test_a_recording_that_is_read_too_slowly_is_unknown(tmp_path: Path) -> None:
    """A recorded machine has no driver that hangs: its prober is this computer's."""
    path = tmp_path / "node.json"
    path.write_text(json.dumps(with_files(MI300X, RENDER)))
    with opened(str(path)) as machine:
        report = probe_document(machine)
        for device in report["devices"]:
            if device["vendor"] == "amd" and device["readiness"]:
                step: StepDoc = {
                    "step": "responding", "status": "broken", "code": "driver-hangs",
                    "evidence": "prober amd: timeout",
                }  # fmt: skip
                device["readiness"]["steps"] = [step]
        files = {**make.base(), **make.rocm_torch("gfx942", "6.4")}
        found = look(make.saved(tmp_path / "a.tar", make.config(), split(files)))
        recorded, told = node_of("a", machine, report), node_of("a", None, report)
    assert answer_of(found, recorded).word == "unknown"
    assert answer_of(found, told).word == "no"  # a report tells what happened there


@pytest.mark.parametrize("packed", [False, True])
def test_executables_elsewhere_are_kept_where_they_begin_as_programs(
    packed: bool, tmp_path: Path
) -> None:
    """However a layer is packed; `chmod -R 755` makes every file one that may be executed."""
    files = {**make.base(), "work/bench": SAMPLE, "work/notes.txt": "text", "work/run": "#!/bin/sh"}
    raw = make.layer(files)
    path = make.saved(tmp_path / "a.tar", make.config(), [make.gz(raw) if packed else raw])
    found = look(path).files.tree.files
    assert {name for name in found if name.startswith("work/")} == {"work/bench", "work/run"}


def test_a_root_of_musl_has_the_architecture_of_its_loader(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name, content in {**MUSL, "etc/os-release": b"ID=alpine\n"}.items():
        assert isinstance(content, bytes)
        make.folder(root, {name: content})
    assert look(root).arch == "x86_64"
