"""Whether images run on nodes: images and nodes of our own builder, answers from the rules.

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

from probe_wheels.images.answers import answer_of
from probe_wheels.images.contents import Contents, contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.nodes import Node, read_node
from probe_wheels.images.sources import open_images

MACHINES = Path(__file__).parents[3] / "tests" / "machines"

RENDER = {"/etc/group": "root:x:0:\nvideo:x:44:\nrender:x:109:\n"}
MI300X = json.loads((MACHINES / "server--8x-amd-instinct-mi300x.json").read_text("utf-8"))
CPU = json.loads((MACHINES / "vm-without-accelerator--cpu.json").read_text("utf-8"))
PHOENIX = json.loads((MACHINES / "laptop--amd-radeon-780m-and-npu.json").read_text("utf-8"))


def with_files(recording: dict[str, object], files: dict[str, str]) -> dict[str, object]:
    listed = recording["files"]
    assert isinstance(listed, dict)
    return {**recording, "files": {**listed, **files}}


AMDGPU = "/sys/module/amdgpu/version"
RECORDINGS: dict[str, dict[str, object]] = {
    "h100-570": make.node("10de:2330", "570.26"),
    "4090-535-legacy": make.node("10de:2684", "535.54.03", mode="legacy"),
    "4090-535-cdi": make.node("10de:2684", "535.54.03", mode="cdi"),
    "4090-580": make.node("10de:2684", "580.65.06"),
    "a100-550": make.node("10de:20b2", "550.54.14", mode="cdi"),
    "a100-560": make.node("10de:20b2", "560.28.03", mode="cdi"),
    "a100-590": make.node("10de:20b2", "590.44.01", mode="cdi"),
    "v100-580": make.node("10de:1db1", "580.65.06", mode="jit-cdi"),
    "b200-580": make.node("10de:2901", "580.65.06", mode="cdi"),
    "5090-580": make.node("10de:2b85", "580.65.06", mode="cdi"),
    "t4-470": make.node("10de:1eb8", "470.42.01", mode="legacy"),
    "mi300x-6.4": with_files(MI300X, {**RENDER, AMDGPU: "6.12.12\n"}),
    "mi300x-intree": with_files(MI300X, RENDER),
    "780m-6.4": with_files(PHOENIX, {**RENDER, AMDGPU: "6.12.12\n"}),
    "gb10-580": json.loads((MACHINES / "dgx-spark--nvidia-gb10.json").read_text("utf-8")),
    "arc-a770": json.loads(
        (MACHINES / "desktop--intel-arc-a770-of-unknown-memory.json").read_text("utf-8")
    ),
    "cpu": CPU,
}

CU128 = "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
CU130 = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
ALL_GPUS = ("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
# The conditions of public images of these versions, shortened (their pages of tags).
REQUIRE_128 = "cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"
REQUIRE_120 = "cuda>=12.0 brand=tesla,driver>=450,driver<451 brand=geforce,driver>=470,driver<471"
COMPAT_13 = (535, 550, 565, 570, 575)

Spec = tuple[dict[str, object], dict[str, make.Content]]


def image(
    *environ: str, files: dict[str, make.Content] | None = None, arch: str = "amd64", **more: object
) -> Spec:
    machine = 183 if arch == "arm64" else 62
    return make.config((*ALL_GPUS, *environ), arch, **more), {
        **make.base(machine=machine),
        **(files or {}),
    }


def cuda(groups: dict[str, int]) -> build.Section:
    return (".nv_fatbin", build.fatbin(groups))


FLASH = make.wheel(
    "flash-attn",
    "2.8.3",
    {"flash_attn_2_cuda.so": make.binary("libc.so.6", sections=[cuda({"sm_80 sm_90": 9})])},
)
BASE = make.base()


def linked(major: int, targets: str) -> bytes:
    """A library with CUDA code that takes CUDA's runtime from a library of its own."""
    return make.binary("libc.so.6", f"libcudart.so.{major}", sections=[cuda({targets: 9})])


