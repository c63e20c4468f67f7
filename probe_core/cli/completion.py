"""`probe completion SHELL`: a short script, which asks `probe` itself what can be typed next.

A script that holds the words, as shtab writes it, knows neither the commands and probers that were
installed since, nor devices and leases; and it would be a program in each of three shells. Asked
at each Tab, `probe` answers within 60 ms, with what its help, its manual and its parser have.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.commands import Context

HELP = "Print the completion script of a shell; it offers commands, options and values."
EXAMPLES = (
    ('eval "$(probe completion bash)"', "in ~/.bashrc"),
    ('eval "$(probe completion zsh)"', "in ~/.zshrc, before or after compinit"),
    ("probe completion fish | source", "in ~/.config/fish/config.fish"),
)


SHELLS = ("bash", "zsh", "fish")

ASKED = "--complete"
"""What stands between the shell and the words of the line that its script asks about."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")


def words_of(arguments: list[str]) -> list[str] | None:
    """Return the words that a script asks about, the program's name first; None for a user's call.

    Not read by argparse, to which a ``--`` among them would mean something.
    """
    if len(arguments) < 2 or arguments[0] not in SHELLS or arguments[1] != ASKED:
        return None
    return arguments[2:]


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the script."""
    from probe_core.cli.completion_scripts import SCRIPTS

    context.out(SCRIPTS[args.shell])
    return 0
