"""The built site as tests read it: its pages, what they link to, and which ids they have."""

from __future__ import annotations

import fcntl
from html.parser import HTMLParser
from pathlib import Path

import build_site


class Page(HTMLParser):
    """The links, sources and ids of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an element refers to, and how it is referred to."""
        known = {name: value or "" for name, value in attrs}
        self.ids |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and "href" in known:
            self.links.append(known["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loaded += [known[name] for name in ("href", "src") if name in known]


def built(shared: Path) -> Path:
    """Return the site, built by the first of several test processes that asks."""
    into = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site.built").exists():
            ran = build_site.build(into)
            assert (ran.returncode, ran.stderr) == (0, "")
            (shared / "site.built").touch()
    return into


def pages(site: Path) -> dict[str, Page]:
    """Return the pages that Sphinx made, by their path below the site."""
    found = sorted(path for path in site.rglob("*.html") if "chips" not in path.parts)
    return {path.relative_to(site).as_posix(): Page(path) for path in found}
