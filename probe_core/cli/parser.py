"""A command's page as data: help, manual, completion and reference are made from this one table."""

from __future__ import annotations

import argparse
import sys

from probe_core import __version__
from probe_core.cli import DEFAULT, FAMILIES
from probe_core.commands.options import COLOR, PROBING, Argument, add_options, with_color
from probe_core.likeness import closest, suggestion
from probe_core.wording import clean_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

    from probe_core.commands import CommandError
    from probe_core.commands.options import SubCommand

    Example = tuple[str, str]
    """A command line, and what it does."""


HELP_OPTIONS = ("--help", "--help-all")
"""Options that every command has; the second only where it would show more."""

_TITLES = {"positional arguments": "Arguments", "options": "Options"}
"""argparse's own titles, and ours."""

_SUPPRESSED = "==SUPPRESS=="
"""argparse.SUPPRESS, the help of an option that is not shown."""


class Section:
    """Arguments under one heading; `shared` is true for those of every command that probes."""

    def __init__(self, title: str, actions: list[argparse.Action]) -> None:
        self.shared = title == PROBING
        self.title = _TITLES.get(title, title[:1].upper() + title[1:])
        self.actions = actions


def sections(parser: Parser) -> list[Section]:
    """Return the sections in the order in which they are read; the command's own come first."""
    shown = [
        Section(group.title or "", [a for a in group._group_actions if a.help != _SUPPRESSED])
        for group in parser._action_groups
    ]
    shared = any(section.shared for section in shown)
    options = next(section for section in shown if section.title == "Options")
    options.actions = _help_last(options.actions, shared)
    # Options without a heading of their own follow those that have one.
    last = ["Options", *(section.title for section in shown if section.shared)]
    shown.sort(key=lambda section: last.index(section.title) + 1 if section.title in last else 0)
    return [section for section in shown if section.actions]


def _help_last(actions: list[argparse.Action], shared: bool) -> list[argparse.Action]:
    own = [a for a in actions if a.option_strings[-1] not in HELP_OPTIONS]
    help_options = [a for a in actions if a.option_strings[-1] in HELP_OPTIONS]
    return own + help_options[: None if shared else 1]


def usage_lines(parser: Parser) -> list[str]:
    """Return how the command is written, without ``Usage:``."""
    if parser.prog == "probe":
        return ["probe [OPTIONS]", "probe COMMAND [OPTIONS]"]
    positionals = [written(a) for a in parser.arguments if not a.option_strings]
    lines = [" ".join([parser.prog, "[OPTIONS]", *positionals])]
    return [*lines, f"{parser.prog} COMMAND [OPTIONS]"] if parser.commands else lines


def written(action: argparse.Action) -> str:
    """Return an argument as a person writes it: ``-n, --gpus N``, ``--json``, ``[NAME]``."""
    value = metavar_of(action)
    if not action.option_strings:
        forms = {"?": f"[{value}]", "*": f"[{value}...]", "+": f"{value}..."}
        return forms.get(str(action.nargs), value)
    # Short before long; of two long ones the first is the one that is taught.
    names = ", ".join(sorted(action.option_strings, key=lambda name: len(name) > 2))
    if action.nargs == 0:
        return names
    return f"{names} [{value}]" if action.nargs == "?" else f"{names} {value}"


def long_name(action: argparse.Action) -> str:
    """Return the name of an option by which it is taught: its first long one."""
    names = [name for name in action.option_strings if name.startswith("--")]
    return [*names, *action.option_strings][0]


def metavar_of(action: argparse.Action) -> str:
    """Return what stands for a value: ``FILE``."""
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper().replace("_", "-")


def meaning(action: argparse.Action) -> str:
    """Return the help of an argument, with the values that it can have."""
    text = (action.help or "").replace("%%", "%")
    choices = [str(choice) for choice in action.choices or ()]
    if all(choice in text for choice in choices):
        return text
    return f"{text}: {joined(choices)}" if text else joined(choices)


# The parser of every command: errors that say what would have worked, help that fits.

MAX_VALUE = 80
"""Characters of a wrong value that a sentence shows: a line of a terminal. A judgement."""

_OPEN = (argparse.REMAINDER, argparse.PARSER, argparse.SUPPRESS)
"""Forms of arguments that may be empty, or that argparse itself asks for."""

_KINDS: dict[object, str] = {int: "a whole number", float: "a number"}
"""What a value is that Python's own types read; their sentences are about Python."""


