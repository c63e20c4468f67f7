"""The checks of `probe doctor --env`: which of this node's devices each wheel has code for.

They have the attributes that the doctor's `Check` asks for, and import nothing of the doctor.
"""

from __future__ import annotations

import os
import sys

from probe_wheels.frameworks import framework_of
from probe_wheels.judging import title
from probe_wheels.rules import FOLDER
from probe_wheels.surveying import survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request
    from probe_core.doctor.document import ResultDoc, WheelDoc
    from probe_wheels.surveying import Survey


_WHEELS = {
    "wheel-lacks-device": "A wheel has no code for a device of this node.",
    "wheel-needs-newer-driver": "A wheel needs a newer driver than this node has.",
    "wheel-is-cpu-build": "A wheel is built for the CPU, and there is a GPU that it could use.",
    "wheel-of-other-vendor": "A wheel is built for another vendor's GPUs.",
    "wheel-jit-only": "A wheel's code is compiled by the driver when it first starts.",
}
"""Causes about a wheel and a device, by the code of their findings."""

_FIRST = "wheel-lacks-device"
"""The check that hands the facts over; any would do."""

_ENVIRONMENT = {
    "environment-missing": "The interpreter or folder does not exist, or no environment is active.",
    "environment-unreadable": "The environment cannot be read.",
    "environment-broken": "The environment has no packages, or its interpreter is gone.",
    "environment-other-architecture": "The environment's Python is for another architecture.",
    "environment-file-damaged": "A file of the environment cannot be read, or is cut.",
    "environment-too-large": "There was no time to read all of the environment.",
    "wheel-other-architecture": "A wheel is built for another architecture.",
    "wheel-files-missing": "A wheel lists libraries that are not there.",
    "wheel-record-wrong": "A wheel lists libraries outside of the environment.",
    "wheel-library-damaged": "A library of a wheel is cut, empty or no library.",
    "frameworks-unusable": "A distribution's table of frameworks has a mistake.",
}
"""Causes about the environment and its files."""


VARIABLES = (
    "BNB_CUDA_VERSION", "BNB_ROCM_VERSION", "BNB_XPU_VERSION", "CONDA_PREFIX", "HOME", "HSA_XNACK",
    "LOCALAPPDATA", "PATH", "PYENV_VERSION", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONUSERBASE",
    "VIRTUAL_ENV", "XDG_CACHE_HOME",
)  # fmt: skip
"""All variables that an answer depends on; check.json has the same list, for the doctor."""


def _survey(request: Request) -> Survey:
    return request.once("probe-wheels", lambda: _look(request))


def _look(request: Request) -> Survey:
    # A recorded machine has its own variables; the cache and the home are those of this process.
    source = request.machine.environ if request.machine.live else os.environ
    environ = {name: source[name] for name in VARIABLES if name in source}
    result = survey(request.environment, request.report, environ, device=request.device)
    if result.paths:
        request.remember(result.paths | _own_files())
    return result


def _own_files() -> set[str]:
    """Return the files of the code and tables that judged: a newer one may judge otherwise."""
    own = ("probe_wheels", "probe_chipdb", "probe_core")
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in own]
    files = {file for module in modules if (file := getattr(module, "__file__", None))}
    return files | {str(path) for path in FOLDER.iterdir()}


class WheelCheck:
    """One check: it answers with the findings of its code."""

    step = "runtime"
    needs = ("environment",)

    def __init__(self, code: str, summary: str) -> None:
        self.code = code
        self.summary = summary

    def run(self, request: Request) -> ResultDoc:
        """Return the findings of one look, which all checks share."""
        result = _survey(request)
        answer = self._answer(result)
        if self.code == _FIRST:
            answer["facts"] = _facts(result)
            answer["wheels"] = _wheels(result)
        return answer

    def _answer(self, result: Survey) -> ResultDoc:
        findings = [finding for finding in result.findings if finding["code"] == self.code]
        if findings:
            return {"status": "failed", "findings": findings, "reason": None}
        if self.code in _WHEELS and not result.verdicts:
            reason = "no wheel of the environment has to do with a device of this node"
            return {"status": "not_applicable", "findings": [], "reason": reason}
        unknown = [entry for entry in result.verdicts if entry["verdict"] == "unknown"]
        if self.code == _FIRST and unknown:
            first = unknown[0]
            reason = f"{first['wheel']} cannot be judged: {first['why']}"
            return {"status": "unknown", "findings": [], "reason": reason}
        return {"status": "passed", "findings": [], "reason": None}


def _wheels(result: Survey) -> list[WheelDoc]:
    """Return all verdicts, equal devices of one wheel together, in the order of the names.

    An environment of another architecture runs nothing here, whatever its wheels have code for.
    """
    if any(entry["code"] == "environment-other-architecture" for entry in result.findings):
        return []
    groups: dict[tuple[str, ...], WheelDoc] = {}
    for verdict in sorted(result.verdicts, key=lambda entry: entry["wheel"].lower()):
        name, has, needs = verdict["wheel"], verdict["has"], verdict["needs"]
        key = (name, verdict["verdict"], has, needs, verdict["why"])
        group = groups.setdefault(
            key,
            {
                "wheel": name,
                "devices": [],
                "verdict": verdict["verdict"],
                "has": has,
                "needs": needs,
                "reason": verdict["why"],
            },
        )
        group["devices"].append(verdict["device"])
    return list(groups.values())


def _facts(result: Survey) -> dict[str, str]:
    """Return the versions of what has code for GPUs, or is a framework: a baseline keeps them."""
    facts = {}
    for document in result.distributions:
        if document["files"] or framework_of(document["name"]):
            name, _, version = title(document).partition(" ")
            build = document["build"] or ""
            facts[f"wheel {name}"] = version if build in version else f"{version} ({build})"
    return facts


CHECKS = [WheelCheck(code, summary) for code, summary in {**_WHEELS, **_ENVIRONMENT}.items()]
