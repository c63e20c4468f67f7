"""Knows CPU cores by microarchitecture: rules for some forty of them serve thousands of brands."""

from probe_chipdb.arch import Arch
from probe_chipdb.peaks import Peak, from_rates
from probe_chipdb.row import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_chipdb.database import Database

Number = int | str | None
"""A number, or its digits as /proc/cpuinfo prints them ("0x19")."""


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
        origin = f"{self.reason}; rates [{', '.join(arch.sources)}], cores and clock [{source}]"
        return tuple(from_rates(held, cores, clocks, origin))

    def __repr__(self) -> str:
        return f"<CpuMatch {self.arch.id if self.arch else None} {self.uarch!r}>"


class CpuFacts:
    """What an operating system reports of a core. None is unknown.

    vendor, family, model: cpuid's. implementer, part: MIDR's (Arm). name: the brand string.
    flags: empty where they are not known.
    """

    __slots__ = ("family", "flags", "implementer", "model", "name", "part", "vendor")

    def __init__(
        self,
        *,
        vendor: str | None,
        family: Number,
        model: Number,
        implementer: Number,
        part: Number,
        name: str | None,
        flags: "Iterable[str]",
    ) -> None:
        self.vendor = vendor
        self.family = _whole(family)
        self.model = _whole(model)
        self.implementer = _whole(implementer)
        self.part = _whole(part)
        self.name = name
        self.flags = frozenset(flags)


class _Rule:
    """One line of the data that fits: the core's architecture, its name, and its smaller cores."""

    __slots__ = ("arch", "brands", "efficient", "uarch")

    def __init__(self, arch: Arch, uarch: str, efficient: str, brands: str = "") -> None:
        self.arch = arch
        self.uarch = uarch
        self.efficient = efficient
        self.brands = brands.split(",") if brands else []

    def match(self, by: str, reason: str) -> tuple[CpuMatch, str]:
        """The answer, and the id of the smaller cores' architecture or the empty text."""
        return CpuMatch(self.arch, self.uarch, by, reason), self.efficient


def find_cpu(db: "Database", facts: CpuFacts) -> CpuMatch:
    """cpuid or MIDR first, then the brand, then the lower bound of the instruction set."""
    answer = (
        _by_cpuid(db, facts)
        or _by_midr(db, facts.implementer, facts.part)
        or _by_brand(db, facts.name)
        or _generic(db, facts)
    )
    if answer is None:
        return CpuMatch(None, None, None, "neither cpuid, MIDR, brand nor flags name a known core")
    match, efficient = answer
    if match.arch:
        match.rates = held_rates(match.arch, facts.flags)
    if not facts.flags:
        match.reason += ", flags not given: only what needs none"
    match.efficient = db.arch(efficient) if efficient else None
    if match.efficient:
        match.efficient_rates = held_rates(match.efficient, facts.flags)
        match.reason += f", smaller cores: {match.efficient.name}"
    return match


def held_rates(arch: Arch, flags: frozenset[str]) -> dict[str, float]:
    """The base rates, and every step whose flags are all there."""
    rates = dict(arch.rates)
    for needed, step in arch.isa_steps():
        if needed <= flags:
            rates.update(step)
    return rates


def _by_cpuid(db: "Database", facts: CpuFacts) -> tuple[CpuMatch, str] | None:
    rules = list(_cpuid_rules(db, facts.vendor, facts.family, facts.model))
    rule = _closest(rules, facts.name)
    if rule is None:
        return None
    unsure = "" if facts.name or len(rules) == 1 else ", brand not given: the lower of several"
    cpuid = f"cpuid {facts.vendor} family {facts.family} model {facts.model:#x}"
    return rule.match("cpuid", f"{cpuid} is {rule.uarch}{unsure}")


def _cpuid_rules(
    db: "Database", vendor: str | None, family: int | None, model: int | None
) -> "Iterator[_Rule]":
    if model is None:
        return
    for arch in _archs(db, f"i:{vendor}/{family}"):
        for uarch, maker, number, models, brands, efficient in parts(arch.column("cpuid")):
            if maker == vendor and int(number) == family and _holds(models, model):
                yield _Rule(arch, uarch, efficient, brands)


