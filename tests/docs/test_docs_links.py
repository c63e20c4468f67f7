"""Every link of the pages leads somewhere, and every page can be reached from the first one."""

from __future__ import annotations

import re
from pathlib import Path

import docpages
import pytest

_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
PAGES = docpages.pages()


def targets(page: Path) -> list[str]:
    return [link for link in _LINK.findall(docpages.prose(page)) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_link_resolves(page: Path) -> None:
    broken = []
    for link in targets(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(link)
        elif anchor and target.suffix == ".md" and anchor not in docpages.anchors(target):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached() -> None:
    reached, ahead = set(), [docpages.DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        linked = [(page.parent / link.partition("#")[0]).resolve() for link in targets(page)]
        ahead += [path for path in linked if path in PAGES]
    assert sorted(map(docpages.name, set(PAGES) - reached)) == []


def test_no_page_is_in_the_way_of_the_reader_of_a_terminal() -> None:
    long = [
        f"{docpages.name(page)}:{number}"
        for page in PAGES
        for number, line in enumerate(docpages.prose(page).splitlines(), 1)
        if len(line) > 110 and not line.startswith(("|", "<!--"))
    ]
    assert long == []
