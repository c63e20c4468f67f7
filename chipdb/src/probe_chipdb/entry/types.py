"""Types of entries that passed the check, for type checkers: what TOML holds, field by field.

`fields` has the bounds and the sentences of the same fields; a test holds the two together.
"""

from typing import NotRequired, Required, TypedDict

__all__ = [
    "ArchEntry",
    "ChipEntry",
    "ClockEntry",
    "CpuBrandRule",
    "CpuidRule",
    "FamilyEntry",
    "IsaStep",
    "MatchEntry",
    "MemoryEntry",
    "MidrRule",
    "OverrideEntry",
    "PublishedEntry",
    "SourceEntry",
    "SparseEntry",
]


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


class PublishedEntry(TypedDict, total=False):
    """One figure of the vendor, in TFLOPS (TOPS for integers)."""

    rate: Required[str]
    sparsity: str
    tflops: Required[float]
    source: Required[str]
    low: float
    clock: str


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
    boards: int
    pci: list[str]
    dt: list[str]
    gpu_id: list[str]
    published: list[PublishedEntry]
    override: list[OverrideEntry]
    explain: dict[str, str]
    source: list[str]
    confidence: str
    unknown: str
    note: str


class FamilyEntry(TypedDict, total=False):
    """What the chips of a file have in common."""

    title: str
    vendor: str
    kind: str
    source: list[str]
    unknown: str
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
    note: str


class SourceEntry(TypedDict):
    """One document."""

    title: str
    publisher: str
    ref: str
    status: str
