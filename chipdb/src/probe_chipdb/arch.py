"""One architecture: what a unit of it does per clock, for every data type and path."""

from probe_chipdb.table import ARCH, items, number, parts, unescape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database


_AT = {name: at for at, name in enumerate(ARCH)}


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
        return self._fields[_AT[name]]

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


def shared(archs: list[Arch]) -> Arch:
    """What all of these have in common: the rates on which they agree, under a joint id."""
    first, *siblings = archs
    if not siblings:
        return first
    joint = first.with_rates(_agreed_rates(first, siblings))
    joint.id = "+".join(arch.id for arch in archs)
    joint.name = " or ".join(arch.name for arch in archs)
    if any(arch.family != first.family for arch in siblings):
        joint.family = ""
    joint.sparse_keys = _agreed_sparse_keys(first, siblings)
    joint.sources = tuple(dict.fromkeys(key for arch in archs for key in arch.sources))
    joint.confidence = "derived"
    joint.note = "only the rates that all of them share"
    return joint


def _agreed_rates(first: Arch, siblings: list[Arch]) -> dict[str, float]:
    return {
        key: ops
        for key, ops in first.rates.items()
        if all(arch.rates.get(key) == ops for arch in siblings)
    }


def _agreed_sparse_keys(first: Arch, siblings: list[Arch]) -> frozenset[str]:
    """The rates that sparsity multiplies in all of them, if it does so by the same factor."""
    if any(arch.sparse_factor != first.sparse_factor for arch in siblings):
        return frozenset()
    return first.sparse_keys.intersection(*(arch.sparse_keys for arch in siblings))


def archs_of(db: "Database", key: str) -> list[Arch]:
    """The architectures that the index files under a key."""
    return [arch for id_ in db.ids(key) if (arch := db.arch(id_))]
