"""The fields of an entry, each with its bounds, its unit and the sentence that editors show."""

from typing import NotRequired, Required, TypedDict

from probe_chipdb import chip_peaks, formats, peaks
from probe_chipdb.entry.spec import Choice, Flag, ListOf, MapOf, Number, Spec, Table, Text
from probe_chipdb.spelling import KINDS as NAME_KINDS

# Types of entries that passed the check, for type checkers: what TOML holds, field by field.
#
# `fields` has the bounds and the sentences of the same fields; a test holds the two together.


class ClockEntry(TypedDict, total=False):
    """Clocks in MHz."""

    base: float
    boost: float
    matrix: float
    boost_low: float
    game: float
    set_by: str


class MemoryEntry(TypedDict, total=False):
    """gib in GiB, bus in bits, gbs in 10^9 bytes per second."""

    gib: float
    type: str
    bus: int
    gbs: float
    gbs_low: float


class WordsEntry(TypedDict):
    """What was read of a figure's source: the place in it, and its words."""

    at: str
    quote: str


class ReadEntry(WordsEntry):
    """What was read of a document."""

    source: str


class PublishedEntry(TypedDict, total=False):
    """One figure of the vendor, in TFLOPS (TOPS for integers)."""

    rate: Required[str]
    sparsity: str
    tflops: Required[float]
    source: Required[str]
    low: float
    clock: str
    read: WordsEntry


class OverrideEntry(TypedDict, total=False):
    """One figure where the formula fails, or `absent` where the chip lacks the path."""

    rate: Required[str]
    sparsity: str
    tflops: float
    absent: bool
    reason: Required[str]
    source: Required[str]
    confidence: str
    low: float
    read: WordsEntry


class SustainedEntry(TypedDict, total=False):
    """What somebody measured with large matrices, in TFLOPS: `low` to `tflops` where runs differ.

    watts: of the device, where they were told; runs: how many; software: with what.
    """

    rate: Required[str]
    tflops: Required[float]
    low: float
    watts: float
    runs: int
    software: str
    source: Required[str]


class LimitsEntry(TypedDict, total=False):
    """The power limits that the driver accepts, in watts, and where they were read.

    Makers of boards set them: board is the PCI subsystem, default its limit, driver the version.
    """

    least: Required[float]
    most: Required[float]
    default: float
    board: str
    driver: str
    source: Required[str]


class InterconnectEntry(TypedDict):
    """The links of one device: gbs in 10^9 bytes per second, both directions and all links."""

    kind: str
    gbs: float
    source: str


class SramEntry(TypedDict):
    """Memory on the chip in MiB: the last-level cache, or the scratchpads."""

    mib: float
    source: str


class EccEntry(TypedDict):
    """The share of the memory that ECC takes when it is on."""

    share: float
    source: str


class ChipEntry(TypedDict, total=False):
    """One chip, with the defaults of its family filled in; `family` is the family's title."""

    id: Required[str]
    name: Required[str]
    kind: Required[str]
    vendor: Required[str]
    family: Required[str]
    aliases: list[str]
    arch: str
    codename: str
    year: int
    units: int
    counts: list[str]
    clock: ClockEntry
    memory: MemoryEntry
    power: float
    power_low: float
    power_limits: LimitsEntry
    boards: int
    shown: int
    form_factor: str
    pci: list[str]
    dt: list[str]
    gpu_id: list[str]
    published: list[PublishedEntry]
    override: list[OverrideEntry]
    explain: dict[str, str]
    sustained: list[SustainedEntry]
    interconnect: InterconnectEntry
    sram: SramEntry
    ecc: EccEntry
    source: list[str]
    confidence: str
    read: list[ReadEntry]
    unknown: str
    note: str


class FamilyEntry(TypedDict, total=False):
    """What the chips of a file have in common."""

    title: str
    vendor: str
    kind: str
    source: list[str]
    unknown: str
    form_factor: str
    note: str


class CpuidRule(TypedDict, total=False):
    """A core that reports this cpuid; `models` are ranges of hexadecimal numbers.

    Where several cores share a model, `steppings` decide, and without a stepping `flag`.
    """

    name: Required[str]
    vendor: Required[str]
    family: Required[int]
    models: Required[list[str]]
    brand: list[str]
    efficient: str
    steppings: str
    flag: str


