"""What is certain of a device's figures although its product is not."""

from probe_chipdb.peaks import Peak, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip

# Relative. The table's clocks end at 3,130 MHz, so two clocks one MHz apart differ by 3e-4.
_EQUAL = 1e-4


def shared_peaks(chips: "tuple[Chip, ...]", units: int | None) -> tuple[Peak, ...]:
    """The peaks on which all chips agree; a product without a figure agrees with none."""
    if not chips:
        return ()
    first, *rivals = (chip.peaks(units=units) for chip in chips)
    agreed = tuple(peak for peak in first if all(_in(peak, peaks) for peaks in rivals))
    if rivals:
        names = ", ".join(chip.id for chip in chips[:4]) + (" ..." if len(chips) > 4 else "")
        for peak in agreed:
            peak.source = f"the same for all of {names}: {peak.source}"
            peak.low = None
            peak.published = None
    return agreed


def _in(peak: Peak, peaks: tuple[Peak, ...]) -> bool:
    other = find(peaks, peak.rate, peak.sparsity)
    return (
        other is not None
        and other.clock == peak.clock
        and abs(other.tflops - peak.tflops) <= _EQUAL * peak.tflops
    )
