"""Whether an image runs on a node: each step with its reason, and the first firm "no" wins.

An image runs where every step is proven. A step without data makes the answer "unknown", never
"runs". The order: platform, loader, C library, devices, groups, start check, libcuda, driver
against toolkit, code for the chip.
"""

from __future__ import annotations

from copy import copy

from probe_wheels.images.amd_intel import group_steps, intel_steps, pairing_steps
from probe_wheels.images.chip_code import code_steps
from probe_wheels.images.nvidia import APPTAINER, CDI, LEGACY, gives_no_gpu
from probe_wheels.images.nvidia_steps import nvidia_steps
from probe_wheels.images.steps import LESS, NO, RUNS, UNKNOWN, Step, worst
from probe_wheels.images.system import system_steps
from probe_wheels.records import VENDOR_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_wheels.devices import Gpu
    from probe_wheels.images.contents import Contents
    from probe_wheels.images.nodes import Node


class Answer:
    """The answer for a node: `word` is "runs", "less", "no" or "unknown".

    `step` decided it; None where nothing speaks against it. `steps` are all that did not pass, and
    `devices` the answer for each device of the image's vendors: word, name and reason.
    """

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
    steps = list(system_steps(contents, node))
    word = worst(steps)
    gpus = [gpu for gpu in node.gpus if gpu.vendor in contents.vendors]
    on_cpu = not gpus and (contents.cpu_first or not contents.vendors)
    if on_cpu and contents.unjudged:
        steps.append(Step("devices", UNKNOWN, contents.unjudged))
        return Answer(worst(steps), steps)
    if word == NO or on_cpu:
        answer = Answer(word, steps)
        if on_cpu:
            why = "it takes the CPU first" if contents.vendors else "it has no code for a GPU"
            answer.notes.append(f"{why}: it uses the CPU")
        return answer
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


def _without_gpu(contents: Contents, node: Node, steps: list[Step]) -> Answer:
    names = " or ".join(VENDOR_NAMES.get(vendor, vendor) for vendor in contents.vendors)
    has = ", ".join(dict.fromkeys([*(gpu.name for gpu in node.gpus), *node.others])) or "no GPU"
    reason = f"it needs a GPU of {names}, and the node has {has}"
    if node.hidden:
        reason = f"it needs a GPU of {names}: {node.hidden}"
        step = Step("devices", UNKNOWN, reason)
    elif contents.asks:
        reason = f"it asks for GPUs of {names} and has no code for them, and the node has {has}"
        step = Step("devices", UNKNOWN, f"{reason}: whether it does without is unknown")
    elif contents.falls_back:
        step = Step("devices", LESS, f"{reason}: it uses the CPU")
    else:
        step = Step("devices", NO, reason, "", f"take a node with a GPU of {names}")
    steps = [*steps, step]
    return Answer(worst(steps), steps)


def _by_mode(
    contents: Contents, node: Node, gpus: Sequence[Gpu], steps: Sequence[Step], mode: str
) -> Answer:
    kinds: dict[object, list[Step]] = {}
    by_device: list[tuple[Gpu, list[Step]]] = []
    for gpu in gpus:
        key = (gpu.kind, gpu.id in node.broken, gpu.id in node.unread)
        if key not in kinds:
            kinds[key] = list(_of_gpu(contents, node, gpu, mode))
        by_device.append((gpu, kinds[key]))
    words = [worst(found) for _, found in by_device]
    together = _together(words)
    best = next(
        found for word, (_, found) in zip(words, by_device, strict=True) if word == _first(words)
    )
    shown = [step for step in best if step.word != "ok"]
    if together == LESS and LESS not in words:
        shown = [*_left_out(by_device, words), *shown]
    refused = [step for _, found in by_device for step in found if step.word == NO]
    if contents.falls_back and together in (NO, UNKNOWN):
        shown = _on_cpu(contents, shown, refused if together == NO else [])
        together = worst(shown)
    word = worst([*steps, Step("devices", together if together != RUNS else "ok", "")])
    answer = Answer(word, [*steps, *shown])
    answer.step = next((step for step in answer.steps if step.word == word), answer.step)
    for (gpu, found), own in zip(by_device, words, strict=True):
        reason = next((step.reason for step in found if step.word == own), "")
        answer.devices.append((own, gpu.name, reason))
    return answer


def _on_cpu(contents: Contents, shown: list[Step], refused: Sequence[Step]) -> list[Step]:
    """Return the steps of what uses the CPU where it cannot use a GPU, where it starts at all.

    What takes the CPU first starts, too, where nobody knows whether it could use a GPU.
    """
    unsure = [step for step in shown if step.word == UNKNOWN]
    if any(step.ends for step in refused) or not (refused or contents.cpu_first):
        return shown
    if starting := [step for step in unsure if step.ends]:
        return starting  # nobody knows whether it starts at all
    first, end = (refused or unsure)[0], "" if refused else " at least"
    reason = f"{first.reason}: it uses the CPU{end}"
    return [Step(first.name, LESS, reason, first.place, first.fix)]


def _first(words: Sequence[str]) -> str:
    return next(word for word in (RUNS, LESS, UNKNOWN, NO) if word in words)


def _together(words: Sequence[str]) -> str:
    """Return what several devices give together: one that runs it is enough, with less."""
    found = set(words)
    if len(found) == 1:
        return words[0]
    return LESS if found & {RUNS, LESS} else UNKNOWN


def _left_out(by_device: Sequence[tuple[Gpu, list[Step]]], words: Sequence[str]) -> list[Step]:
    refused = {}
    for (gpu, steps), word in zip(by_device, words, strict=True):
        if word != RUNS:
            step = next(step for step in steps if step.word == word)
            refused[gpu.name] = Step(
                step.name, LESS, f"not on {gpu.name}: {step.reason}", step.place
            )
    return list(refused.values())


def _of_gpu(contents: Contents, node: Node, gpu: Gpu, mode: str) -> Iterator[Step]:
    broken = node.broken.get(gpu.id)
    if broken is not None:
        evidence = broken["evidence"] or broken["code"] or broken["step"]
        yield Step("devices", NO, f"{gpu.name}: {evidence}", "", "probe doctor on the node")
        return
    if gpu.id in node.unread:
        reason = f"{gpu.name} could not be read of the recording: {node.unread[gpu.id]}"
        yield Step("devices", UNKNOWN, reason, "", "try again while this computer has less to do")
        return
    if contents.is_environment:
        yield from _driver_known(contents, gpu)
    elif contents.shaders:
        pass  # the image or the host brings a driver for Vulkan, which needs none of these
    elif gpu.vendor == "nvidia":
        gpu = copy(gpu)
        yield from nvidia_steps(contents, gpu, mode)
    elif contents.host_library and all(other.vendor != "nvidia" for other in node.gpus):
        reason = f"its program needs {contents.host_library}, which NVIDIA's driver brings"
        yield Step("loader", NO, reason, "", "take a node with a GPU of NVIDIA", ends=True)
    elif gpu.vendor == "amd":
        yield from group_steps(contents, node, "/dev/kfd")
        yield from pairing_steps(contents, node)
    elif gpu.vendor == "intel":
        yield from group_steps(contents, node, "/dev/dri")
        yield from intel_steps(contents, gpu)
    yield from code_steps(contents, gpu, node.glibc)


def _driver_known(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    if gpu.vendor == "nvidia" and not gpu.driver:
        yield Step("driver", UNKNOWN, "the version of the node's NVIDIA driver is unknown")