class MidrRule(TypedDict, total=False):
    """A core that reports this MIDR, in hexadecimal numbers."""

    name: Required[str]
    implementer: Required[str]
    part: Required[str]
    variant: int
    efficient: str


class CpuBrandRule(TypedDict, total=False):
    """A core that a brand string names, by an exact prefix or by its shape."""

    name: Required[str]
    prefix: list[str]
    pattern: list[str]
    efficient: str


class MatchEntry(TypedDict, total=False):
    """What identifies an architecture."""

    compute_capability: list[str]
    gfx: list[str]
    platform: list[str]
    metal_family: list[str]
    pci: list[str]
    dt: list[str]
    gpu_id: list[str]
    product: str
    prefix: list[str]
    suffix: list[str]
    exact: list[str]
    cpuid: list[CpuidRule]
    midr: list[MidrRule]
    brand: list[CpuBrandRule]
    generic: str


class SparseEntry(TypedDict):
    """The rates that structured sparsity multiplies, and by what."""

    factor: float
    keys: list[str]


class IsaStep(TypedDict):
    """Rates that hold where the processor has all these flags."""

    flags: list[str]
    rates: dict[str, float]
    at_least: NotRequired[bool]


class ArchEntry(TypedDict, total=False):
    """One architecture; `rates` are operations per clock and unit, dense."""

    name: Required[str]
    family: Required[str]
    vendor: Required[str]
    unit: Required[str]
    cores_per_unit: int
    match: MatchEntry
    derive: bool
    sparse: SparseEntry
    isa: list[IsaStep]
    at_least: bool
    rates: dict[str, float]
    source: Required[list[str]]
    confidence: Required[str]
    read: list[ReadEntry]
    note: str


class NameEntry(TypedDict):
    """What others call a chip or a die."""

    means: list[str]
    example: str


class SourceEntry(TypedDict, total=False):
    """One document; `url` and `date` say where and when it was read."""

    title: Required[str]
    publisher: Required[str]
    ref: Required[str]
    status: Required[str]
    url: str
    date: str


SLUG = r"[a-z0-9]+(?:[-.][a-z0-9]+)*"
KINDS = ("gpu", "npu", "accelerator")
FORM_FACTORS = ("pcie", "oam", "sxm", "superchip")
_HEX4 = "[0-9a-f]{4}"
PCI = rf"{_HEX4}:{_HEX4}(?:/{_HEX4}:{_HEX4})?(?:@[0-9a-f]{{2}})?"
_DTYPES = "|".join(peaks.DTYPES)
RATE = (
    rf"(?:{_DTYPES})\.(?:{'|'.join(peaks.PATHS)})\.(?:{'|'.join(peaks.ACCUMULATORS)})"
    rf"(?:\.(?:{'|'.join(peaks.VARIANTS)}))?"
)
_RATE_HINT = (
    f"write dtype.path.accumulate: dtype in {' '.join(peaks.DTYPES)}; path in "
    f"{' '.join(peaks.PATHS)}; accumulate in {' '.join(peaks.ACCUMULATORS)}; "
    f"optional variant in {' '.join(peaks.VARIANTS)}"
)

