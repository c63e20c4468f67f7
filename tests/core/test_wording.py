"""Sentences: near names, foreign text made safe, exceptions that bite."""

from __future__ import annotations

import pytest

from probe_core.likeness import did_you_mean
from probe_core.wording import clean_text, error_text, joined


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("nvidai", ["nvidia", "amd"], "did you mean 'nvidia'?"),
        ("zzz", ["b", "a"], "known: a, b"),
        ("zzz", [], "none is known"),
    ],
)
def test_did_you_mean(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint


@pytest.mark.parametrize(
    ("foreign", "safe"),
    [
        ("plain", "plain"),
        ("Tesla™ V100", "Tesla™ V100"),
        ("a\nb\tc", "a b c"),
        ("\x1b[2J", "\ufffd[2J"),
        ("a\u202eb\u200bc\u2066", "a\ufffdb\ufffdc\ufffd"),
        ("\udcff", "\ufffd"),
        ("x" * 300, "x" * 255 + "…"),
        ("", ""),
    ],
)
def test_foreign_text(foreign: str, safe: str) -> None:
    assert clean_text(foreign) == safe


class Biting(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("x"), "ValueError: x"),
        (ValueError(), "ValueError"),
        (Biting(), "Biting: (its message cannot be printed)"),
    ],
)
def test_errors(error: BaseException, said: str) -> None:
    assert error_text(error) == said


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), ("abc", "a, b or c")]
)
def test_joined(words: list[str], text: str) -> None:
    assert joined(words) == text


def test_what_cannot_be_seen_or_turns_the_text_is_replaced() -> None:
    hidden = [*range(9), *range(0xB, 0x20), *range(0x7F, 0xA1), 0xAD, *range(0x200B, 0x2010)]
    hidden += [*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xFEFF, 0xE0001]
    assert {clean_text(f"a{chr(code)}é") for code in hidden} == {"a\ufffdé"}
    shown = [*range(0x20, 0x7F), 0xA1, 0x2010, 0x2027, 0x20AC, 0x1F600]
    assert [clean_text(f"a{chr(code)}é") for code in shown] == [f"a{chr(code)}é" for code in shown]
    assert clean_text("a\tb\né") == "a b é"
