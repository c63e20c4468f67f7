"""Text for terminals: columns that fit, wrapped lines, colours, and numbers people can read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

# SGR parameters of ECMA-48, which every terminal emulator and the Windows console know.
_CODES = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "green": "32", "cyan": "36"}
GAP = "  "
"""What stands between the columns of every table."""

_UNKNOWN = "–"

# Enough of a device's name to tell two apart ("NVIDIA GeFo…"): a judgement.
_LEAST_FLEXIBLE = 12

# Columns that a word is broken to at least, however little room an indentation leaves.
_LEAST_FOLDED = 8
_SEPARATORS = "/,:;=_-"

# What stands for a character that the terminal's encoding lacks.
_ASCII = {
    "–": "-",
    "—": "-",
    "└": "+-",
    "×": "x",
    "·": "|",
    "≥": ">=",
    "…": "...",
    "✓": "+",
    "✕": "x",
    "→": "->",
}


def paint(text: str, style: str | None, colour: bool) -> str:
    """Return `text` in a style, or as it is where colours are off.

    A style is ``bold``, ``dim``, ``red``, ``yellow``, ``green``, ``cyan``, or None for none.
    """
    return f"\033[{_CODES[style]}m{text}\033[0m" if colour and style else text


def encodable(text: str, encoding: str) -> str:
    """Return `text` in characters that `encoding` has: ``-`` for ``–``, ``?`` for a foreign letter.

    On a terminal in ASCII a table is written so before its columns are measured.
    """
    if text.isascii():
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_replaced(char, encoding) for char in text)
    return text


def _replaced(char: str, encoding: str) -> str:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return _ASCII.get(char, "?")
    return char


def width_of(text: str) -> int:
    """Return the columns a text takes on a terminal; wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns; an ellipsis, where it fits, stands for the rest."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text + "…" if width > 0 else ""


def columns(
    rows: Sequence[Sequence[str]], width: int, *, right: Sequence[int] = (), flexible: int = 0
) -> list[str]:
    """Return the rows as aligned lines of at most `width`.

    Columns named in `right` are set flush right. What is too wide is first taken from the column
    `flexible`, down to twelve characters, then columns are left out from the right.
    """
    count = max(map(len, rows), default=0)
    full = [[*row, *[""] * (count - len(row))] for row in rows]
    widths = widths_of(full)
    if widths:
        over = table_width(widths) - width
        widths[flexible] -= max(0, min(over, widths[flexible] - _LEAST_FLEXIBLE))
    while len(widths) > 2 and table_width(widths) > width:
        widths.pop()
    shown = [list(map(cut, row[: len(widths)], widths)) for row in full]
    return [aligned(row, widths, right) for row in shown]


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of each column's widest cell; the rows are equally long."""
    return [max(map(width_of, column)) for column in zip(*rows, strict=True)]


def table_width(widths: Sequence[int]) -> int:
    """Return the columns of a terminal that a table of these widths takes."""
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


def aligned(cells: Sequence[str], widths: Sequence[int], right: Collection[int] = ()) -> str:
    """Return a row's cells as one line: the one place where a table's columns are set.

    `right` are the places of the cells that are set flush right.
    """
    padded = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - width_of(cell))
        padded.append(space + cell if place in right else cell + space)
    return GAP.join(padded).rstrip()


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return `text` broken at spaces into lines of at most `width`, each with `indent`."""
    return [indent + line for line in _packed(text.split(), width - width_of(indent), " ")]


def folded(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Return `text` broken into lines of at most `width`, also inside words that are longer.

    The first line begins with `indent`, the others with `hanging` (default: `indent`). Paths and
    ids break behind one of their own separators where they have any.
    """
    hanging = indent if hanging is None else hanging
    room = max(_LEAST_FOLDED, width - max(width_of(indent), width_of(hanging)))
    words = [piece for word in text.split() for piece in _pieces(word, room)]
    lines = _packed(words, room, " ")
    return [(hanging if at else indent) + line for at, line in enumerate(lines)]


def listed(
    parts: Iterable[str],
    width: int,
    indent: str = "",
    hanging: str | None = None,
    *,
    separator: str = " · ",
) -> list[str]:
    """Return the parts joined on lines of at most `width`, broken between parts where possible.

    The first line begins with `indent`, the others with `hanging` (default: `indent`).
    """
    hanging = indent if hanging is None else hanging
    room = max(_LEAST_FOLDED, width - max(width_of(indent), width_of(hanging)))
    lines: list[str] = []
    for line in _packed([part for part in parts if part], room, separator):
        whole = [line] if width_of(line) <= room else folded(line, room)
        lines += [(hanging if lines or at else indent) + piece for at, piece in enumerate(whole)]
    return lines


def _packed(parts: Iterable[str], room: int, separator: str) -> list[str]:
    """Return the parts joined, as many on a line as `room` columns hold, and at least one."""
    lines: list[str] = []
    used = 0
    for part in parts:
        taken = width_of(part)
        if lines and used + len(separator) + taken <= room:
            lines[-1] += separator + part
            used += len(separator) + taken
        else:
            lines.append(part)
            used = taken
    return lines


def _pieces(word: str, room: int) -> list[str]:
    """Return a word in pieces of at most `room` columns."""
    pieces = []
    while width_of(word) > room:
        end = _end_of_piece(word, room)
        pieces.append(word[:end])
        word = word[end:]
    return [*pieces, word]


def _end_of_piece(word: str, room: int) -> int:
    end = used = 0
    for char in word:
        used += width_of(char)
        if used > room:
            break
        end += 1
    # Not so early that a path of many short names fills the screen: a judgement.
    breaks = [at for at in range(end // 2, end) if word[at] in _SEPARATORS]
    return breaks[-1] + 1 if breaks else max(1, end)


def size(count: float | None) -> str:
    """Return bytes as ``23.9 GiB``; ``–`` when unknown."""
    if count is None:
        return _UNKNOWN
    from probe_core.sizes import format_size

    return format_size(count, decimals=2 if count >= 1 << 40 else 1)


def rate(tera: float | None) -> str:
    """Return TFLOPS or TOPS with three digits; ``–`` when unknown."""
    if tera is None:
        return _UNKNOWN
    # Compared with what rounding makes of it: 9.996 is written 10.0, not 10.00.
    return f"{tera:.0f}" if tera >= 99.95 else f"{tera:.1f}" if tera >= 9.995 else f"{tera:.2f}"


def bandwidth(count: float | None) -> str:
    """Return bytes per second as ``1008 GB/s``; ``–`` when unknown."""
    if count is None:
        return _UNKNOWN
    giga = count / 1e9
    return f"{giga:.0f} GB/s" if giga >= 10 else f"{giga:.1f} GB/s"
