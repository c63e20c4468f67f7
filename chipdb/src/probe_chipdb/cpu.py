"""Knows CPU cores by microarchitecture: rules for some forty of them serve thousands of brands."""

from probe_chipdb.arch import Arch
from probe_chipdb.peaks import Peak, from_rates
from probe_chipdb.text import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database

Number = int | str | None


class CpuMatch:
    """The microarchitecture of a core.

    arch: its rates' entry, or None. uarch: its name ("Zen 4"). by: "cpuid", "midr", "brand",
        "generic" or None.
    rates: operations per clock and core that the given flags allow.
    efficient: the architecture of the smaller cores of a hybrid package, which report the same
        cpuid; count those cores with `efficient_rates`. None where there are none, or unknown.
    reason: how the answer came about, or why there is none.
    """

    __slots__ = ("arch", "by", "efficient", "efficient_rates", "rates", "reason", "uarch")

    def __init__(self, arch: Arch | None, uarch: str | None, by: str | None, reason: str) -> None:
        self.arch = arch
        self.uarch = uarch
        self.by = by
        self.reason = reason
        self.rates: dict[str, float] = {}
        self.efficient: Arch | None = None
        self.efficient_rates: dict[str, float] = {}

    def peaks(
        self,
        cores: int,
        clock_mhz: float,
        clock: str = "max",
        source: str = "the operating system",
        efficient: bool = False,
    ) -> tuple[Peak, ...]:
        """Peaks of `cores` physical cores (not threads) at a clock.

        clock: what kind of clock it is; all cores seldom hold their maximum together.
        efficient: count the smaller cores' rates.
        """
        arch = self.efficient if efficient else self.arch
        if arch is None or not cores or not clock_mhz:
            return ()
        held = arch.with_rates(self.efficient_rates if efficient else self.rates)
        clocks = {path: (clock, float(clock_mhz)) for path in ("vector", "matrix")}
        told = f"{self.reason}; rates [{', '.join(arch.sources)}], cores and clock [{source}]"
        return tuple(from_rates(held, cores, clocks, told))

    def __repr__(self) -> str:
        return f"<CpuMatch {self.arch.id if self.arch else None} {self.uarch!r}>"


def find_cpu(
    db: "Database",
    vendor: str | None,
    family: Number,
    model: Number,
    implementer: Number,
    part: Number,
    name: str | None,
    flags: frozenset[str],
) -> CpuMatch:
    """cpuid or MIDR first, then the brand, then the lower bound of the instruction set."""
    found = (
        _by_cpuid(db, vendor, _int(family), _int(model), name)
        or _by_midr(db, _int(implementer), _int(part))
        or _by_brand(db, name)
        or _generic(db, vendor, _int(implementer), flags)
    )
    if found is None:
        return CpuMatch(None, None, None, "neither cpuid, MIDR, brand nor flags name a known core")
    match, efficient = found
    if match.arch:
        match.rates = held_rates(match.arch, flags)
    if not flags:
        match.reason += ", flags not given: only what needs none"
    match.efficient = db.arch(efficient) if efficient else None
    if match.efficient:
        match.efficient_rates = held_rates(match.efficient, flags)
        match.reason += f", smaller cores: {match.efficient.name}"
    return match


def held_rates(arch: Arch, flags: frozenset[str]) -> dict[str, float]:
    """The base rates, and every step whose flags are all there."""
    rates = dict(arch.rates)
    for needed, step in arch.isa_steps():
        if needed <= flags:
            rates.update(step)
    return rates


