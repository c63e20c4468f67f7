"""Refreshes the generated parts of the reference: `python docs/generate.py`, or `--check` them.

A page holds ``<!-- begin generated: NAME -->`` and ``<!-- end generated -->``; what lies between is
made from the code by the function of that name in `regions`. Everything else on a page is ours.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from regions import REGIONS

DOCS = Path(__file__).resolve().parent
_REGION = re.compile(
    r"(?P<begin><!-- begin generated: (?P<name>[a-z]+) -->\n)(.*?)(?P<end><!-- end generated -->)",
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


def used() -> set[str]:
    """Return the names of the regions that a page shows."""
    texts = [path.read_text("utf-8") for path in pages()]
    return {match["name"] for text in texts for match in _REGION.finditer(text)}


def main(arguments: list[str]) -> int:
    """Write the pages; with `--check` write nothing, and return 1 when one is out of date."""
    check, stale = "--check" in arguments, 0
    for path in pages():
        text = path.read_text("utf-8")
        made = refreshed(text)
        if made != text:
            stale += 1
            print(path.relative_to(DOCS))
            if not check:
                path.write_text(made, "utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
