"""Thirty images on twelve nodes: an examination whose answers were written before it was run.

Each row follows from the rules of the explanation page, which names the vendors' documents. The
letters stand for runs, less, no and unknown, in the order of `NODES`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import image_files as make
import pytest
import wheel_files as build
from test_images_answers import GGML, LEVEL_ZERO, MACHINES, split, with_files

from probe_wheels.images.answers import answer_of
from probe_wheels.images.contents import contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.nodes import Node, read_node
from probe_wheels.images.sources import open_images


def recorded(name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((MACHINES / f"{name}.json").read_text("utf-8"))
    return document


def rendering(name: str, gid: int, kernel: str = "") -> dict[str, object]:
    """A recorded machine whose `render` has a number, and whose amdgpu a version."""
    files = {"/etc/group": f"root:x:0:\nvideo:x:44:\nrender:x:{gid}:\n"}
    if kernel:
        files["/sys/module/amdgpu/version"] = f"{kernel}\n"
    return with_files(recorded(name), files)


NODES: dict[str, dict[str, object]] = {
    "A100, 580, legacy": make.node("10de:20b2", "580.95.05", mode="legacy"),
    "H100, 550, CDI": make.node("10de:2330", "550.163.01", mode="cdi"),
    "L4, 535, CDI": make.node("10de:27b8", "535.274.02", mode="cdi"),
    "RTX 2080 Ti, 570, CDI": make.node("10de:1e07", "570.124.06", mode="cdi"),
    "RTX 5090, 590, CDI": make.node("10de:2b85", "590.44.01", mode="cdi"),
    "V100, 535, legacy": make.node("10de:1db6", "535.154.05", mode="legacy"),
    "B200, 570, CDI": make.node("10de:2901", "570.133.20", mode="cdi"),
    "MI300X, ROCm 6.3": rendering("server--8x-amd-instinct-mi300x", 109, "6.10.5"),
    # It has the processor's own GPU, too: gfx1036, for which no image here has code.
    "RX 7900 XTX, 30.10": rendering("desktop--amd-radeon-rx-7900-xtx", 110, "6.14.14"),
    "Arc A770": rendering("desktop--intel-arc-a770-of-unknown-memory", 109),
    "GB10, 580, aarch64": recorded("dgx-spark--nvidia-gb10"),
    "no GPU": recorded("vm-without-accelerator--cpu"),
}

ALL = ("NVIDIA_VISIBLE_DEVICES=all",)
BOTH = (*ALL, "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
CU126 = make.torch("sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", "12.6")
CU124 = make.torch("sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", "12.4")
CU128 = make.torch("sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 ptx_120@8.7", "12.8")
CU130 = make.torch("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", "13.0")
REQUIRE_128 = "cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"
BASE = make.base()
FLASH = make.wheel(
    "flash-attn", "2.8.3",
    {"flash_attn_2_cuda.so": make.binary(
        "libc.so.6", sections=[(".nv_fatbin", build.fatbin({"sm_80 sm_90": 9}))])},
)  # fmt: skip


def linked(major: int, targets: str) -> bytes:
    code = (".nv_fatbin", build.fatbin({targets: 9}))
    return make.binary("libc.so.6", f"libcudart.so.{major}", sections=[code])


CONDA: make.Files = {
    "opt/conda/conda-meta/libtorch-2.9.1-cuda126_mkl_0.json": json.dumps(
        {"files": ["lib/libtorch_cuda.so"]}
    ),
    "opt/conda/lib/libtorch_cuda.so": make.binary(
        "libc.so.6",
        glibc="2.17",
        sections=[(".nv_fatbin", build.fatbin({"sm_70 sm_75 sm_80 sm_86 sm_90": 50}))],
    ),
}
OLLAMA: make.Files = {
    "usr/lib/ollama/cuda_v12/libggml-cuda.so": linked(12, "sm_70 sm_80 sm_90"),
    "usr/lib/ollama/cuda_v12/libcudart.so.12": make.binary(),
    "usr/lib/ollama/cuda_v13/libggml-cuda.so": linked(13, "sm_75 sm_80 sm_90 sm_100 sm_120"),
    "usr/lib/ollama/cuda_v13/libcudart.so.13": make.binary(),
    "usr/lib/ollama/libggml-cpu-x64.so": make.binary("libc.so.6"),
}
MUSL: make.Files = {
    "lib/ld-musl-x86_64.so.1": make.binary(),
    "usr/bin/serve": make.binary(interpreter="/lib/ld-musl-x86_64.so.1"),
}
OLD_GLIBC: make.Files = {
    **make.base("2.31"),
    "usr/bin/serve": make.binary("libc.so.6", interpreter=make.LOADERS[62], glibc="2.34"),
}
VIDEO: make.Files = {
    "usr/bin/serve": make.binary(
        "libc.so.6", "libnvcuvid.so.1", interpreter=make.LOADERS[62], glibc="2.17"
    )
}


Spec = tuple[dict[str, object], make.Files]


def image(*environ: str, files: make.Files, base: make.Files = BASE, **more: object) -> Spec:
    return make.config(environ, **more), {**base, **files}


def compat(version: str, branches: str) -> make.Files:
    return make.compat(version, [int(branch) for branch in branches.split()])


SYCL = "12.55.8 12.56.5 12.57.0"
IMAGES: dict[str, tuple[Spec, str]] = {
    "cu126": (image(*BOTH, files=CU126), "R R R R N R N N N N N N"),
    "cu128, its conditions": (
        image(*BOTH, "CUDA_VERSION=12.8.1", f"NVIDIA_REQUIRE_CUDA={REQUIRE_128}", files=CU128),
        "R R R R R R R N N N N N",
    ),
    "CUDA_VERSION 12.6 alone": (
        image(*BOTH, "CUDA_VERSION=12.6.3", files={}), "R R R R U N U N N N N N"),
    "PTX of 12.5 alone": (
        image(*BOTH, files=make.torch("ptx_80@8.5", "12.6")), "L N N N L N L N N N N N"),
    "a capability that nobody knows": (
        image(*ALL, "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics2", files=CU126),
        "N R R R N N N N N N N N",
    ),
    "video alone": (
        image(*ALL, "NVIDIA_DRIVER_CAPABILITIES=video", files=CU126), "N R R R N N N N N N N N"),
    "arm64": (
        (make.config(BOTH, "arm64"), {
            **make.base(machine=183),
            **make.torch("sm_80 sm_90 sm_100 sm_110 sm_120", "13.0", machine=183)}),
        "N N N N N N N N N N R N",
    ),
    "cu130 with compat": (
        image(*BOTH, files={**CU130, **compat("580.65.06", "535 550 565 570 575")}),
        "R R R N R N R N N N N N",
    ),
    "compat of 12.9 forced": (
        image(*BOTH, "LD_LIBRARY_PATH=/usr/local/cuda/compat",
              files={**CU128, **compat("575.57.08", "535 550 560 565 570 575")}),
        "N R R N N R R N N N N N",
    ),
    "rocm 6.3": (
        image(files=make.rocm_torch("gfx90a gfx942 gfx1100", "6.3")), "N N N N N N N R L N N N"),
    "rocm 7.1": (
        image(files=make.rocm_torch("gfx942 gfx1100", "7.1")), "N N N N N N N U U N N N"),
    "rocm 6.4 of a user in render": (
        image(files=make.rocm_torch("gfx942", "6.4"), User="app"),
        "N N N N N N N R N N N N",
    ),
    # Its /etc/group lists the user in render. Docker takes no such list beside a group in User.
    "rocm 6.4 of a number": (
        image(files=make.rocm_torch("gfx942 gfx1100", "6.4"), User="1000:1000"),
        "N N N N N N N U N N N N",
    ),
    "sycl": (
        image(files={**LEVEL_ZERO, "app/engine.so": build.sycl(SYCL)}), "N N N N N N N N N R N N"),
    "sycl, SPIR-V": (
        image(files={**LEVEL_ZERO, "app/engine.so": build.sycl("")}), "N N N N N N N N N L N N"),
    "sycl without its driver": (
        image(files={"app/engine.so": build.sycl(SYCL)}), "N N N N N N N N N N N N"),
    "musl": (image(*BOTH, files=CU126, base=MUSL), "N N N N N N N N N N N N"),
    "an older glibc": (image(*BOTH, files=CU126, base=OLD_GLIBC), "N N N N N N N N N N N N"),
    "conda": (image(*BOTH, files=CONDA), "R R R R N R N N N N N N"),
    "llama.cpp": (
        image(*BOTH, files={**GGML, "app/libggml-cuda.so": linked(12, "sm_80 sm_90")}),
        "R R R N N N N L L L N L",
    ),
    "ollama": (image(*BOTH, files=OLLAMA), "R R R R R R L L L L N L"),
    "a choice of conditions": (
        image(*BOTH, "NVIDIA_REQUIRE_CUDA=cuda>=12.4,arch>=8.0 brand=tesla", files=CU124),
        "R R R R N R N N N N N N",
    ),
    "a condition that nobody knows": (
        image(*BOTH, "NVIDIA_REQUIRE_CUDA=color=green", files=CU126), "N R R R N N N N N N N N"),
    "conditions switched off": (
        image("NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_REQUIRE_CUDA=cuda>=13.0",
              "NVIDIA_DISABLE_REQUIRE=true", files=CU126),
        "R R R R N R N N N N N N",
    ),
    "linked with the decoder": (
        image(*BOTH, files={**CU126, **VIDEO}), "N R R R N N N N N N N N"),
    "a libcuda of its own": (
        image(*BOTH, files={**CU126, "usr/lib/libcuda.so.550.54.14": make.binary()}),
        "U U U U N U N N N N N N",
    ),
    "9.0a alone": (
        image(*BOTH, files=make.torch("sm_90a", "12.8")), "N R N N N N N N N N N N"),
    "families": (
        image(*BOTH, files=make.torch("sm_100f sm_120f", "12.9")), "N N N N R N R N N N N N"),
    "one wheel for less": (
        image(*BOTH, files={**CU126, **FLASH}), "R R R L N L N N N N N N"),
    "no code": (image(files={}), "R R R R R R R R R R N R"),
}  # fmt: skip
WORDS = {"R": "runs", "L": "less", "N": "no", "U": "unknown"}


@cache
def nodes() -> list[Node]:
    folder = Path(mkdtemp())
    found = []
    for number, recording in enumerate(NODES.values()):
        (folder / f"{number}.json").write_text(json.dumps(recording))
        found.append(read_node(str(folder / f"{number}.json")))
    return found


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_on_every_node(name: str, tmp_path: Path) -> None:
    (config, files), row = IMAGES[name]
    opening, found = Opening(), {}
    path = make.saved(tmp_path / "a.tar", config, split(files))
    contents = contents_of(open_images(str(path), opening)[0])
    for place, letter, node in zip(NODES, row.split(), nodes(), strict=True):
        answer = answer_of(contents, node)
        if answer.word != WORDS[letter]:
            found[place] = (letter, answer.word, answer.step and answer.step.reason)
    opening.close()
    assert not found
