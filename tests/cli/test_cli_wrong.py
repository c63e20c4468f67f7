"""Wrong command lines by the hundred: a documented status, one sentence, no other output.

The lines are made from the commands' own tables: a new option is tried without being named here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe_core.cli import COMMANDS, main
from probe_core.cli.parser import Parser, command_parser, metavar_of
from probe_core.cli.plugin_commands import BROUGHT_BY

NAMES = [*COMMANDS, *BROUGHT_BY]

# Enough to reach the argument that is wrong.
BEFORE = {
    "chip": ["10de:2684"],
    "completion": ["bash"],
    "exec": [],
    "fit": ["llama-3.2-1b"],
    "layout": ["2x1"],
    "partition": ["a.json", "--model", "7b"],
    "plugins new": ["acme"],
    "plugins run": ["acme.py"],
    "plugins why-not": ["cpu"],
    "topology": ["a.json"],
}
HOSTILE = [
    "\x1b[2J",
    "a\nb",
    "\0",
    "\udcff",
    "x" * 5000,
    "\u202e",
    "",
    " ",
    "-",
    "--=",
    "-=x",
    "=",
    "%s",
]
UNREADABLE = {int: "many", float: "soon"}


def brought(name: str) -> str:
    """Return the module of a command that a plugin of this repository brings."""
    return f"{BROUGHT_BY[name]}.{name}_command".replace("-", "_")


@cache
def parser_of(name: str) -> Parser:
    module = f"probe_core.cli.{COMMANDS[name][0]}" if name in COMMANDS else ""
    return command_parser(name, import_module(module or brought(name)))


def all_parsers(name: str) -> Iterator[tuple[list[str], Parser]]:
    """Yield the words that name a command or one of its commands, each with its parser."""
    parser = parser_of(name)
    yield [name], parser
    yield from (([name, own], parser.of_command(own)) for own in parser.commands)


def reader_of(line: list[str]) -> tuple[int, Parser]:
    """Return how many words name the command, and its parser."""
    parser = parser_of(line[0])
    if line[1:2] and line[1] in parser.commands:
        return 2, parser.of_command(line[1])
    return 1, parser


def probes(parser: Parser) -> bool:
    return any(action.dest == "static" for action in parser.arguments)


MANY = ("exec", "chip", "cluster", "topology", "partition", "fit")
"""Commands that take more of the same argument."""


def wrong(name: str) -> Iterator[list[str]]:
    """Yield command lines of one command, each with one mistake."""
    for command, parser in all_parsers(name):
        line = [*command, *BEFORE.get(" ".join(command), [])]
        yield [*line, "--nosuch"]
        yield [*line, "--nosuch=1"]
        yield [*line, "-Z"]
        if name not in MANY:
            yield [*line, "one", "two", "three", "four"]
        for action in parser.arguments:
            yield from ([*line, *words] for words in mistakes(action))
        yield from ([*line, f"--{text}"] for text in HOSTILE if text.strip() and "=" not in text)


def mistakes(action: argparse.Action) -> Iterator[list[str]]:
    if not action.option_strings:
        return
    # The long form: of `-hhx` Python 3.13 reads `-h`, and prints the help.
    option = max(action.option_strings, key=len)
    typo = f"{option}{option[-1]}x"
    yield [typo]
    if action.nargs == 0:
        yield [f"{option}=yes"]
        return
    if action.nargs not in ("?", argparse.REMAINDER):
        yield [option]
    if action.choices:
        yield [option, "nosuch"]
    elif action.type in UNREADABLE:
        yield [option, UNREADABLE[action.type]]
    # An environment that is not there is a finding of the doctor.
    elif metavar_of(action) in ("FILE", "PATH") and action.dest != "env":
        yield [option, "/no/such/file"]
        yield [f"{option}=/no/such/\x1b[2Jfile"]
    elif action.dest in ("only", "disable"):
        yield [option, "nosuchprober"]
    elif action.dest == "timeout":
        yield from ([option, value] for value in ("soon", "nan", "0", "1e9"))
    elif action.dest == "priority":
        yield from ([option, value] for value in ("nvidia", "=", "nvidia=x", "bus=9999"))
    elif action.dest == "allow":
        yield [option, "a b"]
    elif action.dest == "runtime":
        yield [option, "nosuch"]


LINES = [line for name in NAMES for line in wrong(name)]
LINES += [[text] for text in HOSTILE if text not in ("", " ")]
LINES += [["help", text] for text in ("nosuch", "\x1b[2J")]
LINES += [["plugins", action, "x", "y"] for action in ("list", "check", "why-not", "new")]
LINES += [["plugins", action] for action in ("why-not", "new", "nosuch", "lst")]
LINES += [["plugins", "why-not", text] for text in HOSTILE if text.strip("-= ") and text[0] != "-"]
LINES += [
    ["layout", text] for text in ("0x1", "x", "1x", "x1", "axb", "1x1x1", "2×1", "9" * 9000 + "x1")
]
LINES += [["exec", *words] for words in (
    [], ["--"], ["--wait"], ["--wait", "true"], ["--gpus", "x", "true"], ["--all", "true"],
    ["--layout", "2x1", "true"], ["--index", "0", "true"], ["--share", "--reserve", "1G", "true"],
    ["--wait=-1", "true"], ["--wait=nan", "true"], ["-n", "1", "--device", "0", "true"],
    ["--layout", "2", "--index", "0", "--", "true"], ["--dry-run", "--memory", "lots"],
    ["--dry-run", "--for", "nosuch"], ["--dry-run", "--device", "5-2"],
)]  # fmt: skip
LINES += [["chip", "x", "--memory", text] for text in ("lots", "0", "1e99G", "nan", "1 2")]
LINES += [["chip", "x", "--units", text] for text in ("0", "x", "9" * 5000, "1.5")]
LINES += [
    ["record", "/no/such/folder/x.json", "--files-only"],
    ["record", "/", "--force", "--files-only"],
]
LINES += [["topology", "/no/such.json"], ["partition", "/no/such.json", "--model", "7b"]]


def outcome(argv: list[str]) -> int:
    try:
        return main(argv)
    except SystemExit as error:
        return int(error.code or 0)


def test_there_are_hundreds() -> None:
    assert len({tuple(line) for line in LINES}) > 300


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options of a computer without devices, so that nothing of this one is asked."""
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    (tmp_path / "machine" / "sys" / "devices").mkdir(parents=True)
    (tmp_path / "machine" / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 9 kB\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROBE_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("PROBE_ONLY", "cpu")
    return ["--machine", str(tmp_path / "machine")]


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted({line[0] if line[0] in NAMES else "" for line in LINES}))
def test_a_wrong_line_is_one_sentence(
    name: str, machine: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = name or "devices"
    for line in LINES:
        if (line[0] if line[0] in NAMES else "") != name:
            continue
        argv = list(line)
        named, parser = reader_of([command, *line[1:]])
        if name and probes(parser) and "--machine" not in " ".join(argv):
            argv[named:named] = machine
        status = outcome(argv)
        out, err = capsys.readouterr()
        assert (status, out) == (2, ""), (line, status, out, err)
        assert err.startswith(("probe: ", f"probe {command}: ", f"{parser.prog}: ")), (line, err)
        assert err.count("\n") == 1, (line, err)
        assert "Traceback" not in err, (line, err)
        assert err[:-1].isprintable(), (line, err)
        # A wrong value is quoted as far as a person reads it.
        assert len(err) < 1200, line
        for type_name in (
            "invalid literal",
            "NoneType",
            "object at",
            "ValueError",
            "the arguments",
        ):
            assert type_name not in err, (line, err)


WORDS = [
    *[name for name in NAMES if name not in ("exec", "record", "leases")], "help", "list", "check",
    "why-not", "2x1", "--", "-", "", "--json", "--strict", "--help", "--help-all", "-h", "-V",
    "--only", "--only=cpu", "--timeout", "1", "--timeout=x", "--static", "--machine", "/no/such",
    "--for", "cuda", "--kind", "pci", "10de:2684", "--memory", "24GiB", "--index", "0", "\x1b[2J",
    "--config", "--chipdb", "--priority", "cpu=3", "--model", "7b", "--link", "a:b=10gbe", "\0",
]  # fmt: skip
DOCUMENTED = (0, 1, 2, 3)
SHORT = {"watch": ["--count", "1"], "bench": ["--list"], "mcp": ["--list"]}
"""Options with which commands end at once that else run until somebody ends them, or for long."""


@pytest.mark.heavy
@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=6))
def test_no_line_ends_with_a_traceback(
    machine: list[str], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Lines of any words: of `exec`, `record` and `leases`, which do something, those above."""
    if words and words[0] in ("exec", "record", "leases"):
        return
    status = outcome([*words[:1], *SHORT.get("".join(words[:1]), ()), *words[1:]])
    out, err = capsys.readouterr()
    assert status in DOCUMENTED, (words, err)
    assert "Traceback" not in err
    if status == 2:
        assert out == ""
        assert err.startswith("probe")


def test_files_may_follow_options_and_what_does_not_exist_is_still_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = Parser(prog="probe x")
    parser.add_argument("model")
    parser.add_argument("files", nargs="*", default=[])
    parser.add_argument("--bits")
    parser.add_argument("--have", action="append", default=[])
    parsed = parser.parse_args(["m", "--have", "a", "b.json", "--bits", "8", "c.json"])
    assert (parsed.model, parsed.files) == ("m", ["b.json", "c.json"])
    # What a second reading of the line would have doubled.
    assert (parsed.bits, parsed.have) == ("8", ["a"])
    with pytest.raises(SystemExit):
        parser.parse_args(["m", "--bit", "8", "b.json"])
    assert capsys.readouterr().err == "probe x: no option --bit. Did you mean --bits?\n"


def test_a_line_is_read_again_only_where_argparse_can(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="probe x")
    parser.add_argument("name", nargs="?")
    parser.add_subparsers().add_parser("run")
    with pytest.raises(SystemExit):
        parser.parse_args(["m", "run", "--no", "a"])
    assert capsys.readouterr().err == "probe x: no option --no. Run `probe x --help`.\n"
    files = Parser(prog="probe x")
    files.add_argument("files", nargs="*")
    files.add_argument("--bits")
    assert files.parse_args(["a", "--bits", "8", "b"]).files == ["a", "b"]


def test_a_report_is_not_given_for_the_recorded_machine_that_was_asked_for(
    machine: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(["--json", *machine]) == 0
    Path("report.json").write_text(capsys.readouterr().out)
    assert outcome(["--json", "--static", "report.json", *machine]) == 2
    assert capsys.readouterr() == ("", "probe: --static and --machine exclude each other\n")
    monkeypatch.setenv("PROBE_STATIC", "report.json")
    assert outcome(["--json"]) == 0
    capsys.readouterr()
    assert outcome(["--json", *machine]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("probe: --machine: the setting `static` (PROBE_STATIC,")


def test_a_strict_probe_does_not_pass_an_expectation_that_it_could_not_compare(
    machine: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for words, status in ((["--expect", "8xh1OO"], 1), (["--expect", "none"], 0)):
        assert outcome(["--json", "--strict", *words, *machine]) == status
        assert outcome(["--json", *words, *machine]) == 0
    capsys.readouterr()
