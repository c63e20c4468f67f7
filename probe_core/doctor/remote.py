"""Run the checks of other distributions, each set in a process of its own."""

from __future__ import annotations

from probe_core.doctor.answers import RemoteCheck, checked_answer
from probe_core.doctor.check import ENVIRONMENT, failed, finding
from probe_core.doctor.child import TARGET
from probe_core.registry.prober import Prober
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.doctor.check import Request
    from probe_core.doctor.installed import CheckSet
    from probe_core.doctor.remembered import Memory
    from probe_core.isolation.run import Run

__all__ = ["Remote", "run_installed"]


class Remote:
    """What the installed sets answered; `problems` maps an owner to why its checks did not run."""

    __slots__ = ("checks", "problems")

    def __init__(self) -> None:
        self.checks: list[RemoteCheck] = []
        self.problems: list[tuple[str, str]] = []


def run_installed(sets: Sequence[CheckSet], request: Request, *, list_only: bool = False) -> Remote:
    """Run the sets in parallel, each under its deadline.

    A set whose manifest needs an environment is not started where none is to be looked at.
    """
    remote = Remote()
    remote.problems = [(entry.owner, entry.problem) for entry in sets if entry.problem]
    usable = [entry for entry in sets if not entry.problem]
    if not list_only and request.environment is None:
        usable = [entry for entry in usable if ENVIRONMENT not in entry.needs]
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
