"""What the check holds entries to: published figures, plausible values, keys of their own."""

import math
import re
from difflib import get_close_matches

from probe_chipdb.chip_peaks import RANGES, TOLERANCE, find
from probe_chipdb.entry.evidence import entry_faults, evidence, figure_faults
from probe_chipdb.entry.pack import chip_keys
from probe_chipdb.entry.spec import Problem
from probe_chipdb.exclusions import exclusion
from probe_chipdb.name_facts import facts_in
from probe_chipdb.name_form import Form
from probe_chipdb.name_lookup import has_codename, machine_keys
from probe_chipdb.peaks import Peak
from probe_chipdb.rules import Rules
from probe_chipdb.spelling import is_generic, normalise
from probe_chipdb.table import CHIP, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.entry.fields import ArchEntry, ChipEntry, ClockEntry, MemoryEntry
    from probe_chipdb.entry.name_rules import RuleRow
    from probe_chipdb.entry.validate import Data

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it


# Holds what the formula gives against what the vendor publishes: they agree, or say why.


class Figure:
    """One published figure beside the derived one."""

    __slots__ = ("derived", "published", "rate", "sparsity")

    def __init__(self, rate: str, sparsity: str, published: float, derived: float) -> None:
        self.rate = rate
        self.sparsity = sparsity
        self.published = published
        self.derived = derived

    @property
    def error(self) -> float:
        """Derived against published, as a fraction of the published figure."""
        return self.derived / self.published - 1

    @property
    def near(self) -> bool:
        """Within the tolerance."""
        return abs(self.error) <= TOLERANCE


def figures(db: "Database", id_: str) -> "Iterator[Figure]":
    """Every published figure of a chip for which there is a derived one or an override."""
    chip = db.chip(id_)
    if chip is None:
        return
    for rate, sparsity, value, _, clock, *_ in parts(chip.fields[CHIP.index("published")]):
        mhz = {"base": chip.clock.base, "low": chip.clock.boost_low}.get(clock)
        peaks = chip.peaks(clock_mhz=mhz, clock_source=clock) if mhz else chip.peaks()
        peak = find(peaks, rate, sparsity)
        if peak is not None and peak.basis != "published":
            yield Figure(rate, sparsity, float(value), peak.tflops)


