"""Run the checks of other distributions, each set in a process of its own."""

from __future__ import annotations

from probe_core.doctor.answers import checked_answer
from probe_core.doctor.check import ENVIRONMENT
from probe_core.doctor.child import TARGET
from probe_core.registry.prober import Prober

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.doctor.answers import RemoteCheck
    from probe_core.doctor.check import Request
    from probe_core.doctor.installed import CheckSet
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
    if not usable:
        return remote
    from probe_core.isolation.launch import cannot_start, run_probers

    if (reason := cannot_start()) is not None:
        remote.problems += [(entry.owner, reason) for entry in usable]
        return remote
    probers = [_prober(entry, number) for number, entry in enumerate(usable)]
    asked: Mapping[str, object] = {
        "targets": [entry.prober.target for entry in usable],
        "report": request.report,
        "environment": request.environment,
        "device": request.device,
        "access": dict(request.machine.access),
        "list": list_only,
    }
    runs = run_probers(probers, request.machine, [asked])
    for run in runs:
        _take(run, remote)
    return remote


def _prober(entry: CheckSet, number: int) -> Prober:
    own = entry.prober
    prober = Prober(own.name, TARGET.format(number), own.distribution, own.version)
    prober.deadline_s, prober.needs_site = own.deadline_s, own.needs_site
    return prober


def _take(run: Run, remote: Remote) -> None:
    owner = run.prober.owner
    for frame in run.sightings:
        answer = checked_answer(frame, owner)
        if isinstance(answer, str):
            remote.problems.append((owner, answer))
        else:
            remote.checks.append(answer)
    if run.status not in ("ok", "not_applicable"):
        remote.problems.append((owner, f"{run.status}: {run.reason}"))
