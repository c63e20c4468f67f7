"""Other tables of peaks held against the data: those in `compare/`, or anybody's (`audit`)."""

import csv
import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator

from probe_chipdb.chip import Chip
from probe_chipdb.chip_peaks import TOLERANCE, find, natural_accumulator
from probe_chipdb.database import Database
from probe_chipdb.entry.files import Refused, read_text
from probe_chipdb.peaks import Peak

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


# Holds other projects' tables of peaks against the data: each entry agrees, or says why not.
#
# A file of `compare/` has [table] with `title`, `version`, `ref`, `licence`, `rate` and `about`,
# and one [[entry]] per line of the other table: `key`, `tflops`, `chip` (one id or several), `why`.


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


def read_others(db: Database, folder: str) -> list[Other]:
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


# `compare FOLDER`: the page that holds other projects' tables against the data.


def compare_page(db: Database, folder: str) -> Iterator[str]:
    """Markdown: each table with its counts, then each entry. Raises OSError and ValueError."""
    yield "# Other tables of peaks"
    yield ""
    yield (
        "Each entry of a table that other projects keep, beside ours. TFLOPS, dense, per device as "
        "the operating system shows it; within 3 % it agrees."
    )
    for other in read_others(db, folder):
        yield from _table(other)


def unexplained(db: Database, folder: str) -> list[str]:
    """The entries that neither agree nor are explained, as "title: key"."""
    return [
        f"{other.head['title']}: {line.key}"
        for other in read_others(db, folder)
        for line in other.lines
        if line.verdict == "differs"
    ]


def _table(other: Other) -> Iterator[str]:
    head = other.head
    counts = Counter(line.verdict for line in other.lines)
    yield ""
    yield f"## {head['title']}"
    yield ""
    yield f"{head['ref']}, {head['version']} ({head['licence']}). {head['about']}"
    if not other.lines:
        return
    shares = ", ".join(f"{counts[key]} {key}" for key in ("agrees", "explained", "differs"))
    yield ""
    yield f"{len(other.lines)} entries, compared as `{head['rate']}`: {shares}."
    yield ""
    yield "| entry | theirs | ours | |"
    yield "| --- | --- | --- | --- |"
    for line in other.lines:
        yield f"| {line.key} | {line.theirs} | {line.ours} | {line.text or line.verdict} |"


# `audit TABLE`: names each figure of somebody's own table that differs from ours, with sources.
#
# For the tables of peaks that training frameworks keep: JSON (name to number, or a list of
# objects), CSV with a header, or TOML. A name that means several products agrees if one of them has
# the figure.

MAX_BYTES = 4 * 2**20
MAX_ROWS = 20_000  # ten times the chips of the table
_NAMES = ("name", "gpu", "device", "chip", "id", "accelerator")
_VALUES = ("tflops", "peak", "flops", "value", "peak_tflops", "bf16", "fp16")


class Unreadable(ValueError):
    """A table that cannot be compared: which, why, and what would do, in a sentence."""


class Row:
    """One name with a figure in TFLOPS; None where the table has something else there."""

    __slots__ = ("_text", "name", "tflops")

    def __init__(self, name: str, tflops: float | None, text: str = "") -> None:
        self.name = name
        self.tflops = tflops
        self._text = text

    @property
    def line(self) -> int:
        """The first line of the file with the name alone, or 0.

        "RTX 4090" is not rows in "RTX 4090 D".
        """
        at = self._text.find(f'"{self.name}"')
        at = self._text.find(self.name) if at < 0 else at
        return 0 if at < 0 else self._text.count("\n", 0, at) + 1


class Verdict:
    """What is to be said of a row.

    kind: "agrees", "differs", "unknown", "no figure" of ours, or "no number" of theirs.
    """

    __slots__ = ("kind", "row", "sentence")

    def __init__(self, kind: str, row: Row, sentence: str) -> None:
        self.kind = kind
        self.row = row
        self.sentence = sentence


def rows(path: str, name_column: str = "", value_column: str = "", scale: float = 1.0) -> list[Row]:
    """The rows of a table that have a figure; see `table`."""
    return [
        row for row in table_of(path, name_column, value_column, scale) if row.tflops is not None
    ]


def table_of(
    path: str, name_column: str = "", value_column: str = "", scale: float = 1.0
) -> list[Row]:
    """Every row of a table; figures x scale are TFLOPS (1e-12 for a table in FLOPS).

    Raises Unreadable for a file that is no table, and OSError.
    """
    try:
        text = read_text(path, MAX_BYTES)
    except Refused as refusal:
        raise Unreadable(str(refusal)) from None
    rows = []
    for name, value in _pairs(path, text, name_column, value_column):
        rows.append(Row(name, None if value is None else value * scale, text))
        if len(rows) > MAX_ROWS:
            raise Unreadable(f"{path} has more than {MAX_ROWS} rows; name the table itself")
    if all(row.tflops is None for row in rows):
        columns = f"{', '.join(_NAMES)} and {', '.join(_VALUES)}"
        raise Unreadable(f"{path} has no names with numbers; name the columns (known: {columns})")
    return rows


