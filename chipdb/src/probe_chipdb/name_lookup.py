"""The chips of a name that no driver prints: by its form, its platform, or a part of its line."""

from probe_chipdb.chip import Chip, stated
from probe_chipdb.name_facts import facts_in, ids_of
from probe_chipdb.name_form import Form, size_in
from probe_chipdb.rules import built
from probe_chipdb.spelling import claimed_vendor, is_generic, narrow, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_chipdb.database import Database
    from probe_chipdb.facts import Query
    from probe_chipdb.rules import Rules


# A generic name ("AMD Radeon Graphics") or a processor's ("AMD Ryzen 9 7950X") says nothing of the
# GPU; the platform behind it does, as Mesa's drivers print it: (LNL), (TGL GT1), (RADV NAVI31).


def on_platform(db: "Database", name: str, chips: list[Chip]) -> list[Chip]:
    """The chips whose codename fits the platform in a name; all where it has none, or none fits."""
    codenames, details = _platform_in(db, name)
    if not codenames:
        return chips
    # Mesa's own spelling is an alias of many chips: "Intel(R) UHD Graphics (ADL-S GT0.5)".
    inside = name.lower().rpartition("(")[2]
    printed = [chip for chip in chips if any(f"({inside}" in a.lower() for a in chip.aliases)]
    if printed:
        return printed
    fitting = [chip for chip in chips if has_codename(chip, codenames)]
    for token in details:
        fitting = [
            chip for chip in fitting if token in (chip.codename or "").lower().replace(" ", "")
        ] or fitting
    return fitting or chips


