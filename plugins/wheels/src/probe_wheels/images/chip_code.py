"""Whether an image's code is for a device, wheel by wheel."""

from __future__ import annotations

from probe_wheels.distributions import normal
from probe_wheels.frameworks import framework_of, key_of, on_torch, toolkit_of, vendors_of
from probe_wheels.images.nvidia import WAIVED, is_waived
from probe_wheels.images.steps import LESS, NO, UNKNOWN, Step
from probe_wheels.images.system import glibc_of_node, missing_library, version_step
from probe_wheels.judging import Scene, file_toolkit, judge, title
from probe_wheels.rules import IMAGES, TORCH, dotted, driver_of_toolkit, text_of, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal, TypeAlias

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import DistributionDoc, FrameworkDoc, VerdictDoc
    from probe_wheels.images.contents import Contents

    Wheels: TypeAlias = Mapping[str, DistributionDoc]

_RUNNING = ("native", "compiles", "jit-only")
_LACKING = ("lacks-device", "needs-newer-driver")


def code_steps(contents: Contents, gpu: Gpu, glibc: tuple[int, ...] = ()) -> Iterator[Step]:
    """Yield what speaks against the image's code for a device, wheel by wheel.

    `glibc` is the node's, which counts for Python environments alone.
    """
    wheels = {title(document): document for document in contents.documents}
    verdicts = _with_torch(judge([gpu], Scene(contents.documents, contents.environ)), wheels)
    own = [verdict for verdict in verdicts if _key(verdict) != "components"]
    verdicts = _without_builds_for_cpu(own or verdicts, wheels)
    unloadable = {
        verdict["wheel"]: step
        for verdict in verdicts
        if verdict["verdict"] in (*_RUNNING, *_LACKING)
        and (
            step := _own_needs(contents, gpu, verdict, wheels, glibc)
            or _unknown_toolkit(verdict, gpu, contents, wheels[verdict["wheel"]])
        )
    }
    running = [v for v in verdicts if v["verdict"] in _RUNNING and v["wheel"] not in unloadable]
    failing = [v for v in verdicts if v not in running]
    leading = _leading(contents, verdicts)
    works = _works(verdicts, leading, running)
    # Where nobody knows whether the one works, the other is no firm "no" either.
    maybe = any(
        v["verdict"] == "unknown" or (v["wheel"] in unloadable and not _is_no(unloadable, v))
        for v in leading or failing
    )
    is_firm = any(v["verdict"] in _LACKING or _is_no(unloadable, v) for v in failing)
    for verdict in sorted(failing, key=lambda v: v["verdict"] not in _LACKING):
        spares = works and not _flag(verdict, "needed")
        word = LESS if spares or (maybe and verdict not in leading) else NO
        if verdict["wheel"] in unloadable:
            step = unloadable[verdict["wheel"]]
            step.word = LESS if spares else step.word
            yield step
        elif verdict["verdict"] in _LACKING:
            yield _lacking(contents, gpu, verdict, word, wheels)
        elif verdict["verdict"] == "unknown":
            yield _told_of(contents, verdict, LESS if spares else UNKNOWN, wheels)
        elif works or not is_firm:
            # Its variable alone asks for a GPU: a build for the CPU starts, and leaves it out.
            spare = contents.asks and verdict["verdict"] == "cpu-build"
            yield _told_of(contents, verdict, LESS if spare else word, wheels)
    for verdict in running:
        if verdict["verdict"] == "jit-only":
            yield _told_of(contents, verdict, LESS, wheels)
    if not verdicts:
        yield from _of_toolkit(contents, gpu)
    if gpu.vendor == "amd" and running and all(_is_compiler(v) for v in running):
        yield from _of_rocm(contents, gpu)
    if works and gpu.vendor == "nvidia":
        yield from _without_compiler(contents)
    jit = any(verdict["verdict"] == "jit-only" for verdict in running)
    yield from _of_builder(contents, gpu, works=works, jit=jit)


