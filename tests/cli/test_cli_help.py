"""Help: examples first, the command's own options next, those of all commands on demand."""

from __future__ import annotations

import shlex
from argparse import Action
from collections.abc import Callable
from importlib import import_module

import pytest

from probe_core.cli import COMMANDS, GROUPS, main
from probe_core.cli.help import _headed, _pairs, help_lines
from probe_core.cli.parser import Parser, command_parser, meaning, sections, written
from probe_core.cli.plugin_commands import BROUGHT_BY
from probe_core.cli.plugins import SUB_COMMANDS
from probe_core.commands import Context
from probe_core.commands.options import SHARED_OPTIONS
from probe_core.commands.text import width_of

NAMES = [*COMMANDS, *BROUGHT_BY, *(f"plugins {own}" for own in SUB_COMMANDS)]
PROBING = ["devices", "explain", "visible", "plugins", "exec", "layout"]


def brought(name: str) -> str:
    """Return the module of a command that a plugin of this repository brings."""
    return f"{BROUGHT_BY[name]}.{name}_command".replace("-", "_")


def parser_of(name: str) -> Parser:
    module = f"probe_core.cli.{COMMANDS[name][0]}" if name in COMMANDS else ""
    if name in COMMANDS or name in BROUGHT_BY:
        return command_parser(name, import_module(module or brought(name)))
    command, _, own = name.partition(" ")
    return parser_of(command).of_command(own)


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    """Return the lines that a command line prints; it succeeds and has nothing to say."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    return out.splitlines()


def test_the_help_of_probe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    lines = shown(capsys, "--help")
    heads = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    tasks = [f"{group}:" for group in GROUPS]
    assert heads == ["Examples:", *tasks, "Options:", "Probing:"]
    assert lines[2:4] == ["Usage: probe [OPTIONS]", "       probe COMMAND [OPTIONS]"]
    at = lines.index("Examples:")
    assert [line.split("  ")[1] for line in lines[at + 1 : at + 5]] == [
        "probe",
        "probe doctor",
        "probe --json | jq .devices",
        "probe exec --gpus 2 -- python train.py",
    ]
    assert lines[at + 5] == ""
    own = lines[lines.index("Options:") + 1 : lines.index("Probing:") - 1]
    for line in (
        "      --json             print one JSON document",
        "      --strict           exit with 1 when something is wrong",
        "  -V, --version          print the version of probe-core",
    ):
        assert line in own
    assert own[-2:] == [
        "  -h, --help             this text",
        "      --help-all         every option",
    ]


@pytest.mark.parametrize(
    ("argv", "same"),
    [
        (["help"], ["--help"]),
        (["-h"], ["--help"]),
        (["help", "exec"], ["exec", "--help"]),
        (["-h", "exec"], ["exec", "--help"]),
        (["--help", "exec"], ["exec", "--help"]),
        (["help", "exec", "--gpus"], ["exec", "--help"]),
        (["--help-all", "exec"], ["exec", "--help-all"]),
        (["help", "exec", "--help-all"], ["exec", "--help-all"]),
        (["help", "topology"], ["topology", "--help"]),
        (["help", "plugins", "new"], ["plugins", "new", "--help"]),
        (["--help-all", "plugins", "list"], ["plugins", "list", "--help-all"]),
        (["help", "help"], ["--help"]),
        (["--json", "--help"], ["--help"]),
        (["exec", "--gpus", "2", "-h"], ["exec", "--help"]),
    ],
)
def test_every_way_to_ask_for_help(
    argv: list[str], same: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, *argv) == shown(capsys, *same)


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [60, 72, 80, 132])
def test_help_fits_the_terminal(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for option in ("--help", "--help-all"):
        lines = shown(capsys, *name.split(), option)
        code = [f"  {line}" for line, _ in parser_of(name).examples]
        code += [line for line in lines if line.startswith(("Usage:", "       probe"))]
        # What is typed is not broken: a terminal may wrap it.
        wide = [line for line in lines if width_of(line) > columns and line not in code]
        assert wide == []


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_in_the_help_and_in_the_reference(
    name: str, capsys: pytest.CaptureFixture[str], reference: Callable[[str], str]
) -> None:
    text = " ".join(" ".join(shown(capsys, *name.split(), "--help-all")).split())
    page = reference("cli")
    title = "probe" if name == "devices" else f"probe {name}"
    level = "####" if " " in name else "###"
    section = page.split(f"\n{level} {title}\n")[1].split("\n###")[0]
    for part in sections(parser_of(name)):
        for action in part.actions:
            assert written(action) in text
            assert " ".join(meaning(action).split()) in text
            if not part.shared and "--help" not in " ".join(action.option_strings):
                assert f"| `{written(action)}` | {meaning(action)} |" in section


@pytest.mark.parametrize("name", PROBING)
def test_the_options_of_all_commands_are_behind_help_all(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were 17 of the 46 lines of `probe exec --help`."""
    options = [f"--{option.name}" for option in SHARED_OPTIONS]
    full = " ".join(shown(capsys, name, "--help-all"))
    assert [option for option in options if f" {option} " not in full] == []
    short = shown(capsys, name, "--help")
    head = [line.split()[0] for line in short if line.startswith("      --")]
    in_short = ["--active", "--machine"] if name == "devices" else []
    assert [option for option in head if option in options] == in_short


