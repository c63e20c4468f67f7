"""Gives a licensed design the range of the SoCs that hold it.

The maker of a SoC sets core count and clock, so a design has no figure of its own. What its SoCs in
the table reach is known: the lowest and the highest of them are the ends of a range. Where a driver
counts the cores, the lowest and the highest clock of those SoCs are.
"""

from typing import TypedDict

from probe_chipdb.peaks import CONFIDENCES
from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.entry.types import ChipEntry, OverrideEntry
    from probe_chipdb.entry.validate import Data

    # The lowest and the highest TFLOPS of a SoC.
    Ends = tuple[float, float]
    Rated = tuple[ChipEntry, dict[str, Ends]]


class SocClock(TypedDict):
    """The lowest and the highest clock of the SoCs of a design, in MHz."""

    low: float
    high: float
    confidence: str
    source: list[str]


class DesignRange(TypedDict):
    """What the SoCs of a design reach: with their own counts, and by their clocks alone."""

    figures: "list[OverrideEntry]"
    clock: SocClock | None


def ranges(data: "Data") -> dict[str, DesignRange]:
    """The figures of each design of which at least two SoCs are known.

    A design is an entry with ``unknown = "design"`` and neither units nor counts; its SoCs are the
    vendor's entries whose names hold its name word by word.
    """
    designs = [chip for chip in data.chips.values() if _is_design(chip)]
    if not designs:
        return {}
    built = [(chip, normalise(chip["name"])) for chip in data.chips.values() if _is_built(chip)]
    range_of: dict[str, DesignRange] = {}
    for design in designs:
        name = f" {normalise(design['name'])} "
        socs = [
            chip for chip, own in built if chip["vendor"] == design["vendor"] and name in f" {own} "
        ]
        rated = [(chip, ends) for chip in socs if (ends := _ends(data, chip))]
        if figures := list(_figures(rated)):
            range_of[design["id"]] = {"figures": figures, "clock": _clock(rated)}
    return range_of


def _is_design(chip: "ChipEntry") -> bool:
    return chip.get("unknown") == "design" and not ("units" in chip or "counts" in chip)


def _is_built(chip: "ChipEntry") -> bool:
    return chip.get("unknown") != "design" and "units" in chip and "boost" in chip.get("clock", {})


def _figures(rated: "list[Rated]") -> "Iterator[OverrideEntry]":
    first = rated[0][1] if len(rated) > 1 else {}
    for rate in (rate for rate in first if all(rate in ends for _, ends in rated)):
        lowest = min(rated, key=lambda item: item[1][rate][0])
        highest = max(rated, key=lambda item: item[1][rate][1])
        low, high = lowest[1][rate][0], highest[1][rate][1]
        if low < high:
            yield _override(rate, low, high, lowest[0], highest[0])


def _clock(rated: "list[Rated]") -> SocClock | None:
    lowest = min((chip for chip, _ in rated), key=_lowest)
    highest = max((chip for chip, _ in rated), key=lambda chip: chip["clock"]["boost"])
    low, high = _lowest(lowest), highest["clock"]["boost"]
    if low >= high:
        return None
    sources, confidence = _origin(lowest, highest)
    return {"low": low, "high": high, "confidence": confidence, "source": sources}


def _lowest(chip: "ChipEntry") -> float:
    return chip["clock"].get("boost_low", chip["clock"]["boost"])


def _origin(lowest: "ChipEntry", highest: "ChipEntry") -> tuple[list[str], str]:
    """The documents behind both ends, and the less sure of their confidences."""
    sources = sorted({*lowest.get("source", ()), *highest.get("source", ())})
    sure = (chip.get("confidence", "vendor") for chip in (lowest, highest))
    return sources, max(*sure, "derived", key=CONFIDENCES.index)


def _ends(data: "Data", chip: "ChipEntry") -> "dict[str, Ends]":
    """What a SoC reaches at the lowest and the highest clock that its entry has."""
    arch = data.archs.get(chip.get("arch", ""))
    clock = chip["clock"]
    low = _lowest(chip)
    mega = chip["units"] / 1e6
    rates = arch.get("rates", {}) if arch else {}
    return {
        rate: (mega * operations * low, mega * operations * clock["boost"])
        for rate, operations in rates.items()
    }


def _override(
    rate: str, low: float, high: float, lowest: "ChipEntry", highest: "ChipEntry"
) -> "OverrideEntry":
    sources, confidence = _origin(lowest, highest)
    return {
        "rate": rate,
        "tflops": round(high, 6),
        "low": round(low, 6),
        "reason": f"the SoCs of the table with this design, {lowest['name']} to {highest['name']}",
        "source": ", ".join(sources),
        "confidence": confidence,
    }
