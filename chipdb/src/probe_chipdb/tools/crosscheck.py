"""Holds what the formula gives against what the vendor publishes: they agree, or say why."""

from probe_chipdb.chip_peaks import TOLERANCE
from probe_chipdb.entry.problem import Problem
from probe_chipdb.peaks import Peak, find
from probe_chipdb.row import CHIP, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.database import Database
    from probe_chipdb.entry.types import ChipEntry
    from probe_chipdb.entry.validate import Data

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it


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


def figures(db: "Database", id_: str) -> "Iterator[Figure]":
    """Every published figure of a chip for which there is a derived one or an override."""
    chip = db.chip(id_)
    if chip is None:
        return
    for rate, sparsity, value, _, clock, *_ in parts(chip.raw(CHIP.index("published"))):
        mhz = {"base": chip.clock.base, "low": chip.clock.boost_low}.get(clock)
        peaks = chip.peaks(clock_mhz=mhz, clock_source=clock) if mhz else chip.peaks()
        peak = find(peaks, rate, sparsity)
        if peak is not None and peak.basis != "published":
            yield Figure(rate, sparsity, float(value), peak.tflops)


def problems(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Unexplained differences, sparse figures in dense slots, and rates that the path lacks."""
    for id_, entry in data.chips.items():
        chip = db.chip(id_)
        peaks = chip.peaks() if chip else ()
        for fault in (*_differences(entry, figures(db, id_)), *_absent(entry, peaks)):
            yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", *fault)


def _differences(entry: "ChipEntry", compared: "Iterator[Figure]") -> "Iterator[Fault]":
    for figure in compared:
        if not figure.near and figure.rate not in entry.get("explain", {}):
            yield f'published "{figure.rate}" {figure.sparsity}', *_difference(figure)


def _difference(figure: Figure) -> tuple[str, str]:
    """The difference, and the slip that would make one of this size."""
    fault = (
        f"published {figure.published:g} but units x rate x clock gives {figure.derived:.4g} "
        f"({figure.error:+.1%})"
    )
    ratio = figure.published / figure.derived
    if figure.sparsity == "dense" and 1.94 <= ratio <= 2.06:
        return fault, 'twice as much is the sparse figure: write sparsity = "sparse", or halve it'
    for factor in (1000, 0.001):
        if 0.97 <= ratio / factor <= 1.03:
            return fault, f"a slip of x{factor:g}: write TFLOPS (TOPS), not G or P"
    return fault, "correct units, clock or rate, or say why in explain"


def _absent(entry: "ChipEntry", peaks: tuple[Peak, ...]) -> "Iterator[Fault]":
    """A published figure for a path that the architecture does not have."""
    derived = {peak.rate for peak in peaks if peak.basis != "published"}
    for figure in entry.get("published", ()) if derived else ():
        if figure["rate"] not in derived and figure["rate"] not in entry.get("explain", {}):
            yield (
                f'published "{figure["rate"]}"',
                "the architecture has no such rate",
                "use the rate key of the architecture, add an override, or explain it",
            )
