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
