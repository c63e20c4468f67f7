"""Sphinx's settings. The pages are plain Markdown, readable on a code host too."""

from __future__ import annotations

from typing import Any

project = "probe-core"
author = "the probe-core authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "alabaster"
html_title = "probe-core"
html_theme_options = {"description": "Says what a compute node is.", "fixed_sidebar": True}
# Links to source files and to READMEs leave the documentation's tree: they are for the code host.
suppress_warnings = ["myst.xref_missing", "myst.header"]

_CONTENTS = """
```{toctree}
:hidden:
:glob:

tutorial/*
how-to/*
reference/*
explanation/*
```
"""


def _add_contents(app: Any, name: str, text: list[str]) -> None:
    if name == "index":
        text[0] += _CONTENTS


def setup(app: Any) -> None:
    """Give the first page its table of contents here, where no code host shows it as a block."""
    app.connect("source-read", _add_contents)
