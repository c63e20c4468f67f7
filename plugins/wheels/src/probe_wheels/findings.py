"""Verdicts as findings: what is wrong with a wheel for a device, and the line that repairs it."""

from __future__ import annotations

from probe_wheels.choice import why_no_build
from probe_wheels.frameworks import framework_of
from probe_wheels.repair import repair_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import Severity
    from probe_wheels.devices import Gpu
    from probe_wheels.documents import FrameworkDoc, VerdictDoc, WheelFindingDoc
    from probe_wheels.problem import Problem

__all__ = ["CODES", "findings_of", "problem_finding"]

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
) -> list[WheelFindingDoc]:
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
) -> WheelFindingDoc:
    kind = verdict["verdict"]
    reason = verdict["why"][:1].upper() + verdict["why"][1:] + "."
    if kind == "jit-only":
        reason = f"{reason} {_COST}"
    library = verdict["library"]
    return {
        "code": CODES[kind],
        "severity": _severity(verdict, gpu, served, extra),
        "what": _TEMPLATES[kind].format(wheel=verdict["wheel"], name=gpu.name),
        "why": reason,
        "fix": repair_of(verdict, gpu, extra, served=served),
        "device": gpu.id,
        "prober": None,
        "setting": None,
        "variable": None,
        "step": "runtime",
        "evidence": f"{library}: {verdict['has']}" if library else verdict["has"],
        "wheel": verdict["wheel"],
        "has": verdict["has"],
        "needs": verdict["needs"],
    }


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
    if kind == "jit-only" or gpu.state == "blocked" or not gpu.visible:
        return "info"
    if entry is not None and entry[0] == "components":
        return "info"  # the framework that needs it has its own finding
    if served and (kind == "other-vendor" or not gpu.discrete):
        return "info"
    if kind == "other-vendor" and entry is not None and gpu.vendor not in entry[1]["builds"]:
        return "info"  # numba compiles for NVIDIA alone, and works on the CPU of any node
    if kind in ("cpu-build", "other-vendor"):
        on_torch = entry is not None and entry[0].startswith("torch")
        return "info" if on_torch and why_no_build(gpu) else "warning"
    return "warning" if served else "error"


def problem_finding(problem: Problem) -> WheelFindingDoc:
    """Return a problem of the environment itself as a finding."""
    severity: Severity = "error" if problem.severity == "error" else "warning"
    return {
        "code": problem.code,
        "severity": severity,
        "what": problem.summary,
        "why": problem.reason,
        "fix": problem.fix,
        "device": None,
        "prober": None,
        "setting": None,
        "variable": None,
        "step": None,
        "evidence": problem.evidence,
    }
