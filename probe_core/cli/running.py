"""Run the command of a plugin: whatever it does wrong ends in one sentence that says whose it is.

It runs in this process, as the user: unlike a prober it was asked for by name, and what it prints
is the answer. So it is imported only when it is called, and its mistakes are told apart from ours.
"""

from __future__ import annotations

import os
import sys

from probe_core.cli import COMMANDS, USAGE
from probe_core.cli.installed import BROUGHT_BY, installed_commands
from probe_core.commands.context import CommandError, Context, write_error
from probe_core.wording import clean_text, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Sequence
    from types import ModuleType
    from typing import Any

    from probe_core.cli.installed import InstalledCommand
    from probe_core.cli.parser import Parser
    from probe_core.commands.options import Argument, Option

__all__ = ["parser_of", "run_installed"]

ended_briefly = False
"""Whether the last command of a plugin said `BRIEF`, and came to its end."""

BROKEN = 1
"""Exit status of a command that is broken: that of a Python program which raised."""

MAX_NAME_SHOWN = 60
"""Characters of a wrong name that a sentence shows."""


class UnusableCommand(CommandError):
    """A command that does not exist or is broken: `probe` itself tells, not the command."""

    program = "probe"


def run_installed(name: str, arguments: list[str]) -> int:
    """Run the command `name` of a plugin; returns its exit status.

    Raises `CommandError` where there is none of that name, or it is broken; `SystemExit`,
    `KeyboardInterrupt` and what writing to standard output raises pass through.
    """
    commands, problems = installed_commands(os.environ, name)
    if name in commands:
        return _run(commands[name], arguments)
    for command, sentence in problems:
        if command == name:
            raise UnusableCommand(sentence, BROKEN)
    commands, problems = installed_commands(os.environ)
    for command, sentence in problems:
        if not command:  # a distribution that cannot be read may be the one that brings it
            write_error(f"probe: {sentence}")
    raise UnusableCommand(_unknown(name, commands), USAGE)


def _unknown(name: str, installed: Collection[str]) -> str:
    """Return the sentence about a command that does not exist, with what would work."""
    from probe_core.cli.parser import command_hint  # with argparse, which a sound line needs not

    typed = clean_text(name, MAX_NAME_SHOWN)
    hint = command_hint(name, {*COMMANDS, *installed, *BROUGHT_BY})
    distribution = None if hint in installed else BROUGHT_BY.get(hint or "")
    if distribution is not None:
        brought = f"comes with {distribution}, which is not installed: pip install {distribution}"
        if hint == name:
            return f"the command {typed!r} {brought}"
        return f"no command {typed!r}. Did you mean {hint}? It {brought}"
    if hint is not None:
        return f"no command {typed!r}. Did you mean {hint}?"
    return f"no command {typed!r}. Run `probe --help` for all commands."


def _run(command: InstalledCommand, arguments: list[str]) -> int:
    global ended_briefly
    module = _loaded(command)
    is_brief = getattr(module, "BRIEF", False) is True
    if not is_brief and sys.modules["probe_core.cli"].is_process:
        import gc

        gc.enable()  # `entry` disabled it
    args = _attempt(command, "parse options", lambda: _parsed(command, module, arguments))
    context = Context(args)
    status = _attempt(command, "run", lambda: module.run(args, context), context)
    # True and False are ints, but they answer another question.
    if type(status) is not int or not 0 <= status <= 255:
        raise _broken(command, f"returned {_shown(status)} for an exit status (0 to 255)")
    ended_briefly = is_brief
    return status


def parser_of(command: InstalledCommand) -> Parser:
    """Return the parser of a plugin's command; raises `CommandError` where the command is broken.

    Imports the command, but runs nothing of it.
    """
    from probe_core.cli.parser import command_parser

    module = _loaded(command)
    parser: Parser = _attempt(
        command, "parse options", lambda: command_parser(command.name, module)
    )
    return parser


