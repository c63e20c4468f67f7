"""`notes OLD NEW`: the notes of a calendar release, written from the difference of the data."""

import re
from collections import Counter
from collections.abc import Iterator

from probe_chipdb.chip import Chip
from probe_chipdb.database import Database
from probe_chipdb.tools import diff

_MOST = 12  # names in one line; the list of all is what `diff` prints


def release(old: Database, new: Database, version: str) -> Iterator[str]:
    """Markdown: heading, counts, chips by vendor, corrected figures, the whole difference."""
    before = {chip.id: chip for chip in old.chips()}
    after = {chip.id: chip for chip in new.chips()}
    yield f"## {version}"
    yield ""
    yield f"- {_total(after)} (before: {_total(before)})."
    added = [after[id_] for id_ in sorted(after.keys() - before.keys())]
    yield from _by_vendor("New", added)
    known = [after[id_] for id_ in sorted(after.keys() & before.keys())]
    yield from _by_vendor(
        "Figures now known",
        [chip for chip in known if chip.peaks() and not before[chip.id].peaks()],
    )
    yield from _by_vendor(
        "Figures corrected", [chip for chip in known if _corrected(before[chip.id], chip)]
    )
    yield ""
    yield from diff.diff(old, new)


def next_version(previous: str, year: int, month: int) -> str:
    """The month of the data and a counter: 2026.11.0, then 2026.11.1 in the same month.

    >>> next_version("2026.11.0", 2026, 11), next_version("2026.11.3", 2026, 12)
    ('2026.11.1', '2026.12.0')
    """
    match = re.fullmatch(r"(\d{4})\.(\d{1,2})\.(\d+)", previous)
    if match and (int(match[1]), int(match[2])) == (year, month):
        return f"{year}.{month}.{int(match[3]) + 1}"
    return f"{year}.{month}.0"


def _total(chips: dict[str, Chip]) -> str:
    return f"{len(chips)} chips, {sum(bool(chip.peaks()) for chip in chips.values())} with figures"


def _by_vendor(title: str, chips: list[Chip]) -> Iterator[str]:
    for vendor, count in sorted(Counter(chip.vendor for chip in chips).items()):
        names = [chip.name for chip in chips if chip.vendor == vendor]
        rest = f" and {count - _MOST} more" if count > _MOST else ""
        yield f"- {title}, {vendor} ({count}): {', '.join(names[:_MOST])}{rest}."


def _corrected(old: Chip, new: Chip) -> bool:
    """Whether a figure that both have differs by more than a rounding."""
    had = {(peak.rate, peak.sparsity): peak.tflops for peak in old.peaks()}
    has = {(peak.rate, peak.sparsity): peak.tflops for peak in new.peaks()}
    return any(abs(has[key] - had[key]) > 1e-3 * had[key] for key in had.keys() & has.keys())
