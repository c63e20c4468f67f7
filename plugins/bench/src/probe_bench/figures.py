"""From the lines of a child to figures as the report has them, to sentences, and to a table."""

from __future__ import annotations

from statistics import median
from time import gmtime, strftime

from probe_bench.statistics import disturbances
from probe_bench.tasks import title
from probe_core.commands import (
    claims,
    driver_text,
    folded,
    grid,
    measured_amount,
    measured_name,
    measured_part,
    paint,
    with_fractions,
    with_repeat,
)
from probe_core.model.parts import DISTURBANCES, Measurement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_bench.sensors import Readings
    from probe_bench.tasks import Line, Task
    from probe_core.commands import Context
    from probe_core.model.document import DeviceDoc, MeasuredDoc


_TERA = 1e12
_LEAST_MATMUL = 0.5
"""Of the derived peak: vendors' libraries multiply matrices at 0.5 to 0.97 of it on GPUs
(stas00/ml-engineering, compute/accelerator/benchmarks)."""

_LEAST_ALU = 0.9
"""Of the peak at the measured clock: nothing but the loop's own instructions is in the way."""

_LEAST_MEMORY = 0.7
"""Of the derived bandwidth: PyTorch's copy moved 3.0 of 3.35 TB/s on an H100 (measured), and
tinygrad's kernels 1.7."""

_NO_SENSOR = "no sensor file and no sampler shows it"


def figure(
    device: DeviceDoc, task: Task, line: Line, seen: Readings, processes: int | None
) -> MeasuredDoc:
    """Return what a result says of a device, with its fractions.

    `seen` are the sensors' highest readings meanwhile, `processes` those of others on the device.
    """
    is_compute = task["figure"] == "compute"
    scale = _TERA if is_compute else 1.0
    rates, cold = line["rates"], line["cold"]
    # A first run above all others is the best: turbo that ends, or others who came, slowed them.
    best = max(*rates, cold)
    clock = line.get("clock_mhz") or seen.clock_mhz
    result: MeasuredDoc = {
        "figure": task["figure"],
        "kind": task["kind"],
        "dtype": task["dtype"],
        "accumulate": line.get("accumulate"),
        "unit": ("TOPS" if task["dtype"] == "int8" else "TFLOPS") if is_compute else "B/s",
        "best": _digits(best / scale),
        "median": _digits(median(rates) / scale),
        "cold": _digits(cold / scale),
        "runs": len(rates),
        "warm_s": round(line["warm_s"], 3),
        "by": line["by"],
        "size": line.get("size"),
        "threads": line.get("threads"),
        "clock_mhz": clock,
        "clock_reasons": None if seen.reasons is None else list(seen.reasons),
        "power_w": seen.power_w,
        "power_cap_w": seen.power_cap_w or (device.get("power") or {}).get("limit_watts"),
        "temperature_c": seen.temperature_c,
        "driver": driver_text(device),
        "date": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()),
        "disturbed": disturbances(
            [*rates, cold], line.get("cpu_share"), line.get("others_share"), processes
        ),
        "stale": None,
    }
    result["unknown"] = _unknown(device, result)
    return with_repeat(device, with_fractions(device, result))


def _unknown(device: DeviceDoc, entry: MeasuredDoc) -> dict[str, str]:
    """Return why what accompanies a figure is not known."""
    sensed = ("power_w", "power_cap_w", "temperature_c", "clock_mhz", "clock_reasons")
    unknown = {name: _NO_SENSOR for name in sensed if entry.get(name) is None}
    if device["kind"] == "cpu" and "clock_mhz" in unknown:
        unknown["clock_mhz"] = "no C compiler made the loop that measures it"
    return unknown


def checked(entry: MeasuredDoc) -> MeasuredDoc:
    """Return the figure, its texts safe for a terminal; raises `ValueError` for an absurd one."""
    return Measurement().check(entry)  # type: ignore[return-value]  # its fields are the table's


def _digits(value: float) -> float:
    """Return six digits: runs differ in the third."""
    return float(f"{value:.6g}")


def notes(device: DeviceDoc, figures: Sequence[MeasuredDoc]) -> Iterator[str]:
    """Yield a sentence for each disturbance, and for each figure below what is usual."""
    for sign, meaning in DISTURBANCES.items():
        names = [measured_name(entry) for entry in figures if sign in entry["disturbed"]]
        if names:
            yield f"* not for planning ({', '.join(names)}): {meaning}"
    for entry in figures:
        low = _below(device, entry) if claims(entry) else ""
        if low:
            yield f"{measured_name(entry)} by {entry['by']}: {low}"


def grouped(problems: Sequence[tuple[Task, str]]) -> Iterator[str]:
    """Yield a sentence for each reason, with all tasks that it keeps from a figure."""
    reasons: dict[str, list[str]] = {}
    for task, reason in problems:
        reasons.setdefault(reason, []).append(title(task))
    for reason, titles in reasons.items():
        yield f"no {', '.join(titles)}: {reason}"


def _below(device: DeviceDoc, entry: MeasuredDoc) -> str:
    # A peak at another clock is none of this run's.
    is_compute = entry["figure"] == "compute"
    part = entry.get("fraction_at_clock") if is_compute else entry.get("fraction")
    if part is None:
        return ""
    if entry["figure"] != "compute":
        return _below_bandwidth(part) if device["kind"] == "gpu" else ""
    if entry["kind"] == "alu" and part < _LEAST_ALU:
        return f"{part:.0%} of the derived peak; a register kernel achieves 90 % and more"
    if entry["kind"] == "matmul" and device["kind"] == "gpu" and part < _LEAST_MATMUL:
        return (
            f"{part:.0%} of the derived peak; vendors' libraries achieve 50 % to 97 %,"
            " tinygrad's kernels without a search less"
        )
    return ""


def _below_bandwidth(part: float) -> str:
    if part >= _LEAST_MEMORY:
        return ""
    return (
        f"{part:.0%} of the derived bandwidth; vendors' copies achieve about 90 %,"
        " tinygrad's kernels without a search less"
    )


# What `probe bench` prints: one table a device, and what is missing or unusual.

_HEAD = ("ACHIEVED", "BEST", "MEDIAN", "COLD", "RUNS", "OF PEAK", "CLOCK", "POWER", "TEMP", "BY")
_RIGHT = ("BEST", "MEDIAN", "COLD", "RUNS", "CLOCK", "POWER", "TEMP")
_LEAVING = ("TEMP", "POWER", "COLD", "RUNS")
"""What a narrower terminal goes without, in this order; then each row is lines with its heads."""


def lines(device: DeviceDoc, figures: Sequence[MeasuredDoc], context: Context) -> Iterator[str]:
    """Yield the figures of one device."""
    title = f"{device['id']}  {context.encodable(device['name'] or '')}".rstrip()
    yield paint(title, "bold", context.colour)
    if figures:
        rows = [_HEAD, *map(_row, figures)]
        shown = [[context.encodable(cell) for cell in row] for row in rows]
        table = grid(shown, context.width, right=_RIGHT, wrap="BY", leaving=_LEAVING, indent="  ")
        yield from table if table[0].split()[0] == _HEAD[0] else _stacked(shown, context)


def _stacked(rows: Sequence[Sequence[str]], context: Context) -> Iterator[str]:
    """Yield each row as lines of ``head: value``, where no table has room."""
    for row in rows[1:]:
        for head, cell in zip(rows[0], row, strict=True):
            if head == _HEAD[0]:
                yield f"  {cell}"
            elif cell not in ("–", context.encodable("–")):
                yield from folded(f"{head.lower()}: {cell}", context.width, "    ", "      ")


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
