"""What `probe bench` prints: one table a device, and sentences about what is missing or unusual."""

from __future__ import annotations

from probe_bench.figures import name_of
from probe_core.commands import bandwidth, folded, grid, paint, rate

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
    dtype, size, name = figure["dtype"], figure.get("size"), name_of(figure)
    parts = [figure["by"] or "", f"n={size}" if dtype and size else ""]
    threads = figure.get("threads")
    parts += [f"{threads} threads" if threads and threads > 1 else ""]
    return (
        f"{name} *" if figure["disturbed"] else name,
        _amount(figure, figure["best"]),
        _amount(figure, figure["median"]),
        _amount(figure, figure.get("cold")),
        str(figure["runs"]),
        _part(figure),
        _unit(figure.get("clock_mhz"), "MHz"),
        _unit(figure.get("power_w"), "W"),
        _unit(figure.get("temperature_c"), "°C"),
        ", ".join(filter(None, parts)),
    )


def _amount(figure: MeasuredDoc, value: float | None) -> str:
    if value is None:
        return "–"
    if figure["unit"] == "B/s":
        return bandwidth(value)
    if value < 0.1:  # one core, in a type that it emulates, achieves a thousandth of a TFLOPS
        return f"{value * 1000:.3g} {(figure['unit'] or '').replace('T', 'G', 1)}"
    return f"{rate(value)} {figure['unit']}"


def _part(figure: MeasuredDoc) -> str:
    fraction, at_clock = figure.get("fraction"), figure.get("fraction_at_clock")
    if fraction is None:
        return "–"
    return f"{fraction:.0%}" if at_clock is None else f"{fraction:.0%} ({at_clock:.0%} at clock)"


def _unit(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.0f} {unit}"
