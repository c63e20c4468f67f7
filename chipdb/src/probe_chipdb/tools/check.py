"""`check PATH`: all that can be wrong with the data, in sentences with file, entry and fix."""

import os
import tomllib

from probe_chipdb import table
from probe_chipdb.database import Database
from probe_chipdb.entry.extras import (
    Consent,
    foreign_keys,
    foreign_names,
    foreign_rows,
    rows_with_brands,
    taken,
)
from probe_chipdb.entry.files import read_folder, toml_files
from probe_chipdb.entry.pack import to_table
from probe_chipdb.entry.spec import Problem
from probe_chipdb.packages import GROUP
from probe_chipdb.peaks import STATED
from probe_chipdb.rules import built as builtin_rules
from probe_chipdb.rules import use
from probe_chipdb.tools import layout, rules
from probe_chipdb.tools.formats import format_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.entry.fields import ArchEntry, MatchEntry
    from probe_chipdb.entry.validate import Data


class Result:
    """The problems of a check, and how much it looked at."""

    __slots__ = ("archs", "chips", "compared", "full", "problems", "recent", "stated", "within")

    def __init__(self, data: "Data", problems: list[Problem], db: Database) -> None:
        self.problems = problems
        self.chips = len(data.chips)
        self.archs = len(data.archs)
        figures = [figure for id_ in data.chips for figure in rules.figures(db, id_)]
        self.compared = len(figures)
        self.within = sum(figure.near for figure in figures)
        self.stated = shares(db, data)
        self.recent = shares(db, data, since=RECENT)
        self.full = sum(1 for id_ in data.chips if (chip := db.chip(id_)) and chip.peaks())

    @property
    def errors(self) -> int:
        """How many problems fail the check."""
        return sum(problem.level == "error" for problem in self.problems)

    def summary(self) -> str:
        """One line for people."""
        share = f"{self.within / self.compared:.1%}" if self.compared else "none"
        return (
            f"{_counted(self.chips, 'chip')} ({self.full} with peaks), "
            f"{_counted(self.archs, 'architecture')}; "
            f"{self.within} of {self.compared} published figures within 3 % ({share}); "
            f"vendors' figures: {_evidence(self.stated)}; "
            f"since {RECENT}: {_evidence(self.recent)}; "
            f"{_counted(self.errors, 'error')}, "
            f"{_counted(len(self.problems) - self.errors, 'warning')}"
        )


RECENT = 2022
"""Products from this year on are the ones most used: their figures are read first."""


def shares(db: Database, data: "Data", since: int = 0) -> dict[str, int]:
    """Return how many dense figures that a vendor states were read, quoted, or are recalled."""
    found = dict.fromkeys(STATED, 0)
    chips = (chip for id_ in data.chips if (chip := db.chip(id_)) and (chip.year or 0) >= since)
    for peak in (peak for chip in chips for peak in chip.peaks() if peak.sparsity == "dense"):
        evidence = peak.confirmed_by or peak.confidence
        if evidence in found:
            found[evidence] += 1
    return found


def _evidence(stated: dict[str, int]) -> str:
    read, quoted, recalled = (stated[confidence] for confidence in STATED)
    return f"{read} read, {quoted} quoted by others, {recalled} recalled"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def check(path: str, alone: bool = False) -> Result:
    """Check a data folder, one file of it, or the files of a vendor package.

    A file inside a data folder is checked with the whole, and its own problems are listed. A folder
    without arch/ of its own is checked against the built table, so that a vendor can name the
    architectures and sources that it knows; `alone` forbids that.
    """
    root = layout.data_root(path)
    if root and os.path.abspath(path) != root:
        return _check_part(path, root)
    built = None if root or alone else _built()
    data = read_folder(path, builtin_rules() if built else None)
    if root and data.rules.rows:
        use(data.rules.read())
    own = to_table(data, "data", "0")
    db = Database(built or own)
    db._tables = (own, built) if built else (own,)
    problems = list(data.problems)
    problems += rules.reference_problems(data, db, alone=not root)
    problems += rules.blanket_problems(data)
    problems += rules.plausibility_problems(data, db)
    problems += rules.figure_problems(data, db)
    problems += rules.name_problems(data, db)
    problems += rules.row_problems(data)
    problems += format_problems(data)
    problems += layout.problems(path)
    if built:
        project = _project(path)
        vendors = Consent(built).vendors(project.name)
        problems += _entry_points(project)
        problems += _foreign_keys(data, built, vendors)
        problems += _foreign_archs(data, built, vendors)
        problems += [problem for _, problem in foreign_rows(data, built, vendors)]
        problems += [problem for _, problem in foreign_names(data, built)]
        problems += rows_with_brands(data, built, vendors)
    if root:
        problems += layout.repository_problems(root, data, db)
    return Result(data, problems, db)


