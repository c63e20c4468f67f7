"""`pages OUT`: one page per family for people who look a chip up, written from the data alone."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from probe_chipdb.chip import Chip
from probe_chipdb.chip_peaks import reason
from probe_chipdb.database import Database
from probe_chipdb.table import CHIP, parts
from probe_chipdb.tools import compare
from probe_chipdb.tools.writing import replace_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.peaks import Arch


# `missing`: which chips have no figures, and why, as Markdown written from the data alone.

_NO_PRODUCT = ("vgpu", "design", "unbuilt", "unsold")


def figureless(db: Database) -> list[Chip]:
    """The chips without a single peak, by vendor and id."""
    return sorted((chip for chip in db.chips() if not chip.peaks()), key=lambda chip: chip.id)


def is_product(chip: Chip) -> bool:
    """Whether the entry is sold: no virtual GPU, no licensed design, no sample."""
    return chip.unknown not in _NO_PRODUCT


def missing_page(db: Database) -> Iterator[str]:
    """The counts of each vendor, then each chip with the fact that is missing and the reason."""
    chips = figureless(db)
    yield "# Chips without figures"
    yield ""
    yield (
        f"{len(chips)} of {len(db.chips())} chips have no peak. A virtual GPU, a design that "
        "others build, and a sample are no products."
    )
    yield ""
    yield from _counts(db, chips)
    for vendor in sorted({chip.vendor for chip in chips}):
        yield ""
        yield f"## {vendor}"
        yield ""
        yield "| chip | units | missing | reason |"
        yield "| --- | --- | --- | --- |"
        yield from (_row(chip) for chip in chips if chip.vendor == vendor)


def _counts(db: Database, chips: list[Chip]) -> Iterator[str]:
    total, without = _by_vendor(db.chips()), _by_vendor(chips)
    products = _by_vendor(chip for chip in chips if is_product(chip))
    yield "| vendor | chips | without figures | of these products |"
    yield "| --- | --- | --- | --- |"
    for vendor, count in sorted(without.items()):
        yield f"| {vendor} | {total[vendor]} | {count} | {products[vendor]} |"


def _by_vendor(chips: Iterable[Chip]) -> Counter[str]:
    return Counter(chip.vendor for chip in chips)


def _row(chip: Chip) -> str:
    arch = _arch(chip)
    return (
        f"| {chip.name}<br>`{chip.id}` | {counted(chip)} | {_fact(chip)} | {reason(chip, arch)} |"
    )


def counted(chip: Chip) -> str:
    """The units, or the fewest and the most of an entry that parts of several counts share."""
    span = chip.units_range
    count = f"{span[0]}-{span[1]}" if span else str(chip.units or "")
    return f"{count} {chip.unit or ''}".strip() if count else ""


def _arch(chip: Chip) -> "Arch | None":
    return chip._db.arch(chip.arch) if chip.arch else None


def _fact(chip: Chip) -> str:
    """What the derivation lacks, in one or two words each."""
    arch = _arch(chip)
    facts = [
        "rates" if arch is None or not arch.rates else "",
        "" if counted(chip) else "units",
        "clock" if not (chip.clock.boost or chip.clock.game or chip.clock.base) else "",
    ]
    return ", ".join(filter(None, facts)) or "the vendor's limit"


# `unread`: the documents that wait for a reader, each with the figures that rest on a memory of it.


def unread_page(db: Database) -> Iterator[str]:
    """Markdown: recalled figures by document, the documents of the newest products first."""
    waiting: dict[str, list[tuple[int, str]]] = {}
    for chip in db.chips():
        for key, figure in _recalled(chip):
            line = f"{chip.name} (`{chip.id}`, {chip.year or 'year unknown'}): {figure}"
            waiting.setdefault(key, []).append((chip.year or 0, line))
    yield "# Figures that wait for a reader"
    yield ""
    figures = sum(map(len, waiting.values()))
    yield (
        f"{figures} figures in {len(waiting)} documents are recalled: nobody has read them there. "
        "Who opens a document enters address, date and words; docs/format.md says how."
    )
    for key in sorted(waiting, key=lambda key: (-max(waiting[key])[0], -len(waiting[key]), key)):
        source = db.source(key) or {}
        yield ""
        yield f"## {source.get('publisher', key)}: {source.get('title', key)}"
        yield ""
        yield f"`{key}`, {source.get('ref', '')}"
        yield ""
        ordered = sorted(waiting[key], key=lambda item: (-item[0], item[1]))
        yield from (f"- [ ] {line}" for _, line in ordered)


def _recalled(chip: Chip) -> Iterator[tuple[str, str]]:
    """The source and the wording of each figure that the vendor states and nobody read."""
    read = {(rate, sparsity) for rate, sparsity, *_ in chip.reads}
    published = {
        (rate, sparsity, tflops, source)
        for (rate, sparsity), (tflops, source) in chip.published.items()
    }
    for rate, sparsity, tflops, source in sorted(published):
        if (rate, sparsity) not in read and not _is_quoted(chip, source):
            yield source, f"{sparsity} {rate} {tflops:g}"
    for row in parts(chip.fields[CHIP.index("override")]):
        rate, sparsity, value, _, source, confidence, *_ = row
        if value and confidence == "recalled":
            yield source, f"{sparsity} {rate} {float(value):g}"


def _is_quoted(chip: Chip, source: str) -> bool:
    return (chip._db.source(source) or {}).get("status") == "third-party-read"


_COLUMNS = (  # heading, rate key
    ("fp32", "fp32.vector.fp32"),
    ("bf16 matrix", "bf16.matrix.fp32"),
    ("fp16 matrix", "fp16.matrix.fp32"),
    ("fp8 matrix", "fp8.matrix.fp32"),
    ("int8 matrix", "int8.matrix.int32"),
)
_FACTS = ("chip", "architecture", "units", "boost MHz", "memory", "GB/s")
_INTRO = """\
Figures are per device, dense, at boost clock, in TFLOPS (TOPS for int8); matrix paths accumulate
in fp32 (int8 in int32). An empty cell is unknown, or the chip has no such path. Ask
`db.chip(id).peaks()` for all of them, with the source of each.
"""


def write(db: Database, into: str, others: str | None = None) -> list[str]:
    """Write the pages and an index; the paths. others: the folder of other projects' tables."""
    os.makedirs(into, exist_ok=True)
    families: dict[tuple[str, str], list[Chip]] = {}
    for chip in db.chips():
        families.setdefault((chip.vendor, chip.series or chip.vendor), []).append(chip)
    pages = {slug(*key): page(db, key[1], chips) for key, chips in sorted(families.items())}
    pages["index"] = index(db, families)
    pages["unread"] = "\n".join(unread_page(db)) + "\n"
    pages["missing"] = "\n".join(missing_page(db)) + "\n"
    if others and os.path.isdir(others):
        pages["comparison"] = "\n".join(compare.compare_page(db, others)) + "\n"
    paths = []
    for name, text in pages.items():
        paths.append(os.path.join(into, f"{name}.md"))
        replace_text(paths[-1], text)
    return paths


