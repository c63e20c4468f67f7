"""Read a sound command line from a command's table; anything else is argparse's to name."""

from __future__ import annotations

from probe_core.commands.options import Argument, Option, with_color

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.commands.options import SubCommand

    Table = Iterable[Argument | Option]

__all__ = ["command_place", "plain"]


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
