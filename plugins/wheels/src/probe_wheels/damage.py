"""What is wrong with an environment itself: files that lie, are cut, or are for another machine."""

from __future__ import annotations

from probe_core.wording import clean_text
from probe_wheels.files import Exhausted, Opened
from probe_wheels.judging import title
from probe_wheels.names import MACHINES
from probe_wheels.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_core.model.document import ReportDoc
    from probe_wheels.documents import DistributionDoc
    from probe_wheels.environment import Environment
    from probe_wheels.files import Budget

__all__ = ["environment_problems"]

MAX_NAMES = 3
"""Files that a sentence names; the others are counted."""

MAX_PROBLEMS = 32

_SYSTEMS = (
    (b"\x7fELF", "linux", "Linux"),
    (b"MZ", "windows", "Windows"),
    (b"\xcf\xfa\xed\xfe", "darwin", "macOS"),
    (b"\xca\xfe\xba\xbe", "darwin", "macOS"),
)
"""First bytes of programs, the system that starts them as the report calls it, its name."""

_MACHINES = {"arm64": "aarch64", "amd64": "x86_64"}


def environment_problems(
    environment: Environment,
    documents: Iterable[DistributionDoc],
    report: ReportDoc,
    budget: Budget,
) -> list[Problem]:
    """Return the problems of an environment, its interpreter and its distributions' files."""
    problems = list(environment.problems)
    arch = report["node"]["arch"]
    arch = _MACHINES.get(arch, arch)
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
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return None
    built = MACHINES.get(int.from_bytes(head[18:20], "little"))
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
        {_MACHINES.get(name, name) for name in library["machines"]} - {"cuda", "amdgpu"}
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
