"""Each promise of the two pages names the tests that would notice when it is broken."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
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


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, each row of a table as one, without headings and code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=#)|\n(?=\s*(?:- |\d+\. ))", text):
        if block.lstrip().startswith("|"):
            yield from (row.strip("| ") for row in block.strip().splitlines()[2:])
        elif block.strip() and not block.lstrip().startswith("#"):
            words = " ".join(re.sub(r"^\s*(- |\d+\. )", "", block).split())
            yield from re.split(r"(?<=[.!?])(?:\*\*)? (?=[\"`*\[A-Z(])", words)


def test_what_counts_as_a_sentence() -> None:
    page = (
        "# T\n\nA b. C `d`\ne! **F.** G:\n- h\n2. I.\n\n| x |\n|--|\n| j | k |\n\n```\nX. Y.\n```\n"
    )
    assert list(sentences(page)) == ["A b.", "C `d` e!", "**F.", "G:", "h", "I.", "j | k"]


NO_PROMISE = ("advice", "limit", "reason")


@pytest.mark.parametrize("page", [SECURITY, ISOLATION])
def test_every_sentence_has_its_test_or_the_reason_why_it_has_none(page: str) -> None:
    promises = tomllib.loads((ROOT / "tests/docs/promises.toml").read_text("utf-8"))[page]
    text = (ROOT / page).read_text("utf-8").partition(f"## {HEAD}")[0]
    seen = set()
    for sentence in dict.fromkeys(sentences(text)):
        named = [words for words in promises if sentence.startswith(words)]
        assert named, f"{page}: a sentence without its test: {sentence}"
        seen.add(max(named, key=len))
    assert promises.keys() == seen, "words that begin no sentence"
    for words, tests in promises.items():
        assert tests in NO_PROMISE or (tests and isinstance(tests, list)), words
        for test in tests if isinstance(tests, list) else ():
            path, _, name = test.partition("::")
            source = (ROOT / f"tests/{path}.py").read_text("utf-8")
            assert re.search(rf"^(async )?def test_{name}\(", source, re.MULTILINE), test


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
        "test_isolation_bounds",
        "test_isolation_child",
        "test_isolation_facts",
        "test_isolation_hook",
    },
    "lease": {
        "test_lease_acquire",
        "test_lease_blocked",
        "test_lease_cli",
        "test_lease_hosts",
        "test_lease_interrupted",
        "test_lease_keeper_copy",
        "test_lease_memory",
        "test_lease_occupied",
        "test_lease_records",
        "test_lease_signals",
        "test_lease_spawn",
        "test_lease_style",
        "test_lease_trial",
        "test_lease_trial_child",
    },
}
