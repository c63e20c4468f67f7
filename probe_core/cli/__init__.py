"""The command `probe`: data to standard output, words to standard error, and exit statuses.

Only the command that runs is imported: every script that calls `probe` pays for its start.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import NoReturn

    from probe_core.commands.options import Argument, Option, SubCommand

__all__ = ["COMMANDS", "DEFAULT", "FAMILIES", "GROUPS", "OTHER", "entry", "main"]

OTHER = "Other"
GROUPS = ("Look", "Fix", "Use", "Clusters", OTHER)
"""The tasks by which `probe --help` groups commands, in its order. What a plugin's manifest calls
otherwise comes under the last."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    # name: (module, group, summary)
    "devices": ("devices", "Look", "devices, memory, peak FLOPS (the default)"),
    "explain": ("explain", "Look", "where every value comes from"),
    "visible": ("visible", "Look", "which devices CUDA, HIP, Vulkan … would see"),
    "chip": ("chip", "Look", "look a chip up by name or PCI id"),
    "doctor": ("doctor", "Fix", "why a device cannot be used, and the line that repairs it"),
    "plugins": ("plugins", "Fix", "installed plugins: list, check, why-not, run, new"),
    "record": ("record", "Fix", "save this computer as a file for a bug report"),
    "exec": ("exec", "Use", "run a command on free devices"),
    "leases": ("leases", "Use", "devices in use, their owners and since when"),
    "layout": ("layout", "Use", "split the devices among several processes"),
    "completion": ("completion", OTHER, "shell completion for bash, zsh or fish"),
}
"""The built-in commands. Their names belong to them: no plugin can take one."""

FAMILIES = ("plugins",)
"""Commands that have commands of their own: their table is `SUB_COMMANDS`."""

DEFAULT = "devices"
"""What runs without a command. `probe report` is the page that probe-report writes."""

# 130 is 128 + SIGINT and 141 is 128 + SIGPIPE, as shells write a death by signal.
USAGE, INTERRUPTED, BROKEN_PIPE, UNWRITTEN = 2, 130, 141, 1

MISTAKE = 70
"""Exit status of a mistake in our own code: EX_SOFTWARE of sysexits.h."""

TRACEBACK = "PROBE_CORE_TRACEBACK"
"""Variable with which a mistake in our own code ends with Python's own report of it."""


