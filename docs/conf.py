"""Sphinx's settings: `python docs/build_site.py OUT` builds. Code hosts show the pages, too."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from regions import filled

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "probe-core"
author = "the probe-core authors"
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "probe-core"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Both styles have a contrast of 7 to 1 and more on their own background.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
# A prompt or an output is not what a reader wants to paste.
copybutton_exclude = ".linenos, .gp, .go"

_CONTENTS = "<!-- contents -->"
_CHIPS = "<!-- site: chips -->"
_SECTION = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
_PAGE = re.compile(r"\]\((?!\w+:)([^)#\s]+\.md)\)")
_TREE = '\n```{{toctree}}\n:hidden:\n:caption: "{}"\n\n{}\n```\n'


def _trees(contents: str, plugins: list[str]) -> str:
    """Return the sidebar's groups: the first page's own lists of links, with their headings.

    A plugin's page that no list names joins those of the plugins.
    """
    parts = _SECTION.split(contents)[1:]
    groups = {
        title: _PAGE.findall(text) for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    listed = {page for pages in groups.values() for page in pages}
    groups["Our plugins"] += sorted(set(plugins) - listed)
    return "".join(
        _TREE.format(title, "\n".join(pages)) for title, pages in groups.items() if pages
    )


def _add_site_parts(app: Sphinx, name: str, text: list[str]) -> None:
    """Add what only the site has: the parts made from the code, the sidebar, the chips' pages."""
    text[0] = filled(text[0])
    if _CONTENTS in text[0]:
        plugins = [f"../{page}.md" for page in app.env.found_docs if page.startswith("plugins/")]
        text[0] += _trees(text[0].partition(_CONTENTS)[2], plugins)
    chips = posixpath.relpath("chips/index.html", posixpath.dirname(name))
    link = f'<a href="{chips}">Search all chips</a>: every figure with its source.'
    text[0] = text[0].replace(_CHIPS, f"<p>{link}</p>")


def setup(app: Sphinx) -> None:
    """Register what adds them."""
    app.connect("source-read", _add_site_parts)
