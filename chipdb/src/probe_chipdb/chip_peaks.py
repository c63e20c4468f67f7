"""A chip's figures: what its counts give, what its vendor publishes, and how far a range goes."""

from probe_chipdb.peaks import STATED, Peak, from_rates
from probe_chipdb.table import CHIP, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_chipdb.chip import Chip
    from probe_chipdb.peaks import Arch


# Why a figure is missing, and what moves a clock within its range.
#
# The data has keys, and their sentences are here: on a thousand entries they would be a seventh of
# the table.

REASONS = {
    "vgpu": "a virtual GPU is a share of a card, and its profile or host decides which",
    "design": "the maker of the SoC sets core count and clock of a licensed design",
    "clock": "no clock was read in a document, driver or device tree that the table cites",
    "counts": "neither unit count nor clock was read in a source that the table cites",
    "units": "no unit count was read in a source that the table cites",
    "rates": "no operations per clock were read, neither the vendor's nor measured ones",
    "limited": "the vendor limits the arithmetic in firmware, and no measurement was read",
    "unbuilt": "no SoC with this core count of the design was read",
    "unsold": "a sample, a prototype or a board's name, of which nothing is published",
    "bound": "the vendor publishes a lower bound alone",
    "nothing": "no figure was read in a source that the table cites",
    "graphics": "graphics pipelines without a compute interface; published rates contradict",
}

RANGES = {
    "laptop": "the maker of the laptop sets clock and power within the vendor's range",
    "mode": "the power mode of the module or board sets the clock",
    "model": "the model of the processor sets the clock",
    "soc": "the maker of the SoC sets the clock",
}

_CONDITIONS = {
    **RANGES,
    "design": "the maker of the SoC sets core count and clock; the range is that of the known SoCs",
}
"""What a figure of a range depends on; a newer table has other keys."""

OF_CLOCKS = "the maker of the SoC sets the clock; the range is that of the known SoCs"


def why_unknown(key: str | None, has_rates: bool, has_units: bool, has_clock: bool) -> str:
    """The recorded reason, else the one that follows from what is there."""
    if key in REASONS:
        return REASONS[key]
    if not has_rates:
        return REASONS["rates" if has_units or has_clock else "nothing"]
    if not has_units:
        return REASONS["units" if has_clock else "counts"]
    return REASONS["clock"]


# Narrows the figures of a part that is sold with a range by what its driver reports.
#
# A driver's maximum clock is an upper bound and no boost clock (RTX 4090: 3105 against 2520 MHz),
# so it can only lower the top of a range. A power limit decides at the ends of the vendor's range
# alone: what lies between them follows no published rule.


def narrow(chip: "Chip", peaks: "Iterable[Peak]", live: "Live") -> None:
    """State each figure's condition, and cut the range to what the live facts allow."""
    span = None if live.units else chip.units_range
    set_by = None if live.mhz else chip.clock.set_by  # one clock was given: it has no range
    for peak in peaks:
        if set_by:
            peak.condition = _CONDITIONS.get(set_by)
            if peak.condition and peak.low is None and chip.clock.boost_low is None:
                peak.condition += "; the lower end is not known"
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


# Joins what a chip's counts give with what its vendor publishes and what the data overrides.

# A derived figure this near the published one counts as confirmed by it. Vendors round clocks and
# figures: 913 of the 921 in the data are within it.
TOLERANCE = 0.03
_PUBLISHED = CHIP.index("published")
_OVERRIDE = CHIP.index("override")
_OF_SOCS = CHIP.index("of_socs")
_Key = tuple[str, str]  # rate key and sparsity


class Live:
    """What the driver reports that differs from the entry; None where it is nothing new.

    mhz, label: a clock in place of the table's. max_mhz, power: the driver's maximum clock and
    power limit; they only narrow a range, because a maximum is no boost clock.
    """

    __slots__ = ("label", "max_mhz", "mhz", "power", "units")

    def __init__(
        self,
        chip: "Chip",
        units: int | None,
        mhz: float | None,
        label: str | None,
        max_mhz: float | None = None,
        power: float | None = None,
    ) -> None:
        self.units = units if units and units != chip.units else None
        self.mhz = mhz or None
        self.label = label or "given"
        self.max_mhz = max_mhz or None
        self.power = power or None


