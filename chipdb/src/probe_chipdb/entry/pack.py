"""Packs good entries into the lines and index keys of a table: the same for every origin."""

from typing import TypedDict

from probe_chipdb.cpu_brand import brand_key
from probe_chipdb.entry.evidence import confidence, evidence, of_counts
from probe_chipdb.entry.validate import Data
from probe_chipdb.facts import DRIVERS, Query
from probe_chipdb.name_facts import add_name_facts
from probe_chipdb.name_form import Form
from probe_chipdb.peaks import CONFIDENCES
from probe_chipdb.rules import Rules, built
from probe_chipdb.spelling import normalise, with_die
from probe_chipdb.table import (
    ARCH,
    BRAND,
    CHIP,
    CLOCK,
    CPUID,
    ECC,
    FORMATS,
    INTERCONNECT,
    LIMITS,
    MEMORY,
    MIDR,
    OF_SOCS,
    OVERRIDE,
    PUBLISHED,
    READS,
    RULES,
    SOURCE,
    SRAM,
    SUSTAINED,
    Table,
    escape,
    scalar,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from probe_chipdb.entry.fields import (
        ArchEntry,
        ChipEntry,
        MatchEntry,
        OverrideEntry,
        SourceEntry,
    )

    Ends = tuple[float, float]
    Rated = tuple[ChipEntry, dict[str, Ends]]


# Gives a licensed design the range of the SoCs that hold it.
#
# The maker of a SoC sets core count and clock, so a design has no figure of its own. What its SoCs
# in the table reach is known: the lowest and the highest of them are the ends of a range. Where a
# driver counts the cores, the lowest and the highest clock of those SoCs are.


class SocClock(TypedDict):
    """The lowest and the highest clock of the SoCs of a design, in MHz."""

    low: float
    high: float
    confidence: str
    source: list[str]


class DesignRange(TypedDict):
    """What the SoCs of a design reach: with their own counts, and by their clocks alone."""

    figures: "list[OverrideEntry]"
    clock: SocClock | None


def ranges(data: "Data") -> dict[str, DesignRange]:
    """The figures of each design of which at least two SoCs are known.

    A design is an entry with ``unknown = "design"`` and neither units nor counts; its SoCs are the
    vendor's entries whose names hold its name word by word.
    """
    designs = [chip for chip in data.chips.values() if _is_design(chip)]
    if not designs:
        return {}
    built = [(chip, normalise(chip["name"])) for chip in data.chips.values() if _is_built(chip)]
    range_of: dict[str, DesignRange] = {}
    for design in designs:
        name = f" {normalise(design['name'])} "
        socs = [
            chip for chip, own in built if chip["vendor"] == design["vendor"] and name in f" {own} "
        ]
        rated = [(chip, ends) for chip in socs if (ends := _ends(data, chip))]
        if figures := list(_figures(rated)):
            range_of[design["id"]] = {"figures": figures, "clock": _clock(rated)}
    return range_of


def _is_design(chip: "ChipEntry") -> bool:
    return chip.get("unknown") == "design" and not ("units" in chip or "counts" in chip)


def _is_built(chip: "ChipEntry") -> bool:
    return chip.get("unknown") != "design" and "units" in chip and "boost" in chip.get("clock", {})


def _figures(rated: "list[Rated]") -> "Iterator[OverrideEntry]":
    first = rated[0][1] if len(rated) > 1 else {}
    for rate in (rate for rate in first if all(rate in ends for _, ends in rated)):
        lowest = min(rated, key=lambda item: item[1][rate][0])
        highest = max(rated, key=lambda item: item[1][rate][1])
        low, high = lowest[1][rate][0], highest[1][rate][1]
        if low < high:
            yield _override(rate, low, high, lowest[0], highest[0])


def _clock(rated: "list[Rated]") -> SocClock | None:
    lowest = min((chip for chip, _ in rated), key=_lowest)
    highest = max((chip for chip, _ in rated), key=lambda chip: chip["clock"]["boost"])
    low, high = _lowest(lowest), highest["clock"]["boost"]
    if low >= high:
        return None
    sources, confidence = _origin(lowest, highest)
    return {"low": low, "high": high, "confidence": confidence, "source": sources}


def _lowest(chip: "ChipEntry") -> float:
    return chip["clock"].get("boost_low", chip["clock"]["boost"])


def _origin(lowest: "ChipEntry", highest: "ChipEntry") -> tuple[list[str], str]:
    """The documents behind both ends, and the less sure of their confidences."""
    sources = sorted({*lowest.get("source", ()), *highest.get("source", ())})
    sure = (chip.get("confidence", "derived") for chip in (lowest, highest))
    return sources, max(*sure, "derived", key=CONFIDENCES.index)


def _ends(data: "Data", chip: "ChipEntry") -> "dict[str, Ends]":
    """What a SoC reaches at the lowest and the highest clock that its entry has."""
    arch = data.archs.get(chip.get("arch", ""))
    clock = chip["clock"]
    low = _lowest(chip)
    mega = chip["units"] / 1e6
    rates = arch.get("rates", {}) if arch else {}
    return {
        rate: (mega * operations * low, mega * operations * clock["boost"])
        for rate, operations in rates.items()
    }


def _override(
    rate: str, low: float, high: float, lowest: "ChipEntry", highest: "ChipEntry"
) -> "OverrideEntry":
    sources, confidence = _origin(lowest, highest)
    return {
        "rate": rate,
        "tflops": round(high, 6),
        "low": round(low, 6),
        "reason": f"the SoCs of the table with this design, {lowest['name']} to {highest['name']}",
        "source": ", ".join(sources),
        "confidence": confidence,
    }


_INNER = {
    "published": PUBLISHED,
    "override": OVERRIDE,
    "sustained": SUSTAINED,
    "cpuid": CPUID,
    "midr": MIDR,
    "brand": BRAND,
}
"""Columns that are lists of tables, and the columns of those."""


def to_table(data: Data, origin: str, version: str) -> Table:
    """The entries as a table that can be searched at once."""
    return Table(origin, version, {name: text.encode() for name, text in texts(data).items()})


def texts(data: Data) -> dict[str, str]:
    """The four files of a table; the rules of names and number formats where there are any."""
    of_socs = ranges(data)
    more = {RULES: data.rules.compiled()} if data.rules else {}
    if formats := data.formats.compiled(data.archs):
        more[FORMATS] = formats
    return more | {
        "chips.txt": _lines(
            _chip_row(chip, of_socs.get(id_), data.sources) for id_, chip in data.chips.items()
        ),
        "archs.txt": _lines(_arch_row(name, arch) for name, arch in data.archs.items()),
        "sources.txt": _lines(
            [key, *(scalar(source.get(column)) for column in SOURCE[1:])]
            for key, source in data.sources.items()
        ),
        "index.txt": _lines([key, " ".join(ids)] for key, ids in _index(data).items()),
    }


def _lines(rows: "Iterable[list[str]]") -> str:
    lines = ("\t".join(row) for row in rows)
    # Sorted by the key alone, as bytes: "a\t" against "a-b\t" must not depend on the tab.
    ordered = sorted(lines, key=lambda line: line.partition("\t")[0].encode())
    return "".join(line + "\n" for line in ordered)


def _chip_row(
    chip: "ChipEntry", of_socs: "DesignRange | None", sources: "Mapping[str, SourceEntry]"
) -> list[str]:
    explain = chip.get("explain", {})
    published = [
        {**item, "confidence": evidence(item, sources)} for item in chip.get("published", ())
    ]
    own = [{**item, "confidence": confidence(item, sources)} for item in chip.get("override", ())]
    packed = {
        "clock": _parts(chip.get("clock"), CLOCK).rstrip(";"),
        "memory": _parts(chip.get("memory"), MEMORY).rstrip(";"),
        "explain": "|".join(f"{rate};{escape(text)}" for rate, text in explain.items()),
        "of_socs": _parts(of_socs["clock"] if of_socs else None, OF_SOCS),
        "power_limits": _parts(chip.get("power_limits"), LIMITS),
        "interconnect": _parts(chip.get("interconnect"), INTERCONNECT),
        "sram": _parts(chip.get("sram"), SRAM),
        "ecc": _parts(chip.get("ecc"), ECC),
        "confidence": of_counts(chip, sources),
        "reads": "|".join(_parts(row, READS) for row in (*chip.get("read", ()), *_words(chip))),
    }
    override = [*own, *(of_socs["figures"] if of_socs else ())]
    return _row(CHIP, packed, {**chip, "published": published, "override": override})


def _words(chip: "ChipEntry") -> "Iterator[Mapping[str, object]]":
    """Yield what was read of each figure."""
    for item in (*chip.get("published", ()), *chip.get("override", ())):
        if "read" in item:
            yield {"sparsity": "dense", **item, **item["read"]}


def _arch_row(name: str, arch: "ArchEntry") -> list[str]:
    match = arch.get("match", {})
    steps = (
        f"{','.join(step['flags'])};{_rates(step['rates'], ',')}"
        + (";1" if step.get("at_least") else "")
        for step in arch.get("isa", ())
    )
    packed = {
        "id": name,
        "rates": _rates(arch.get("rates", {}), "|"),
        "sparse": _sparse(arch),
        "isa": "|".join(steps),
        # As written: these are index keys, too.
        "pci": "|".join(match.get("pci", ())),
        "dt": "|".join(match.get("dt", ())),
        "gpu_id": "|".join(match.get("gpu_id", ())),
        "reads": "|".join(_parts(row, READS) for row in arch.get("read", ())),
    }
    return _row(ARCH, packed, {**match, **arch})


def _row(
    columns: tuple[str, ...], packed: "Mapping[str, str]", fields: "Mapping[str, object]"
) -> list[str]:
    """The columns of one line: as packed already, else from the entry's field of that name."""
    return [
        packed[column] if column in packed else _column(column, fields.get(column))
        for column in columns
    ]


def _sparse(arch: "ArchEntry") -> str:
    sparse = arch.get("sparse")
    return f"{scalar(sparse['factor'])};{','.join(sparse['keys'])}" if sparse else ""


def _column(column: str, value: object) -> str:
    if not isinstance(value, list):
        return scalar(value)
    if column in _INNER:
        return "|".join(_parts({"sparsity": "dense", **item}, _INNER[column]) for item in value)
    return "|".join(escape(item) for item in value)


def _parts(table: "Mapping[str, object] | None", names: tuple[str, ...]) -> str:
    if not table:
        return ""
    return ";".join(_part(table.get(name)) for name in names)


def _part(value: object) -> str:
    if isinstance(value, list):
        return ",".join(escape(str(item)) for item in value)
    return scalar(value)


def _rates(rates: "Mapping[str, float]", separator: str) -> str:
    return separator.join(f"{key}={scalar(float(ops))}" for key, ops in rates.items())


class _Index:
    """Keys to ids, each id once and in the order of the ids."""

    __slots__ = ("ids",)

    def __init__(self) -> None:
        # Inner keys, not a list: a vendor with 20,000 chips is one key with as many ids.
        self.ids: dict[str, dict[str, None]] = {}

    def add(self, key: str, id_: str) -> None:
        self.ids.setdefault(key, {})[id_] = None

    def add_masks(self, letters: str, registers: "Iterable[str]") -> None:
        """File the masks in use, by vendor: a reader has to try each."""
        for register in registers:
            vendor, _, value = register.partition(":")
            mask = value.partition("/")[2]
            if mask:
                self.add(f"{letters}:{vendor}", f"{int(mask, 16):#x}")


def _index(data: Data) -> dict[str, dict[str, None]]:
    index = _Index()
    chips = [
        (id_, _without_name(chip) if id_ in data.unnamed else chip)
        for id_, chip in sorted(data.chips.items())
    ]
    for id_, chip in chips:
        for key in chip_keys(chip):
            index.add(key, id_)
    # "Rembrandt [Radeon 680M]" stands on every chip of that PCI id; plain "Radeon 680M" is one.
    exact = frozenset(index.ids)
    # Only the table that has the rules: of a site's file or a package nobody asks for these.
    has_rules = bool(data.rules) and not data.rules.base
    for id_, chip in chips:
        for key in loose_keys(chip):
            if key not in exact:
                index.add(key, id_)
        for own_name in _names(chip) if has_rules else ():
            if row := own_name_row(own_name):
                index.add(f"o:{own_name}", row)
        index.add_masks("gm", chip.get("gpu_id", ()))
    own = [data.rules.read()] if data.rules.base and data.rules else []
    _add_forms(index, chips, [built(), *own])
    _add_owners(index, data)
    for id_, arch in sorted(data.archs.items()):
        match = arch.get("match", {})
        for key in arch_index_keys(match):
            index.add(key, id_)
        index.add_masks("agm", match.get("gpu_id", ()))
    for text, name in data.names.items():
        for meant in name["means"]:
            index.add(f"s:{text}", meant)
    return index.ids


def _names(chip: "ChipEntry") -> "tuple[str, ...]":
    return chip["name"], *chip.get("aliases", ())


def own_name_row(name: str) -> str:
    """What `Database.own_name` answers of a name; empty where it tells more than vendor and key.

    Such as a count of cores or an id; or where the kinds of drivers' names do not agree.
    """
    rows = {_row_of(name, kind) for kind in DRIVERS}
    return rows.pop() if len(rows) == 1 else ""


def _row_of(name: str, kind: str) -> str:
    query, plain = Query(name=name, name_kind=kind), Query(name=name, name_kind=kind)
    if name:
        add_name_facts(query, name, kind, may_hold_ids=True)
    plain.vendor, plain.name_key, plain.generic_name = query.vendor, query.name_key, False
    slots = Query.__slots__
    if not query.name_key or any(getattr(query, at) != getattr(plain, at) for at in slots):
        return ""
    return f"{query.vendor} {query.name_key}"


def _without_name(chip: "ChipEntry") -> "ChipEntry":
    return {**chip, "name": ""}


def chip_keys(chip: "ChipEntry") -> "Iterator[str]":
    """Every key under which a chip can be found: a letter for its kind, and the value."""
    yield f"v:{chip['vendor']}"
    for pci in chip.get("pci", ()):
        yield f"p:{pci}"
    for compatible in chip.get("dt", ()):
        yield f"d:{normalise(compatible, 'dt')}"
    for register in chip.get("gpu_id", ()):
        yield f"g:{_register(register)}"
    if chip.get("arch") and chip.get("units"):
        yield f"u:{chip['arch']}/{chip['units']}"
    for name in _names(chip):
        if key := with_die(name) or normalise(name):
            yield f"n:{key}"


def loose_keys(chip: "ChipEntry") -> "Iterator[str]":
    """Shorter spellings, filed where no whole name claims them.

    What the brackets of pci.ids names hold, and names without their brand ("RTX 4090", "MI300X").
    """
    for name in _names(chip):
        key = normalise(name)
        if key and with_die(name):
            yield f"n:{key}"
        for bare in built().every(key, "bare_name"):
            yield f"n:{bare}"


def _add_owners(index: _Index, data: Data) -> None:
    """Whose a PCI vendor id is, and which distributions publish for which vendors."""
    for chip in data.chips.values():
        for pci in chip.get("pci", ()):
            index.add(f"pv:{pci[:4]}", chip["vendor"])
    for distribution, vendors in data.publishers.items():
        for vendor in vendors:
            index.add(f"pub:{distribution}", vendor)


def _add_forms(index: _Index, chips: "list[tuple[str, ChipEntry]]", readers: "list[Rules]") -> None:
    """What people shorten and glue the names to, and the platform that Mesa prints.

    readers: the rules by which names are read: the project's, and a package's own behind them.
    """
    listed: list[tuple[str, str]] = []
    for id_, chip in chips:
        for name in _names(chip):
            names = [name]
            if id_.endswith("-mobile"):  # the driver prints the desktop card's name for it
                names.append(id_.partition("/")[2])
            keys = [
                (key, id_) for text in names for rules in readers for key in form_keys(text, rules)
            ]
            if with_die(name):
                listed += keys
            else:
                for key, _ in keys:
                    index.add(key, id_)
        for key in _platform_keys(chip):
            index.add(key, id_)
    # What the brackets of pci.ids hold is on every chip of the id: it counts where nothing else is.
    exact = frozenset(index.ids)
    for key, id_ in listed:
        if key not in exact:
            index.add(key, id_)


def form_keys(name: str, rules: Rules) -> "Iterator[str]":
    """The keys of a name's form, with and without its brand and its series: see `name_form`."""
    form = Form(normalise(name, rules=rules), rules)
    if not form.base or "/" in form.base:
        return
    editions = form.key[len(form.base) :]
    whole = next(rules.every(form.text, "whole"), "")
    for base in (form.base, *rules.every(form.base, "short")):
        if whole:
            yield f"b:{base}{editions}|{form.facts}"
            continue
        yield f"b:{base}{editions}"
        if form.brand:
            yield f"b:{form.brand} {base}{editions}"
        if form.facts:
            yield f"b:{base}{editions}|{form.facts}"


def _platform_keys(chip: "ChipEntry") -> "Iterator[str]":
    if chip["kind"] == "gpu" and chip["vendor"] in _PLATFORM_VENDORS:
        for codename in chip.get("codename", "").lower().replace(" ", "").split(","):
            if codename:
                yield f"k:{codename}"


_PLATFORM_VENDORS = ("amd", "intel")  # whose integrated GPUs Mesa names by the platform alone


def arch_index_keys(match: "MatchEntry") -> "Iterator[str]":
    """Every key under which an architecture can be found."""
    values = {
        "c": match.get("compute_capability", ()),
        "x": match.get("gfx", ()),
        "m": match.get("metal_family", ()),
        "ap": match.get("pci", ()),
        "ad": match.get("dt", ()),
        "al": match.get("platform", ()),
        "ag": [_register(register) for register in match.get("gpu_id", ())],
    }
    yield from (f"{letters}:{value}" for letters, listed in values.items() for value in listed)
    yield from _cpu_keys(match)
    if "generic" in match:
        yield f"y:{match['generic']}"


def _cpu_keys(match: "MatchEntry") -> "Iterator[str]":
    for core in match.get("cpuid", ()):
        yield f"i:{core['vendor']}/{core['family']}"
    for arm in match.get("midr", ()):
        yield f"r:{int(arm['implementer'], 16):#x}/{int(arm['part'], 16):#x}"
        yield f"cn:{brand_key(arm['name'].partition(' (')[0])}"
    if "brand" in match:
        yield "b:"


def _register(register: str) -> str:
    """`arm:0xa867`, or `arm:0xa007/0xf00f` with the value masked."""
    vendor, _, value = register.partition(":")
    plain, _, mask = value.partition("/")
    if not mask:
        return f"{vendor}:{int(plain, 16):#x}"
    return f"{vendor}:{int(plain, 16) & int(mask, 16):#x}/{int(mask, 16):#x}"
