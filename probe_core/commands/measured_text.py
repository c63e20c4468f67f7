"""Measured figures for people: what each is of, its amount, and its part of the derived peak."""

from __future__ import annotations

from probe_core.commands import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import MeasuredDoc

__all__ = ["measured_amount", "measured_name", "measured_part"]

_GIGA_BELOW = 0.1
"""TFLOPS: one core, in a type that it emulates, achieves a thousandth of one."""


def measured_name(figure: MeasuredDoc) -> str:
    """Return what a figure is of: ``fp32 alu``, ``memory read``."""
    dtype = figure["dtype"]
    return f"{dtype} {figure['kind']}" if dtype else f"memory {figure['figure']}"


def measured_amount(figure: MeasuredDoc, value: float | None) -> str:
    """Return one of a figure's amounts: ``0.46 TFLOPS``, ``19.1 GOPS``, ``34 GB/s``."""
    if value is None:
        return "–"
    unit = figure["unit"] or ""
    if unit == "B/s":
        return text.bandwidth(value)
    if value < _GIGA_BELOW:
        return f"{value * 1000:.3g} {unit.replace('T', 'G', 1)}"
    return f"{text.rate(value)} {unit}"


def measured_part(figure: MeasuredDoc) -> str:
    """Return the part of the derived figure, at both clocks: ``145%, 100% at 3625 MHz``."""
    fraction, at_clock = figure.get("fraction"), figure.get("fraction_at_clock")
    if fraction is None:
        return "–"
    if at_clock is None:
        return f"{fraction:.0%}"
    return f"{fraction:.0%}, {at_clock:.0%} at {figure.get('clock_mhz') or 0:.0f} MHz"