def _closest(rules: list[_Rule], name: str | None) -> _Rule | None:
    """A rule that also wants a brand is the closer one; without a brand string, the lower figure.

    A Xeon Silver has the cpuid of a Xeon Platinum and half its 512-bit units: the brand decides.
    """
    if not name:
        return min(rules, key=lambda rule: _full_rate(rule.arch), default=None)
    fitting = [rule for rule in rules if not rule.brands or any(b in name for b in rule.brands)]
    return min(fitting, key=lambda rule: not rule.brands, default=None)


def _full_rate(arch: Arch) -> float:
    """What the core can do with every instruction that its entry names."""
    flags = frozenset().union(*(needed for needed, _ in arch.isa_steps()))
    return held_rates(arch, flags)["fp32.vector.fp32"]


def _by_midr(
    db: "Database", implementer: int | None, part: int | None
) -> tuple[CpuMatch, str] | None:
    if implementer is None or part is None:
        return None
    for arch in _archs(db, f"r:{implementer:#x}/{part:#x}"):
        for uarch, maker, number, efficient in parts(arch.column("midr")):
            if (int(maker, 16), int(number, 16)) == (implementer, part):
                rule = _Rule(arch, uarch, efficient)
                return rule.match("midr", f"MIDR {implementer:#x}/{part:#x} is {uarch}")
    return None


def _by_brand(db: "Database", name: str | None) -> tuple[CpuMatch, str] | None:
    """A brand string by the vendor's numbering, or a core's own name as lscpu prints it."""
    if not name:
        return None
    from probe_chipdb.brand import brand_key

    key = brand_key(name)
    best: _Rule | None = None
    closest = 0
    for arch in _archs(db, "b:"):
        for uarch, prefixes, efficient, patterns in parts(arch.column("brand")):
            closeness = _closeness(name, key, prefixes, patterns)
            if closeness > closest:
                closest, best = closeness, _Rule(arch, uarch, efficient)
    if best:
        return best.match("brand", f"the brand {name!r} is {best.uarch}")
    return _by_core_name(db, name, key)


def _closeness(name: str, key: str, prefixes: str, patterns: str) -> int:
    """How many letters of the closest fitting rule are literal; 0 when none fits."""
    from probe_chipdb.brand import fits, weight

    exact = [
        len(prefix)
        for prefix in prefixes.split(",")
        if prefix and f"{name} ".startswith(f"{prefix} ")
    ]
    shaped = [weight(shape) for shape in patterns.split(",") if shape and fits(shape, key)]
    return max([*exact, *shaped], default=0)


def _by_core_name(db: "Database", name: str, key: str) -> tuple[CpuMatch, str] | None:
    from probe_chipdb.brand import brand_key

    for arch in _archs(db, f"cn:{key}"):
        for uarch, _, _, efficient in parts(arch.column("midr")):
            if brand_key(uarch.partition(" (")[0]) == key:
                return _Rule(arch, uarch, efficient).match("brand", f"{name!r} names the core")
    return None


def _generic(db: "Database", facts: CpuFacts) -> tuple[CpuMatch, str] | None:
    isa = ""
    if facts.implementer is not None or "asimd" in facts.flags:
        isa = "arm"
    elif "sse2" in facts.flags:
        isa = "x86"
    for arch in _archs(db, f"y:{isa}") if isa else ():
        reason = f"the core is not known: a lower bound from its flags ({arch.name})"
        return _Rule(arch, arch.name, "").match("generic", reason)
    return None


def _archs(db: "Database", key: str) -> list[Arch]:
    return [arch for id_ in db.ids(key) if (arch := db.arch(id_))]


def _holds(models: str, model: int) -> bool:
    for span in models.split(","):
        low, _, high = span.partition("-")
        if int(low, 16) <= model <= int(high or low, 16):
            return True
    return False


def _whole(value: Number) -> int | None:
    """A number of cpuid or MIDR, from whichever form the kernel prints; None when it is none.

    What 32 bits do not hold is none, either: Python refuses to print thousands of digits.
    """
    if not isinstance(value, str):
        return value if value is not None and 0 <= value < 2**32 else None
    try:
        return int(value[:16], 0)
    except ValueError:
        return None
