"""Architectures, and peaks: units times operations per clock times clock, each one's kind apart.

A figure without its data type, path, accumulator, sparsity and clock means nothing ("RTX 4090
fp16" circulates as 82.6, 165.2, 330.3 and 660.6), so no number leaves here without them.
"""

from probe_chipdb.table import ARCH, items, number, parts, unescape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database
    from probe_chipdb.document import PeakJson


DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "int4")
PATHS = ("vector", "matrix")
ACCUMULATORS = ("fp64", "fp32", "bf16", "fp16", "int32")
VARIANTS = ("single", "packed")
SPARSITIES = ("dense", "sparse")
CONFIDENCES = ("vendor", "third-party", "recalled", "derived", "measured", "community")
STATED = CONFIDENCES[:3]
"""Of what a vendor states: its words were read, somebody's quotation of them, or neither."""


# One architecture: what a unit of it does per clock, for every data type and path.

_ARCH_AT = {name: at for at, name in enumerate(ARCH)}


class Arch:
    """Rates of one architecture, dense, per clock and unit, one FMA counted as two operations.

    id, name, family, vendor: its identity; reports print the family.
    unit, cores_per_unit: what is counted ("SM", "CU", "core" ...), and FP32 lanes in each.
    rates: {"dtype.path.accumulate": operations}.
    sparse_factor, sparse_keys: which rates the vendor's structured sparsity multiplies, by what.
    at_least: whether the rates are a lower bound.
    derivable: False where the same id covers several sets of rates, so that only a chip that
        names this architecture may use them.
    """

    __slots__ = (
        "_fields",
        "at_least",
        "confidence",
        "cores_per_unit",
        "derivable",
        "family",
        "id",
        "name",
        "note",
        "rates",
        "sources",
        "sparse_factor",
        "sparse_keys",
        "unit",
        "vendor",
    )

    def __init__(self, fields: list[str]) -> None:
        self._fields = fields
        self.id = fields[0]
        self.name = unescape(fields[1])
        self.family = unescape(fields[2])
        self.vendor = fields[3]
        self.unit = unescape(fields[4])
        self.cores_per_unit = number(fields[5])
        self.derivable = fields[6] != "0"
        self.rates = rates_of(fields[7])
        factor, _, keys = fields[8].partition(";")
        self.sparse_factor = number(factor) or 1.0
        self.sparse_keys = frozenset(keys.split(",")) if keys else frozenset[str]()
        self.at_least = self.column("at_least") == "1"
        self.sources = tuple(items(self.column("source")))
        self.confidence = self.column("confidence")
        self.note = unescape(self.column("note"))

    def column(self, name: str) -> str:
        """The raw text of one column, for the code that matches."""
        return self._fields[_ARCH_AT[name]]

    def isa_steps(self) -> list[tuple[frozenset[str], dict[str, float], bool]]:
        """For CPUs: (flags needed, rates then valid, whether those are a lower bound).

        Each step replaces what it names.
        """
        return [
            (frozenset(flags.split(",")), rates_of(rates.replace(",", "|")), bool(at_least))
            for flags, rates, *at_least in parts(self.column("isa"))
        ]

    def rates_with(self, flags: frozenset[str]) -> tuple[dict[str, float], frozenset[str]]:
        """For CPUs: the rates that hold with these flags, and which of them are a lower bound."""
        rates = dict(self.rates)
        lower = frozenset(rates) if self.at_least else frozenset[str]()
        for needed, step, at_least in self.isa_steps():
            if needed <= flags:
                rates.update(step)
                lower = lower | step.keys() if at_least or self.at_least else lower - step.keys()
        return rates, lower

    def with_rates(self, rates: dict[str, float]) -> "Arch":
        """The same architecture, held to other rates."""
        copy = Arch(list(self._fields))
        copy.rates = rates
        return copy

    def __repr__(self) -> str:
        return f"<Arch {self.id}>"


def rates_of(text: str) -> dict[str, float]:
    """`fp32.vector.fp32=256|...` as a mapping."""
    pairs = (item.split("=") for item in text.split("|") if item)
    return {key: float(value) for key, value in pairs}


def archs_of(db: "Database", key: str) -> list[Arch]:
    """The architectures that the index files under a key."""
    return [arch for id_ in db.ids(key) if (arch := db.arch(id_))]


# One peak.


