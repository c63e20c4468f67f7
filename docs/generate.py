"""Refreshes what is made from the code and tracked: `python docs/generate.py`, or `--check` it.

The keys of the TypedDicts of the report's document are made from the classes that readers see: type
checkers read no other form. The pictures are what `probe`
prints, and code hosts show them. What else is made from the code is made where it is needed: pages
with the site, schema and manual pages with the wheels.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import film
import picture
from typed import BODIES

DOCS = Path(__file__).resolve().parent
MODEL = DOCS.parent / "probe_core" / "model"
_BODY = re.compile(
    r'(?P<head>^class (?P<name>\w+)\(TypedDict[^\n]*:\n    """[^"]*"""\n\n)'
    r"(?P<keys>(?:    \w+: .+\n)+)",
    re.MULTILINE,
)
"""A class with its docstring, and the lines of its keys."""


def refreshed_module(text: str) -> str:
    """Return a module with its generated parts made anew."""

    def make(match: re.Match[str]) -> str:
        make_keys = BODIES.get(match["name"])
        return match[0] if make_keys is None else f"{match['head']}{make_keys()}\n"

    return _BODY.sub(make, text)


def model() -> dict[Path, str]:
    """Return the module of these types with its generated parts made anew."""
    path = MODEL / "document.py"
    return {path: refreshed_module(path.read_text("utf-8"))}


# The pictures are made last, by a `probe` that has the new modules: so one run is enough.
STEPS: tuple[Callable[[], dict[Path, str]], ...] = (model, picture.texts, film.film)


def outdated() -> Iterator[tuple[Path, str]]:
    """Return the files that are not what the code makes of them, each with its new text."""
    for make in STEPS:
        for path, text in make().items():
            if not path.exists() or path.read_text("utf-8") != text:
                yield path, text


def main(arguments: list[str]) -> int:
    """Write the files; with `--check` write nothing, and return 1 when one is out of date."""
    check, stale = "--check" in arguments, False
    for path, text in outdated():
        print(path.relative_to(DOCS.parent))
        stale = True
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
