"""The parser of every command: errors that say what would have worked, help that fits."""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """argparse, with a suggestion for unknown options, and help as wide as the terminal.

    Left to itself, argparse asks shutil for the width each time an option is added; shutil brings
    the archive modules, which take longer to import than the probe takes to run.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_formatter, **options)

    def parse_args(  # type: ignore[override]  # only the form that `probe` uses
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Return the parsed arguments; ends the process with 2 for an argument nobody takes."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return parsed

    def _unknown(self, argument: str) -> str:
        from probe_core.wording import did_you_mean

        if not argument.startswith("-"):
            return f"unexpected argument {argument!r}"
        option = argument.partition("=")[0]
        long_options = [o for action in self._actions for o in action.option_strings if len(o) > 2]
        return f"unknown option {option}: {did_you_mean(option, long_options)}"

    def error(self, message: str) -> NoReturn:
        """Print the usage error and end the process with 2."""
        from probe_core.commands.context import write_error

        write_error(f"{self.prog}: {message}\nTry `{self.prog} --help`.")
        self.exit(2)

    def print_help(self, file: Any = None) -> None:
        """Print the help; for `probe` itself with the commands, by task."""
        from probe_core.commands.context import Context

        # Not argparse's own write, which raises where a terminal cannot show "…".
        context = Context(stdout=file)
        context.out(self.format_help().rstrip("\n"))
        if self.prog == "probe":
            from probe_core.cli.help import command_lines

            for line in ("", *command_lines()):
                context.out(line)


def _formatter(prog: str) -> argparse.HelpFormatter:
    from probe_core.commands.context import terminal_width

    return argparse.HelpFormatter(prog, width=terminal_width(os.environ, sys.stdout) - 2)
