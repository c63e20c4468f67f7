"""What was measured: how people are told of it, and how a command keeps it for later probes."""

from __future__ import annotations

from probe_core.commands import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.measured.store import Stored
    from probe_core.model.document import MeasuredDoc, ReportDoc

_GIGA_BELOW = 0.1
"""TFLOPS: one core, in a type that it emulates, achieves a thousandth of one."""


def measured_name(figure: MeasuredDoc) -> str:
    """Return what a figure is of: ``fp32 alu``, ``memory read``, ``link upload``."""
    dtype = figure["dtype"]
    return f"{dtype} {figure['kind']}" if dtype else f"{figure['kind']} {figure['figure']}"


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
    """Return the part of the derived figure at the same clock: ``98% at 3625 MHz``.

    ``–`` where there is nothing to compare with; `unknown` then says why.
    """
    fraction, at_clock = figure.get("fraction"), figure.get("fraction_at_clock")
    if at_clock is not None:
        return f"{at_clock:.0%} at {figure.get('clock_mhz') or 0:.0f} MHz"
    # Bytes per second have no clock to compare.
    return "–" if fraction is None or figure["figure"] == "compute" else f"{fraction:.0%}"


def save_measured(
    environ: Mapping[str, str], report: ReportDoc, figures: Mapping[str, Sequence[MeasuredDoc]]
) -> str:
    """Keep the figures of devices of a report, by their ids; return the path of the file.

    Each replaces the older one of its kind. Raises `OSError`, and `ValueError` with the reason for
    a file of another version, or without a place; then what was there stays.
    """
    import os

    from probe_core.config import MEASURED, place_of_state, state_base
    from probe_core.machine.writing import make_own_folder, replace_file
    from probe_core.measured import store

    path = place_of_state(environ, MEASURED)
    content, node = _before(path), report["node"].get("id")
    for device in report["devices"]:
        if figures.get(device["id"]):
            own = map(_without_fractions, figures[device["id"]])
            content = store.with_figures(content, node, device, own)
    make_own_folder(os.path.dirname(path), state_base(environ)[0])
    replace_file(path, store.text(content), mode=0o600)
    return path


def _without_fractions(figure: MeasuredDoc) -> MeasuredDoc:
    """Return a figure without what a probe computes anew: fractions follow the derived peak."""
    result = figure.copy()
    for name in ("fraction", "fraction_at_clock"):
        result.pop(name, None)  # type: ignore[misc]  # neither is required
    return result


def _before(path: str) -> Stored:
    from probe_core.measured.store import FILE_LIMIT, empty, parsed
    from probe_core.pipeline.file_reading import read_named
    from probe_core.pipeline.settings import is_file

    if not is_file(path):
        return empty()
    try:
        return parsed(read_named(path, FILE_LIMIT))
    except ValueError as error:
        raise ValueError(f"{path}: {error}; remove it") from None
