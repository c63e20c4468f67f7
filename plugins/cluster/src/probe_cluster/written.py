"""Figures as people write them."""

from __future__ import annotations

from collections.abc import Mapping

_SIZES = {"gb/s": 1e9, "mb/s": 1e6, "gbit/s": 1e9 / 8, "mbit/s": 1e6 / 8}
_AMOUNTS = {"gib": 1 << 30, "mib": 1 << 20, "tib": 1 << 40, "gb": 1e9, "mb": 1e6, "tb": 1e12}


def parse_speed(text: str) -> float | None:
    """Return bytes per second of ``10GB/s``, ``400 Mbit/s``; None for anything else."""
    return figure_of(text.strip().lower().replace(" ", ""), _SIZES)


def parse_bytes(text: str) -> int | None:
    """Return the bytes of ``96GiB`` or ``16 GB``; None for anything else."""
    value = figure_of(text.strip().lower().replace(" ", ""), _AMOUNTS)
    return None if value is None else int(value)


def figure_of(text: str, units: Mapping[str, float]) -> float | None:
    """Return a figure with one of `units`, such as ``50us``; None for anything else."""
    for unit, scale in units.items():
        if text.endswith(unit):
            try:
                value = float(text.removesuffix(unit)) * scale
            except ValueError:
                return None
            return value if 0 < value < 1e15 else None
    return None
