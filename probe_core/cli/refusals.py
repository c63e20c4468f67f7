"""Sentences about a request that cannot be met: an unknown runtime, a list that cannot be read."""

from __future__ import annotations

from probe_core.cli import COMMANDS
from probe_core.commands.context import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.selection import SelectionError

USAGE, UNMET = 2, 3
"""Exit statuses: a wrong command line; no such devices can be had."""


def known_runtime(name: str | None) -> str | None:
    """Return the runtime of `--for` as reports name it; raises `CommandError` for an unknown one.

    An unknown one shows no device, so that a typing error looked like a computer without a GPU.
    """
    from probe_core.model.runtimes import RUNTIMES, canonical

    if name is None:
        return None
    runtime = canonical(name)
    if runtime not in RUNTIMES:
        from probe_core.likeness import suggestion
        from probe_core.wording import clean_text, joined

        hint = suggestion(name, RUNTIMES) or f" It can be {joined(RUNTIMES)}."
        raise CommandError(f"no runtime {clean_text(name, 80)!r}.{hint}")
    return runtime


MAX_DIGITS = 4
"""Of each number of a layout: no computer has ten thousand devices, and Python refuses to read
numbers of thousands of digits."""


def check_layout(layout: str) -> None:
    """Raise `CommandError` for what is no ``4x2``."""
    from probe_core.wording import clean_text

    groups, _, size = layout.lower().partition("x")
    for number in (groups, size):
        if not number.isdecimal() or len(number) > MAX_DIGITS or not int(number):
            raise CommandError(f"{clean_text(layout, 80)!r} is no layout; write it as 4x2")


def refusal(error: SelectionError) -> CommandError:
    """Return the error of a request: what was wrong with it, or why it cannot be met here."""
    if error.code == "syntax":
        remedy = f" (what would work: {error.fix})" if error.fix else ""
        return CommandError(error.unmet + remedy, USAGE)
    if error.code == "too-few" and not error.visible and not error.hidden:
        cause = "doctor" if "doctor" in COMMANDS else "explain"
        absent = f"{error.asked} asked for, 0 found on this computer"
        return CommandError(f"{absent}\nRun `probe {cause}` to see why none was found.", UNMET)
    return CommandError(str(error), UNMET)


def refuse_without_locks() -> None:
    """Raise `CommandError` on Windows, before what needs its missing modules is imported."""
    from probe_core.leasing import LeaseError, require_locks

    try:
        require_locks()
    except LeaseError as error:
        raise CommandError(str(error), USAGE) from None
