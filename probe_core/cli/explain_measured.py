"""What `probe explain` says of measured figures: beside the derived peaks, never among them."""

from __future__ import annotations

from probe_core.commands.measured_text import measured_amount, measured_name, measured_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import MeasuredDoc

__all__ = ["measured_rows"]


def measured_rows(figures: Sequence[MeasuredDoc]) -> list[tuple[str, ...]]:
    """Return the rows of a table, with its head."""
    return [("MEASURED", "BEST", "MEDIAN", "OF PEAK", "COUNTS", "BY"), *map(_row, figures)]


def _row(figure: MeasuredDoc) -> tuple[str, ...]:
    return (
        measured_name(figure),
        measured_amount(figure, figure["best"]),
        measured_amount(figure, figure["median"]),
        measured_part(figure),
        _state(figure),
        f"{figure['by']}, {(figure['date'] or '')[:10]}",
    )


def _state(figure: MeasuredDoc) -> str:
    if figure["stale"] is not None:
        return f"no: {figure['stale']}"
    return f"no: disturbed ({', '.join(figure['disturbed'])})" if figure["disturbed"] else "yes"
