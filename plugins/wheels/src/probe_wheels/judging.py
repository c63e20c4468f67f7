"""Which installed distribution runs on which device of the node: one verdict for each pair.

Some libraries are chosen by the toolkit of the installed PyTorch, as bitsandbytes does it.
"""

from __future__ import annotations

from probe_core.wording import clean_text
from probe_wheels.choice import best_build, why_no_build
from probe_wheels.distributions import normal
from probe_wheels.frameworks import (
    carriers,
    framework_of,
    has_code,
    main_libraries,
    matches,
    name_of_builds,
    on_torch,
    own_libraries,
    tag_version,
    toolkit_of,
    vendors_of,
)
from probe_wheels.records import VENDOR_NAMES
from probe_wheels.rules import ARCHES, version_of
from probe_wheels.verdicts import Judgement, judge_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import DistributionDoc, FrameworkDoc, LibraryDoc, VerdictDoc


_OF_GPUS = {"cuda", "amdgpu"}


class Scene:
    """What all verdicts of one look share: the distributions, the variables, extra frameworks."""

    def __init__(
        self,
        documents: Sequence[DistributionDoc],
        environ: Mapping[str, str] | None = None,
        extra: Mapping[str, FrameworkDoc] | None = None,
    ) -> None:
        self.documents = documents
        self.environ = environ or {}
        self.extra = extra or {}


def title(document: DistributionDoc) -> str:
    """Return the distribution as people name it: ``torch 2.9.1+cu128``."""
    version = document["version"]
    stated = document["text"].get("version", "")
    # PyPI's torch drops the local part from its metadata; its version.py keeps it.
    if "+" not in version and stated.startswith(version + "+"):
        version = stated
    return clean_text(f"{document['name']} {version}".strip())


def judge(gpus: Iterable[Gpu], scene: Scene) -> list[VerdictDoc]:
    """Return the verdicts; distributions that have nothing to do with GPUs have none."""
    listed = list(gpus)
    verdicts: list[VerdictDoc] = []
    for document in scene.documents:
        # Most nodes have several of one kind: each kind is judged once.
        judgements: dict[object, Judgement | None] = {}
        for gpu in listed:
            if gpu.kind not in judgements:
                judgements[gpu.kind] = _judgement(document, gpu, scene)
            judgement = judgements[gpu.kind]
            if judgement is not None:
                verdicts.append(
                    {
                        "wheel": title(document),
                        "device": gpu.id,
                        "verdict": judgement.verdict,
                        "library": judgement.library,
                        "has": judgement.has,
                        "needs": judgement.needs,
                        "why": judgement.reason,
                    }
                )
    return verdicts


def _judgement(document: DistributionDoc, gpu: Gpu, scene: Scene) -> Judgement | None:
    entry = framework_of(document["name"], scene.extra)
    key, framework = entry or ("", None)
    judgement = _any_judgement(document, gpu, scene, key, framework)
    # libcufft 12.0 has one container, for sm_75, and runs on all: its kernels are no section of
    # code. What a component lacks, the framework that needs it tells.
    if judgement and key == "components" and judgement.verdict not in ("native", "jit-only"):
        return None
    return judgement


def _any_judgement(
    document: DistributionDoc, gpu: Gpu, scene: Scene, key: str, framework: FrameworkDoc | None
) -> Judgement | None:
    vendors = vendors_of(document)
    if framework and gpu.vendor in framework.get("compiles", ()):
        reason = "it makes its code at run time, for the device at hand"
        return Judgement("compiles", "a compiler", gpu.target, reason)
    if gpu.vendor in vendors:
        return _by_code(document, gpu, scene, key, framework)
    if any(library.get("vulkan") for library in own_libraries(document).values()):
        reason = "the device's driver compiles its shaders for Vulkan"
        return Judgement("compiles", "Vulkan", gpu.target, reason)
    if framework and carriers(document, framework, scene.documents):
        return None  # those have the verdict
    if vendors:
        return _other_vendor(vendors, gpu)
    if framework and framework.get("compiles"):
        return _other_vendor(framework["compiles"], gpu)
    return _without_code(document, gpu, framework)


def _by_code(
    document: DistributionDoc, gpu: Gpu, scene: Scene, key: str, framework: FrameworkDoc | None
) -> Judgement | None:
    """Return the verdict of the libraries that decide."""
    paths = main_libraries(document, framework, gpu.vendor)
    # PyTorch's own limits are those of what runs on it.
    torch = key == "torch" or on_torch(document)
    if framework and framework.get("follows"):
        choice = loaded_libraries(paths, gpu, scene)
        if isinstance(choice, Judgement):
            return choice
        paths, worst = choice, True
    else:
        paths, worst = _best_of(document, paths), False
    judgements = [_of_library(document, path, gpu, scene, torch) for path in paths]
    if not judgements:
        return None
    order = max if worst else min
    judgement = order(judgements, key=lambda judgement: judgement.rank)
    if framework and judgement.verdict == "native":
        judgement.reason += _parts_note(document, framework, gpu)
    return judgement


