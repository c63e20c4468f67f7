"""Finds the chips that a device may be, by one kind of key after the other, strongest first.

A PCI id names a product, an id register the design of a GPU, a device tree the SoC. Architecture
with unit count describes a die, which several products share. A name is what a driver makes of it.
"""

from probe_chipdb.chip import stated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.facts import Query
    from probe_chipdb.peaks import Arch
    from probe_chipdb.table import Table


class Candidates:
    """The chips under one key. by: the kind of key. shared: whether several chips have it.

    conflicts: sentences about keys or live facts that disagree with these chips.
    """

    __slots__ = ("by", "chips", "conflicts", "shared")

    def __init__(self, by: str, chips: "list[Chip]") -> None:
        self.by = by
        self.chips = chips
        self.shared = len(chips) > 1
        self.conflicts: list[str] = []


def by_hardware_id(db: "Database", query: "Query") -> Candidates | None:
    """The chips under the strongest hardware id that any chip has."""
    if not (query.pci or query.gpu_id or query.dt):
        return None  # a name alone: most questions
    return _by_pci(db, query) or _by_gpu_id(db, query) or _by_device_tree(db, query)


def _by_pci(db: "Database", query: "Query") -> Candidates | None:
    """One PCI id may be several products, which subsystem or revision distinguishes."""
    if not query.pci:
        return None
    plain, subsystem, revision = f"p:{query.pci}", query.subsystem, query.revision
    keys = []
    if subsystem and revision:
        keys.append(("pci-subsystem", f"{plain}/{subsystem}@{revision}"))
    if subsystem:
        keys.append(("pci-subsystem", f"{plain}/{subsystem}"))
    if revision:
        keys.append(("pci-revision", f"{plain}@{revision}"))
    for by, key in (*keys, ("pci", plain)):
        if chips := db.read(db.ids(key)):
            return Candidates(by, chips)
    return None


def _by_gpu_id(db: "Database", query: "Query") -> Candidates | None:
    for key in register_keys(db, query.gpu_id, "gm") if query.gpu_id else ():
        if chips := db.read(db.ids(f"g:{key}")):
            return _closer_by_device_tree(db, query, chips) or Candidates("gpu-id", chips)
    return None


def _closer_by_device_tree(
    db: "Database", query: "Query", designs: "list[Chip]"
) -> Candidates | None:
    if not query.dt:
        return None
    chips = refinements(db, designs, query.dt)
    return Candidates("dt", chips) if chips else None


def _by_device_tree(db: "Database", query: "Query") -> Candidates | None:
    """The chips of the first compatible that any chip has, those of a whole family last.

    Vendors' kernels name the GPU's node "arm,mali-bifrost" alone; the board's own compatibles,
    which follow, name the SoC, whose GPU the mainline bindings call "SOC-mali".
    """
    if not query.dt:
        return None
    from probe_chipdb.rules import built

    nodes = built().words("generic_compatible")
    names = [name for name in map(_compatible, query.dt) if name]
    generic = {name: nodes[start] for name in names for start in nodes if name.startswith(start)}
    specific = [name for name in names if name not in generic]
    suffixes = ("", *dict.fromkeys(generic.values()))
    closer = [name + suffix for name in specific for suffix in suffixes]
    chips: list[Chip] = []
    for compatible in (*closer, *generic):
        also = db.read(db.ids(f"d:{compatible}"))
        # "amlogic,meson-g12a-mali" is the GPU of two SoCs; the board's "amlogic,g12b" is one.
        chips = [chip for chip in chips if chip in also] or chips or also
        if len(chips) == 1:
            break
    return Candidates("dt", chips) if chips else None


def _compatible(text: str) -> str:
    from probe_chipdb.spelling import normalise

    return normalise(text, "dt")


