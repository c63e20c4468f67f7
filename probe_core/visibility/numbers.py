"""Reads numbers as the C library does: which digits count decides which device a runtime shows."""

from __future__ import annotations

LONG_MAX = (1 << 63) - 1
ULONG_MAX = (1 << 64) - 1
_SPACE = " \t\n\v\f\r"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ALL_DIGITS = 64
"""Significant digits in any base that may still fit a long: 64 of base 2."""


def strtol(text: str, base: int = 10) -> tuple[int | None, str]:
    """Return what ``strtol(text, &end, base)`` reads, and the text at `end`.

    The value is None when no digit was read (C returns 0 and leaves `end` at the start). Base 0
    knows ``0x`` and the octal ``0``. A number too long for 64 bits is cut to the limit, as in C.
    """
    negative, size, tail = _read(text, base)
    if size is None:
        return None, text
    return (max(-size, -LONG_MAX - 1) if negative else min(size, LONG_MAX)), tail


def strtoul(text: str, base: int = 10) -> tuple[int | None, str]:
    """Return what ``strtoul(text, &end, base)`` reads, and the text at `end`.

    As `strtol`, but a minus is taken within 64 bits: "-1" is the greatest number. So is one that
    is too long, with a minus or without.
    """
    negative, size, tail = _read(text, base)
    if size is None:
        return None, text
    return (unsigned(-size) if negative and size <= ULONG_MAX else min(size, ULONG_MAX)), tail


def _read(text: str, base: int) -> tuple[bool, int | None, str]:
    """Return whether a number is negative, its size (None without a digit), and what follows."""
    tail = text.lstrip(_SPACE)
    negative = tail[:1] == "-"
    if tail[:1] in ("+", "-"):
        tail = tail[1:]
    base, tail = _base(tail, base)
    digits = _DIGITS[:base]
    length = 0
    while length < len(tail) and tail[length].lower() in digits and tail[length].isascii():
        length += 1
    return negative, _clamped(tail[:length], base) if length else None, tail[length:]


def _clamped(digits: str, base: int) -> int:
    # Python refuses to convert thousands of digits (CVE-2020-10735, 3.11: more than 4,300); C
    # stops at the limit of its type long before.
    significant = digits.lstrip("0") or "0"
    return ULONG_MAX + 1 if len(significant) > _ALL_DIGITS else int(significant, base)


def _base(tail: str, base: int) -> tuple[int, str]:
    if base not in (0, 16):
        return base, tail
    if tail[:2].lower() == "0x" and tail[2:3].lower() in _DIGITS[:16] and tail[2:3]:
        return 16, tail[2:]
    if base:
        return base, tail
    return (8 if tail[:1] == "0" else 10), tail


def to_int32(value: int) -> int:
    """Return what is left of a long that C stores in a 32-bit int."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def unsigned(value: int, bits: int = 64) -> int:
    """Return a long as an unsigned C type of `bits` holds it: -1 becomes the largest number."""
    return value % (1 << bits)


def too_long(text: str) -> bool:
    """Return whether the decimal digits at the start of `text` do not fit in 64 bits unsigned."""
    digits = text.lstrip("+-").lstrip("0")
    length = next((at for at, char in enumerate(digits) if char not in "0123456789"), len(digits))
    return length > 20 or (length == 20 and int(digits[:20]) >= 1 << 64)
