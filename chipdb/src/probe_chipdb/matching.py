"""Decides which chip a device is: exact keys by precedence, live facts to choose, never a guess.

Precedence: PCI id with subsystem, PCI id with revision, PCI id, id register, device-tree
compatible, architecture with unit count, name. A lower key may narrow what a higher one left
open; where it disagrees, the higher wins with less confidence, and the conflict is kept.
"""

from probe_chipdb.candidates import Candidates, by_hardware_id, by_name, by_units, other_arch
from probe_chipdb.chip import counts_text, stated
from probe_chipdb.facts import DISPLAY_VENDORS, DRIVERS, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.exclusions import Share
    from probe_chipdb.peaks import Peak


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
    parents: of a share of a card (a MIG slice, a vGPU), the cards that it may be of; chip is None.
    profile: which share it is ("1g.10gb", "8Q", "shared"), or None.
    virtual: whether the name is a virtual machine's view of the host's chip (Venus, virgl).
    """

    __slots__ = (
        "by", "candidates", "chip", "confidence", "conflicts", "parents", "profile", "reason",
        "units", "virtual",
    )  # fmt: skip

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
        self.parents: tuple[Chip, ...] = ()
        self.profile: str | None = None
        self.virtual = False

    @property
    def parent(self) -> "Chip | None":
        """The card that a share is of, where its name leaves one; see `parents`."""
        return self.parents[0] if len(self.parents) == 1 else None

    def shared_peaks(self) -> "tuple[Peak, ...]":
        """The peaks that hold whichever of the products it is.

        With a chip, its peaks at the live unit count; with candidates, those figures on which
        all of them agree; else empty.
        """
        from probe_chipdb.shared import shared_peaks

        return shared_peaks((self.chip,) if self.chip else self.candidates, self.units)

    def __repr__(self) -> str:
        return f"<Match {self.chip.id if self.chip else self.reason!r} by {self.by}>"


def match(db: "Database", given: tuple[object, ...]) -> Match:
    """The chip, or what it may be and why it is not known.

    given: the facts, in the order of `Query`.
    """
    query = Query(*given)  # type: ignore[arg-type]
    candidates = by_hardware_id(db, query)
    if candidates and (agreeing := _agreeing(db, query, candidates.chips)):
        candidates.chips = agreeing
        result = _decide(db, query, candidates)
        result.units = query.units
        return result
    query.read_name(db)
    if query.name_facts or query.name_kind in ("dt", "pci"):  # which may hold ids
        candidates = by_hardware_id(db, query)
    reason = ""
    # The rules of names are not imported where an id and a chip's own name say all.
    if query.name_facts or query.pci[:4] in DISPLAY_VENDORS:
        from probe_chipdb.exclusions import exclusion, hosted_in

        reason = exclusion(query.name_facts, query.pci)
        # A name that holds its host's device is among those that are no chip's.
        if reason and (host := hosted_in(query.name_facts, query.name or "")):
            # The PCI id is the virtual machine's own.
            result = match(db, (None, None, None, *given[3:-2], host, query.name_kind))
            result.virtual = True
            return result
    result = _match(db, query, candidates, reason)
    result.units = query.units
    return result


def _agreeing(db: "Database", query: Query, chips: "list[Chip]") -> "list[Chip]":
    """Those of a hardware id's chips that bear a driver's name; without a name, all.

    No chip where more of the name must be read. Other chips of that name are not read.
    """
    if query.compute_capability or query.gfx or query.arch or query.pci[:4] in DISPLAY_VENDORS:
        return []
    if not query.name:
        return chips
    own = db.own_name(query.name) if query.name_kind in DRIVERS else None
    if own and len(chips) == 1 and query.name == chips[0].name:
        return chips
    if not own or "(" in query.name:  # the platform beside a name narrows it
        return []
    claimed, _, key = own.partition(" ")
    vendor, ids = query.vendor or claimed, db.ids(f"n:{key}")
    return [chip for chip in chips if chip.id in ids and vendor in ("", chip.vendor)]


def _match(db: "Database", query: Query, candidates: Candidates | None, reason: str) -> Match:
    """The match of a name that was read. candidates: those of the hardware ids."""
    if reason:
        from probe_chipdb.exclusions import share_in

        excluded = Match(reason=f"no chip of the table: {reason}")
        if share := share_in(query.name_facts):
            _add_parents(db, query, excluded, share)
        return excluded
    named = by_name(db, query)
    candidates = candidates or by_units(db, query, named)
    if candidates and _contradicts_driver(db, candidates, query):
        if named:
            return _without_hardware_id(db, query, candidates, named)
        if query.memory and all(misfit(chip, query) for chip in candidates.chips):
            return _refuted(db, query, candidates)
    if candidates:
        _compare_with_name(candidates, named, query)
    elif named:
        candidates = _by_name_alone(named, query)
    else:
        return Match(reason=_refused_by_package(db, query) or unknown(db, query))
    return _decide(db, query, candidates)


def _refused_by_package(db: "Database", query: Query) -> str:
    """Why a name that nothing knows is no chip's, as a package says of its own devices."""
    from probe_chipdb.exclusions import exclusion
    from probe_chipdb.name_facts import facts_in

    read = (facts_in(query.name or "", rules) for _, rules in db.readers())
    reason = next(filter(None, (exclusion(facts, query.pci) for facts in read)), "")
    return reason and f"no chip of the table: {reason}"


