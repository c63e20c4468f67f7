"""Whether an image runs on a node: each step with its reason, and the first firm "no" wins.

An image runs where every step is proven. A step without data makes the answer "unknown", never
"runs". The order: platform, loader, C library, devices, groups, start check, libcuda, driver
against toolkit, code for the chip.
"""

from __future__ import annotations

from copy import copy

from probe_wheels.distributions import normal
from probe_wheels.frameworks import framework_of, toolkit_of
from probe_wheels.images.nvidia import (
    APPTAINER,
    CDI,
    CSV,
    LEGACY,
    brands_of,
    capabilities_of,
    driver_text,
    gives_no_gpu,
    is_geforce,
    least_driver,
    mounted_by,
    requirements_of,
    start_check,
)
from probe_wheels.judging import Scene, file_toolkit, judge, title
from probe_wheels.records import VENDOR_NAMES
from probe_wheels.rules import IMAGES, cuda_of_driver, dotted, driver_of_toolkit, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Literal

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import VerdictDoc
    from probe_wheels.images.contents import Contents
    from probe_wheels.images.nodes import Node

    Word = Literal["runs", "less", "no", "unknown"]

__all__ = ["Answer", "Step", "answer_of", "code_steps"]

RUNS, LESS, NO, UNKNOWN = "runs", "less", "no", "unknown"
_RUNNING = ("native", "compiles", "jit-only")
_LACKING = ("lacks-device", "needs-newer-driver")
_TORCH = ("torch-companions", "vllm", "sgl-kernel", "bitsandbytes", "xformers", "flash-attn")
"""Frameworks that run on PyTorch, and not without it."""
_EVERYWHERE = (2, 28)
"""glibc of Debian 10 and RHEL 8: the oldest with which current drivers of GPUs are offered."""
_FIX_GROUP = "start it with --group-add {group}, or as root"


class Step:
    """One step: its name, "ok", "less", "no" or "unknown", one sentence, where, and what mends it.

    `place` is the file or variable of the image that decided, "" where the node did. `ends` is
    whether a "no" ends programs, too, that use the CPU where they find no GPU.
    """

    __slots__ = ("ends", "fix", "name", "place", "reason", "word")

    def __init__(
        self,
        name: str,
        word: str,
        reason: str,
        place: str = "",
        fix: str = "",
        *,
        ends: bool = False,
    ) -> None:
        self.name = name
        self.word = word
        self.reason = reason
        self.place = place
        self.fix = fix
        self.ends = ends


class Answer:
    """The answer for a node: `word` is "runs", "less", "no" or "unknown".

    `step` decided it; None where nothing speaks against it. `steps` are all that did not pass, and
    `devices` the answer for each device of the image's vendors: word, name and reason.
    """

    __slots__ = ("devices", "notes", "step", "steps", "word")

    def __init__(self, word: str, steps: Sequence[Step]) -> None:
        self.word = word
        self.steps = [step for step in steps if step.word != "ok"]
        self.step = next((step for step in self.steps if step.word == word), None)
        self.devices: list[tuple[str, str, str]] = []
        self.notes: list[str] = []


def answer_of(contents: Contents, node: Node) -> Answer:
    """Return whether an image runs on a node. Where the node's mode is unknown, each counts."""
    if contents.problems:
        return Answer(UNKNOWN, [Step("image", UNKNOWN, text) for text in contents.problems])
    steps = list(_of_image(contents, node))
    word = _worst(steps)
    if word == NO or not contents.vendors:
        answer = Answer(word, steps)
        if not contents.vendors:
            answer.notes.append("it has no code for a GPU: it uses the CPU")
        return answer
    gpus = [gpu for gpu in node.gpus if gpu.vendor in contents.vendors]
    if not gpus:
        return _without_gpu(contents, node, steps)
    modes = (node.mode,) if node.mode else (LEGACY, CDI)
    if contents.is_environment or not any(gpu.vendor == "nvidia" for gpu in gpus):
        modes = (CDI,)
    elif contents.image.kind == "sif":
        modes = (APPTAINER,)
    answers = [_by_mode(contents, node, gpus, steps, mode) for mode in modes]
    answer = answers[0] if len(answers) == 1 else _either(answers)
    if any(gpu.vendor == "nvidia" for gpu in gpus) and gives_no_gpu(contents.environ):
        answer.notes.append("plain `docker run` gives it no GPU: start it with --gpus all")
    return answer


