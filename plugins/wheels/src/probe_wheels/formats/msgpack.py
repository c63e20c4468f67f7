"""A reader of the little of MessagePack that kernel packs use: maps, lists, texts, numbers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"

__all__ = ["unpack"]

MAX_DEPTH = 16
MAX_ITEMS = 200_000


def unpack(raw: bytes) -> Value:
    """Return the first value; raises `ValueError` for what is cut, too deep or unknown."""
    return _Reader(raw).value(0)


class _Reader:
    __slots__ = ("at", "items", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0
        self.items = 0

    def take(self, count: int) -> bytes:
        piece = self.raw[self.at : self.at + count]
        if len(piece) < count:
            raise ValueError("it is cut")
        self.at += count
        return piece

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def value(self, depth: int) -> Value:
        self.items += 1
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            raise ValueError("it is too deep or too long")
        code = self.take(1)[0]
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 256
        if code < 0xC0:
            return self.short(code, depth)
        return self.long(code, depth)

    def short(self, code: int, depth: int) -> Value:
        if code < 0x90:
            return self.table(code & 15, depth)
        if code < 0xA0:
            return self.array(code & 15, depth)
        return self.take(code & 31).decode("utf-8", "replace")

    def long(self, code: int, depth: int) -> Value:
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self.number(*_NUMBERS[code])
        if code in _SIZES:
            kind, size = _SIZES[code]
            count = self.number(size)
            if kind == "map":
                return self.table(count, depth)
            if kind == "array":
                return self.array(count, depth)
            piece = self.take(count)
            return piece.decode("utf-8", "replace") if kind == "text" else piece
        if code in (0xCA, 0xCB):  # a float: nothing here needs its value
            self.take(4 if code == 0xCA else 8)
            return None
        raise ValueError(f"type {code:#x} is not known")

    def table(self, count: int, depth: int) -> Value:
        return {str(self.value(depth + 1)): self.value(depth + 1) for _ in range(count)}

    def array(self, count: int, depth: int) -> Value:
        return [self.value(depth + 1) for _ in range(count)]


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    **{0xCC + step: (1 << step, False) for step in range(4)},
    **{0xD0 + step: (1 << step, True) for step in range(4)},
}
_SIZES = {
    **{0xC4 + step: ("bytes", 1 << step) for step in range(3)},
    **{0xD9 + step: ("text", 1 << step) for step in range(3)},
    **{0xDC + step: ("array", 2 << step) for step in range(2)},
    **{0xDE + step: ("map", 2 << step) for step in range(2)},
}
