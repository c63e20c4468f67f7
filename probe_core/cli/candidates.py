"""What can be typed next on a command line: from the commands' own parsers, and live values."""

from __future__ import annotations

import os

from probe_core.cli import COMMANDS, DEFAULT
from probe_core.cli.parser import long_name, meaning, metavar_of, sections
from probe_core.commands.options import command_place
from probe_core.config import SETTINGS
from probe_core.model.ids import is_code, is_device_id, is_distribution_name, is_prober_name
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from probe_core.cli.parser import Parser
    from probe_core.registry import EntryPoint

    Offered = list[tuple[str, str]]
    """Words, each with what it means."""
    Source = Callable[[str, Sequence[str], Mapping[str, str]], Offered]


WORDS, NOSPACE, FILES, FOLDERS, PROGRAMS = "words", "nospace", "files", "folders", "programs"
"""Kinds of answers: words to choose from, words that go on, or what every shell knows by itself."""

_HELP_WORDS = ("help", "-h", "--help", "--help-all")

_BY_METAVAR = {"FILE": FILES, "PATH": FILES, "FOLDER": FOLDERS, "DIR": FOLDERS}
"""What stands for a file in the help of any command, a plugin's too, is completed as one."""


_INSERTED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@+=,")
"""What a word may hold that is put into the line: nothing that any shell expands or runs."""


def candidates(words: list[str], environ: Mapping[str, str]) -> tuple[str, Offered]:
    """Return the kind of answer, and what may stand for the last of `words`.

    `words` are the arguments of `probe` as far as they are typed. Commands of plugins are imported
    only where their own arguments are completed. A word that a shell could read as more than a
    word is left out, wherever it came from.
    """
    kind, offered = _candidates(words, environ)
    return kind, [pair for pair in offered if _INSERTED.issuperset(pair[0])]


def _candidates(words: list[str], environ: Mapping[str, str]) -> tuple[str, Offered]:
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
            return (PROGRAMS if self.filled in ([], ["--"]) else FILES), []
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
            return WORDS, _prefixed(_matching(_values_alone(choices), typed), prefix)
        kind = _BY_METAVAR.get(metavar_of(action))
        if kind is not None:
            return kind, []
        # Of `nvidia,am` the last item alone is unfinished.
        head, comma, item = typed.rpartition(",") if action.dest in LISTS else ("", "", typed)
        offered = values_of(action.dest, item, [*self.name.split(), *self.before], self.environ)
        used = head.split(",")
        offered = [pair for pair in _matching(_values_alone(offered), item) if pair[0] not in used]
        kind = NOSPACE if action.dest in UNFINISHED and _open(offered) else WORDS
        return kind, _prefixed(offered, prefix + head + comma)


def _open(offered: Offered) -> bool:
    """Return whether something is to be typed behind each word: ``nvidia=``, ``amd/``."""
    return bool(offered) and all(value.endswith(("=", "/")) for value, _ in offered)


def _matching(offered: Offered, typed: str) -> Offered:
    return [pair for pair in offered if pair[0].startswith(typed)]


def _values_alone(offered: Offered) -> Offered:
    """Return what no command takes for one of its options."""
    return [pair for pair in offered if not pair[0].startswith("-")]


def _prefixed(offered: Offered, prefix: str) -> Offered:
    return [(prefix + value, about) for value, about in offered]


def _commands(environ: Mapping[str, str]) -> Offered:
    from probe_core.cli.plugin_commands import installed_commands

    own = [(name, summary) for name, (_, _, summary) in COMMANDS.items()]
    plugins = installed_commands(environ)[0].values()
    return [*own, *((c.name, c.summary) for c in plugins), ("help", "the help of a command")]


def _parser(name: str, environ: Mapping[str, str]) -> Parser | None:
    """Return a command's parser; None where there is no such command, or it is broken."""
    from importlib import import_module

    from probe_core.cli.parser import command_parser

    if name in COMMANDS:
        return command_parser(name, import_module(f"probe_core.cli.{COMMANDS[name][0]}"))
    from probe_core.cli.plugin_commands import installed_commands, parser_of
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


# The values of options that completion offers: names from metadata, devices from a short look.

LIMIT_S = 0.25
"""Seconds for what may hang, the rest of a Tab takes 50 ms: a person waits no longer for one."""


class within_limit:  # used as a statement
    """End the process silently when what is inside takes longer than `LIMIT_S`.

    By a thread of C, which ends a hanging driver or import too; a signal's handler in Python would
    wait for it. The shell then offers nothing.
    """

    def __enter__(self) -> None:
        import faulthandler

        self._null = open(os.devnull, "w")
        faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=self._null)

    def __exit__(self, *exception: object) -> None:
        import faulthandler

        faulthandler.cancel_dump_traceback_later()
        self._null.close()