def _worst(steps: Iterable[Step]) -> str:
    words = {step.word for step in steps}
    return next((word for word in (NO, UNKNOWN, LESS) if word in words), RUNS)


def _either(answers: Sequence[Answer]) -> Answer:
    """Return what holds under either mode; where they differ it is unknown, and both are named."""
    legacy, cdi = answers
    if legacy.word == cdi.word and (legacy.word != NO or _reason(legacy) == _reason(cdi)):
        return legacy
    if {legacy.word, cdi.word} <= {RUNS, LESS}:
        return legacy if legacy.word == LESS else cdi
    if legacy.word == cdi.word == NO:
        return cdi  # what refuses it there, no change of the mode mends
    texts = [f"{name}: {_told(answer)}" for name, answer in (("legacy", legacy), ("CDI", cdi))]
    fix = "tell how its containers get GPUs: --mode legacy or --mode cdi"
    step = Step(
        "mode", UNKNOWN, f"it depends on the mode of the toolkit; {'; '.join(texts)}", "", fix
    )
    joined = Answer(UNKNOWN, [step, *legacy.steps, *cdi.steps])
    joined.step = step
    joined.devices = cdi.devices
    return joined


def _reason(answer: Answer) -> str:
    return answer.step.reason if answer.step else ""


def _told(answer: Answer) -> str:
    words = {RUNS: "it runs", LESS: "it runs with less", NO: "it does not run", UNKNOWN: "unknown"}
    return f"{words[answer.word]}{', ' + _reason(answer) if _reason(answer) else ''}"


# Steps that hold for the whole node.


def _of_image(contents: Contents, node: Node) -> Iterator[Step]:
    yield _platform(contents, node)
    if not contents.is_environment:
        yield _program(contents)
        yield from _glibc(contents)


def _platform(contents: Contents, node: Node) -> Step:
    arch, os = contents.arch, contents.image.config.os
    if contents.is_environment:
        return _platform_of_libraries(contents, node)
    if os != node.os:
        return Step("platform", NO, f"it is an image for {os}, and the node has {node.os}")
    if arch is None:
        return Step("platform", UNKNOWN, "the image does not say its architecture")
    if node.arch == "unknown":
        return Step("platform", UNKNOWN, "the architecture of the node is unknown")
    same = arch == node.arch or (arch == "i686" and node.arch == "x86_64")
    if not same:
        fix = f"take the image for {node.arch}"
        return Step("platform", NO, f"it is built for {arch}, and the node is {node.arch}", "", fix)
    binary = contents.program.binary if contents.program else None
    if binary is not None and binary.machine != arch:
        place = contents.place(contents.program.path) if contents.program else ""
        return Step("platform", NO, f"its program is built for {binary.machine}", place)
    return Step("platform", "ok", arch)


def _platform_of_libraries(contents: Contents, node: Node) -> Step:
    """Return whether the libraries of a Python environment are for the node's processor."""
    for document in contents.documents:
        for path, library in document["files"].items():
            machines = set(library.get("machines", ())) - {"cuda", "amdgpu"}
            if machines and node.arch == "unknown":
                return Step("platform", UNKNOWN, "the architecture of the node is unknown")
            if machines and node.arch not in machines:
                built = " and ".join(sorted(machines))
                reason = f"{title(document)} is built for {built}, and the node is {node.arch}"
                return Step("platform", NO, reason, f"{document['site']}/{path}")
    return Step("platform", "ok", node.arch)


