"""Figures and texts as the page shows them: with a unit, cut to a length, or a dash."""

from __future__ import annotations

from probe_core.commands import rate
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = [
    "CELL",
    "NAME",
    "SENTENCE",
    "UNKNOWN",
    "cut",
    "dense",
    "percent",
    "short",
    "spaced",
    "summed",
]

UNKNOWN = "–"

NAME = 80
"""Characters of a device's name: the longest in chipdb has 65."""

CELL = 160
"""Characters of a name, an address or a driver: no real one has more than half of them."""

SENTENCE = 480
"""Characters of a sentence; a chip's longest list of sources has 350, a finding's cause 300."""


def cut(text: str | None, limit: int = CELL) -> str:
    """Return foreign text fit for a page, with an ellipsis for what is beyond `limit`."""
    return clean_text(text, limit) if text else ""


def percent(part: float | None, whole: float | None) -> float | None:
    """Return 0 to 100, to a tenth; None where a bar would need a guess."""
    # A report that somebody wrote by hand may have a total below zero: no bar is that long.
    if part is None or whole is None or part < 0 or whole <= 0:
        return None
    return min(100.0, round(100 * part / whole, 1))


def spaced(tera: float | None) -> str:
    """Return TFLOPS with three digits, thousands apart: ``7 915`` (with a thin space)."""
    shown = rate(tera)
    whole, dot, digits = shown.partition(".")
    if len(whole) > 4:
        whole = f"{int(whole):,}".replace(",", "\u2009")
    return whole + dot + digits


def summed(values: Iterable[float | None]) -> tuple[float | None, int]:
    """Return the sum of the values that are known (None: none is), and how many are not."""
    listed = list(values)
    amounts = [value for value in listed if value is not None]
    return (sum(amounts) if amounts else None), len(listed) - len(amounts)


def dense(device: DeviceDoc, field: str) -> float | None:
    """Return one of a device's shorthands: ``fp32``, ``fp16`` or ``int8``; None where unknown."""
    value: float | None = device.get(field)  # type: ignore[assignment]  # of three names
    return value


def short(items: Sequence[str], limit: int = 8) -> str:
    """Return the items with spaces between, and how many are beyond `limit`."""
    hidden = len(items) - limit
    return " ".join([*items[:limit], *([f"and {hidden} more"] if hidden > 0 else [])])