def _without_builds_for_cpu(verdicts: list[VerdictDoc], wheels: Wheels) -> list[VerdictDoc]:
    """Return the verdicts of what may use the device, where there is anything else.

    What is made for the CPU (onnxruntime) works there, beside what uses a GPU. A PyTorch for the
    CPU is no such thing, unless another framework leads (Intel's extension): what is made for it
    would use the GPU by it.
    """
    led = any(_flag(v, "leads") and v["verdict"] != "cpu-build" for v in verdicts)
    found = [
        verdict
        for verdict in verdicts
        if verdict["verdict"] != "cpu-build"
        or on_torch(wheels[verdict["wheel"]])
        or (_key(verdict) == "torch" and not led)
    ]
    return found or verdicts


def _is_compiler(verdict: VerdictDoc) -> bool:
    """Return whether a distribution makes its code at run time, with ROCm's libraries."""
    return verdict["verdict"] == "compiles" and verdict["has"] != "Vulkan"


def _without_compiler(contents: Contents) -> Iterator[Step]:
    """Yield what compiles its code by a program that the image has not, and has none itself."""
    for document in contents.documents:
        entry = framework_of(document["name"])
        compiler = entry[1].get("compiler", "") if entry else ""
        if compiler and not vendors_of(document) and not _has_program(contents, compiler):
            reason = f"{title(document)} compiles its operators with {compiler}, which it has not"
            yield Step("code", LESS, reason, "", f"take an image with CUDA's {compiler}")


def _has_program(contents: Contents, name: str) -> bool:
    """Return whether an image has a program. What the system of an environment has is unknown."""
    return contents.is_environment or name in contents.names


def _leading(contents: Contents, verdicts: Sequence[VerdictDoc]) -> list[VerdictDoc]:
    """Return the verdicts of what the image is made for; [] where nothing tells.

    That is what its program is linked with, else the frameworks that programs are written for: a
    CuPy that runs is no PyTorch.
    """
    linked = [v for v in verdicts if v["wheel"] in contents.linked_code]
    return linked or [v for v in verdicts if _flag(v, "leads") and v["verdict"] != "cpu-build"]


def _works(
    verdicts: Sequence[VerdictDoc], leading: Sequence[VerdictDoc], running: Sequence[VerdictDoc]
) -> bool:
    """Return whether what the image is made for runs: all else may do without the device."""
    if leading:
        return any(v in running for v in leading)
    # What compiles at run time (triton) does not stand for the framework that uses it.
    return any(v["verdict"] != "compiles" for v in running) or len(running) == len(verdicts) > 0


def _is_no(unloadable: dict[str, Step], verdict: VerdictDoc) -> bool:
    step = unloadable.get(verdict["wheel"])
    return step is not None and step.word == NO


def _framework(verdict: VerdictDoc) -> tuple[str, FrameworkDoc] | None:
    return framework_of(verdict["wheel"].split(" ")[0])


def _key(verdict: VerdictDoc) -> str:
    return key_of(verdict["wheel"].split(" ")[0])


def _flag(verdict: VerdictDoc, name: Literal["leads", "needed"]) -> bool:
    entry = _framework(verdict)
    return entry is not None and bool(entry[1].get(name))


def _told_of(contents: Contents, verdict: VerdictDoc, word: str, wheels: Wheels) -> Step:
    reason = f"{verdict['wheel']}: {verdict['why']}"
    return Step("code", word, reason, _where(contents, verdict, wheels))


