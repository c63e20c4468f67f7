"""Read one figure of a foreign report: what is no sane number is unknown, whatever it is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["amount", "quantity", "rate", "text"]

# An exbibyte, sixteen thousand times the largest memory that a report may have (64 TiB).
_MOST_BYTES = 1 << 60


def amount(value: Any) -> int | None:
    """Return bytes, or None for what cannot be a memory's size."""
    if type(value) not in (int, float) or not 0 <= value <= _MOST_BYTES:
        return None
    return int(value)


def rate(value: Any) -> float | None:
    """Return a positive, finite number, or None."""
    if type(value) not in (int, float) or not 0 < value < 1e18:
        return None
    return float(value)


def text(value: Any) -> str | None:
    """Return non-empty text, or None."""
    return value if isinstance(value, str) and value else None


_SUFFIXES = {"m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SUFFIXES |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", 1)}


def quantity(text: str) -> float | None:
    """Return the number of a Kubernetes quantity: ``3920m``, ``64``, ``527956Ki``; else None."""
    number = text.rstrip("KMGTPikm")
    scale = _SUFFIXES.get(text[len(number) :])
    if scale is None or not number.replace(".", "", 1).isdecimal() or len(number) > 30:
        return None
    return float(number) * scale