NAME_KEY = r"[a-z0-9][a-z0-9#._-]*"
name_key = Text("what others write, in lower case", NAME_KEY, "write it in lower case")
rate = Text("dtype.path.accumulate", RATE, _RATE_HINT)
chip_id = Text(
    "vendor/slug of the marketing name; never reused",
    rf"{SLUG}/{SLUG}",
    "write vendor/slug in lower case, for instance acme/x1-pro",
)
source_key = Text("key of an entry in data/sources", SLUG, "write the key of a source")
sources = ListOf(source_key, "where counts, clocks and memory come from")
confidence = Choice("how sure the counts and clocks are", *peaks.CONFIDENCES)
sparsity = Choice("structured sparsity is a figure of its own", *peaks.SPARSITIES)
vendor = Text("the vendor's short name", SLUG, "write it in lower case")
kind = Choice("what the device is", *KINDS)
form_factor = Choice("what names may add to the product's own", *FORM_FACTORS)
why_unknown = Choice("why units, clock or rates are missing", *chip_peaks.REASONS)
note = Text("what a reader should know", most=600)
gpu_id = Text(
    "vendor:0xvalue, or vendor:0xvalue/0xmask",
    rf"{SLUG}:0x[0-9a-f]+(?:/0x[0-9a-f]+)?",
    "write it in lower case, for instance arm:0xa867",
)
publisher = ListOf(vendor, "vendors whose namespaces a distribution may add to")
_words: dict[str, Spec] = {
    "at": Text("page, section or table of the source", most=200),
    "quote": Text("its words that hold the figure", most=300),
}
words = Table(_words, tuple(_words), "what was read: only with it a figure is the vendor's")
reads = ListOf(
    Table({"source": source_key, **_words}, ("source", *_words)),
    "what was read of counts, clocks, rates or memory",
    most=8,
)
_tflops = Number("10^12 operations per second, FMA as two", 1e-4, 1e6, "T")

CHIP: dict[str, Spec] = {
    "id": chip_id,
    "name": Text("as the vendor's driver prints it, else the marketing name", most=128),
    "kind": kind,
    "vendor": vendor,
    "aliases": ListOf(
        Text("another exact spelling", most=256), "other exact spellings that tools print"
    ),
    "arch": Text("id of an architecture", SLUG, "write the id of an entry in data/arch"),
    "codename": Text("the die", most=64),
    "year": Number("year of release", 1999, 2035, whole=True),
    "units": Number("SMs, CUs, EUs or cores per device as the OS shows it", 1, 30000, whole=True),
    "counts": ListOf(
        Text("a count or a range of counts", r"\d{1,3}(?:-\d{1,3})?", "write 4 or 6-9"),
        "counts of units that an entry without units stands for",
        most=16,
    ),
    "clock": Table(
        {
            "base": Number("base clock", 50, 7000, "MHz"),
            "boost": Number("boost clock; the highest of a range", 50, 7000, "MHz"),
            "matrix": Number("clock of the matrix units where it differs", 50, 7000, "MHz"),
            "boost_low": Number("the lowest boost clock of a range", 50, 7000, "MHz"),
            "game": Number("AMD's game clock, which the card boosts above", 50, 7000, "MHz"),
            "set_by": Choice("what sets the clock of a part sold with a range", *chip_peaks.RANGES),
        },
        about="clocks in MHz",
    ),
    "memory": Table(
        {
            "gib": Number("size", 0.0625, 4096, "GiB"),
            "type": Text("GDDR6X, HBM3, LPDDR5 ...", most=32),
            "bus": Number("width of the bus", 8, 32768, "bits", whole=True),
            "gbs": Number("bandwidth; the highest of a range", 0.5, 40000, "GB/s"),
            "gbs_low": Number("the lowest bandwidth of a range", 0.5, 40000, "GB/s"),
        },
        about="memory of one device; unified memory has no gib",
    ),
    "power": Number("board power; the highest of a range", 0.3, 5000, "W"),
    "power_low": Number("the lowest board power of a range", 0.3, 5000, "W"),
    "power_limits": Table(
        {
            "least": Number("the least", 0, 5000, "W"),
            "most": Number("the most", 0.3, 5000, "W"),
            "default": Number("the default of that board", 0.3, 5000, "W"),
            "board": Text(
                "the PCI subsystem of the board where they were read",
                r"[0-9a-f]{4}:[0-9a-f]{4}",
                "write ssss:ssss in lower-case hex",
            ),
            "driver": Text("the version of the driver", most=32),
            "source": source_key,
        },
        need=("least", "most", "source"),
        about="power limits that the driver accepts, in W",
    ),
    "boards": Number("devices that one board shows", 1, 64, whole=True),
    "shown": Number("devices that a framework shows of one", 1, 64, whole=True),
    "form_factor": form_factor,
    "pci": ListOf(
        Text(
            "vvvv:dddd, /ssss:ssss for a subsystem, @rr for a revision",
            PCI,
            "write vvvv:dddd, vvvv:dddd/ssss:ssss or vvvv:dddd@rr in lower-case hex",
        ),
        "PCI keys",
        most=400,
    ),
    "dt": ListOf(
        Text(
            "a device-tree compatible",
            r"[a-z0-9][\w+.-]*,[\w+.,-]+|[a-z0-9][\w+.-]*",
            "write it as the device tree does: vendor,chip",
        ),
        "device-tree compatibles",
    ),
    "gpu_id": ListOf(gpu_id, "id registers"),
    "published": ListOf(
        Table(
            {
                "rate": rate,
                "sparsity": sparsity,
                "tflops": _tflops,
                "source": source_key,
                "low": _tflops,
                "clock": Choice("the clock behind the figure", "boost", "base", "low"),
                "read": words,
            },
            need=("rate", "tflops", "source"),
        ),
        "the vendor's own figures per device",
    ),
    "override": ListOf(
        Table(
            {
                "rate": rate,
                "sparsity": sparsity,
                "tflops": _tflops,
                "absent": Flag("this chip lacks the path"),
                "reason": Text("why the formula fails", most=400),
                "source": source_key,
                "confidence": confidence,
                "low": _tflops,
                "read": words,
            },
            need=("rate", "reason", "source"),
        ),
        "figures where the formula does not apply",
    ),
    "sustained": ListOf(
        Table(
            {
                "rate": rate,
                "tflops": _tflops,
                "low": _tflops,
                "watts": Number("power of the device meanwhile", 0.3, 5000, "W"),
                "runs": Number("how many runs", 1, 10**6, whole=True),
                "software": Text("with what it was measured", most=96),
                "source": source_key,
            },
            need=("rate", "tflops", "source"),
        ),
        "what somebody measured with large matrices",
    ),
    "interconnect": Table(
        {
            "kind": Text("NVLink 5, Infinity Fabric, ICI ...", most=32),
            "gbs": Number("both directions, all links of a device", 1, 20000, "GB/s"),
            "source": source_key,
        },
        need=("kind", "gbs", "source"),
        about="links to other devices",
    ),
    "sram": Table(
        {"mib": Number("size", 0.1, 1e6, "MiB"), "source": source_key},
        need=("mib", "source"),
        about="memory on the chip: the last-level cache, or the scratchpads",
    ),
    "ecc": Table(
        {"share": Number("of the memory", 0.001, 0.5), "source": source_key},
        need=("share", "source"),
        about="what ECC takes of the memory when it is on",
    ),
    "explain": MapOf(
        RATE, Text("why", most=400), "why published and derived differ by more than 3 %", _RATE_HINT
    ),
    "source": sources,
    "confidence": confidence,
    "read": reads,
    "unknown": why_unknown,
    "note": note,
}

