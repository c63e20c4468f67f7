"""Each option that a page names is one of a command's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", *ROOT.glob("plugins/*/README.md")]
OF_OTHERS = {"--collector", "--compile-bytecode", "--cpuset-cpus", "--no-compile", "--no-index"}
OF_OTHERS |= {"--num-gpus", "--nv", "--onedir", "--onefile", "--runtime"}
"""Of node_exporter, uv, pip, docker, Ray, Apptainer and PyInstaller."""
OF_ALL = {"--help", "--help-all"}


def test_what_pages_name_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import regions_cli

    option = r"--[a-z][a-z0-9-]*"
    made = regions_cli.cli() + regions_cli.plugins()
    known = set(re.findall(rf"(?<![\w-]){option}", made)) | OF_ALL
    texts = [page.read_text("utf-8") for page in PAGES]
    named = {
        name for text in texts for name in re.findall(rf"`(?:probe [a-z]* ?)?({option})", text)
    }
    assert named - known <= OF_OTHERS
    assert len(named & known) > 80  # the pages are found, and their options
