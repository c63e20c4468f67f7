"""Reads the pages: their blocks, and the comments above a block that say what a test does with it.

``<!-- run -->`` runs a sh or python block, ``<!-- run: exit 2 -->`` expects that status,
``<!-- file: PATH -->`` writes the block into the page's folder, ``<!-- output -->`` says what the
run above printed (``…`` stands for anything), ``<!-- add: PATH, before LINE -->`` inserts the block
into a file, ``<!-- not run: REASON -->`` says why a block is not run. docs/how-to/build-the-docs.md
lists those of operators' files, which `test_docs_operators` checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import regions

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_NAMES = "run|file|add|output|not run|shell|systemd|kubernetes|containerfile|offline|main job|tests"
_DIRECTIVE = re.compile(rf"<!-- ({_NAMES})(?:: (.+?))? -->")
_ELSEWHERE = "*.md chipdb/*.md chipdb/docs/*.md plugins/*/README.md plugins/*/docs/*.md"


class Block:
    """A fenced block: language, text, line of the page, and its directive ("" without one)."""

    def __init__(self, language: str, text: str, line: int, directive: str, detail: str) -> None:
        self.language = language
        self.text = text
        self.line = line
        self.directive = directive
        self.detail = detail


def pages() -> list[Path]:
    """Return all pages of the documentation."""
    return [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]


def everywhere() -> list[Path]:
    """Return the pages and the READMEs and other texts that the site shows, too."""
    return pages() + sorted(path for pattern in _ELSEWHERE.split() for path in ROOT.glob(pattern))


@cache
def text(page: Path) -> str:
    """Return a page as the site has it, with the parts that are made from the code."""
    return regions.filled(page.read_text("utf-8"))


def name(page: Path) -> str:
    """Return a page's path below docs/, or below the repository where it is elsewhere."""
    return page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).as_posix()


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """Return a page's fenced blocks, in order."""
    return tuple(_blocks(text(page).splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    inside: list[str] | None = None
    language, start, above, margin = "", 0, "", 0
    for number, full in enumerate(lines, 1):
        # A block in a list is indented; its lines lose the indent of its fence.
        line = full[min(margin, len(full) - len(full.lstrip())) :] if inside is not None else full
        if inside is None and line.lstrip().startswith("```"):
            inside, language, start = [], line.strip("` "), number
            margin = len(line) - len(line.lstrip())
        elif inside is not None and line.startswith("```"):
            found = _DIRECTIVE.fullmatch(above)
            directive, detail = (found[1], found[2] or "") if found else ("", "")
            yield Block(language, "\n".join(inside) + "\n", start, directive, detail)
            inside, above = None, ""
        elif inside is not None:
            inside.append(line)
        elif line.strip():
            above = line.strip()


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```", "", text(page), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts and MyST make them."""
    titles = re.findall(r"^#{1,6} (.+)$", prose(page), flags=re.MULTILINE)
    return {_slug(title) for title in titles}


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def matches(pattern: str, printed: str) -> bool:
    """Return whether `printed` is what `pattern` says, trailing blanks aside."""
    wanted = ["(?:.*)" if line.strip() == "…" else _line(line) for line in pattern.splitlines()]
    # A line of its own stands for any number of lines.
    expression = "\n".join(wanted).replace("(?:.*)\n", "(?:.*\n)*?")
    expression = expression.replace("\n(?:.*)", "(?:\n.*)*?")
    clean = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return re.fullmatch(expression, clean) is not None


def _line(line: str) -> str:
    return "[^\n]*".join(re.escape(part) for part in line.rstrip().split("…"))