def _pairs(path: str, text: str, name: str, value: str) -> Iterator[tuple[str, float | None]]:
    if path.endswith((".csv", ".tsv")):
        delimiter = "\t" if path.endswith(".tsv") else ","
        yield from _records(csv.DictReader(text.splitlines(), delimiter=delimiter), name, value)
        return
    try:
        if path.endswith(".toml"):
            import tomllib

            content: object = tomllib.loads(text)
        else:
            content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path} cannot be read: {error}; give JSON, CSV or TOML") from None
    yield from _tree(content, name, value)


def _tree(
    content: object, name: str, value: str, depth: int = 0
) -> Iterator[tuple[str, float | None]]:
    """Names to numbers, names to tables with one, and lists of such tables, a few levels deep."""
    if isinstance(content, list):
        yield from _records((item for item in content if isinstance(item, dict)), name, value)
    elif isinstance(content, dict):
        for key, item in content.items():
            number = _number(item)
            if number is None and isinstance(item, dict):
                number = _first(item, value, _VALUES)
            if number is not None or not isinstance(item, dict | list):
                yield str(key), number
            elif depth < 3:
                yield from _tree(item, name, value, depth + 1)


def _records(
    records: "Iterable[dict[str, object]]", name: str, value: str
) -> Iterator[tuple[str, float | None]]:
    for record in records:
        label = next((record[key] for key in (name, *_NAMES) if record.get(key)), None)
        number = _first(record, value, _VALUES)
        if isinstance(label, str):
            yield label, number


def _first(record: "dict[str, object]", chosen: str, known: tuple[str, ...]) -> float | None:
    keys = (chosen,) if chosen else known
    figures = (_number(record.get(key)) for key in keys)
    return next((figure for figure in figures if figure is not None), None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 < number < float("inf") else None


def audit(
    db: Database, rows: Iterable[Row], dtype: str, sparsity: str, path: str, within: float
) -> Iterator[Verdict]:
    """The verdict on each row. within: how far a figure may be off, as a share."""
    rate = f"{dtype}.{path}.{natural_accumulator(dtype, path)}"
    for row in rows:
        match = db.match(name=row.name)
        chips = (match.chip,) if match.chip else match.candidates
        if row.tflops is None:
            if chips:  # "licence": "MIT" is no row of the table
                yield Verdict("no number", row, "the table has no positive number there")
            continue
        if not chips:
            yield Verdict("unknown", row, match.reason or "no chip of the table")
            continue
        figures = {chip.id: find(chip.peaks(), rate, sparsity) for chip in chips}
        yield _verdict(row, row.tflops, chips, figures, f"{sparsity} {rate}", within)


def _verdict(
    row: Row,
    tflops: float,
    chips: tuple[Chip, ...],
    figures: "dict[str, Peak | None]",
    label: str,
    within: float,
) -> Verdict:
    known = [(chip, peak) for chip in chips if (peak := figures[chip.id])]
    if not known:
        ids = ", ".join(chip.id for chip in chips[:4])
        return Verdict("no figure", row, f"{ids}: chipdb has no {label} figure")
    for chip, peak in known:
        low = peak.tflops if peak.low is None else peak.low
        if (1 - within) * low <= tflops <= (1 + within) * peak.tflops:
            return Verdict("agrees", row, f"{chip.id}: {peak.tflops:.4g} TFLOPS")
    shown = "; ".join(f"{chip.id}: {_audit_shown(peak)}" for chip, peak in known[:4])
    return Verdict("differs", row, f"{tflops:.4g} TFLOPS, but {label} is {shown}")


def _audit_shown(peak: Peak) -> str:
    low = f"{peak.low:.4g} to " if peak.low is not None else ""
    return f"{low}{peak.tflops:.4g} TFLOPS ({peak.source})"


def report(path: str, verdicts: Iterable[Verdict], annotate: bool) -> Iterator[str]:
    """One line a disagreement; annotate: in the form that a GitHub workflow shows at the line."""
    counts = dict.fromkeys(("agrees", "differs", "unknown", "no figure"), 0)
    for verdict in verdicts:
        counts[verdict.kind] = counts.get(verdict.kind, 0) + 1
        if verdict.kind == "agrees":
            continue
        text = f"{verdict.row.name}: {verdict.sentence}"
        if annotate:
            level = "error" if verdict.kind == "differs" else "notice"
            escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
            yield f"::{level} file={path},line={max(verdict.row.line, 1)}::{escaped}"
        else:
            yield f"{path}:{verdict.row.line}: {verdict.kind}: {text}"
    yield ", ".join(f"{count} {kind}" for kind, count in counts.items())