FAMILY: dict[str, Spec] = {
    "title": Text("the family's name", most=128),
    "vendor": vendor,
    "kind": kind,
    "source": sources,
    "unknown": why_unknown,
    "form_factor": form_factor,
    "note": note,
}

_rates = MapOf(
    RATE,
    Number("operations per clock and unit, dense", 1e-3, 1e7),
    "operations per clock and unit, dense, FMA as two",
    _RATE_HINT,
)
_names = ListOf(Text(most=64), most=200)
_inner_names = ListOf(
    Text("", r"[^,]+", "without a comma: it separates words in the built table", most=64), most=200
)
_models = ListOf(
    Text("a model or a range of models", r"0x[0-9a-f]+(?:-0x[0-9a-f]+)?", "write 0x3c or 0x10-0x1f")
)
_steppings = Text("a stepping or a range", r"[0-9]+(?:-[0-9]+)?", "write 4 or 5-7")
_hex = Text("a register value", r"0x[0-9a-f]+", "write it in lower-case hex")
_arch_id = Text("id of an architecture", SLUG, "write the id of an architecture")
_family = Number("cpuid family", 0, 300, whole=True)
_cpu_name = Text("the microarchitecture", most=64)

MATCH: dict[str, Spec] = {
    "compute_capability": ListOf(Text("major.minor", r"\d+\.\d", "write for instance 8.9")),
    "gfx": ListOf(Text("LLVM target", r"gfx[0-9a-f]+", "write for instance gfx1100")),
    "platform": _names,
    "metal_family": ListOf(Text("Metal family", r"[a-z]+\d+", "write for instance apple9")),
    "pci": ListOf(Text("vvvv:dddd", PCI, "write vvvv:dddd")),
    "dt": ListOf(Text(most=128)),
    "gpu_id": ListOf(gpu_id),
    "product": Text("product class that the name decides", SLUG, "write one word"),
    "prefix": _names,
    "suffix": _names,
    "exact": _names,
    "cpuid": ListOf(
        Table(
            {
                "name": _cpu_name,
                "vendor": Text(most=16),
                "family": _family,
                "models": _models,
                "brand": _inner_names,
                "efficient": _arch_id,
                "steppings": _steppings,
                "flag": Text("the flag that decides where no stepping is known", r"\w+", most=32),
            },
            need=("name", "vendor", "family", "models"),
        )
    ),
    "midr": ListOf(
        Table(
            {
                "name": _cpu_name,
                "implementer": _hex,
                "part": _hex,
                "variant": Number("MIDR's variant", 0, 15, whole=True),
                "efficient": _arch_id,
            },
            need=("name", "implementer", "part"),
        )
    ),
    "brand": ListOf(
        Table(
            {
                "name": _cpu_name,
                "prefix": _inner_names,
                "pattern": ListOf(
                    Text(
                        "the shape of a brand string without (R), clock and core count",
                        r"(?:[a-z0-9+#?.]+ )*[a-z0-9+#?.]+[*]?",
                        "lower case; # is a digit, ? a digit or letter, a final * any other rest",
                        most=64,
                    ),
                    most=200,
                ),
                "efficient": _arch_id,
            },
            need=("name",),
        )
    ),
    "generic": Choice("the last resort of an instruction set", "x86", "arm", "arm32"),
}