def register_keys(db: "Database | Table", register: str, masks: str) -> list[str]:
    """`arm:0xa867` as every key under which it may be filed, the exact one first.

    masks: the index key of the masks in use, "gm" for chips and "agm" for architectures.
    Empty when the register is no hexadecimal number.
    """
    vendor, _, text = register.partition(":")
    try:
        value = int(text, 16)
    except ValueError:
        return []
    # A whole 32-bit Mali GPU_ID holds the product in its upper half.
    products = [value, value >> 16] if vendor == "arm" and value > 0xFFFF else [value]
    keys = [f"{vendor}:{product:#x}" for product in products]
    for mask in (int(digits, 16) for digits in db.ids(f"{masks}:{vendor}")):
        keys += [f"{vendor}:{product & mask:#x}/{mask:#x}" for product in products]
    return keys


def by_units(db: "Database", query: "Query", named: "list[Chip]") -> Candidates | None:
    """The chips of the driver's architecture and unit count.

    None where a product's name or PCI id speaks against it: a new product on a known die must not
    become the old product.
    """
    if not query.units or _names_another_product(query, named):
        return None
    ids = [id_ for arch in _archs(db, query) for id_ in db.ids(f"u:{arch}/{query.units}")]
    chips = _allowed(db, query, db.read(ids))
    if query.pci:
        # Chips that list their PCI ids do not list this one, or it had been found by it.
        chips = [chip for chip in chips if not chip.pci]
    return Candidates("arch-units", chips) if chips else None


def _names_another_product(query: "Query", named: "list[Chip]") -> bool:
    if not query.name_key:
        return False
    if query.generic_name:
        # NVIDIA's driver prints "NVIDIA Graphics Device" for a product that it does not know.
        return bool(query.compute_capability)
    return not named


def _archs(db: "Database", query: "Query") -> tuple[str, ...]:
    if query.arch:
        return (query.arch,)
    if query.gfx:
        return db.ids(f"x:{query.gfx}")
    return db.ids(f"c:{query.compute_capability}") if query.compute_capability else ()


def by_name(db: "Database", query: "Query") -> "list[Chip]":
    """The chips of the name; a name that holds its die is the closer key."""
    if query.die_key and (ids := db.ids(f"n:{query.die_key}")):
        return _allowed(db, query, db.read(ids))
    if query.name_key and (ids := db.ids(f"n:{query.name_key}")):
        chips = db.read(ids)
        if len(chips) > 1 and query.name and ("(" in query.name or query.die_key):
            chips = _on_platform(db, query, chips)
        return _allowed(db, query, chips)
    if not query.name_key or not query.name:
        return []
    from probe_chipdb.name_lookup import by_rules_of_packages, by_spelling, in_line

    chips = by_spelling(db, query) or by_rules_of_packages(db, query) or in_line(db, query)
    return _allowed(db, query, chips)


def _on_platform(db: "Database", query: "Query", chips: "list[Chip]") -> "list[Chip]":
    """The chips whose die is the one that Mesa or lspci prints beside the name, if any is."""
    from probe_chipdb.name_lookup import of_die, on_platform

    die, bracket, _ = query.die_key.partition(" [")
    return of_die(die, chips) if bracket else on_platform(db, query.name or "", chips)


def _allowed(db: "Database", query: "Query", chips: "list[Chip]") -> "list[Chip]":
    """The chips without those that the vendor or the architecture rules out.

    None where the name counts cores that none of them has: "Apple M3 Ultra (76-core GPU)".
    """
    count = query.named_units
    if count and not any(count in (stated(chip) or (count,)) for chip in chips):
        return []
    return [
        chip
        for chip in chips
        if query.vendor in ("", chip.vendor) and not other_arch(db, chip, query)
    ]


def other_arch(db: "Database", chip: "Chip", query: "Query") -> str | None:
    """What the driver reports that the chip's architecture cannot be, or None."""
    if not (query.compute_capability or query.gfx or query.arch):
        return None  # a name alone: most questions
    arch = db.arch(chip.arch) if chip.arch else None
    if arch is None:
        return None
    reported = (
        ("compute capability", query.compute_capability, arch.column("compute_capability")),
        ("gfx", query.gfx, arch.column("gfx")),
    )
    for kind, value, listed in reported:
        if value and listed and value not in listed.split("|"):
            return f"{kind} {value}"
    # A joint id ("one+two") stands for several architectures, and rules nothing out.
    if query.arch and query.arch not in (arch.id, arch.family) and "+" not in query.arch:
        return f"architecture {query.arch}"
    return None


