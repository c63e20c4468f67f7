"""Reads signatures and docstrings from source text, so that the pages say what the code says."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

__all__ = [
    "ROOT",
    "Function",
    "attributes",
    "classes",
    "constants",
    "constructor",
    "docstring",
    "functions",
    "parse",
]

Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Function:
    """A function or method: name, exact signature as it is written, and docstring."""

    def __init__(self, node: Definition, lines: list[str]) -> None:
        self.name = node.name
        self.signature = _signature(node, lines)
        self.doc = ast.get_docstring(node) or ""
        self.is_property = any(
            isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list
        )


def parse(path: str) -> tuple[ast.Module, list[str]]:
    """Return the tree and the lines of a file below the repository's root."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return ast.parse(text), text.splitlines()


def functions(path: str, inside: str | None = None) -> list[Function]:
    """Return the public functions of a module, or the public methods of one of its classes."""
    tree, lines = parse(path)
    body = classes(path)[inside].body if inside else tree.body
    found = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [Function(node, lines) for node in found if not node.name.startswith("_")]


def constructor(path: str, name: str) -> Function:
    """Return the ``__init__`` of a class."""
    _, lines = parse(path)
    nodes = [node for node in classes(path)[name].body if isinstance(node, ast.FunctionDef)]
    return Function(next(node for node in nodes if node.name == "__init__"), lines)


def classes(path: str) -> dict[str, ast.ClassDef]:
    """Return the public classes of a module by name, in the order of the file."""
    tree, _ = parse(path)
    found = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in found if not node.name.startswith("_")}


def docstring(node: ast.ClassDef) -> str:
    """Return the docstring of a class, or nothing."""
    return ast.get_docstring(node) or ""


def attributes(node: ast.ClassDef) -> dict[str, str]:
    """Return the annotated attributes of a class: name to annotation."""
    return {
        item.target.id: ast.unparse(item.annotation)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and not item.target.id.startswith("_")
    }


def constants(path: str) -> dict[str, str]:
    """Return the constants of a module that have a docstring below them."""
    body = parse(path)[0].body
    found = {}
    for item, below in pairwise(body):
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            found[item.targets[0].id] = _text(below)
    return {name: text for name, text in found.items() if text}


def _text(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


def _signature(node: Definition, lines: list[str]) -> str:
    """Return the signature as the file has it, without comments and the colon at its end."""
    head = lines[node.lineno - 1 : node.body[0].lineno - 1]
    kept = [line[node.col_offset :].partition("  #")[0].rstrip() for line in head]
    text = "\n".join(line for line in kept if line.strip())
    return text.removesuffix(":")