def figure_problems(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Unexplained differences, sparse figures in dense slots, and rates that the path lacks."""
    for id_, entry in data.chips.items():
        chip = db.chip(id_)
        peaks = chip.peaks() if chip else ()
        for fault in (*_differences(entry, figures(db, id_)), *_absent(entry, peaks)):
            yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", *fault)


def _differences(entry: "ChipEntry", compared: "Iterator[Figure]") -> "Iterator[Fault]":
    for figure in compared:
        if not figure.near and figure.rate not in entry.get("explain", {}):
            yield f'published "{figure.rate}" {figure.sparsity}', *_difference(figure)


_TWICE = (
    'twice as much is the sparse figure (write sparsity = "sparse", or halve it), or the rates '
    "count a fused multiply-add once (double them)"
)


def _difference(figure: Figure) -> tuple[str, str]:
    """The difference, and the slip that would make one of this size."""
    fault = (
        f"published {figure.published:g} but units x rate x clock gives {figure.derived:.4g} "
        f"({figure.error:+.1%})"
    )
    ratio = figure.published / figure.derived
    if figure.sparsity == "dense" and 1.94 <= ratio <= 2.06:
        return fault, _TWICE
    for factor in (1000, 0.001):
        if 0.97 <= ratio / factor <= 1.03:
            return fault, f"a slip of x{factor:g}: write TFLOPS (TOPS), not G or P"
    return fault, "correct units, clock or rate, or say why in explain"


def _absent(entry: "ChipEntry", peaks: tuple[Peak, ...]) -> "Iterator[Fault]":
    """A published figure with which nothing is compared: a path or sparsity that is not there."""
    derived = {(peak.rate, peak.sparsity) for peak in peaks if peak.basis != "published"}
    rates = {rate for rate, _ in derived}
    for figure in entry.get("published", ()) if derived else ():
        sparsity = figure.get("sparsity", "dense")
        if (figure["rate"], sparsity) in derived or figure["rate"] in entry.get("explain", {}):
            continue
        if figure["rate"] in rates:
            yield (
                f'published "{figure["rate"]}" {sparsity}',
                "nothing is compared with it: the architecture has no sparse rate there",
                "enter the dense figure, add sparse to the architecture, or explain it",
            )
        else:
            yield (
                f'published "{figure["rate"]}"',
                "the architecture has no such rate",
                "use the rate key of the architecture, add an override, or explain it",
            )


# Checks what entries say of each other: sources, architectures, shared names and ids.


def reference_problems(data: "Data", db: "Database", alone: bool) -> "Iterator[Problem]":
    """Unknown sources and architectures, and names that would mislead.

    alone: a file or package without the folders of this project's data, which advice must not name.
    """
    for id_, chip in data.chips.items():
        figures = (
            *chip.get("published", ()), *chip.get("override", ()), *chip.get("sustained", ())
        )  # fmt: skip
        named = [figure["source"] for figure in figures]
        sources = _sources(db, chip.get("source", []), [*named, *_beside(chip)], alone)
        for fault in (
            *sources,
            *_architecture(db, chip, alone),
            *_names(db, chip),
            *_evidence(data, chip),
        ):
            yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", *fault)
    for name, arch in data.archs.items():
        own = entry_faults(arch["confidence"], arch.get("read", ()), data.sources.get)
        sources = _sources(db, arch.get("source", []), [], alone)
        for fault in (*sources, *_sparse_rates(arch), *own):
            yield Problem(data.where[f"arch:{name}"], f"[{name}]", *fault)


def _beside(chip: "ChipEntry") -> "Iterator[str]":
    """The sources of what stands beside the peaks."""
    if "power_limits" in chip:
        yield chip["power_limits"]["source"]
    if "interconnect" in chip:
        yield chip["interconnect"]["source"]
    if "sram" in chip:
        yield chip["sram"]["source"]
    if "ecc" in chip:
        yield chip["ecc"]["source"]


def _sources(
    db: "Database", own: list[str], of_figures: list[str], alone: bool
) -> "Iterator[Fault]":
    for key in dict.fromkeys([*own, *of_figures]):
        if db.source(key) is None:
            fix = f"write [source.{key}] in this file" if alone else "add it to data/sources"
            yield "source", f"{key!r} is unknown", fix
    if not own:
        yield "source", "is missing", "name a source here or in [family]"


def _evidence(data: "Data", chip: "ChipEntry") -> "Iterator[Fault]":
    """What is called the vendor's without the words that were read, or with other words."""
    yield from entry_faults(chip.get("confidence"), chip.get("read", ()), data.sources.get)
    for figure in (*chip.get("published", ()), *chip.get("override", ())):
        source = data.sources.get(figure["source"])
        yield from figure_faults(figure, chip.get("boards", 1), source)


def blanket_problems(data: "Data") -> "Iterator[Problem]":
    """One source is one document: what several vendors state of themselves is in several."""
    vendors: dict[str, dict[str, None]] = {}
    for chip in data.chips.values():
        for figure in (*chip.get("published", ()), *chip.get("override", ())):
            if evidence(figure, data.sources) != "third-party" and "confidence" not in figure:
                vendors.setdefault(figure["source"], {})[chip["vendor"]] = None
    for key, named in vendors.items():
        if len(named) > 1 and key in data.sources:
            fault = f"stands behind the own figures of {', '.join(named)}"
            fix = "make a source for each vendor's document"
            yield Problem(data.where[f"source:{key}"], f"[{key}]", "", fault, fix)


def _architecture(db: "Database", chip: "ChipEntry", alone: bool) -> "Iterator[Fault]":
    arch = chip.get("arch")
    if arch and db.arch(arch) is None:
        near = get_close_matches(arch, [known.id for known in db.archs()], n=1, cutoff=0.8)
        meant = f"did you mean {near[0]!r}? " if near else ""
        where = f"write [arch.{arch}] in this file" if alone else "name one of data/arch"
        yield "arch", f"{arch!r} is unknown", meant + where


def _sparse_rates(arch: "ArchEntry") -> "Iterator[Fault]":
    sparse = arch.get("sparse")
    for key in sparse["keys"] if sparse else ():
        if key not in arch.get("rates", {}):
            yield "sparse", f"{key!r} is no rate of it", "name one of its rates"
        elif ".matrix." not in key:
            yield "sparse", f"{key!r} is a vector path", "only matrix paths are sparse"


def _names(db: "Database", chip: "ChipEntry") -> "Iterator[Fault]":
    for name in (chip["name"], *chip.get("aliases", ())):
        key = normalise(name)
        if reason := exclusion(facts_in(name), ""):
            yield "aliases", f"{name!r} can never match: {reason}", "remove it"
        elif is_generic(key) and len(db.ids(f"n:{key}")) == 1:
            fault = f"{name!r} names no product, yet only this chip has it"
            yield "aliases", fault, "remove it, or give it to every chip that it may mean"
    if reason := exclusion({}, next(iter(chip.get("pci", ())), "")):
        yield "pci", reason, "remove the chip"


def indistinct(chips: "Iterable[ChipEntry]") -> "list[list[str]]":
    """The ids of chips that nothing live can distinguish: same keys, units and memory."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for chip in chips:
        live = (str(chip.get("units")), str(chip.get("memory", {}).get("gib")))
        groups.setdefault((*sorted(chip_keys(chip)), *live), []).append(chip["id"])
    return [ids for ids in groups.values() if len(ids) > 1]


# Checks values that are possible one by one but not together: the traces of a slip.

# fp32 TFLOPS per watt of board power. The data's chips lie between 0.0043 (GeForce GTX 465) and
# 0.47 (Biren BR100); widened, because a new chip is not wrong for being the best.
_FP32_PER_WATT = (0.001, 0.8)
# Data rate per pin in Gb/s: the slowest and fastest that was ever sold, a little widened.
_PIN_RATE = {"GDDR": (1.5, 40.0), "HBM": (0.9, 12.0), "LPDDR": (0.3, 11.0), "DDR": (0.3, 9.0)}

# Words of a note that deny the one clock beside it, and names of parts that a laptop's maker tunes.
_DIFFERS = re.compile(
    r"clock (?:depends|differs|varies)|game clock|Super mode|power mode|other .* models run at"
    r"|rates the models differently|(?:runs|launched).* at .*MHz|MHz as launched"
    r"|clock of (?:the )?(?:Ryzen|Core|Snapdragon)|may be rated|another SoC may set",
    re.IGNORECASE,
)
_LAPTOP = re.compile(r"Laptop GPU|Max-Q Design|\bMobile\b|\bRX \d{4}[MS]\b|\bArc A\d{3}M\b")


def plausibility_problems(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Clocks out of order, bandwidth that the bus cannot carry, chips that look the same."""
    for id_, chip in data.chips.items():
        for fault in _faults(chip, db.chip(id_)):
            yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", *fault)
    for first, *twins in indistinct(data.chips.values()):
        fault = (
            "id",
            f"nothing distinguishes it from {', '.join(twins)}",
            "add units, memory or keys, or merge them",
        )
        yield Problem(data.where[f"chip:{first}"], f"chip {first!r}", *fault, level="warning")


def _faults(entry: "ChipEntry", chip: "Chip | None") -> "Iterator[Fault]":
    yield from _clocks(entry.get("clock", {}))
    yield from _range(entry)
    yield from _memory(entry.get("memory", {}))
    yield from _overrides(entry)
    yield from _efficiency(entry, chip)


def _clocks(clock: "ClockEntry") -> "Iterator[Fault]":
    base, boost, low = clock.get("base"), clock.get("boost"), clock.get("boost_low")
    if base and boost and base > boost:
        yield "clock", f"base {base:g} is above boost {boost:g}", "swap them"
    if low and boost and low > boost:
        yield "clock", f"boost_low {low:g} is above boost {boost:g}", "swap them"
    if low and not boost:
        yield "clock", "boost_low without boost", "give the highest boost too"


def _range(entry: "ChipEntry") -> "Iterator[Fault]":
    """One figure where the clock is not one: the name or the note tells."""
    clock = entry.get("clock", {})
    if clock.get("boost_low") and not clock.get("set_by"):
        yield "clock", "boost_low without set_by", f"name what decides: {', '.join(RANGES)}"
    yield from _units(entry)
    if entry.get("power_low", 0) > entry.get("power", math.inf):
        yield "power", "power_low is above power", "swap them"
    ranged = clock.get("set_by") or clock.get("game")
    if ranged or not clock.get("boost"):
        return
    if _LAPTOP.search(entry["name"]):
        fix = 'write set_by = "laptop", and boost_low where the lowest clock is known'
        yield "clock", "a laptop part has one clock, but laptops differ", fix
    elif "confidence" not in entry and _DIFFERS.search(entry.get("note", "")):
        fix = "write boost_low and set_by, or the confidence of the one clock"
        yield "clock", "one vendor clock, but the note says that it differs", fix


def _units(entry: "ChipEntry") -> "Iterator[Fault]":
    counts = entry.get("counts", [])
    if counts and "units" in entry:
        yield "counts", "beside units", "give one of them"
    for text in counts:
        first, _, last = text.partition("-")
        if last and int(first) >= int(last):
            yield "counts", f"{text} does not go up", "write the lower one first"


def _memory(memory: "MemoryEntry") -> "Iterator[Fault]":
    bus, gbs, type_ = memory.get("bus"), memory.get("gbs"), memory.get("type", "")
    family = next((name for name in _PIN_RATE if name in type_), None)
    if not (bus and gbs and family):
        return
    low, high = _PIN_RATE["LPDDR" if "LPDDR" in type_ else family]
    rate = gbs * 8 / bus
    if not low <= rate <= high:
        fault = f"{gbs:g} GB/s over {bus} bits is {rate:.3g} Gb/s per pin, not possible for {type_}"
        yield "memory", fault, f"{type_} carries {low:g} to {high:g}: correct gbs or bus"


def _efficiency(entry: "ChipEntry", chip: "Chip | None") -> "Iterator[Fault]":
    """A wrong unit count, clock or power shows in the fp32 TFLOPS per watt of board power."""
    power = entry.get("power")
    peak = chip.peak("fp32", path="vector") if chip and power else None
    if chip is None or peak is None or power is None:
        return
    ratio = peak.tflops * chip.boards / power
    low, high = _FP32_PER_WATT
    if not low <= ratio <= high:
        fault = f"{peak.tflops:.4g} fp32 TFLOPS at {power:g} W is {ratio:.3g} per watt"
        yield "power", fault, f"{low:g} to {high:g} was ever sold: correct units, clock or power"


def _overrides(chip: "ChipEntry") -> "Iterator[Fault]":
    for item in chip.get("override", ()):
        if ("tflops" in item) == bool(item.get("absent")):
            fault = f"{item['rate']} needs either tflops or absent = true"
            yield "override", fault, "give one of them"
        if item.get("low", 0) > item.get("tflops", math.inf):
            yield "override", f"low of {item['rate']} is above tflops", "swap them"


def name_problems(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Names of others whose own example does not find what they mean, or finds more."""
    for text, entry in data.names.items():
        kind = "vulkan" if text.startswith("mesa/") else "name"
        match = db.match(name=entry["example"], name_kind=kind)
        chips = (match.chip,) if match.chip else match.parents or match.candidates
        ids = {chip.id for chip in chips}
        means = tuple(entry["means"])
        codenames = [meant for meant in means if "/" not in meant]
        fits = all(has_codename(chip, tuple(codenames)) for chip in chips)
        if not ids or (not fits if codenames else ids != set(means)):
            found = ", ".join(sorted(ids)[:4]) or match.reason
            fault = f"the example {entry['example']!r} finds {found}"
            fix = "correct what it means, or write another example"
            label = text.partition("/")[2]
            yield Problem(data.where[f"name:{text}"], f"[{label}]", "example", fault, fix)


def row_problems(data: "Data") -> "Iterator[Problem]":
    """Rules whose example is not what they expect, or would be without them."""
    rules = data.rules.read()
    for none in data.rules.none:
        if not exclusion(facts_in(none["example"], rules), "").endswith(none["reason"]):
            fault = f"the example {none['example']!r} holds no word of the group"
            yield Problem("rules", f"none {none['of']!r}", "example", fault, "write one that does")
    for (stage, row), without in zip(data.rules.rows, data.rules.without_each(), strict=True):
        label, example = f"{stage} {row['pattern']!r}", row["example"]
        if row["expect"] not in (found := _of_row(data, stage, row, rules)):
            fault = f"the example {example!r} is {', '.join(found)!r}"
            yield Problem("rules", label, "example", fault, "correct the row, or what it expects")
        elif found == _of_row(data, stage, row, without):
            fault = f"the example {example!r} is the same without the row"
            yield Problem("rules", label, "example", fault, "write one that needs it, or remove it")


def _of_row(data: "Data", stage: str, row: "RuleRow", rules: Rules) -> list[str]:
    """What rules make of a row's example."""
    kind = data.rules.groups[row["of"]][0] if "of" in row else "name"
    key = normalise(row["example"], kind, rules)
    if stage == "machine":
        return [found.removeprefix("s:") for found in machine_keys(key, rules)]
    if stage in ("host", "share"):
        return [facts_in(row["example"], rules).get(stage, "")]
    if stage == "board":
        return [rules.rewritten(row["example"].lower(), stage)]
    if stage == "fact":
        return ["=".join(fact) for fact in facts_in(row["example"], rules).items()]
    form = Form(key, rules)
    if stage == "form":
        return [form.text]
    if stage in ("also", "whole", "short"):
        return [*rules.every(form.base if stage == "short" else form.text, stage)]
    if stage in ("bare", "bare_name"):
        return [*rules.every(row["example"].lower() if stage == "bare" else key, stage)][:1]
    return [key]
