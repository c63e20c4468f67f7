"""The site builds without a warning, has no dead link, and is legible on a narrow screen."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import sitepages

NEEDED = ("sphinx", "myst_parser", "furo", "sphinx_copybutton")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
GROUPS = [
    "Tutorial",
    "How-to: users",
    "How-to: operators",
    "How-to: hosts",
    "How-to: authors of plugins",
    "How-to: vendors of hardware",
    "How-to: contributors",
    "Reference",
    "Explanation",
    "Our plugins",
    "Project",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    if not all(map(importlib.util.find_spec, NEEDED)):
        pytest.skip("what builds the site is not installed here (pip install 'probe-core[docs]')")
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent  # one build for all processes
    return sitepages.built(shared)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, sitepages.Page]:
    return sitepages.pages(site)


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_pages_can_be_built(site: Path) -> None:
    # Built with -W and without a suppressed warning; see `sitepages.built`.
    assert (site / "docs/reference/hooks.html").is_file()


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_every_text_of_the_repository_is_a_page(pages: dict[str, sitepages.Page]) -> None:
    import docpages

    texts = [path.relative_to(docpages.ROOT).with_suffix(".html") for path in docpages.everywhere()]
    assert [path.as_posix() for path in texts if path.as_posix() not in pages] == []


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_no_link_of_the_site_is_dead(site: Path, pages: dict[str, sitepages.Page]) -> None:
    dead = []
    for name, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.path.parent / unquote(parts.path)) if parts.path else page.path
            place = target.resolve()
            inside = place.is_relative_to(site.resolve())
            key = place.relative_to(site.resolve()).as_posix() if inside else ""
            missing = parts.fragment and key in pages and parts.fragment not in pages[key].ids
            if not inside or not place.is_file() or missing:
                dead.append(f"{name}: {link}")
    assert dead == []


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_links_to_other_sites_are_well_formed(pages: dict[str, sitepages.Page]) -> None:
    # No network here, so whether they answer is not known; a slip of the keyboard is.
    wrong = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme and not _well_formed(link):
                wrong.append(f"{name}: {link}")
    assert wrong == []


def _well_formed(link: str) -> bool:
    parts = urlsplit(link)
    host = re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.netloc)
    return parts.scheme == "https" and host is not None and not re.search(r"\s|…|//", parts.path)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://example.org/a", True),
        ("http://example.org/a", False),
        ("https://example/a", False),
        ("https://example.org//a", False),
        ("https:/example.org", False),
    ],
)
def test_what_is_well_formed(link: str, expected: bool) -> None:
    assert _well_formed(link) == expected


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[str, sitepages.Page]) -> None:
    loaded = [link for page in pages.values() for link in page.loaded]
    assert loaded
    assert [link for link in loaded if urlsplit(link).netloc] == []
    fonts = [path for path in site.rglob("*.css") if "url(http" in path.read_text("utf-8")]
    assert fonts == []


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_sidebar_has_its_groups(site: Path) -> None:
    home = (site / "docs/index.html").read_text("utf-8")
    sidebar = home.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert re.findall(r'caption-text">([^<]+)<', sidebar) == GROUPS


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_every_page_is_in_the_sidebar(pages: dict[str, sitepages.Page]) -> None:
    home = pages["docs/index.html"]
    root = home.path.parent.parent.resolve()
    linked = [(home.path.parent / urlsplit(link).path).resolve() for link in home.links]
    reached = {path.relative_to(root).as_posix() for path in linked if path.is_relative_to(root)}
    own = {"index.html", "docs/index.html", "genindex.html", "search.html"}
    assert sorted(set(pages) - reached - own) == []


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_search_and_the_dark_theme_are_there(site: Path) -> None:
    home = (site / "docs/index.html").read_text("utf-8")
    assert 'action="../search.html"' in home
    assert 'class="theme-toggle"' in home
    index = (site / "searchindex.js").read_text("utf-8")
    assert '"docs/how-to/slurm"' in index


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_first_page_begins_with_a_task_and_a_picture(site: Path) -> None:
    home = (site / "docs/index.html").read_text("utf-8").partition("<article")[2]
    wanted = ("<img", "<h2>Install", "<h2>Three tasks", "Search all chips", "<h2>Tutorial")
    places = [home.index(text) for text in wanted]
    assert places == sorted(places)
    assert '<a href="../chips/index.html">' in home
    assert (site / "chips/index.html").is_file()


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_warning_fails_the_build() -> None:
    import build_site

    source = Path(build_site.__file__)
    assert '"-W"' in source.read_text("utf-8")
    assert "suppress_warnings" not in (source.parent / "conf.py").read_text("utf-8")


# A page on which the browser must find both faults, so that a blind measurement is noticed.
BAD = """<!doctype html><meta charset="utf-8"><body style="margin:0;background:#fff">
<div style="width:500px;color:#999">faint</div><div style="color:#767676">legible</div>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def seen(
    site: Path, pages: dict[str, sitepages.Page], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str] | int]:
    """What a reader with a narrow screen sees: harness.html in a real browser."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not chromium:
        pytest.skip("there is no Chromium here (apt install chromium)")
    folder = tmp_path_factory.mktemp("browser") / "site"
    shutil.copytree(site, folder)
    shutil.copy(Path(__file__).parent / "harness.html", folder)
    names = [name for name in pages if name not in ("index.html", "genindex.html")]
    (folder / "bad.html").write_text(BAD)
    (folder / "pages.json").write_text(json.dumps([*names, "bad.html"]))
    with served(folder) as address:
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", f"--user-data-dir={folder.parent}/p",
             "--window-size=1000,900", "--virtual-time-budget=600000", "--dump-dom",
             f"{address}/harness.html"],
            capture_output=True, text=True, timeout=400,
        )  # fmt: skip
    result = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.DOTALL)
    assert result, done.stderr[-2000:]
    values: dict[str, list[str] | int] = json.loads(unescape(result[1]))
    assert "error" not in values, values
    assert values["pages"] == len(names) + 1
    return values


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_no_page_scrolls_sideways_at_400_pixels(seen: dict[str, list[str] | int]) -> None:
    assert seen["wide"] == ["bad.html: 500"]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_every_text_has_the_contrast_of_level_aa(seen: dict[str, list[str] | int]) -> None:
    assert isinstance(seen["texts"], int)
    assert seen["texts"] > 10_000
    assert seen["low"] == [f"bad.html ({theme}): faint: 2.85" for theme in ("light", "dark")]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_a_browser_asks_no_other_host(seen: dict[str, list[str] | int]) -> None:
    assert seen["hosts"] == []