def all_peaks(chip: "Chip", arch: "Arch | None", live: Live) -> tuple[Peak, ...]:
    """Derived peaks, then overrides in their place, then figures known only as published."""
    by_key = {(peak.rate, peak.sparsity): peak for peak in _derived(chip, arch, live)}
    _published(chip, by_key, live)
    _override(chip, by_key, live)
    if chip.clock.set_by or chip.units_range:
        narrow(chip, by_key.values(), live)
    return tuple(by_key.values())


def why_none(chip: "Chip", arch: "Arch | None", live: Live) -> str | None:
    """One clause that says which of the needed facts is missing."""
    if all_peaks(chip, arch, live):
        return None
    return f"{_missing(chip, arch, live)}: {reason(chip, arch)}"


def reason(chip: "Chip", arch: "Arch | None") -> str:
    """Why the table itself has no figures of a chip, in one clause."""
    clock = chip.clock.boost or chip.clock.game or chip.clock.base
    return why_unknown(
        chip.unknown, bool(arch and arch.rates), bool(chip.units or chip.units_range), bool(clock)
    )


def _missing(chip: "Chip", arch: "Arch | None", live: Live) -> str:
    if arch is None:
        return f"chipdb has no architecture for {chip.id}"
    if not arch.rates:
        return f"chipdb has no rates for the architecture {arch.id}"
    if not (live.units or chip.units or chip.units_range):
        return f"chipdb has no {arch.unit} count for {chip.id}, and none was given"
    return f"chipdb has no clock for {chip.id}"


def _derived(chip: "Chip", arch: "Arch | None", live: Live) -> list[Peak]:
    span = chip.units_range
    units = live.units or chip.units or (span[1] if span else None)
    clocks = _clocks(chip, live)
    if arch is None or units is None:
        return []
    if clocks is None:
        return _of_socs(chip, arch, units)
    low = None if live.mhz else chip.clock.boost_low
    peaks = from_rates(arch, units, clocks, _origin(chip, arch, live), low)
    if chip.confidence not in (*STATED, "derived"):
        for peak in peaks:
            peak.confidence = chip.confidence
    return peaks


def _of_socs(chip: "Chip", arch: "Arch", units: int) -> list[Peak]:
    """What a count of cores of a licensed design reaches at the clocks of its known SoCs."""
    rows = parts(chip.fields[_OF_SOCS])
    if not rows:
        return []
    low, high, confidence, source = rows[0]
    clocks = dict.fromkeys(("vector", "matrix"), ("boost", float(high)))
    origin = (
        f"live count of {units} {arch.unit}, rates [{', '.join(arch.sources)}], "
        f"clocks of the SoCs of the table with this design [{source.replace(',', ', ')}]"
    )
    peaks = from_rates(arch, units, clocks, origin, float(low))
    for peak in peaks:
        peak.confidence, peak.condition = confidence, OF_CLOCKS
    return peaks


def _clocks(chip: "Chip", live: Live) -> dict[str, tuple[str, float]] | None:
    if live.mhz:
        return dict.fromkeys(("vector", "matrix"), (live.label, live.mhz))
    clock = chip.clock
    labelled = (("boost", clock.boost), ("game", clock.game), ("base", clock.base))
    vector = next(((label, mhz) for label, mhz in labelled if mhz), ("base", 0.0))
    matrix = ("matrix", clock.matrix) if clock.matrix else vector
    if not vector[1]:
        vector = matrix
    return {"vector": vector, "matrix": matrix} if matrix[1] else None


def _origin(chip: "Chip", arch: "Arch", live: Live) -> str:
    text = f"rates [{', '.join(arch.sources)}], counts and clock [{', '.join(chip.sources)}]"
    if not live.units:
        return text
    span = chip.units_range
    count = chip.units or (f"{span[0]} to {span[1]}" if span else None)
    nominal = f"{count} nominal" if count else "no nominal count"
    return f"live count of {live.units} {arch.unit} ({nominal}), {text}"


