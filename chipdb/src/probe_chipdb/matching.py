"""Decides which chip a device is: exact keys by precedence, live facts to choose, never a guess.

Precedence: PCI id with subsystem, PCI id with revision, PCI id, id register, device-tree
compatible, architecture with unit count, name. A lower key may narrow what a higher one left
open; where it disagrees, the higher wins with less confidence, and the conflict is kept.
"""

from probe_chipdb.spelling import normalise
from probe_chipdb.veto import why_no_chip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.peaks import Peak
    from probe_chipdb.question import Question

_CONFIDENCE = ("low", "medium", "high")
_HARDWARE = frozenset(("pci-subsystem", "pci-revision", "pci", "gpu-id", "dt"))
MEMORY_LOW, MEMORY_HIGH = 0.90, 1.01  # live total against nominal: ECC and firmware take up to 10 %


class Match:
    """What is known of one device's identity.

    chip: the product, or None. by: which key found it (or found the candidates).
    confidence: "high", "medium" or "low"; None without a chip.
    candidates: the products that it may be, when it is one of several.
    conflicts: sentences about keys or live facts that disagree.
    reason: why chip is None.
    units: the live unit count: as asked, else as the name itself tells ("Mali-G610 MC4"), else
        None.
    """

    __slots__ = ("by", "candidates", "chip", "confidence", "conflicts", "reason", "units")

    def __init__(
        self,
        chip: "Chip | None" = None,
        by: str | None = None,
        confidence: str | None = None,
        candidates: "tuple[Chip, ...]" = (),
        conflicts: tuple[str, ...] = (),
        reason: str | None = None,
        units: int | None = None,
    ) -> None:
        self.chip = chip
        self.by = by
        self.confidence = confidence
        self.candidates = candidates
        self.conflicts = conflicts
        self.reason = reason
        self.units = units

    def shared_peaks(self) -> "tuple[Peak, ...]":
        """The peaks that hold whichever of the products it is.

        With a chip, its peaks at the live unit count; with candidates, those figures on which
        all of them agree; else empty.
        """
        from probe_chipdb.shared import shared_peaks

        return shared_peaks((self.chip,) if self.chip else self.candidates, self.units)

    def __repr__(self) -> str:
        return f"<Match {self.chip.id if self.chip else self.reason!r} by {self.by}>"


def answer(db: "Database", asked: "Question") -> Match:
    """The chip, or what it may be and why it is not known."""
    match = _answer(db, asked)
    match.units = asked.units
    return match


def _answer(db: "Database", asked: "Question") -> Match:
    why = why_no_chip(asked.name, asked.pci)
    if why:
        return Match(reason=f"no chip of the table: {why}")
    by, chips = _hardware(db, asked)
    named = _named(db, asked)
    if not chips:
        by, chips = _by_units(db, asked, named)
    if not chips:
        return _by_name(db, asked, named)
    conflicts = _disagreement(chips, named, asked, by)
    narrowed = [chip for chip in chips if chip in named]
    return _decide(by, chips, narrowed or chips, asked, db, conflicts)


def _named(db: "Database", asked: "Question") -> "list[Chip]":
    """The chips of the name; a name that holds its die before one without."""
    for key in (asked.whole, asked.key):
        if key and (ids := db.ids(f"n:{key}")):
            return _allowed(db, ids, asked)
    return []


def _hardware(db: "Database", asked: "Question") -> "tuple[str, list[Chip]]":
    """The first hardware key that any chip has, and those chips."""
    for by, key in _hardware_keys(db, asked):
        ids = db.ids(key)
        if ids:
            chips = [chip for id_ in ids if (chip := db.chip(id_))]
            return (by, chips) if by != "gpu-id" or not asked.dt else _refined(db, chips, asked)
    return "", []


def _refined(db: "Database", chips: "list[Chip]", asked: "Question") -> "tuple[str, list[Chip]]":
    from probe_chipdb.refine import refined

    return refined(db, "gpu-id", chips, asked)


def _hardware_keys(db: "Database", asked: "Question") -> list[tuple[str, str]]:
    keys = []
    if asked.pci:
        plain = f"p:{asked.pci}"
        if asked.subsystem and asked.revision:
            keys.append(("pci-subsystem", f"{plain}/{asked.subsystem}@{asked.revision}"))
        if asked.subsystem:
            keys.append(("pci-subsystem", f"{plain}/{asked.subsystem}"))
        if asked.revision:
            keys.append(("pci-revision", f"{plain}@{asked.revision}"))
        keys.append(("pci", plain))
    if asked.gpu_id:
        keys += [("gpu-id", f"g:{key}") for key in register_keys(db, asked.gpu_id, "gm")]
    keys += [("dt", f"d:{normalise(compatible, 'dt')}") for compatible in asked.dt]
    return keys


def register_keys(db: "Database", register: str, masks: str) -> list[str]:
    """`arm:0xa867` as every key under which it may be filed, the exact one first.

    A whole 32-bit Mali GPU_ID holds the product in its upper half.
    """
    vendor, _, text = register.partition(":")
    try:
        value = int(text, 16)
    except ValueError:
        return []
    values = [value, value >> 16] if vendor == "arm" and value > 0xFFFF else [value]
    keys = [f"{vendor}:{one:#x}" for one in values]
    for mask in (int(mask, 16) for mask in db.ids(f"{masks}:{vendor}")):
        keys += [f"{vendor}:{one & mask:#x}/{mask:#x}" for one in values]
    return keys


