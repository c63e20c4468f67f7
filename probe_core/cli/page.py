"""A command's page as data: help, manual, completion and reference are made from this one table."""

from __future__ import annotations

from probe_core.commands.options import PROBING
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from probe_core.cli.parser import Parser

__all__ = [
    "Section",
    "long_name",
    "meaning",
    "metavar_of",
    "sections",
    "usage_lines",
    "written",
]

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
