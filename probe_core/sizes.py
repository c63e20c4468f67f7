"""Amounts of memory as people write and read them: 20GiB, 512MiB, 80e9. One rule for each."""

from __future__ import annotations

__all__ = ["format_size", "gib", "parse_size"]

_LARGEST = 1 << 62
"""Bytes: half of what a signed 64-bit number holds, so that sums of two still fit."""

# 20GiB and 20G count in 1024, as `docker run --memory` and `free -h` do; 20GB in 1000 (SI).
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}


def parse_size(text: str | int) -> int:
    """Return bytes: ``20GiB`` and ``20G`` count in 1024, ``20GB`` in 1000, a bare number in bytes.

    Raises `ValueError` for anything else, and for less than a byte.
    """
    if isinstance(text, int):
        number, unit = float(text), ""
    else:
        plain = text.strip().lower()
        end = len(plain.rstrip("bikmgtp"))
        number, unit = _number(plain[:end]), plain[end:]
    if unit not in _UNITS or not 1 <= number * _UNITS[unit] < _LARGEST:
        raise ValueError(f"{text!r} is no amount of memory; write it as 20GiB, 512MiB or 80e9")
    return int(number * _UNITS[unit])


def _number(digits: str) -> float:
    try:
        return float(digits)
    except ValueError:
        return 0.0  # no amount of memory either


def format_size(count: float, *, decimals: int | None = None) -> str:
    """Return bytes in the largest binary unit that leaves at least one: ``79.6 GiB``.

    Cut to a tenth, and without ``.0``: what is said to be free can be asked for. With `decimals`
    rounded and padded to as many digits, for columns of figures: ``80.0 GiB``.
    """
    step, unit = 1, "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if count < step << 10:
            break
        step, unit = step << 10, larger
    if decimals is None or unit == "B":
        return f"{int(count) * 10 // step / 10:g} {unit}"
    return f"{count / step:.{decimals}f} {unit}"


def gib(count: float) -> str:
    """Return bytes for a sentence, rounded to a tenth: ``79.6 GiB``, ``80 GiB``, ``0 B``."""
    whole = count % (1 << 30) == 0 and count < 1 << 40
    return format_size(count, decimals=0 if whole else 1)