def _program(contents: Contents) -> Step:
    program = contents.program
    if program is None:
        return Step("loader", "ok", "it names no program")
    place = contents.place(program.path)
    if program.missing:
        return Step("loader", NO, f"its program {program.path} is not in it", place)
    if program.binary is None:
        return Step("loader", UNKNOWN, f"its program cannot be read: {program.problem}", place)
    loader = program.binary.interpreter
    if loader and contents.files.tree.file(loader.lstrip("/")) is None:
        return Step(
            "loader", NO, f"its program needs the loader {loader}, which is not in it", place
        )
    for library in program.binary.needed:
        if mounted_by(library):
            continue
        found = contents.found(library, program.binary, program.path)
        if found is False:
            return Step("loader", NO, f"its program needs {library}, which is not in it", place)
        if found is None:
            reason = f"{library} is in no folder where its program's loader looks"
            return Step("loader", UNKNOWN, reason, place)
    return Step("loader", "ok", loader or "static")


def _glibc(contents: Contents) -> Iterator[Step]:
    """Yield the steps about the C library; host files of NVIDIA need glibc, which musl is not."""
    if contents.is_musl() and "nvidia" in contents.vendors:
        reason = "its C library is musl, and the files of NVIDIA's driver need glibc"
        yield Step("glibc", NO, reason, "", "take an image with glibc")
        return
    program = contents.program
    if program is not None and program.binary is not None:
        step = _glibc_step(contents, program.binary.glibc, program.path)
        if step is not None:
            yield step


def _glibc_step(contents: Contents, needed: tuple[int, ...], path: str) -> Step | None:
    """Return what is wrong with the image's glibc for a file that needs a version of it."""
    if not needed:
        return None
    place, version = contents.libc()
    if not place:
        reason = f"{path} needs glibc {_text(needed)}, and the image has none"
        return Step("glibc", NO, reason, contents.place(path))
    if not version:
        return Step("glibc", UNKNOWN, "the version of its glibc is unknown", contents.place(place))
    if needed > version:
        reason = f"{path} needs glibc {_text(needed)}, and the image has {_text(version)}"
        fix = f"take a base with glibc {_text(needed)} or newer"
        return Step("glibc", NO, reason, contents.place(path), fix)
    return None


def _glibc_of_node(glibc: tuple[int, ...], needed: tuple[int, ...], path: str) -> Step | None:
    """Return what is wrong with the node's own glibc for a file of a Python environment."""
    if glibc and needed > glibc:
        reason = f"{path} needs glibc {_text(needed)}, and the node has {_text(glibc)}"
        return Step("glibc", NO, reason, path)
    if not glibc and needed > _EVERYWHERE:
        reason = f"{path} needs glibc {_text(needed)}, and which one the node has is not recorded"
        return Step("glibc", UNKNOWN, reason, path)
    return None


