"""Help of a command: examples first, its own options next, those of all commands on demand."""

from __future__ import annotations

import os

from probe_core.cli import COMMANDS, GROUPS, OTHER
from probe_core.cli.parser import Section, meaning, sections, usage_lines, written
from probe_core.cli.plugin_commands import installed_commands
from probe_core.commands.context import write_error
from probe_core.commands.text import columns, paint, width_of, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from probe_core.cli.parser import Parser
    from probe_core.commands import Context


COLUMN = 25
"""Where meanings begin: `  -n, --gpus N` and most other options are shorter."""

LEAST_MEANING = 26
"""Columns that an example's meaning has beside it at least, else it stands below. A judgement."""

IN_SHORT_HELP = ("active", "machine")
"""Options of every command that probes which `probe --help` shows: the others are for few."""


def help_lines(parser: Parser, context: Context, *, every: bool = False) -> Iterator[str]:
    """Yield the help; with `every` option, or with the command's own alone."""
    colour, width = context.colour, context.width
    yield from wrapped(parser.description or "", width)
    yield ""
    for index, line in enumerate(usage_lines(parser)):
        yield ("       " if index else paint("Usage:", "bold", colour) + " ") + line
    if parser.examples:
        yield from ("", paint("Examples:", "bold", colour))
        column = 4 + max(width_of(line) for line, _ in parser.examples)
        column = column if column <= width - LEAST_MEANING else min(COLUMN, width // 2)
        yield from _pairs(parser.examples, width, column, colour)
    top = parser.prog == "probe"
    if top:
        yield from ("", *command_lines(context))
    if parser.commands:
        yield from ("", paint("Commands:", "bold", colour))
        rows = [(f"{parser.prog} {name}", own.summary) for name, own in parser.commands.items()]
        yield from _pairs(rows, width, min(COLUMN, width // 2), colour)
    shown = sections(parser)
    for section in shown if every else _short(shown, top):
        yield from ("", paint(f"{section.title}:", "bold", colour))
        yield from _pairs(map(_row, section.actions), width, min(COLUMN, width // 2), colour)
    for line in _ending(parser, top, every or not any(s.shared for s in shown)):
        yield from ("", *wrapped(line, width))


def command_lines(context: Context) -> list[str]:
    """Return one line per command, by task; what is wrong with a plugin goes to standard error."""
    commands, problems = installed_commands(os.environ)
    for _, problem in problems:
        write_error(f"probe: {problem}")
    entries = [(group, name, summary) for name, (_, group, summary) in COMMANDS.items()]
    for command in commands.values():
        group = command.group if command.group in GROUPS else OTHER
        entries.append((group, command.name, command.summary or f"a command of {command.owner}"))
    entries.sort(key=lambda entry: GROUPS.index(entry[0]))  # stable: built-in ones come first
    rows = [(f"  {name}", summary) for _, name, summary in entries]
    lines, colour = columns(rows, context.width, flexible=1), context.colour
    lines = [
        f"  {paint(name, 'cyan', colour)}{line[2 + len(name) :]}"
        for (_, name, _), line in zip(entries, lines, strict=True)
    ]
    return _headed([group for group, _, _ in entries], lines, colour)


def _headed(groups: list[str], lines: list[str], colour: bool) -> list[str]:
    """Return the lines with a heading above each group, and a blank line between groups."""
    headed: list[str] = []
    for index, (group, line) in enumerate(zip(groups, lines, strict=True)):
        if index == 0 or groups[index - 1] != group:
            headed += [*([""] if index else []), paint(f"{group}:", "bold", colour)]
        headed.append(line)
    return headed


def _short(shown: Iterable[Section], top: bool) -> Iterator[Section]:
    """Yield the sections without the options that every command has that probes."""
    for section in shown:
        if not section.shared:
            yield section
        elif top:
            actions = [action for action in section.actions if action.dest in IN_SHORT_HELP]
            yield Section(section.title, actions)


def _row(action: argparse.Action) -> tuple[str, str]:
    names = written(action)
    # Long options stand below each other, whether or not a short one stands before them.
    indent = "    " if action.option_strings and names.startswith("--") else ""
    return indent + names, meaning(action)


def _pairs(rows: Iterable[tuple[str, str]], width: int, column: int, colour: bool) -> Iterator[str]:
    """Yield what is written beside its meaning; below it where it is too long for that."""
    for name, text in rows:
        lines = wrapped(text, width, " " * column) or [""]
        if 2 + width_of(name) + 2 <= column:
            space = " " * (column - 2 - width_of(name))
            lines[0] = f"  {paint(name, 'cyan', colour)}{space}{lines[0][column:]}".rstrip()
        else:
            lines = [f"  {paint(name, 'cyan', colour)}", *(line for line in lines if line.strip())]
        yield from lines


def _ending(parser: Parser, top: bool, complete: bool) -> Iterator[str]:
    if top:
        yield "`probe COMMAND --help` explains one command, `man probe` all of them."
    if parser.commands:
        yield f"`{parser.prog} COMMAND --help` explains one of them."
    if not complete:
        yield f"`{parser.prog} --help-all` lists the options of every command that probes, too."