def _by_units(db: "Database", asked: "Question", named: "list[Chip]") -> "tuple[str, list[Chip]]":
    """Architecture with unit count: only where no product name speaks against it."""
    archs = _archs(db, asked)
    if not (archs and asked.units) or (asked.key and not asked.generic and not named):
        return "", []
    if asked.generic and asked.key and asked.compute_capability:
        return "", []  # "NVIDIA Graphics Device": a product that even its driver does not know
    ids = [id_ for arch in archs for id_ in db.ids(f"u:{arch}/{asked.units}")]
    chips = _allowed(db, tuple(ids), asked)
    if asked.pci:  # these list their PCI ids, and this one is not among them
        chips = [chip for chip in chips if not chip.pci]
    return "arch-units", chips


def _archs(db: "Database", asked: "Question") -> list[str]:
    if asked.arch:
        return [asked.arch]
    if asked.gfx:
        return list(db.ids(f"x:{asked.gfx}"))
    return list(db.ids(f"c:{asked.compute_capability}")) if asked.compute_capability else []


def _by_name(db: "Database", asked: "Question", named: "list[Chip]") -> Match:
    if not named:
        from probe_chipdb.sentences import unknown

        return Match(reason=unknown(db, asked))
    conflicts = []
    if asked.pci and all(chip.pci for chip in named):
        conflicts.append(f"the name is known, but its PCI id {asked.pci} is not: a newer variant?")
    return _decide("name", named, _of_revision(named, asked) or named, asked, db, conflicts)


def _of_revision(named: "list[Chip]", asked: "Question") -> "list[Chip]":
    """Of several products under one name, those that the data files under the line's revision."""
    if not asked.revision or asked.pci:
        return []
    return [chip for chip in named if any(pci.endswith(f"@{asked.revision}") for pci in chip.pci)]


def _allowed(db: "Database", ids: tuple[str, ...], asked: "Question") -> "list[Chip]":
    """The chips of these ids, without those that the vendor or the architecture rules out."""
    return [
        chip
        for id_ in ids
        if (chip := db.chip(id_))
        and not _other_vendor(chip, asked)
        and not other_arch(db, chip, asked)
    ]


def _other_vendor(chip: "Chip", asked: "Question") -> bool:
    return bool(asked.vendor) and chip.vendor != asked.vendor


def other_arch(db: "Database", chip: "Chip", asked: "Question") -> str | None:
    """What the driver says that the chip's architecture cannot be, or None."""
    arch = db.arch(chip.arch) if chip.arch else None
    if arch is None:
        return None
    for column, value in (("compute_capability", asked.compute_capability), ("gfx", asked.gfx)):
        known = arch.column(column)
        if value and known and value not in known.split("|"):
            return f"{column.replace('_', ' ')} {value}"
    if asked.arch and asked.arch not in (arch.id, arch.family) and "+" not in asked.arch:
        return f"architecture {asked.arch}"
    return None


def _disagreement(
    chips: "list[Chip]", named: "list[Chip]", asked: "Question", by: str
) -> list[str]:
    if not named or asked.generic or any(chip in named for chip in chips):
        return []
    from probe_chipdb.refine import refines

    if any(refines(chip, model) for chip in chips for model in named):
        return []  # "Mali-G57" beside the SoC that holds one: less said, nothing else said
    found = ", ".join(chip.id for chip in chips[:4])
    other = ", ".join(chip.id for chip in named[:4])
    return [f"{by} says {found}, but the name {asked.name!r} says {other}"]


def _decide(
    by: str,
    found: "list[Chip]",
    chips: "list[Chip]",
    asked: "Question",
    db: "Database",
    conflicts: list[str],
) -> Match:
    """One chip if the live facts leave one; else what it may be."""
    fitting = [chip for chip in chips if not misfit(chip, asked)]
    if len(chips) > 1 and len(fitting) == 1:
        chips = fitting
    elif len(chips) > 1:
        return _one_of(by, fitting or chips, bool(fitting), asked, conflicts)
    chip = chips[0]
    problem = misfit(chip, asked)
    if problem:
        conflicts = [*conflicts, f"{chip.id}: {problem}"]
    if by in _HARDWARE and (strange := other_arch(db, chip, asked)):
        conflicts = [*conflicts, f"{chip.id} is {chip.arch}, but the driver says {strange}"]
    level = (2 if by in _HARDWARE else 1) - (len(found) > 1 and by in _HARDWARE) - len(conflicts)
    return Match(chip, by, _CONFIDENCE[max(level, 0)], (), tuple(conflicts))


def misfit(chip: "Chip", asked: "Question") -> str | None:
    """What the driver counts that this product does not have, or None."""
    if asked.units and (units := chip.units) and asked.units != units:
        return f"the driver counts {asked.units} {chip.unit or 'units'}, the product has {units}"
    size = chip.memory.bytes if asked.memory else None
    if asked.memory and size and not MEMORY_LOW * size <= asked.memory <= MEMORY_HIGH * size:
        live = f"{asked.memory / 2**30:.1f}"
        return f"the driver reports {live} GiB of memory, the product has {chip.memory.gib:g}"
    return None


def _one_of(
    by: str, chips: "list[Chip]", fit: bool, asked: "Question", conflicts: list[str]
) -> Match:
    from probe_chipdb.sentences import one_of

    if not fit:
        strange = "no candidate has the unit count and memory that the driver reports"
        conflicts = [*conflicts, strange]
    return Match(None, by, None, tuple(chips), tuple(conflicts), one_of(by, chips, asked))
