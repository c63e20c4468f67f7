"""Names a CPU core by its brand string, or by its own name as lscpu prints it.

A brand string is read by the vendors' published numbering, as data holds it. A rule is an exact
shape, never a likeness: `#` stands for one digit, `?` for one digit or letter, a final `*` for what
follows if that does not begin with a digit ("8480c", "8480+"). Of several rules that fit, the one
with the most literal letters is the closer.
"""

from probe_chipdb.peaks import Arch, archs_of
from probe_chipdb.table import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database

    Named = tuple[Arch, str, str, str]
    """The architecture, the core's name, the id of its smaller cores, and the reason."""


_DROPPED = frozenset(("cpu", "processor", "apu"))
# AMD spells core counts out: "AMD FX(tm)-8350 Eight-Core Processor".
_COUNTS = frozenset(("dual", "triple", "quad", "six", "eight", "twelve", "sixteen"))


def brand_key(name: str) -> str:
    """A brand string without what does not identify the core: trademarks, clocks, core counts.

    >>> brand_key("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz")
    'xeon e5 2686 v4'
    >>> brand_key("AMD Ryzen Threadripper PRO 5995WX 64-Cores")
    'ryzen threadripper pro 5995wx'
    """
    # Most cores have a cpuid or a MIDR that is known: their nodes do not load what reads names.
    from probe_chipdb.spelling import normalise

    tokens = normalise(name, "cpuinfo").split()
    if tokens[1:2] == ["gen"]:
        tokens = [token for token in tokens[2:] if token != "intel"]  # "13th Gen Intel(R) Core ..."
    tokens = _without_count(tokens)
    if tokens[-1:] == ["0"]:
        del tokens[-1]  # "Xeon(R) CPU E5-2670 0": the first version, counted from nothing
    return " ".join(token for token in tokens if token not in _DROPPED)


def _without_count(tokens: list[str]) -> list[str]:
    """Without "16 core processor", "eight core processor", "64 cores", and all behind that."""
    for at, noun in enumerate(tokens[1:]):
        count = tokens[at]
        if noun in ("core", "cores") and (count.isdecimal() or count in _COUNTS):
            return tokens[:at]
    return tokens


def fits(pattern: str, key: str) -> bool:
    """Whether a brand key has the shape of a rule."""
    open_end = pattern.endswith("*")
    shape = pattern[:-1] if open_end else pattern
    if len(key) < len(shape) or (len(key) > len(shape) and not open_end):
        return False
    if key[len(shape) : len(shape) + 1].isdecimal():
        return False
    return all(_same(mark, letter) for mark, letter in zip(shape, key, strict=False))


def _same(mark: str, letter: str) -> bool:
    if mark == "#":
        return letter.isdecimal()
    return letter.isalnum() if mark == "?" else mark == letter


def weight(pattern: str) -> int:
    """How many letters of a rule are literal: the closer of two rules has more."""
    return sum(mark not in "#?*" for mark in pattern)


def by_brand(db: "Database", name: str) -> "Named | None":
    """A brand string by the vendor's numbering, or a core's own name as lscpu prints it."""
    # RISC-V kernels print the device tree's compatible: "sifive,u74-mc".
    key = brand_key(name).replace(",", " ")
    best: Named | None = None
    closest = 0
    for arch in archs_of(db, "b:"):
        for uarch, prefixes, efficient, patterns in parts(arch.column("brand")):
            closeness = _closeness(name, key, prefixes, patterns)
            if closeness > closest:
                closest = closeness
                best = arch, uarch, efficient, f"the brand {name!r} is {uarch}"
    return best or _by_core_name(db, name, key)


_ENDS = ("", " ", ",", "(")
"""What may follow a brand's exact beginning."""


def _closeness(name: str, key: str, prefixes: str, patterns: str) -> int:
    """How many letters of the closest fitting rule are literal; 0 when none fits."""
    exact = [
        len(prefix)
        for prefix in prefixes.split(",")
        # POWER's kernels append the mode: "POWER9 (raw), altivec supported".
        if prefix and name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in _ENDS
    ]
    shaped = [weight(shape) for shape in patterns.split(",") if shape and fits(shape, key)]
    return max([*exact, *shaped], default=0)


def _by_core_name(db: "Database", name: str, key: str) -> "Named | None":
    for arch in archs_of(db, f"cn:{key}"):
        for uarch, _, _, efficient, _ in parts(arch.column("midr")):
            if brand_key(uarch.partition(" (")[0]) == key:
                return arch, uarch, efficient, f"{name!r} names the core"
    return None
