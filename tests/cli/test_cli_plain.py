"""The table of options read alone gives what argparse gives, or leaves it to argparse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.cli import devices
from probe_core.cli import exec as exec_command
from probe_core.cli.parser import Parser
from probe_core.commands.options import (
    COLOR,
    PROBING,
    Argument,
    Option,
    add_options,
    plain,
    under,
    with_color,
)

FORMAT = Argument("format", "the format", count="?")
NAMES = [f"--{option.name}" for option in devices.ARGUMENTS]
WORDS = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(NAMES).map(lambda name: f"{name}=x,y"),
    st.sampled_from(["", "x", "-1", "--", "-", "a b", "--onl", "--only=", "--json=1", "-h", "="]),
    st.text(max_size=5),
)


def by_argparse(arguments: list[str]) -> dict[str, object] | None:
    """Return what argparse reads; None where it ends the process."""
    parser = Parser(prog="probe", allow_abbrev=False)
    add_options(parser, devices.ARGUMENTS)
    try:
        return vars(parser.parse_args(arguments))
    except SystemExit:
        return None


@pytest.mark.heavy
@given(st.lists(WORDS, max_size=4))
def test_it_agrees_with_argparse_or_leaves_the_line_to_it(arguments: list[str]) -> None:
    read = plain(arguments, devices.ARGUMENTS)
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
    read = plain(arguments, devices.ARGUMENTS)
    assert read is not None
    assert vars(read) == by_argparse(arguments)


@pytest.mark.parametrize("argument", ["--help", "--version", "--jsn", "x", "--only", "--json=1"])
def test_everything_else_is_left_to_argparse(argument: str) -> None:
    assert plain([argument], devices.ARGUMENTS) is None


EXEC_NAMES = [name for option in exec_command.ARGUMENTS for name in getattr(option, "names", ())]
EXEC_WORDS = st.one_of(
    st.sampled_from(EXEC_NAMES),
    st.sampled_from(EXEC_NAMES).map(lambda name: f"{name}=1"),
    st.sampled_from(["", "1", "2.5", "next", "uuid", "-1", "--", "-", "true"]),
    st.sampled_from(["-n2", "--wai", "--all=1", "--wait="]),
    st.text(max_size=4),
)  # fmt: skip


def exec_by_argparse(arguments: list[str]) -> dict[str, object] | None:
    """Return what argparse reads, without the dashes in front of the command."""
    parser = Parser(prog="probe exec", allow_abbrev=False)
    add_options(parser, exec_command.ARGUMENTS)
    try:
        values = vars(parser.parse_args(arguments))
    except SystemExit:
        return None
    command = values["command"]
    return {**values, "command": command[1:] if command[:1] == ["--"] else command}


@pytest.mark.heavy
@given(st.lists(EXEC_WORDS, max_size=6))
def test_lines_of_exec_are_read_as_argparse_does(arguments: list[str]) -> None:
    read = plain(arguments, exec_command.ARGUMENTS)
    if read is not None:
        assert vars(read) == exec_by_argparse(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--", "true"],
        ["true", "--gpus", "2"],
        ["-n", "2", "--memory=20GiB", "--wait", "--", "true", "--"],
        ["--wait", "5", "--share", "--", "true"],
        ["--shared", "--wait", "--", "true"],
        ["--layout", "4x2", "--index", "next", "--style", "index", "--", "a b", ""],
        ["--dry-run", "--only", "cpu", "--wait"],
    ],
)
def test_sound_lines_of_exec_need_no_argparse(arguments: list[str]) -> None:
    read = plain(arguments, exec_command.ARGUMENTS)
    assert read is not None
    assert vars(read) == exec_by_argparse(arguments)


@pytest.mark.parametrize(
    "arguments",
    [["--gpus", "x", "true"], ["--style", "name", "true"], ["--index", "-1"], ["--wait", "true"],
     ["--wait", "--gpus", "1"], ["--nope", "true"], ["--gpus"], ["-n1", "true"]],
)  # fmt: skip
def test_other_lines_of_exec_are_left_to_argparse(arguments: list[str]) -> None:
    assert plain(arguments, exec_command.ARGUMENTS) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nfd"], "nfd"),
        (["--json", "nfd"], "nfd"),
        (["nfd", "--only", "cpu"], "nfd"),
        ([], None),
    ],
)
def test_one_positional_is_read(arguments: list[str], expected: str | None) -> None:
    read = plain(arguments, [FORMAT, *devices.ARGUMENTS])
    assert read is not None
    assert vars(read)["format"] == expected


@pytest.mark.parametrize("arguments", [["a", "b"], [""], ["--", "a"], ["a", "-x"]])
def test_more_than_one_positional_is_left_to_argparse(arguments: list[str]) -> None:
    assert plain(arguments, [FORMAT, *devices.ARGUMENTS]) is None


def test_the_option_of_colours_stands_between_the_commands_own_and_those_of_a_probe() -> None:
    own = Option("own", "N", "its own")
    (probing,) = under(PROBING, Option("only", "N", "shared"))
    assert with_color([own, probing]) == [own, COLOR, probing]
    assert with_color([own]) == [own, COLOR]
    assert with_color([COLOR, own]) == [COLOR, own]