def _published(chip: "Chip", by_key: dict[_Key, Peak], live: Live) -> None:
    """Mark the derived peaks that the vendor confirms; add those that only the vendor gives."""
    for rate, sparsity, value, source, clock, *more in parts(chip.fields[_PUBLISHED]):
        low, stated = [*more, "", ""][:2]
        stated = stated or _UNMARKED
        figure = float(value)
        peak = by_key.get((rate, sparsity))
        if peak is None:
            peak = Peak(
                rate,
                sparsity,
                figure,
                clock=clock or "boost",
                source=f"published [{source}]",
                confidence=stated,
                published=figure,
                basis="published",
                low=float(low) if low else None,
            )
            by_key[rate, sparsity] = _scaled(chip, peak, live)
        elif clock not in ("base", "low"):
            peak.published = figure
            near = abs(peak.tflops - figure) <= TOLERANCE * figure
            if near and peak.confidence == "derived" and not (live.units or live.mhz):
                peak.confirmed_by = stated
                peak.source += f"; {_PUBLISHES[stated]} {figure:g} [{source}]"


_UNMARKED = "recalled"
"""The confidence of a figure in a table that is older than the evidence."""

_PUBLISHES = {
    "vendor": "the vendor publishes",
    "third-party": "the vendor publishes, as others quote it,",
    "recalled": "the vendor publishes, from memory,",
}


def _override(chip: "Chip", by_key: dict[_Key, Peak], live: Live) -> None:
    """Replace the figures that the data corrects, and what sparsity makes of them."""
    rows = parts(chip.fields[_OVERRIDE])
    stated = {(row[0], row[1]) for row in rows}
    if chip.unknown == "design" and (live.units or live.mhz):
        return  # the range of known SoCs says nothing of another count or clock
    for rate, sparsity, value, reason, source, confidence, *more in rows:
        old = by_key.pop((rate, sparsity), None)
        sparse_key = (rate, "sparse")
        sparse = None if sparse_key in stated else by_key.pop(sparse_key, None)
        if not value:  # an override without a figure: this chip lacks the path, sparse or not
            continue
        peak = Peak(
            rate,
            sparsity,
            float(value),
            clock="boost",
            source=f"override: {reason} [{source}]",
            confidence=confidence or _UNMARKED,
            published=old.published if old else None,
            basis="override",
            low=float(more[0]) if more and more[0] else None,
            condition=_CONDITIONS.get(chip.unknown or ""),
        )
        origin = peak.source
        by_key[rate, sparsity] = _scaled(chip, peak, live)
        if sparse and old:
            by_key[sparse_key] = _sparse_of(peak, old, sparse, origin)


def _sparse_of(peak: Peak, old: Peak, sparse: Peak, origin: str) -> Peak:
    """What structured sparsity gained over the derived dense figure, it gains over the real one."""
    sparse.tflops *= peak.tflops / old.tflops
    sparse.source = f"{sparse.tflops / peak.tflops:g} x the dense {origin}"
    sparse.basis = "override"
    sparse.low = None
    return sparse


def _scaled(chip: "Chip", peak: Peak, live: Live) -> Peak:
    """A stated figure is for the nominal device: follow the live count and clock, and say so."""
    if live.units and chip.units:
        _multiply(peak, live.units / chip.units)
        peak.source += f"; scaled to the live count of {live.units} of {chip.units}"
        peak.confidence = "derived"
    table = (chip.clock.matrix if peak.path == "matrix" else None) or chip.clock.boost
    if live.mhz and table:
        peak.tflops *= live.mhz / table
        peak.low = None
        peak.source += f"; scaled from {table:g} to {live.mhz:g} MHz"
        peak.confidence, peak.clock, peak.mhz = "derived", live.label, live.mhz
    return peak


def _multiply(peak: Peak, factor: float) -> None:
    peak.tflops *= factor
    if peak.low is not None:
        peak.low *= factor


# One of several peaks.


def natural_accumulator(dtype: str, path: str) -> str:
    """The accumulator that people mean when they name none: what MFU is computed against.

    >>> natural_accumulator("bf16", "matrix"), natural_accumulator("fp16", "vector")
    ('fp32', 'fp16')
    """
    if dtype.startswith("int"):
        return "int32"
    if path == "vector" or dtype == "fp64":
        return dtype
    return "fp32"


def find(peaks: "Iterable[Peak]", rate: str, sparsity: str = "dense") -> Peak | None:
    """The peak with exactly this rate key and sparsity, or None."""
    for peak in peaks:
        if peak.sparsity == sparsity and peak.rate == rate:
            return peak
    return None