def _platform_in(db: "Database", name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The codenames that the last parenthesis leaves open, and what narrows them ("gt1", "-s").

    "Intel(R) UHD Graphics (TGL GT1)"; before 2022 RADV's stood without one: "AMD RADV RENOIR".
    Both empty where nothing names a platform.
    """
    for inside in reversed(name.lower().replace("radv ", "(radv ").split("(")[1:]):
        tokens = inside.partition(")")[0].replace(",", " ").split()
        for at, token in enumerate(tokens):
            plain, hyphen, letter = token.partition("-")
            codenames = db.ids(f"s:mesa/{token}") or (db.ids(f"s:mesa/{plain}") if hyphen else ())
            if codenames:
                return codenames, (hyphen + letter, *tokens[at + 1 : at + 2])
    return (), ()


def of_die(die: str, chips: list[Chip]) -> list[Chip]:
    """The chips of the die that lspci prints before the product, if that leaves any."""
    die = die.replace(" ", "")
    names = (die, die.removesuffix("m"))  # GP108M is the GP108
    return [chip for chip in chips if has_codename(chip, names)] or chips


def has_codename(chip: Chip, codenames: tuple[str, ...]) -> bool:
    """Whether a chip's codename, or one of several in a list, begins with a platform's.

    `phoenix` is not `phoenix2`, and `alderlake-sgt1` is `alderlake`.
    """
    # Not plain "and": it is in "Rembrandt", too.
    parts = (chip.codename or "").lower().replace(" and ", ",").split(",")
    return any(
        part.startswith(codename) and not part[len(codename) :][:1].isdecimal()
        for part in (part.replace(" ", "").replace("-", "") for part in parts)
        for codename in (codename.replace("-", "") for codename in codenames)
    )


def _of_processor(db: "Database", query: "Query") -> list[Chip]:
    """The GPU inside the processor that a graphics driver prints ("Ryzen 7 7840U w/ Radeon 780M").

    A processor's brand string alone is no GPU's name.
    """
    name = query.name or ""
    codenames, _ = _platform_in(db, name)
    ids = dict.fromkeys(id_ for codename in codenames for id_ in db.ids(f"k:{codename}"))
    on_die = on_platform(db, name, db.read(ids))
    graphics = query.name_key.partition(" w/ ")[2]
    if graphics and (on_die or query.name_kind in ("vulkan", "opencl", "gl")):
        chips = named(db, graphics)[0]
        return [chip for chip in chips if chip in on_die] or chips or on_die
    return on_die


# Each rule of spelling is exact: product and editions are equal, a brand or vendor that the name
# claims is the chip's own, and memory, its type and the form factor contradict nothing that is
# known of the chip.


def by_spelling(db: "Database", query: "Query") -> list[Chip]:
    """The chips that a name means whose exact key no chip has."""
    key = query.name_key
    if query.generic_name or key.startswith(built().set("processor")):
        # "Intel Iris Xe" is the driver's "Intel(R) Iris(R) Xe Graphics".
        ids = db.ids(f"n:{key} graphics") if query.generic_name and " " in key else ()
        return _of_processor(db, query) or db.read(ids)
    chips, units = named(db, key)
    query.units = query.units or (units if chips else None)
    return chips or _of_either(db, key)


def named(db: "Database", key: str, rules: "Rules | None" = None) -> tuple[list[Chip], int | None]:
    """The chips that a normalised name means, and the GPU cores that its form counts.

    A type of machine that is known by its whole name goes first: `h100x8` is no H100 with a count.
    """
    types = machine_keys(key, rules)
    if whole := db.ids(f"n:{key}") or db.ids(next(types)):
        return db.read(whole), None
    form = Form(key, rules)
    chips = _of_form(db, form, rules) if form.base else []
    # OpenCL prints AMD's dies as names: "Vega10" is no Radeon Vega 10.
    if chips and not db.ids(f"s:mesa/{form.base}"):
        return chips, form.units
    return db.read(next(filter(None, map(db.ids, types)), ())), form.units


def _of_form(db: "Database", form: Form, rules: "Rules | None") -> list[Chip]:
    exact = db.read(db.ids(f"n:{form.text}"))
    if own := [chip for chip in exact if form.vendor in ("", chip.vendor)]:
        return own
    # "H200 141GB" is an H200, which is a product's whole name; an H200 NVL would be called one.
    if form.facts and "~" not in form.base and not db.ids(f"b:{form.key}|{form.facts}"):
        whole = _fitting(db.read(db.ids(f"n:{form.plain()}")), form)
        # "B200 168GB" is the B200 of 168 GB, although that is also near the 180 of another.
        if form.size and whole and not any(form.size in _sizes(chip) for chip in whole):
            whole = [chip for chip in _chips(db, form) if form.size in _sizes(chip)] or whole
        if whole:
            return whole
    chips = _chips(db, form)
    if not chips or form.base.isdecimal():
        meant = (rules or built()).every(form.text, "also")
        also = (chip for text in meant for chip in _chips(db, Form(text, rules)))
        chips = list({chip.id: chip for chip in (*chips, *also)}.values())
    return chips


def _chips(db: "Database", form: Form) -> list[Chip]:
    """The chips whose names have the product and editions, and facts that fit."""
    product = f"{form.brand} {form.key}" if form.brand else form.key
    declared = db.ids(f"b:{form.key}|{form.facts}") if form.facts else ()
    chips = db.read(db.ids(f"b:{product}"))
    chips = [chip for chip in chips if form.vendor in ("", chip.vendor)]
    # "H100 80GB SXM5" is the name of one product, its tokens in another order. So is "RTX 3050
    # laptop 4GB"; and the one that is named without a size has 4 GB, too.
    same = [chip for chip in chips if chip.id in declared]
    if same and form.size and not (form.factor or form.type):
        same += [chip for chip in chips if _sizes(chip) == [form.size] and chip not in same]
    return same or _fitting(chips, form)


def _fitting(chips: list[Chip], form: Form) -> list[Chip]:
    """The chips that fit each fact of a form, those alone that fit it best."""
    # The factor first: "H100 NVL 96 GB" is a rounded 94, and no H100 of 96 has NVLink bridges.
    facts = (form.factor, form.size, form.type, form.units)
    for fact, grade in zip(facts, (_of_factor, _of_size, _of_type, _of_units), strict=True):
        if fact and chips:
            grades = [grade(chip, form) for chip in chips]
            best = max(grades)
            chips = [chip for chip, own in zip(chips, grades, strict=True) if own == best > 0]
    return chips


# A size in a name is nominal, the driver's total (2 to 10 % less), or decimal (7 % more in number).
_LOW, _HIGH = 0.90, 1.08
# GB that cards and unified memories are sold with: what an entry without a size may have.
_SOLD = frozenset((
    1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 18, 20, 24, 32, 36, 40, 48, 64, 72, 80, 94, 96, 128, 192,
    256, 288, 512,
))  # fmt: skip


def _of_size(chip: Chip, form: Form) -> int:
    size = form.size or 0
    if size in (sizes := _sizes(chip)):
        return 3
    if any(_LOW * nominal <= size <= _HIGH * nominal for nominal in sizes):
        return 2
    return not sizes and size in _SOLD


def _sizes(chip: Chip) -> list[float]:
    """The sizes in GiB: of one device, of a board that shows several, and as in its own name."""
    gib = chip.memory.gib
    nominal = [] if gib is None else [gib, gib * chip.boards][: chip.boards]
    return nominal + [size for word in chip.words if (size := size_in(word)) is not None]


def _of_type(chip: Chip, form: Form) -> int:
    """HBM3 is also what people call HBM3e; the reverse is another product."""
    own = (chip.memory.type or "").lower()
    return own.startswith(form.type) + (own == form.type)


def _of_factor(chip: Chip, form: Form) -> int:
    prefixes = built().set("declared_factor")
    own = [word for word in chip.words if word.startswith(prefixes)]
    if any(word.startswith(form.factor) for word in own):
        return 2
    # An L40S is a PCIe card and an MI300X an OAM module, although their names do not say it.
    known = chip.form_factor in ("pcie", "oam", "sxm") and chip.memory.gib is not None
    return known and not own and form.factor.startswith(chip.form_factor or "")


def _of_units(chip: Chip, form: Form) -> int:
    return form.units in (stated(chip) or (form.units,))


_MOST_NAMES = 8  # a longer list is no driver's


def _of_either(db: "Database", key: str) -> list[Chip]:
    """The products of a list, if each of them is known and all are of one vendor.

    A later one may leave out what the first begins with: "Instinct MI50/MI60".
    """
    first, *later = (name.strip() for name in key.split("/"))
    start = first.rpartition(" ")[0]
    chips: dict[str, Chip] = {}
    for name in (first, *later) if 0 < len(later) < _MOST_NAMES else ():
        whole = named(db, name if name == first else f"{start} {name}")[0]
        same = whole or ([] if name.isdecimal() else named(db, name)[0])
        if not same:
            return []
        chips.update((chip.id, chip) for chip in same)
    return list(chips.values()) if len({chip.vendor for chip in chips.values()}) == 1 else []


def machine_keys(key: str, rules: "Rules | None" = None) -> "Iterator[str]":
    """The keys of names of `data/names` that a cloud's type of machine may stand for.

    >>> list(machine_keys("p5en.48xlarge"))
    ['s:machine/p5en.48xlarge', 's:amazon/p5en']
    """
    whole = key.replace("_", "-").replace(" ", "-").removeprefix("ml.")  # SageMaker's
    for text in dict.fromkeys((whole, whole.removeprefix("standard-"))):  # Azure's
        yield f"s:machine/{text}"
        for name in (rules or built()).every(text, "machine"):
            yield f"s:{name}"


def chips_of_machine(db: "Database", key: str) -> tuple[str, ...]:
    """The ids of the chips in a cloud's type of machine; several where the type says less."""
    return next(filter(None, map(db.ids, machine_keys(key))), ())


def by_rules_of_packages(db: "Database", query: "Query") -> list[Chip]:
    """A package's own chips that a name means by the package's own rules."""
    name = query.name or ""
    for own, rules in db.readers():
        device, _, _ = ids_of(facts_in(name, rules))
        key = normalise(name, query.name_kind, rules)
        if chips := own.read(own.ids(f"p:{device}")) or named(own, key, rules)[0]:
            return db.read(chip.id for chip in chips)
    return []


_MARKS = "|;=:()[]{}\"'`\t│"
_ENDS = str.maketrans(dict.fromkeys(_MARKS, "\n"))
_EDGES = " \\_*#<>&/├└─•或"  # of a part: of emphasis, lists and trees
_MOST_PARTS = 24
_PLAIN = str.maketrans("", "", " _.-")
_LEAST = 4  # letters of a product without its vendor


def in_line(db: "Database", query: "Query") -> list[Chip]:
    """The chips that one part of a line names, where the other parts do not disagree.

    "VideoProcessor : NVIDIA GeForce GTX 1660 SUPER": between marks, a name is whole. A part that
    says more of the product ("(Laptop)", "48 GB") belongs to its name.
    """
    name = narrow(query.name or "").strip()
    processors = built().set("processor")
    if query.name_key.startswith(processors):
        # "Core i9-14900K / RTX 4090": a list names products of one kind. Blanks pad a processor.
        name = " ".join(name.split()).replace(" / ", ", ")
    parts = _parts_of(name)
    if parts == [name]:
        return []
    remark = _has_remark(name)
    read = [(claimed_vendor(part.replace("-", " ")), normalise(part)) for part in parts]
    found = {
        key: chips
        for vendor, key in read
        if (remark or _may_name(vendor, key)) and (chips := named(db, key)[0])
    }
    if not found:
        return []
    rest = {key: Form(key) for _, key in read if key not in found}
    computer = any(form.text == "a computer" for form in rest.values())  # by `forms.toml`
    if computer and not any(Form(key).editions for key in found):
        return []  # "Legion 5, RTX 4060": a laptop's as often as not
    beside = [key for key, form in rest.items() if _is_beside(form)]
    others = (
        named(db, key)[0]
        for key in rest
        if not is_generic(key) and (" " in key or _is_short(key, found))
    )
    common = _common([*found.values(), *filter(None, others)])
    told = {key for key in rest for chip in common if _describes(db, chip, key)}
    if beside and common:  # a machine's type takes none of it
        more = [key for key in beside if key not in told]
        sized = (
            named(db, " ".join((key, *beside)))[0]
            or named(db, " ".join((key, *more)))[0]
            # In a row of cells, one size is the card's, and others are the machine's.
            or [chip for cell in more if "|" in name for chip in named(db, f"{key} {cell}")[0]]
            for key in found
        )
        common = _common([chips for chips in sized if chips])
    common = [chip for chip in common if all(_describes(db, chip, key) for key in told)]
    if remark and len(told) < len(rest) and not beside:
        return []
    claims = {vendor for vendor, key in read if vendor and not key.startswith(processors)}
    one_device = len(claims | {chip.vendor for chip in common}) == 1
    return sorted(common, key=lambda chip: chip.id) if one_device else []


def _common(sets: list[list[Chip]]) -> list[Chip]:
    shared = (chip for chip in sets[0] if all(chip in chips for chips in sets)) if sets else ()
    return list(dict.fromkeys(shared))


def _parts_of(line: str) -> list[str]:
    line = line.replace("  ", "\n")
    for mark in ("(R)", "(TM)", "(tm)"):  # a vendor's parentheses end no part
        line = line.replace(mark, " ")
    for joint in built().set("joint"):
        line = line.replace(joint, "\n")
    lines = line.translate(_ENDS).split("\n")
    parts = (part.strip(_EDGES).lstrip("+ ") for part in lines)
    return list(dict.fromkeys(filter(None, parts)))[:_MOST_PARTS]


def _has_remark(name: str) -> bool:
    """Whether one word in parentheses is all that stands beside a name: `RTX 4090 (GB202)`."""
    head, _, inside = name.rstrip(")").partition("(")
    plain = not any(mark in head or mark in inside for mark in _MARKS)
    return plain and " " not in inside.strip() and name.endswith(")")


def _is_beside(form: Form) -> bool:
    """Whether a part holds nothing but facts and editions of a product."""
    words = built().set("product_word")
    bare = all(token in words for token in form.base.replace("~", " ").split())
    return bare and bool(form.facts or form.editions or form.base)


def _is_short(key: str, found: "Iterable[str]") -> bool:
    """Whether a part is too short to name a product alone, but may refute another: `l40`, `t4`.

    Not a word of the other: "Apple M3 Ultra, M3".
    """
    short = len(key) < _LEAST and key[:1].isalpha() and key[1:].isdecimal()
    return short and not any(key in name.split() for name in found)


def _describes(db: "Database", chip: Chip, key: str) -> bool:
    """Whether a text is the die or architecture of a chip: `gb202`, `ada`, `sm_89`, `rdna 3`."""
    arch = db.arch(chip.arch) if chip.arch else None
    words = [chip.codename or ""]
    if arch:
        title = arch.name.partition(",")[0].partition(" (")[0]
        targets = arch.column("compute_capability").split("|")
        words += [arch.family, title, *arch.column("gfx").split("|"), *targets]
    plain = key.translate(_PLAIN)
    for prefix in built().set("capability"):
        plain = plain.removeprefix(prefix)
    return plain != "" and plain in (word.lower().translate(_PLAIN) for word in words)


def _may_name(vendor: str, key: str) -> bool:
    """Whether a part can be trusted to name a product: `corsair` and `m1` are also other words."""
    whole = len(key) >= _LEAST and any(map(str.isdecimal, key)) and not key.isdecimal()
    return (bool(vendor) or whole) and not is_generic(key)
