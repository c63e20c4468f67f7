"""What `probe bench` prints: one table a device, and sentences about what is missing or unusual."""

from __future__ import annotations

from probe_core.commands import folded, grid, measured_amount, measured_name, measured_part, paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, MeasuredDoc

__all__ = ["lines", "sentence"]

_HEAD = ("ACHIEVED", "BEST", "MEDIAN", "COLD", "RUNS", "OF PEAK", "CLOCK", "POWER", "TEMP", "BY")
_RIGHT = ("BEST", "MEDIAN", "COLD", "RUNS", "CLOCK", "POWER", "TEMP")


def lines(device: DeviceDoc, figures: Sequence[MeasuredDoc], context: Context) -> Iterator[str]:
    """Yield the figures of one device."""
    title = f"{device['id']}  {context.encodable(device['name'] or '')}".rstrip()
    yield paint(title, "bold", context.colour)
    if figures:
        rows = [_HEAD, *map(_row, figures)]
        shown = [[context.encodable(cell) for cell in row] for row in rows]
        yield from grid(shown, context.width, right=_RIGHT, wrap="BY", indent="  ")


def sentence(text: str, context: Context) -> Iterator[str]:
    """Yield one sentence below a table."""
    yield from folded(context.encodable(text), context.width, "  ", "    ")


def _row(figure: MeasuredDoc) -> tuple[str, ...]:
    dtype, size, name = figure["dtype"], figure.get("size"), measured_name(figure)
    parts = [figure["by"] or "", f"n={size}" if dtype and size else ""]
    threads = figure.get("threads")
    parts += [f"{threads} threads" if threads and threads > 1 else ""]
    return (
        f"{name} *" if figure["disturbed"] else name,
        measured_amount(figure, figure["best"]),
        measured_amount(figure, figure["median"]),
        measured_amount(figure, figure.get("cold")),
        str(figure["runs"]),
        measured_part(figure),
        _unit(figure.get("clock_mhz"), "MHz"),
        _unit(figure.get("power_w"), "W"),
        _unit(figure.get("temperature_c"), "°C"),
        ", ".join(filter(None, parts)),
    )


def _unit(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.0f} {unit}"
