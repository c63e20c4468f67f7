"""Markdown that several generated parts share: tables, functions and classes as headings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import source

__all__ = ["class_text", "file_of", "function", "table"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown."""
    cells = [list(head), *map(list, rows)]
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in cells]
    rule = " | ".join("---" for _ in cells[0])
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def function(entry: source.Function, prefix: str = "", level: int = 3) -> str:
    """Return a function with its exact signature and its docstring."""
    title = f"{'#' * level} `{prefix}{entry.name}`"
    note = "A property.\n\n" if entry.is_property else ""
    return f"{title}\n\n```text\n{entry.signature}\n```\n\n{note}{entry.doc}"


def class_text(path: str, name: str) -> str:
    """Return a class with the signature of its constructor and its docstring."""
    made = source.constructor(path, name)
    doc = source.docstring(source.classes(path)[name])
    signature = made.signature.replace("def __init__", name, 1).removesuffix(" -> None")
    signature = signature.replace("(self, ", "(", 1).replace("\n    self,", "", 1)
    return f"### `{name}`\n\n```text\n{signature}\n```\n\n{doc}"


def file_of(thing: type | Callable[..., object]) -> str:
    """Return the file of a class or function, below the repository's root."""
    path = thing.__module__.replace(".", "/")
    return f"{path}/__init__.py" if (source.ROOT / path).is_dir() else f"{path}.py"