def slug(vendor: str, title: str) -> str:
    """A file name of letters, digits and hyphens."""
    letters = "".join(
        c if c.isascii() and c.isalnum() else "-" for c in f"{vendor}-{title}".lower()
    )
    return "-".join(part for part in letters.split("-") if part)


def index(db: Database, families: dict[tuple[str, str], list[Chip]]) -> str:
    """The list of families by vendor."""
    count = sum(map(len, families.values()))
    head = f"{count} chips in {len(families)} families"
    lines = [
        f"# Chips\n\nchipdb {db.version or 'unreleased'}: {head}.\n",
        "[Chips without figures, and why](missing.md)\n",
    ]
    vendor = ""
    for (maker, title), chips in sorted(families.items()):
        if maker != vendor:
            lines.append(f"\n## {maker}\n")
            vendor = maker
        lines.append(f"- [{title}]({slug(maker, title)}.md) ({len(chips)})")
    return "\n".join(lines) + "\n"


def page(db: Database, title: str, chips: list[Chip]) -> str:
    """One family: a table of its chips, the notes, and the documents behind the figures."""
    parts = [f"# {title}", _INTRO, "\n".join(_rows(chips))]
    if notes := [f"- {chip.name}: {chip.note}" for chip in chips if chip.note]:
        parts.append("## Notes\n\n" + "\n".join(notes))
    parts.append("## Sources\n\n" + "\n".join(_sources(db, chips)))
    return "\n\n".join(parts) + "\n"


def _rows(chips: list[Chip]) -> Iterator[str]:
    """The table; a rate that no chip of the family has gets no column."""
    rates = [(head, rate) for head, rate in _COLUMNS if any(_figure(chip, rate) for chip in chips)]
    heads = [*_FACTS, *(head for head, _ in rates), "sources"]
    yield _pages_row(heads)
    yield _pages_row(["---"] * len(heads))
    for chip in chips:
        figures = [_figure(chip, rate) for _, rate in rates]
        links = ", ".join(f"[{key}](#{key})" for key in chip.sources)
        yield _pages_row([*_facts(chip), *figures, links])


def _facts(chip: Chip) -> list[str]:
    clock, memory = chip.clock, chip.memory
    boost = (
        f"{clock.boost_low:g}-{clock.boost:g}"
        if clock.boost_low and clock.boost
        else _plain(clock.boost)
    )
    size = f"{memory.gib:g} GiB" if memory.gib else ""
    return [f"{chip.name}<br>`{chip.id}`", chip.arch or "", counted(chip), boost,
            f"{size} {memory.type or ''}".strip(), _plain(memory.gbs)]  # fmt: skip


def _figure(chip: Chip, rate: str) -> str:
    dtype, path, accumulate = rate.split(".")
    peak = chip.peak(dtype, accumulate=accumulate, path=path)
    return f"{peak.tflops:.4g}" if peak else ""


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _pages_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _sources(db: Database, chips: list[Chip]) -> list[str]:
    keys = {key for chip in chips for key in _source_keys(db, chip)}
    cited = {key: source for key in sorted(keys) if (source := db.source(key))}
    return [f'- <a id="{key}"></a>`{key}`: {_cited(source)}' for key, source in cited.items()]


def _source_keys(db: Database, chip: Chip) -> Iterator[str]:
    yield from chip.sources
    yield from (key for _, key in chip.published.values())
    arch = db.arch(chip.arch) if chip.arch else None
    if arch:
        yield from arch.sources


def _cited(source: dict[str, str]) -> str:
    return "{title}. {publisher}; {ref} ({status})".format_map(source)
