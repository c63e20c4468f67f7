"""The commands of a command: each has its own table, from which all else about it follows."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from probe_core.cli import COMMANDS, FAMILIES, main
from probe_core.cli.parser import Parser, command_parser
from probe_core.cli.plugins import SUB_COMMANDS
from probe_core.commands.options import Argument, Option, plain, with_color


def option_names(name: str) -> set[str]:
    return {n for entry in SUB_COMMANDS[name].arguments for n in getattr(entry, "names", ())}


FOREIGN = [
    (name, option)
    for name in SUB_COMMANDS
    for option in sorted(set().union(*map(option_names, SUB_COMMANDS)) - option_names(name))
]


def outcome(argv: list[str]) -> int:
    try:
        return main(argv)
    except SystemExit as error:
        return int(error.code or 0)


def module_of(name: str) -> object:
    return import_module(f"probe_core.cli.{COMMANDS[name][0]}")


def test_families_are_named_where_the_command_line_is_split() -> None:
    assert [name for name in COMMANDS if hasattr(module_of(name), "SUB_COMMANDS")] == [*FAMILIES]


@pytest.mark.parametrize(("name", "option"), FOREIGN)
def test_an_option_of_another_command_is_refused_with_its_owner(
    name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    owners = [other for other in SUB_COMMANDS if option in option_names(other)]
    assert outcome(["plugins", name, "cpu", option]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"probe plugins {name}: no option {option}. ")
    assert all(owner in err.split(". ")[1] for owner in owners)


@pytest.mark.parametrize("name", SUB_COMMANDS)
def test_a_command_may_stand_behind_its_options(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--machine" not in option_names(name):
        return
    (tmp_path / "proc").mkdir()
    options = ["--machine", str(tmp_path), "--only", "cpu"]
    target = ["cpu"] if name != "run" else []
    before = outcome(["plugins", *options, name, *target]), capsys.readouterr().err
    behind = outcome(["plugins", name, *target, *options]), capsys.readouterr().err
    assert before == behind


@pytest.mark.parametrize("name", [*COMMANDS, *(f"plugins {own}" for own in SUB_COMMANDS)])
def test_a_table_is_read_as_argparse_reads_it(name: str) -> None:
    command, _, own = name.partition(" ")
    module = module_of(command)
    table = SUB_COMMANDS[own].arguments if own else module.ARGUMENTS  # type: ignore[attr-defined]
    line = sample(with_color(table))
    read = plain(line, with_color(table))
    assert read is not None
    assert vars(read) == vars(parser_of(name).parse_args(line))
    assert vars(read).get("color", "never") == "never"


def parser_of(name: str) -> Parser:
    command, _, own = name.partition(" ")
    parser = command_parser(command, module_of(command))  # type: ignore[arg-type]
    return parser.of_command(own) if own else parser


def sample(table: list[Argument | Option]) -> list[str]:
    """Return a sound line with everything that a table has."""
    words: list[str] = []
    options: list[str] = []
    for entry in table:
        if isinstance(entry, Argument):
            words += [str((*entry.choices, "x")[0])]
        elif not entry.metavar:
            options += [entry.names[-1]]
        elif entry.name == "color":
            options += ["--color", "never"]
        else:
            options += [entry.names[-1], str((*entry.choices, "1")[-2 if entry.choices else 0])]
    return [*options, *words]


@pytest.mark.parametrize("choice", ["always", "never"])
@pytest.mark.parametrize("name", [*COMMANDS, *(f"plugins {own}" for own in SUB_COMMANDS)])
def test_every_command_has_color(
    name: str,
    choice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert outcome([*name.split(), "--color", choice, "--help"]) == 0
    assert ("\x1b[" in capsys.readouterr().out) is (choice == "always")


def test_sound_lines_of_sub_commands_need_no_argparse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc").mkdir()
    monkeypatch.setitem(sys.modules, "probe_core.cli.parser", None)
    for line in (["list", "cpu"], ["check", "--json"], ["why-not", "cpu"], ["--long"]):
        assert outcome(["plugins", *line, "--machine", str(tmp_path), "--only", "cpu"]) == 0
