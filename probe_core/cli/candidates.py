"""What can be typed next on a command line: from the commands' own parsers, and live values."""

from __future__ import annotations

from probe_core.cli import COMMANDS, DEFAULT
from probe_core.cli.parser import long_name, meaning, metavar_of, sections
from probe_core.cli.plain import command_place
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.cli.parser import Parser

    Offered = list[tuple[str, str]]
    """Words, each with what it means."""


WORDS, NOSPACE, FILES, FOLDERS, PROGRAMS = "words", "nospace", "files", "folders", "programs"
"""Kinds of answers: words to choose from, words that go on, or what every shell knows by itself."""

_HELP_WORDS = ("help", "-h", "--help", "--help-all")

_BY_METAVAR = {"FILE": FILES, "PATH": FILES, "FOLDER": FOLDERS, "DIR": FOLDERS}
"""What stands for a file in the help of any command, a plugin's too, is completed as one."""


def candidates(words: list[str], environ: Mapping[str, str]) -> tuple[str, Offered]:
    """Return the kind of answer, and what may stand for the last of `words`.

    `words` are the arguments of `probe` as far as they are typed. Commands of plugins are imported
    only where their own arguments are completed.
    """
    *before, typed = words
    if not before and not typed.startswith("-"):
        return WORDS, _matching(_commands(environ), typed)
    if before and before[0] in _HELP_WORDS:
        return WORDS, _matching(_commands(environ), typed) if len(before) == 1 else []
    is_command = bool(before) and not before[0].startswith("-")
    name = before[0] if is_command else DEFAULT
    parser = _parser(name, environ)
    if parser is None:
        return WORDS, []
    words = before[is_command:]
    place = command_place(words, parser.commands)
    if place is not None and words[place] in parser.commands:
        parser = parser.of_command(words[place])
        words = [*words[:place], *words[place + 1 :]]
        name = parser.prog.removeprefix("probe ")
    return _Line(parser, name, words, typed, environ).offered()


class _Line:
    """One command's arguments, the last unfinished."""

    def __init__(
        self,
        parser: Parser,
        name: str,
        before: list[str],
        typed: str,
        environ: Mapping[str, str],
    ) -> None:
        self.parser = parser
        self.environ = environ
        self.name = name
        self.before = before
        self.typed = typed
        self.options = {name: a for a in parser.arguments for name in a.option_strings}
        self.positionals = [a for a in parser.arguments if not a.option_strings]
        self.pending: argparse.Action | None = None
        self.filled: list[str] = []
        self.ended = False
        self._read()

    def _read(self) -> None:
        """Find the option that waits for its value, and the arguments that have one."""
        for word in self.before:
            if self.ended:
                self.filled.append(word)
            elif self.pending is not None and not word.startswith("-"):
                self.pending = None
            elif word == "--":
                self.pending, self.ended = None, True
            elif word.startswith("-") and len(word) > 1:
                action = self.options.get(word)
                self.pending = action if action is not None and action.nargs != 0 else None
            else:
                self.filled.append(word)
                action = self._positional(len(self.filled) - 1)
                self.ended = action is not None and action.nargs == "..."

    def offered(self) -> tuple[str, Offered]:
        if self.ended or (self.pending is None and not self.typed.startswith("-")):
            return self._of_positional()
        if self.pending is not None and not self.typed.startswith("-"):
            return self._values(self.pending, self.typed, "")
        option, equals, value = self.typed.partition("=")
        if equals:
            action = self.options.get(option)
            if action is None or action.nargs == 0:
                return WORDS, []
            return self._values(action, value, f"{option}=")
        return WORDS, _matching(self._option_names(), self.typed)

    def _option_names(self) -> Offered:
        shown = [action for section in sections(self.parser) for action in section.actions]
        return [(long_name(a), meaning(a)) for a in shown if a.option_strings]

    def _of_positional(self) -> tuple[str, Offered]:
        if self.parser.commands and not self.filled:
            commands = [(name, own.summary) for name, own in self.parser.commands.items()]
            return WORDS, _matching(commands, self.typed)
        action = self._positional(len(self.filled))
        if action is None:
            return WORDS, [] if self.ended else _matching(self._option_names(), self.typed)
        if action.nargs == "...":
            inside = self.filled[1:] if self.filled[:1] == ["--"] else self.filled
            return (FILES if inside else PROGRAMS), []
        return self._values(action, self.typed, "")

    def _positional(self, index: int) -> argparse.Action | None:
        if index < len(self.positionals):
            return self.positionals[index]
        last = self.positionals[-1] if self.positionals else None
        return last if last is not None and last.nargs in ("+", "*", "...") else None

    def _values(self, action: argparse.Action, typed: str, prefix: str) -> tuple[str, Offered]:
        """Return the values of an argument; `prefix` is what stands before them in the word."""
        if action.choices:
            choices: Offered = [(str(choice), "") for choice in action.choices]
            return WORDS, _prefixed(_matching(choices, typed), prefix)
        kind = _BY_METAVAR.get(metavar_of(action))
        if kind is not None:
            return kind, []
        from probe_core.cli.completion_values import LISTS, UNFINISHED, values_of

        # Of `nvidia,am` the last item alone is unfinished.
        head, comma, item = typed.rpartition(",") if action.dest in LISTS else ("", "", typed)
        offered = values_of(action.dest, item, [*self.name.split(), *self.before], self.environ)
        used = head.split(",")
        offered = [pair for pair in _matching(offered, item) if pair[0] not in used]
        kind = NOSPACE if action.dest in UNFINISHED and _open(offered) else WORDS
        return kind, _prefixed(offered, prefix + head + comma)


