"""What `probe explain` says of measured figures: beside the derived peaks, never among them."""

from __future__ import annotations

from probe_core.commands import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import MeasuredDoc

__all__ = ["amount", "measured_rows", "part"]


def measured_rows(figures: Sequence[MeasuredDoc]) -> list[tuple[str, ...]]:
    """Return the rows of a table, with its head."""
    return [("MEASURED", "BEST", "MEDIAN", "OF PEAK", "COUNTS", "BY"), *map(_row, figures)]


def _row(figure: MeasuredDoc) -> tuple[str, ...]:
    kind = (
        f"{figure['dtype']} {figure['kind']}" if figure["dtype"] else f"memory {figure['figure']}"
    )
    return (
        kind,
        amount(figure, figure["best"]),
        amount(figure, figure["median"]),
        part(figure),
        _state(figure),
        f"{figure['by']}, {(figure['date'] or '')[:10]}",
    )


def amount(figure: MeasuredDoc, value: float | None) -> str:
    """Return a figure for people: ``0.46 TFLOPS``, ``34 GB/s``."""
    if value is None:
        return "–"
    if figure["unit"] == "B/s":
        return text.bandwidth(value)
    return f"{text.rate(value)} {figure['unit']}"


def part(figure: MeasuredDoc) -> str:
    """Return the fraction of the derived figure: ``139 %, 100 % at 3620 MHz``."""
    fraction, at_clock = figure.get("fraction"), figure.get("fraction_at_clock")
    if fraction is None:
        return "–"
    result = f"{fraction:.0%}"
    if at_clock is not None:
        result += f", {at_clock:.0%} at {figure.get('clock_mhz') or 0:.0f} MHz"
    return result


def _state(figure: MeasuredDoc) -> str:
    if figure["stale"] is not None:
        return f"no: {figure['stale']}"
    return f"no: disturbed ({', '.join(figure['disturbed'])})" if figure["disturbed"] else "yes"
