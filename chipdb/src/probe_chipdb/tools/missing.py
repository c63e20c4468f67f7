"""`missing`: which chips have no figures, and why, as Markdown written from the data alone."""

from collections import Counter
from collections.abc import Iterable, Iterator

from probe_chipdb.chip import Chip
from probe_chipdb.chip_peaks import reason
from probe_chipdb.database import Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.arch import Arch

_NO_PRODUCT = ("vgpu", "design", "unbuilt", "unsold")


def figureless(db: Database) -> list[Chip]:
    """The chips without a single peak, by vendor and id."""
    return sorted((chip for chip in db.chips() if not chip.peaks()), key=lambda chip: chip.id)


def is_product(chip: Chip) -> bool:
    """Whether the entry is sold: no virtual GPU, no licensed design, no sample."""
    return chip.unknown not in _NO_PRODUCT


def page(db: Database) -> Iterator[str]:
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