GGML: dict[str, make.Content] = {
    "app/libggml-cuda.so": linked(12, "sm_80 sm_90"),
    "app/libcudart.so.12": make.binary(),
    "app/libggml-cpu.so": make.binary("libc.so.6"),
}
OLLAMA: dict[str, make.Content] = {
    "usr/lib/ollama/cuda_v12/libggml-cuda.so": linked(12, "sm_70 sm_80 sm_90"),
    "usr/lib/ollama/cuda_v12/libcudart.so.12": make.binary(),
    "usr/lib/ollama/cuda_v13/libggml-cuda.so": linked(13, "sm_75 sm_80 sm_90 sm_100 sm_120"),
    "usr/lib/ollama/cuda_v13/libcudart.so.13": make.binary(),
    "usr/lib/ollama/libggml-cpu-x64.so": make.binary("libc.so.6"),
}
LEVEL_ZERO: dict[str, make.Content] = {
    f"usr/lib/{name}": make.binary()
    for name in ("libze_loader.so.1", "libze_intel_gpu.so.1", "libigc.so.2")
}
CONDA: dict[str, make.Content] = {
    "opt/conda/conda-meta/libtorch-2.9.1-cuda128_mkl_0.json": json.dumps(
        {"files": ["lib/libtorch_cuda.so"]}
    ),
    "opt/conda/lib/libtorch_cuda.so": make.binary(
        "libc.so.6", glibc="2.17", sections=[cuda({CU128: 50})]
    ),
}
IMAGES: dict[str, Spec] = {
    "torch-cu128": image(files=make.torch(CU128, "12.8")),
    "torch-cu128-require": image(
        "CUDA_VERSION=12.8.1", f"NVIDIA_REQUIRE_CUDA={REQUIRE_128}", files=make.torch(CU128, "12.8")
    ),
    "torch-cu128-compat": image(
        "CUDA_VERSION=12.8.1",
        f"NVIDIA_REQUIRE_CUDA={REQUIRE_128}",
        files=make.torch(CU128, "12.8") | make.compat("570.26", (470, 535, 550, 560, 565)),
    ),
    "torch-cu130": image(files=make.torch(CU130, "13.0")),
    "torch-cu130-compat": image(
        "CUDA_VERSION=13.0.1", "NVIDIA_REQUIRE_CUDA=cuda>=13.0 driver>=535,driver<580",
        files=make.torch(CU130, "13.0") | make.compat("580.65.06", COMPAT_13),
    ),
    "compat-forced": image(
        "LD_LIBRARY_PATH=/usr/local/cuda/compat",
        files=make.torch(CU128, "12.8") | make.compat("570.26", (535, 550)),
    ),
    "ptx-12.8": image(files=make.torch("ptx_80@8.7", "12.8")),
    "ptx-12.0": image(files=make.torch("ptx_70@8.0", "12.0")),
    "sass-90-ptx": image(files=make.torch("sm_90 ptx_90@8.7", "12.8")),
    "sass-90": image(files=make.torch("sm_90", "12.8")),
    "one-wheel-short": image(files=make.torch(CU128, "12.8") | FLASH),
    "cuda-version-alone": image("CUDA_VERSION=12.8.0"),
    "cuda-13-runtime": image("CUDA_VERSION=13.0.0", "NVIDIA_REQUIRE_CUDA=cuda>=13.0"),
    "require-12.0": image("CUDA_VERSION=12.0.1", f"NVIDIA_REQUIRE_CUDA={REQUIRE_120}"),
    "require-nonsense": image("NVIDIA_REQUIRE_CUDA=color=green", files=make.torch(CU128, "12.8")),
    "require-disabled": image(
        f"NVIDIA_REQUIRE_CUDA={REQUIRE_128}", "NVIDIA_DISABLE_REQUIRE=1",
        files=make.torch(CU128, "12.8"),
    ),
    "utility-only": (
        make.config(("NVIDIA_DRIVER_CAPABILITIES=utility",)), {**BASE, **make.torch(CU128, "12.8")}
    ),
    "alpine": (
        make.config(("CUDA_VERSION=12.8.0", "NVIDIA_REQUIRE_CUDA=cuda>=11.0")),
        {"lib/ld-musl-x86_64.so.1": make.binary(),
         "usr/bin/serve": make.binary(interpreter="/lib/ld-musl-x86_64.so.1")},
    ),
    "arm64": image(files=make.torch(CU130, "13.0", machine=183), arch="arm64"),
    "glibc-too-old": (
        make.config(), {**make.base("2.31"), **make.torch(CU128, "12.8"), "usr/bin/serve":
         make.binary("libc.so.6", interpreter=make.LOADERS[62], glibc="2.34")},
    ),
    "no-program": image(files=make.torch(CU128, "12.8"), Cmd=["train"]),
    "no-loader": (
        make.config(), {key: value for key, value in BASE.items() if "ld-linux" not in key}
    ),
    "no-library": (
        make.config(), {**BASE, "usr/bin/serve": make.binary(
            "libc.so.6", "libssl.so.3", interpreter=make.LOADERS[62], glibc="2.17")},
    ),
    "needs-video": image(files={"usr/bin/serve": make.binary(
        "libc.so.6", "libnvcuvid.so.1", interpreter=make.LOADERS[62], glibc="2.17"),
        **make.torch(CU128, "12.8")}),
    "cpu-only": (make.config(), BASE),
    "static": (make.config(), {"usr/bin/serve": make.binary()}),
    "llama.cpp": (make.config(ALL_GPUS), {**BASE, **GGML}),
    "ollama": (make.config(ALL_GPUS), {**BASE, **OLLAMA}),
    "program-with-code": (
        make.config(ALL_GPUS), {**BASE, "usr/bin/serve": make.binary(
            "libc.so.6", "libcuda.so.1", interpreter=make.LOADERS[62], glibc="2.17",
            sections=[cuda({"sm_80 sm_90": 4})])},
    ),
    "rocm-6.4": (make.config(), {**BASE, **make.rocm_torch("gfx90a gfx942", "6.4")}),
    "rocm-7.0-app": (make.config(User="app"), {**BASE, **make.rocm_torch("gfx942", "7.0")}),
    "rocm-7.0-nobody": (make.config(User="1234"), {**BASE, **make.rocm_torch("gfx942", "7.0")}),
    "rocm-7.2": (make.config(), {**BASE, **make.rocm_torch("gfx942 gfx1100", "7.2")}),
    "conda": image(files=CONDA),
    "sycl": (
        make.config(),
        {**BASE, **LEVEL_ZERO, "app/engine.so": build.sycl("12.55.8 12.56.5 12.57.0")},
    ),
    "sycl-spirv": (make.config(), {**BASE, **LEVEL_ZERO, "app/engine.so": build.sycl("")}),
    "sycl-alone": (make.config(), {**BASE, "app/engine.so": build.sycl("12.55.8 12.56.5 12.57.0")}),
    "own-libcuda": image(
        files={**make.torch(CU128, "12.8"), "usr/lib/libcuda.so.550.54.14": make.binary()},
    ),
}  # fmt: skip


