"""`probe completion SHELL`: a short script, which asks `probe` itself what can be typed next.

A script that holds the words, as shtab writes it, knows neither the commands and probers that were
installed since, nor devices and leases; and it would be a program in each of three shells. Asked
at each Tab, `probe` answers within 60 ms, with what its help, its manual and its parser have.
"""

from __future__ import annotations

from probe_core.commands.options import Argument

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


ARGUMENTS = (Argument("shell", "the shell to complete in", choices=SHELLS),)


def words_of(arguments: list[str]) -> list[str] | None:
    """Return the words that a script asks about, the program's name first; None for a user's call.

    Not read by argparse, to which a ``--`` among them would mean something.
    """
    if len(arguments) < 2 or arguments[0] not in SHELLS or arguments[1] != ASKED:
        return None
    return arguments[2:]


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the script."""
    context.out(SCRIPTS[args.shell])
    return 0


# The completion scripts: they ask `probe`, and offer what it answers.
#
# The last line of an answer says what it is: ``words``, ``nospace`` for words that go on, or that
# the shell itself knows better: ``files``, ``folders`` or ``programs``.

# Written for bash 3.2 too, which macOS has: it has neither `mapfile` nor `compopt`.
# bash puts a word into the line as it stands in COMPREPLY, unless it is to be a file's name, and
# `COMPREPLY=(…)` expands patterns: each is read as a line, and quoted. A comma needs no quote.
_BASH = r"""_probe() {
  local answer kind
  answer=$("$1" completion bash --complete "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" \
    2>/dev/null)
  kind=${answer##*$'\n'}
  case $kind in
    files) COMPREPLY=(); compopt -o default 2>/dev/null ;;
    folders) _probe_offer plain <<<"$(compgen -d -- "$2")"; compopt -o filenames 2>/dev/null ;;
    programs) _probe_offer quoted <<<"$(compgen -c -- "$2")" ;;
    *) _probe_offer quoted <<<"${answer%"$kind"}"; compopt +o default 2>/dev/null ;;
  esac
  if [[ $kind == nospace ]]; then compopt -o nospace 2>/dev/null; fi
}
_probe_offer() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    [[ -n $word ]] || continue
    if [[ $1 == quoted ]]; then
      printf -v word %q "$word"
      word=${word//\\,/,}
    fi
    COMPREPLY+=("$word")
  done
}
complete -o default -F _probe probe"""

# At the first prompt, for a later `compinit` forgets what was registered before it.
_ZSH = r"""_probe() {
  local -a answer values
  local kind
  answer=("${(@f)$("$words[1]" completion zsh --complete "${(@Q)words[1,CURRENT-1]}" \
    "${(Q)PREFIX}" 2>/dev/null)}")
  kind=$answer[-1]
  answer[-1]=()
  [[ $kind == f* && $PREFIX == --*=* ]] && compset -P '*='
  case $kind in
    files) _files ;;
    folders) _files -/ ;;
    programs) _path_commands ;;
    nospace) values=("${(@)answer%%$'\t'*}"); compadd -S '' -a values ;;
    words) values=("${(@)${(@)answer%%$'\t'*}//:/\\:}"); _probe_offer ;;
  esac
}
_probe_offer() {
  local -i at
  for (( at = 1; at <= $#answer; at++ )); do
    [[ $answer[at] == *$'\t'* ]] && values[at]+=":${answer[at]#*$'\t'}"
  done
  _describe -t values value values
}
_probe_register() {
  precmd_functions=("${(@)precmd_functions:#_probe_register}")
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
  compdef _probe probe
}
(( $+functions[compdef] )) && compdef _probe probe
precmd_functions+=(_probe_register)"""

_FISH = r"""function __probe_complete
    set -l current (commandline -ct)
    set -l program (commandline -opc)
    set -l answer ($program[1] completion fish --complete $program "$current" 2>/dev/null)
    set -l option (string match -r -- '^--[^=]*=' "$current"; or echo '')
    set -l value (string replace -r -- '^--[^=]*=' '' "$current")
    switch "$answer[-1]"
        case files
            printf '%s\n' $option(__fish_complete_path "$value")
        case folders
            printf '%s\n' $option(__fish_complete_directories "$value")
        case programs
            __fish_complete_command
        case words nospace
            test (count $answer) -gt 1; and printf '%s\n' $answer[1..-2]
    end
end
complete -c probe -f -a '(__probe_complete)'"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""The script of each shell."""
