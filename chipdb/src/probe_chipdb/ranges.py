"""Narrows the figures of a part that is sold with a range by what its driver reports.

A driver's maximum clock is an upper bound and no boost clock (RTX 4090: 3105 against 2520 MHz), so
it can only lower the top of a range. A power limit decides at the ends of the vendor's range
alone: what lies between them follows no published rule.
"""

from probe_chipdb.unknown import condition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_chipdb.chip import Chip
    from probe_chipdb.chip_peaks import Live
    from probe_chipdb.peaks import Peak


def narrow(chip: "Chip", peaks: "Iterable[Peak]", live: "Live") -> None:
    """State each figure's condition, and cut the range to what the live facts allow."""
    span = None if live.units else chip.units_range
    set_by = None if live.mhz else chip.clock.set_by  # one clock was given: it has no range
    for peak in peaks:
        if set_by:
            peak.condition = condition(set_by)
            _by_clock(chip, peak, live.max_mhz)
            _by_power(chip, peak, live.power)
        if span and peak.basis == "derived":
            _widen(peak, *span, chip.unit or "units")


def _widen(peak: "Peak", fewest: int, most: int, unit: str) -> None:
    """Lower the bottom to the part with the fewest units; the top has the most."""
    peak.low = (peak.tflops if peak.low is None else peak.low) * fewest / most
    counts = f"parts of {fewest} to {most} {unit} share the entry"
    peak.condition = "; ".join(filter(None, (counts, peak.condition)))


def _by_clock(chip: "Chip", peak: "Peak", max_mhz: float | None) -> None:
    top = peak.mhz or chip.clock.boost
    if not max_mhz or not top or max_mhz >= top:
        return
    peak.tflops *= max_mhz / top
    if peak.low is not None and peak.low >= peak.tflops:
        peak.low = None
    peak.clock, peak.mhz, peak.confidence = "max", max_mhz, "derived"
    peak.source += f"; narrowed: the driver allows at most {max_mhz:g} MHz"


def _by_power(chip: "Chip", peak: "Peak", power: float | None) -> None:
    if not power or peak.low is None or not chip.power or not chip.power_low:
        return
    if power >= chip.power:
        peak.low = None
        peak.source += f"; narrowed: the power limit of {power:g} W is the highest of the range"
    elif power <= chip.power_low:
        if peak.mhz:
            peak.mhz *= peak.low / peak.tflops
        peak.tflops, peak.low, peak.confidence = peak.low, None, "derived"
        peak.source += f"; narrowed: the power limit of {power:g} W is the lowest of the range"