def expect(**words: str) -> dict[str, str]:
    """Answers by node: ``rest`` for all that are not named; "_" for "-" and "." in names."""
    known = {name.replace("-", "_").replace(".", "_"): name for name in RECORDINGS}
    named = {known[key.removeprefix("n")]: word for key, word in words.items() if key != "rest"}
    return {name: named.get(name, words["rest"]) for name in RECORDINGS}


R, L, N, U = "runs", "less", "no", "unknown"
TORCH_128 = {"n4090_535_legacy": R, "n4090_535_cdi": R, "nv100_580": R, "nh100_570": R,
             "n4090_580": R, "na100_550": R, "na100_560": R, "na100_590": R, "nb200_580": R,
             "n5090_580": R}  # fmt: skip
EXPECTED: dict[str, dict[str, str]] = {
    # A driver of the same major version runs machine code: T4 on 470 is too old for CUDA 12.
    "torch-cu128": expect(rest=N, **TORCH_128),
    "torch-cu128-require": expect(rest=N, **{**TORCH_128, "n4090_535_legacy": N}),
    # On GeForce the hook of CDI takes compat, and cuInit fails with 804. A T4 is of the brand Tesla
    # or of one that the hook calls unknown, which the string treats differently.
    "torch-cu128-compat": expect(
        rest=N, nh100_570=R, n4090_580=R, na100_550=R, na100_560=R, na100_590=R, nv100_580=R,
        nb200_580=R, n5090_580=R, nt4_470=U,
    ),
    "torch-cu130": expect(rest=N, n4090_580=R, na100_590=R, nb200_580=R, n5090_580=R),
    # The node of unknown mode: the string holds under the hook, so 570 runs by compat either way.
    "torch-cu130-compat": expect(
        rest=N, nh100_570=R, n4090_580=R, na100_550=R, na100_590=R, nb200_580=R, n5090_580=R,
    ),
    "compat-forced": expect(rest=N, nh100_570=R, na100_550=R, na100_560=U),
    "ptx-12.8": expect(rest=N, nh100_570=L, n4090_580=L, na100_590=L, nb200_580=L, n5090_580=L),
    "ptx-12.0": expect(
        rest=N, nh100_570=L, n4090_535_legacy=L, n4090_535_cdi=L, n4090_580=L, na100_550=L,
        na100_560=L, na100_590=L, nv100_580=L, nb200_580=L, n5090_580=L,
    ),
    "sass-90-ptx": expect(rest=N, nh100_570=R, nb200_580=L, n5090_580=L),
    "sass-90": expect(rest=N, nh100_570=R),
    "one-wheel-short": expect(
        rest=N, **{**TORCH_128, "nb200_580": L, "n5090_580": L, "nv100_580": L},
    ),
    # Without NVIDIA_REQUIRE_CUDA the hook adds cuda>=12.8 itself.
    "cuda-version-alone": expect(
        rest=N, nh100_570=R, n4090_580=R, n4090_535_cdi=R, na100_550=R, na100_560=R, na100_590=R,
        nv100_580=R, nb200_580=R, n5090_580=R,
    ),
    "cuda-13-runtime": expect(rest=N, n4090_580=R, na100_590=R, nb200_580=R, n5090_580=R),
    # Its toolkit is older than Blackwell: what is compiled with it has PTX for that at best.
    "require-12.0": expect(
        rest=N, nh100_570=R, n4090_535_legacy=R, n4090_535_cdi=R, n4090_580=R, na100_550=R,
        na100_560=R, na100_590=R, nv100_580=R, nt4_470=N, nb200_580=U, n5090_580=U,
    ),
    # The hook refuses what it cannot read; CDI reads none of it.
    "require-nonsense": expect(
        rest=N, **{**TORCH_128, "n4090_535_legacy": N, "nh100_570": U, "n4090_580": U},
    ),
    "require-disabled": expect(rest=N, **TORCH_128),
    # Without compute the hook mounts no libcuda; CDI mounts it whatever the variable says.
    "utility-only": expect(
        rest=N, **{**TORCH_128, "n4090_535_legacy": N, "nh100_570": U, "n4090_580": U},
    ),
    "alpine": expect(rest=N),
    "arm64": expect(rest=N, ngb10_580=R),
    "glibc-too-old": expect(rest=N),
    "no-program": expect(rest=N),
    "no-loader": expect(rest=N),
    "no-library": expect(rest=N),
    "needs-video": expect(
        rest=N, **{**TORCH_128, "n4090_535_legacy": N, "nh100_570": U, "n4090_580": U},
    ),
    "cpu-only": expect(rest=R, ngb10_580=N),
    "static": expect(rest=R, ngb10_580=N),
    # Where there is no GPU, ggml uses the CPU; one without code it takes, and fails.
    "llama.cpp": expect(
        rest=L, nh100_570=R, na100_550=R, na100_560=R, na100_590=R, n4090_535_legacy=R,
        n4090_535_cdi=R, n4090_580=R, ngb10_580=N, nv100_580=N, nb200_580=N, n5090_580=N,
    ),
    # Of two toolkits the one that fits is taken: CUDA 13's code is the only one for new chips.
    "ollama": expect(
        rest=L, nh100_570=R, n4090_535_legacy=R, n4090_535_cdi=R, n4090_580=R, na100_550=R,
        na100_560=R, na100_590=R, nv100_580=R, nb200_580=R, n5090_580=R, ngb10_580=N,
    ),
    # Nothing says which CUDA it was built with: only a driver that runs all is proven.
    "program-with-code": expect(
        rest=N, nh100_570=U, na100_550=U, na100_560=U, na100_590=R, n4090_535_legacy=U,
        n4090_535_cdi=U, n4090_580=R,
    ),
    "rocm-6.4": expect(rest=N, nmi300x_6_4=R, nmi300x_intree=U),
    "rocm-7.0-app": expect(rest=N, nmi300x_6_4=R, nmi300x_intree=U),
    "rocm-7.0-nobody": expect(rest=N),
    "rocm-7.2": expect(rest=N, nmi300x_6_4=U, nmi300x_intree=U),
    "conda": expect(rest=N, **TORCH_128),
    # Intel's user space is the image's own; SPIR-V is compiled when it is loaded.
    "sycl": expect(rest=N, narc_a770=R),
    "sycl-spirv": expect(rest=N, narc_a770=L),
    "sycl-alone": expect(rest=N),
    "own-libcuda": expect(
        rest=U, nt4_470=N, nmi300x_6_4=N, nmi300x_intree=N, n780m_6_4=N, ncpu=N, ngb10_580=N,
        narc_a770=N,
    ),
}  # fmt: skip


