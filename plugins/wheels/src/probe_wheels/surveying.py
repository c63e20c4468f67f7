"""One look at one Python environment: what is in it, and what of it runs on this node.

What was read of files that have not changed since is kept between two looks: a current torch with
its CUDA libraries costs 50 ms a look without it, and 1 s from a cold disk. The key is the file's
identity, not its path. Whatever is odd about the cache, it is not used.
"""

from __future__ import annotations

import os

from probe_core.commands import replace_file
from probe_core.jsontext import parse, write
from probe_wheels.devices import gpus_of
from probe_wheels.distributions import read_distributions, read_packages
from probe_wheels.environment import find_environment
from probe_wheels.files import Budget
from probe_wheels.findings import environment_problems, findings_of, problem_finding
from probe_wheels.frameworks import extra_frameworks
from probe_wheels.judging import Scene, judge, title
from probe_wheels.records import Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypedDict

    from probe_core.doctor.document import CheckFindingDoc
    from probe_core.model.document import ReportDoc
    from probe_wheels.documents import DistributionDoc, LibraryDoc, VerdictDoc
    from probe_wheels.environment import Environment

    class WheelDoc(TypedDict):
        """One installed distribution: its name, version, and its build's tag where it has one."""

        name: str
        version: str
        build: str | None


class Survey:
    """What one look gives.

    `environment` is what was looked at, `distributions` what is installed, `verdicts` one for each
    pair of distribution and device that have to do with each other, `findings` what is wrong.
    `paths` are the files and folders that all this depends on; empty where a later look may give
    another answer while they stay.
    """

    def __init__(
        self,
        environment: Environment,
        distributions: list[DistributionDoc],
        verdicts: list[VerdictDoc],
        findings: list[CheckFindingDoc],
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


# What was read of files that have not changed since, kept between two looks.

SCHEMA = 2
"""Raised whenever a reader learns something: what an older one read is then read again."""

MAX_BYTES = 16 << 20
MAX_ENTRIES = 50_000


def cache_path(environ: Mapping[str, str]) -> str | None:
    """Return the file of the cache: below XDG_CACHE_HOME, else the home's ``.cache``."""
    if os.name == "nt":
        base = environ.get("LOCALAPPDATA", "")
    else:
        home = environ.get("HOME", "")
        base = environ.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else "")
    return (
        os.path.join(base, "probe-core", f"wheels-{SCHEMA}.json") if os.path.isabs(base) else None
    )


class Cache:
    """The cache of one file; `save` writes it when something was added."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._entries: dict[str, Any] = _load(path)
        self._used: set[str] = set()
        self._changed = False

    def library(self, key: str) -> LibraryDoc | None:
        """Return what a file has code for; None when it is not known."""
        value = self._value(key)
        return value if _is_library(value) else None

    def keep_library(self, key: str, document: LibraryDoc) -> None:
        """Remember what a file has code for."""
        self._keep(key, document)

    def listing(self, key: str) -> Listing | None:
        """Return the files of a RECORD; None when it is not known."""
        value = self._value(key)
        if not isinstance(value, list) or len(value) != 4 or not all(map(_is_texts, value)):
            return None
        listing = Listing()
        listing.libraries, gfx, listing.outside, cubins = value
        listing.gfx = set(gfx)
        pairs = (text.partition("=") for text in cubins)
        listing.cubins = {target: int(count) for target, _, count in pairs if count.isdecimal()}
        return listing

    def keep_listing(self, key: str, listing: Listing) -> None:
        """Remember the files of a RECORD."""
        cubins = [f"{target}={count}" for target, count in listing.cubins.items()]
        self._keep(key, [listing.libraries, sorted(listing.gfx), listing.outside, cubins])

    def save(self) -> None:
        """Write the cache in one step; an error changes nothing and is nobody's problem."""
        if not self._changed:
            return
        entries = self._entries
        if len(entries) > MAX_ENTRIES:  # what this look did not use is dropped
            entries = {key: value for key, value in entries.items() if key in self._used}
        text = write({"schema": SCHEMA, "entries": entries})
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            replace_file(self._path, text.encode(), mode=0o600)
        except OSError:
            pass

    def _value(self, key: str) -> Any:
        self._used.add(key)
        return self._entries.get(key)

    def _keep(self, key: str, value: object) -> None:
        self._used.add(key)
        self._entries[key] = value
        self._changed = True


def _load(path: str) -> dict[str, Any]:
    try:
        status = os.lstat(path)
        # Whoever could write it decides what a wheel is said to have code for.
        untrusted = os.name != "nt" and (status.st_uid != os.geteuid() or status.st_mode & 0o022)
        if untrusted or status.st_size > MAX_BYTES or os.path.islink(path):
            return {}
        with open(path, "rb") as file:
            document = parse(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    entries = document.get("entries") if isinstance(document, dict) else None
    return entries if isinstance(entries, dict) and document.get("schema") == SCHEMA else {}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_library(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return all(_is_groups(value.get(key, [])) for key in ("cuda", "hip"))


def _is_groups(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 2 and _is_texts(item[0]) and type(item[1]) is int
        for item in value
    )
