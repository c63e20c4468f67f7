"""Check what another process answered: texts become fit for a terminal, what is wrong is named."""

from __future__ import annotations

from probe_core.model.findings import SEVERITIES
from probe_core.model.readiness import STEPS
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import CheckFindingDoc, ResultDoc, Status
    from probe_core.doctor.document import WheelDoc

__all__ = ["VERDICTS", "RemoteCheck", "checked_answer", "checked_result"]

_STATUSES: dict[object, Status] = {
    "passed": "passed",
    "failed": "failed",
    "unknown": "unknown",
    "not_applicable": "not_applicable",
}
_TEXT = 1024
"""Characters of one text: a path (PATH_MAX is rarely used up), or three sentences."""

MAX_FINDINGS = 256
"""Findings of one check: sixteen wheels for each of sixteen GPUs."""


VERDICTS = (
    "native",
    "jit-only",
    "compiles",
    "needs-newer-driver",
    "lacks-device",
    "other-vendor",
    "cpu-build",
    "unknown",
)
"""What a distribution with GPU code can be for a device (docs/reference/wheels.md)."""


class RemoteCheck:
    """A check of another distribution, and its answer; None where only a list was asked for."""

    __slots__ = ("code", "distribution", "ms", "needs", "result", "step", "summary")

    def __init__(self, code: str, distribution: str) -> None:
        self.code = code
        self.distribution = distribution
        self.step = ""
        self.needs: tuple[str, ...] = ()
        self.summary = ""
        self.result: ResultDoc | None = None
        self.ms = 0.0


def checked_answer(frame: object, owner: str) -> RemoteCheck | str:
    """Return a frame of the child as an answer, or the sentence that says what is wrong with it."""
    if not isinstance(frame, dict):
        return "a check is no table"
    code = frame.get("code")
    if not isinstance(code, str) or not _is_code(code):
        return f"a check's code {str(code)[:40]!r} is not 1 to 60 of a-z, 0-9 and '-'"
    check = RemoteCheck(code, owner)
    check.step = frame["step"] if frame.get("step") in STEPS else ""
    needs = frame.get("needs")
    check.needs = tuple(_text(word) for word in needs[:64]) if isinstance(needs, list) else ()
    check.summary = _text(frame.get("summary"))
    if "result" not in frame:
        return check
    milliseconds = frame.get("ms")
    check.ms = float(milliseconds) if isinstance(milliseconds, (int, float)) else 0.0
    result = checked_result(frame["result"])
    if isinstance(result, str):
        return f"the check {code} {result}"
    check.result = result
    return check


def _is_code(text: str) -> bool:
    plain = text.replace("-", "a")
    return 0 < len(text) <= 60 and plain.isascii() and plain.isalnum() and text == text.lower()


def checked_result(value: object) -> ResultDoc | str:
    """Return a check's result, its texts clean; or what is wrong with it, without a subject."""
    if not isinstance(value, dict):
        return f"returned a {type(value).__name__}; return passed(), failed(…), unknown(reason)"
    status = _STATUSES.get(value.get("status") if isinstance(value.get("status"), str) else None)
    findings = value.get("findings", [])
    if status is None or not isinstance(findings, list):
        return "returned neither status nor findings; return passed(), failed(…), unknown(reason)"
    if status == "failed" and not findings:
        return "failed without a finding"
    checked = [_finding(entry) for entry in findings[:MAX_FINDINGS]]
    problem = next((entry for entry in checked if isinstance(entry, str)), None)
    if problem is not None:
        return problem
    reason = value.get("reason")
    result: ResultDoc = {
        "status": status,
        "findings": [entry for entry in checked if not isinstance(entry, str)],
        "reason": None if reason is None else _text(reason),
    }
    if status in ("unknown", "not_applicable") and not result["reason"]:
        return f"is {status} without a reason"
    if fix := _text(value.get("fix")):
        result["fix"] = fix
    facts = value.get("facts")
    if isinstance(facts, dict):
        pairs = list(facts.items())[:MAX_FINDINGS]
        result["facts"] = {_text(name): _text(text) for name, text in pairs if _text(name)}
    wheels = value.get("wheels")
    if isinstance(wheels, list):
        listed = map(_wheel, wheels[:MAX_FINDINGS])
        result["wheels"] = [wheel for wheel in listed if wheel is not None]
    return result


def _wheel(entry: object) -> WheelDoc | None:
    """Return a verdict with its texts clean; None where it names no wheel, device or verdict."""
    if not isinstance(entry, dict) or entry.get("verdict") not in VERDICTS:
        return None
    devices = entry.get("devices")
    ids = [_text(name) for name in devices[:MAX_FINDINGS]] if isinstance(devices, list) else []
    wheel: WheelDoc = {
        "wheel": _text(entry.get("wheel")),
        "devices": [name for name in ids if name],
        "verdict": entry["verdict"],
        "has": _text(entry.get("has")),
        "needs": _text(entry.get("needs")),
        "reason": _text(entry.get("reason")),
    }
    return wheel if wheel["wheel"] and wheel["devices"] else None


def _finding(entry: object) -> CheckFindingDoc | str:
    if not isinstance(entry, dict):
        return "has a finding that is no table"
    code, severity = entry.get("code"), entry.get("severity", "warning")
    if not isinstance(code, str) or not _is_code(code):
        return "has a finding without a code"
    if severity not in SEVERITIES:
        return f"has a finding whose severity is none of {', '.join(SEVERITIES)}"
    sentences = [_text(entry.get(name)) for name in ("what", "why", "fix")]
    if not all(sentences):
        return f"has a finding {code} that lacks what, why or fix"
    finding: CheckFindingDoc = {
        "code": code,
        "severity": severity,
        "what": sentences[0],
        "why": sentences[1],
        "fix": sentences[2],
        "device": _optional(entry, "device"),
        "prober": None,
        "setting": None,
        "variable": _optional(entry, "variable"),
        "step": entry["step"] if entry.get("step") in STEPS else None,
        "evidence": _optional(entry, "evidence"),
    }
    if (wheel := _optional(entry, "wheel")) is not None:
        finding["wheel"] = wheel
    if (has := _optional(entry, "has")) is not None:
        finding["has"] = has
    if (needs := _optional(entry, "needs")) is not None:
        finding["needs"] = needs
    return finding


def _optional(entry: dict[str, object], name: str) -> str | None:
    return _text(entry.get(name)) or None


def _text(value: object) -> str:
    return clean_text(value, _TEXT) if isinstance(value, str) else ""
