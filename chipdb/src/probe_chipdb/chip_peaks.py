"""Joins what a chip's counts give with what its vendor publishes and what the data overrides."""

from probe_chipdb import columns
from probe_chipdb.peaks import Peak, from_rates
from probe_chipdb.text import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.arch import Arch
    from probe_chipdb.chip import Chip

TOLERANCE = 0.03  # a derived figure this near the published one counts as confirmed by it
_AT = {name: at for at, name in enumerate(columns.CHIP)}


def all_peaks(
    chip: "Chip", arch: "Arch | None", units: int | None, mhz: float | None, label: str | None
) -> tuple[Peak, ...]:
    """Derived peaks, then overrides in their place, then figures known only as published."""
    by_key = {(p.rate, p.sparsity): p for p in _derived(chip, arch, units, mhz, label)}
    for peak in _published(chip, by_key, units, mhz, label):
        by_key[peak.rate, peak.sparsity] = peak
    _override(chip, by_key, units, mhz, label)
    return tuple(by_key.values())


def why_none(chip: "Chip", arch: "Arch | None", units: int | None) -> str | None:
    """One clause that says which of the needed facts is missing."""
    if all_peaks(chip, arch, units, None, None):
        return None
    if arch is None:
        return f"chipdb has no architecture for {chip.id}"
    if not units and not chip.units:
        return f"chipdb has no {arch.unit} count for {chip.id}, and the driver tells none"
    return f"chipdb has no clock for {chip.id}"


def _derived(
    chip: "Chip", arch: "Arch | None", units: int | None, mhz: float | None, label: str | None
) -> list[Peak]:
    count = units or chip.units
    clocks = _clocks(chip, mhz, label)
    if arch is None or count is None or clocks is None:
        return []
    peaks = from_rates(arch, count, clocks, _origin(chip, arch, units),
                       None if mhz else chip.clock.boost_low)  # fmt: skip
    if chip.confidence not in ("vendor", "derived"):
        for peak in peaks:
            peak.confidence = chip.confidence
    return peaks


def _clocks(
    chip: "Chip", mhz: float | None, label: str | None
) -> dict[str, tuple[str, float]] | None:
    if mhz:
        return {path: (label or "given", mhz) for path in ("vector", "matrix")}
    clock = chip.clock
    vector = ("boost", clock.boost) if clock.boost else ("base", clock.base or 0.0)
    matrix = ("matrix", clock.matrix) if clock.matrix else vector
    if not vector[1]:
        vector = matrix
    return {"vector": vector, "matrix": matrix} if matrix[1] else None


def _origin(chip: "Chip", arch: "Arch", units: int | None) -> str:
    text = f"rates [{', '.join(arch.sources)}], counts and clock [{', '.join(chip.sources)}]"
    if units and units != chip.units:
        nominal = f"{chip.units} nominal" if chip.units else "no nominal count"
        return f"live count of {units} {arch.unit} ({nominal}), {text}"
    return text


def _published(
    chip: "Chip",
    derived: dict[tuple[str, str], Peak],
    units: int | None,
    mhz: float | None,
    label: str | None,
) -> list[Peak]:
    """Mark the derived peaks that the vendor confirms; return those that only the vendor gives."""
    only = []
    for rate, sparsity, value, source, clock in parts(chip._fields[_AT["published"]]):
        figure = float(value)
        peak = derived.get((rate, sparsity))
        if peak is None:
            only.append(_stated(chip, rate, sparsity, figure, clock or "boost", units, mhz, label,
                                f"published [{source}]", "vendor"))  # fmt: skip
        elif not clock or clock == "boost":
            peak.published = figure
            near = abs(peak.tflops - figure) <= TOLERANCE * figure
            if near and peak.confidence == "derived" and not units:
                peak.confidence = "vendor"
                peak.source += f"; the vendor publishes {figure:g} [{source}]"
    return only


def _override(
    chip: "Chip",
    by_key: dict[tuple[str, str], Peak],
    units: int | None,
    mhz: float | None,
    label: str | None,
) -> None:
    for rate, sparsity, value, reason, source, confidence in parts(
        chip._fields[_AT["override"]]
    ):
        old = by_key.pop((rate, sparsity), None)
        if not value:  # an override without a figure: the formula's figure does not exist here
            continue
        peak = _stated(chip, rate, sparsity, float(value), "boost", units, mhz, label,
                       f"override: {reason} [{source}]", confidence or "vendor")  # fmt: skip
        peak.published = old.published if old else None
        by_key[rate, sparsity] = peak


def _stated(
    chip: "Chip",
    rate: str,
    sparsity: str,
    tflops: float,
    clock: str,
    units: int | None,
    mhz: float | None,
    label: str | None,
    source: str,
    confidence: str,
) -> Peak:
    """A figure for the whole nominal device, scaled to the live count and clock where given."""
    nominal = chip.units
    if units and nominal and units != nominal:
        tflops *= units / nominal
        source += f"; scaled to the live count of {units} of {nominal}"
        confidence = "derived"
    table = (chip.clock.matrix if ".matrix." in rate else None) or chip.clock.boost
    if mhz and table:
        tflops *= mhz / table
        source += f"; scaled from {table:g} to {mhz:g} MHz"
        confidence, clock = "derived", label or "given"
    return Peak(rate, sparsity, tflops, clock=clock, source=source, confidence=confidence)
