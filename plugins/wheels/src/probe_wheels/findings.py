"""What is wrong with an environment: damage, and code that does not fit, with its repair."""

from __future__ import annotations

from probe_core.wording import clean_text
from probe_wheels.choice import JETPACK, best_build, choose, is_jetson, pin_of, why_no_build
from probe_wheels.distributions import normal
from probe_wheels.environment import Problem
from probe_wheels.files import Exhausted, Opened
from probe_wheels.formats.executables import ELF_MAGIC, MACHO_MAGICS, elf_machine
from probe_wheels.frameworks import framework_of
from probe_wheels.judging import title
from probe_wheels.records import VENDOR_NAMES
from probe_wheels.rules import ARCHES, DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from probe_core.doctor.document import CheckFindingDoc
    from probe_core.model.document import ReportDoc, Severity
    from probe_wheels.devices import Gpu
    from probe_wheels.documents import DistributionDoc, FrameworkDoc, VerdictDoc
    from probe_wheels.environment import Environment
    from probe_wheels.files import Budget


MAX_NAMES = 3
"""Files that a sentence names; the others are counted."""

MAX_PROBLEMS = 32

_SYSTEMS = (
    (ELF_MAGIC, "linux", "Linux"),
    (b"MZ", "windows", "Windows"),
    *((magic, "darwin", "macOS") for magic in MACHO_MAGICS),
)
"""First bytes of programs, the system that starts them as the report calls it, its name."""


def environment_problems(
    environment: Environment,
    documents: Iterable[DistributionDoc],
    report: ReportDoc,
    budget: Budget,
) -> list[Problem]:
    """Return the problems of an environment, its interpreter and its distributions' files."""
    problems = list(environment.problems)
    arch = report["node"]["arch"]
    arch = ARCHES.get(arch, arch)
    problems += _of_interpreter(environment, report, arch, budget)
    for document in documents:
        problems += _of_distribution(document, arch)
    problems += _of_files(budget)
    return problems[:MAX_PROBLEMS]


def _of_files(budget: Budget) -> Iterator[Problem]:
    """Yield a problem for each file that is there and cannot be read."""
    for path, reason in sorted(budget.faults.items()):
        folder, _, name = path.rpartition("/")
        owner = folder.rpartition("/")[2]
        shown = clean_text(f"{owner}/{name}")
        yield Problem(
            "environment-file-damaged",
            f"{shown} cannot be read",
            clean_text(reason),
            _repair(path, owner, name),
            evidence=clean_text(f"{path}: {reason}"),
            severity="warning",
        )


def _repair(path: str, owner: str, name: str) -> str:
    package = clean_text(owner.partition("-")[0].replace("_", "-"))
    if owner == "conda-meta":
        package = clean_text(name.rpartition("-")[0].rpartition("-")[0])
        return f"reinstall it: conda install --force-reinstall {package}"
    if owner.endswith((".dist-info", ".egg-info")):
        return f"reinstall it: pip install --force-reinstall {package}"
    if name == "pyvenv.cfg":
        return f"make the environment again: python3 -m venv --clear {clean_text(path[:-11])}"
    return f"look at it: ls -ld {clean_text(path)}"


def _of_interpreter(
    environment: Environment, report: ReportDoc, arch: str, budget: Budget
) -> Iterator[Problem]:
    path = environment.interpreter
    if path is None or environment.problems:
        return
    built = _machine_of(path, budget, arch, report["node"]["os"])
    if built is not None:
        yield Problem(
            "environment-other-architecture",
            f"the Python of {environment.prefix} is built for {built}",
            f"this computer is {report['node']['os']} on {arch}: nothing there runs natively on it",
            f"make an environment with a Python for {arch}",
            evidence=f"{path}: {built}",
        )


