"""A command's page as data: help, manual, completion and reference are made from this one table."""

from __future__ import annotations

import argparse
import sys

from probe_core.cli import DEFAULT
from probe_core.commands.options import PROBING
from probe_core.wording import clean_text, closest, joined, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

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

    __slots__ = ("actions", "shared", "title")

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
    positionals = [written(a) for a in parser._actions if not a.option_strings]
    return [" ".join([parser.prog, "[OPTIONS]", *positionals])]


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

SUB_COMMAND = "action"
"""The name of the argument that chooses what a command does: `probe plugins check`."""

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
        for names, text in (
            (("-h", "--help"), "this text"),
            (("--help-all",), "every option"),
        ):
            self.add_argument(*names, action=_Help, help=text)

    def parse_args(  # type: ignore[override]  # only the form that `probe` uses
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Return the parsed arguments; ends the process with 2 for an argument nobody takes."""
        required = [a for a in self._actions if a.required and a.nargs not in _OPEN]
        for action in required:
            action.required = False
        try:
            parsed, unknown = self.parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            self.error(self._mistake(error))
        if unknown:
            self.error(self._unknown(unknown[0]))
        for action in required:
            if getattr(parsed, action.dest, None) in (None, []):
                self.error(f"{written(action)} is missing{self._hint()}")
        return parsed

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
        if action.dest == SUB_COMMAND and not action.option_strings:
            command = self.prog.removeprefix("probe ")
            hint = suggestion(typed, choices).replace("mean ", f"mean {command} ")
            hint = hint or f" It has {joined(choices, 'and')}."
            self.error(f"no command '{command} {typed}'.{hint}", program="probe")
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
        return f"no option {option}.{option_hint(option, names) or f' Run `{self.prog} --help`.'}"

    def _hint(self) -> str:
        return f". Run `{self.prog} --help`."

    def error(self, message: str, program: str | None = None) -> NoReturn:
        """Print the usage error and end the process with 2."""
        from probe_core.commands.context import write_error

        write_error(f"{program or self.prog}: {message}")
        self.exit(2)

    def print_help(self, file: Any = None, every: bool = False) -> None:
        """Print the help; for `probe` itself with the commands, by task."""
        from probe_core.cli.help import help_lines
        from probe_core.commands.context import Context

        # Not argparse's own write, which raises where a terminal cannot show "…".
        context = Context(stdout=file)
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
            parser.print_help(every=option_string == "--help-all")
        parser.exit()


def command_parser(name: str, module: ModuleType) -> Parser:
    """Return the parser of a command: help, manual and completion are made from it."""
    program = "probe" if name == DEFAULT else f"probe {name}"
    examples = getattr(module, "EXAMPLES", ())
    parser = Parser(prog=program, description=module.HELP, examples=examples)
    module.add_arguments(parser)
    return parser


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
