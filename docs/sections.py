"""Turns parts of the code into Markdown: tables, and the sections of functions and classes."""

from __future__ import annotations

from collections.abc import Iterable

import source

__all__ = ["first_line", "function", "section", "table"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts; bars in a cell are escaped."""
    cells = [list(head), *map(list, rows)]
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in cells]
    rule = " | ".join("---" for _ in cells[0])
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def function(definition: source.Function, prefix: str = "", level: int = 3) -> str:
    """Return the section of a function: its title with `prefix`, signature and docstring."""
    title = f"{'#' * level} `{prefix}{definition.name}`"
    note = "A property.\n\n" if definition.is_property else ""
    return f"{title}\n\n```text\n{definition.signature}\n```\n\n{note}{definition.doc}"


def section(path: str, name: str) -> str:
    """Return the section of a class: how it is made, and its docstring."""
    made = source.constructor(path, name)
    doc = source.docstring(source.classes(path)[name])
    signature = made.signature.replace("def __init__", name, 1).removesuffix(" -> None")
    signature = signature.replace("(self, ", "(", 1).replace("\n    self,", "", 1)
    return f"### `{name}`\n\n```text\n{signature}\n```\n\n{doc}"


def first_line(kind: type) -> str:
    """Return the first line of a class's docstring."""
    return (kind.__doc__ or "").strip().splitlines()[0]