# Lets the SoC's own entry stand where the GPU's id register names only the licensed design.
#
# Arm's register says "Mali-G610"; how many cores, at which clock, belongs to the SoC, which the
# device tree names (rockchip,rk3588-mali). Both are right, so neither is a conflict. Nor is the
# name of a developer kit, which is the board's, and the module in it, which the device tree names.

_KIT = " developer kit"


def refines(chip: "Chip", design: "Chip") -> bool:
    """Whether a chip is one SoC's implementation of a design that another entry describes.

    Its name holds the design's name word by word ("Rockchip RK3588 Mali-G610 MP4" holds
    "Mali-G610"), in the same vendor's architecture family; counts do not disagree. Or it is the
    module of a developer kit ("Jetson AGX Orin 64GB"), whatever the kit was first sold with.
    """
    if chip.vendor != design.vendor or chip.family != design.family or chip == design:
        return False
    from probe_chipdb.spelling import normalise

    name, design_name = normalise(chip.name), normalise(design.name)
    if design_name.endswith(_KIT):
        return f"{name} ".startswith(f"{design_name.removesuffix(_KIT)} ")
    if chip.units and (counts := stated(design)) and chip.units not in counts:
        return False
    return f" {design_name} " in f" {name} "


def refinements(
    db: "Database", designs: "list[Chip]", compatibles: tuple[str, ...]
) -> "list[Chip]":
    """The chips that the device tree names, where they refine one of the designs; else none."""
    from probe_chipdb.spelling import normalise

    for compatible in compatibles:
        named = db.read(db.ids(f"d:{normalise(compatible, 'dt')}"))
        closer = [chip for chip in named if any(refines(chip, design) for design in designs)]
        if closer:
            return closer
    return []


# Finds the architecture of a chip that is not in the table, from what its driver reports.


def arch_for(
    db: "Database", facts: "Query", metal_family: str | None = None
) -> "tuple[Arch | None, str]":
    """The architecture and why; several sets of rates give what they share."""
    for key, description in _arch_keys(db, facts, metal_family):
        archs = [arch for id_ in db.ids(key) if (arch := db.arch(id_))]
        if archs:
            from probe_chipdb.spelling import normalise

            return _choose_arch(db, archs, normalise(facts.name or ""), description)
    return None, "no architecture of the table matches what the driver reports"


def _arch_keys(
    db: "Database", facts: "Query", metal_family: str | None
) -> "Iterator[tuple[str, str]]":
    """Every (index key, its description), the ones that say most first."""
    if facts.compute_capability:
        yield f"c:{facts.compute_capability}", f"compute capability {facts.compute_capability}"
    if facts.gfx:
        yield f"x:{facts.gfx}", f"gfx target {facts.gfx}"
    if metal_family:
        yield f"m:{metal_family}", f"Metal family {metal_family}"
    if facts.pci:
        yield f"ap:{facts.pci}", f"PCI id {facts.pci}"
    if facts.gpu_id:
        for key in register_keys(db, facts.gpu_id, "agm"):
            yield f"ag:{key}", f"id {facts.gpu_id}"
    for compatible in facts.dt:
        yield f"ad:{compatible}", f"compatible {compatible}"


def _choose_arch(
    db: "Database", archs: "list[Arch]", name: str, description: str
) -> "tuple[Arch | None, str]":
    if len(archs) == 1:
        return archs[0], description
    fitting = [arch for arch in archs if name and _fits(arch, name)]
    if len(fitting) == 1:
        return fitting[0], f"{description}, and the product class of {name!r}"
    joint = db.arch("+".join(arch.id for arch in archs))
    ids = ", ".join(arch.id for arch in archs)
    reason = f"{description} covers {ids}, and the name does not decide: only shared rates count"
    return joint, reason


def _fits(arch: "Arch", name: str) -> bool:
    """Whether a normalised name is in the architecture's product class."""
    exact, prefix, suffix = (
        tuple(filter(None, arch.column(column).split("|")))
        for column in ("exact", "prefix", "suffix")
    )
    return name in exact or name.startswith(prefix) or name.endswith(suffix)