class Parser(argparse.ArgumentParser):
    """argparse, with sentences of our own for every mistake, and help by task and example.

    Left to itself, argparse asks shutil for the width each time an option is added; shutil brings
    the archive modules, which take longer to import than the probe takes to run.
    """

    def __init__(self, *, examples: Sequence[Example] = (), **options: Any) -> None:
        # An abbreviation that works today breaks a script when an option is added.
        options = {"formatter_class": _formatter, "allow_abbrev": False, **options}
        super().__init__(**{**options, "add_help": False})
        # By the exceptions the mistakes are told apart; argparse's sentences are not parsed.
        self.exit_on_error = False
        self.examples = examples
        self.commands: Mapping[str, SubCommand] = {}
        self.siblings: Mapping[str, SubCommand] = {}
        self.family = self.prog
        self._missing: dict[str, str] = {}
        for names, text in (
            (("-h", "--help"), "this text"),
            (("--help-all",), "every option"),
        ):
            self.add_argument(*names, action=_Help, help=text)

    @property
    def arguments(self) -> list[argparse.Action]:
        """Everything that can be typed, in the order in which it was added."""
        return self._actions

    def of_command(self, name: str) -> Parser:
        """Return the parser of a command of this one: `probe plugins check`."""
        command = self.commands[name]
        parser = Parser(
            prog=f"{self.prog} {name}", description=command.about, examples=command.examples
        )
        add_options(parser, with_color(command.arguments))
        parser.family = self.prog
        parser.siblings = {other: own for other, own in self.commands.items() if other != name}
        parser._missing = {
            entry.dest: entry.missing
            for entry in command.arguments
            if isinstance(entry, Argument) and entry.missing
        }
        return parser

    def parse_args(  # type: ignore[override]  # only the form that `probe` uses
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Return the parsed arguments; ends the process with 2 for an argument nobody takes."""
        required = [a for a in self._actions if a.required and a.nargs not in _OPEN]
        for action in required:
            action.required = False
        try:
            parsed, unknown = self.parse_known_args(args, namespace)
            if self._intermixed(unknown):
                parsed, unknown = self.parse_known_intermixed_args(args, namespace)
        except argparse.ArgumentError as error:
            self.error(self._mistake(error))
        if unknown:
            self.error(self._unknown(unknown[0]))
        for action in required:
            if getattr(parsed, action.dest, None) in (None, []):
                if sentence := self._missing.get(action.dest):
                    self.error(sentence, self.family)
                self.error(f"{written(action)} is missing{self._hint()}")
        return parsed

    def _intermixed(self, unknown: Sequence[str]) -> bool:
        """Return whether arguments were left over that stand behind options: `fit M --bits 8 FILE`.

        Only then it is parsed anew: the intermixed form loses a `--` before Python 3.12.5.
        """
        forms = [action.nargs for action in self._actions if not action.option_strings]
        spare = any(not argument.startswith("-") for argument in unknown)
        return spare and any(form in ("*", "+", "?") for form in forms) and not {*forms} & {*_OPEN}

    def _mistake(self, error: argparse.ArgumentError) -> str:
        """Return the sentence about an option; by what the option is, not by argparse's words."""
        names = {"/".join(action.option_strings): action for action in self._actions}
        action = names.get(error.argument_name or "")
        if action is None:
            return error.message
        if action.nargs == 0:
            return f"{action.option_strings[0]} takes no value"
        return f"{error.argument_name} {error.message}"

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            if not action.option_strings:
                raise
            self.error(f"{long_name(action)} needs a value: {written(action)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            reason = _reason(action, arg_string)
            problem = f"{_subject(action)}{clean_text(arg_string, MAX_VALUE)}: {reason}"
            self.error(problem + self._forgotten_dashes(action, arg_string))

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        typed = clean_text(str(value), MAX_VALUE)
        choices = [str(choice) for choice in action.choices]
        hint = suggestion(typed, choices) or f" It can be {joined(choices)}."
        self.error(f"{_subject(action)}{typed}: no such {metavar_of(action).lower()}.{hint}")

    def _forgotten_dashes(self, action: argparse.Action, value: str) -> str:
        """Return the hint for `probe exec --wait true`: whose value may be left out, took it."""
        remainder = any(action.nargs == argparse.REMAINDER for action in self._actions)
        if not remainder or action.nargs != argparse.OPTIONAL:
            return ""
        flag = action.option_strings[0]
        return f". Write `--` before the command: {self.prog} {flag} -- {clean_text(value, 40)}"

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument {clean_text(argument, MAX_VALUE)!r}{self._hint()}"
        option = clean_text(argument.partition("=")[0], MAX_VALUE)
        names = [name for action in self._actions for name in action.option_strings]
        hint = self._at_siblings(option) or option_hint(option, names)
        return f"no option {option}.{hint or f' Run `{self.prog} --help`.'}"

    def _at_siblings(self, option: str) -> str:
        """Return which other commands of the same family have an option; "" where none has."""
        owners = [
            name
            for name, command in self.siblings.items()
            if any(option in getattr(entry, "names", ()) for entry in command.arguments)
        ]
        if len(owners) > 1:
            return f" Of `{self.family}` {joined(owners, 'and')} have it."
        return f" `{self.family} {owners[0]}` has it." if owners else ""

    def _hint(self) -> str:
        return f". Run `{self.prog} --help`."

    def error(self, message: str, program: str | None = None) -> NoReturn:
        """Print the usage error and end the process with 2."""
        from probe_core.commands.context import write_error

        write_error(f"{program or self.prog}: {message}")
        self.exit(2)

    def print_help(
        self, file: Any = None, every: bool = False, args: argparse.Namespace | None = None
    ) -> None:
        """Print the help; for `probe` itself with the commands, by task."""
        from probe_core.cli.help import help_lines
        from probe_core.commands.context import Context

        # Not argparse's own write, which raises where a terminal cannot show "…".
        context = Context(args, stdout=file)
        for line in help_lines(self, context, every=every):
            context.out(line)


class _Help(argparse.Action):
    """Print the help, and end."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if isinstance(parser, Parser):
            parser.print_help(every=option_string == "--help-all", args=namespace)
        parser.exit()


def command_parser(name: str, module: ModuleType) -> Parser:
    """Return the parser of a command: help, manual and completion are made from it."""
    program = "probe" if name == DEFAULT else f"probe {name}"
    examples = getattr(module, "EXAMPLES", ())
    parser = Parser(prog=program, description=module.HELP, examples=examples)
    if hasattr(module, "add_arguments"):  # a plugin's
        module.add_arguments(parser)
        if not any("--color" in action.option_strings for action in parser.arguments):
            add_options(parser, [COLOR])
    else:
        add_options(parser, with_color(module.ARGUMENTS))
    if name == DEFAULT:
        parser.add_argument(
            "-V",
            "--version",
            action="version",
            version=f"probe-core {__version__}",
            help="print the version of probe-core",
        )
    if name in FAMILIES:
        parser.commands = parser.siblings = module.SUB_COMMANDS
    return parser


def unknown_sub_command(name: str, typed: str, commands: Iterable[str]) -> CommandError:
    """Return the error about a command of a command that does not exist."""
    from probe_core.commands.context import CommandError

    shown, known = clean_text(typed, MAX_VALUE), list(commands)
    hint = suggestion(shown, known).replace("mean ", f"mean {name} ")
    hint = hint or f" It has {joined(known, 'and')}."
    error = CommandError(f"no command '{name} {shown}'.{hint}")
    error.program = "probe"
    return error


def _reason(action: argparse.Action, value: str) -> str:
    """Return why a value cannot be read: in the words of what reads it, where it has any."""
    if action.type in _KINDS:
        return f"not {_KINDS[action.type]}"
    try:
        if callable(action.type):
            action.type(value)
    except Exception as error:
        if str(error):
            return clean_text(str(error))
    return f"not a {metavar_of(action)}"


def _subject(action: argparse.Action) -> str:
    return f"{action.option_strings[0]} " if action.option_strings else ""


def _formatter(prog: str) -> argparse.HelpFormatter:
    from probe_core.commands.context import Context

    return argparse.HelpFormatter(prog, width=Context(stdout=sys.stdout).width - 2)


# What a wrong word of a command line was probably meant to be: by its form, then by its sense.

_COMMANDS = {
    "check": "plugins check",
    "gpus": "devices",
    "info": "devices",
    "list": "devices",
    "lookup": "chip",
    "ls": "devices",
    "new": "plugins new",
    "ps": "leases",
    "run": "exec",
    "show": "devices",
    "status": "devices",
    "version": "--version",
    "why": "explain",
    "why-not": "plugins why-not",
}
"""Words of other tools (nvidia-smi, docker, systemctl, pip) for what a command does."""

_OPTIONS = {
    "-j": "--json",
    "-o": "--json",
    "-v": "--version",
    "--backend": "--for",
    "--count": "--gpus",
    "--deadline": "--timeout",
    "--exclude": "--disable",
    "--format": "--json",
    "--host": "--hostname",
    "--num-gpus": "--gpus",
    "--output": "--json",
    "--plugins": "--only",
    "--root": "--machine",
    "--runtime": "--for",
    "--skip": "--disable",
    "--sysroot": "--machine",
}
"""Options of other tools for what an option of ours does."""


def command_hint(name: str, commands: Iterable[str]) -> str | None:
    """Return the command that `name` was probably meant to be; None where none is near."""
    return closest(name, commands) or _COMMANDS.get(name.casefold())


def option_hint(option: str, options: Iterable[str]) -> str:
    """Return `` Did you mean --x?`` for an option that does not exist; "" where none is near."""
    names = sorted(options)
    long_options = [name for name in names if name.startswith("--")]
    match = closest(option, long_options, "--") if option.startswith("--") else None
    meant = match or _OPTIONS.get(option)
    return f" Did you mean {meant}?" if meant in names else ""