def ids_of_name(db: "Database", name: str) -> tuple[str, ...]:
    """The ids of the chips that a name alone may mean, or that it is a share of."""
    from probe_chipdb.exclusions import share_in

    query = Query(name=name).read_name(db)
    if share := share_in(query.name_facts):
        shared = Match()
        _add_parents(db, query, shared, share)
        return tuple(chip.id for chip in shared.parents)
    candidates = by_hardware_id(db, query)
    return tuple(chip.id for chip in (candidates.chips if candidates else by_name(db, query)))


def _contradicts_driver(db: "Database", candidates: Candidates, query: Query) -> bool:
    """Whether the driver's compute capability or gfx target excludes every chip of the hardware id.

    `by_name` has left only chips that the driver's facts allow. NVIDIA's mock of NVML gives a
    GB200 the PCI id of an H100.
    """
    return candidates.by in _HARDWARE and all(
        other_arch(db, chip, query) for chip in candidates.chips
    )


def _without_hardware_id(
    db: "Database", query: Query, refuted: Candidates, named: "list[Chip]"
) -> Match:
    """The chip of the name, confirmed by the driver's facts and memory; else as the id has it."""
    fitting = [chip for chip in named if not misfit(chip, query)]
    if not fitting:
        _compare_with_name(refuted, named, query)
        return _decide(db, query, refuted)
    candidates = Candidates("name", fitting)
    reported = other_arch(db, refuted.chips[0], query)
    conflict = refutation(refuted.by, refuted.chips, query, reported)
    match = _decide(db, query, candidates)
    match.conflicts = (*match.conflicts, conflict)
    return match


_NEVER_SHARED = ("-vgpu", "-laptop-gpu", "-embedded-gpu")


def _refuted(db: "Database", query: Query, refuted: Candidates) -> Match:
    """No chip: architecture and memory speak against the hardware id, and no name says more."""
    reported = other_arch(db, refuted.chips[0], query)
    conflict = refutation(refuted.by, refuted.chips, query, reported)
    conflict += f"; {misfit(refuted.chips[0], query)}"
    return Match(conflicts=(conflict,), reason=conflict)


def _add_parents(db: "Database", query: Query, result: Match, share: "Share") -> None:
    """Name the card that a share is of: by its PCI id, else by the name that it bears."""
    result.profile = share.profile or None
    candidates = by_hardware_id(db, query)
    if candidates is None and share.parent:
        candidates = Candidates("name", _cards(db, share))
    chips = candidates.chips if candidates else []
    result.parents = tuple(chip for chip in chips if not chip.id.endswith(_NEVER_SHARED))


def _cards(db: "Database", share: "Share") -> "list[Chip]":
    """The cards that a share is of: by the abbreviation of its board, else by the card's name."""
    ids = db.ids(f"s:vgpu/{share.board}") if share.board else ()
    return db.read(ids) or by_name(db, Query(name=share.parent).read_name(db))


def _compare_with_name(candidates: Candidates, named: "list[Chip]", query: Query) -> None:
    """Let the name narrow what a stronger key left open, or note that it disagrees."""
    common = [chip for chip in candidates.chips if chip in named]
    by_product_id = candidates.by == "pci" and not query.revision
    if common and candidates.shared and by_product_id and query.die_key:
        # The name repeats what pci.ids has under an id that several chips share. lspci prints the
        # first product of a device id: an RX 9050 as "Navi 44 [Radeon RX 9060 XT]".
        return
    if common:
        candidates.chips = common
    elif named and not query.generic_name and not _holds_design(candidates.chips, named):
        conflict = disagreement(candidates.by, candidates.chips, named, query)
        candidates.conflicts.append(conflict)


def _holds_design(chips: "list[Chip]", named: "list[Chip]") -> bool:
    """Whether the name is of the design that the SoC holds: less detail, no disagreement."""
    from probe_chipdb.candidates import refines

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
    fitting = candidates.chips
    if query.units or query.memory:
        fitting = [chip for chip in fitting if not misfit(chip, query)]
    if len(candidates.chips) > 1:
        if len(fitting) != 1:
            return _ambiguous(candidates, fitting, query)
        if not _is_confirmed(fitting[0], query):
            return _ambiguous(candidates, candidates.chips, query)
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


