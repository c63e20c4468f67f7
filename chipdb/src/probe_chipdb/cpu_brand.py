"""Names a CPU core by its brand string or its own name, and bounds an unknown one by its flags."""

from probe_chipdb.brand import brand_key, fits, weight
from probe_chipdb.cpu import CpuFacts, CpuMatch, Rule, archs_of
from probe_chipdb.row import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database


def by_brand(db: "Database", name: str | None) -> tuple[CpuMatch, str] | None:
    """A brand string by the vendor's numbering, or a core's own name as lscpu prints it."""
    if not name:
        return None
    # RISC-V kernels print the device tree's compatible: "sifive,u74-mc".
    key = brand_key(name).replace(",", " ")
    best: Rule | None = None
    closest = 0
    for arch in archs_of(db, "b:"):
        for uarch, prefixes, efficient, patterns in parts(arch.column("brand")):
            closeness = _closeness(name, key, prefixes, patterns)
            if closeness > closest:
                closest, best = closeness, Rule(arch, uarch, efficient)
    if best:
        return best.match("brand", f"the brand {name!r} is {best.uarch}")
    return _by_core_name(db, name, key)


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


def _by_core_name(db: "Database", name: str, key: str) -> tuple[CpuMatch, str] | None:
    for arch in archs_of(db, f"cn:{key}"):
        for uarch, _, _, efficient, _ in parts(arch.column("midr")):
            if brand_key(uarch.partition(" (")[0]) == key:
                return Rule(arch, uarch, efficient).match("brand", f"{name!r} names the core")
    return None


def generic(db: "Database", facts: CpuFacts) -> tuple[CpuMatch, str] | None:
    isa = ""
    if facts.is_arm32:
        isa = "arm32"
    elif facts.implementer is not None or "asimd" in facts.flags:
        isa = "arm"
    elif "sse2" in facts.flags:
        isa = "x86"
    for arch in archs_of(db, f"y:{isa}") if isa else ():
        reason = f"the core is not known: a lower bound from its flags ({arch.name})"
        return Rule(arch, arch.name, "").match("generic", reason)
    return None
