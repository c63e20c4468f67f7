"""Slurm's short form of many host names: ``n[1-3,07],login`` is n1, n2, n3, n07 and login."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["expand"]

_MOST_NODES = 100_000


def expand(text: str) -> list[str]:
    """Return the names in their order; a part that is malformed stands for itself."""
    names: list[str] = []
    for part in _split(text.strip()):
        for name in _expanded(part) if part else ():
            if len(names) >= _MOST_NODES:
                return names
            names.append(name)
    return names


def _split(text: str) -> Iterator[str]:
    """Yield the parts between the commas that are not in brackets."""
    part, depth = "", 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            yield part
            part = ""
        else:
            part += char
    yield part


def _expanded(part: str) -> Iterator[str]:
    head, bracket, tail = part.partition("[")
    ranges, closing, end = tail.partition("]")
    if not bracket or not closing:
        yield part
        return
    for span in ranges.split(","):
        first, _, last = span.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and len(last) < 10):
            yield part
            return
        for number in range(int(first), min(int(last), int(first) + _MOST_NODES) + 1):
            # The zeros before a number are part of the name: n[08-10] is n08, n09, n10.
            yield from _expanded(f"{head}{number:0{len(first)}d}{end}")
