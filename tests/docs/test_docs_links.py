"""Every link of the pages leads somewhere, and every page can be reached from the first one."""

from __future__ import annotations

import re
from pathlib import Path

import docpages
import pytest

_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
PAGES = docpages.everywhere()


def targets(page: Path) -> list[str]:
    return [link for link in _LINK.findall(docpages.prose(page)) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_link_resolves(page: Path) -> None:
    broken = []
    for link in targets(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        anchored = anchor and target.suffix == ".md"
        if not target.exists() or (anchored and anchor not in docpages.anchors(target)):
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
