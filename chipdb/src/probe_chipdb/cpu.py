"""CPU cores by microarchitecture: some forty of them serve thousands of brands."""

from probe_chipdb.peaks import Arch, Peak, archs_of, from_rates
from probe_chipdb.table import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from probe_chipdb.database import Database


# Knows CPU cores by microarchitecture: rules for some forty of them serve thousands of brands.

Number = int | str | None
"""A number, or its digits as /proc/cpuinfo prints them ("0x19")."""


class CpuMatch:
    """The microarchitecture of a core.

    arch: its rates' entry, or None. uarch: its name ("Zen 4"). by: "cpuid", "midr", "brand",
        "generic" or None.
    rates: operations per clock and core that the given flags allow.
    at_least: those of them that are no more than a lower bound.
    efficient: the architecture of the smaller cores of a hybrid package, which report the same
        cpuid; count those cores with `efficient_rates`. None where there are none, or unknown.
    reason: how the answer came about, or why there is none.
    """

    __slots__ = (
        "arch", "at_least", "by", "efficient",
        "efficient_rates", "rates", "reason", "uarch",
    )  # fmt: skip

    def __init__(self, arch: Arch | None, uarch: str | None, by: str | None, reason: str) -> None:
        self.arch = arch
        self.uarch = uarch
        self.by = by
        self.reason = reason
        self.rates: dict[str, float] = {}
        self.at_least = frozenset[str]()
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
        rates = self.efficient_rates if efficient else self.rates
        clocks = {path: (clock, float(clock_mhz)) for path in ("vector", "matrix")}
        origin = f"{self.reason}; rates [{', '.join(arch.sources)}], cores and clock [{source}]"
        return tuple(from_rates(arch, cores, clocks, origin, rates=rates))

    def __repr__(self) -> str:
        return f"<CpuMatch {self.arch.id if self.arch else None} {self.uarch!r}>"


class CpuFacts:
    """What an operating system reports of a core. None is unknown.

    vendor, family, model, stepping: cpuid's. implementer, part, variant: MIDR's (Arm).
    architecture: Arm's, 6 to 9. name: the brand string. flags: empty where they are not known.
    before_name: what to call before that string is read, see `Database.cpu`.
    """

    __slots__ = (
        "architecture",
        "before_name",
        "family",
        "flags",
        "implementer",
        "model",
        "name",
        "part",
        "stepping",
        "variant",
        "vendor",
    )

    def __init__(
        self,
        *,
        vendor: str | None,
        family: Number,
        model: Number,
        stepping: Number,
        implementer: Number,
        part: Number,
        variant: Number,
        architecture: Number,
        name: str | None,
        flags: "Iterable[str]",
        before_name: "Callable[[], object]" = bool,
    ) -> None:
        self.vendor = vendor
        self.family = _whole(family)
        self.model = _whole(model)
        self.stepping = _whole(stepping)
        self.implementer = _whole(implementer)
        self.part = _whole(part)
        self.variant = _whole(variant)
        self.architecture = _whole(architecture)
        self.name = name
        self.flags = frozenset(flags)
        self.before_name = before_name

    @property
    def isa(self) -> str:
        """Whose lower bound counts for an unknown core: arm32, arm, x86, or none."""
        if self.is_arm32:
            return "arm32"
        if self.implementer is not None or "asimd" in self.flags:
            return "arm"
        return "x86" if "sse2" in self.flags else ""

    @property
    def is_arm32(self) -> bool:
        """Whether it executes 32-bit Arm code: an older core, or a newer one under such a kernel.

        A 64-bit kernel lists `asimd`, and beside it `neon` for 32-bit programs.
        """
        if "asimd" in self.flags:
            return False
        if self.flags & _ARM32_FLAGS:
            return True
        return self.architecture is not None and self.architecture < 8


_ARM32_FLAGS = frozenset(("neon", "vfp", "vfpv3", "vfpv4", "thumb", "half"))


class Rule:
    """One line of the data that fits: the core's architecture, its name, and its smaller cores.

    `since` is the first stepping of a cpuid rule that shares its model with others, else None.
    """

    __slots__ = ("arch", "brands", "efficient", "flag", "since", "uarch", "until")

    def __init__(
        self, arch: Arch, uarch: str, efficient: str, brands: str = "", steppings: str = ""
    ) -> None:
        self.arch = arch
        self.uarch = uarch
        self.efficient = efficient
        self.brands = brands.split(",") if brands else []
        first, _, last = steppings.partition("-")
        self.since = int(first) if first else None
        self.until = int(last or first) if first else None
        self.flag = ""

    def match(self, by: str, reason: str) -> tuple[CpuMatch, str]:
        """The answer, and the id of the smaller cores' architecture or the empty text."""
        return CpuMatch(self.arch, self.uarch, by, reason), self.efficient