def _loaded(command: InstalledCommand) -> ModuleType:
    module: ModuleType = _attempt(command, "import", lambda: _imported(command))
    _check(command, module)
    return module


def _shown(value: object) -> str:
    """Return a value for a sentence; not by the `repr` of a stranger's class."""
    return repr(value) if type(value) in (bool, int, float, type(None)) else type(value).__name__


def _attempt(
    command: InstalledCommand,
    step: str,
    action: Callable[[], Any],
    context: Context | None = None,
) -> Any:
    """Return what `action` returns; what it raises by mistake becomes a `CommandError`."""
    streams = sys.stdout, sys.stderr
    try:
        return action()
    except (CommandError, SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        if _reader_gone(error) or (context is not None and error is context.output_error):
            raise  # no mistake of the plugin: `main` knows what to do
        sys.stdout, sys.stderr = streams
        raise _broken(command, f"cannot {step}: {error_text(error)}{_place(error)}") from None
    finally:
        sys.stdout, sys.stderr = streams


def _reader_gone(error: BaseException) -> bool:
    """Return whether `print` met a standard output that nobody reads any more.

    A command may have pipes of its own, so that the type of the error is not enough; the kernel
    reports POLLERR for a pipe without a reader.
    """
    if not isinstance(error, BrokenPipeError):
        return False
    import select

    if not hasattr(select, "poll"):  # Windows
        return True
    poll = select.poll()
    poll.register(1, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _place(error: BaseException) -> str:
    """Return the innermost file and line that raised, for the author; "" outside of the plugin."""
    place, trace = "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        # The import system's own frames have no file.
        if not path.startswith("<") and path != __file__:
            place = f" ({os.path.basename(path)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _broken(command: InstalledCommand, failure: str) -> CommandError:
    step = f"update or remove {command.distribution}, or report it to its author"
    sentence = f"{command.owner}: the command {command.name!r} {failure}; {step}"
    return UnusableCommand(sentence, BROKEN)


def _imported(command: InstalledCommand) -> ModuleType:
    """Import the module; what it prints meanwhile would stand before the answer, so it fails."""
    from importlib import import_module
    from io import StringIO

    printed = StringIO()
    stdout, sys.stdout = sys.stdout, printed
    try:
        module = import_module(command.module)
    finally:
        sys.stdout = stdout
    if printed.getvalue():
        shown = ascii(printed.getvalue()[:40])
        raise _broken(command, f"printed {shown} when it was imported")
    return module


def _check(command: InstalledCommand, module: ModuleType) -> None:
    by_table = hasattr(module, "ARGUMENTS") and not hasattr(module, "add_arguments")
    for name in ("run",) if by_table else ("add_arguments", "run"):
        if not callable(getattr(module, name, None)):
            raise _broken(command, f"has no function {name!r} in {command.module}")
    if not isinstance(getattr(module, "HELP", None), str):
        raise _broken(command, f"has no text HELP in {command.module}")


def _parsed(
    command: InstalledCommand, module: ModuleType, arguments: list[str]
) -> argparse.Namespace:
    table = _table(module)
    if table is not None:
        from probe_core.cli.plain import plain
        from probe_core.commands.options import with_color

        args = plain(arguments, with_color(table))
        if args is not None:
            return args  # type: ignore[return-value]  # read as one is
    from probe_core.cli.parser import command_parser

    return command_parser(command.name, module).parse_args(arguments)


def _table(module: ModuleType) -> Sequence[Argument | Option] | None:
    """Return the table of all that a command takes; None where argparse alone knows it."""
    if not hasattr(module, "add_arguments"):
        return module.ARGUMENTS  # type: ignore[no-any-return]  # `_check` saw it
    options = getattr(module, "OPTIONS", None)
    positional = getattr(module, "POSITIONAL", None)
    if options is None or positional is None:
        return options
    from probe_core.commands.options import Argument

    return [Argument(positional, "", count="?"), *options]