ARCH: dict[str, Spec] = {
    "name": Text("the architecture's name", most=96),
    "family": Text(
        "what reports print as arch", r"[a-z0-9][a-z0-9.+-]*", "write one lower-case word"
    ),
    "vendor": vendor,
    "unit": Text("what is counted", most=16),
    "cores_per_unit": Number("FP32 lanes per unit", 1, 1024, whole=True),
    "match": Table(MATCH, about="what identifies it"),
    "derive": Flag("false when the id covers several sets of rates"),
    "sparse": Table(
        {"factor": Number("by how much", 1, 8), "keys": ListOf(rate)},
        need=("factor", "keys"),
        about="rates that structured sparsity multiplies",
    ),
    "isa": ListOf(
        Table(
            {
                "flags": ListOf(Text(r"", r"\w+", "write the flag as Linux does")),
                "rates": _rates,
                "at_least": Flag("true when these rates are a lower bound"),
            },
            need=("flags", "rates"),
        ),
        "CPU: rates that need instructions",
    ),
    "at_least": Flag("true when its rates are a lower bound"),
    "rates": _rates,
    "source": sources,
    "confidence": confidence,
    "read": reads,
    "note": note,
}

NAME: dict[str, Spec] = {
    "means": ListOf(
        Text("a chip's id, or a codename", rf"{SLUG}(?:/{SLUG})?", "write vendor/slug"),
        "the chips, or in names/mesa.toml the codenames, for which it stands",
    ),
    "example": Text("a whole name in which it stands; the check looks it up"),
}

SOURCE: dict[str, Spec] = {
    "title": Text("the document", most=300),
    "publisher": Text("who published it", most=96),
    "ref": Text("where to find it", most=400),
    "status": Choice("was the text read for this", "read", "third-party-read", "cited"),
    "url": Text("the address at which it was read", r"https?://\S+", "write its address", most=400),
    "date": Text("when it was read", r"20\d\d-[01]\d-[0-3]\d", "write for instance 2026-11-23"),
}