def _machine_of(path: str, budget: Budget, arch: str, os: str) -> str | None:
    """Return what a program is built for, by its first bytes; None for this computer, or a script.

    A universal program of macOS has code for several machines and counts as built for this one.
    """
    try:
        with Opened(path, budget) as file:
            head = file.read(0, 20)
    except (OSError, Exhausted):
        return None
    for magic, system, name in _SYSTEMS:
        if head.startswith(magic) and system != os:
            return name
    built = elf_machine(head)
    return built if built != arch else None


def _of_distribution(document: DistributionDoc, arch: str) -> Iterator[Problem]:
    name, _, version = title(document).partition(" ")
    again = f"reinstall it: pip install --force-reinstall {name}"
    if document["missing"]:
        yield Problem(
            "wheel-files-missing",
            f"{name} {version} lists libraries that are not there",
            "its RECORD names files that somebody removed, or that were never installed",
            again,
            evidence=_names(document["missing"]),
            severity="warning",
        )
    if document["outside"]:
        yield Problem(
            "wheel-record-wrong",
            f"{name} {version} lists libraries outside of the environment",
            "its RECORD has paths that lead out of site-packages; they were not read",
            again,
            evidence=_names(document["outside"]),
            severity="warning",
        )
    damaged = {
        path: library["problem"]
        for path, library in document["files"].items()
        if library.get("problem")
    }
    if damaged:
        path, problem = next(iter(damaged.items()))
        yield Problem(
            "wheel-library-damaged",
            f"a library of {name} {version} cannot be read",
            clean_text(f"{path.rpartition('/')[2]}: {problem}"),
            again,
            evidence=_names(list(damaged)),
        )
    if "note" in document:
        yield Problem(
            "environment-too-large",
            f"{name} {version} was not read",
            document["note"],
            "name a smaller environment, or try again: what was read is cached",
            severity="warning",
        )
    yield from _of_other_machine(document, arch)


def _of_other_machine(document: DistributionDoc, arch: str) -> Iterator[Problem]:
    """Yield a problem where all libraries of a distribution are for another architecture."""
    built = [
        {ARCHES.get(name, name) for name in library["machines"]} - {"cuda", "amdgpu"}
        for library in document["files"].values()
        if library.get("machines")
    ]
    built = [names for names in built if names]
    if built and not any(arch in names for names in built):
        names = " and ".join(sorted(set().union(*built)))
        wheel = title(document)
        yield Problem(
            "wheel-other-architecture",
            f"{wheel} is built for {names}",
            f"this computer is {arch}: Python cannot load its libraries",
            f"install it with a Python for {arch}: pip install {wheel.partition(' ')[0]}",
            evidence=_names(list(document["files"])[:1]),
        )


def _names(paths: list[str]) -> str:
    named = ", ".join(map(clean_text, paths[:MAX_NAMES]))
    return f"{named} and {len(paths) - MAX_NAMES} more" if len(paths) > MAX_NAMES else named


# The line that installs a build with code for a device, or the driver for the build.


def repair_of(
    verdict: VerdictDoc,
    gpu: Gpu,
    extra: Mapping[str, FrameworkDoc] | None = None,
    *,
    served: bool = False,
) -> str:
    """Return one line that repairs a verdict, or says that nothing published would.

    `served` is whether another device of the node runs the wheel.
    """
    name = verdict["wheel"].partition(" ")[0]
    entry = framework_of(name, extra)
    key, framework = entry or ("", None)
    kind = verdict["verdict"]
    if kind == "jit-only" or (served and (kind == "other-vendor" or not gpu.discrete)):
        return "nothing to do"
    if kind == "lacks-device" and framework and _is_too_old(framework, gpu):
        return framework["instead"]
    install = _install(name, framework, gpu)
    if kind == "lacks-device" and not (framework and framework.get("published")):
        install = None  # the same build again would lack the device again
    if kind == "needs-newer-driver":
        driver = f"install {verdict['needs'].removesuffix(' or newer')} of NVIDIA or a newer one"
        return f"{driver}; or: {install}" if install else driver
    if install:
        return install
    if kind == "other-vendor" and framework and gpu.vendor not in framework["builds"]:
        vendor = VENDOR_NAMES.get(gpu.vendor, gpu.vendor)
        return f"use another GPU for {name}: its makers publish no build for {vendor}"
    # The variable counts for all GPUs: it would take the code away from the one that runs it.
    if kind == "lacks-device" and not served and (offer := _override(verdict, gpu)):
        return offer
    return _by_hand(name, key, gpu, kind)


