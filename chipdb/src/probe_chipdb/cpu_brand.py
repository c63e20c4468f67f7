"""Names a CPU core by its brand string, or by its own name as lscpu prints it."""

from probe_chipdb.arch import Arch, archs_of
from probe_chipdb.brand import brand_key, fits, weight
from probe_chipdb.row import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database

    Named = tuple[Arch, str, str, str]
    """The architecture, the core's name, the id of its smaller cores, and the reason."""


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
