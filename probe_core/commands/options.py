"""The options that all commands that probe share, and the settings that they stand for."""

from __future__ import annotations

from probe_core.config import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

__all__ = [
    "COLOR",
    "PROBING",
    "RECORDING_HELP",
    "SHARED_OPTIONS",
    "Option",
    "add_options",
    "add_probe_options",
    "probe_options",
    "settings_of",
]

PROBING = "probing"
"""The heading of the options that all commands that probe share; help shows them on demand."""

RECORDING_HELP = "a folder that stands for /, a file of `probe record`, or a tar archive"
"""What a recorded machine can be."""


class Option:
    """One long option of a command: a flag, or one that takes a value.

    `metavar` is what the help writes for the value, "" for a flag. `absent` is what stands for an
    option that was not given: None where a setting then decides. `read` turns the text of a value
    into it, and raises `ValueError`. With `bare` the value may be left out and is then that.
    `short` and `alias` are further names, with their dashes; `dest` is the attribute, unless it
    is the name; `choices` are the only values.
    """

    __slots__ = (
        "absent",
        "alias",
        "bare",
        "choices",
        "dest",
        "help",
        "metavar",
        "name",
        "read",
        "short",
    )

    def __init__(
        self,
        name: str,
        metavar: str,
        help: str,
        *,
        absent: bool | float | str | None = False,
        read: Callable[[str], object] | None = None,
        bare: float | str | None = None,
        short: str = "",
        alias: str = "",
        dest: str = "",
        choices: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.metavar = metavar
        self.help = help
        self.absent = None if metavar and absent is False else absent
        self.read = read
        self.bare = bare
        self.short = short
        self.alias = alias
        self.dest = dest or name.replace("-", "_")
        self.choices = choices

    @property
    def names(self) -> list[str]:
        """All names, with their dashes."""
        return [name for name in (f"--{self.name}", self.short, self.alias) if name]


COLOR = Option(
    "color",
    "WHEN",
    "auto (default: on a terminal, unless NO_COLOR is set), always or never",
    choices=("auto", "always", "never"),
)
"""The option of every command that colours."""


SHARED_OPTIONS = (
    *(
        Option(
            setting.name, setting.metavar, f"{setting.meaning} [{setting.variable}]", absent=None
        )
        for setting in SETTINGS.values()
    ),
    Option("config", "FILE", "a TOML file of settings [PROBE_CONFIG]"),
    Option("machine", "PATH", f"probe a recorded machine: {RECORDING_HELP}"),
)
"""The options of every command that probes."""


def probe_options() -> tuple[Option, ...]:
    """Return the options of every command that probes, for a command's table `OPTIONS`."""
    return SHARED_OPTIONS


def add_probe_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that probes; `Context.report` reads them."""
    add_options(parser.add_argument_group(PROBING), SHARED_OPTIONS)


def add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> None:
    """Add options of a table to a parser, or to a group of one."""
    for option in options:
        keywords: dict[str, Any] = {
            "dest": option.dest,
            "default": option.absent,
            "help": option.help,
        }
        if not option.metavar:
            keywords |= {"action": "store_const", "const": True}
        else:
            keywords["metavar"] = option.metavar
            if option.read is not None:
                keywords["type"] = option.read
            if option.choices:
                keywords["choices"] = option.choices
            if option.bare is not None:
                keywords |= {"nargs": "?", "const": option.bare}
        parser.add_argument(*option.names, **keywords)


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the command line gives as options."""
    return {name: value for name in SETTINGS if (value := getattr(args, name, None)) is not None}