def _is_too_old(framework: FrameworkDoc, gpu: Gpu) -> bool:
    """Return whether nothing that the makers publish, source or build, supports the GPU."""
    pairs = gpu.capabilities if "instead" in framework else ()
    return any(10 * major + minor < framework.get("least", 0) for major, minor in pairs)


def _override(verdict: VerdictDoc, gpu: Gpu) -> str | None:
    """Return the variable that makes an AMD GPU take a sibling's code, if the wheel has that."""
    if gpu.os != "linux":
        return None  # the variable does nothing on Windows (ROCm/TheRock #1719)
    entry = DRIVERS["override"].get(gpu.processor or "")
    if not isinstance(entry, list) or entry[0] not in verdict["has"]:
        return None
    sibling, value = entry
    note = f"it then takes the code for {sibling}, which often works and AMD does not support"
    return f"try: export HSA_OVERRIDE_GFX_VERSION={value}  ({note})"


def _by_hand(name: str, key: str, gpu: Gpu, kind: str) -> str:
    reason = why_no_build(gpu) if key.startswith("torch") else None
    if reason and is_jetson(gpu):
        return f"install {name} for JetPack: {JETPACK}"
    if reason:
        return f"use {name} on the CPU: {reason}"
    if not key and kind == "other-vendor":
        return f"use another GPU for {name}, or see whether its documentation names another build"
    target = gpu.target or gpu.name
    return f"install a build of {name} for {target}, or build it from source for {target}"


def _install(name: str, framework: FrameworkDoc | None, gpu: Gpu) -> str | None:
    template = framework.get("fix", {}).get(gpu.vendor) if framework else None
    if template is None:
        return None
    if "{torch}" in template and why_no_build(gpu) is not None:
        return None
    if "{major}" in template and not gpu.capabilities:
        return None
    return (
        template.replace("{torch}", _torch(gpu) if "{torch}" in template else "")
        .replace("{major}", _major(gpu))
        .replace("{name}", normal(name))
    )


def _torch(gpu: Gpu) -> str:
    """Return PyTorch as `uv pip install` takes it: ``'torch<2.11' --torch-backend=cu128``."""
    choice = best_build(gpu, [gpu]) if gpu.vendor == "nvidia" else choose([_alone(gpu)])
    pin = pin_of(choice.series)
    quoted = f"'{pin}'" if "<" in pin else pin
    return f"{quoted} --torch-backend={choice.backend}"


def _alone(gpu: Gpu) -> Gpu:
    """Return a device as if it could be used: the repair of a wheel is not that of a driver."""
    from copy import copy

    alone = copy(gpu)
    alone.usable = True
    return alone


def _major(gpu: Gpu) -> str:
    """Return the newest CUDA major version that device and driver both take."""
    new = min(gpu.capabilities, default=(0, 0)) >= (7, 5)
    return "13" if new and (not gpu.driver or gpu.driver >= (580,)) else "12"


# Verdicts as findings.

CODES = {
    "lacks-device": "wheel-lacks-device",
    "jit-only": "wheel-jit-only",
    "needs-newer-driver": "wheel-needs-newer-driver",
    "cpu-build": "wheel-is-cpu-build",
    "other-vendor": "wheel-of-other-vendor",
}
"""Verdict to the code of its finding; the others are no findings."""

_TEMPLATES = {
    "lacks-device": "{wheel} has no code for {name}",
    "jit-only": "{wheel} has no machine code for {name}: it is compiled at the first start",
    "needs-newer-driver": "{wheel} needs a newer driver for {name}",
    "cpu-build": "{wheel} is a CPU build: it does not use {name}",
    "other-vendor": "{wheel} is built for another vendor's GPUs: it does not use {name}",
}

