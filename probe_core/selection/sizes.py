"""Reads and writes amounts of memory as people do: 20GiB, 512MiB, 80e9."""

from __future__ import annotations

__all__ = ["format_size", "parse_size"]

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}


def parse_size(text: str | int) -> int:
    """Return bytes: ``20GiB`` and ``20G`` count in 1024, ``20GB`` in 1000, a bare number in bytes.

    Raises `ValueError` for anything else, and for what is not positive.
    """
    if isinstance(text, int):
        number, unit = float(text), ""
    else:
        plain = text.strip().lower().replace(" ", "")
        cut = len(plain.rstrip("bikmgtp"))
        number, unit = _number(plain[:cut], text), plain[cut:]
    if unit not in _UNITS or not 0 < number * _UNITS[unit] < 1 << 62:
        raise ValueError(f"{text!r} is no amount of memory; write it as 20GiB, 512MiB or 80e9")
    return int(number * _UNITS[unit])


def _number(digits: str, text: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise ValueError(
            f"{text!r} is no amount of memory; write it as 20GiB, 512MiB or 80e9"
        ) from None


def format_size(count: int) -> str:
    """Return bytes in the largest binary unit that leaves at least one: ``79.6 GiB``.

    Cut, not rounded: what is said to be free can be asked for.
    """
    value, unit = count * 10, "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 10240:
            break
        value, unit = value // 1024, larger
    return f"{value / 10:g} {unit}"
