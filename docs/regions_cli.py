"""The reference of the command line and the manual pages, from the tables that make the help."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from blocks import table

__all__ = ["cli", "manuals", "plugins"]

ROOT = Path(__file__).resolve().parents[1]


def cli() -> str:
    """Every built-in command with its options; the options of all commands that probe, once."""
    from probe_core.cli import COMMANDS, DEFAULT
    from probe_core.cli.parser import sections

    parsers = {name: _parser(name, f"probe_core.cli.{COMMANDS[name][0]}") for name in COMMANDS}
    shared = next(section for section in sections(parsers[DEFAULT]) if section.shared)
    parts = [f"### Probing options\n\n{_arguments(shared.actions)}"]
    return "\n\n".join([*parts, *map(_command, parsers.values())])


def plugins() -> str:
    """The commands of this repository's plugins with their options."""
    return "\n\n".join(_command(parser) for _, parser in _brought())


def _brought() -> list[tuple[Path, argparse.ArgumentParser]]:
    """Each command of a plugin, with the plugin's folder."""
    from probe_core.cli.installed import BROUGHT_BY

    return [
        (
            ROOT / "plugins" / owner.removeprefix("probe-"),
            _parser(name, f"{owner.replace('-', '_')}.{name}_command"),
        )
        for name, owner in BROUGHT_BY.items()
    ]


def manuals() -> dict[Path, str]:
    """Every manual page, with the file that wheels install."""
    from probe_core.cli import COMMANDS, DEFAULT, help
    from probe_core.config import FILE_VARIABLE, SETTINGS

    dated = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    date = dated[1] if dated else ""
    variables = [(variable, meaning) for _, variable, meaning in SETTINGS.values()]
    variables.append((FILE_VARIABLE, "a TOML file of settings"))
    pages = {}
    for name, (module, _, summary) in COMMANDS.items():
        parser = _parser(name, f"probe_core.cli.{module}")
        if name == DEFAULT:
            commands = [(group, name, text) for name, (_, group, text) in COMMANDS.items()]
            text = help.overview(parser, date, commands, variables)
        else:
            text = help.page(parser, date, summary)
        pages[ROOT / "man" / "man1" / f"{help.page_name(parser)}.1"] = text
    for folder, parser in _brought():
        (manifest,) = folder.glob("src/*/command.json")
        command = json.loads(manifest.read_text("utf-8"))["commands"][parser.prog.split()[-1]]
        text = help.page(parser, date, command["summary"])
        pages[folder / "man" / "man1" / f"{help.page_name(parser)}.1"] = text
    return pages


def _parser(name: str, module: str) -> argparse.ArgumentParser:
    from probe_core.cli.parser import command_parser

    return command_parser(name, import_module(module))


def _command(parser: argparse.ArgumentParser) -> str:
    from probe_core.cli.parser import HELP_OPTIONS, sections

    parts = sections(parser)
    own = [action for part in parts if not part.shared for action in part.actions]
    own = [action for action in own if not {*action.option_strings} & {*HELP_OPTIONS}]
    probes = any(part.shared for part in parts)
    probing = "\n\nAnd the [probing options](#probing-options)." if probes else ""
    examples = table(("example", ""), [(f"`{line}`", text) for line, text in parser.examples])
    about = textwrap.fill(parser.description or "", 100)
    return f"### {parser.prog}\n\n{about}\n\n{examples}\n\n{_arguments(own)}{probing}"


def _arguments(actions: Iterable[argparse.Action]) -> str:
    from probe_core.cli.parser import meaning, written

    rows = [(f"`{written(action)}`", meaning(action)) for action in actions]
    return table(("argument", "meaning"), rows) if rows else "It takes no options of its own."
