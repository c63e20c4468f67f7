"""What is certain of a device's figures although its product is not."""

from probe_chipdb.peaks import Peak, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip

_SAME = 1e-4  # relative; two clocks that the vendor writes alike never differ by less


def shared_peaks(chips: "tuple[Chip, ...]", units: int | None) -> tuple[Peak, ...]:
    """The peaks on which all chips agree; a product without a figure agrees with none."""
    if not chips:
        return ()
    first, rest = chips[0].peaks(units=units), [chip.peaks(units=units) for chip in chips[1:]]
    agreed = tuple(peak for peak in first if all(_in(peak, other) for other in rest))
    if rest:
        names = ", ".join(chip.id for chip in chips[:4]) + (" ..." if len(chips) > 4 else "")
        for peak in agreed:
            peak.source = f"the same for all of {names}: {peak.source}"
            peak.low = None
            peak.published = None
    return agreed


def _in(peak: Peak, others: tuple[Peak, ...]) -> bool:
    other = find(others, peak.rate, peak.sparsity)
    return (
        other is not None
        and other.clock == peak.clock
        and abs(other.tflops - peak.tflops) <= _SAME * peak.tflops
    )
