"""Figures of links as people read them."""

from __future__ import annotations

__all__ = ["bits", "milliseconds"]


def bits(rate: float) -> str:
    """Return bytes per second as people buy them: 9.41 Gbit/s."""
    value = rate * 8
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if value >= scale:
            # 999.6 would be 1e+03 with three digits.
            digits = ".3g" if value < 999.5 * scale else ".0f"
            return f"{value / scale:{digits}} {unit}"
    return f"{value:.0f} bit/s"


def milliseconds(seconds: float) -> str:
    """Return seconds as milliseconds: 0.214 ms."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds * 1e3:.0f} ms"