def _open(offered: Offered) -> bool:
    """Return whether something is to be typed behind each word: ``nvidia=``, ``amd/``."""
    return bool(offered) and all(value.endswith(("=", "/")) for value, _ in offered)


def _matching(offered: Offered, typed: str) -> Offered:
    return [pair for pair in offered if pair[0].startswith(typed)]


def _prefixed(offered: Offered, prefix: str) -> Offered:
    return [(prefix + value, about) for value, about in offered]


def _commands(environ: Mapping[str, str]) -> Offered:
    from probe_core.cli.installed import installed_commands

    own = [(name, summary) for name, (_, _, summary) in COMMANDS.items()]
    plugins = installed_commands(environ)[0].values()
    return [*own, *((c.name, c.summary) for c in plugins), ("help", "the help of a command")]


def _parser(name: str, environ: Mapping[str, str]) -> Parser | None:
    """Return a command's parser; None where there is no such command, or it is broken."""
    from importlib import import_module

    from probe_core.cli.parser import command_parser

    if name in COMMANDS:
        return command_parser(name, import_module(f"probe_core.cli.{COMMANDS[name][0]}"))
    from probe_core.cli.completion_values import within_limit
    from probe_core.cli.installed import installed_commands
    from probe_core.cli.running import parser_of
    from probe_core.commands.context import CommandError

    command = installed_commands(environ, name)[0].get(name)
    if command is None:
        return None
    try:
        with within_limit():
            return parser_of(command)
    except (CommandError, SystemExit):
        return None


# Answer a shell at Tab: the words that can be typed next, in the form that its script reads.


def answer(shell: str, words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each word that can be typed next, then what kind of answer it is.

    `words` are what was typed: for bash the line and the characters at which bash itself breaks
    words, for the others each word, with the one that is being typed last.
    """
    if shell == "bash":
        line, breaks = [*words, "", ""][:2]
        words = split(line)
        typed = words[-1]
        # bash replaces only what follows the last of these: `--only=nv`, `pci:0000`.
        replaced = max((typed.rfind(char) + 1 for char in breaks if char in "=:"), default=0)
    else:
        replaced = 0
    kind, offered = candidates(list(words[1:]) or [""], environ)
    for value, about in offered:
        text = clean_text(value[replaced:])
        yield f"{text}\t{clean_text(about)}" if about and shell != "bash" else text
    yield kind if offered or kind != "nospace" else WORDS


def split(line: str) -> list[str]:
    """Return the words of an unfinished line as bash reads them; the last may be empty."""
    import shlex

    if (len(line) - len(line.rstrip("\\"))) % 2:  # it ends in the middle of an escape
        line = line[:-1]
    for ending in ("", "'", '"'):
        try:
            words = shlex.split(line + ending)
        except ValueError:  # inside of a quotation
            continue
        open_word = bool(ending) or not line[-1:].isspace()
        return words if open_word and words else [*words, ""]
    return [line]
