"""`diff OLD NEW`: what a release changes for those who use the figures, not which lines moved."""

import os
import re
from collections import Counter
from collections.abc import Iterator

from probe_chipdb import table
from probe_chipdb.chip import Chip
from probe_chipdb.database import Database
from probe_chipdb.entry.files import read_folder
from probe_chipdb.entry.pack import to_table
from probe_chipdb.peaks import Arch
from probe_chipdb.table import CHIP, CLOCK, MEMORY, unescape

_SKIPPED = ("id", "published", "override", "explain")  # they show in the peaks
_LISTS = ("pci", "dt", "gpu_id", "aliases", "source")


def open_data(path: str) -> Database:
    """A data folder or a built table folder as a database. Raises OSError when it is neither."""
    if os.path.exists(os.path.join(path, "index.txt")):
        return Database(table.from_folder(path))
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    return Database(to_table(read_folder(path), path, ""))


def diff(old: Database, new: Database) -> Iterator[str]:
    """Markdown lines: added, removed and changed chips, then architectures."""
    before = {chip.id: chip for chip in old.chips()}
    after = {chip.id: chip for chip in new.chips()}
    yield from _section("Added", [_named(after[id_]) for id_ in after.keys() - before.keys()])
    yield from _section("Removed", [_named(before[id_]) for id_ in before.keys() - after.keys()])
    ids = sorted(before.keys() & after.keys())
    changed = [(id_, list(_changes(before[id_], after[id_]))) for id_ in ids]
    yield from _section(
        "Changed", [f"{id_}: {'; '.join(lines)}" for id_, lines in changed if lines]
    )
    yield from _section("Architectures", list(_arch_changes(old, new)))


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"### {title} ({len(lines)})"
        yield from (f"- {line}" for line in sorted(lines))


def _named(chip: Chip) -> str:
    return f"{chip.id}: {chip.name}"


def _changes(old: Chip, new: Chip) -> Iterator[str]:
    for at, column in enumerate(CHIP):
        # An older table has fewer parts, and a written one no empty parts at its end.
        before, after = old.fields[at].rstrip(";"), new.fields[at].rstrip(";")
        if column not in _SKIPPED and before != after:
            yield f"{column} {_change(column, before, after)}"
    yield from _peak_changes(old, new)


def _change(column: str, before: str, after: str) -> str:
    if column in _LISTS:
        had, has = set(before.split("|")) - {""}, set(after.split("|")) - {""}
        signs = [f"+{item}" for item in sorted(has - had)] + [
            f"-{item}" for item in sorted(had - has)
        ]
        return " ".join(signs) or "reordered"
    return f"{_shown(column, before)} -> {_shown(column, after)}"


def _shown(column: str, text: str) -> str:
    names = {"clock": CLOCK, "memory": MEMORY}.get(column)
    if not names or not text:
        return unescape(text) or "unknown"
    pairs = zip(names, text.split(";"), strict=False)  # an older table has fewer parts
    return ", ".join(f"{name} {unescape(value)}" for name, value in pairs if value)


def _peak_changes(old: Chip, new: Chip) -> Iterator[str]:
    before = {(peak.rate, peak.sparsity): peak.tflops for peak in old.peaks()}
    after = {(peak.rate, peak.sparsity): peak.tflops for peak in new.peaks()}
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        name = " ".join(key)
        if was is None or now is None:
            yield f"{name} {'now' if was is None else 'no longer'} known"
        elif abs(now - was) > 1e-9 * was:
            yield f"{name} {was:.4g} -> {now:.4g} T ({now / was - 1:+.1%})"


def _arch_changes(old: Database, new: Database) -> Iterator[str]:
    before = {arch.id: arch for arch in old.archs()}
    after = {arch.id: arch for arch in new.archs()}
    for id_ in sorted(before.keys() | after.keys()):
        if id_ not in before or id_ not in after:
            yield f"{id_} {'added' if id_ in after else 'removed'}"
        else:
            yield from _rate_changes(before[id_], after[id_])


def _rate_changes(old: Arch, new: Arch) -> Iterator[str]:
    for key in sorted(old.rates.keys() | new.rates.keys()):
        was, now = old.rates.get(key), new.rates.get(key)
        if was != now:
            shown = ["unknown" if value is None else f"{value:g}" for value in (was, now)]
            yield f"{new.id}: {key} {shown[0]} -> {shown[1]} per clock and {new.unit}"


# `notes OLD NEW`: the notes of a calendar release, written from the difference of the data.

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
    yield from diff(old, new)


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
