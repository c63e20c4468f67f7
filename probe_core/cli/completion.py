"""`probe completion SHELL`: completion scripts, made from the same tables as the help."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from probe_core.commands import Context

HELP = 'Print shell completion: `eval "$(probe completion bash)"`.'


class _Entry:
    """A command as a script offers it: its summary, and its options as far as they are known."""

    __slots__ = ("options", "summary")

    def __init__(self, summary: str, options: list[str]) -> None:
        self.summary = summary
        self.options = options


EXAMPLES = (
    ('eval "$(probe completion bash)"', "in ~/.bashrc"),
    ('eval "$(probe completion zsh)"', "in ~/.zshrc, before or after compinit"),
    ("probe completion fish | source", "in ~/.config/fish/config.fish"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the script."""
    context.out(_SCRIPTS[args.shell](_entries()))
    return 0


def _entries() -> dict[str, _Entry]:
    """Return every command; those of plugins without options, for nothing of them is imported."""
    from importlib import import_module

    from probe_core.cli import COMMANDS
    from probe_core.cli.installed import installed_commands
    from probe_core.cli.parser import Parser

    entries = {}
    for name, (module, _, summary) in COMMANDS.items():
        parser = Parser(allow_abbrev=False)
        import_module(f"probe_core.cli.{module}").add_arguments(parser)
        # argparse has no public list of its options.
        options = [option for action in parser._actions for option in action.option_strings]
        long_options = [option for option in options if option.startswith("--")]
        entries[name] = _Entry(summary, long_options)
    for command in installed_commands(os.environ)[0].values():
        entries[command.name] = _Entry(command.summary, [])
    return entries


def _bash(entries: Mapping[str, _Entry]) -> str:
    cases = "\n".join(
        f"    {name}) words={' '.join(entry.options)!r} ;;" for name, entry in entries.items()
    )
    top = " ".join([*entries, *entries["report"].options])
    return f"""_probe() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words={top!r} ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words={top!r}
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [ -n "${{COMPREPLY[*]}}" ] || COMPREPLY=($(compgen -f -- "$cur"))
}}
complete -F _probe probe"""


def _zsh(entries: Mapping[str, _Entry]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(entries)


def _fish(entries: Mapping[str, _Entry]) -> str:
    lines = []
    for command, entry in entries.items():
        summary = _quoted(entry.summary)
        lines.append(f"complete -c probe -n __fish_use_subcommand -a {command} -d {summary}")
        used = f"__fish_seen_subcommand_from {command}"
        used = "__fish_use_subcommand" if command == "report" else used
        names = [option.removeprefix("--") for option in entry.options]
        lines += [f"complete -c probe -n '{used}' -l {name}" for name in names]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return text as one word of fish. A plugin wrote it, and a shell evaluates the script."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
