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

__all__ = ["cli", "cluster", "manuals"]

ROOT = Path(__file__).resolve().parents[1]
CLUSTER = ("topology", "partition")


def cli() -> str:
    """Every built-in command with its options; the options of all commands that probe, once."""
    from probe_core.cli import COMMANDS
    from probe_core.cli.page import sections

    parsers = {name: _parser(name, f"probe_core.cli.{COMMANDS[name][0]}") for name in COMMANDS}
    shared = next(section for section in sections(parsers["report"]) if section.shared)
    parts = [f"### Probing options\n\n{_arguments(shared.actions)}"]
    return "\n\n".join([*parts, *map(_command, parsers.values())])


def cluster() -> str:
    """The commands of probe-cluster with their options."""
    return "\n\n".join(_command(_parser(n, f"probe_cluster.{n}_command")) for n in CLUSTER)


def manuals() -> dict[Path, str]:
    """Every manual page, with the file that wheels install."""
    from probe_core.cli import COMMANDS, manual
    from probe_core.config import FILE_VARIABLE, SETTINGS

    dated = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    date = dated[1] if dated else ""
    variables = [(variable, meaning) for _, variable, meaning in SETTINGS.values()]
    variables.append((FILE_VARIABLE, "a TOML file of settings"))
    pages = {}
    for name, (module, _, summary) in COMMANDS.items():
        parser = _parser(name, f"probe_core.cli.{module}")
        if name == "report":
            commands = [(group, name, text) for name, (_, group, text) in COMMANDS.items()]
            text = manual.overview(parser, date, commands, variables)
        else:
            text = manual.page(parser, date, summary)
        pages[ROOT / "man" / "man1" / f"{manual.page_name(parser)}.1"] = text
    tables = json.loads(
        (ROOT / "plugins/cluster/src/probe_cluster/command.json").read_text("utf-8")
    )
    for name in CLUSTER:
        parser = _parser(name, f"probe_cluster.{name}_command")
        text = manual.page(parser, date, tables["commands"][name]["summary"])
        pages[ROOT / "plugins/cluster/man/man1" / f"{manual.page_name(parser)}.1"] = text
    return pages


def _parser(name: str, module: str) -> argparse.ArgumentParser:
    from probe_core.cli.parser import command_parser

    return command_parser(name, import_module(module))


def _command(parser: argparse.ArgumentParser) -> str:
    from probe_core.cli.page import HELP_OPTIONS, sections

    parts = sections(parser)
    own = [action for part in parts if not part.shared for action in part.actions]
    own = [action for action in own if not {*action.option_strings} & {*HELP_OPTIONS}]
    probes = any(part.shared for part in parts)
    probing = "\n\nAnd the [probing options](#probing-options)." if probes else ""
    examples = table(("example", ""), [(f"`{line}`", text) for line, text in parser.examples])
    about = textwrap.fill(parser.description or "", 100)
    return f"### {parser.prog}\n\n{about}\n\n{examples}\n\n{_arguments(own)}{probing}"


def _arguments(actions: Iterable[argparse.Action]) -> str:
    from probe_core.cli.page import meaning, written

    rows = [(f"`{written(action)}`", meaning(action)) for action in actions]
    return table(("argument", "meaning"), rows) if rows else "It takes no options of its own."
