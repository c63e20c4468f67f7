"""Sphinx's settings: the pages are plain Markdown with relative links, readable on a code host too."""

from __future__ import annotations

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
