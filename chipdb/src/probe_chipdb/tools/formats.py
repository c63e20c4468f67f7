"""What the check holds the matrix of number formats to: one row a cell, each with a source."""

from probe_chipdb.entry.spec import Problem
from probe_chipdb.formats import BY, HARDWARE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.entry.formats import FormatRow
    from probe_chipdb.entry.validate import Data

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it


def format_problems(data: "Data") -> "Iterator[Problem]":
    """Yield rows without words, of unknown architectures, and such as contradict others."""
    taken: dict[tuple[str, str, str], int] = {}
    if not data.formats.rows:
        return
    if data.rules.base is None:
        for by in (by for by in BY if by not in data.formats.unknown):
            sentence = "a cell without a row has no reason"
            yield Problem("formats", "[unknown]", by, sentence, "say why such a cell is not known")
    elif data.formats.unknown:
        sentence = "the reasons for cells without a row are the project's"
        yield Problem("formats", "[unknown]", "", sentence, "remove it; a row may be `unknown`")
    for at, row in enumerate(data.formats.rows, 1):
        for fault in (*_faults(row, data), *_overlaps(row, data, at, taken)):
            yield Problem("formats", f"row {at}, {', '.join(row['formats'])}", *fault)


def _faults(row: "FormatRow", data: "Data") -> "Iterator[Fault]":
    if ("state" in row) == ("unknown" in row):
        yield "state", "a row has a state, or a reason why it is unknown", "give one of them"
    source = data.sources.get(row.get("source", ""))
    if "state" in row and not (source and row.get("at") and row.get("quote")):
        yield "source", "has no source, place and words", "give source, at and quote"
    elif source and not ("url" in source and "date" in source):
        yield "source", f"{row['source']!r} has no url or date", "say where and when it was read"
    if row.get("by", HARDWARE) == HARDWARE and ("since" in row or "seen" in row):
        yield "since", "hardware has no release", "remove it, or name the program in by"
    for arch in data.formats.archs(row):
        if arch not in data.archs:
            yield "archs", f"{arch!r} is unknown", "write an architecture, or a name of [group]"
        else:
            yield from _contradicted(row, arch, data)


def _contradicted(row: "FormatRow", arch: str, data: "Data") -> "Iterator[Fault]":
    """A hardware row against the rates of its architecture: an absent format has none."""
    rates = {rate.partition(".")[0] for rate in data.archs[arch].get("rates", ())}
    if row.get("by", HARDWARE) != HARDWARE or not rates or "state" not in row:
        return
    for name in row["formats"]:
        dtype = name.partition("-")[0]
        is_rated = dtype in rates and not name.endswith("fnuz")
        if row["state"] != "native" and is_rated:
            fault = f"{arch} has rates of {dtype}, and {name} is {row['state']!r}"
            yield "state", fault, "correct one of the two"


def _overlaps(
    row: "FormatRow", data: "Data", at: int, taken: dict[tuple[str, str, str], int]
) -> "Iterator[Fault]":
    by = row.get("by", HARDWARE)
    for arch in data.formats.archs(row):
        for name in row["formats"]:
            if (other := taken.setdefault((by, arch, name), at)) != at:
                yield "formats", f"{name} of {arch} is in row {other} too", "leave it in one"
