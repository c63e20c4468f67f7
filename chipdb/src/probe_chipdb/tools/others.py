"""Holds other projects' tables of peaks against the data: each entry agrees, or says why not.

A file of `compare/` has [table] with `title`, `version`, `ref`, `licence`, `rate` and `about`, and
one [[entry]] per line of the other table: `key`, `tflops`, `chip` (one id or several), `why`.
"""

import os
import tomllib
from collections.abc import Iterator

from probe_chipdb.chip import Chip
from probe_chipdb.chip_peaks import TOLERANCE
from probe_chipdb.database import Database
from probe_chipdb.peaks import Peak, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class EntryToml(TypedDict):
        """One line of another project's table; tflops as it stands there."""

        key: str
        tflops: NotRequired[float]
        chip: NotRequired[list[str]]
        why: NotRequired[str]

    class TableToml(TypedDict):
        """The head of a file: whose table it is, of which version, and what it means."""

        title: str
        version: str
        ref: str
        licence: str
        rate: str
        about: str


class Line:
    """One entry beside ours. verdict: "agrees", "explained" or "differs"."""

    __slots__ = ("key", "ours", "text", "theirs", "verdict")

    def __init__(self, key: str, theirs: str, ours: str, verdict: str, text: str) -> None:
        self.key = key
        self.theirs = theirs
        self.ours = ours
        self.verdict = verdict
        self.text = text


class Other:
    """One table of another project, and its lines."""

    __slots__ = ("head", "lines")

    def __init__(self, head: "TableToml", lines: list[Line]) -> None:
        self.head = head
        self.lines = lines


def read(db: Database, folder: str) -> list[Other]:
    """Every table of a folder, by file name. Raises OSError and ValueError (no TOML)."""
    others = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".toml"):
            with open(os.path.join(folder, name), "rb") as file:
                data = tomllib.load(file)
            entries = data.get("entry", [])
            lines = [_line(db, entry, data["table"]["rate"]) for entry in entries]
            others.append(Other(data["table"], lines))
    return others


def _line(db: Database, entry: "EntryToml", rate: str) -> Line:
    chips = [chip for id_ in entry.get("chip", ()) if (chip := db.chip(id_))]
    theirs, why = entry.get("tflops"), entry.get("why", "")
    shown = "none" if theirs is None else f"{theirs:g}"
    ours = ", ".join(dict.fromkeys(_shown(chip, rate) for chip in chips)) or "none"
    if theirs is not None and chips:
        for verdict, text in _verdicts(chips, rate, theirs):
            return Line(entry["key"], shown, ours, verdict, f"{text}. {why}".strip(". ") + ".")
    return Line(entry["key"], shown, ours, "explained" if why else "differs", why)


def _verdicts(chips: list[Chip], rate: str, theirs: float) -> Iterator[tuple[str, str]]:
    """What the figure is, the best reading first; nothing where no reading fits."""
    for chip in chips:
        if (peak := find(chip.peaks(), rate)) and _near(peak.tflops, theirs):
            yield "agrees", f"`{chip.id}`"
    for chip in chips:
        peak = find(chip.peaks(), rate)
        if peak and chip.boards > 1 and _near(peak.tflops * chip.boards, theirs):
            yield "explained", f"of the board with its {chip.boards} devices: `{chip.id}`"
        if peak and _in_range(peak, theirs):
            yield "explained", f"inside the range that the part is sold with: `{chip.id}`"
    for chip in chips:
        yield from _other_kind(chip, theirs)


def _other_kind(chip: Chip, theirs: float) -> Iterator[tuple[str, str]]:
    """The peaks of another kind that the figure is, those of one value first."""
    peaks = chip.peaks()
    for peak in peaks:
        if _near(peak.tflops, theirs):
            yield "explained", f"our {peak.rate} {peak.sparsity}: `{chip.id}`"
    for peak in peaks:
        if _in_range(peak, theirs):
            yield "explained", f"inside the range of our {peak.rate} {peak.sparsity}: `{chip.id}`"


def _near(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= TOLERANCE * theirs


def _in_range(peak: Peak, theirs: float) -> bool:
    low, high = peak.low, peak.tflops
    return low is not None and low * (1 - TOLERANCE) <= theirs <= high * (1 + TOLERANCE)


def _shown(chip: Chip, rate: str) -> str:
    peak = find(chip.peaks(), rate)
    if peak is None:
        return "unknown"
    low = f"{peak.low:.4g} to " if peak.low else ""
    return f"{low}{peak.tflops:.4g}"
