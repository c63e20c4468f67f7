"""What a wrong word of a command line was probably meant to be: by its form, then by its sense."""

from __future__ import annotations

from probe_core.wording import closest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["command_hint", "option_hint"]

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
