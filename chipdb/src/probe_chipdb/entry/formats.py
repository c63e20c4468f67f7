"""What the files of number formats say: groups of architectures, and rows of cells."""

from typing import Required, TypedDict, cast

from probe_chipdb.formats import COLUMNS, FORMATS, HARDWARE
from probe_chipdb.table import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_chipdb.entry.fields import ArchEntry


class FormatRow(TypedDict, total=False):
    """Some formats of some architectures, by the hardware or (`by`) in a program."""

    by: str
    archs: Required[list[str]]
    formats: Required[list[str]]
    state: str
    since: str
    seen: str
    source: str
    at: str
    quote: str
    unknown: str


class FormatFiles:
    """What all files say. unknown: the reason for a cell without a row, by who would have it."""

    __slots__ = ("groups", "rows", "unknown")

    def __init__(self) -> None:
        self.groups: dict[str, list[str]] = {}
        self.rows: list[FormatRow] = []
        self.unknown: dict[str, str] = {}

    def add(self, key: str, value: object) -> None:
        """One table of a file that the specification has checked."""
        if key == "group":
            self.groups.update(cast("dict[str, list[str]]", value))
        elif key == "unknown":
            self.unknown.update(cast("dict[str, str]", value))
        else:
            self.rows += cast("list[FormatRow]", value)

    def archs(self, row: FormatRow) -> list[str]:
        """The architectures of a row, those of its groups among them."""
        return [arch for name in row["archs"] for arch in self.groups.get(name, [name])]

    def compiled(self, archs: "Mapping[str, ArchEntry]") -> str:
        """The text of the built table; last come the formats that have rates."""
        lines = [_line(row, self.archs(row)) for row in self.rows]
        lines += [_line(row, row["archs"]) for row in rated(archs)]
        lines += [f"{by}{chr(9) * 9}{escape(reason)}" for by, reason in self.unknown.items()]
        return "".join(f"{line}\n" for line in lines)


_OF_CPUS = {"isa", "cpuid", "midr", "brand", "generic"}
"""Fields of the architectures of processor cores, whose formats depend on their flags."""


def rated(archs: "Mapping[str, ArchEntry]") -> "Iterator[FormatRow]":
    """Yield what rates say: an architecture is native in the formats that have one.

    Not in fp8, which does not tell whose.
    """
    for name, arch in archs.items():
        formats = {rate.partition(".")[0] for rate in arch.get("rates", ())}
        known = [text for text in FORMATS if text in formats]
        if known and not _OF_CPUS.intersection((*arch, *arch.get("match", ()))):
            yield {
                "archs": [name],
                "formats": known,
                "state": "native",
                "source": ", ".join(arch["source"]),
                "at": "rates of the architecture",
            }


def _line(row: FormatRow, archs: list[str]) -> str:
    values = {**row, "by": row.get("by", HARDWARE), "is": row.get("state", "")}
    values |= {"archs": "|".join(archs), "formats": "|".join(row["formats"])}
    fixed = ("archs", "formats")
    texts = (str(values.get(name, "")) for name in COLUMNS)
    pairs = zip(COLUMNS, texts, strict=True)
    return "\t".join(text if name in fixed else escape(text) for name, text in pairs)