def _of_toolkit(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    """Yield what speaks against the CUDA of an image that has no code of its own.

    Where it has some, that is judged: an image of CUDA 13 may well hold a build with CUDA 12.
    """
    if gpu.vendor == "amd":
        yield from _of_rocm(contents, gpu)
    if gpu.vendor != "nvidia" or not contents.toolkit:
        return
    version, floor = text_of(contents.toolkit), driver_of_toolkit(contents.toolkit, gpu.os)
    if not floor:
        yield Step("driver", UNKNOWN, f"the driver for CUDA {version} is unknown")
    elif gpu.driver and gpu.driver < floor:
        reason = f"CUDA {version} needs driver {dotted(floor)} or newer, and the node has"
        fix = f"update the driver to {dotted(floor)}, or take an image of an older CUDA"
        step = Step("driver", NO, f"{reason} {dotted(gpu.driver)}", "", fix)
        if is_waived(contents.environ):
            step.word, step.reason = UNKNOWN, f"{step.reason}; {WAIVED}"
        yield step
    if not gpu.capabilities:
        yield Step("code", UNKNOWN, f"the compute capability of {gpu.name} is unknown")
        return
    if contents.toolkit[:1] >= (13,) and max(gpu.capabilities) < (7, 5):
        reason = f"CUDA {version} has no code for {gpu.target}: it begins at sm_75"
        yield Step("code", NO, reason, "", "take an image of CUDA 12")
    first = version_of(IMAGES["toolkits"].get(str(max(gpu.capabilities)[0]), ""))
    if contents.toolkit < first:
        reason = f"CUDA {version} is older than {gpu.target}, whose code begins with CUDA"
        fix = f"take an image of CUDA {text_of(first)} or newer"
        yield Step("code", UNKNOWN, f"{reason} {text_of(first)}: PTX alone runs there", "", fix)


def _of_rocm(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    """Yield what speaks against ROCm for a processor, where nothing beside has code for it.

    rocBLAS names those that it has kernels for. Without it, those count that PyTorch is built for.
    """
    processor = (gpu.processor or "").partition(":")[0]
    if contents.kernels and processor not in contents.kernels:
        reason = f"its rocBLAS has no kernels for {gpu.target}: what else runs there is unknown"
        yield Step("code", UNKNOWN, reason)
    elif not contents.kernels and not any(processor in row["targets"] for row in TORCH["rocm"]):
        reason = f"whether ROCm supports {gpu.target or gpu.name} is unknown"
        yield Step("code", UNKNOWN, reason)


def _of_builder(contents: Contents, gpu: Gpu, *, works: bool, jit: bool) -> Iterator[Step]:
    """Yield that TensorRT's builder has nothing for a chip: it has a library for each."""
    chips = contents.builders
    own = max(gpu.capabilities, default=(0, 0))
    if gpu.vendor != "nvidia" or not chips or any(own[0] == a and b <= own[1] for a, b in chips):
        return
    has = ", ".join(f"sm_{major}{minor}" for major, minor in chips)
    reason = f"its TensorRT builds engines for {has}, and not for {gpu.target}"
    if own < chips[0]:
        word = LESS if works else NO
    else:
        word, reason = LESS if works or jit else UNKNOWN, f"{reason}, for which it may have PTX"
    yield Step("code", word, reason)


def _with_torch(verdicts: list[VerdictDoc], wheels: Wheels) -> list[VerdictDoc]:
    """Return the verdicts; what runs on PyTorch runs no better than it."""
    torch = next((v for v in verdicts if normal(v["wheel"].split(" ")[0]) == "torch"), None)
    if torch is None or torch["verdict"] in _RUNNING:
        return verdicts
    return [
        v if v is torch or not on_torch(wheels[v["wheel"]]) else _as_torch(v, torch)
        for v in verdicts
    ]


def _as_torch(verdict: VerdictDoc, torch: VerdictDoc) -> VerdictDoc:
    if verdict["verdict"] not in _RUNNING:
        return verdict
    return {**verdict, "verdict": torch["verdict"], "why": f"it runs on PyTorch: {torch['why']}"}


def _lacking(contents: Contents, gpu: Gpu, verdict: VerdictDoc, word: str, wheels: Wheels) -> Step:
    reason = f"{verdict['wheel']} has {verdict['has']}: {verdict['why']}"
    fix = f"take a build with {verdict['needs']}"
    lacks = verdict["verdict"] == "lacks-device"
    if not lacks:
        fix = f"the node needs {verdict['needs']}"
    # A driver that is too old gives no device; a device without code is taken, and then fails.
    toolkit = toolkit_of(wheels[verdict["wheel"]]) or contents.toolkit
    is_old = gpu.driver and gpu.driver < driver_of_toolkit(toolkit, gpu.os)
    ends = lacks and not contents.skips and not is_old
    return Step("code", word, reason, _where(contents, verdict, wheels), fix, ends=ends)


def _where(contents: Contents, verdict: VerdictDoc, wheels: Wheels) -> str:
    library = verdict["library"]
    return contents.place(f"{wheels[verdict['wheel']]['site']}/{library}") if library else ""


def _unknown_toolkit(
    verdict: VerdictDoc, gpu: Gpu, contents: Contents, document: DistributionDoc
) -> Step | None:
    """Return that nobody knows which driver some code needs: it may be of a newer CUDA.

    A program with CUDA's runtime built in names its version nowhere. The newest driver runs all.
    """
    newest = driver_of_toolkit((13,), gpu.os)
    if gpu.vendor != "nvidia" or verdict["verdict"] != "native" or not gpu.driver:
        return None
    if gpu.driver >= newest or contents.environ.get("CUDA_VERSION") or on_torch(document):
        return None
    library = document["files"].get(verdict["library"] or "", {})
    targets = [target for group, _ in library.get("cuda", ()) for target in group]
    stated = toolkit_of(document) or file_toolkit(verdict["library"] or "")[1]
    linked = any(name.startswith("libcudart.so.") for name in library.get("needed", ()))
    if stated or linked or any(target.startswith("ptx_") for target in targets):
        return None
    reason = f"{verdict['wheel']}: which CUDA it was built with is unknown, and so is whether"
    reason += f" driver {dotted(gpu.driver)} runs it; {dotted(newest)} runs every one"
    return Step("driver", UNKNOWN, reason, "", f"update the driver to {dotted(newest)}")


def _own_needs(
    contents: Contents, gpu: Gpu, verdict: VerdictDoc, wheels: Wheels, glibc: tuple[int, ...]
) -> Step | None:
    """Return what a deciding library needs and the image has not; None where it has all."""
    site, library = wheels[verdict["wheel"]]["site"], verdict["library"]
    if verdict["has"] == "Vulkan":
        reason = f"{verdict['wheel']}: whether a driver for Vulkan is in the container is unknown"
        return Step("runtime", UNKNOWN, reason)
    path = f"{site}/{library}"
    binary = contents.binary(path) if library else None
    if binary is None:
        return None
    if contents.is_environment:
        own = glibc_of_node(glibc, binary.glibc, path)
        return own or _opened_of_node(contents, gpu, verdict)
    missing = missing_library(contents, binary, path) or _unopened(contents, gpu, verdict, path)
    if missing is not None:
        user, name = missing
        reason = f"{verdict['wheel']} needs {name}, which is not in the image"
        return Step("loader", NO, reason, contents.place(user))
    return version_step(contents, binary, path)


def _opened_of_node(contents: Contents, gpu: Gpu, verdict: VerdictDoc) -> Step | None:
    """Return that nobody knows whether a node has the libraries that a framework opens by name.

    In an environment they come as distributions (nvidia-cudnn-cu12), else with the system.
    """
    entry = _framework(verdict)
    stems = [name.partition(".")[0][3:] for name in entry[1].get("opens", ())] if entry else []
    names = [normal(document["name"]) for document in contents.documents]
    brought = any(name.startswith(f"nvidia-{stem}") for stem in stems for name in names)
    if gpu.vendor != "nvidia" or brought or not stems:
        return None
    reason = f"{verdict['wheel']} opens CUDA's libraries by name, which the environment has not:"
    return Step("loader", UNKNOWN, f"{reason} whether the node has them is unknown")


def _unopened(
    contents: Contents, gpu: Gpu, verdict: VerdictDoc, path: str
) -> tuple[str, str] | None:
    """Return a library of CUDA that a framework opens by name, and the image has not."""
    entry = _framework(verdict)
    if entry is None or gpu.vendor != "nvidia":
        return None
    for library in entry[1].get("opens", ()):
        if not any(name.startswith(library) for name in contents.names):
            return path, library
    return None