class Peak:
    """One theoretical peak of one device.

    tflops: 10^12 operations per second (TOPS for integers), FMA counted as two.
    rate: the key `dtype.path.accumulate`, and `.variant` where there is one.
    dtype, path, accumulate: what is multiplied, where, and what it is summed in.
    sparsity: "dense", or "sparse" for the vendor's structured sparsity.
    variant: None, "single" (no dual issue) or "packed" (packed instructions).
    clock, mhz: which clock ("boost", "matrix", "base", "max" ...), and its MHz where known.
    low: the figure at the bottom of the range that the part is sold with, else None.
    condition: what decides within that range; set also where the bottom is not published.
    published: the vendor's own figure for the same key, where one is recorded.
    basis: "derived" from units, rate and clock; "published" where the vendor's figure is all there
        is; "override" where the data replaces the formula.
    per: what it is of: "device" as the operating system or a framework shows it, or "package".
    source: how the number came about, and from which documents, for people.
    confidence: of what the vendor states "vendor" where its own words were read (`Chip.reads`),
        "third-party" where a quotation was, else "recalled"; "derived", "measured" or "community".
    confirmed_by: of a derived figure that a stated one confirms, the confidence of that; else None.
    """

    __slots__ = (
        "accumulate",
        "basis",
        "clock",
        "condition",
        "confidence",
        "confirmed_by",
        "dtype",
        "low",
        "mhz",
        "path",
        "per",
        "published",
        "rate",
        "source",
        "sparsity",
        "tflops",
        "variant",
    )

    def __init__(
        self,
        rate: str,
        sparsity: str,
        tflops: float,
        *,
        clock: str,
        source: str,
        confidence: str,
        mhz: float | None = None,
        low: float | None = None,
        condition: str | None = None,
        published: float | None = None,
        basis: str = "derived",
    ) -> None:
        dtype, path, accumulate, *variant = rate.split(".")
        self.rate = rate
        self.dtype = dtype
        self.path = path
        self.accumulate = accumulate
        self.variant = variant[0] if variant else None
        self.sparsity = sparsity
        self.per = "device"
        self.tflops = tflops
        self.clock = clock
        self.mhz = mhz
        self.low = low
        self.condition = condition
        self.published = published
        self.basis = basis
        self.source = source
        self.confidence = confidence
        self.confirmed_by: str | None = None

    def as_json(self) -> "PeakJson":
        """The peak as plain JSON data; optional members are left out where they say nothing."""
        out: PeakJson = {
            "dtype": self.dtype,
            "path": self.path,
            "accumulate": self.accumulate,
            "sparsity": self.sparsity,
            "clock": self.clock,
            "tflops": round(self.tflops, 4),
            "source": self.source,
            "confidence": self.confidence,
        }
        if self.variant is not None:
            out["variant"] = self.variant
        if self.mhz is not None:
            out["mhz"] = round(self.mhz, 4)
        if self.low is not None:
            out["low"] = round(self.low, 4)
        if self.condition is not None:
            out["condition"] = self.condition
        if self.published is not None:
            out["published"] = round(self.published, 4)
        if self.confirmed_by is not None:
            out["confirmed_by"] = self.confirmed_by
        return out

    def __repr__(self) -> str:
        return f"<Peak {self.rate} {self.sparsity} {self.tflops:.4g} T at {self.clock}>"


def from_rates(
    arch: Arch,
    units: float,
    clocks: "dict[str, tuple[str, float]]",
    source: str,
    low_mhz: float | None = None,
    rates: "dict[str, float] | None" = None,
) -> list[Peak]:
    """Every dense and sparse peak of `units` of an architecture.

    clocks maps "vector" and "matrix" to (label, MHz); source says where units and clock came
    from; low_mhz is the bottom of a laptop's range; rates are held to in place of all its own.
    """
    # The vendor vouches for the rates, not for the product of three numbers.
    confidence = "derived" if arch.confidence in STATED else arch.confidence
    peaks = []
    for rate, ops in (arch.rates if rates is None else rates).items():
        label, mhz = clocks["matrix" if ".matrix." in rate else "vector"]
        for sparsity in SPARSITIES if rate in arch.sparse_keys else SPARSITIES[:1]:
            per_clock = ops * arch.sparse_factor if sparsity == "sparse" else ops
            per_mhz = units * per_clock / 1e6
            formula = f"{_plain(units)} {arch.unit} x {_plain(per_clock)} op/clk"
            peaks.append(
                Peak(
                    rate,
                    sparsity,
                    per_mhz * mhz,
                    clock=label,
                    mhz=mhz,
                    low=per_mhz * low_mhz if low_mhz else None,
                    source=f"{formula} x {_plain(mhz)} MHz {label}; {source}",
                    confidence=confidence,
                )
            )
    return peaks


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"
