"""Packs nested values into one readable line: a table that people can diff and code reads fast.

Three levels: tab between columns, `|` between the items of a list, `;` between the parts of an
item. A fourth, for the few lists inside an item, is `,` (their members never hold one).
"""

_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("|", "\\p"), (";", "\\s"))
_PLAIN = {"\\": "\\", "t": "\t", "n": "\n", "p": "|", "s": ";"}


def escape(text: str) -> str:
    """The text with the separators written as two characters."""
    for plain, written in _ESCAPES:
        text = text.replace(plain, written)
    return text


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    if "\\" not in text:
        return text
    parts = []
    at = 0
    while (found := text.find("\\", at)) >= 0:
        parts.append(text[at:found])
        parts.append(_PLAIN.get(text[found + 1 : found + 2], ""))
        at = found + 2
    parts.append(text[at:])
    return "".join(parts)


def number(text: str) -> float | None:
    """A number as written by `scalar`; the empty text is an unknown."""
    return float(text) if text else None


def whole(text: str) -> int | None:
    """A whole number as written by `scalar`; the empty text is an unknown."""
    return int(text) if text else None


def scalar(value: object) -> str:
    """One value as escaped text; None is the empty text, whole floats lose their `.0`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return escape(str(value))


def items(text: str) -> list[str]:
    """The items of a list column, unescaped."""
    return [unescape(item) for item in text.split("|")] if text else []


def parts(text: str) -> list[list[str]]:
    """The items of a list column, each split into its unescaped parts."""
    if not text:
        return []
    return [[unescape(part) for part in item.split(";")] for item in text.split("|")]
