"""`probe completion SHELL`: completion scripts, made from the same tables as the help."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.cli.context import Context

NAME = "completion"
HELP = 'Print shell completion: `eval "$(probe completion bash)"`.'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `probe completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the script."""
    words = _words()
    context.out(_SCRIPTS[args.shell](words))
    return 0


def _words() -> dict[str, list[str]]:
    """Return each command's options."""
    from importlib import import_module

    from probe_core.cli import COMMANDS
    from probe_core.cli.options import Parser

    words = {}
    for name, (module_name, _) in COMMANDS.items():
        parser = Parser(allow_abbrev=False)
        import_module(f"probe_core.cli.{module_name}").add_arguments(parser)
        options = [o for action in parser._actions for o in action.option_strings]
        words[name] = [option for option in options if option.startswith("--")]
    return words


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f"    {name}) words={' '.join(w)!r} ;;" for name, w in words.items())
    top = " ".join([*words, *words["report"]])
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


def _zsh(words: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(words)


def _fish(words: dict[str, list[str]]) -> str:
    from probe_core.cli import COMMANDS

    lines = []
    for name, options in words.items():
        text = COMMANDS[name][1].replace("'", "\\'")
        lines.append(f"complete -c probe -n __fish_use_subcommand -a {name} -d '{text}'")
        used = (
            f"__fish_seen_subcommand_from {name}" if name != "report" else "__fish_use_subcommand"
        )
        lines += [f"complete -c probe -n '{used}' -l {o.removeprefix('--')}" for o in options]
    return "\n".join(lines)


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
