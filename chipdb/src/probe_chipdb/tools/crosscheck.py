"""Holds what the formula gives against what the vendor publishes: they agree, or say why."""

from collections.abc import Iterator
from typing import Any

from probe_chipdb.chip_peaks import TOLERANCE
from probe_chipdb.database import Database
from probe_chipdb.entry.judge import Data
from probe_chipdb.entry.problem import Problem
from probe_chipdb.peaks import Peak, find
from probe_chipdb.row import CHIP, parts


class Figure:
    """One published figure beside the derived one."""

    __slots__ = ("derived", "published", "rate", "sparsity")

    def __init__(self, rate: str, sparsity: str, published: float, derived: float) -> None:
        self.rate = rate
        self.sparsity = sparsity
        self.published = published
        self.derived = derived

    @property
    def error(self) -> float:
        """Derived against published, as a fraction of the published figure."""
        return self.derived / self.published - 1

    @property
    def near(self) -> bool:
        """Within the tolerance."""
        return abs(self.error) <= TOLERANCE


def figures(db: Database, id_: str) -> Iterator[Figure]:
    """Every published figure of a chip for which there is a derived one or an override."""
    chip = db.chip(id_)
    if chip is None:
        return
    for rate, sparsity, value, _, clock in parts(chip.raw(CHIP.index("published"))):
        peaks = (
            chip.peaks(clock_mhz=chip.clock.base, clock_source="base")
            if clock == "base"
            else chip.peaks()
        )
        peak = find(peaks, rate, sparsity)
        if peak is not None and not peak.source.startswith("published"):
            yield Figure(rate, sparsity, float(value), peak.tflops)


def problems(data: Data, db: Database) -> Iterator[Problem]:
    """Unexplained differences, sparse figures in dense slots, and rates that the path lacks."""
    for id_, entry in data.chips.items():
        file, shown = data.where[f"chip:{id_}"], f"chip {id_!r}"
        for figure in figures(db, id_):
            if not figure.near and figure.rate not in _explained(entry):
                yield Problem(
                    file, shown, f'published "{figure.rate}" {figure.sparsity}', *_reason(figure)
                )
        chip = db.chip(id_)
        yield from _absent(file, shown, entry, chip.peaks() if chip else ())


def _explained(entry: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = entry.get("explain", {})
    return found


def _reason(figure: Figure) -> tuple[str, str]:
    what = (
        f"published {figure.published:g} but units x rate x clock gives {figure.derived:.4g} "
        f"({figure.error:+.1%})"
    )
    ratio = figure.published / figure.derived
    if figure.sparsity == "dense" and 1.94 <= ratio <= 2.06:
        return what, 'twice as much is the sparse figure: write sparsity = "sparse", or halve it'
    for factor in (1000, 0.001):
        if 0.97 <= ratio / factor <= 1.03:
            return what, f"a slip of x{factor:g}: write TFLOPS (TOPS), not G or P"
    return what, "mend units, clock or rate, or say why in explain"


def _absent(
    file: str, shown: str, entry: dict[str, Any], peaks: tuple[Peak, ...]
) -> Iterator[Problem]:
    """A published figure for a path that the architecture does not have."""
    derived = {peak.rate for peak in peaks if not peak.source.startswith("published")}
    if not derived:
        return
    for item in entry.get("published", ()):
        if item["rate"] not in derived and item["rate"] not in _explained(entry):
            yield Problem(
                file,
                shown,
                f'published "{item["rate"]}"',
                "the architecture has no such rate",
                "use the rate key of the architecture, add an override, or explain it",
            )