def _parts_note(document: DistributionDoc, framework: FrameworkDoc, gpu: Gpu) -> str:
    """Return what a device must do without: torch 2.14.1 has linalg from sm_80 on."""
    names = [
        path.rpartition("/")[2]
        for path, library in document["files"].items()
        if matches(path.rpartition("/")[2], framework.get("parts", ()))
        and has_code(library, gpu.vendor)
        and judge_library(library, gpu, toolkit_of(document)).verdict == "lacks-device"
    ]
    return f"; {' and '.join(names)} has none" if names else ""


def _best_of(document: DistributionDoc, paths: list[str]) -> list[str]:
    """Return the first library, and those of the same name beside it: the one that fits is taken.

    sgl_kernel has a ``common_ops`` for Hopper in sm90/ and one for the others in sm100/.
    """
    name = name_of_builds(paths[0]) if paths else ""
    return [path for path in paths if name_of_builds(path) == name]


def _of_library(
    document: DistributionDoc, path: str, gpu: Gpu, scene: Scene, torch: bool
) -> Judgement:
    library = own_libraries(document)[path]
    machines = {ARCHES.get(name, name) for name in library.get("machines", ())} - _OF_GPUS
    if machines and gpu.arch not in machines:
        built = " and ".join(sorted(machines))
        reason = f"it is built for {built}, and this computer is {gpu.arch}"
        judgement = Judgement("unknown", f"code for {built}", gpu.arch, reason)
    elif library.get("packs"):
        judgement = judge_library(_with_packs(library, scene), gpu, (), torch=torch)
    else:
        toolkit = _file_toolkit(path) or toolkit_of(document)
        judgement = judge_library(library, gpu, toolkit, torch=torch)
        judgement = _with_rocblas(judgement, document, gpu)
    judgement.library = clean_text(path)
    return judgement


def _file_toolkit(path: str) -> tuple[int, ...]:
    """Return the toolkit in the name of one of bitsandbytes' libraries."""
    kind, version = file_toolkit(path)
    return version if kind == "cuda" else ()


def _with_packs(library: LibraryDoc, scene: Scene) -> LibraryDoc:
    """Return a library with the code of all kernel packs of the environment.

    TheRock's torch has its code in packs of other distributions (amd-torch-device-gfx1100).
    """
    packs = [
        group
        for document in scene.documents
        for doc in document["files"].values()
        if doc.get("format") == "kpack"
        for group in doc.get("hip", ())
    ]
    return {**library, "hip": packs}


def _with_rocblas(judgement: Judgement, document: DistributionDoc, gpu: Gpu) -> Judgement:
    """Return the verdict, corrected for a wheel whose rocBLAS has nothing for the device."""
    processor, listed = (gpu.processor or "").partition(":")[0], document["gfx"]
    if judgement.verdict != "native" or not listed or not processor or processor in listed:
        return judgement
    reason = f"its rocBLAS has no kernels for {processor}, so every matrix product fails"
    has = f"{judgement.has}; rocBLAS for {', '.join(listed)}"
    return Judgement("lacks-device", has, f"rocBLAS kernels for {processor}", reason)


def _other_vendor(vendors: Iterable[str], gpu: Gpu) -> Judgement:
    names = " and ".join(VENDOR_NAMES.get(vendor, vendor) for vendor in vendors)
    own = VENDOR_NAMES.get(gpu.vendor, gpu.vendor)
    reason = f"it has code for GPUs of {names} alone"
    return Judgement("other-vendor", f"code for {names}", f"a build for {own}", reason)


def _without_code(
    document: DistributionDoc, gpu: Gpu, framework: FrameworkDoc | None
) -> Judgement | None:
    """Return the verdict of a framework's distribution that has no code for any GPU."""
    if framework is None or gpu.vendor not in framework["builds"]:
        return None
    stated = _stated_build(document)
    if stated == "gpu":
        reason = "it says that it is built for a GPU, and no library of it has code for one"
        return Judgement("unknown", "no readable code", f"a build for {gpu.target}", reason)
    if stated == "cpu" or framework.get("plain") == "cpu" or _is_cpu(document, framework):
        own = VENDOR_NAMES.get(gpu.vendor, gpu.vendor)
        reason = "it is built for the CPU alone"
        return Judgement("cpu-build", "code for the CPU", f"a build for {own}", reason)
    return None


def is_cpu_build(document: DistributionDoc) -> bool:
    """Return whether a distribution without code for GPUs says that it is built for the CPU."""
    return not vendors_of(document) and _stated_build(document) == "cpu"


def _is_cpu(document: DistributionDoc, framework: FrameworkDoc) -> bool:
    return normal(document["name"]) in framework.get("cpu", ())


