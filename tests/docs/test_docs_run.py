"""Everything the pages tell a reader to type is typed, and prints what the pages say."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import tomllib
from pathlib import Path

import docpages
import pytest
from docplace import Place

RUNNABLE = {"sh", "bash", "python"}
RUN_ELSEWHERE = {"reference/visibility.md": "tests/lease"}
PAGES = docpages.pages()
WITH_STEPS = [
    page for page in PAGES if any(b.directive in ("run", "file") for b in docpages.blocks(page))
]


def needs_pip(page: Path) -> bool:
    return any("pip " in b.text for b in docpages.blocks(page) if b.directive == "run")


@pytest.mark.parametrize("page", WITH_STEPS, ids=docpages.name)
def test_every_step_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    tools = ("pip", "hatchling") if needs_pip(page) else ()
    missing = [tool for tool in tools if not importlib.util.find_spec(tool)]
    if missing:
        pytest.skip(f"the page installs a plugin, and there is no {' and no '.join(missing)} here")
    place = Place(tmp_path)
    printed = ""
    for block in docpages.blocks(page):
        where = f"docs/{docpages.name(page)}:{block.line}"
        if block.directive == "file":
            place.write(block.detail, block.text)
        elif block.directive == "add":
            place.add(block.detail, block.text)
        elif block.directive == "run":
            ran = place.run(block.language, block.text)
            expected = int(block.detail.removeprefix("exit ") or 0)
            assert ran.returncode == expected, f"{where} ended with {ran.returncode}:\n{ran.stdout}"
            printed = ran.stdout
        elif block.directive == "output":
            assert docpages.matches(block.text, printed), f"{where}: printed was\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_runnable_block_is_run_or_says_why_not(page: Path) -> None:
    if docpages.name(page) in RUN_ELSEWHERE:
        pytest.skip(f"its examples need GPUs; {RUN_ELSEWHERE[docpages.name(page)]} runs the like")
    silent = [
        block.line
        for block in docpages.blocks(page)
        if block.language in RUNNABLE
        and (not block.directive or (block.directive == "not run" and not block.detail))
    ]
    assert silent == []


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_import_that_a_page_shows_is_there(page: Path) -> None:
    for block in docpages.blocks(page):
        if block.language != "python" or block.directive in ("run", "file", "add"):
            continue  # what is run proves it
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("probe_"):
                module = importlib.import_module(str(node.module))
                assert [a.name for a in node.names if not hasattr(module, a.name)] == []


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_block_of_data_can_be_read(page: Path) -> None:
    for block in docpages.blocks(page):
        if "…" in block.text or block.directive == "output":
            continue
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def test_a_pattern_matches_only_what_it_says() -> None:
    assert docpages.matches("a … c\n", "a b c\n")
    assert docpages.matches("…\nlast", "one\ntwo\nlast\n")
    assert docpages.matches("first\n…", "first\n")
    assert not docpages.matches("a … c\n", "a b c\nd\n")
    assert not docpages.matches("first\n…", "other\nfirst\n")
