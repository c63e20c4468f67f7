"""Whether the code of one library runs on one device: pure rules, never a union over libraries."""

from __future__ import annotations

from probe_wheels.rules import (
    TORCH,
    compiles_on,
    dotted,
    driver_of_ptx,
    driver_of_toolkit,
    isa_of,
    runs_on,
    runs_on_gfx,
    runs_on_xe,
    text_of,
    toolkit_of_ptx,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import LibraryDoc, Verdict

    Groups = Sequence[tuple[list[str], int]]

SHARE = 10
"""A target counts from a tenth of the most frequent target's containers on: vllm 0.11 has sm_52
and PTX 5.2 in one container of 80, which no kernel of it can live on."""

ORDER: tuple[Verdict, ...] = (
    "native",
    "compiles",
    "jit-only",
    "unknown",
    "needs-newer-driver",
    "lacks-device",
    "other-vendor",
    "cpu-build",
)
"""Best first; of several answers about one device the worst counts."""

# SASS from these targets on came with these major versions of the toolkit (CUDA release notes): a
# lower bound, where a wheel does not say it. The driver follows from the major version alone.
_FIRST_TOOLKIT = ((100, 12), (80, 11))

_OLDER_LEVEL_ZERO = ("xe-lp",)
"""Families that Level Zero knows and PyTorch's XPU does not."""


class Judgement:
    """One verdict with its facts; see `documents.VerdictDoc`."""

    __slots__ = ("has", "library", "needs", "reason", "verdict")

    def __init__(self, verdict: Verdict, has: str, needs: str, reason: str) -> None:
        self.verdict = verdict
        self.has = has
        self.needs = needs
        self.reason = reason
        self.library: str | None = None

    @property
    def rank(self) -> int:
        """Its place in `ORDER`."""
        return ORDER.index(self.verdict)


def judge_library(
    library: LibraryDoc, gpu: Gpu, toolkit: tuple[int, ...], *, torch: bool = False
) -> Judgement:
    """Return whether a library's code runs on a device of a vendor that it has code for.

    `toolkit` is the version of CUDA that it was built with, () where nobody says it. `torch` is
    whether PyTorch's own limits count: its XPU build leaves older GPUs of Intel out.
    """
    if gpu.vendor == "nvidia":
        return _nvidia(library, gpu, toolkit)
    if gpu.vendor == "amd":
        return _amd(library, gpu)
    if gpu.vendor == "intel":
        return _intel(library, gpu, torch)
    return Judgement("native", "Metal", "Metal", "it has code for Metal")


def targets_text(groups: Groups) -> str:
    """Return the targets that count, for people: ``sm_75, sm_80, sm_90a, PTX of sm_90``."""
    counts = _counts(groups)
    least = max(counts.values(), default=0) / SHARE
    listed = [target for target, count in counts.items() if count >= least]
    listed.sort(key=_sorting)
    names = [target for target in listed if not target.startswith("ptx_")]
    ptx = dict.fromkeys(
        t.partition("@")[0].replace("ptx_", "PTX of sm_") for t in listed[len(names) :]
    )
    return ", ".join([*names, *ptx]) or "no code for a GPU"


def _sorting(target: str) -> tuple[bool, int, str]:
    digits = "".join(char for char in target.partition("@")[0] if char.isdecimal())
    return target.startswith("ptx_"), int(digits or 0), target


def _counts(groups: Groups) -> dict[str, int]:
    counts: dict[str, int] = {}
    for targets, count in groups:
        for target in targets:
            counts[target] = counts.get(target, 0) + count
    return counts


def _nvidia(library: LibraryDoc, gpu: Gpu, toolkit: tuple[int, ...]) -> Judgement:
    groups = library.get("cuda", [])
    has = targets_text(groups)
    if not gpu.capabilities:
        reason = f"the compute capability of {gpu.name} is unknown"
        return Judgement("unknown", has, "the compute capability of the GPU", reason)
    toolkit = toolkit or _least_toolkit(library, groups)
    judgements = [_cuda(groups, has, pair, gpu, toolkit) for pair in gpu.capabilities]
    judgement = max(judgements, key=lambda judgement: judgement.rank)
    return _of_whole(library, judgement)


def _of_whole(library: LibraryDoc, judgement: Judgement) -> Judgement:
    """Return a verdict; unknown where the part that was not read may have the code."""
    problem = library.get("problem")
    if problem is None or judgement.verdict != "lacks-device":
        return judgement
    return Judgement("unknown", judgement.has, judgement.needs, problem)


def _least_toolkit(library: LibraryDoc, groups: Groups) -> tuple[int, ...]:
    """Return the toolkit that a library was built with, at least."""
    for name in library.get("needed", ()):
        stem, _, major = name.partition(".so.")
        if stem == "libcudart" and major.partition(".")[0].isdigit():
            return (int(major.partition(".")[0]),)
    targets = _counts(groups)
    versions = [toolkit_of_ptx(isa_of(target)) for target in targets if target[:4] == "ptx_"]
    newest = max((_sorting(target)[1] for target in targets if target[:3] == "sm_"), default=0)
    versions += [(toolkit,) for code, toolkit in _FIRST_TOOLKIT if newest >= code]
    return max(versions, default=())


def _cuda(
    groups: Groups, has: str, pair: tuple[int, int], gpu: Gpu, toolkit: tuple[int, ...]
) -> Judgement:
    native = compiled = later = 0
    isas: list[tuple[int, ...]] = []
    for targets, count in groups:
        if any(runs_on(target, pair, toolkit) for target in targets):
            native += count
            continue
        fitting = [isa_of(target) for target in targets if compiles_on(target, pair)]
        if any(_knows(gpu, isa) for isa in fitting):
            compiled += count
        elif fitting:
            later += count
            isas.append(min(fitting))
    least = max(_counts(groups).values(), default=1) / SHARE
    name = f"sm_{pair[0]}{pair[1]}"
    floor = driver_of_toolkit(toolkit, gpu.os)
    if max(native, native + compiled) >= least and gpu.driver and gpu.driver < floor:
        return _needs_driver(has, gpu, floor, f"it is built with CUDA {text_of(toolkit)}")
    if native >= least:
        reason = f"it has machine code that runs on {name}"
        if not gpu.driver:
            reason += "; the driver's version is unknown"
        return Judgement("native", has, name, reason)
    if native + compiled >= least:
        reason = f"it has no machine code for {name}: the driver compiles its PTX at the first use"
        return Judgement("jit-only", has, f"machine code for {name}", reason)
    if native + compiled + later >= least:
        isa = min(isas)
        reason = f"its PTX {text_of(isa)} is newer than the driver can compile"
        return _needs_driver(has, gpu, driver_of_ptx(isa, gpu.os), reason)
    return Judgement("lacks-device", has, name, f"none of its code runs on {name}")


def _knows(gpu: Gpu, isa: tuple[int, ...]) -> bool:
    """Return whether the driver compiles a PTX ISA; an unknown driver is not held against it."""
    needed = driver_of_ptx(isa, gpu.os)
    return not gpu.driver or bool(needed and gpu.driver >= needed)


def _needs_driver(has: str, gpu: Gpu, driver: tuple[int, ...], reason: str) -> Judgement:
    needs = f"driver {dotted(driver)} or newer" if driver else "a driver newer than any known here"
    reason = f"{reason}, and the driver is {dotted(gpu.driver)}"
    return Judgement("needs-newer-driver", has, needs, reason)


def _amd(library: LibraryDoc, gpu: Gpu) -> Judgement:
    groups = library.get("hip", [])
    has = targets_text(groups)
    if gpu.processor is None:
        reason = f"the processor (gfx) of {gpu.name} is unknown"
        return Judgement("unknown", has, "the processor of the GPU", reason)
    count = sum(
        number
        for targets, number in groups
        if any(runs_on_gfx(target, gpu.processor, gpu.xnack) for target in targets)
    )
    if count and count >= max(_counts(groups).values()) / SHARE:
        return Judgement("native", has, gpu.processor, f"it has machine code for {gpu.processor}")
    if library.get("unread") or (library.get("packs") and not groups):
        reason = "its code is compressed, and nothing here can decompress it"
        if library.get("packs"):
            reason = "its code lies in kernel packs, and none is in this environment"
        return Judgement("unknown", has, gpu.processor, reason)
    reason = f"none of its code is for {gpu.processor}"
    return _of_whole(library, Judgement("lacks-device", has, gpu.processor, reason))


def _intel(library: LibraryDoc, gpu: Gpu, torch: bool) -> Judgement:
    versions = library.get("xe", [])
    has = _sycl_text(library)
    supported = {*TORCH["xpu"]["families"], *(() if torch else _OLDER_LEVEL_ZERO)}
    if not gpu.families:
        reason = f"the architecture of {gpu.name} is unknown"
        return Judgement("unknown", has, "the architecture of the GPU", reason)
    if not set(gpu.families) <= supported:
        reason = f"{gpu.target} is too old"
        if torch:
            reason = f"PyTorch's XPU does not support {gpu.target}"
        return Judgement(
            "lacks-device", has, "Intel Arc, Core Ultra or Data Center GPU Max", reason
        )
    if gpu.releases and all(runs_on_xe(versions, release) for release in gpu.releases):
        return Judgement("native", has, gpu.target, f"it has machine code for {gpu.target}")
    needs = f"machine code for {gpu.target}"
    if library.get("spirv"):
        reason = "its code is SPIR-V: Level Zero compiles it when it is loaded"
        if library.get("intel") == "native":
            reason = "its machine code is for other chips: Level Zero compiles its SPIR-V"
        return Judgement("jit-only", has, needs, reason)
    if not versions or any(runs_on_xe(versions, release) for release in gpu.releases):
        reason = "nobody here can tell which of Intel's chips its machine code is for"
        return Judgement("unknown", has, needs, reason)
    if not gpu.releases:
        return Judgement("unknown", has, needs, f"the IP version of {gpu.name} is unknown")
    return Judgement("lacks-device", has, needs, f"none of its code runs on {gpu.target}")


def _sycl_text(library: LibraryDoc) -> str:
    versions = ", ".join(library.get("xe", ()))
    if library.get("intel") != "native":
        return "SYCL as SPIR-V"
    built = f"SYCL for IP {versions}" if versions else "SYCL for named chips"
    return f"{built} and SPIR-V" if library.get("spirv") else built
