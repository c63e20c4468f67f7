"""The table of options read alone gives what argparse gives, or leaves it to argparse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.cli import report
from probe_core.cli.parser import Parser
from probe_core.cli.plain import plain

NAMES = [f"--{option.name}" for option in report.OPTIONS]
WORDS = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(NAMES).map(lambda name: f"{name}=x,y"),
    st.sampled_from(["", "x", "-1", "--", "-", "a b", "--onl", "--only=", "--json=1", "-h", "="]),
    st.text(max_size=5),
)


def by_argparse(arguments: list[str]) -> dict[str, object] | None:
    """Return what argparse reads; None where it ends the process."""
    parser = Parser(prog="probe", allow_abbrev=False)
    report.add_arguments(parser)
    try:
        return vars(parser.parse_args(arguments))
    except SystemExit:
        return None


@given(st.lists(WORDS, max_size=4))
def test_it_agrees_with_argparse_or_leaves_the_line_to_it(arguments: list[str]) -> None:
    read = plain(arguments, report.OPTIONS)
    if read is not None:
        assert vars(read) == by_argparse(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--json", "--strict"],
        ["--only", "cpu", "--timeout=2.5", "--active"],
        ["--only", "", "--only", "a b"],
        ["--priority=nvidia=900"],
    ],
)
def test_sound_lines_are_read_without_argparse(arguments: list[str]) -> None:
    read = plain(arguments, report.OPTIONS)
    assert read is not None
    assert vars(read) == by_argparse(arguments)


@pytest.mark.parametrize("argument", ["--help", "--version", "--jsn", "x", "--only", "--json=1"])
def test_everything_else_is_left_to_argparse(argument: str) -> None:
    assert plain([argument], report.OPTIONS) is None
