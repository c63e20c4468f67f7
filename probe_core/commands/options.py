"""The options that all commands that probe share, and the settings that they stand for."""

from __future__ import annotations

from probe_core.config import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context


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
    is the name; `choices` are the only values; `group` is the heading in
    the help, see `under`.
    """

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
        self.group = ""

    @property
    def names(self) -> list[str]:
        """All names, with their dashes."""
        return [name for name in (f"--{self.name}", self.short, self.alias) if name]


class Argument:
    """One argument of a command that is no option.

    `count` is how many words it takes: "" one, "?" one or none, "+" one or more, "..." all that
    follow. `metavar` is what the help writes for it, `absent` what stands for it where there is
    none, `choices` are the only values, and `missing` is the sentence where it must be there, if
    the usual one does not say what it is.
    """

    group = ""

    def __init__(
        self,
        dest: str,
        help: str,
        *,
        count: str = "",
        metavar: str = "",
        absent: object = None,
        choices: Sequence[str] = (),
        missing: str = "",
    ) -> None:
        self.dest = dest
        self.help = help
        self.count = count
        self.metavar = metavar
        self.absent = [] if count == "..." else absent
        self.choices = choices
        self.missing = missing

    @property
    def required(self) -> bool:
        """Whether a command line without it is refused."""
        return self.count in ("", "+")


class SubCommand:
    """A command of a command: `probe plugins check`, with arguments and help of its own.

    `summary` is for the list of a command's commands, `about` begins its help. `arguments` is its
    table, and `run` carries it out as a command's `run` does.
    """

    def __init__(
        self,
        summary: str,
        about: str,
        arguments: Sequence[Argument | Option],
        run: Callable[[argparse.Namespace, Context], int],
        examples: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.summary = summary
        self.about = about
        self.arguments = arguments
        self.run = run
        self.examples = examples


COLOR = Option(
    "color",
    "WHEN",
    "auto (default: on a terminal, unless NO_COLOR is set), always or never",
    choices=("auto", "always", "never"),
)
"""The option of every command, added to those whose table has none of that name."""

JSON = Option("json", "", "print one JSON document")
"""The option of every command that answers scripts."""


def under(heading: str, *options: Option) -> tuple[Option, ...]:
    """Return options that help shows under a heading."""
    for option in options:
        option.group = heading
    return options


SHARED_OPTIONS = under(
    PROBING,
    *(
        Option(
            setting.name,
            setting.metavar,
            f"{setting.meaning} [{setting.variable}]",
            absent=None,
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
    add_options(parser, SHARED_OPTIONS)


def with_color(table: Iterable[Argument | Option]) -> list[Argument | Option]:
    """Return a table with the option `--color`, its own or that of every command."""
    entries = list(table)
    # Behind the command's own options, before those of every command that probes.
    at = next((at for at, entry in enumerate(entries) if entry.group == PROBING), len(entries))
    if all("--color" not in getattr(entry, "names", ()) for entry in entries):
        entries.insert(at, COLOR)
    return entries


def add_options(parser: argparse._ActionsContainer, options: Iterable[Argument | Option]) -> None:
    """Add what a table has to a parser, each option below its heading, or to a group of one."""
    groups = {"": parser}
    for entry in options:
        if entry.group not in groups:
            groups[entry.group] = parser.add_argument_group(entry.group)
        if isinstance(entry, Option):
            _add_option(groups[entry.group], entry)
        else:
            _add_argument(parser, entry)


def _add_argument(parser: argparse._ActionsContainer, argument: Argument) -> None:
    keywords: dict[str, Any] = {
        "nargs": argument.count or None,
        "metavar": argument.metavar or None,
        "choices": argument.choices or None,
    }
    if not argument.required:
        keywords["default"] = argument.absent
    parser.add_argument(argument.dest, help=argument.help, **keywords)


def _add_option(parser: argparse._ActionsContainer, option: Option) -> None:
    keywords: dict[str, Any] = {"dest": option.dest, "default": option.absent, "help": option.help}
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


def seconds_of(option: str, text: str, least: float, most: float) -> float:
    """Return the seconds that an option gives; raises `CommandError` beyond the bounds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:
        from probe_core.commands.context import CommandError

        sentence = f"--{option} {text[:40]}: expected seconds, {least:g} to {most:g}"
        raise CommandError(sentence)
    return seconds


