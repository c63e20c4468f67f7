"""The parts of which a fix is declared: words, commands, and what a person does by hand.

Joined, the parts are the line for people; what they declare is the action for programs
(`readiness.actions`). A plain string is words alone: nothing in it is read by a program, a command
in it only shows something. Names in braces are filled in for the machine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Fix = str | tuple[str, ...]
    """The parts of a fix; one alone needs no tuple."""


class Blank(str):
    """What is not known of the machine, by the words that stand for it."""


class _Used(dict[str, str]):
    """The names that a text uses."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, key: str) -> str:
        value = self[key] = self._names[key]
        return value


def fill(text: str, names: Mapping[str, str]) -> str:
    """Return a text with its names filled in; a `Blank` where one of them is not known."""
    used = _Used(names)
    result = text.format_map(used)
    return Blank(result) if any(isinstance(value, Blank) for value in used.values()) else result


class Part(str):
    """Words of a fix that do something.

    `is_command` is what a shell runs, which is printed in backticks: what it does is known from
    its own words. Of all else it is declared here: `by_hand` is done by a person, `changes` and
    `removes` are "KIND NAME", `where` is the place of what follows, if not here, and `is_other`
    begins another way to the same end.
    """

    def __new__(cls, text: str, **declared: object) -> Part:
        return super().__new__(cls, text)

    def __init__(
        self,
        text: str,
        *,
        is_command: bool = False,
        by_hand: bool = False,
        changes: Iterable[str] = (),
        removes: Iterable[str] = (),
        where: str = "",
        reboots: bool = False,
        is_other: bool = False,
    ) -> None:
        self.is_command = is_command
        self.by_hand = by_hand
        self.changes = tuple(changes)
        self.removes = tuple(removes)
        self.where = where
        self.reboots = reboots
        self.is_other = is_other

    @property
    def command(self) -> str:
        """The line for a shell; "" of what is no command."""
        return self[1:-1] if self.is_command else ""

    def filled(self, names: Mapping[str, str]) -> Part:
        """Return it with its names filled in; a person completes a command with a blank."""
        text = fill(self, names)
        return Part(
            text,
            is_command=self.is_command,
            by_hand=self.by_hand or (self.is_command and isinstance(text, Blank)),
            changes=_filled(self.changes, names),
            removes=_filled(self.removes, names),
            where=self.where,
            reboots=self.reboots,
            is_other=self.is_other,
        )


def _filled(texts: Iterable[str], names: Mapping[str, str]) -> Iterator[str]:
    for text in texts:
        name = str(fill(text, names))
        kind, *words = name.split()
        # One name may stand for several parameters, of which none has a blank.
        yield from (f"{kind} {word}" for word in words) if kind == "parameter" else (name,)


def run(command: str) -> Part:
    """Return a command to copy."""
    return Part(f"`{command}`", is_command=True)


def by_hand(text: str, *, changes: Iterable[str] = (), removes: Iterable[str] = ()) -> Part:
    """Return what a person does: the way that it is in has no command that does it alone."""
    return Part(text, by_hand=True, changes=changes, removes=removes)


def at(where: str, text: str) -> Part:
    """Return words that say where it is done: one of `readiness.actions.PLACES`."""
    return Part(text, where=where)


def otherwise(text: str) -> Part:
    """Return words that begin another way to the same end."""
    return Part(text, is_other=True)


def reboot(text: str) -> Part:
    """Return words that say that the machine is started anew."""
    return Part(text, reboots=True)


REBOOT = reboot(", then reboot")

CONFLICTING = "packages in conflict"
"""What a package manager removes where it is allowed to: it finds their names, and asks."""


class Command(str):
    """A part that each distribution has its own command for: a topic of `COMMANDS`.

    `general` stands for it where the distribution's own is not known; without one the fix is not.
    """

    general: Part | None

    def __new__(cls, topic: str, general: Part | None = None) -> Command:
        self = super().__new__(cls, topic)
        self.general = general
        return self


class Made(str):
    """A part that is made for the machine: a name of `readiness.fixes.PARTS`."""

    def __new__(cls, name: str) -> Made:
        return super().__new__(cls, f"{{{name}}}")

    @property
    def name(self) -> str:
        """The name without its braces."""
        return self[1:-1]


def filled(parts: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return parts with their names filled in."""
    return tuple(
        part.filled(names) if isinstance(part, Part) else fill(part, names) for part in parts
    )


def parts_of(fix: Fix) -> tuple[str, ...]:
    """Return the parts of a fix."""
    return (fix,) if isinstance(fix, str) else fix