chip = Table(CHIP, need=("id", "name"))
family = Table(FAMILY, need=("title", "vendor"))
arch = Table(ARCH, need=("name", "family", "vendor", "unit", "source", "confidence"))
name = Table(NAME, need=("means", "example"))
source = Table(SOURCE, need=("title", "publisher", "ref", "status"))

_set_name = r"[a-z_]+"
_rule = Table(
    {
        "of": Text("the group of kinds of names that the row is for", _set_name),
        "pattern": Text("what the text must be, in lower case", most=400),
        "to": Text("what it becomes, with the fields of the pattern", most=200),
        "unless": Text("a pattern of texts that the row leaves alone", most=200),
        "example": Text("a text as it is seen, which shows the row at work", most=400),
        "expect": Text("the normalised name of the example", most=256),
    },
    ("pattern", "example", "expect"),
)
_machine = Table(
    {
        "pattern": Text("what the type must be, with hyphens for blanks", most=400),
        "to": Text("scheme/name: the key of a row in data/names", most=200),
        "example": Text("a type of machine", most=100),
        "expect": Text("what the row makes of it", most=100),
    },
    ("pattern", "to", "example", "expect"),
)
_words_of = ListOf(Text(most=64), "words, the longer before what they begin with", most=256)
RULES: dict[str, Spec] = {
    "group": MapOf(
        _set_name,
        ListOf(Choice("what printed a name", *NAME_KINDS)),
        "kinds of names",
        "write it in lower case",
    ),
    "set": MapOf(_set_name, _words_of, "words that a field may be", "write it in lower case"),
    "word": MapOf(
        _set_name,
        MapOf(r"[^\t|;=]+", Text(most=64), "a word and what it means", "write it in lower case"),
        "words by what they are of a name",
        "write it in lower case",
    ),
    "none": ListOf(
        Table(
            {
                "of": Text("a name for the group of words", _set_name),
                "words": _words_of,
                "reason": Text("why no chip has such a name, behind the word", most=200),
                "example": Text("a name as it is seen", most=256),
            },
            ("of", "words", "reason", "example"),
        ),
        "names that are no chip's",
    ),
    "machine": ListOf(_machine, "types of machines that clouds rent", most=100),
    "host": ListOf(_rule, "a virtual machine's names for its host's device"),
    "line": ListOf(_rule, "what is around a name", most=500),
    "form": ListOf(_rule, "one spelling for what people write in several", most=200),
    "also": ListOf(_rule, "what a name may mean beside itself"),
    "fact": ListOf(
        _rule, "pci= (vvvv:dddd, then /ssss:ssss and @rr), units= or gpu_id= in a text", most=100
    ),
    "bare": ListOf(_rule, "the ids of a text that is known to be one"),
    "share": ListOf(_rule, "kind/profile/board/card of a share of a card"),
    "board": ListOf(_rule, "a board as NVIDIA's vGPU types abbreviate it"),
    "bare_name": ListOf(_rule, "a name without its brand"),
    "whole": ListOf(_rule, "names of a product that only the form factor completes"),
    "short": ListOf(_rule, "what people shorten a product's glued words to"),
}
"""Tables of a file of rules."""

_format_row = Table(
    {
        "by": Choice("the program; left out for the hardware", *formats.BY[1:]),
        "archs": ListOf(Text("an architecture or a group", SLUG), most=200),
        "formats": ListOf(Choice("a number format", *formats.FORMATS)),
        "state": Choice("how it computes in the format", *formats.STATES),
        "since": Text("the first release that has it", most=32),
        "seen": Text("a release that has it, where the first is not known", most=32),
        "source": Text("key of the document", SLUG),
        "at": Text("the place in the document", most=200),
        "quote": Text("its words", most=400),
        "unknown": Text("why it is not known", most=300),
    },
    ("archs", "formats"),
)
FORMAT_TABLES: dict[str, Spec] = {
    "group": MapOf(
        SLUG, ListOf(Text("an architecture", SLUG), most=200), "architectures", "write a-name"
    ),
    "unknown": MapOf(
        r"[a-z.]+", Text("why a cell without a row is not known", most=300), "reasons", "write by"
    ),
    "row": ListOf(_format_row, "number formats of architectures", most=500),
}
"""Tables of a file of number formats."""
