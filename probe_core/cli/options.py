"""Options that commands share, and a parser whose errors say what would have worked."""

from __future__ import annotations

import argparse
import os
import sys

from probe_core.config import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["MACHINE_HELP", "Parser", "add_probe_options", "settings_of"]

MACHINE_HELP = (
    "probe a recorded machine: a folder that stands for /, a file of `probe record`, or a tar"
    " archive"
)


class Parser(argparse.ArgumentParser):
    """argparse, with a suggestion for unknown options, and help as wide as the terminal.

    Left to itself, argparse asks shutil for the width each time an option is added; shutil brings
    the archive modules, which take longer to import than the probe takes to run.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_formatter, **options)

    def error(self, message: str) -> NoReturn:
        """Print the usage error with the closest known option, and exit with 2."""
        stem, _, rest = message.partition("unrecognized arguments: ")
        if not stem and rest:
            from probe_core.wording import did_you_mean

            word = rest.split()[0].partition("=")[0]
            known = [o for action in self._actions for o in action.option_strings if len(o) > 2]
            if word.startswith("-"):
                message = f"unknown option {word}: {did_you_mean(word, known)}"
            else:
                message = f"unexpected argument {word!r}"
        self.exit(2, f"{self.prog}: {message}\nTry `{self.prog} --help`.\n")

    def print_help(self, file: Any = None) -> None:
        """Print the help; for `probe` itself with the list of commands."""
        super().print_help(file)
        if self.prog == "probe":
            from probe_core.cli import COMMANDS

            lines = [f"  {name:<12}{text}" for name, (_, text) in COMMANDS.items()]
            print("\ncommands:\n" + "\n".join(lines), file=file or sys.stdout)


def _formatter(prog: str) -> argparse.HelpFormatter:
    from probe_core.cli.context import terminal_width

    return argparse.HelpFormatter(prog, width=terminal_width(os.environ, sys.stdout) - 2)


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that probes."""
    group = parser.add_argument_group("probing")
    for flag, metavar in (
        ("only", "NAMES"),
        ("disable", "NAMES"),
        ("priority", "NAME=N"),
        ("timeout", "SECONDS"),
        ("allow", "NAMES"),
        ("chipdb", "FILE"),
        ("static", "FILE"),
    ):
        _, variable, text = SETTINGS[flag]
        group.add_argument(f"--{flag}", metavar=metavar, help=f"{text} [{variable}]")
    group.add_argument(
        "--active",
        action="store_const",
        const=True,
        help=f"{SETTINGS['active'][2]} [{SETTINGS['active'][1]}]",
    )
    group.add_argument("--config", metavar="FILE", help="a TOML file of settings [PROBE_CONFIG]")
    group.add_argument("--machine", metavar="PATH", help=MACHINE_HELP)


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given as options."""
    return {name: value for name in SETTINGS if (value := getattr(args, name, None)) is not None}
