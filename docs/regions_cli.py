"""The reference of the command line, from the tables that make the help."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from blocks import table

if TYPE_CHECKING:
    from probe_core.cli.parser import Parser

__all__ = ["cli", "plugins"]


def cli() -> str:
    """Every built-in command with its options; the options of all commands that probe, once."""
    from probe_core.cli import COMMANDS, DEFAULT
    from probe_core.cli.parser import sections

    parsers = {name: _parser(name, f"probe_core.cli.{COMMANDS[name][0]}") for name in COMMANDS}
    shared = next(section for section in sections(parsers[DEFAULT]) if section.shared)
    parts = [f"### Probing options\n\n{_arguments(shared.actions)}"]
    return "\n\n".join([*parts, *map(_with_commands, parsers.values())])


def plugins() -> str:
    """The commands of this repository's plugins with their options."""
    from probe_core.cli.plugin_commands import BROUGHT_BY

    modules = {
        name: f"{owner}.{name}_command".replace("-", "_") for name, owner in BROUGHT_BY.items()
    }
    return "\n\n".join(_command(_parser(name, module)) for name, module in modules.items())


def _parser(name: str, module: str) -> Parser:
    from probe_core.cli.parser import command_parser

    return command_parser(name, import_module(module))


def _with_commands(parser: Parser) -> str:
    """A command, and the commands that it has itself."""
    own = [_command(parser.of_command(name), "####") for name in parser.commands]
    return "\n\n".join([_command(parser), *own])


def _command(parser: Parser, level: str = "###") -> str:
    from probe_core.cli.parser import HELP_OPTIONS, sections

    parts = sections(parser)
    own = [action for part in parts if not part.shared for action in part.actions]
    own = [action for action in own if not {*action.option_strings} & {*HELP_OPTIONS}]
    probes = any(part.shared for part in parts)
    probing = "\n\nAnd the [probing options](#probing-options)." if probes else ""
    examples = table(("example", ""), [(f"`{line}`", text) for line, text in parser.examples])
    about = textwrap.fill(parser.description or "", 100)
    return f"{level} {parser.prog}\n\n{about}\n\n{examples}\n\n{_arguments(own)}{probing}"


def _arguments(actions: Iterable[argparse.Action]) -> str:
    from probe_core.cli.parser import meaning, written

    rows = [(f"`{written(action)}`", meaning(action)) for action in actions]
    return table(("argument", "meaning"), rows) if rows else "It takes no options of its own."
