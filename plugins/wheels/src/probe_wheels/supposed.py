"""The check of `probe doctor --if torch=…`: whether that series has code for the devices here."""

from __future__ import annotations

from probe_wheels.choice import fitting_builds, why_no_build
from probe_wheels.devices import gpus_of
from probe_wheels.findings import finding_of
from probe_wheels.rules import (
    TORCH,
    cuda_of_driver,
    dotted,
    driver_of_toolkit,
    text_of,
    version_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request
    from probe_core.doctor.document import CheckFindingDoc, ResultDoc, Status
    from probe_core.model.document import Severity
    from probe_wheels.devices import Gpu
    from probe_wheels.documents import BuildDoc


CODE = "supposed-torch"
HINT = "supposed-build"
_OLDEST = (2, 10)
"""The oldest series that is judged: data/torch.toml says of a build which series was its last, and
not which was its first; all that are built now were built then (that of CUDA 13.0 is recalled)."""

_UNLISTED = "the builds that a series has are listed for NVIDIA's GPUs alone"


class SupposedCheck:
    """The check; see `probe_core.doctor.check.Check`."""

    code = CODE
    step = "runtime"
    needs = ("report",)
    summary = "Whether the assumed PyTorch has code for the devices, and the driver runs it."

    def run(self, request: Request) -> ResultDoc:
        """Return a finding for each device that the series leaves out."""
        series = version_of(request.assumed.get("torch", ""))[:2]
        if not series and "driver" not in request.assumed:
            return _without("neither a PyTorch nor a driver is assumed")
        gpus = gpus_of(request.report, {})
        own = [gpu for gpu in gpus if gpu.vendor == "nvidia"]
        if not series:
            if not own:
                return _without("only of NVIDIA's drivers it is listed what runs on them")
            return _of_driver(own[0], request.assumed["driver"])
        if not gpus:
            return _without("no GPU is here that PyTorch could have code for")
        if len(series) < 2 or series < _OLDEST:
            return _without(
                f"which builds PyTorch had before {text_of(_OLDEST)} is not listed", "unknown"
            )
        findings = [_finding(gpu, series) for gpu in {gpu.kind: gpu for gpu in own}.values()]
        # A processor's own GPU beside one of NVIDIA's is not what PyTorch is meant for.
        rest = [gpu for gpu in gpus if gpu.vendor != "nvidia" and (gpu.discrete or not own)]
        others = {gpu.kind: gpu for gpu in rest}
        findings += [_unlisted(gpu, series) for gpu in others.values()]
        if any(finding["severity"] != "info" for finding in findings):
            return {"status": "failed", "findings": findings, "reason": None}
        if others:
            return {"status": "unknown", "findings": findings, "reason": _UNLISTED}
        return {"status": "passed", "findings": findings, "reason": None}


def _without(reason: str, status: Status = "not_applicable") -> ResultDoc:
    return {"status": status, "findings": [], "reason": reason}


def _of_driver(gpu: Gpu, name: str) -> ResultDoc:
    """Return the hint which CUDA an assumed driver has: what is built for a newer one stops."""
    newest = cuda_of_driver(gpu.driver, gpu.os)
    if not newest:
        return _without(f"which CUDA the driver {name} has is not known", "unknown")
    what = f"the driver {name} has CUDA {text_of(newest)}"
    why = f"machine code of CUDA {newest[0]} and older runs, PTX of {text_of(newest)} and older"
    finding = _made(gpu, HINT, "info", what, why, "nothing to do")
    finding["device"] = None  # it is the driver's, whichever GPU that takes
    return {"status": "passed", "findings": [finding], "reason": None}


def _finding(gpu: Gpu, series: tuple[int, ...]) -> CheckFindingDoc:
    name = f"PyTorch {text_of(series)}"
    if not gpu.capabilities:
        why = "its compute capability is unknown"
        return _made(gpu, CODE, "warning", f"{name}: not judged", why, "nothing to do")
    fitting = fitting_builds(gpu)
    there = [build for build in fitting if _has(build, series)]
    if not there:
        last = max((version_of(build["until"]) for build in fitting), default=())
        fix = f"pip install 'torch<{last[0]}.{last[1] + 1}'" if last else "nothing to do"
        what = f"{name} has no code for {gpu.target}"
        why = f"{text_of(last)} is the last that has" if last else "no listed build has"
        return _made(gpu, CODE, "error", what, why, fix)
    floors = {
        build["backend"]: driver_of_toolkit(version_of(build["toolkit"]), gpu.os) for build in there
    }
    running = [name for name, floor in floors.items() if not gpu.driver or gpu.driver >= floor]
    if not running:
        least = dotted(min(floors.values()))
        what = f"{name} needs the driver {least}; {dotted(gpu.driver)} is assumed or here"
        why = f"its builds: {', '.join(floors)}"
        return _made(gpu, CODE, "error", what, why, f"install the driver {least} or newer")
    rest = "" if gpu.driver else "; the driver's version is unknown"
    what = f"{name} has code for {gpu.target}"
    return _made(gpu, HINT, "info", what, f"builds: {', '.join(running)}{rest}", "nothing to do")


def _unlisted(gpu: Gpu, series: tuple[int, ...]) -> CheckFindingDoc:
    """Return the hint that nothing tells of a series, and what the builds of today have.

    For ROCm and XPU data/torch.toml has the build of its date, and not those of a series.
    """
    target = gpu.target or gpu.name
    listed = why_no_build(gpu) or f"a build has code for {target}"
    what = f"PyTorch {text_of(series)}: whether it has code for {target} is not known"
    why = f"{_UNLISTED}; by the list of {TORCH['date']} {listed}"
    return _made(gpu, HINT, "info", what, why, "nothing to do")


def _has(build: BuildDoc, series: tuple[int, ...]) -> bool:
    """Return whether a series is built so: up to the last that the row names, "" for none."""
    return not build["until"] or version_of(build["until"]) >= series


def _made(
    gpu: Gpu, code: str, severity: Severity, what: str, why: str, fix: str
) -> CheckFindingDoc:
    return finding_of(code, severity, what, why, fix, why, gpu.id)


CHECKS = [SupposedCheck()]
