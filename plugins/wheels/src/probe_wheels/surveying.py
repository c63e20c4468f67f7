"""One look at one Python environment: what is in it, and what of it runs on this node."""

from __future__ import annotations

import os

from probe_wheels.cache import Cache, cache_path
from probe_wheels.damage import environment_problems
from probe_wheels.devices import gpus_of
from probe_wheels.distributions import read_distributions
from probe_wheels.environment import find_environment
from probe_wheels.files import Budget
from probe_wheels.findings import findings_of, problem_finding
from probe_wheels.judging import Scene, judge, title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    from probe_core.model.document import ReportDoc
    from probe_wheels.documents import DistributionDoc, VerdictDoc, WheelFindingDoc
    from probe_wheels.environment import Environment

    class WheelDoc(TypedDict):
        """One installed distribution: its name, version, and its build's tag where it has one."""

        name: str
        version: str
        build: str | None


__all__ = ["Survey", "survey", "wheels"]


class Survey:
    """What one look gives.

    `environment` is what was looked at, `distributions` what is installed, `verdicts` one for each
    pair of distribution and device that have to do with each other, `findings` what is wrong.
    `paths` are the files and folders that all this depends on; empty where a later look may give
    another answer while they stay.
    """

    __slots__ = ("distributions", "environment", "findings", "paths", "verdicts")

    def __init__(
        self,
        environment: Environment,
        distributions: list[DistributionDoc],
        verdicts: list[VerdictDoc],
        findings: list[WheelFindingDoc],
        paths: set[str],
    ) -> None:
        self.environment = environment
        self.distributions = distributions
        self.verdicts = verdicts
        self.findings = findings
        self.paths = paths


def survey(
    argument: str | None,
    report: ReportDoc,
    environ: Mapping[str, str] | None = None,
    *,
    device: str | None = None,
    seconds: float | None = None,
    cached: bool = True,
) -> Survey:
    """Return what the wheels of an environment have code for, judged for each device of `report`.

    `argument` is an interpreter or a folder, None for the environment of the command line's
    `python`; `environ` decides which that is. `device` restricts the verdicts to one id. Takes
    `seconds` at most, by default 8. Nothing is imported, executed or changed but our own cache;
    a broken or hostile environment ends in findings.
    """
    environ = os.environ if environ is None else environ
    budget = Budget() if seconds is None else Budget(seconds)
    environment, documents = read(argument, environ, budget, cached=cached)
    gpus = [gpu for gpu in gpus_of(report, environ) if device in (None, gpu.id)]
    from probe_wheels.extra import extra_frameworks

    extra, problems = extra_frameworks(budget=budget)
    verdicts = judge(gpus, Scene(documents, environ, extra))
    problems += environment_problems(environment, documents, report, budget)
    findings = [problem_finding(problem) for problem in problems]
    findings += findings_of(verdicts, gpus, extra)
    return Survey(
        environment, documents, verdicts, findings, _lasting(environment, documents, budget)
    )


def _lasting(
    environment: Environment, documents: list[DistributionDoc], budget: Budget
) -> set[str]:
    """Return the paths that the answers depend on; none where time or a missing file decided."""
    unread = any("note" in document for document in documents)
    missing = {"environment-missing", "environment-unreadable"}
    if unread or missing.intersection(problem.code for problem in environment.problems):
        return set()
    return {path for path in budget.paths if os.path.isabs(path)}


def read(
    argument: str | None, environ: Mapping[str, str], budget: Budget, *, cached: bool = True
) -> tuple[Environment, list[DistributionDoc]]:
    """Return an environment and its distributions, from the cache as far as nothing changed."""
    environment = find_environment(argument, environ, budget)
    path = cache_path(environ) if cached else None
    cache = Cache(path) if path else None
    documents = read_distributions(environment.sites, budget, cache)
    if environment.kind == "conda":
        from probe_wheels.conda import read_packages

        documents += read_packages(environment.prefix, documents, budget, cache)
    if cache is not None:
        cache.save()
    return environment, documents


def wheels(argument: str | None = None, environ: Mapping[str, str] | None = None) -> list[WheelDoc]:
    """Return what is installed in an environment, sorted by name: for a baseline to compare with.

    Reads names of folders, and the text files of the frameworks that know their build: no library.
    """
    environ = os.environ if environ is None else environ
    budget = Budget()
    environment = find_environment(argument, environ, budget)
    documents = read_distributions(environment.sites, budget, libraries=False)
    listed: list[WheelDoc] = [
        {
            "name": document["name"],
            "version": title(document).partition(" ")[2],
            "build": document["build"],
        }
        for document in documents
    ]
    return sorted(listed, key=lambda wheel: wheel["name"].lower())