@cache
def nodes() -> dict[str, Node]:
    folder, found = Path(mkdtemp()), {}
    for name, recording in RECORDINGS.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(recording))
        found[name] = read_node(str(path))
    return found


def look(path: Path, name: str | None = None) -> Contents:
    opening = Opening()
    try:
        return contents_of(open_images(str(path), opening, name)[0])
    finally:
        opening.close()


def split(files: dict[str, make.Content]) -> list[bytes]:
    """The base's files as one layer, the others as a second one."""
    lower = {path: content for path, content in files.items() if path in BASE}
    upper = {path: content for path, content in files.items() if path not in BASE}
    return [make.layer(lower), make.layer(upper)]


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_gets_its_answer_on_every_node(name: str, tmp_path: Path) -> None:
    config, files = IMAGES[name]
    path = make.saved(tmp_path / "image.tar", config, split(files))
    opening = Opening()
    contents = contents_of(open_images(str(path), opening)[0])
    answers = {node: answer_of(contents, place) for node, place in nodes().items()}
    opening.close()
    told = {
        node: (answer.word, answer.step and answer.step.reason) for node, answer in answers.items()
    }
    assert {node: answer.word for node, answer in answers.items()} == EXPECTED[name], told


@pytest.mark.parametrize("pack", [make.gz, lambda raw: make.gz(raw, 3)], ids=["gzip", "3 members"])
@pytest.mark.parametrize(
    "name", ["torch-cu130-compat", "one-wheel-short", "rocm-7.0-app", "llama.cpp"]
)
def test_packed_layers_give_the_same_answers(name: str, pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    config, files = IMAGES[name]
    path = make.saved(tmp_path / "image.tar", config, [pack(raw) for raw in split(files)])
    contents = look(path)
    answers = {node: answer_of(contents, place).word for node, place in nodes().items()}
    assert answers == EXPECTED[name]


def test_no_image_is_said_to_run_where_it_does_not() -> None:
    """The table has both answers for most images: a builder that proves nothing would show."""
    words = [word for answers in EXPECTED.values() for word in answers.values()]
    assert len(EXPECTED) >= 30
    assert len(RECORDINGS) >= 12
    assert set(EXPECTED) == set(IMAGES)
    assert {word: words.count(word) >= 10 for word in (R, L, N, U)} == dict.fromkeys(
        (R, L, N, U), True
    )


def test_docker_run_without_gpus_is_noted(tmp_path: Path) -> None:
    files = {**BASE, **make.torch(CU128, "12.8")}
    for environ, noted in (((), True), (ALL_GPUS, False), (("CUDA_VERSION=12.0",), False)):
        contents = look(
            make.saved(tmp_path / "a.tar", make.config(environ), [make.gz(make.layer(files))])
        )
        notes = answer_of(contents, nodes()["4090-535-cdi"]).notes
        assert bool(notes) == noted, (environ, notes)


def test_a_large_library_that_cannot_be_read_makes_the_answer_unknown(tmp_path: Path) -> None:
    """Not "it has no code for a GPU", which a program without any would be told."""
    broken = b"\x7fELF" + bytes(9 << 20)
    raw = make.gz(make.layer({**BASE, "app/libengine.so": broken}))
    contents = look(make.saved(tmp_path / "a.tar", make.config(), [raw]))
    assert contents.problems[0].startswith("/app/libengine.so (layer 1): ")
    assert answer_of(contents, nodes()["cpu"]).word == U