# CUDA caches what it compiled in ~/.nv/ComputeCache; Level Zero in ~/.cache/neo_compiler_cache.
_COST = (
    "The first start takes minutes for a large framework, and again after each update of the"
    " driver or the wheel; it is cached in between."
)


def findings_of(
    verdicts: Iterable[VerdictDoc],
    gpus: Sequence[Gpu],
    extra: Mapping[str, FrameworkDoc] | None = None,
) -> list[CheckFindingDoc]:
    """Return a finding for each verdict that somebody should know of, worst first."""
    listed = list(verdicts)
    by_id = {gpu.id: gpu for gpu in gpus}
    served = {
        verdict["wheel"]
        for verdict in listed
        if verdict["verdict"] in ("native", "jit-only", "compiles")
    }
    findings = [
        _finding(verdict, by_id[verdict["device"]], verdict["wheel"] in served, extra)
        for verdict in listed
        if verdict["verdict"] in CODES
    ]
    order = ("error", "warning", "info")
    return sorted(findings, key=lambda finding: order.index(finding["severity"]))


def _finding(
    verdict: VerdictDoc, gpu: Gpu, served: bool, extra: Mapping[str, FrameworkDoc] | None
) -> CheckFindingDoc:
    kind = verdict["verdict"]
    reason = verdict["why"][:1].upper() + verdict["why"][1:] + "."
    if kind == "jit-only":
        reason = f"{reason} {_COST}"
    library = verdict["library"]
    finding = finding_of(
        CODES[kind],
        _severity(verdict, gpu, served, extra),
        _TEMPLATES[kind].format(wheel=verdict["wheel"], name=gpu.name),
        reason,
        repair_of(verdict, gpu, extra, served=served),
        f"{library}: {verdict['has']}" if library else verdict["has"],
        gpu.id,
    )
    finding["step"] = "runtime"
    finding["wheel"], finding["has"] = verdict["wheel"], verdict["has"]
    finding["needs"] = verdict["needs"]
    return finding


def _severity(
    verdict: VerdictDoc, gpu: Gpu, served: bool, extra: Mapping[str, FrameworkDoc] | None
) -> Severity:
    """Return how bad a verdict is.

    It is a hint only where another device of the node runs the wheel and this one is its lesser
    (an APU beside a card), or another vendor's; where the device itself cannot be used; and where
    no build of the framework would be better.
    """
    kind = verdict["verdict"]
    entry = framework_of(verdict["wheel"].partition(" ")[0], extra)
    if kind == "jit-only" or gpu.usable is False:
        return "info"
    if entry is not None and entry[0] == "components":
        return "info"  # the framework that needs it has its own finding
    if served and (kind == "other-vendor" or not gpu.discrete):
        return "info"
    if kind == "other-vendor" and entry is not None and gpu.vendor not in entry[1]["builds"]:
        return "info"  # numba compiles for NVIDIA alone, and works on the CPU of any node
    if kind in ("cpu-build", "other-vendor"):
        on_torch = entry is not None and entry[0].startswith("torch")
        has_none = on_torch and not is_jetson(gpu) and why_no_build(gpu)
        return "info" if has_none else "warning"
    return "warning" if served else "error"


def problem_finding(problem: Problem) -> CheckFindingDoc:
    """Return a problem of the environment itself as a finding."""
    severity: Severity = "error" if problem.severity == "error" else "warning"
    about = problem.summary, problem.reason, problem.fix, problem.evidence
    return finding_of(problem.code, severity, *about)


def finding_of(
    code: str,
    severity: Severity,
    what: str,
    why: str,
    fix: str,
    evidence: str | None,
    device: str | None = None,
) -> CheckFindingDoc:
    """Return a finding of one of the checks; of no step, and about no wheel."""
    return {
        "code": code,
        "severity": severity,
        "what": what,
        "why": why,
        "fix": fix,
        "device": device,
        "prober": None,
        "setting": None,
        "variable": None,
        "step": None,
        "evidence": evidence,
    }