def test_a_meaning_stands_beside_its_name_where_there_is_room() -> None:
    rows = [("abcd", "one two three"), ("abcde", "one two"), ("a", "")]
    assert list(_pairs(rows, 17, 8, False)) == [
        "  abcd  one two",
        "        three",
        "  abcde",
        "        one two",
        "  a",
    ]
    assert list(_pairs(rows[:1], 40, 8, True)) == ["  \x1b[36mabcd\x1b[0m  one two three"]


def test_a_heading_stands_above_each_group() -> None:
    assert _headed(["A", "A", "B", "C"], ["1", "2", "3", "4"], False) == [
        *("A:", "1", "2", "", "B:", "3", "", "C:", "4")
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("probe abcd", "  probe abcd  1234567890 1234567890 1234"),
        ("probe abcde", "  probe abcde       1234567890"),
    ],
)
def test_examples_leave_their_meanings_room(name: str, line: str) -> None:
    parser = Parser(prog="probe x")
    parser.examples = ((name, "1234567890 1234567890 1234"),)
    shown = list(help_lines(parser, Context(environ={"COLUMNS": "40"})))
    assert shown[shown.index("Examples:") + 1] == line


def test_choices_stand_in_the_meaning_once() -> None:
    def shown(help: str | None, choices: list[str] | None) -> str:
        return meaning(Action(["--x"], "x", help=help, choices=choices))

    assert shown("a or b, 5 %%", ["a", "b"]) == "a or b, 5 %"
    assert shown("which", ["a", "b"]) == "which: a or b"
    assert shown(None, ["a", "b"]) == "a or b"
    assert shown("which", None) == "which"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_examples_that_can_be_typed(name: str) -> None:
    examples = parser_of(name).examples
    assert len(examples) >= 2
    for line, meaning_ in examples:
        assert meaning_
        words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"'), comments=False)
        while "=" in words[0]:
            words = words[1:]
        assert words[0] == "probe", line
        end = next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))
        words = words[1:end]
        own = " ".join(words[:2])
        command = own if own in NAMES else words[0] if words and words[0] in NAMES else "devices"
        words = words[len(command.split()) :] if words[:1] == command.split()[:1] else words
        parsed = parser_of(command).parse_args(words)
        assert vars(parsed)


def test_help_is_coloured_on_demand_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = shown(capsys, "exec", "--help")
    assert "\x1b" not in "".join(plain)
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = shown(capsys, "exec", "--help")
    assert painted[painted.index("\x1b[1mHow:\x1b[0m") + 1].startswith(
        "  \x1b[36m    --style STYLE"
    )
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[36m"):
        painted = [line.replace(code, "") for line in painted]
    assert painted == plain