def _is_confirmed(chip: "Chip", query: Query) -> bool:
    """Whether a live fact speaks for the chip that is left, not only against the others.

    Of an R9 270 with 2 GiB and an R9 370 of unknown size, 4 GiB do not make the card an R9 370.
    """
    return bool((query.units and stated(chip)) or (query.memory and chip.memory.gib))


def _ambiguous(candidates: Candidates, fitting: "list[Chip]", query: Query) -> Match:
    if not fitting:
        candidates.conflicts.append(
            "no candidate has the unit count and memory that the driver reports"
        )
    chips = fitting or candidates.chips
    reason = ambiguous(candidates.by, chips, query)
    return Match(None, candidates.by, None, tuple(chips), tuple(candidates.conflicts), reason)


def has_memory(nominal: int, live: int) -> bool:
    """Whether a driver's count of bytes can be that of a product with `nominal` bytes."""
    return MEMORY_LOW * nominal <= live <= MEMORY_HIGH * nominal


def misfit(chip: "Chip", query: Query) -> str | None:
    """What the driver counts that this product does not have, or None."""
    if query.units and (counts := stated(chip)) and query.units not in counts:
        nominal = chip.units or counts_text(chip)
        return f"the driver counts {query.units} {chip.unit or 'units'}, the product has {nominal}"
    size = chip.memory.bytes if query.memory else None
    if query.memory and size and not has_memory(size, query.memory):
        live = f"{query.memory / 2**30:.1f}"
        return f"the driver reports {live} GiB of memory, the product has {chip.memory.gib:g}"
    return None


# Sentences on why a device is no certain chip, and on what would decide.

_MOST_NAMED = 8  # ids in one sentence; "Intel Graphics" alone is the name of 69 chips


def ambiguous(by: str, chips: "list[Chip]", query: "Query") -> str:
    """The products that it may be, what they share, and what would decide among them."""
    ids = ", ".join(sorted({chip.id for chip in chips})[:_MOST_NAMED])
    uncounted = f" and {len(chips) - _MOST_NAMED} more" if len(chips) > _MOST_NAMED else ""
    reason = f"ambiguous: {ids}{uncounted} share the {_key(by, query)}"
    missing = " or ".join(_deciding_facts(chips, query))
    return f"{reason}; the {missing} would decide" if missing else reason


def disagreement(by: str, chips: "list[Chip]", named: "list[Chip]", query: "Query") -> str:
    """Which products the stronger key and the name mean, where they mean different ones."""
    by_key, by_name = (", ".join(chip.id for chip in side[:4]) for side in (chips, named))
    return f"the {_key(by, query)} means {by_key}, but the name {query.name!r} means {by_name}"


def refutation(by: str, chips: "list[Chip]", query: "Query", reported: str | None) -> str:
    """Why a hardware id does not count: its products cannot be what the driver reports."""
    ids = ", ".join(chip.id for chip in chips[:4])
    archs = ", ".join(dict.fromkeys(chip.arch for chip in chips if chip.arch))
    return f"the {_key(by, query)} means {ids} ({archs}), but the driver reports {reported}"


def _key(by: str, query: "Query") -> str:
    return {
        "name": f"name {query.name!r}",
        "dt": "device-tree compatible",
        "gpu-id": f"id {query.gpu_id}",
        "arch-units": "architecture and unit count",
    }.get(by, f"PCI id {query.pci}")


def _deciding_facts(chips: "list[Chip]", query: "Query") -> list[str]:
    """The live facts that are missing and in which the products differ."""
    facts = []
    if not query.units and len({chip.units for chip in chips}) > 1:
        facts.append("unit count")
    if not query.memory and len({chip.memory.gib for chip in chips}) > 1:
        facts.append("memory size")
    return facts


def unknown(db: "Database", query: "Query") -> str:
    """Every key that was looked up and did not find a chip."""
    failures = []
    if query.pci:
        failures.append(f"no chip has PCI id {query.pci}")
    if query.gpu_id:
        failures.append(f"no chip has the id {query.gpu_id}")
    if query.dt:
        failures.append(f"no chip is compatible with {', '.join(query.dt)}")
    if query.gfx and not query.name_key:
        failures.append(f"{query.gfx} is an architecture, not a product: the unit count decides")
    if query.name_key:
        failures += _unknown_name(db, query)
    return "; ".join(failures) or "nothing that identifies a chip was given"


def _unknown_name(db: "Database", query: "Query") -> list[str]:
    ids = db.ids(f"n:{query.name_key}")
    other = f" that fits the vendor and architecture ({', '.join(ids[:4])})" if ids else ""
    failures = [f"no chip is named {query.name!r}{other}"]
    if query.generic_name:
        failures.append(
            "the name names no product: a PCI id, or architecture and units, would decide"
        )
    return failures