is_process = False
"""Whether the process runs one command and ends: `entry` was called."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0: an answer was given. 1: `--strict`, and the node is degraded; a plugin's command that is
    broken; an answer that could not be written. 2: usage. 70: a mistake in this program. 130:
    Ctrl-C. Raises `SystemExit` as argparse does, for `--help` and for usage errors.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return BROKEN_PIPE
    except OSError as error:  # a full disk behind standard output
        from probe_core.commands.context import write_error

        write_error(f"probe: the answer could not be written: {error.strerror or error}")
        _silence_stdout()
        return UNWRITTEN
    except Exception as error:
        import os

        if os.environ.get(TRACEBACK):
            raise
        from probe_core.commands.context import write_error

        write_error(_internal(error))
        return MISTAKE


def entry() -> NoReturn:
    """Run the command line as a process of its own: what the script `probe` calls.

    A built-in command lives for 30 milliseconds. It needs no garbage collection, and no teardown of
    modules that the system frees faster: together a tenth of its time. A plugin's command may run
    for days and start threads, so it starts and ends as any program does, unless it says `BRIEF`.
    """
    import gc
    import os

    global is_process
    is_process = True
    gc.disable()
    status = INTERRUPTED
    try:
        try:
            status = main()
        except KeyboardInterrupt:  # before or behind what `main` guards
            pass
        plugins = sys.modules.get("probe_core.cli.plugin_commands")
        if plugins is None or not plugins.may_go_on:
            _end(status)
    except KeyboardInterrupt:  # once more, on the way out: Python would end by the signal
        os._exit(INTERRUPTED)
    sys.exit(status)


def _end(status: int) -> NoReturn:
    """End the process without a teardown of its modules.

    What is buffered is written first: the exit status may become that of a closed pipe.
    """
    import os

    from probe_core.fastpath import run_exit_handlers

    try:
        if not run_exit_handlers():
            sys.exit(status)
    except KeyboardInterrupt:  # while the exit handlers ran
        pass
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            status = status or BROKEN_PIPE
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)
    os._exit(status)


def _run(arguments: list[str]) -> int:
    from probe_core.commands.context import CommandError

    name, arguments = _command(arguments)
    try:
        if name in COMMANDS:
            status = _run_builtin(name, arguments)
        else:
            from probe_core.cli.plugin_commands import run_installed

            status = run_installed(name, arguments)
        _flush()
        return status
    except SystemExit:  # argparse's, behind help and version: what they wrote may still be buffered
        _flush()
        raise
    except CommandError as error:
        from probe_core.commands.context import write_error

        program = error.program or ("probe" if name == DEFAULT else f"probe {name}")
        # A command may begin its sentence with its own name, which stands before it already.
        write_error(f"{program}: {str(error).removeprefix(f'{name}: ')}")
        return error.status


def _command(arguments: list[str]) -> tuple[str, list[str]]:
    """Split off the command: the first argument, unless it is an option.

    `probe help exec` and `probe -h exec` are `probe exec --help`, and `probe help plugins new` is
    `probe plugins new --help`.
    """
    if arguments and arguments[0] in ("help", "-h", "--help", "--help-all"):
        option = "--help-all" if arguments[0] == "--help-all" else "--help"
        name, remaining = _command(arguments[1:])
        kept = remaining if "--help-all" in remaining else remaining[: name in FAMILIES]
        return name, [*kept, option]
    if arguments and not arguments[0].startswith("-"):
        return arguments[0], arguments[1:]
    return DEFAULT, arguments


def _internal(error: Exception) -> str:
    """Return the sentence about a mistake in our own code: what, where, and the next step."""
    from probe_core.wording import error_text

    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
        place, trace = f"{file}, line {trace.tb_lineno}", trace.tb_next
    problem = f"probe: internal error: {error_text(error, 400)} ({place})"
    return f"{problem}; this is a bug: please report it with what {TRACEBACK}=1 prints"


def _run_builtin(name: str, arguments: list[str]) -> int:
    from probe_core.commands.context import Context

    # Not by importlib, whose import of warnings takes 0.4 ms.
    module = __import__(f"probe_core.cli.{COMMANDS[name][0]}", fromlist=["run"])
    if name == "completion" and (words := module.words_of(arguments)) is not None:
        return _answer(arguments[0], words)
    chosen = None
    if name in FAMILIES:
        chosen, arguments = _sub_command(name, module.SUB_COMMANDS, arguments)
    command = module.SUB_COMMANDS[chosen] if chosen is not None else None
    table = command.arguments if command is not None else module.ARGUMENTS
    run = command.run if command is not None else module.run
    args = _plain(table, arguments) or _parser(name, module, chosen).parse_args(arguments)
    status: int = run(args, Context(args))
    return status


def _sub_command(
    name: str, commands: Mapping[str, SubCommand], arguments: list[str]
) -> tuple[str | None, list[str]]:
    """Split off the sub-command, None where the first one is meant; raises `CommandError`."""
    from probe_core.commands.options import command_place

    place = command_place(arguments, commands)
    if place is None:
        return None, arguments
    typed = arguments[place]
    if typed not in commands:
        from probe_core.cli.parser import unknown_sub_command

        raise unknown_sub_command(name, typed, commands)
    return typed, [*arguments[:place], *arguments[place + 1 :]]


def _answer(shell: str, words: list[str]) -> int:
    """Tell a shell at Tab what can be typed next."""
    from probe_core.cli.candidates import answer
    from probe_core.commands.context import Context

    context = Context()
    for line in answer(shell, words, context.environ):
        context.out(line)
    return 0


def _plain(table: Iterable[Argument | Option], arguments: list[str]) -> argparse.Namespace | None:
    """Return the arguments where a command's table is enough to read them.

    argparse with gettext and locale takes 4 ms to import, a quarter of `probe --json`: a script
    that calls this in a loop needs none of it. Help, and every error, is argparse's.
    """
    from probe_core.commands.options import plain, with_color

    return plain(arguments, with_color(table))  # type: ignore[return-value]  # read as one is


def _parser(name: str, module: ModuleType, chosen: str | None) -> argparse.ArgumentParser:
    from probe_core.cli.parser import command_parser

    parser = command_parser(name, module)
    return parser if chosen is None else parser.of_command(chosen)


def _flush() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _silence_stdout() -> None:
    """Keep the interpreter's own flush at exit from complaining about the closed pipe."""
    import os

    try:
        null = os.open(os.devnull, os.O_WRONLY)
    except OSError:  # a container without /dev/null, or no descriptor for it
        return
    os.dup2(null, 1)
    os.close(null)