def _stated_build(document: DistributionDoc) -> str | None:
    """Return "cpu" or "gpu" where a distribution's own version or text says it."""
    tag = document["build"] or ""
    if tag.startswith("cpu"):
        return "cpu"
    text = document["text"]
    if any(library.get("problem") for library in document["files"].values()):
        return "gpu"  # what cannot be read is not nothing
    if any(text.get(key) for key in ("cuda", "hip", "rocm", "xpu")):
        return "gpu"
    if "True" in (text.get("is_cuda_build"), text.get("is_rocm_build")):
        return "gpu"
    if "cuda" in text or text.get("is_cuda_build") == "False":
        return "cpu"
    return "gpu" if tag.startswith(("cu", "rocm", "xpu")) else None


# Libraries that are chosen by the toolkit of the installed PyTorch.

_KINDS = {"nvidia": "cuda", "amd": "rocm", "intel": "xpu"}


def file_toolkit(path: str) -> tuple[str, tuple[int, ...]]:
    """Return kind and version in a name: ("cuda", (12, 8)) of ``libbitsandbytes_cuda128.so``.

    ROCm's major version has one digit: ``rocm714`` is 7.14 (bitsandbytes 0.50.2, cextension.py).
    """
    stem = path.rpartition("/")[2].partition(".")[0].rpartition("_")[2]
    for kind in _KINDS.values():
        digits = stem.removeprefix(kind)
        if stem.startswith(kind) and digits.isdigit() and len(digits) < 6:
            if kind == "rocm":
                return kind, (int(digits[0]), int(digits[1:] or 0))
            return kind, tag_version(digits) if kind == "cuda" else (int(digits),)
    return "", ()


def loaded_libraries(paths: Sequence[str], gpu: Gpu, scene: Scene) -> list[str] | Judgement:
    """Return the library that will be loaded; all of the vendor's where nothing decides.

    A PyTorch of another vendor, or for the CPU, makes it load a library for that: then the
    verdict comes back instead.
    """
    kind = _KINDS.get(gpu.vendor, "")
    versions = {path: file_toolkit(path)[1] for path in paths if file_toolkit(path)[0] == kind}
    torch = next((doc for doc in scene.documents if normal(doc["name"]) == "torch"), None)
    if not versions:
        return list(paths)
    if torch is None:
        return _for_next_torch(versions, gpu)
    toolkit = _torch_toolkit(torch, kind)
    if not toolkit:
        return _of_torch(torch, gpu)
    override = scene.environ.get(f"BNB_{kind.upper()}_VERSION", "")
    if override.isdigit() and kind == "cuda":
        toolkit = tag_version(override)
    return [_closest(versions, toolkit)] if kind != "xpu" else list(versions)


def _for_next_torch(versions: dict[str, tuple[int, ...]], gpu: Gpu) -> list[str]:
    """Return the library for the PyTorch that would be installed; all where none fits."""
    if gpu.vendor != "nvidia" or why_no_build(gpu) is not None:
        return list(versions)
    return [_closest(versions, version_of(best_build(gpu, [gpu]).toolkit))]


def _torch_toolkit(torch: DistributionDoc, kind: str) -> tuple[int, ...]:
    text, tag = torch["text"], torch["build"] or ""
    keys = {"cuda": ("cuda",), "rocm": ("hip", "rocm"), "xpu": ("xpu",)}[kind]
    stated = next((text[key] for key in keys if text.get(key)), "")
    if stated:
        return version_of(stated)
    digits = tag.removeprefix("cu") if kind == "cuda" else tag.removeprefix(kind)
    if digits == tag:
        return ()
    return tag_version(digits) if kind == "cuda" and digits.isdigit() else version_of(digits or "1")


def _of_torch(torch: DistributionDoc, gpu: Gpu) -> Judgement:
    text, tag = torch["text"], torch["build"] or ""
    others = any(text.get(key) for key in ("cuda", "hip", "rocm", "xpu"))
    if others or tag.startswith(("cu", "rocm", "xpu")):
        reason = "it loads the library of the installed PyTorch's vendor, which is another one"
        return Judgement("other-vendor", "code for PyTorch's vendor", "another PyTorch", reason)
    reason = "it loads its CPU library, because the installed PyTorch is a CPU build"
    return Judgement("cpu-build", "its CPU library", f"a PyTorch build for {gpu.target}", reason)


def _closest(versions: dict[str, tuple[int, ...]], toolkit: tuple[int, ...]) -> str:
    """Return the library of the same version, else the next lower, else the next higher one."""
    same = {path: version for path, version in versions.items() if version[:1] == toolkit[:1]}
    lower = [path for path, version in same.items() if version <= toolkit[:2]]
    if lower:
        return max(lower, key=lambda path: same[path])
    candidates = same or versions
    return min(candidates, key=lambda path: candidates[path])
