"""Reads the platform that Mesa's drivers print behind a name: (LNL), (TGL GT1), (RADV NAVI31).

A generic name ("AMD Radeon Graphics") or a processor's ("AMD Ryzen 9 7950X") says nothing of the
GPU; the parenthesis does. Mesa names the platform, and one platform may be several products.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database

# Mesa's token to the codenames in the data, without blanks. Intel's are those of
# include/pci_ids/iris_pci_ids.h, AMD's those of src/amd/common/ac_gpu_info.c (family names).
PLATFORMS = {
    "hsw": ("haswell",), "bdw": ("broadwell",), "chv": ("braswell", "cherrytrail"),
    "skl": ("skylake",), "bxt": ("broxton", "apollolake"), "apl": ("apollolake",),
    "kbl": ("kabylake",), "glk": ("geminilake",), "aml": ("amberlake",), "whl": ("whiskeylake",),
    "cfl": ("coffeelake",), "cml": ("cometlake",), "icl": ("icelake",), "ehl": ("elkhartlake",),
    "jsl": ("jasperlake",), "tgl": ("tigerlake",), "rkl": ("rocketlake",), "adl": ("alderlake",),
    "rpl": ("raptorlake",), "dg1": ("dg1",), "dg2": ("acm",), "pvc": ("pontevecchio",),
    "mtl": ("meteorlake",), "arl": ("arrowlake",), "bmg": ("bmg",), "lnl": ("lunarlake",),
    "ptl": ("pantherlake",), "wcl": ("wildcatlake",), "nvl": ("novalake",),
    "raphael_mendocino": ("raphael", "mendocino"), "vangogh": ("vangogh", "sephiroth"),
    "renoir": ("renoir", "lucienne", "cezanne", "barcelo"), "raven": ("raven", "picasso"),
    "raven2": ("raven2",), "rembrandt": ("rembrandt", "rembrandt-r"),
    "phoenix": ("phoenix", "hawkpoint"), "phoenix2": ("phoenix2",),
    "gfx1103_r1": ("phoenix", "hawkpoint"), "gfx1103_r2": ("phoenix2",),
    "gfx1150": ("strixpoint",), "strix1": ("strixpoint",), "gfx1151": ("strixhalo",),
    "strix_halo": ("strixhalo",), "gfx1152": ("krackanpoint",), "krackan1": ("krackanpoint",),
    "gfx1153": ("krackanpoint2",), "gfx1200": ("navi44",), "gfx1201": ("navi48",),
    "polaris10": ("polaris10", "polaris20", "polaris30"),
    "polaris11": ("polaris11", "polaris21"), "polaris12": ("polaris12", "polaris23"),
    "vegam": ("polaris22",), "stoney": ("stoney",), "carrizo": ("carrizo",),
    **{f"navi{number}": (f"navi{number}",) for number in (10, 12, 14, 21, 22, 23, 24, 31, 32, 33)},
    **{f"vega{number}": (f"vega{number}",) for number in (10, 12, 20)},
}  # fmt: skip


class Platform:
    """The codenames that a parenthesis leaves open; `details` narrows them ("gt1", "-s")."""

    __slots__ = ("codenames", "details")

    def __init__(self, codenames: tuple[str, ...], details: tuple[str, ...]) -> None:
        self.codenames = codenames
        self.details = details


def platform_in(name: str) -> Platform | None:
    """The platform of the last parenthesis that names one.

    >>> platform_in("Intel(R) UHD Graphics (TGL GT1)").codenames
    ('tigerlake',)
    >>> platform_in("AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)").codenames
    ('raphael', 'mendocino')
    """
    for inside in reversed(name.lower().split("(")[1:]):
        tokens = inside.partition(")")[0].replace(",", " ").split()
        for at, token in enumerate(tokens):
            plain, hyphen, letter = token.partition("-")
            codenames = PLATFORMS.get(token) or PLATFORMS.get(plain)
            if codenames:
                details = (f"-{letter}",) if hyphen else ()
                return Platform(codenames, (*details, *tokens[at + 1 : at + 2]))
    return None


def on_platform(db: "Database", name: str, ids: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of chips whose codename fits the platform in a name.

    All of them where the name has no platform, or where no chip has its codename.
    """
    platform = platform_in(name)
    if platform is None:
        return ids
    # Mesa's own spelling is an alias of many chips: "Intel(R) UHD Graphics (ADL-S GT0.5)".
    inside = name.lower()[name.rfind("(") :]
    chips = [chip for id_ in ids if (chip := db.chip(id_))]
    if printed := [chip.id for chip in chips if any(inside in a.lower() for a in chip.aliases)]:
        return tuple(printed)
    dies = {id_: _squashed(chip.codename) for id_ in ids if (chip := db.chip(id_))}
    fitting = {id_: die for id_, die in dies.items() if _fits(die, platform.codenames)}
    for token in platform.details:
        fitting = {id_: die for id_, die in fitting.items() if token in die} or fitting
    return tuple(fitting) or ids


def _fits(die: str, codenames: tuple[str, ...]) -> bool:
    """Whether a codename, or one of several in a list, begins with a platform's."""
    parts = die.replace("and", ",").split(",")
    return any(_is_die(part, codename) for part in parts for codename in codenames)


def _is_die(part: str, codename: str) -> bool:
    """`phoenix` is not `phoenix2`, and `alderlake-sgt1` is `alderlake`."""
    return part.startswith(codename) and not part[len(codename) :][:1].isdecimal()


def of_platform(db: "Database", name: str) -> tuple[str, ...]:
    """The GPUs of the platform in a name, where the name itself names none."""
    platform = platform_in(name)
    if platform is None:
        return ()
    ids = [id_ for codename in platform.codenames for id_ in db.ids(f"k:{codename}")]
    return on_platform(db, name, tuple(dict.fromkeys(ids)))


def _squashed(codename: str | None) -> str:
    return (codename or "").lower().replace(" ", "")
