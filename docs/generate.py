"""Refreshes what is made from tables in the code: `python docs/generate.py`, or `--check` it.

A page holds ``<!-- begin generated: NAME -->`` and ``<!-- end generated -->``; what lies between is
made from the code by the function of that name in `regions`. The typed views and TypedDicts of
the model have the same marks in comments. The report's JSON Schema, the pictures, the manual pages
and the translated templates of `probe report` are made as a whole.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import picture
from regions import REGIONS
from regions_cli import manuals
from typed import BODIES

from probe_report.html import translations

DOCS = Path(__file__).resolve().parent
MODEL = DOCS.parent / "probe_core" / "model"
SCHEMA = DOCS.parent / "probe_core" / "report.schema.json"
_REGION = re.compile(
    r"(?P<begin><!-- begin generated: (?P<name>[a-z]+) -->\n)(.*?)(?P<end><!-- end generated -->)",
    re.DOTALL,
)


_BODY = re.compile(
    r"(?P<begin>    # begin generated: (?P<name>[A-Za-z]+)\n)(.*?)(?P<end>    # end generated\n)",
    re.DOTALL,
)


def refreshed(text: str) -> str:
    """Return a page with its generated parts made anew."""

    def make(match: re.Match[str]) -> str:
        made = REGIONS[match["name"]]()
        return f"{match['begin']}\n{made}\n\n{match['end']}"

    return _REGION.sub(make, text)


def pages() -> list[Path]:
    """Return the pages that have generated parts."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _REGION.search(path.read_text("utf-8"))]


def modules() -> list[Path]:
    """Return the modules of the model that have generated parts."""
    return [path for path in sorted(MODEL.glob("*.py")) if _BODY.search(path.read_text("utf-8"))]


def refreshed_module(text: str) -> str:
    """Return a module with its generated parts made anew."""

    def make(match: re.Match[str]) -> str:
        return f"{match['begin']}{BODIES[match['name']]()}\n\n{match['end']}"

    return _BODY.sub(make, text)


def schema_text() -> str:
    """Return the report's JSON Schema as it is published."""
    from probe_core.model.schema import schema

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def outdated() -> dict[Path, str]:
    """Return the files that are not what the code makes of them, each with its new text."""
    texts = {path: refreshed(path.read_text("utf-8")) for path in pages()}
    texts |= {path: refreshed_module(path.read_text("utf-8")) for path in modules()}
    texts[SCHEMA] = schema_text()
    texts |= manuals()
    texts |= picture.texts()
    texts |= translations()
    return {path: text for path, text in texts.items() if _differs(path, text)}


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text("utf-8") != text


def used() -> set[str]:
    """Return the names of the regions that a page shows."""
    texts = [path.read_text("utf-8") for path in pages()]
    return {match["name"] for text in texts for match in _REGION.finditer(text)}


def main(arguments: list[str]) -> int:
    """Write the files; with `--check` write nothing, and return 1 when one is out of date."""
    check = "--check" in arguments
    stale = outdated()
    for path, text in stale.items():
        print(path.relative_to(DOCS.parent))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
