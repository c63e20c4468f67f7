"""Frameworks that other distributions describe: the plugin group `probe_core.frameworks.v1`.

An entry point names a module; beside it lies `frameworks.json`, data alone, with the keys of
data/frameworks.toml. No module is imported, so a broken one costs nobody anything.
"""

from __future__ import annotations

import sys

from probe_core.jsontext import parse
from probe_core.machine.files import read_regular, text_of
from probe_core.machine.trust import Trust
from probe_core.registry.entrypoints import is_module_name, locate, scan
from probe_wheels.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.registry.entrypoints import EntryPoint
    from probe_wheels.documents import FrameworkDoc
    from probe_wheels.files import Budget

__all__ = ["GROUP", "extra_frameworks"]

GROUP = "probe_core.frameworks.v1"
STEM = "probe_core.frameworks.v"
MAX_ENTRIES = 32
FILE_LIMIT = 64 << 10
MAX_ITEMS = 64
MAX_TEXT = 400

_LISTS = ("members", "builds", "main", "parts", "elsewhere", "cpu", "compiles")
_TEXTS = ("title", "source", "plain", "follows")


def extra_frameworks(
    paths: Iterable[str] | None = None, budget: Budget | None = None
) -> tuple[dict[str, FrameworkDoc], list[Problem]]:
    """Return what installed distributions say of frameworks, and what is wrong with their files."""
    frameworks: dict[str, FrameworkDoc] = {}
    problems: list[Problem] = []
    entries, _ = scan(paths, STEM)
    if budget is not None:
        # A distribution that comes or goes changes its folder, another table its own two files.
        budget.paths.update(sys.path if paths is None else paths)
        budget.paths.update(f"{entry.metadata}/entry_points.txt" for entry in entries)
    trust = Trust()
    for entry in entries[:MAX_ENTRIES]:
        try:
            frameworks.update(_read(entry, trust, budget))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(_problem(entry, error))
    return frameworks, problems


def _read(entry: EntryPoint, trust: Trust, budget: Budget | None) -> dict[str, FrameworkDoc]:
    """Return the table of one distribution; raises `ValueError` with the reason."""
    if entry.group != GROUP:
        raise ValueError(f"it needs {entry.group}, this version has {GROUP}")
    if not is_module_name(entry.target):
        raise ValueError(f"its entry point {entry.target[:80]!r} is no module")
    place = locate(entry.target, entry.site)
    if place is None:
        raise ValueError(f"its module {entry.target!r} does not exist")
    name = "frameworks.json"
    if not place.is_package and "." not in entry.target:
        name = f"{entry.target}.frameworks.json"
    path = f"{place.folder}/{name}"
    # As root, a table that somebody else could have written would choose what root installs.
    if reason := trust.reason([path, f"{entry.metadata}/entry_points.txt"]):
        raise ValueError(reason)
    if budget is not None:
        budget.paths.add(path)
    document = parse(text_of(read_regular(path, FILE_LIMIT)))
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError('expected {"schema": 1, "frameworks": {NAME: {…}}}')
    tables = document.get("frameworks")
    if not isinstance(tables, dict):
        raise ValueError("frameworks is no table")
    return {f"{entry.name}:{key}": _checked(table) for key, table in tables.items()}


def _checked(table: object) -> FrameworkDoc:
    """Return a framework whose values have the right types; raises `ValueError`."""
    if not isinstance(table, dict):
        raise ValueError("a framework is no table")
    for key in _LISTS:
        values = table.get(key, [])
        texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not texts or len(values) > MAX_ITEMS:
            raise ValueError(f"{key} is no list of at most {MAX_ITEMS} texts")
    for key in _TEXTS:
        if not isinstance(table.get(key, ""), str) or len(table.get(key, "")) > MAX_TEXT:
            raise ValueError(f"{key} is no text of at most {MAX_TEXT} characters")
    fixes = table.get("fix", {})
    if not isinstance(fixes, dict) or not all(
        isinstance(fix, str) and fix.isprintable() and len(fix) <= MAX_TEXT
        for fix in fixes.values()
    ):
        raise ValueError("fix is no table of commands")
    missing = [key for key in ("title", "members", "builds", "source") if key not in table]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing")
    checked: FrameworkDoc = {
        "title": table["title"],
        "members": table["members"],
        "builds": table["builds"],
        "source": table["source"],
        "main": table.get("main", []),
        "parts": table.get("parts", []),
        "elsewhere": table.get("elsewhere", []),
        "cpu": table.get("cpu", []),
        "compiles": table.get("compiles", []),
        "plain": table.get("plain", "unknown"),
        "fix": fixes,
    }
    return checked


def _problem(entry: EntryPoint, error: Exception) -> Problem:
    reason = error.strerror or "it cannot be read" if isinstance(error, OSError) else str(error)
    owner = f"{entry.distribution} {entry.version}".strip()
    return Problem(
        "frameworks-unusable",
        f"{owner}: its table of frameworks was left out",
        reason,
        f"update or remove {entry.distribution}",
        evidence=entry.target,
        severity="warning",
    )
