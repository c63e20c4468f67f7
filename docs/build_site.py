"""Builds the documentation's site: `python docs/build_site.py OUT`, then open OUT/index.html.

The pages link to READMEs, the changelog and source files as a code host resolves them: relative to
the repository. So what they need is copied into a folder of the same layout, and Sphinx builds
that; `conf.py` adds what is made from the code. It never walks the repository itself: it follows
links, and recorded machines hold circles.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import screens
from regions import filled

__all__ = ["ROOT", "build", "sources"]

ROOT = Path(__file__).resolve().parents[1]
_PAGES = (
    "*.md",
    "docs/**/*.md",
    "docs/images/*.svg",
    "docs/_static/*",
    "chipdb/*.md",
    "chipdb/docs/*.md",
    "plugins/*/README.md",
    "plugins/*/docs/*.md",
)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
_START = '<!doctype html><meta charset="utf-8"><title>probe-core</title>'
_START += '<meta http-equiv="refresh" content="0; url=docs/index.html">'
_START += '<a href="docs/index.html">Documentation of probe-core</a>\n'


def sources() -> list[Path]:
    """Return the pages of the site and the files of the repository that they link to."""
    pages = {
        path for pattern in _PAGES for path in ROOT.glob(pattern) if "_build" not in path.parts
    }
    linked = {target for page in pages for target in _linked(page)}
    return sorted(pages | linked)


def _linked(page: Path) -> Iterator[Path]:
    if page.suffix != ".md":
        return
    for link in _LINK.findall(filled(page.read_text("utf-8"))):
        target = (page.parent / link).resolve()
        if "://" not in link and target.is_file() and target.is_relative_to(ROOT):
            yield target


def _stage(folder: Path) -> None:
    for path in sources():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    screens.add(folder)


def build(into: Path) -> subprocess.CompletedProcess[str]:
    """Build the site, the chips' pages included; every warning is an error in the result."""
    with tempfile.TemporaryDirectory() as work:
        stage = Path(work) / "stage"
        _stage(stage)
        options = ["-q", "-W", "--keep-going", "-E", "-b", "html", "-d", f"{work}/doctrees"]
        options += ["-c", str(ROOT / "docs"), str(stage), str(into)]
        ran = _python("-m", "sphinx", *options)
    if ran.returncode == 0:
        (into / "index.html").write_text(_START, "utf-8")
        ran = _python("-m", "probe_chipdb", "site", str(into / "chips"))
    return ran


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def main(arguments: list[str]) -> int:
    """Build into the folder that is named, and print what is wrong."""
    if len(arguments) != 1:
        print("usage: python docs/build_site.py OUT", file=sys.stderr)
        return 2
    ran = build(Path(arguments[0]).resolve())
    print(ran.stderr, end="", file=sys.stderr)
    if ran.returncode == 0:
        print(f"open {arguments[0]}/index.html")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
