"""Manual pages of all commands, made from the tables that make their help.

`package_files` writes them for wheels, which install them where `man` looks: beside the commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from probe_core import __version__
from probe_core.cli.parser import HELP_OPTIONS, Parser, meaning, sections, usage_lines, written
from probe_core.commands.text import wrapped

STATUSES = (
    ("0", "there is a result, whatever the state of the computer"),
    ("1", "--strict, and something is wrong; a check or a plugin's command fails"),
    ("2", "the command is invalid or cannot run; one sentence on standard error has the reason"),
    ("3", "no such devices are free"),
    ("70", "a mistake in this program"),
    ("126, 127", "probe exec: the command is not executable, or does not exist"),
    ("130", "interrupted with Ctrl-C"),
    ("141", "the reader of standard output closed it"),
)
"""Exit statuses of all commands. docs/reference/cli.md explains each."""

ABOUT = "show this computer's accelerators, and why one is missing"

MAX_LINE = 60
"""Characters of a line before its escapes: mandoc finds fault with lines of more than 80."""

_ESCAPES = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    '"': r"\(dq",
    "~": r"\(ti",
    "^": r"\(ha",
    "…": "...",
}
"""groff_char(7): what roff would set as typographic marks, which no shell takes."""


def page_name(parser: Parser) -> str:
    """Return the name of a command's manual: ``probe-exec``."""
    return parser.prog.replace(" ", "-")


def page(parser: Parser, date: str, summary: str) -> str:
    """Return a command's manual page in the macros of man(7); `date` is that of the release."""
    lines = [*_head(parser, date, summary), *_body(parser)]
    for name, command in parser.commands.items():
        own = parser.of_command(name)
        (usage,) = usage_lines(own)
        lines += [f".SH {_text(own.prog.upper())}", f".B {_text(usage)}", ".PP"]
        lines += [_text(command.about), *_own_arguments(own)]
    lines += _see_also(["probe"])
    return "\n".join([*lines, ""])


def overview(
    parser: Parser,
    date: str,
    commands: Iterable[tuple[str, str, str]],
    settings: Iterable[tuple[str, str]],
) -> str:
    """Return the page of `probe` itself, with its commands and the environment it reads.

    `commands` are (task, name, summary), in order of tasks; `settings` (variable, meaning).
    """
    lines = [*_head(parser, date, ABOUT), ".SH COMMANDS"]
    names, heading = [], ""
    for task, name, about in commands:
        if task != heading:
            lines.append(f".SS {_text(task)}")
            heading = task
        lines += _item(f"probe {name}", about)
        names.append(f"probe-{name}")
    lines += [*_body(parser), ".SH ENVIRONMENT"]
    for variable, about in settings:
        lines += _item(variable, about)
    lines.append(".SH EXIT STATUS")
    for status, about in STATUSES:
        lines += _item(status, about)
    return "\n".join([*lines, *_see_also(n for n in names if n != "probe-report"), ""])


def _head(parser: Parser, date: str, summary: str) -> Iterator[str]:
    name = page_name(parser)
    version = f"probe-core {__version__}"
    yield f'.TH {_text(name.upper())} 1 "{date}" "{_text(version)}"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(summary)}", ".SH SYNOPSIS")
    for number, usage in enumerate(usage_lines(parser)):
        yield from ([".br"] if number else [])
        yield _text(usage)
    yield from (".SH DESCRIPTION", _text(parser.description or summary))


def _body(parser: Parser) -> Iterator[str]:
    for section in sections(parser):
        yield f".SH {_text(section.title.upper())}"
        for action in section.actions:
            yield from _item(written(action), meaning(action))
    if parser.examples:
        yield ".SH EXAMPLES"
        for line, about in parser.examples:
            yield from _item(line, about)


def _own_arguments(parser: Parser) -> Iterator[str]:
    """Yield what a command of a command takes, but for what every command takes."""
    for section in sections(parser):
        for action in () if section.shared else section.actions:
            if not {*action.option_strings} & {*HELP_OPTIONS, "--color"}:
                yield from _item(written(action), meaning(action))


def _item(term: str, about: str) -> Iterator[str]:
    yield from (".TP", rf"\fB{_text(term)}\fR", _text(about))


def _see_also(names: Iterable[str]) -> Iterator[str]:
    references = [rf"\fB{_text(name)}\fR(1)" for name in names]
    if references:
        yield from (".SH SEE ALSO", ", ".join(references))


def _text(text: str) -> str:
    """Return text as roff prints it: no escape, request or dash of its own, in short lines.

    A plain hyphen may be set as a typographic one, which no shell takes: ``\\-`` is the ASCII one.
    """
    lines = []
    for line in wrapped(text, MAX_LINE) or [""]:
        for char, escape in _ESCAPES.items():
            line = line.replace(char, escape)
        line = "".join(char if char.isascii() else rf"\[u{ord(char):04X}]" for char in line)
        lines.append(rf"\&{line}" if line.startswith(".") else line)
    return "\n".join(lines)
