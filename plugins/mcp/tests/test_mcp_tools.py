"""What each tool asks of `probe`, and what it answers; a script stands in the place of Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from probe_mcp.tools import Refused, Tools, value_of

PYTHON = """#!/bin/sh
printf '%s\\n' "$@" >"{place}/words"
cat "{place}/answer"
printf "$(cat "{place}/error")" >&2
exit 3
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what `probe` prints, and a file of the words that it was called with."""
    python = tmp_path / "python"
    python.write_text(PYTHON.format(place=tmp_path))
    python.chmod(0o755)
    (tmp_path / "error").write_text("")
    monkeypatch.setattr(sys, "executable", str(python))
    return tmp_path


def asked(place: Path, printed: object, tool: str, *values: object) -> tuple[list[str], Any]:
    """Return the words of the command, and the answer of a tool."""
    (place / "answer").write_text(json.dumps(printed))
    answer = json.loads(anyio.run(getattr(Tools("m.json"), tool), *values))
    first = ["-P", "-m", "probe_core"]
    words = (place / "words").read_text().splitlines()
    assert words[:3] == first
    return words[3:], answer


PAGE = {"cursor": None, "truncated": False, "shortened": []}
DEVICE = {"id": "pci:1", "ids": ["pci:1", "GPU-1"], "peaks": [1]}
REPORT = {"devices": [DEVICE], "outcomes": [1], "decisions": [2], "timings_ms": {}, "node": "n"}
NO_NAME = "model: expected parameters or a name; files are not read"
HERE = ["--json", "--machine=m.json"]


@pytest.mark.parametrize(
    ("tool", "values", "printed", "words", "answer"),
    [
        ("report", ["GPU-1"], REPORT, HERE, {**REPORT, "total": 1}),
        (
            "doctor",
            ["pci:1"],
            {"findings": [7], "checks": [
                {"code": code, "status": code, "reason": "r", "more": 1}
                for code in ("failed", "passed", "unknown")
            ]},
            ["doctor", *HERE, "--device=pci:1"],
            {"findings": [7], "total": 1, "checks": [
                {"code": code, "status": code, "reason": "r"} for code in ("failed", "unknown")
            ]},
        ),
        ("doctor", [], {"findings": []}, ["doctor", *HERE],
         {"findings": [], "checks": [], "total": 0}),
        (
            "visible",
            [],
            {"cuda": [1], "hip": []},
            ["visible", *HERE],
            {"runtimes": [{"runtime": "cuda", "sees": [1]}, {"runtime": "hip", "sees": []}],
             "total": 2},
        ),
        (
            "visible",
            ["cuda"],
            [1],
            ["visible", *HERE, "--for=cuda"],
            {"runtimes": [{"runtime": "cuda", "sees": [1]}], "total": 1},
        ),
        ("chip", ["-h"], [1], ["chip", "--json", "--", "-h"], {"chips": [1], "total": 1}),
        ("fit", ["7b"], {"nodes": [1]}, ["fit", *HERE, "--", "7b"], {"nodes": [1], "total": 1}),
        (
            "fit",
            ["a/b", "4bit", 1],
            {"nodes": []},
            ["fit", *HERE, "--bits=4bit", "--context=1", "--", "a/b"],
            {"nodes": [], "total": 0},
        ),
        (
            "expect",
            ["8xh100"],
            {"expected": {"absent": []}, "findings": [{"setting": "expect"}, {"setting": None}]},
            ["--expect=8xh100", *HERE],
            {"expected": {"absent": []}, "findings": [{"setting": "expect"}], "total": 1},
        ),
    ],
    ids=range(9),
)  # fmt: skip
def test_what_a_tool_asks_and_answers(
    place: Path, tool: str, values: list[Any], printed: Any, words: list[str], answer: Any
) -> None:
    assert asked(place, printed, tool, *values) == (words, {**answer, **PAGE})


def test_a_report_in_brief_leaves_out_how_it_was_found(place: Path) -> None:
    words, answer = asked(place, REPORT, "report")
    assert words == HERE
    assert sorted(answer) == sorted(["node", "devices", "total", *PAGE])
    assert "peaks" not in answer["devices"][0]


@pytest.mark.parametrize(
    ("tool", "values", "printed", "sentence"),
    [
        ("report", ["pci:2"], REPORT, "no device has the id 'pci:2'"),
        ("expect", ["?"], {"findings": []},
         "the expectation was not understood; write it as 8xh100"),
        ("fit", ["m" * 101], {}, NO_NAME),
        ("fit", [f"m/{'n' * 101}"], {}, NO_NAME),
        ("fit", ["a/b/c"], {}, NO_NAME),
        ("fit", ["-m"], {}, NO_NAME),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_question_without_an_answer_is_refused(
    place: Path, tool: str, values: list[Any], printed: Any, sentence: str
) -> None:
    with pytest.raises(Refused) as error:
        asked(place, printed, tool, *values)
    assert str(error.value) == sentence


@pytest.mark.parametrize("model", [f"{'m' * 100}/{'n' * 99}", f"m/{'n' * 100}"])
def test_a_model_may_have_a_hundred_letters_on_each_side(place: Path, model: str) -> None:
    assert asked(place, {"nodes": []}, "fit", model)[0][-1] == model


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("", "probe ended with status 3"),
        ("probe chip: first\nsecond\n", "probe chip: first"),
        ("x" * 700, f"{'x' * 599}…"),
    ],
    ids=range(3),
)
def test_what_is_no_document_is_the_commands_own_sentence(
    place: Path, said: str, sentence: str
) -> None:
    (place / "answer").write_text("no JSON")
    (place / "error").write_text(said)
    with pytest.raises(Refused) as error:
        anyio.run(Tools(None).chip, "a")
    assert str(error.value) == sentence


def test_a_value_is_short_and_printable() -> None:
    assert value_of("name", "x" * 200) == "x" * 200
    for text in ("x" * 201, "a\nb"):
        with pytest.raises(Refused, match=r"^name: expected at most 200 printable characters$"):
            value_of("name", text)
