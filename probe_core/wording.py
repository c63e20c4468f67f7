"""Sentences for people: safe text, joined lists. Written once, used by all errors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


TEXT_LIMIT = 256
"""Characters of foreign text shown at most in a name; reasons may be four times as long."""


INVALID = "\x00invalid"
"""Key of the object that stands for a value which JSON cannot hold: ``{INVALID: reason}``.

The encoder in a prober's process writes it, validation in the host rejects the field that has it. A
NUL cannot begin a key that an author wrote: no hardware field is named so. Here and not in a module
of its own, because each prober's process imports this one anyway: a file more costs 60 µs.
"""


def clean_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return foreign text fit for one line of a terminal or a document.

    Control characters (ANSI escapes among them), bidirectional overrides, zero-width characters
    and lone surrogates become the replacement character; long text is cut with an ellipsis.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    elif text.isascii() and text.isprintable():
        return text
    return "".join(map(_safe, text))


def _safe(char: str) -> str:
    if char == "\t" or char == "\n":
        return " "
    return char if char.isprintable() else "\ufffd"


def error_text(error: BaseException, limit: int = 4 * TEXT_LIMIT) -> str:
    """Return ``Type: message`` of an exception, whatever its own `str` does."""
    name = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "(its message cannot be printed)"
    return clean_text(f"{name}: {message}" if message else name, limit)


def joined(items: Iterable[str], last: str = "or") -> str:
    """Return ``a, b or c``."""
    listed = list(items)
    return f" {last} ".join(filter(None, [", ".join(listed[:-1]), *listed[-1:]]))


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 device`` or ``2 devices``; `plural` is that of a noun that needs more than s."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