def _check_part(path: str, root: str) -> Result:
    """The problems of one file or folder inside a data folder, found with all the data."""
    result = check(root)
    label = os.path.relpath(path, root)
    inside = label + os.sep
    result.problems = [
        problem
        for problem in result.problems
        if problem.file == label or problem.file.startswith(inside) or os.path.isabs(problem.file)
    ]
    return result


def _built() -> table.Table | None:
    try:
        return table.built()
    except OSError:
        return None


_NEAR = 4  # folders above the data in which a package's pyproject.toml is looked for


class _Project:
    """The distribution that a folder of data belongs to: its folder, name and entry points."""

    __slots__ = ("folder", "name", "packages")

    def __init__(self, folder: str = "", table: object = None) -> None:
        project = table if isinstance(table, dict) else {}
        name = project.get("name")
        groups = project.get("entry-points")
        named = groups.get(GROUP) if isinstance(groups, dict) else None
        self.folder = folder
        self.name = name if isinstance(name, str) else ""
        self.packages = named if isinstance(named, dict) else {}


def _project(path: str) -> _Project:
    """The nearest project above a folder of data; one without a name where there is none."""
    folder = os.path.abspath(path)
    for _ in range(_NEAR):
        try:
            with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
                return _Project(folder, tomllib.load(file).get("project"))
        except (OSError, ValueError):
            folder = os.path.dirname(folder)
    return _Project()


def _entry_points(project: _Project) -> "Iterator[Problem]":
    """Entry points to a package without TOML files: an installed one would add no chip."""
    for name, value in project.packages.items():
        parts = str(value).partition(":")[0].split(".")
        folders = [os.path.join(project.folder, *root, *parts) for root in (("src",), ())]
        found = next(filter(os.path.isdir, folders), None)
        field = f"{GROUP}: {name}"
        if found is None:
            fix = f"make the folder src/{'/'.join(parts)}, or name the one that there is"
            yield Problem("pyproject.toml", "", field, f"{value!r} is no package here", fix)
        elif next(toml_files(found), None) is None:
            fix = "put the files of chips into it"
            yield Problem("pyproject.toml", "", field, f"{value!r} has no TOML file", fix)


def _foreign_archs(
    data: "Data", built: table.Table, vendors: frozenset[str]
) -> "Iterator[Problem]":
    """Keys of architectures by which drivers name other vendors' hardware."""
    for name, arch in data.archs.items():
        where, label = data.where[f"arch:{name}"], f"arch {name!r}"
        match: MatchEntry = {**arch.get("match", {})}
        copy: ArchEntry = {**arch, "match": match}
        for field, fault in foreign_keys(copy, built, vendors):
            fix = "remove it; list keys of your own hardware alone"
            yield Problem(where, label, f"match.{field}", fault, fix)


def _foreign_keys(data: "Data", built: table.Table, vendors: frozenset[str]) -> "Iterator[Problem]":
    """Chips in a namespace of the built table, and ids and names that it has for other chips.

    vendors: those for which the distribution is a publisher.
    """
    named = Database(built).ids_of_name
    fix = "use a namespace of your own, or send the chip to the project"
    for id_, chip in data.chips.items():
        where, label = data.where[f"chip:{id_}"], f"chip {id_!r}"
        if built.ids(f"v:{chip['vendor']}") and chip["vendor"] not in vendors:
            fault = f"the namespace {chip['vendor']!r} belongs to the built table"
            yield Problem(where, label, "id", fault, fix, "warning")
        if built.chips.find(id_):
            yield Problem(where, label, "id", "the built table has this chip", fix, "warning")
            continue
        for key, fault, advice in taken(chip, built, named):
            yield Problem(where, label, _field(key), f"{key[2:]!r}: {fault}", advice)


def _field(key: str) -> str:
    return {"p": "pci", "d": "dt", "g": "gpu_id", "n": "name"}.get(key[0], key)
