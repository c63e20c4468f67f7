"""Collects from source text the words that scripts may compare: codes, causes, variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from docpages import ROOT

_WORD = re.compile(r"[a-z]+(-[a-z]+)*")
_VARIABLE = re.compile(r"(?<![A-Z_])PROBE_[A-Z]+(_[A-Z]+)*")


def trees(*patterns: str, having: Iterable[str] = ("",)) -> Iterator[tuple[Path, ast.Module]]:
    """Yield (path, tree) of the source files that match, and have one of these texts."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text("utf-8")
            if any(part in text for part in having):
                yield path, _tree(path)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def variables() -> set[str]:
    """Return every environment variable of ours that some code names."""
    found = set()
    for pattern in ("probe_core/**/*.py", "plugins/*/src/**/*.py", "chipdb/src/**/*.py"):
        naming = (path for path in ROOT.glob(pattern) if "PROBE_" in path.read_text("utf-8"))
        for node in (node for path in naming for node in ast.walk(_tree(path))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {m[0] for m in _VARIABLE.finditer(node.value)} - {"PROBE_"}
    return found


def causes() -> set[str]:
    """Return the causes that a decision can have."""
    found = set()
    for path, tree in trees("probe_core/registry/prober.py", "probe_core/pipeline/probers.py"):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Return | ast.Assign):
                continue
            returned = isinstance(node, ast.Return) and path.name == "prober.py"
            assigned = isinstance(node, ast.Assign) and "cause" in ast.unparse(node.targets[0])
            if (returned or assigned) and isinstance(node.value, ast.Tuple):
                found |= set(words(node.value.elts[0]))
    return found


def finding_codes(*patterns: str) -> set[str]:
    """Return the codes of the findings that source files make, by a call or as a mapping."""
    found = set()
    making = (*(f"{name}(" for name in _MAKERS), '"code"', "TABLE")
    for path, tree in trees(*patterns, having=making):
        found |= _of_table(path, "handle", "listing", "state")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and _called(node) in _MAKERS:
                found |= {w for value in _values(node.args[0], tree) for w in words(value)}
            elif isinstance(node, ast.Dict) and not any(_says(key, "status") for key in node.keys):
                # A mapping with a status is a step of readiness; its page lists their causes.
                pairs = zip(node.keys, node.values, strict=True)
                found |= {w for key, value in pairs if _says(key, "code") for w in words(value)}
    return found


def _says(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _values(node: ast.expr, tree: ast.Module) -> list[ast.expr]:
    """Return an argument, or what its name is given anywhere in the file."""
    if not isinstance(node, ast.Name):
        return [node]
    given = [one for one in ast.walk(tree) if isinstance(one, ast.Assign)]
    return [one.value for one in given if ast.unparse(one.targets[0]) == node.id]


_REFUSALS = {"Unavailable", "Failure"}
_MAKERS = {"finding", "_finding", "_broken"}


def unavailable_codes() -> set[str]:
    """Return the codes that our own probers give to `Unavailable`."""
    found = set()
    making = (*(f"{name}(" for name in _REFUSALS), "TABLE")
    for path, tree in trees("plugins/*/src/**/*.py", having=making):
        found |= _of_table(path, "nvmlInit")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in _REFUSALS:
                found |= {w for k in node.keywords if k.arg == "code" for w in words(k.value)}
    return found


def _of_table(path: Path, *places: str) -> set[str]:
    """Return the words of NVIDIA's table of causes, of those that show at one of `places`."""
    if path.match("probe_nvidia/causes.py"):
        from probe_nvidia.causes import TABLE

        found = {cause.word for (place, _), cause in TABLE.items() if place in places}
        return {word for word in found if _WORD.fullmatch(word)}
    return set()


def words(node: ast.expr) -> list[str]:
    """Return the words that an expression can be: a text, or either side of a condition."""
    if isinstance(node, ast.IfExp):
        return words(node.body) + words(node.orelse)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value] if _WORD.fullmatch(node.value) else []
    return []


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