def _by_cpuid(
    db: "Database", vendor: str | None, family: int | None, model: int | None, name: str | None
) -> tuple[CpuMatch, str] | None:
    fits = []
    for arch in _archs(db, f"i:{vendor}/{family}") if model is not None else ():
        for uarch, maker, number, models, brand, efficient in parts(arch.column("cpuid")):
            if maker == vendor and int(number) == family and _holds(models, model or 0):
                fits.append((brand.split(",") if brand else [], arch, uarch, efficient))
    if not fits:
        return None
    # A rule that also wants a brand is the closer one; without a brand string, the lower figure.
    if name:
        fits = [fit for fit in fits if not fit[0] or any(word in name for word in fit[0])]
        fits.sort(key=lambda fit: not fit[0])
    else:
        fits.sort(key=lambda fit: _most(fit[1]))
    _, arch, uarch, efficient = fits[0]
    unsure = "" if name or len(fits) == 1 else ", brand not given: the lower of several"
    said = f"cpuid {vendor} family {family} model {model:#x} is {uarch}{unsure}"
    return CpuMatch(arch, uarch, "cpuid", said), efficient


def _most(arch: Arch) -> float:
    """A rank by what the core can do with every instruction that its entry names."""
    return held_rates(arch, frozenset().union(*(needed for needed, _ in arch.isa_steps())))[
        "fp32.vector.fp32"
    ]


def _by_midr(
    db: "Database", implementer: int | None, part: int | None
) -> tuple[CpuMatch, str] | None:
    if implementer is None or part is None:
        return None
    for arch in _archs(db, f"r:{implementer:#x}/{part:#x}"):
        for uarch, maker, number, efficient in parts(arch.column("midr")):
            if (int(maker, 16), int(number, 16)) == (implementer, part):
                said = f"MIDR {implementer:#x}/{part:#x} is {uarch}"
                return CpuMatch(arch, uarch, "midr", said), efficient
    return None


def _by_brand(db: "Database", name: str | None) -> tuple[CpuMatch, str] | None:
    """A brand string by the vendor's numbering, or a core's own name as lscpu prints it."""
    if not name:
        return None
    from probe_chipdb.brand import brand_key

    key = brand_key(name)
    best: tuple[int, Arch, str, str] | None = None
    for arch in _archs(db, "b:"):
        for uarch, prefixes, efficient, patterns in parts(arch.column("brand")):
            closeness = _closeness(name, key, prefixes, patterns)
            if closeness and (best is None or closeness > best[0]):
                best = closeness, arch, uarch, efficient
    if best:
        said = f"the brand {name!r} is {best[2]}"
        return CpuMatch(best[1], best[2], "brand", said), best[3]
    return _by_core_name(db, name, key)


def _closeness(name: str, key: str, prefixes: str, patterns: str) -> int:
    """How many letters of the closest fitting rule are literal; 0 when none fits."""
    from probe_chipdb.brand import fits, weight

    exact = [
        len(prefix)
        for prefix in prefixes.split(",")
        if prefix and (name == prefix or name.startswith(prefix + " "))
    ]
    shaped = [weight(one) for one in patterns.split(",") if one and fits(one, key)]
    return max([*exact, *shaped], default=0)


def _by_core_name(db: "Database", name: str, key: str) -> tuple[CpuMatch, str] | None:
    from probe_chipdb.brand import brand_key

    for arch in _archs(db, f"cn:{key}"):
        for uarch, _, _, efficient in parts(arch.column("midr")):
            if brand_key(uarch.partition(" (")[0]) == key:
                return CpuMatch(arch, uarch, "brand", f"{name!r} names the core"), efficient
    return None


def _generic(
    db: "Database", vendor: str | None, implementer: int | None, flags: frozenset[str]
) -> tuple[CpuMatch, str] | None:
    isa = "arm" if implementer is not None or "asimd" in flags else "x86" if "sse2" in flags else ""
    for arch in _archs(db, f"y:{isa}") if isa else ():
        said = f"the core is not known: a lower bound from its flags ({arch.name})"
        return CpuMatch(arch, arch.name, "generic", said), ""
    return None


def _archs(db: "Database", key: str) -> list[Arch]:
    return [arch for id_ in db.ids(key) if (arch := db.arch(id_))]


def _holds(models: str, model: int) -> bool:
    for span in models.split(","):
        low, _, high = span.partition("-")
        if int(low, 16) <= model <= int(high or low, 16):
            return True
    return False


def _int(value: Number) -> int | None:
    if value is None or isinstance(value, int):
        return value
    try:
        return int(value, 0)
    except ValueError:
        return None
