"""Check what another process answered: texts become fit for a terminal, what is wrong is named."""

from __future__ import annotations

from probe_core.doctor.check import ENVIRONMENT, failed, finding
from probe_core.doctor.child import TARGET
from probe_core.model.ids import SEVERITIES, STEPS
from probe_core.registry.prober import Prober
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.doctor.check import CheckFindingDoc, Request, ResultDoc
    from probe_core.doctor.document import WheelDoc
    from probe_core.doctor.installed import CheckSet
    from probe_core.doctor.remembered import Memory
    from probe_core.isolation.run import Run


_STATUSES = ("passed", "failed", "unknown", "not_applicable")
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
    status, findings = value.get("status"), value.get("findings", [])
    if status not in _STATUSES or not isinstance(findings, list):
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
    names = ("device", "variable", "evidence", "wheel", "has", "needs")
    facts = {name: _text(entry.get(name)) or None for name in names}
    step = entry["step"] if entry.get("step") in STEPS else None
    what, why, fix = sentences
    return finding(code, what=what, why=why, fix=fix, severity=severity, step=step, **facts)


def _text(value: object) -> str:
    return clean_text(value, _TEXT) if isinstance(value, str) else ""


# Run the checks of other distributions, each set in a process of its own.


class Remote:
    """What the installed sets answered; `problems` maps an owner to why its checks did not run."""

    def __init__(self) -> None:
        self.checks: list[RemoteCheck] = []
        self.problems: list[tuple[str, str]] = []


def run_installed(sets: Sequence[CheckSet], request: Request, *, list_only: bool = False) -> Remote:
    """Run the sets in parallel, each under its deadline.

    A set whose manifest needs what the request has not, such as an environment, is not started.
    """
    remote = Remote()
    remote.problems = [(entry.owner, entry.problem) for entry in sets if entry.problem]
    usable = [entry for entry in sets if not entry.problem]
    if not list_only:
        usable = [entry for entry in usable if request.supplies(entry.needs)]
    memories = [None if list_only else _memory(entry, request) for entry in usable]
    pairs = [
        (entry, memory)
        for entry, memory in zip(usable, memories, strict=True)
        if memory is None or not _recalled(memory, entry.owner, remote)
    ]
    if not pairs:
        return remote
    from probe_core.isolation.launch import cannot_start, run_probers

    if (reason := cannot_start()) is not None:
        remote.problems += [(entry.owner, reason) for entry, _ in pairs]
        return remote
    probers = [_prober(entry, number) for number, (entry, _) in enumerate(pairs)]
    asked: Mapping[str, object] = {
        "targets": [entry.prober.target for entry, _ in pairs],
        "remembers": [memory is not None for _, memory in pairs],
        "report": request.report,
        "environment": request.environment,
        "device": request.device,
        "assumed": request.assumed,
        "access": dict(request.machine.access),
        "list": list_only,
    }
    runs = run_probers(probers, request.machine, [asked])
    by_target = {TARGET.format(number): pair for number, pair in enumerate(pairs)}
    for run in runs:
        entry, memory = by_target[run.prober.target]
        _take(run, remote, memory)
        unread = request.environment is not None and ENVIRONMENT in entry.needs
        if unread and run.status not in ("ok", "not_applicable"):
            remote.checks.append(_unread(entry.owner, run, request))
    return remote


def _unread(owner: str, run: Run, request: Request) -> RemoteCheck:
    """Return the finding about an environment whose checks hang or crash: nobody knows of it."""
    check = RemoteCheck("environment-unreadable", owner)
    check.needs = (ENVIRONMENT,)
    name = clean_text(request.environment or "", 200)
    entry = finding(
        check.code,
        what=f"the Python environment {name} was not read to its end",
        why=f"the checks of {owner} ended with {run.status}: {run.reason}",
        fix="try again, or name a copy on a disk of this computer: probe doctor --env FOLDER",
        severity="error",
        evidence=name,
    )
    check.result = failed(entry)
    return check


def _memory(entry: CheckSet, request: Request) -> Memory | None:
    """Return where answers of a set are remembered; None for a set that names no variables."""
    if entry.variables is None or request.environment is None:
        return None
    from probe_core.doctor.remembered import Memory

    return Memory(entry, request)


def _recalled(memory: Memory, owner: str, remote: Remote) -> bool:
    """Take the remembered answers of a set; return whether there are any that hold."""
    checks = [checked_answer(frame, owner) for frame in memory.answers()]
    sound = [check for check in checks if not isinstance(check, str)]
    if len(sound) < len(checks):
        return False
    remote.checks += sound
    return bool(sound)


def _prober(entry: CheckSet, number: int) -> Prober:
    own = entry.prober
    prober = Prober(own.name, TARGET.format(number), own.distribution, own.version)
    prober.deadline_s, prober.needs_site = own.deadline_s, own.needs_site
    return prober


def _take(run: Run, remote: Remote, memory: Memory | None) -> None:
    owner = run.prober.owner
    files: dict[str, str] = {}
    answers, before = [], len(remote.problems)
    for frame in run.sightings:
        if memory is not None and isinstance(frame, dict) and "files" in frame:
            files = frame["files"]
            continue
        answer = checked_answer(frame, owner)
        if isinstance(answer, str):
            remote.problems.append((owner, answer))
        else:
            remote.checks.append(answer)
            answers.append({**frame, "ms": 0.0})
    if run.status not in ("ok", "not_applicable"):
        remote.problems.append((owner, f"{run.status}: {run.reason}"))
    if memory is not None and files and len(remote.problems) == before:
        memory.keep(answers, files)
