"""Read one figure of a foreign report: what is no sane number is unknown, whatever it is."""

from __future__ import annotations

from typing import Any

__all__ = ["amount", "rate", "text"]

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
