"""The pages in a real Chromium: no overlap, no overflow, no faint text, no request, no error."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from report_nodes import nodes

from probe_core.commands import parse_report, without_identities
from probe_report.cluster import Member, cluster_of
from probe_report.html import cluster_html, page_html
from probe_report.page import page_of

pytestmark = pytest.mark.heavy


HARNESS = Path(__file__).with_name("harness.html")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VIEWS = ("wide", "middle", "narrow", "dark", "print")
Seen = dict[str, list[str]]

# A page on which the harness must find each fault, so that a blind measurement is noticed.
BAD = """<!doctype html><html><head><meta charset="utf-8"></head><body style="margin:0">
<div style="width:1300px">broad</div><div style="color:#999">dull</div>
<div style="position:relative;height:40px"><p style="position:absolute;margin:0;top:0">below</p>
<p style="position:absolute;margin:0;top:4px">above</p></div>
<div class="dev" style="width:20px;white-space:nowrap">out of its box</div>
<details><summary>fold</summary><div class="in">shut</div></details></body></html>"""


class Logged(http.server.SimpleHTTPRequestHandler):
    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        self.asked.append(self.path)


@contextlib.contextmanager
def served(folder: Path, asked: list[str]) -> Iterator[str]:
    kind = type("Handler", (Logged,), {"asked": asked})
    handler = functools.partial(kind, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def browser() -> str:
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip("the page is looked at in Chromium, and there is none here (apt install chromium)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("nodes")
    notes = ("Made by probe report.",)
    reports = {
        name: without_identities(parse_report(json.dumps(report).encode()), {})
        for name, report in nodes(folder).items()
    }
    shown = {f"{name}.html": page_html(page_of(report, notes)) for name, report in reports.items()}
    members = [Member(name, report, "") for name, report in reports.items()]
    cluster = cluster_of([*members, Member("node 9", None, "timeout")], (), notes)
    return {**shown, "cluster.html": cluster_html(cluster)}


@pytest.fixture(scope="module")
def seen(pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What a reader sees: harness.html in a real browser."""
    chromium = browser()
    folder = tmp_path_factory.mktemp("browser") / "pages"
    folder.mkdir()
    shutil.copy(HARNESS, folder)
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "bad.html").write_text(BAD, "utf-8")
    (folder / "pages.json").write_text(json.dumps([*pages, "bad.html"]))
    asked: list[str] = []
    with served(folder, asked) as address:
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", f"--user-data-dir={folder.parent}/p",
             "--enable-logging=stderr", "--window-size=1300,1000",
             "--virtual-time-budget=600000", "--dump-dom", f"{address}/harness.html"],
            capture_output=True, text=True, timeout=400,
        )  # fmt: skip
    result = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.DOTALL)
    assert result, done.stderr[-2000:]
    values: Seen = json.loads(unescape(result[1]))
    assert "error" not in values, values
    values["console"] = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    values["asked"] = sorted({path.partition("?")[0] for path in asked})
    return values


def of_bad(entries: list[str]) -> tuple[list[str], set[str]]:
    """Return what is wrong with the pages, and in which views the bad page was caught."""
    bad = {entry.split()[1].rstrip(":") for entry in entries if entry.startswith("bad.html")}
    return [entry for entry in entries if not entry.startswith("bad.html")], bad


def test_no_page_scrolls_sideways(seen: Seen) -> None:
    assert of_bad(seen["wide"]) == ([], {*VIEWS})


def test_no_text_lies_on_another(seen: Seen) -> None:
    assert of_bad(seen["overlap"]) == ([], {*VIEWS})


def test_no_text_leaves_its_box(seen: Seen) -> None:
    assert of_bad(seen["leaving"]) == ([], {*VIEWS})


def test_every_text_has_the_contrast_of_level_aa(seen: Seen, pages: dict[str, str]) -> None:
    assert of_bad(seen["faint"]) == ([], {*VIEWS})
    assert len(seen["texts"]) == (len(pages) + 1) * len(VIEWS)
    assert seen["texts"]["dgx.html wide"] > 150  # type: ignore[call-overload]


def test_paper_shows_what_is_folded(seen: Seen) -> None:
    assert of_bad(seen["closed"]) == ([], {"print"})
    texts: dict[str, int] = seen["texts"]  # type: ignore[assignment]
    assert texts["dgx.html print"] > texts["dgx.html wide"] + 100


def test_a_browser_complains_of_nothing_and_asks_for_nothing_else(
    seen: Seen, pages: dict[str, str]
) -> None:
    assert seen["console"] == []
    assert seen["requests"] == []
    expected = sorted(f"/{name}" for name in (*pages, "bad.html", "harness.html", "pages.json"))
    assert seen["asked"] == expected
