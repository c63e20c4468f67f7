"""Each promise of the two pages names the tests that would notice when it is broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECURITY, ISOLATION = "SECURITY.md", "docs/explanation/isolation.md"
HEAD = "Each promise and its test"


def rows(page: str) -> list[tuple[str, list[str]]]:
    text = (ROOT / page).read_text("utf-8")
    section = text.partition(f"## {HEAD}")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)
    return [
        (promise, re.findall(r"`([^`]+)`", tests))
        for promise, tests in cells[1:]
        if tests[0] == "`"
    ]


@pytest.mark.parametrize(("page", "least"), [(SECURITY, 20), (ISOLATION, 16)])
def test_every_promise_has_tests_that_are_there(page: str, least: int) -> None:
    promises = rows(page)
    assert len(promises) > least
    for promise, tests in promises:
        assert tests, promise
        for path in tests:
            text = (ROOT / path).read_text("utf-8")
            assert "\ndef test_" in text, f"{promise}: {path} has no test"


def test_every_section_about_isolation_has_a_promise() -> None:
    text = (ROOT / ISOLATION).read_text("utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^a-z -]", "", head.lower()).replace(" ", "-") for head in heads}
    named = {
        anchor
        for promise, _ in rows(ISOLATION)
        for anchor in re.findall(r"\(#([a-z-]+)\)", promise)
    }
    assert anchors - named == {HEAD.lower().replace(" ", "-")}
    assert named <= anchors


def test_every_room_of_hostile_tests_is_named() -> None:
    named = {path for _, tests in rows(SECURITY) for path in tests}
    hostile = {f"tests/hostile/{path.name}" for path in (ROOT / "tests/hostile").glob("test_*.py")}
    # Applications that are frozen are no attack: their page has their promises.
    assert hostile - named == {"tests/hostile/test_hostile_frozen.py"}


@pytest.mark.parametrize("folder", ["isolation", "lease"])
def test_every_file_of_tests_that_holds_a_promise_is_named(folder: str) -> None:
    """What is not named tests something else than a promise to the host or to other users."""
    named = {path for page in (SECURITY, ISOLATION) for _, tests in rows(page) for path in tests}
    present = {
        f"tests/{folder}/{path.name}" for path in (ROOT / "tests" / folder).glob("test_*.py")
    }
    others = {path.rpartition("/")[2].removesuffix(".py") for path in present - named}
    assert others == OTHERS[folder]


OTHERS = {
    "isolation": {
        "test_isolation_answers",
        "test_isolation_facts",
        "test_isolation_hook",
    },
    "lease": {
        "test_lease_blocked",
        "test_lease_cli",
        "test_lease_hosts",
        "test_lease_interrupted",
        "test_lease_memory",
        "test_lease_occupied",
        "test_lease_signals",
        "test_lease_style",
        "test_lease_trial",
    },
}
