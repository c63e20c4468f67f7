"""What is certain of a device although its product is not: what all products that fit share."""

from probe_chipdb.chip_peaks import find
from probe_chipdb.peaks import Arch, Peak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip


def shared(archs: list[Arch]) -> Arch:
    """What all of these have in common: the rates on which they agree, under a joint id."""
    first, *siblings = archs
    if not siblings:
        return first
    joint = first.with_rates(_agreed_rates(first, siblings))
    joint.id = "+".join(arch.id for arch in archs)
    joint.name = " or ".join(arch.name for arch in archs)
    if any(arch.family != first.family for arch in siblings):
        joint.family = ""
    joint.sparse_keys = _agreed_sparse_keys(first, siblings)
    joint.sources = tuple(dict.fromkeys(key for arch in archs for key in arch.sources))
    joint.confidence = "derived"
    joint.note = "only the rates that all of them share"
    return joint


def _agreed_rates(first: Arch, siblings: list[Arch]) -> dict[str, float]:
    return {
        key: ops
        for key, ops in first.rates.items()
        if all(arch.rates.get(key) == ops for arch in siblings)
    }


def _agreed_sparse_keys(first: Arch, siblings: list[Arch]) -> frozenset[str]:
    """The rates that sparsity multiplies in all of them, if it does so by the same factor."""
    if any(arch.sparse_factor != first.sparse_factor for arch in siblings):
        return frozenset()
    return first.sparse_keys.intersection(*(arch.sparse_keys for arch in siblings))


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
