"""Everything the pages tell a reader to type is typed, and prints what the pages say."""

from __future__ import annotations

import ast
import configparser
import importlib
import importlib.util
import json
import signal
import time
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import docpages
import pytest
import yaml
from docplace import Place
from weights import mostly_heavy

import probe_core
from probe_core.model.ids import ACCELERATORS

RUNNABLE = {"sh", "bash", "python"}
# Page: what runs its blocks, or why nothing does.
RUN_ELSEWHERE = {
    "reference/visibility.md": "its examples need GPUs; tests/lease runs the like",
    "chipdb/README.md": "chipdb/tests/test_docs.py runs its session, tables and example package",
    "plugins/exo/README.md": "plugins/exo/tests/test_exo_docs.py runs its blocks",
    "plugins/cluster/README.md": "docs/how-to/home-cluster.md has the same commands, and runs them",
    "CONTRIBUTING.md": "the commands set up and run the very tests, as .ci/run does",
}
SHOWN_ONLY = {"", "text", "console", "pycon", "dockerfile"}
PAGES = docpages.everywhere()
WITH_STEPS = [
    page for page in PAGES if any(b.directive in ("run", "file") for b in docpages.blocks(page))
]


@cache
def has_accelerators() -> bool:
    """The pages show what a computer without any prints; on others their steps alone are run."""
    return any(device.kind in ACCELERATORS for device in probe_core.probe(only="none").devices)


def needs_pip(page: Path) -> bool:
    return any("pip " in b.text for b in docpages.blocks(page) if b.directive == "run")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", mostly_heavy(WITH_STEPS, 25), ids=docpages.name)
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
            notebook = block.detail == "notebook"
            ran = place.run(block.language, block.text, notebook=notebook)
            expected = 0 if notebook else int(block.detail.removeprefix("exit ") or 0)
            assert ran.returncode == expected, f"{where} ended with {ran.returncode}:\n{ran.stdout}"
            printed = ran.stdout
        elif block.directive == "output" and not has_accelerators():
            assert docpages.matches(block.text, printed), f"{where}: printed was\n{printed}"


def test_pages_that_others_run_exist() -> None:
    assert set(RUN_ELSEWHERE) <= set(map(docpages.name, PAGES))
    files = [word for reason in RUN_ELSEWHERE.values() for word in reason.split() if "/" in word]
    assert len(files) == len(RUN_ELSEWHERE)
    assert [name for name in files if not (docpages.ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "page", [p for p in PAGES if docpages.name(p) not in RUN_ELSEWHERE], ids=docpages.name
)
def test_every_runnable_block_is_run_or_says_why_not(page: Path) -> None:
    silent = [
        block.line
        for block in docpages.blocks(page)
        if block.language in RUNNABLE
        and (not block.directive or (block.directive == "not run" and not block.detail))
    ]
    assert silent == []


@pytest.mark.parametrize(
    "page", sorted(docpages.ROOT.glob("plugins/*/README.md")), ids=docpages.name
)
def test_the_readme_of_a_plugin_begins_with_its_use_in_ten_lines(page: Path) -> None:
    first = next(block for block in docpages.blocks(page) if block.language in RUNNABLE)
    assert first.directive == "run"  # so that test_every_step_does_what_the_page_says has it
    assert first.line <= 14
    assert len(first.text.splitlines()) <= 10
    assert "probe" in first.text


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_import_that_a_page_shows_is_there(page: Path) -> None:
    for block in docpages.blocks(page):
        if block.language != "python" or block.directive in ("run", "file", "add"):
            continue  # what is run proves it
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("probe_"):
                module = importlib.import_module(str(node.module))
                names = {alias.name for alias in node.names} - {"*"}
                assert {name for name in names if not hasattr(module, name)} == set()


def _systemd(text: str) -> object:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read_string(text)
    return parser


READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "ini": _systemd,
}
# Blocks with an ellipsis stand for more than they show.
ABRIDGED = {"reference/recording.md": 1}


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_every_block_of_data_can_be_read(page: Path) -> None:
    data = [block for block in docpages.blocks(page) if block.language in READERS]
    abridged = [block for block in data if "…" in block.text]
    assert len(abridged) == ABRIDGED.get(docpages.name(page), 0)
    for block in data:
        if block not in abridged:
            assert READERS[block.language](block.text)


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_no_block_is_of_a_language_that_nothing_checks(page: Path) -> None:
    known = RUNNABLE | SHOWN_ONLY | set(READERS)
    assert {block.language for block in docpages.blocks(page)} <= known


@pytest.mark.parametrize("page", PAGES, ids=docpages.name)
def test_what_a_page_expects_follows_a_run(page: Path) -> None:
    ran, lost = False, []
    for block in docpages.blocks(page):
        if block.directive == "output" and not ran:
            lost.append(block.line)
        ran = block.directive == "run"
    assert lost == []


def test_a_pattern_matches_only_what_it_says() -> None:
    assert docpages.matches("a … c\n", "a b c\n")
    assert docpages.matches("…\nlast", "one\ntwo\nlast\n")
    assert docpages.matches("first\n…", "first\n")
    assert not docpages.matches("a … c\n", "a b c\nd\n")
    assert not docpages.matches("first\n…", "other\nfirst\n")


def test_a_block_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    """Also where a daemon in a session of its own keeps the block's output open, as Ray's do."""
    place = Place(tmp_path)
    place.seconds = 1.0
    start = time.monotonic()
    ran = place.run("sh", "setsid sleep 20 & sleep 21 & echo started; sleep 22")
    assert (ran.returncode, ran.stdout) == (-signal.SIGKILL, "started\nkilled after 1 s\n")
    assert time.monotonic() - start < 15