def _text(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def _without_gpu(contents: Contents, node: Node, steps: list[Step]) -> Answer:
    names = " or ".join(VENDOR_NAMES.get(vendor, vendor) for vendor in contents.vendors)
    has = ", ".join(dict.fromkeys([*(gpu.name for gpu in node.gpus), *node.others])) or "no GPU"
    reason = f"it needs a GPU of {names}, and the node has {has}"
    if node.hidden:
        reason = f"it needs a GPU of {names}: {node.hidden}"
        step = Step("devices", UNKNOWN, reason)
    elif contents.falls_back:
        step = Step("devices", LESS, f"{reason}: it uses the CPU")
    else:
        step = Step("devices", NO, reason, "", f"take a node with a GPU of {names}")
    steps = [*steps, step]
    return Answer(_worst(steps), steps)


# Steps for each device.


def _by_mode(
    contents: Contents, node: Node, gpus: Sequence[Gpu], steps: Sequence[Step], mode: str
) -> Answer:
    kinds: dict[object, list[Step]] = {}
    by_device: list[tuple[Gpu, list[Step]]] = []
    for gpu in gpus:
        key = (gpu.kind, gpu.id in node.broken)
        if key not in kinds:
            kinds[key] = list(_of_gpu(contents, node, gpu, mode))
        by_device.append((gpu, kinds[key]))
    words = [_worst(found) for _, found in by_device]
    together = _together(words)
    best = next(
        found for word, (_, found) in zip(words, by_device, strict=True) if word == _first(words)
    )
    told = [step for step in best if step.word != "ok"]
    if together == LESS and LESS not in words:
        told = [*_left_out(by_device, words), *told]
    refused = [step for _, found in by_device for step in found if step.word == NO]
    if contents.falls_back and together == NO and not any(step.ends for step in refused):
        together = LESS
        told = [
            Step(s.name, LESS, f"{s.reason}: it uses the CPU", s.place, s.fix) for s in refused[:1]
        ]
    word = _worst([*steps, Step("devices", together if together != RUNS else "ok", "")])
    answer = Answer(word, [*steps, *told])
    answer.step = next((step for step in answer.steps if step.word == word), answer.step)
    for (gpu, found), own in zip(by_device, words, strict=True):
        reason = next((step.reason for step in found if step.word == own), "")
        answer.devices.append((own, gpu.name, reason))
    return answer


def _first(words: Sequence[str]) -> str:
    return next(word for word in (RUNS, LESS, UNKNOWN, NO) if word in words)


def _together(words: Sequence[str]) -> str:
    """Return what several devices give together: one that runs it is enough, with less."""
    found = set(words)
    if len(found) == 1:
        return words[0]
    return LESS if found & {RUNS, LESS} else UNKNOWN


def _left_out(by_device: Sequence[tuple[Gpu, list[Step]]], words: Sequence[str]) -> list[Step]:
    told = {}
    for (gpu, steps), word in zip(by_device, words, strict=True):
        if word != RUNS:
            step = next(step for step in steps if step.word == word)
            told[gpu.name] = Step(step.name, LESS, f"not on {gpu.name}: {step.reason}", step.place)
    return list(told.values())


def _of_gpu(contents: Contents, node: Node, gpu: Gpu, mode: str) -> Iterator[Step]:
    broken = node.broken.get(gpu.id)
    if broken is not None:
        evidence = broken["evidence"] or broken["code"] or broken["step"]
        yield Step("devices", NO, f"{gpu.name}: {evidence}", "", "probe doctor on the node")
        return
    if contents.is_environment:
        yield from _driver_known(contents, gpu)
    elif gpu.vendor == "nvidia":
        gpu = copy(gpu)
        yield from _nvidia(contents, node, gpu, mode)
    elif gpu.vendor == "amd":
        yield from _groups(contents, node, "/dev/kfd")
        yield from _pairing(contents, node)
    elif gpu.vendor == "intel":
        yield from _groups(contents, node, "/dev/dri")
        yield from _intel(contents, gpu)
    yield from code_steps(contents, gpu, node.glibc)


def _driver_known(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    if gpu.vendor == "nvidia" and not gpu.driver:
        yield Step("driver", UNKNOWN, "the version of the node's NVIDIA driver is unknown")


def _nvidia(contents: Contents, node: Node, gpu: Gpu, mode: str) -> Iterator[Step]:
    """Yield the steps of NVIDIA's; `gpu` gets the driver version of the libcuda that is loaded."""
    if mode == CSV or not gpu.driver:
        reason = "the version of the node's NVIDIA driver is unknown"
        if gpu.capabilities and gpu.arch == "aarch64" and not gpu.discrete:
            reason = "what JetPack's lists of files mount is not recorded"
        yield Step("driver", UNKNOWN, reason)
    if mode == LEGACY:
        yield from _start_check(contents, gpu)
        yield from _mounts(contents)
    yield from _libcuda(contents, gpu, mode)


def _start_check(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    for name, requirement in requirements_of(contents.environ).items():
        try:
            answer = start_check(requirement, gpu)
        except ValueError as error:
            reason = f"the hook refuses {name}: {error}"
            yield Step("start check", NO, reason, name, ends=True)
            return
        if answer is False:
            brand = (brands_of(gpu) or ("unknown",))[0]
            reason = (
                f"the hook refuses the start: driver {driver_text(gpu.driver)} of a board of the"
            )
            reason += f" brand {brand} is none that {name} allows"
            fix = _start_fix(contents, requirement, gpu)
            place = f"{name}={requirement[:60]}"
            yield Step("start check", NO, reason, place, fix, ends=True)
            return
        if answer is None:
            yield Step("start check", UNKNOWN, f"whether {name} holds is unknown", name)


def _start_fix(contents: Contents, requirement: str, gpu: Gpu) -> str:
    driver = least_driver(requirement, gpu)
    fix = f"update the driver to {dotted(driver)}" if driver else "take an image of an older CUDA"
    if gpu.driver >= driver_of_toolkit(contents.toolkit, gpu.os):
        fix += ", or let containers get GPUs by CDI, which checks none of it"
    return fix


def _mounts(contents: Contents) -> Iterator[Step]:
    """Yield what the hook does not mount, by NVIDIA_DRIVER_CAPABILITIES."""
    name = "NVIDIA_DRIVER_CAPABILITIES"
    try:
        words = capabilities_of(contents.environ)
    except ValueError as error:
        yield Step("libcuda", NO, f"the hook refuses the start: {error}", name, ends=True)
        return
    if "compute" not in words:
        fix = f"set {name}=compute,utility"
        yield Step("libcuda", NO, f"{name} is without compute: no libcuda is mounted", name, fix)
        return
    program = contents.program
    needed = program.binary.needed if program and program.binary else ()
    for library in needed:
        wanted = mounted_by(library)
        if wanted and not words & set(wanted) and library not in contents.names:
            reason = f"its program needs {library}, which comes with {' or '.join(wanted)}"
            yield Step("libcuda", NO, reason, name, f"add {wanted[0]} to {name}")


def _chooses(contents: Contents, gpu: Gpu) -> bool:
    """Return whether a start script of the image (NGC's) chooses the libcuda for this driver."""
    if not contents.chooser or not gpu.driver:
        return False
    return cuda_of_driver(gpu.driver, gpu.os) < contents.toolkit


def _libcuda(contents: Contents, gpu: Gpu, mode: str) -> Iterator[Step]:
    own = sorted(name for name in contents.names if name.startswith("libcuda.so."))
    compats = contents.compat
    if _chooses(contents, gpu):
        gpu.driver = ()
        cuda = _text(contents.toolkit)
        reason = f"which libcuda {contents.chooser} takes below CUDA {cuda} is unknown"
        fix = "update the driver to one of the image's CUDA"
        yield Step("libcuda", UNKNOWN, reason, contents.place(contents.chooser), fix)
        return
    listed = {compat.path.rpartition("/")[2] for compat in compats} | {"libcuda.so.1"}
    foreign = [name for name in own if name not in listed and name.count(".") > 2]
    if foreign:
        reason = f"it has a libcuda of its own ({foreign[0]}), and which one is loaded is unknown"
        yield Step("libcuda", UNKNOWN, reason)
        return
    if len(compats) != 1:
        if any(compat.forced for compat in compats):
            yield Step("libcuda", UNKNOWN, "LD_LIBRARY_PATH leads to several compat libraries")
        return
    compat, place = compats[0], contents.place(compats[0].path)
    taken = compat.is_taken(mode, gpu.driver)
    if taken is None:
        yield Step("libcuda", UNKNOWN, "whether its compat libcuda is used is unknown", place)
    if not taken:
        return
    if compat.version[:2] < gpu.driver[:2]:
        reason = f"LD_LIBRARY_PATH leads to libcuda {dotted(compat.version)}, older than the node's"
        reason += f" driver {dotted(gpu.driver)} (CUDA error 803)"
        yield Step("libcuda", NO, reason, place, "leave the compat folder out of LD_LIBRARY_PATH")
        return
    if compat.version == gpu.driver:
        return
    refused = is_geforce(gpu)
    if refused:
        reason = f"its compat libcuda {dotted(compat.version)} is used, and no GeForce runs with it"
        fix = f"update the driver to {compat.version[0]}, or remove /usr/local/cuda/compat"
        yield Step("libcuda", NO, f"{reason} (CUDA error 804)", place, fix)
    elif refused is None:
        reason = f"whether {gpu.name} runs with a compat libcuda is unknown: selected boards do"
        yield Step("libcuda", UNKNOWN, reason, place)
    elif not compat.fits(gpu.driver):
        reason = f"whether the driver's branch {gpu.driver[0]} runs its compat libcuda is unknown"
        yield Step("libcuda", UNKNOWN, reason, place)
    else:
        gpu.driver = compat.version


# AMD and Intel.


def _groups(contents: Contents, node: Node, device: str) -> Iterator[Step]:
    """Yield whether the image's user may open the device nodes, which belong to a number."""
    if contents.image.kind == "sif":
        text = node.group if node.group is not None else "of the device"
        reason = f"Apptainer runs it as who starts it, whom {device} must admit (group {text})"
        yield Step("groups", UNKNOWN, reason, "", f"look with `test -w {device}` on the node")
        return
    user, _, group = contents.image.config.user.partition(":")
    if user in ("", "0", "root"):
        return
    if node.group is None:
        reason = f"the group of {device} is not recorded, and the image's user is {user}"
        fix = f"start it with --group-add and the number of `stat -c %g {device}`"
        yield Step("groups", UNKNOWN, reason, "User", fix)
        return
    if node.group in _groups_of(contents, user, group):
        return
    reason = f"{device} belongs to group {node.group}, and the image's user {user} is not in it"
    yield Step("groups", NO, reason, "User", _FIX_GROUP.format(group=node.group))


def _groups_of(contents: Contents, user: str, group: str) -> set[int]:
    """Return the numbers of a user's groups, by the image's own lists."""
    texts = [_number(group)]
    name = user
    for row in _rows(contents.files.text("/etc/passwd")):
        if len(row) > 3 and user in (row[0], row[2]):
            name = row[0]
            texts += [] if group else [_number(row[3])]
            break
    for row in _rows(contents.files.text("/etc/group")):
        if len(row) > 3 and (name in row[3].split(",") or group == row[0]):
            texts.append(_number(row[2]))
    return {number for number in texts if number is not None}


def _number(text: str) -> int | None:
    """Return a group's number of 32 bits; None for anything else."""
    return int(text) if text.isdecimal() and len(text) < 11 else None


def _rows(text: str) -> list[list[str]]:
    return [line.split(":") for line in text.splitlines()[:4096]]


def _pairing(contents: Contents, node: Node) -> Iterator[Step]:
    """Yield whether AMD supports the image's ROCm on the node's kernel driver."""
    if not contents.rocm:
        yield Step("driver", UNKNOWN, "the version of ROCm in the image is unknown")
        return
    rocm = _text(contents.rocm)
    row = IMAGES["pairing"].get(node.rocm or "")
    if row is None:
        reason = f"which ROCm the node's kernel driver belongs to is unknown; the image has {rocm}"
        fix = "a driver of the kernel's own tree is in no table of AMD"
        yield Step("driver", UNKNOWN, reason, "/opt/rocm/.info/version", fix)
    elif not version_of(row[0]) <= contents.rocm[:2] <= version_of(row[1]):
        reason = (
            f"AMD supports ROCm {row[0]} to {row[1]} on the node's driver (of {node.rocm}), and"
        )
        reason += f" the image has {rocm}"
        yield Step("driver", UNKNOWN, reason, "/opt/rocm/.info/version")


def _intel(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    for library in IMAGES["intel"]["libraries"]:
        if not any(name.startswith(library) for name in contents.names):
            fix = "install Intel's compute runtime in the image (intel-opencl-icd, libze1)"
            yield Step("runtime", NO, f"Level Zero needs {library}, which is not in it", "", fix)
            return
    if set(gpu.families) & set(IMAGES["intel"]["new"]):
        reason = f"whether the image's compute runtime knows {gpu.target} is unknown"
        yield Step("runtime", UNKNOWN, reason)


# Code for the chip.


def code_steps(contents: Contents, gpu: Gpu, glibc: tuple[int, ...] = ()) -> Iterator[Step]:
    """Yield what speaks against the image's code for a device, wheel by wheel.

    `glibc` is the node's, which counts for Python environments alone.
    """
    verdicts = _with_torch(judge([gpu], Scene(contents.documents, contents.environ)))
    own = [verdict for verdict in verdicts if _key(verdict) != "components"]
    verdicts = own or verdicts
    paths = {title(document): document["site"] for document in contents.documents}
    unloadable = {
        verdict["wheel"]: step
        for verdict in verdicts
        if verdict["verdict"] in _RUNNING
        and (
            step := _own_needs(contents, verdict, paths, glibc)
            or _unknown_toolkit(contents, verdict, gpu)
        )
    }
    running = [v for v in verdicts if v["verdict"] in _RUNNING and v["wheel"] not in unloadable]
    failing = [v for v in verdicts if v not in running]
    # What compiles at run time (triton) does not stand for the framework that uses it.
    works = any(v["verdict"] != "compiles" for v in running) or bool(running and not failing)
    is_firm = any(v["verdict"] in _LACKING or _is_no(unloadable, v) for v in failing)
    for verdict in sorted(failing, key=lambda v: v["verdict"] not in _LACKING):
        word = LESS if works else NO
        if verdict["wheel"] in unloadable:
            step = unloadable[verdict["wheel"]]
            step.word = LESS if works else step.word
            yield step
        elif verdict["verdict"] in _LACKING:
            yield _lacking(contents, gpu, verdict, word, paths)
        elif verdict["verdict"] == "unknown":
            yield _told_of(contents, verdict, LESS if works else UNKNOWN, paths)
        elif works or not is_firm:
            yield _told_of(contents, verdict, word, paths)
    for verdict in running:
        if verdict["verdict"] == "jit-only":
            yield _told_of(contents, verdict, LESS, paths)
    if not verdicts:
        yield from _of_toolkit(contents, gpu)


def _is_no(unloadable: dict[str, Step], verdict: VerdictDoc) -> bool:
    step = unloadable.get(verdict["wheel"])
    return step is not None and step.word == NO


def _key(verdict: VerdictDoc) -> str:
    entry = framework_of(verdict["wheel"].split(" ")[0])
    return entry[0] if entry else ""


def _told_of(contents: Contents, verdict: VerdictDoc, word: str, paths: dict[str, str]) -> Step:
    reason = f"{verdict['wheel']}: {verdict['why']}"
    return Step("code", word, reason, _where(contents, verdict, paths))


def _of_toolkit(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    """Yield what speaks against the CUDA of an image that has no code of its own.

    Where it has some, that is judged: an image of CUDA 13 may well hold a build with CUDA 12.
    """
    if gpu.vendor != "nvidia" or not contents.toolkit:
        return
    version, floor = _text(contents.toolkit), driver_of_toolkit(contents.toolkit, gpu.os)
    if not floor:
        yield Step("driver", UNKNOWN, f"the driver for CUDA {version} is unknown")
    elif gpu.driver and gpu.driver < floor:
        reason = f"CUDA {version} needs driver {dotted(floor)} or newer, and the node has"
        fix = f"update the driver to {dotted(floor)}, or take an image of an older CUDA"
        yield Step("driver", NO, f"{reason} {dotted(gpu.driver)}", "", fix)
    if not gpu.capabilities:
        yield Step("code", UNKNOWN, f"the compute capability of {gpu.name} is unknown")
        return
    if contents.toolkit[:1] >= (13,) and max(gpu.capabilities) < (7, 5):
        reason = f"CUDA {version} has no code for {gpu.target}: it begins at sm_75"
        yield Step("code", NO, reason, "", "take an image of CUDA 12")
    first = version_of(IMAGES["toolkits"].get(str(max(gpu.capabilities)[0]), ""))
    if contents.toolkit < first:
        reason = f"CUDA {version} is older than {gpu.target}, whose code begins with CUDA"
        fix = f"take an image of CUDA {_text(first)} or newer"
        yield Step("code", UNKNOWN, f"{reason} {_text(first)}: PTX alone runs there", "", fix)


def _with_torch(verdicts: list[VerdictDoc]) -> list[VerdictDoc]:
    """Return the verdicts; what runs on PyTorch runs no better than it."""
    torch = next((v for v in verdicts if normal(v["wheel"].split(" ")[0]) == "torch"), None)
    if torch is None or torch["verdict"] in _RUNNING:
        return verdicts
    return [v if v is torch or not _needs_torch(v) else _as_torch(v, torch) for v in verdicts]


def _needs_torch(verdict: VerdictDoc) -> bool:
    return _key(verdict) in _TORCH


def _as_torch(verdict: VerdictDoc, torch: VerdictDoc) -> VerdictDoc:
    if verdict["verdict"] not in _RUNNING:
        return verdict
    return {**verdict, "verdict": torch["verdict"], "why": f"it runs on PyTorch: {torch['why']}"}


def _lacking(
    contents: Contents, gpu: Gpu, verdict: VerdictDoc, word: str, paths: dict[str, str]
) -> Step:
    reason = f"{verdict['wheel']} has {verdict['has']}: {verdict['why']}"
    fix = f"take a build with {verdict['needs']}"
    lacks = verdict["verdict"] == "lacks-device"
    if not lacks:
        fix = f"the node needs {verdict['needs']}"
    # A driver that is too old gives no device; a device without code is taken, and then fails.
    is_old = gpu.driver and gpu.driver < driver_of_toolkit(contents.toolkit, gpu.os)
    ends = lacks and not contents.passes_over and not is_old
    return Step("code", word, reason, _where(contents, verdict, paths), fix, ends=ends)


def _where(contents: Contents, verdict: VerdictDoc, paths: dict[str, str]) -> str:
    site, library = paths.get(verdict["wheel"], ""), verdict["library"]
    return contents.place(f"{site}/{library}") if library else ""


def _unknown_toolkit(contents: Contents, verdict: VerdictDoc, gpu: Gpu) -> Step | None:
    """Return that nobody knows which driver some code needs: it may be of a newer CUDA.

    A program with CUDA's runtime built in names its version nowhere. The newest driver runs all.
    """
    newest = driver_of_toolkit((13,), gpu.os)
    if gpu.vendor != "nvidia" or verdict["verdict"] != "native" or not gpu.driver:
        return None
    if gpu.driver >= newest or contents.environ.get("CUDA_VERSION") or _needs_torch(verdict):
        return None
    document = next(d for d in contents.documents if title(d) == verdict["wheel"])
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
    contents: Contents, verdict: VerdictDoc, paths: dict[str, str], glibc: tuple[int, ...]
) -> Step | None:
    """Return what a deciding library needs and the image has not; None where it has all."""
    site, library = paths.get(verdict["wheel"], ""), verdict["library"]
    if verdict["has"] == "Vulkan":
        reason = f"{verdict['wheel']}: whether a driver for Vulkan is in the container is unknown"
        return Step("runtime", UNKNOWN, reason)
    path = f"{site}/{library}"
    binary = contents.binary(path) if library else None
    if binary is None:
        return None
    if contents.is_environment:
        return _glibc_of_node(glibc, binary.glibc, path)
    for name in binary.needed:
        if name not in contents.names and not mounted_by(name):
            reason = f"{verdict['wheel']} needs {name}, which is not in the image"
            return Step("loader", NO, reason, contents.place(path))
    return _glibc_step(contents, binary.glibc, path)