def find_cpu(db: "Database", facts: CpuFacts) -> CpuMatch:
    """cpuid or MIDR first, then the brand, then the lower bound of the instruction set."""
    answer = _by_cpuid(db, facts) or _by_midr(db, facts) or _by_name_or_flags(db, facts)
    if answer is None:
        return CpuMatch(None, None, None, "neither cpuid, MIDR, brand nor flags name a known core")
    match, efficient = answer
    if match.arch:
        match.rates, match.at_least = match.arch.rates_with(facts.flags)
        if facts.is_arm32:
            # NEON of 32-bit Arm has no fp64: VFP computes one number at a time.
            match.rates.pop("fp64.vector.fp64", None)
    if not facts.flags:
        match.reason += ", flags not given: only what needs none"
    match.efficient = db.arch(efficient) if efficient else None
    if match.efficient:
        match.efficient_rates, _ = match.efficient.rates_with(facts.flags)
        match.reason += f", smaller cores: {match.efficient.name}"
    return match


def _by_name_or_flags(db: "Database", facts: CpuFacts) -> tuple[CpuMatch, str] | None:
    if facts.name:
        facts.before_name()
        from probe_chipdb.cpu_brand import by_brand

        if named := by_brand(db, facts.name):
            arch, uarch, efficient, reason = named
            return Rule(arch, uarch, efficient).match("brand", reason)
    for arch in archs_of(db, f"y:{facts.isa}") if facts.isa else ():
        reason = f"the core is not known: a lower bound from its flags ({arch.name})"
        return Rule(arch, arch.name, "").match("generic", reason)
    return None


def _by_cpuid(db: "Database", facts: CpuFacts) -> tuple[CpuMatch, str] | None:
    rules = _of_stepping(list(_cpuid_rules(db, facts.vendor, facts.family, facts.model)), facts)
    rule = _closest(rules, facts.name)
    if rule is None:
        return None
    unsure = "" if facts.name or len(rules) == 1 else ", brand not given: the lower of several"
    cpuid = f"cpuid {facts.vendor} family {facts.family} model {facts.model:#x}"
    return rule.match("cpuid", f"{cpuid} is {rule.uarch}{unsure}")


def _cpuid_rules(
    db: "Database", vendor: str | None, family: int | None, model: int | None
) -> "Iterator[Rule]":
    if model is None:
        return
    for arch in archs_of(db, f"i:{vendor}/{family}"):
        for row in parts(arch.column("cpuid")):
            uarch, maker, number, models, brands, efficient, steppings, flag = row
            if maker == vendor and int(number) == family and _holds(models, model):
                rule = Rule(arch, uarch, efficient, brands, steppings)
                rule.flag = flag
                yield rule


def _of_stepping(rules: list[Rule], facts: CpuFacts) -> list[Rule]:
    """The rules of the core's stepping, where cores of several names share a model.

    A hypervisor may hide the stepping: then the latest core whose flag is there.
    """
    dated = [rule for rule in rules if rule.since is not None]
    held = [rule for rule in dated if _holds_stepping(rule, facts.stepping)]
    if dated and not held:
        shown = [rule for rule in dated if not rule.flag or rule.flag in facts.flags]
        latest = max((rule.since or 0 for rule in shown), default=None)
        held = [rule for rule in shown if rule.since == latest]
    return [rule for rule in rules if rule.since is None or rule in held]


def _holds_stepping(rule: Rule, stepping: int | None) -> bool:
    if stepping is None or rule.since is None or rule.until is None:
        return False
    return rule.since <= stepping <= rule.until


def _closest(rules: list[Rule], name: str | None) -> Rule | None:
    """A rule that also wants a brand is the closer one; without a brand string, the lower figure.

    A Xeon Silver has the cpuid of a Xeon Platinum and half its 512-bit units: the brand decides.
    """
    if not name:
        return min(rules, key=lambda rule: _full_rate(rule.arch), default=None)
    fitting = [rule for rule in rules if not rule.brands or any(b in name for b in rule.brands)]
    return min(fitting, key=lambda rule: not rule.brands, default=None)


def _full_rate(arch: Arch) -> float:
    """What the core can do with every instruction that its entry names."""
    flags = frozenset().union(*(needed for needed, _, _ in arch.isa_steps()))
    return arch.rates_with(flags)[0].get("fp32.vector.fp32", 0.0)


def _by_midr(db: "Database", facts: CpuFacts) -> tuple[CpuMatch, str] | None:
    """A rule of the core's variant is the closer one: Exynos M1 and M2 share a part number."""
    if facts.implementer is None or facts.part is None:
        return None
    key = (facts.implementer, facts.part)
    best: Rule | None = None
    for arch in archs_of(db, f"r:{facts.implementer:#x}/{facts.part:#x}"):
        for uarch, maker, number, efficient, variant in parts(arch.column("midr")):
            if (int(maker, 16), int(number, 16)) != key:
                continue
            if variant and int(variant) == facts.variant:
                return _midr_match(Rule(arch, uarch, efficient), facts)
            if not variant and best is None:
                best = Rule(arch, uarch, efficient)
    return _midr_match(best, facts) if best else None


def _midr_match(rule: Rule, facts: CpuFacts) -> tuple[CpuMatch, str]:
    return rule.match("midr", f"MIDR {facts.implementer:#x}/{facts.part:#x} is {rule.uarch}")


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