def values_of(dest: str, typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the values of an argument by its name; none where nothing is known of them.

    `typed` is what they begin with; `before` are the command and its words that are typed already.
    """
    setting = SETTINGS.get(dest)
    source = _OF_KINDS.get(setting.kind) if setting is not None else _SOURCES.get(dest)
    if source is None:
        return []
    # Whatever cannot be read, a shell gets no words for it and no message between its own.
    try:
        return source(typed, before, environ)
    except Exception:
        return []


def _probers(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    own = [("bus", "built in"), ("cpu", "built in")]
    found = [(entry.name, _owner(entry)) for entry in _entries()]
    return own + [pair for pair in found if is_prober_name(pair[0])]


def _entries() -> Sequence[EntryPoint]:
    from probe_core.registry import GROUP, scan

    return [entry for entry in scan()[0] if entry.group == GROUP]


def _owner(entry: EntryPoint) -> str:
    return f"{entry.distribution} {entry.version}".strip()


def _ranks(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    if "=" in typed:
        return []
    return [(f"{name}=", owner) for name, owner in _probers(typed, before, environ)]


def _distributions(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    owners = {entry.distribution: _owner(entry) for entry in _entries()}
    return [(name, owner) for name, owner in owners.items() if is_distribution_name(name)]


def _plugin_names(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the names for `plugins why-not` and its like; a new one is nobody's."""
    return [] if "new" in before else _probers(typed, before, environ)


def _runtimes(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    from probe_core.model.runtimes import RUNTIMES

    return [(name, "") for name in RUNTIMES]


def _chips(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return vendors first, then the chips of one: of all there are thousands."""
    from probe_core.resolve import open_chipdb

    file = environ.get("PROBE_CHIPDB")
    database = open_chipdb([file] if file else ())[0]
    if database is None:
        return []
    ids = sorted({id_ for table in database.tables() for id_, _ in table.chips})
    if "/" in typed:
        return [(id_, "") for id_ in ids if id_.startswith(typed)]
    return [(vendor, "") for vendor in dict.fromkeys(f"{id_.partition('/')[0]}/" for id_ in ids)]


_OF_ACCELERATORS = (["doctor"], ["env"], ["exec"])
"""Commands that take no processor: none is leased, and none has a driver to repair."""


def _settings_of_kinds(*kinds: str) -> set[str]:
    return {name for name, setting in SETTINGS.items() if setting.kind in kinds}


def _devices(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the devices that the built-in probers see: no plugin that could hang is started."""
    from probe_core.cli.parser import Parser
    from probe_core.commands.context import Context
    from probe_core.commands.options import add_probe_options

    parser = Parser(prog="probe")
    add_probe_options(parser)
    args = parser.parse_args(["--only", "bus,cpu"])
    args.machine, args.static = _value_of(before, "--machine"), _value_of(before, "--static")
    with within_limit():
        devices = Context(args, environ=environ).report()["devices"]
    excluded = "cpu" if before[:1] in _OF_ACCELERATORS else None
    shown = [device for device in devices if device["kind"] != excluded]
    named = [(device["id"], device["name"] or "") for device in shown]
    return [pair for pair in named if is_device_id(pair[0])]


def _value_of(words: Sequence[str], option: str) -> str | None:
    """Return the value that an option has on the line."""
    for at, word in enumerate(words):
        if word == option and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _leased(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    from probe_core.leasing.listing import leases_now

    with within_limit():
        entries = leases_now(environ)
    if not entries:
        return []
    # Whoever may write into the folder chooses the names of what lies in it.
    devices = [(e["device"], e["command"] or "") for e in entries if is_device_id(e["device"])]
    owners = [(str(e["pid"]), e["command"] or "") for e in entries if e["pid"] is not None]
    return [*dict(devices).items(), *dict(owners).items(), ("all", "every lease")]


def _checks(typed: str, before: Sequence[str], environ: Mapping[str, str]) -> Offered:
    """Return the core's checks, and those that the manifests of other distributions list."""
    from probe_core.doctor.examine import all_checks
    from probe_core.doctor.installed import installed_checks

    own = [(check.code, check.summary) for check in all_checks()]
    with within_limit():
        sets = [entry for entry in installed_checks(None) if not entry.problem]
    return own + [(code, entry.owner) for entry in sets for code in entry.codes if is_code(code)]


_SOURCES: dict[str, Source] = {
    "codes": _checks,
    "device": _devices,
    "kill": _leased,
    "name": _plugin_names,
    "query": _chips,
    "runtime": _runtimes,
}
"""What the arguments of commands can be, by their names in the parser."""

_OF_KINDS: dict[str, Source] = {
    "distributions": _distributions,
    "names": _probers,
    "ranks": _ranks,
}
"""What settings can be, by their kinds."""

LISTS = frozenset({"codes", "device", "kill"}) | _settings_of_kinds(
    "distributions", "names", "ranks"
)
"""Arguments that take several values, separated by commas."""

UNFINISHED = frozenset({"query"}) | _settings_of_kinds("ranks")
"""Arguments whose values are completed in two steps."""
