"""The generated parts about the doctor: one section a cause, and the commands of distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import source
from blocks import class_text, function, table

if TYPE_CHECKING:
    from probe_core.model.causes import Cause

__all__ = ["causepages", "checkauthor", "distributions", "plain_sentence"]

# Names in a cause's sentence that stand for whole commands.
_COMMANDS = {
    "load": "`sudo modprobe MODULE`, or install the driver",
    "cuda_fix": "take the library's folder out of LD_LIBRARY_PATH, or install the library of the"
    " driver's version; in a container take it out of the image",
    "gfx_fix": "`export HSA_OVERRIDE_GFX_VERSION=VALUE` where LLVM's generic family of the GPU has"
    " a base for which it has code and whose kernels run on it; else another ROCm version, or"
    " Vulkan",
    "kfd_fix": "give the container /dev/kfd by its engine's option; on a host load amdgpu of a"
    " kernel with CONFIG_HSA_AMD",
    "libcuda_fix": "install the CUDA library of the driver's version; in a container"
    " NVIDIA_DRIVER_CAPABILITIES=compute,utility",
}
_EFFECTS = {"blocked": "cannot be used", "limited": "can be used, with less than it has"}


def plain_sentence(sentence: str) -> str:
    """Return a sentence with the names in its braces as placeholders."""

    class Placeholders(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return key.upper()

    return sentence.format_map(Placeholders(_COMMANDS))


def causepages() -> str:
    """A section for each cause: what it means, how to verify it by hand, what repairs it."""
    from probe_core.model.causes import CAUSES
    from probe_core.model.ids import STEPS

    parts = []
    for step in STEPS:
        causes = [cause for cause in CAUSES.values() if cause.step == step]
        parts.append(f"## Step `{step}`")
        parts += [_section(cause) for cause in causes]
    return "\n\n".join(parts)


def _section(cause: Cause) -> str:
    from probe_core.doctor.examine import all_checks

    meaning = plain_sentence(cause.meaning)
    needs = next(check.needs for check in all_checks() if check.code == cause.code)
    vendor = cause.vendor or "any"
    purpose = "; somebody may have set it on purpose" if cause.intended else ""
    lines = [
        f"### {cause.code}",
        f"{meaning[:1].upper()}{meaning[1:]}.",
        f"- Effect: the device {_EFFECTS[cause.state]}{purpose}.",
        f"- Vendor: {vendor}. The check reads: {_needs(needs)}.",
        f"- Verify by hand: {plain_sentence(cause.check)}.",
        f"- Fix: {plain_sentence(cause.fix)}.",
        *_exact(cause),
    ]
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:])


def _needs(needs: tuple[str, ...]) -> str:
    paths = [f"`{word}`" for word in needs if word != "report"]
    return ", ".join(["the report", *paths])


def _exact(cause: Cause) -> list[str]:
    from probe_core.model.fix import Command

    topics = [str(part) for part in cause.fixes.get("host", ()) if isinstance(part, Command)]
    links = [f"[{topic}](#{_anchor(topic)})" for topic in topics if "{" not in topic]
    links += ["[driver of the module](#driver-nvidia)"] if "driver {module}" in topics else []
    links += ["[firmware of the module](#firmware-amdgpu)"] if "firmware {module}" in topics else []
    return [f"- By distribution: {', '.join(links)}."] if links else []


def _anchor(topic: str) -> str:
    return topic.replace(" ", "-")


def distributions() -> str:
    """The commands of each distribution, by what they are for."""
    from probe_core.model.fix import parts_of
    from probe_core.readiness.distributions import COMMANDS

    parts = []
    for topic, commands in COMMANDS.items():
        rows = [(name, plain_sentence("".join(parts_of(fix)))) for name, fix in commands.items()]
        parts.append(f"### {topic}\n\n{table(('distribution', 'command'), rows)}")
    return "\n\n".join(parts)


def checkauthor() -> str:
    """What the author of a check imports."""
    path = "probe_core/doctor/check.py"
    names = ("check", "passed", "failed", "unknown", "not_applicable", "finding")
    functions = [one for one in source.functions(path) if one.name in names]
    return "\n\n".join([*map(function, functions), class_text(path, "Request")])
