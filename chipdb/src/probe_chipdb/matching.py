"""Decides which chip a device is: exact keys by precedence, live facts to choose, never a guess.

Precedence: PCI id with subsystem, PCI id with revision, PCI id, id register, device-tree
compatible, architecture with unit count, name. A lower key may narrow what a higher one left
open; where it disagrees, the higher wins with less confidence, and the conflict is kept.
"""

from probe_chipdb.candidates import Candidates, by_hardware_id, by_name, by_units, other_arch
from probe_chipdb.exclusions import exclusion
from probe_chipdb.query import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.peaks import Peak
    from probe_chipdb.query import Arguments

_CONFIDENCE = ("low", "medium", "high")
_HARDWARE = frozenset(("pci-subsystem", "pci-revision", "pci", "gpu-id", "dt"))
# Live total against nominal: drivers print 2 to 7 % less, which ECC and firmware take; a tenth
# leaves room. Nothing adds memory, so above it there is only a hundredth for rounding.
MEMORY_LOW, MEMORY_HIGH = 0.90, 1.01


class Match:
    """What is known of one device's identity.

    chip: the product, or None. by: which key found it (or found the candidates).
    confidence: "high", "medium" or "low"; None without a chip.
    candidates: the products that it may be, when it is one of several.
    conflicts: sentences about keys or live facts that disagree.
    reason: why chip is None.
    units: the live unit count: as given, else as the name itself has it ("Mali-G610 MC4"), else
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
        from probe_chipdb.shared_peaks import shared_peaks

        return shared_peaks((self.chip,) if self.chip else self.candidates, self.units)

    def __repr__(self) -> str:
        return f"<Match {self.chip.id if self.chip else self.reason!r} by {self.by}>"


def match(db: "Database", arguments: "Arguments") -> Match:
    """The chip, or what it may be and why it is not known."""
    query = Query(arguments)
    result = _match(db, query)
    result.units = query.units
    return result


def _match(db: "Database", query: Query) -> Match:
    if reason := exclusion(query.name, query.pci):
        return Match(reason=f"no chip of the table: {reason}")
    named = by_name(db, query)
    candidates = by_hardware_id(db, query) or by_units(db, query, named)
    if candidates:
        _compare_with_name(candidates, named, query)
    elif named:
        candidates = _by_name_alone(named, query)
    else:
        from probe_chipdb.reasons import unknown

        return Match(reason=unknown(db, query))
    return _decide(db, query, candidates)


def _compare_with_name(candidates: Candidates, named: "list[Chip]", query: Query) -> None:
    """Let the name narrow what a stronger key left open, or note that it disagrees."""
    common = [chip for chip in candidates.chips if chip in named]
    if common:
        candidates.chips = common
    elif named and not query.generic_name and not _holds_design(candidates.chips, named):
        from probe_chipdb.reasons import disagreement

        conflict = disagreement(candidates.by, candidates.chips, named, query)
        candidates.conflicts.append(conflict)


def _holds_design(chips: "list[Chip]", named: "list[Chip]") -> bool:
    """Whether the name is of the design that the SoC holds: less detail, no disagreement."""
    from probe_chipdb.refine import refines

    return any(refines(chip, design) for chip in chips for design in named)


def _by_name_alone(named: "list[Chip]", query: Query) -> Candidates:
    candidates = Candidates("name", named)
    if query.pci and all(chip.pci for chip in named):
        candidates.conflicts.append(
            f"the name is known, but its PCI id {query.pci} is not: a newer variant?"
        )
    if query.revision and not query.pci:
        candidates.chips = [chip for chip in named if _has_revision(chip, query.revision)] or named
    return candidates


def _has_revision(chip: "Chip", revision: str) -> bool:
    return any(pci.endswith(f"@{revision}") for pci in chip.pci)


def _decide(db: "Database", query: Query, candidates: Candidates) -> Match:
    """One chip, if the live facts leave one; else what it may be."""
    fitting = [chip for chip in candidates.chips if not misfit(chip, query)]
    if len(candidates.chips) > 1 and len(fitting) != 1:
        return _ambiguous(candidates, fitting, query)
    chip = (fitting or candidates.chips)[0]
    if not fitting:
        candidates.conflicts.append(f"{chip.id}: {misfit(chip, query)}")
    level = 1
    if candidates.by in _HARDWARE:
        if reported := other_arch(db, chip, query):
            conflict = f"{chip.id} is {chip.arch}, but the driver reports {reported}"
            candidates.conflicts.append(conflict)
        level = 1 if candidates.shared else 2
    confidence = _CONFIDENCE[max(level - len(candidates.conflicts), 0)]
    return Match(chip, candidates.by, confidence, (), tuple(candidates.conflicts))


def _ambiguous(candidates: Candidates, fitting: "list[Chip]", query: Query) -> Match:
    from probe_chipdb.reasons import ambiguous

    if not fitting:
        candidates.conflicts.append(
            "no candidate has the unit count and memory that the driver reports"
        )
    chips = fitting or candidates.chips
    reason = ambiguous(candidates.by, chips, query)
    return Match(None, candidates.by, None, tuple(chips), tuple(candidates.conflicts), reason)


def misfit(chip: "Chip", query: Query) -> str | None:
    """What the driver counts that this product does not have, or None."""
    if query.units and (units := chip.units) and query.units != units:
        return f"the driver counts {query.units} {chip.unit or 'units'}, the product has {units}"
    size = chip.memory.bytes if query.memory else None
    if query.memory and size and not MEMORY_LOW * size <= query.memory <= MEMORY_HIGH * size:
        live = f"{query.memory / 2**30:.1f}"
        return f"the driver reports {live} GiB of memory, the product has {chip.memory.gib:g}"
    return None
