"""Commands of other distributions: found by metadata, described by `command.json`, and run.

None is imported before it is called. A mistake in one ends in a sentence that says whose it is.
"""

from __future__ import annotations

import os
import sys

from probe_core.cli import COMMANDS, OTHER, USAGE
from probe_core.commands.context import CommandError, Context, write_error
from probe_core.machine.trust import Trust
from probe_core.registry import is_module_name, scan
from probe_core.registry.extensions import (
    Extension,
    locate_extension,
    manifest_table,
    name_rejection,
    rejections,
    texts,
)
from probe_core.wording import clean_text, counted, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from probe_core.cli.parser import Parser
    from probe_core.commands.options import Argument, Option
    from probe_core.registry import EntryPoint

    Problem = tuple[str, str]
    """The name of a command ("" where none is at fault alone), and a sentence."""


# Read `command.json`: data beside a command's module that says what `probe --help` shows.
#
# A mistake in a manifest never stops its command: the help then shows less, and says what is
# wrong.

TEXTS = (("group", 40), ("summary", 200))
"""What a manifest may say of a command, and its characters at most: a heading, and a summary of two
lines at 100 columns. A judgement."""


# Find the commands that installed distributions bring, without importing any of them.
#
# A command is an entry point in the group `probe_core.commands.v1`; a manifest beside its module
# says what `probe --help` shows. The rules are those of probers: a broken distribution costs only
# itself, and as root nothing is used that somebody other than root could have written.

GROUP = "probe_core.commands.v1"
_GROUP_STEM = "probe_core.commands.v"

BROUGHT_BY = {
    "cluster": "probe-cluster",
    "topology": "probe-cluster",
    "partition": "probe-cluster",
    "fit": "probe-cluster",
    "export": "probe-export",
    "bench": "probe-bench",
    "check": "probe-bench",
    "env": "probe-wheels",
    "will-run": "probe-wheels",
    "mcp": "probe-mcp",
    "report": "probe-report",
    "watch": "probe-watch",
    "journal": "probe-changes",
    "since": "probe-changes",
}
"""Commands that a distribution of this project brings, to name it where it is missing."""

RESERVED = frozenset({"help", "probe", "version"})
"""Names that no plugin can take: words that a person may write to ask `probe` itself."""

MAX_COMMANDS = 64
"""Commands of all plugins together. A page of help holds some forty; beyond that the path is
broken or hostile, and its manifests are not worth the time to read. A judgement."""


class InstalledCommand(Extension):
    """A command of a plugin: whose it is, where it lies, and what `probe --help` shows of it.

    `group` and `summary` are clean, but may be anything.
    """

    def __init__(self, entry: EntryPoint) -> None:
        super().__init__(entry)
        self.group = OTHER
        self.summary = ""


def installed_commands(
    environ: Mapping[str, str], name: str | None = None, paths: Iterable[str] | None = None
) -> tuple[dict[str, InstalledCommand], list[Problem]]:
    """Return the usable commands by name, and what is wrong with the others.

    With a `name` only commands of that name are looked at. Of two commands with one name the
    first on the path that can be used counts. `environ` holds the allowlist.
    """
    entries, broken = scan(paths, _GROUP_STEM)
    problems = [_left_out_distribution(problem.distribution, problem.reason) for problem in broken]
    candidates: list[InstalledCommand] = []
    trust = Trust()  # one for all, because they share the folders above them
    for entry in entries[:MAX_COMMANDS]:
        if name is None or entry.name == name:
            command = InstalledCommand(entry)
            if reason := _rejection(entry) or locate_extension(command, "command", trust):
                problems.append(_left_out(command, reason))
            else:
                candidates.append(command)
    if len(entries) > MAX_COMMANDS:
        count = len(entries) - MAX_COMMANDS
        left_out = f"{counted(count, 'command')} {'is' if count == 1 else 'are'} left out"
        sentence = f"{left_out}: more than {MAX_COMMANDS} are installed"
        problems.append(("", f"{sentence}; remove some distributions"))
    commands = _first_of_each(candidates, _trust(candidates, environ, trust), problems)
    problems += _describe(commands.values())
    return commands, problems


def _left_out(command: InstalledCommand, reason: str) -> Problem:
    name = clean_text(command.name, 80)
    return command.name, f"{command.owner}: the command {name!r} is left out: {reason}"


def _left_out_distribution(distribution: str, reason: str) -> Problem:
    owner = clean_text(distribution)
    sentence = f"{owner}: its commands are left out: {clean_text(reason, 400)}"
    return "", f"{sentence}; reinstall or remove it"


def _rejection(entry: EntryPoint) -> str | None:
    """Return why an entry point is no command, whatever lies behind it."""
    if reason := name_rejection(entry, GROUP):
        return reason
    if entry.name in COMMANDS or entry.name in RESERVED:
        return "the name belongs to probe-core; rename it"
    if not is_module_name(entry.target):
        return f"its entry point {clean_text(entry.target, 80)!r} is no module; name a module"
    return None


def _trust(
    candidates: list[InstalledCommand], environ: Mapping[str, str], trust: Trust
) -> list[str | None]:
    """Return for each candidate why it must not be used; None where it may."""
    if not candidates:
        return []
    from probe_core.pipeline.settings import plugin_rules

    allow, problem = plugin_rules({}, environ)
    if problem is not None:
        return [problem for _ in candidates]
    return list(rejections(candidates, allow, trust))


def _first_of_each(
    candidates: list[InstalledCommand], reasons: list[str | None], problems: list[Problem]
) -> dict[str, InstalledCommand]:
    commands: dict[str, InstalledCommand] = {}
    for command, reason in zip(candidates, reasons, strict=True):
        if reason is None and command.name in commands:
            owner = commands[command.name].owner
            reason = f"{owner} has a command of that name and goes first; remove one of them"
        if reason is None:
            commands[command.name] = command
        else:
            problems.append(_left_out(command, reason))
    return commands


def _describe(commands: Iterable[InstalledCommand]) -> Iterator[Problem]:
    """Take group and summary out of the manifests; yield what is wrong with those."""
    tables: dict[str, dict[str, Any]] = {}  # a manifest is read once for all its commands
    for command in commands:
        path = command.manifest
        if path is None:
            continue
        try:
            if path not in tables:
                tables[path] = manifest_table(path, "commands")
            fields = texts(tables[path], command.name, TEXTS)
        except ValueError as error:
            name, reason = path.rpartition("/")[2], clean_text(str(error), 400)
            sentence = f"{command.owner}: the command {command.name!r} has a mistake in {name}"
            yield command.name, f"{sentence}: {reason}; its author can correct it"
            continue
        command.group = clean_text(fields.get("group", "")) or OTHER
        command.summary = clean_text(fields.get("summary", ""))


# Run the command of a plugin: whatever it does wrong ends in one sentence that says whose it is.
#
# It runs in this process, as the user: unlike a prober it was asked for by name, and what it
# prints is the answer. So it is imported only when it is called, and its mistakes are told apart
# from ours.

may_go_on = False
"""Whether threads of a plugin's command may go on: it was called, and none that said `BRIEF` and
came to its end."""

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
    global may_go_on
    may_go_on = True
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
    global may_go_on
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
    may_go_on = not is_brief
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
    from io import StringIO

    printed = StringIO()
    stdout, sys.stdout = sys.stdout, printed
    try:
        # Not by importlib, which would be imported for this alone.
        module = __import__(command.module, fromlist=["__name__"])
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
        from probe_core.commands.options import plain, with_color

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
