"""The command `probe`: data to standard output, words to standard error, honest exit statuses.

Only the command that was asked for is imported: the start-up cost of a command line is paid by
every script that calls it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import ModuleType
    from typing import NoReturn

__all__ = ["COMMANDS", "entry", "main"]

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module, help); `report` is what runs without a command
    "report": ("report", "what this node is (the default)"),
    "explain": ("explain", "every decision, outcome and timing, and who said what"),
    "visible": ("visible", "which devices each runtime would see, and why not the others"),
    "exec": ("exec", "run a command on devices that are free"),
    "leases": ("leases", "who holds which device since when"),
    "layout": ("layout", "environments for several instances on this node"),
    "plugins": ("plugins", "installed probers: list, check, why-not NAME"),
    "chip": ("chip", "look chips up by name or id"),
    "topology": ("topology", "many nodes' reports as one view"),
    "partition": ("partition", "share a model's layers among nodes"),
    "record": ("record", "write this machine as a file that --machine takes"),
    "completion": ("completion", "shell completion for bash, zsh or fish"),
}
USAGE, INTERRUPTED, BROKEN_PIPE, UNWRITTEN = 2, 130, 141, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0: an answer was given. 1: `--strict`, and the node is degraded. 2: usage. 130: Ctrl-C.
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
        from probe_core.cli.context import write_error

        write_error(f"probe: the answer could not be written: {error.strerror or error}")
        _silence_stdout()
        return UNWRITTEN


def entry() -> NoReturn:
    """Run the command line as a process of its own: what the script `probe` calls.

    A process that lives for 30 milliseconds needs no garbage collection, and no teardown of
    modules that the system frees faster: together a tenth of its time.
    """
    import atexit
    import gc
    import os

    gc.disable()
    status = main()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            status = status or BROKEN_PIPE
    os._exit(status)


def _run(arguments: list[str]) -> int:
    from probe_core.cli.context import CommandError, Context

    name, rest = _command(arguments)
    try:
        module = _module(name)
        parser = _parser(name, module)
        args = parser.parse_args(rest)
        status: int = module.run(args, Context(args))
        _flush()
        return status
    except CommandError as error:
        from probe_core.cli.context import write_error

        write_error(f"probe: {error}")
        return error.status


def _command(arguments: list[str]) -> tuple[str, list[str]]:
    """Split off the command: the first argument, unless it is an option."""
    if arguments and not arguments[0].startswith("-"):
        return arguments[0], arguments[1:]
    return "report", arguments


def _module(name: str) -> ModuleType:
    from importlib import import_module

    from probe_core.cli.context import CommandError

    if name not in COMMANDS:
        from probe_core.wording import did_you_mean

        hint = did_you_mean(name, COMMANDS)
        raise CommandError(f"{name!r} is no command: {hint} (`probe --help` lists them)", USAGE)
    return import_module(f"probe_core.cli.{COMMANDS[name][0]}")


def _parser(name: str, module: ModuleType) -> argparse.ArgumentParser:
    from probe_core.cli.options import Parser

    program = "probe" if name == "report" else f"probe {name}"
    parser = Parser(prog=program, description=module.HELP, allow_abbrev=False)
    module.add_arguments(parser)
    return parser


def _flush() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _silence_stdout() -> None:
    """Keep the interpreter's own flush at exit from complaining about the closed pipe."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
