"""The options that all commands that probe share, and the settings that they stand for."""

from __future__ import annotations

from probe_core.config import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from typing import Any

__all__ = [
    "RECORDING_HELP",
    "SHARED_OPTIONS",
    "Option",
    "add_options",
    "add_probe_options",
    "settings_of",
]

RECORDING_HELP = "a folder that stands for /, a file of `probe record`, or a tar archive"
"""What a recorded machine can be."""


class Option:
    """One long option of a command: a flag, or one that takes a value.

    `metavar` is what the help writes for the value, "" for a flag. `absent` is what stands for a
    flag that was not given: None where a setting then decides.
    """

    __slots__ = ("absent", "help", "metavar", "name")

    def __init__(self, name: str, metavar: str, help: str, *, absent: bool | None = False) -> None:
        self.name = name
        self.metavar = metavar
        self.help = help
        self.absent = None if metavar else absent


def _setting(name: str, metavar: str) -> Option:
    _, variable, text = SETTINGS[name]
    return Option(name, metavar, f"{text} [{variable}]", absent=None)


SHARED_OPTIONS = (
    _setting("only", "NAMES"),
    _setting("disable", "NAMES"),
    _setting("priority", "NAME=N"),
    _setting("timeout", "SECONDS"),
    _setting("allow", "NAMES"),
    _setting("chipdb", "FILE"),
    _setting("static", "FILE"),
    _setting("active", ""),
    _setting("hostname", ""),
    _setting("anonymous", ""),
    Option("config", "FILE", "a TOML file of settings [PROBE_CONFIG]"),
    Option("machine", "PATH", f"probe a recorded machine: {RECORDING_HELP}"),
)
"""The options of every command that probes."""


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that probes; `Context.report` reads them."""
    add_options(parser.add_argument_group("probing"), SHARED_OPTIONS)


def add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> None:
    """Add options of a table to a parser, or to a group of one."""
    for option in options:
        if option.metavar:
            parser.add_argument(f"--{option.name}", metavar=option.metavar, help=option.help)
        else:
            flag = f"--{option.name}"
            parser.add_argument(
                flag, action="store_const", const=True, default=option.absent, help=option.help
            )


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the command line gives as options."""
    return {name: value for name in SETTINGS if (value := getattr(args, name, None)) is not None}
