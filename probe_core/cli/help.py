"""The commands by task, as `probe --help` lists them: built-in ones and those of plugins."""

from __future__ import annotations

import os
import sys

from probe_core.cli import COMMANDS, GROUPS, OTHER
from probe_core.cli.installed import installed_commands
from probe_core.commands.context import terminal_width, write_error
from probe_core.commands.text import columns

__all__ = ["command_lines"]


def command_lines() -> list[str]:
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
    lines = columns(rows, terminal_width(os.environ, sys.stdout), flexible=1)
    return _headed([group for group, _, _ in entries], lines)


def _headed(groups: list[str], lines: list[str]) -> list[str]:
    """Return the lines with a heading above each group, and a blank line between groups."""
    headed: list[str] = []
    for index, (group, line) in enumerate(zip(groups, lines, strict=True)):
        if index == 0 or groups[index - 1] != group:
            headed += [*([""] if index else []), f"{group}:"]
        headed.append(line)
    return headed