# Read a sound command line from a command's table; anything else is argparse's to name.


class Arguments:
    """The arguments as attributes, as argparse's namespace has them."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


class NotPlain(Exception):
    """The command line is not one that a table alone can read."""


def plain(arguments: Sequence[str], table: Table) -> Arguments | None:
    """Return what argparse would make of `arguments`; None where it would do anything else.

    That is where an option is not in the table, a value is missing, cannot be read or begins with a
    dash, a flag has a value, or there are more or fewer words than the table has.
    """
    try:
        return Arguments(**_Line(table).read(list(arguments)))
    except NotPlain:
        return None


class _Line:
    """One command line, read word by word."""

    def __init__(self, table: Table) -> None:
        entries = list(table)
        self._options = {
            name: entry for entry in entries if isinstance(entry, Option) for name in entry.names
        }
        self._unfilled = [entry for entry in entries if isinstance(entry, Argument)]
        self._values: dict[str, object] = {entry.dest: entry.absent for entry in entries}

    def read(self, words: list[str]) -> dict[str, object]:
        """Return the values by their names in the table; raises `NotPlain`."""
        while words:
            word = words.pop(0)
            if word == "--" or not word.startswith("-"):
                self._fill(word, words)
            else:
                self._take_option(word, words)
        if any(argument.required for argument in self._unfilled):
            raise NotPlain
        return self._values

    def _fill(self, word: str, words: list[str]) -> None:
        """Give a word, and those after it that belong to it, to the next argument."""
        if not self._unfilled:
            raise NotPlain
        argument = self._unfilled.pop(0)
        if argument.count == "...":  # all that follows is another program's
            self._values[argument.dest] = [*words] if word == "--" else [word, *words]
            words.clear()
            return
        if word in ("--", ""):
            raise NotPlain
        if argument.choices and word not in argument.choices:
            raise NotPlain
        self._values[argument.dest] = word
        if argument.count == "+":
            several = [word]
            while words and words[0][:1] not in ("-", ""):
                several.append(words.pop(0))
            self._values[argument.dest] = several

    def _take_option(self, word: str, words: list[str]) -> None:
        name, equals, text = word.partition("=")
        option = self._options.get(name)
        if option is None:
            raise NotPlain
        if not option.metavar:
            if equals:  # a flag takes no value
                raise NotPlain
            self._values[option.dest] = True
        elif equals:
            self._values[option.dest] = _value(option, text)
        elif option.bare is not None and (not words or words[0] == "--"):
            self._values[option.dest] = option.bare
        elif not words or words[0].startswith("-"):  # the value is missing, or looks like an option
            raise NotPlain
        else:
            self._values[option.dest] = _value(option, words.pop(0))


def _value(option: Option, text: str) -> object:
    if option.choices and text not in option.choices:
        raise NotPlain
    if option.read is None:
        return text
    try:
        return option.read(text)
    except ValueError:
        raise NotPlain from None


def command_place(words: Sequence[str], commands: Mapping[str, SubCommand]) -> int | None:
    """Return where the name of a sub-command stands; None where there is none.

    It is the first word that is no option and no option's value, so it may follow options.
    """
    with_value = {
        name
        for command in commands.values()
        for entry in with_color(command.arguments)
        if isinstance(entry, Option) and entry.metavar and entry.bare is None
        for name in entry.names
    }
    is_value = False
    for at, word in enumerate(words):
        if word == "--":
            return None
        if is_value:
            is_value = False
        elif word in with_value:
            is_value = True
        elif not word.startswith("-"):
            return at
    return None


if TYPE_CHECKING:
    Table = Iterable[Argument | Option]
