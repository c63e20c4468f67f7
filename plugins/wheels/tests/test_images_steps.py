"""Steps of an image for devices and nodes, alone: groups, drivers, libraries and architectures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_wheels.devices import Gpu
from probe_wheels.images import amd_intel, chip_code, system
from probe_wheels.images.nodes import Node
from probe_wheels.images.steps import Step
from probe_wheels.images.users import groups_of

FILES = {
    "/etc/passwd": "root:x:0:0::/:/bin/sh\napp:x:1000:1001::/:/bin/sh\nshort:x:7\n",
    "/etc/group": "render:x:109:app,other\nvideo:x:44:other\napp:x:1001:\nodd:x:many:app\n",
}


def contents(**facts: Any) -> Any:
    """An image of which a test says what counts."""
    texts = {**FILES, "/etc/os-release": facts.pop("release", "")}
    config = SimpleNamespace(user=facts.pop("user", ""), os="linux", variant="")
    config.variant = facts.pop("variant", "")
    config.os = facts.pop("os", "linux")
    known = {
        "image": SimpleNamespace(kind=facts.pop("kind", "archive"), config=config),
        "files": SimpleNamespace(text=lambda path: texts.get(path, "")),
        "environ": {}, "toolkit": (), "kernels": (), "builders": (), "rocm": (), "names": (),
        "is_sycl": False, "is_environment": False, "arch": "x86_64", "program": None,
    }  # fmt: skip
    return SimpleNamespace(**{**known, **facts})


def nvidia(*capabilities: tuple[int, int], driver: tuple[int, ...] = (580, 65, 6)) -> Gpu:
    gpu = Gpu("pci:0", "nvidia", "GPU")
    gpu.capabilities, gpu.driver = capabilities, driver
    return gpu


def shown(steps: Any) -> list[str]:
    return [f"{step.name} {step.word}: {step.reason}" for step in steps]


@pytest.mark.parametrize(
    ("user", "group", "own", "listed"),
    [
        ("app", "", {1001}, {109}),
        ("1000", "", {1001}, {109}),
        ("app", "44", {44}, {109}),
        ("app", "video", {44}, {109}),
        ("app", "render", {109}, set()),
        ("app", "odd", set(), {109}),
        ("other", "", set(), {109, 44}),
        ("4321", "", set(), set()),
        ("4321", "12345678901", set(), set()),
        ("short", "", set(), set()),
    ],
)
def test_groups_of_a_user(user: str, group: str, own: set[int], listed: set[int]) -> None:
    assert groups_of(contents(), user, group) == (own, listed)


@pytest.mark.parametrize(
    ("user", "kind", "number", "expected"),
    [
        ("", "archive", 7, None),
        ("root", "archive", None, None),
        ("0:44", "archive", 7, None),
        ("app", "archive", 109, None),
        ("app", "archive", 1001, None),
        ("app:video", "archive", 44, None),
        ("app:video", "archive", 109, "unknown"),
        ("app", "archive", 44, "no"),
        ("app:video", "archive", 1001, "no"),
        ("app", "archive", None, "unknown"),
        ("", "sif", 109, "unknown"),
    ],
)
def test_a_device_node_admits_its_group(
    user: str, kind: str, number: int | None, expected: str | None
) -> None:
    node = Node("n", "x86_64", "linux", [])
    node.group = number
    steps = list(amd_intel.group_steps(contents(user=user, kind=kind), node, "/dev/kfd"))
    assert [step.word for step in steps] == ([expected] if expected else [])
    for step in steps:
        assert step.name == "groups"
        if kind == "sif":
            assert step.reason.endswith("whom /dev/kfd must admit (group 109)")
        elif number is not None:
            assert step.fix == f"start it with --group-add {number}, or as root"


def test_apptainer_names_the_devices_group_where_it_is_not_recorded() -> None:
    (step,) = amd_intel.group_steps(contents(kind="sif"), Node("n", "", "linux", []), "/dev/kfd")
    assert step.reason.endswith("whom /dev/kfd must admit (group of the device)")


@pytest.mark.parametrize(
    ("image", "driver", "expected"),
    [
        ((), "6.2", "the version of ROCm in the image is unknown"),
        (
            (6, 0),
            None,
            "which ROCm the node's kernel driver belongs to is unknown; the image has 6.0",
        ),
        (
            (6, 0),
            "5.0",
            "which ROCm the node's kernel driver belongs to is unknown; the image has 6.0",
        ),
        ((6, 0), "6.2", None),
        ((7, 0), "6.2", None),
        ((7, 0, 2), "6.2", None),
        (
            (5, 7, 1),
            "6.2",
            "AMD supports ROCm 6.0 to 7.0 on the node's driver (of 6.2), and the image has 5.7.1",
        ),
        (
            (7, 1),
            "6.2",
            "AMD supports ROCm 6.0 to 7.0 on the node's driver (of 6.2), and the image has 7.1",
        ),
    ],
)
def test_rocm_on_the_nodes_kernel_driver(
    image: tuple[int, ...], driver: str | None, expected: str | None
) -> None:
    node = Node("n", "x86_64", "linux", [])
    node.rocm = driver
    steps = amd_intel.pairing_steps(contents(rocm=image), node)
    assert shown(steps) == ([f"driver unknown: {expected}"] if expected else [])


LOADERS = ("libze_loader.so.1.2", "libze_intel_gpu.so.1", "libigc.so.2")


@pytest.mark.parametrize(
    ("names", "is_sycl", "families", "expected"),
    [
        (LOADERS, True, ("xe-hpg",), []),
        (
            LOADERS,
            True,
            ("xe2",),
            ["runtime unknown: whether the image's compute runtime knows xe2 is unknown"],
        ),
        (
            LOADERS[:2],
            True,
            ("xe2",),
            ["runtime no: Level Zero needs libigc.so, which is not in it"],
        ),
        (
            LOADERS[1:],
            True,
            (),
            ["runtime no: Level Zero needs libze_loader.so.1, which is not in it"],
        ),
        (("libOpenCL.so.1", "libigdrcl.so", "libigc.so.2"), False, (), []),
        (
            ("libOpenCL.so.1", "libigdrcl.so", "libigc.so.2"),
            True,
            (),
            ["runtime no: Level Zero needs libze_loader.so.1, which is not in it"],
        ),
        (
            ("libOpenCL.so.1", "libigc.so.2"),
            False,
            (),
            ["runtime no: Level Zero needs libze_loader.so.1, which is not in it"],
        ),
    ],
)
def test_intels_compute_runtime(
    names: tuple[str, ...], is_sycl: bool, families: tuple[str, ...], expected: list[str]
) -> None:
    gpu = Gpu("pci:0", "intel", "GPU")
    gpu.families = families
    assert shown(amd_intel.intel_steps(contents(names=names, is_sycl=is_sycl), gpu)) == expected


@pytest.mark.parametrize(
    ("toolkit", "gpu", "environ", "expected"),
    [
        ((), nvidia((9, 0)), {}, []),
        ((13, 0), nvidia((9, 0)), {}, []),
        ((13, 0), nvidia((7, 5)), {}, []),
        (
            (13, 0),
            nvidia((7, 2)),
            {},
            ["code no: CUDA 13.0 has no code for sm_72: it begins at sm_75"],
        ),
        ((12, 9), nvidia((7, 2)), {}, []),
        (
            (13, 0),
            nvidia((9, 0), driver=(575, 51)),
            {},
            ["driver no: CUDA 13.0 needs driver 580 or newer, and the node has 575.51"],
        ),
        (
            (13, 0),
            nvidia((9, 0), driver=(575, 51)),
            {"NVIDIA_DISABLE_REQUIRE": "true"},
            [
                (
                    "driver unknown: CUDA 13.0 needs driver 580 or newer, and the node has 575.51;"
                    " NVIDIA_DISABLE_REQUIRE says that it may do without"
                )
            ],
        ),
        ((13, 0), nvidia((9, 0), driver=(580,)), {}, []),
        ((13, 0), nvidia((9, 0), driver=()), {}, []),
        ((14, 0), nvidia((9, 0)), {}, ["driver unknown: the driver for CUDA 14.0 is unknown"]),
        ((12, 8), nvidia(), {}, ["code unknown: the compute capability of GPU is unknown"]),
        (
            (12, 6),
            nvidia((10, 0)),
            {},
            [
                (
                    "code unknown: CUDA 12.6 is older than sm_100, whose code begins with"
                    " CUDA 12.8:"
                    " PTX alone runs there"
                )
            ],
        ),
        ((12, 8), nvidia((10, 0)), {}, []),
        ((11, 8), nvidia((9, 0)), {}, []),
    ],
)
def test_the_cuda_of_an_image_without_code(
    toolkit: tuple[int, ...], gpu: Gpu, environ: dict[str, str], expected: list[str]
) -> None:
    image = contents(toolkit=toolkit, environ=environ)
    assert shown(chip_code._of_toolkit(image, gpu)) == expected


@pytest.mark.parametrize(
    ("kernels", "processor", "expected"),
    [
        (("gfx942", "gfx90a"), "gfx90a:xnack+", None),
        (("gfx942",), "gfx90a", "its rocBLAS has no kernels for gfx90a: what else runs there is"),
        ((), "gfx90a", None),
        ((), "gfx1013", "whether ROCm supports gfx1013 is"),
        ((), None, "whether ROCm supports GPU is"),
    ],
)
def test_rocm_for_a_processor(
    kernels: tuple[str, ...], processor: str | None, expected: str | None
) -> None:
    gpu = Gpu("pci:0", "amd", "GPU")
    gpu.processor = processor
    steps = shown(chip_code._of_toolkit(contents(kernels=kernels, toolkit=(12, 8)), gpu))
    assert steps == ([f"code unknown: {expected} unknown"] if expected else [])


BUILDERS = ((8, 0), (8, 6), (9, 0))
BUILDS = "its TensorRT builds engines for sm_80, sm_86, sm_90, and not for"


@pytest.mark.parametrize(
    ("gpu", "works", "jit", "expected"),
    [
        (nvidia((8, 6)), False, False, []),
        (nvidia((8, 9)), False, False, []),
        (nvidia((9, 0)), True, True, []),
        (nvidia((7, 5)), False, True, [f"code no: {BUILDS} sm_75"]),
        (nvidia((7, 5)), True, False, [f"code less: {BUILDS} sm_75"]),
        (
            nvidia((10, 0)),
            False,
            False,
            [f"code unknown: {BUILDS} sm_100, for which it may have PTX"],
        ),
        (nvidia((10, 0)), True, False, [f"code less: {BUILDS} sm_100, for which it may have PTX"]),
        (nvidia((10, 0)), False, True, [f"code less: {BUILDS} sm_100, for which it may have PTX"]),
        (Gpu("pci:0", "amd", "GPU"), False, False, []),
    ],
)
def test_chips_that_tensorrt_builds_for(
    gpu: Gpu, works: bool, jit: bool, expected: list[str]
) -> None:
    image = contents(builders=BUILDERS)
    assert shown(chip_code._of_builder(image, gpu, works=works, jit=jit)) == expected
    assert shown(chip_code._of_builder(contents(), gpu, works=works, jit=jit)) == []


@pytest.mark.parametrize(
    ("variant", "arch", "word"),
    [
        ("", "armv7l", None),
        ("v7", "armv8l", None),
        ("v6", "armv6l", None),
        ("v8", "armv7l", "no"),
        ("", "armv6l", "no"),
        ("v6", "armv7l", None),
        ("", "aarch64", "unknown"),
        ("v7", "x86_64", "no"),
    ],
)
def test_versions_of_32_bit_arm(variant: str, arch: str, word: str | None) -> None:
    step = system._of_arm(variant, Node("n", arch, "linux", []))
    assert (step and step.word) == word
    if step and word == "no":
        level = variant[1:] or "7"
        assert step.reason == f"it is built for ARMv{level}, and the node is {arch}"


V3 = ("sse4_2", "avx2", "fma", "f16c")


@pytest.mark.parametrize(
    ("variant", "arch", "flags", "expected"),
    [
        ("", "x86_64", (), None),
        ("v3", "aarch64", (), None),
        ("v3", "x86_64", V3, None),
        (
            "v3",
            "x86_64",
            V3[:3],
            "no it is built for x86-64-v3, and the node's processor has no f16c",
        ),
        ("v3", "x86_64", (), "unknown whether the node's processor is one of x86-64-v3 is unknown"),
        ("v9", "x86_64", V3, "unknown whether the node's processor is one of x86-64-v9 is unknown"),
        (
            "v4",
            "x86_64",
            (*V3, "avx512f"),
            "unknown whether the node's processor is of x86-64-v4 is unknown",
        ),
        ("v4", "x86_64", (*V3, "avx512f", "avx512_vnni"), None),
    ],
)
def test_levels_of_x86(
    variant: str, arch: str, flags: tuple[str, ...], expected: str | None
) -> None:
    node = Node("n", arch, "linux", [])
    node.flags = flags
    step = system._level(variant, node)
    assert (step and f"{step.word} {step.reason}") == expected


@pytest.mark.parametrize(
    ("facts", "arch", "os", "expected"),
    [
        (
            {},
            "x86_64",
            "darwin",
            "unknown darwin runs containers in a virtual machine with Linux, which is not recorded",
        ),
        (
            {"os": "windows"},
            "x86_64",
            "linux",
            "no it is an image for windows, and the node has linux",
        ),
        (
            {"os": "windows", "arch": None},
            "x86_64",
            "windows",
            "unknown the image does not say its architecture",
        ),
        ({}, "unknown", "linux", "unknown the architecture of the node is unknown"),
        ({}, "aarch64", "linux", "no it is built for x86_64, and the node is aarch64"),
        ({"arch": "i686"}, "aarch64", "linux", "no it is built for i686, and the node is aarch64"),
        ({"arch": "armv7l"}, "armv6l", "linux", "no it is built for ARMv7, and the node is armv6l"),
    ],
)
def test_the_platform_of_an_image(facts: dict[str, Any], arch: str, os: str, expected: str) -> None:
    step: Step = system._platform(contents(**facts), Node("n", arch, os, []))
    assert f"{step.word} {step.reason}" == expected
    assert step.name == "platform"


V2 = ("sse4_2",)
OF_RHEL_10 = "no rhel 10 is built for x86-64-v3, and the node's processor has no avx2"


@pytest.mark.parametrize(
    ("release", "arch", "flags", "expected"),
    [
        ('ID="rhel"\nVERSION_ID="10.1"\n', "x86_64", V2, OF_RHEL_10),
        ('ID="rhel"\nVERSION_ID="10.1"\n', "x86_64", V3, None),
        ('ID="rhel"\nVERSION_ID="10.1"\n', "x86_64", (), None),
        ('ID="rhel"\nVERSION_ID="10.1"\n', "aarch64", V2, None),
        ("ID=rocky\nVERSION_ID=9.5\n", "x86_64", V2, None),
        (
            "ID=rocky\nVERSION_ID=9.5\n",
            "x86_64",
            ("fpu",),
            "no rocky 9 is built for x86-64-v2, and the node's processor has no sse4_2",
        ),
        ("ID=rocky\nVERSION_ID=8.9\n", "x86_64", ("fpu",), None),
        ("ID=debian\nVERSION_ID=10\n", "x86_64", ("fpu",), None),
        ("", "x86_64", ("fpu",), None),
    ],
)
def test_the_level_of_an_images_base(
    release: str, arch: str, flags: tuple[str, ...], expected: str | None
) -> None:
    node = Node("n", arch, "linux", [])
    node.flags = flags
    step = system._level_of_base(contents(release=release), node)
    assert (step and f"{step.word} {step.reason}") == expected


@pytest.mark.parametrize(
    ("needed", "version", "expected"),
    [
        ((3, 4, 30), (3, 4, 29),
         "no a.so needs GLIBCXX 3.4.30, and the image's libstdc++ has 3.4.29"),
        ((3, 4, 30), (3, 4, 30), None),
        ((), (3, 4, 29), None),
        ((3, 4, 30), (), None),
    ],
)  # fmt: skip
def test_the_c_plus_plus_library_of_an_image(
    needed: tuple[int, ...], version: tuple[int, ...], expected: str | None
) -> None:
    image = contents(cxx=lambda: version, place=lambda path: path)
    step = system._cxx_step(image, needed, "a.so")
    assert (step and f"{step.word} {step.reason}") == expected


def verdict(wheel: str, word: str) -> Any:
    return {"wheel": wheel, "verdict": word}


@pytest.mark.parametrize(
    ("verdicts", "kept"),
    [
        ("onnxruntime cpu-build,own native", "own"),
        ("onnxruntime cpu-build", "onnxruntime"),
        ("torch cpu-build,own native", "torch own"),
        ("torch cpu-build,tensorflow native", "tensorflow"),
        ("torch cpu-build,tensorflow cpu-build", "torch"),
        ("flash-attn cpu-build,tensorflow native", "flash-attn tensorflow"),
        ("", ""),
    ],
)
def test_builds_for_the_cpu_beside_others(verdicts: str, kept: str) -> None:
    pairs = [pair.split() for pair in verdicts.split(",") if pair]
    listed = [verdict(f"{name} 1", word) for name, word in pairs]
    wheels: Any = {f"{name} 1": {"name": name, "requires": []} for name, _ in pairs}
    found = chip_code._without_builds_for_cpu(listed, wheels)
    assert " ".join(entry["wheel"].split(" ")[0] for entry in found) == kept


def judged(wheel: str, word: str = "native", library: str | None = "l.so", has: str = "") -> Any:
    return {"wheel": wheel, "verdict": word, "library": library, "has": has}


OLD, NEW = nvidia((9, 0), driver=(575, 51)), nvidia((9, 0))
PLAIN: Any = {"name": "own", "build": None, "text": {}, "requires": [], "files": {"l.so": {}}}
UNKNOWN_CUDA = (
    "driver unknown: own 1: which CUDA it was built with is unknown, and so is whether driver"
    " 575.51 runs it; 580 runs every one"
)


@pytest.mark.parametrize(
    ("entry", "gpu", "environ", "document", "is_unknown"),
    [
        (judged("own 1"), OLD, {}, PLAIN, True),
        (judged("own 1"), NEW, {}, PLAIN, False),
        (judged("own 1"), nvidia((9, 0), driver=(580,)), {}, PLAIN, False),
        (judged("own 1"), nvidia((9, 0), driver=()), {}, PLAIN, False),
        (judged("own 1", "jit-only"), OLD, {}, PLAIN, False),
        (judged("own 1"), OLD, {"CUDA_VERSION": "12.8"}, PLAIN, False),
        (judged("own 1"), OLD, {}, {**PLAIN, "requires": ["torch"]}, False),
        (judged("own 1"), OLD, {}, {**PLAIN, "build": "cu128"}, False),
        (judged("own 1", library="l_cuda128.so"), OLD, {}, PLAIN, False),
        (judged("own 1", library=None), OLD, {}, PLAIN, True),
        (judged("own 1"), OLD, {}, {**PLAIN, "files": {"l.so": {"needed": ["libcudart.so.12"]}}},
         False),
        (judged("own 1"), OLD, {}, {**PLAIN, "files": {"l.so": {"needed": ["libcudart"]}}}, True),
        (judged("own 1"), OLD, {}, {**PLAIN, "files": {"l.so": {"cuda": [[["ptx_80@8.0"], 1]]}}},
         False),
        (judged("own 1"), OLD, {}, {**PLAIN, "files": {"l.so": {"cuda": [[["sm_80"], 1]]}}}, True),
        (judged("own 1"), Gpu("pci:0", "amd", "GPU"), {}, PLAIN, False),
    ],
)  # fmt: skip
def test_code_of_an_unknown_cuda(
    entry: Any, gpu: Gpu, environ: dict[str, str], document: Any, is_unknown: bool
) -> None:
    step = chip_code._unknown_toolkit(entry, gpu, contents(environ=environ), document)
    assert (shown([step]) if step else []) == ([UNKNOWN_CUDA] if is_unknown else [])


@pytest.mark.parametrize(
    ("linked", "verdicts", "leading"),
    [
        (["own 1"], "own:native torch:native", "own"),
        ([], "own:native torch:native", "torch"),
        ([], "own:native torch:cpu-build", ""),
        ([], "tensorflow:lacks-device torch:native", "tensorflow torch"),
        ([], "", ""),
    ],
)
def test_what_an_image_is_made_for(linked: list[str], verdicts: str, leading: str) -> None:
    entries = [judged(f"{name} 1", word) for name, word in
               (pair.split(":") for pair in verdicts.split())]  # fmt: skip
    found = chip_code._leading(contents(linked_code=linked), entries)
    assert " ".join(entry["wheel"].split(" ")[0] for entry in found) == leading


FIRST, SECOND = judged("torch 1"), judged("own 1")
TRITON = judged("triton 1", "compiles")


@pytest.mark.parametrize(
    ("verdicts", "leading", "running", "works"),
    [
        ([FIRST, SECOND], [FIRST], [FIRST], True),
        ([FIRST, SECOND], [FIRST], [SECOND], False),
        ([FIRST, SECOND], [], [SECOND], True),
        ([FIRST, TRITON], [], [TRITON], False),
        ([TRITON], [], [TRITON], True),
        ([FIRST], [], [], False),
        ([], [], [], False),
    ],
)
def test_whether_what_an_image_is_made_for_runs(
    verdicts: list[Any], leading: list[Any], running: list[Any], works: bool
) -> None:
    assert chip_code._works(verdicts, leading, running) is works


@pytest.mark.parametrize(
    ("word", "has", "expected"),
    [("compiles", "a compiler", True), ("compiles", "Vulkan", False), ("native", "", False)],
)
def test_what_makes_its_code_with_rocm(word: str, has: str, expected: bool) -> None:
    assert chip_code._is_compiler(judged("triton 1", word, has=has)) is expected


@pytest.mark.parametrize(
    ("word", "driver", "toolkit", "skips", "ends"),
    [
        ("lacks-device", (580,), (12, 8), False, True),
        ("lacks-device", (525, 60, 13), (12, 8), False, True),
        # A driver that is too old gives no device, and then it takes the CPU.
        ("lacks-device", (525, 60, 12), (12, 8), False, False),
        # So does what looks whether it has code before it takes one.
        ("lacks-device", (580,), (12, 8), True, False),
        ("lacks-device", (), (12, 8), False, True),
        ("lacks-device", (525,), (), False, True),
        ("needs-newer-driver", (525,), (12, 8), False, False),
        ("needs-newer-driver", (580,), (12, 8), False, False),
    ],
)
def test_whether_lacking_code_ends_a_program(
    word: str,
    driver: tuple[int, ...],
    toolkit: tuple[int, ...],
    skips: bool,
    ends: bool,
) -> None:
    gpu = nvidia((9, 0), driver=driver)
    verdict = judged("own 1", word)
    verdict |= {"has": "sm_80", "why": "no sm_90", "needs": "sm_90"}
    own: Any = {**PLAIN, "site": "/site"}
    tagged = {**own, "build": "cu128"}  # which counts before the image's
    for known, wheel in ((toolkit, own), ((1, 0), tagged if toolkit else own)):
        image = contents(toolkit=known, skips=skips, place=lambda path: f"{path} (layer 2)")
        wheels: Any = {"own 1": wheel}
        step = chip_code._lacking(image, gpu, verdict, "no", wheels)
        has = (step.name, step.word, step.reason, step.place, step.ends)
        assert has == ("code", "no", "own 1 has sm_80: no sm_90", "/site/l.so (layer 2)", ends)
        newer = "the node needs sm_90"
        assert step.fix == ("take a build with sm_90" if word == "lacks-device" else newer)


def installed(*names: str) -> list[Any]:
    return [{"name": name, "version": "1", "text": {}, "requires": []} for name in names]


@pytest.mark.parametrize(
    ("gpu", "wheel", "names", "is_unknown"),
    [
        (NEW, "tensorflow 1", ["tensorflow"], True),
        (NEW, "tensorflow 1", ["tensorflow", "nvidia-cudnn-cu12"], False),
        (NEW, "tensorflow 1", ["tensorflow", "nvidia-ml-py"], True),
        (NEW, "torch 1", ["torch"], False),
        (Gpu("pci:0", "amd", "GPU"), "tensorflow 1", ["tensorflow"], False),
    ],
)
def test_libraries_that_a_framework_opens_in_an_environment(
    gpu: Gpu, wheel: str, names: list[str], is_unknown: bool
) -> None:
    image = contents(documents=installed(*names))
    step = chip_code._opened_of_node(image, gpu, judged(wheel))
    assert (step and (step.name, step.word)) == (("loader", "unknown") if is_unknown else None)


CUDA_LIBRARIES = ("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9")


@pytest.mark.parametrize(
    ("gpu", "wheel", "names", "missing"),
    [
        (NEW, "tensorflow 1", CUDA_LIBRARIES, None),
        (NEW, "tensorflow 1", CUDA_LIBRARIES[:2], ("p", "libcudnn.so")),
        (NEW, "tensorflow 1", (), ("p", "libcudart.so")),
        (NEW, "own 1", (), None),
        (Gpu("pci:0", "amd", "GPU"), "tensorflow 1", (), None),
    ],
)
def test_libraries_that_a_framework_opens_in_an_image(
    gpu: Gpu, wheel: str, names: tuple[str, ...], missing: Any
) -> None:
    assert chip_code._unopened(contents(names=names), gpu, judged(wheel), "p") == missing


@pytest.mark.parametrize(
    ("names", "arch", "flags", "words"),
    [
        (["tensorflow"], "x86_64", ("fpu",), ["no"]),
        (["tensorflow", "torch"], "x86_64", ("fpu",), ["less"]),
        (["tensorflow", "jaxlib"], "x86_64", ("fpu",), ["no", "no"]),
        (["tensorflow"], "x86_64", ("avx",), []),
        (["tensorflow"], "x86_64", (), []),
        (["tensorflow"], "aarch64", ("fpu",), []),
        (["torch", "numpy"], "x86_64", ("fpu",), []),
    ],
)
def test_instructions_that_frameworks_need(
    names: list[str], arch: str, flags: tuple[str, ...], words: list[str]
) -> None:
    node = Node("n", arch, "linux", [])
    node.flags = flags
    steps = list(system._instructions(contents(documents=installed(*names)), node))
    assert [step.word for step in steps] == words
    if words:
        assert steps[0].reason == "tensorflow 1 needs a processor with avx, and the node's has none"


def needing(*names: str) -> Any:
    return SimpleNamespace(needed=names, interpreter="/lib64/ld-linux-x86-64.so.2")


OF_MUSL: Any = SimpleNamespace(binary=SimpleNamespace(interpreter="/lib/ld-musl-x86_64.so.1"))


@pytest.mark.parametrize(
    ("own", "of_library", "program", "missing"),
    [
        (["liba.so.1"], [], None, None),
        (["/opt/x/liba.so.1"], [], None, None),
        (["liba.so.1", "libb.so.2"], [], None, ("p", "libb.so.2")),
        (["libcuda.so.1"], ["libnvidia-ml.so.1"], None, None),
        ([], ["libc.so.6"], None, ("q", "libc.so.6")),
        ([], ["plugin"], None, None),
        (["plugin"], [], None, ("p", "plugin")),
        (["libc.musl-x86_64.so.1"], [], OF_MUSL, None),
        (["libc.musl-x86_64.so.1"], [], None, ("p", "libc.musl-x86_64.so.1")),
    ],
)
def test_what_neither_image_nor_host_has(
    own: list[str], of_library: list[str], program: Any, missing: Any
) -> None:
    chain = [("p", needing(*own)), ("q", needing(*of_library))]
    image = contents(names=("liba.so.1",), program=program, linked=lambda binary, path: chain)
    assert system.missing_library(image, needing(*own), "p") == missing
