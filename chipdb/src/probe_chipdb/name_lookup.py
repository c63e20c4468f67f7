"""The chips of a name that no driver prints: by its form or platform; for people, the nearest."""

from probe_chipdb.chip import Chip, stated
from probe_chipdb.name_form import Form, others, size_in
from probe_chipdb.pci_text import facts_in, ids_of
from probe_chipdb.rules import built
from probe_chipdb.spelling import claimed_vendor, is_generic, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.database import Database
    from probe_chipdb.facts import Query
    from probe_chipdb.rules import Rules


# Reads the platform that Mesa's drivers print behind a name: (LNL), (TGL GT1), (RADV NAVI31).
#
# A generic name ("AMD Radeon Graphics") or a processor's ("AMD Ryzen 9 7950X") says nothing of the
# GPU; the parenthesis does. Mesa names the platform, and one platform may be several products.


def platform_in(db: "Database", name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The codenames that the last parenthesis leaves open, and what narrows them ("gt1", "-s").

    "Intel(R) UHD Graphics (TGL GT1)"; both empty where no parenthesis names a platform.
    """
    for inside in reversed(name.lower().split("(")[1:]):
        tokens = inside.partition(")")[0].replace(",", " ").split()
        for at, token in enumerate(tokens):
            plain, hyphen, letter = token.partition("-")
            codenames = db.ids(f"s:mesa/{token}") or (db.ids(f"s:mesa/{plain}") if hyphen else ())
            if codenames:
                details = (f"-{letter}",) if hyphen else ()
                return codenames, (*details, *tokens[at + 1 : at + 2])
    return (), ()


def on_platform(db: "Database", name: str, ids: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of chips whose codename fits the platform in a name.

    All of them where the name has no platform, or where no chip has its codename.
    """
    codenames, details = platform_in(db, name)
    if not codenames:
        return ids
    # Mesa's own spelling is an alias of many chips: "Intel(R) UHD Graphics (ADL-S GT0.5)".
    inside = name.lower()[name.rfind("(") :]
    chips = [chip for id_ in ids if (chip := db.chip(id_))]
    if printed := [chip.id for chip in chips if any(inside in a.lower() for a in chip.aliases)]:
        return tuple(printed)
    fitting = {chip.id: _squashed(chip.codename) for chip in chips if has_codename(chip, codenames)}
    for token in details:
        fitting = {id_: die for id_, die in fitting.items() if token in die} or fitting
    return tuple(fitting) or ids


def of_die(db: "Database", die: str, ids: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of chips of the die that lspci prints before the product, if that leaves any."""
    die = die.replace(" ", "")
    dies = {id_: _squashed(chip.codename) for id_ in ids if (chip := db.chip(id_))}
    mobile = die.removesuffix("m")  # GP108M is the GP108
    fitting = (
        id_
        for id_, own in dies.items()
        if own.replace("-", "").startswith(die) or (own and own == mobile)
    )
    return tuple(fitting) or ids


def has_codename(chip: Chip, codenames: tuple[str, ...]) -> bool:
    """Whether a chip's codename, or one of several in a list, begins with a platform's."""
    # Not plain "and": it is in "Rembrandt", too.
    parts = _squashed((chip.codename or "").lower().replace(" and ", ",")).split(",")
    return any(_is_die(part, codename) for part in parts for codename in codenames)


def _is_die(part: str, codename: str) -> bool:
    """`phoenix` is not `phoenix2`, and `alderlake-sgt1` is `alderlake`."""
    return part.startswith(codename) and not part[len(codename) :][:1].isdecimal()


def of_platform(db: "Database", name: str) -> tuple[str, ...]:
    """The GPUs of the platform in a name, where the name itself names none."""
    codenames, _ = platform_in(db, name)
    ids = [id_ for codename in codenames for id_ in db.ids(f"k:{codename}")]
    return on_platform(db, name, tuple(dict.fromkeys(ids)))


def _squashed(codename: str | None) -> str:
    return (codename or "").lower().replace(" ", "")


# Finds the chips of a name whose spelling no driver has, by the form of the name alone.
#
# Each rule is exact: product and editions are equal, a brand or vendor that the name claims is the
# chip's own, and memory, its type and the form factor contradict nothing that is known of the chip.

# A size in a name is nominal, the driver's total (2 to 10 % less), or decimal (7 % more in number).
_LOW, _HIGH = 0.90, 1.08
# GB that cards and unified memories are sold with: what an entry without a size may have.
_SOLD = frozenset((
    1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 18, 20, 24, 32, 36, 40, 48, 64, 72, 80, 94, 96, 128, 192,
    256, 288, 512,
))  # fmt: skip


def by_spelling(db: "Database", query: "Query") -> tuple[str, ...]:
    """The ids of the chips that a name means whose exact key no chip has."""
    key, name = query.name_key, query.name or ""
    if query.generic_name or key.startswith(built().set("processor")):
        # "Intel Iris Xe" is the driver's "Intel(R) Iris(R) Xe Graphics".
        named = db.ids(f"n:{key} graphics") if query.generic_name and " " in key else ()
        return _of_processor(db, query, name) or named
    chips, form = spelled(db, key)
    query.units = query.units or form.units
    return _ids(chips) or chips_of_machine(db, key) or _ids(_of_either(db, key))


def _ids(chips: "list[Chip]") -> tuple[str, ...]:
    return tuple(chip.id for chip in chips)


def in_line(db: "Database", query: "Query") -> tuple[str, ...]:
    """The ids of the chips that one part of a line names, where the other parts do not disagree.

    "VideoProcessor : NVIDIA GeForce GTX 1660 SUPER": between marks, a name is whole. A part that
    says more of the product ("(Laptop)", "48 GB") belongs to its name.
    """
    name = query.name or ""
    processors = built().set("processor")
    parts = _parts_of(name)
    if query.name_key.startswith(processors) or parts == [name.strip()]:
        return ()
    remark = _has_remark(name)
    read = [(claimed_vendor(part.replace("-", " ")), normalise(part)) for part in parts]
    named = {
        key: ids
        for vendor, key in read
        if (remark or _may_name(vendor, key)) and (ids := _of_part(db, key))
    }
    rest = [key for _, key in read if key not in named] if named else []
    beside = [key for key in rest if _is_beside(key)]
    sets = [set(ids) for ids in named.values()]
    if beside:  # a machine's type takes none of it
        whole = (set(_of_part(db, " ".join((key, *beside)))) for key in named)
        sets = [ids for ids in whole if ids]
    common = set.intersection(*sets) if sets else set()
    if remark and rest and not beside:
        common &= {id_ for id_ in common if _codename(db, id_) == rest[-1]}
    vendors = {vendor for vendor, key in read if vendor and not key.startswith(processors)}
    one_device = len(vendors | {id_.partition("/")[0] for id_ in common}) == 1
    return tuple(sorted(common)) if one_device else ()


def _codename(db: "Database", id_: str) -> str:
    chip = db.chip(id_)
    return ((chip and chip.codename) or "").lower()


def _has_remark(name: str) -> bool:
    """Whether one word in parentheses is all that stands beside a name: `RTX 4090 (GB202)`."""
    head, _, inside = name.rstrip(")").partition("(")
    plain = not any(mark in head or mark in inside for mark in _MARKS)
    return plain and " " not in inside.strip() and name.endswith(")")


_MARKS = "|;=:()[]{}\"'`\t"
_MOST_PARTS = 24


def _parts_of(line: str) -> list[str]:
    line = line.replace("  ", "\n")
    for mark in ("(R)", "(TM)", "(tm)"):  # a vendor's parentheses end no part
        line = line.replace(mark, " ")
    for mark in (*_MARKS, ", ", " - ", "->", "\\n", "\\t"):
        line = line.replace(mark, "\n")
    parts = (part.strip(" \\*#<>") for part in line.split("\n"))
    return list(dict.fromkeys(filter(None, parts)))[:_MOST_PARTS]


def _is_beside(key: str) -> bool:
    """Whether a part holds nothing but facts and editions of a product."""
    form = Form(key)
    words = built().set("product_word")
    bare = all(token in words for token in form.base.replace("~", " ").split())
    return bare and bool(form.facts or form.editions or form.base)


def _may_name(vendor: str, key: str) -> bool:
    """Whether a part can be trusted to name a product: `corsair` and `m1` are also other words."""
    whole = len(key) >= _LEAST and any(map(str.isdecimal, key)) and not key.isdecimal()
    return (bool(vendor) or whole) and not is_generic(key)


_LEAST = 4  # letters of a product without its vendor


def _of_part(db: "Database", key: str) -> tuple[str, ...]:
    return db.ids(f"n:{key}") or _ids(spelled(db, key)[0]) or chips_of_machine(db, key)


def by_rules_of_packages(db: "Database", query: "Query") -> tuple[str, ...]:
    """The ids of a package's own chips that a name means by the package's own rules."""
    return next(filter(None, (_in_package(own, query, rules) for own, rules in db.readers())), ())


def _in_package(own: "Database", query: "Query", rules: "Rules") -> tuple[str, ...]:
    name = query.name or ""
    key = normalise(name, query.name_kind, rules)
    device, _, _ = ids_of(facts_in(name, rules).get("pci", ""), name)
    keys = (f"p:{device}", f"n:{key}", *machine_keys(key, rules))
    exact = next(filter(None, map(own.ids, keys)), ())
    return exact or tuple(chip.id for chip in spelled(own, key, rules)[0])


def machine_keys(key: str, rules: "Rules | None" = None) -> "Iterator[str]":
    """The keys of names of `data/names` that a cloud's type of machine may stand for.

    >>> list(machine_keys("p5en.48xlarge"))
    ['s:machine/p5en.48xlarge', 's:amazon/p5en']
    """
    text = key.replace("_", "-").replace(" ", "-").removeprefix("ml.")  # SageMaker's
    text = text.removeprefix("standard-")  # Azure's
    yield f"s:machine/{text}"
    for name in (rules or built()).every(text, "machine"):
        yield f"s:{name}"


def chips_of_machine(db: "Database", key: str) -> tuple[str, ...]:
    """The ids of the chips in a cloud's type of machine; several where the type says less."""
    return next(filter(None, map(db.ids, machine_keys(key))), ())


_MOST_NAMES = 6  # a longer list is no driver's


def _of_either(db: "Database", key: str) -> "list[Chip]":
    """The products of a list, if each of them is known and all are of one vendor.

    A later one may leave out what the first begins with: "Instinct MI50/MI60".
    """
    names = [name.strip() for name in key.split("/")]
    if not 1 < len(names) <= _MOST_NAMES:
        return []
    start = names[0].rpartition(" ")[0]
    chips: dict[str, Chip] = {}
    for name in names:
        whole = name if name == names[0] else f"{start} {name}"
        same = spelled(db, whole)[0] or ([] if name.isdecimal() else spelled(db, name)[0])
        if not same:
            return []
        chips.update((chip.id, chip) for chip in same)
    single = len({chip.vendor for chip in chips.values()}) == 1
    return list(chips.values()) if single else []


def _of_processor(db: "Database", query: "Query", name: str) -> tuple[str, ...]:
    """The GPU inside the processor that a graphics driver prints ("Ryzen 7 7840U w/ Radeon 780M").

    A processor's brand string alone is no GPU's name.
    """
    on_die = of_platform(db, name) if "(" in name else ()
    graphics = query.name_key.partition(" w/ ")[2]
    if graphics and (on_die or query.name_kind in ("vulkan", "opencl", "gl")):
        ids = db.ids(f"n:{graphics}") or tuple(chip.id for chip in spelled(db, graphics)[0])
        return tuple(id_ for id_ in ids if id_ in on_die) or ids or on_die
    return on_die


def spelled(db: "Database", key: str, rules: "Rules | None" = None) -> "tuple[list[Chip], Form]":
    """The chips that a normalised name means by its form, and the form."""
    form = Form(key, rules)
    if not form.base or any(mark in key for mark in "|~"):
        return [], form
    chips = _of_form(db, form, rules)
    # OpenCL prints AMD's dies as names: "Vega10" is no Radeon Vega 10.
    return ([] if chips and db.ids(f"s:mesa/{form.base}") else chips), form


def _of_form(db: "Database", form: Form, rules: "Rules | None") -> "list[Chip]":
    exact = _read(db, db.ids(f"n:{form.text}"))
    if own := [chip for chip in exact if form.vendor in ("", chip.vendor)]:
        return own
    # "H200 141GB" is an H200, which is a product's whole name; an H200 NVL would be called one.
    declared = form.facts and db.ids(f"b:{form.key}|{form.facts}")
    if (
        form.facts
        and not declared
        and "~" not in form.base
        and (whole := _fitting(_read(db, db.ids(f"n:{form.plain}")), form))
    ):
        return _of_exact_size(db, form, whole)
    chips = {chip.id: chip for chip in _chips(db, form)}
    if not chips or form.base.isdecimal():
        chips |= {chip.id: chip for other in others(form, rules) for chip in _chips(db, other)}
    return list(chips.values())


def _of_exact_size(db: "Database", form: Form, near: "list[Chip]") -> "list[Chip]":
    """The products of exactly the size, where those of the whole name are only near it.

    "B200 168GB" is the B200 of 168 GB, although 168 is in the window of the one of 180.
    """
    size = form.size
    if size is None or any(size in _sizes(chip) for chip in near):
        return near
    exact = [chip for chip in _chips(db, form) if size in _sizes(chip)]
    return exact or near


def _chips(db: "Database", form: Form) -> "list[Chip]":
    chips = _read(db, db.ids(f"b:{form.brand} {form.key}")) if form.brand else []
    if not chips and not form.brand:
        chips = _read(db, db.ids(f"b:{form.key}"))
    if not chips and form.facts:
        chips = _read(db, db.ids(f"b:{form.key}|{form.facts}"))
    if form.vendor:
        chips = [chip for chip in chips if chip.vendor == form.vendor]
    if not form.facts or not chips:
        return _of_units(chips, form)
    # "H100 80GB SXM5" is the name of one product, its tokens in another order.
    declared = frozenset(db.ids(f"b:{form.key}|{form.facts}"))
    if same := [chip for chip in chips if chip.id in declared]:
        return same + _of_plain_names(chips, same, form)
    return _of_units(_fitting(chips, form), form)


def _of_plain_names(chips: "list[Chip]", same: "list[Chip]", form: Form) -> "list[Chip]":
    """Products of just that size whose names do not say it.

    "RTX 3050 laptop 4GB" is the name of one in another order, and the plain one has 4 GB, too.
    """
    if form.size is None or form.factor or form.type:
        return []
    return [
        chip
        for chip in chips
        if chip not in same
        and chip.memory.gib == form.size
        and all(size_in(word) is None for word in chip.words)
    ]


def _read(db: "Database", ids: tuple[str, ...]) -> "list[Chip]":
    return [chip for id_ in ids if (chip := db.chip(id_))]


def _of_units(chips: "list[Chip]", form: Form) -> "list[Chip]":
    return [
        chip for chip in chips if not form.units or form.units in (stated(chip) or (form.units,))
    ]


def _fitting(chips: "list[Chip]", form: Form) -> "list[Chip]":
    if form.size is not None:
        chips = _of_size(chips, form.size)
    if form.type:
        chips = [chip for chip in chips if _type(chip) == form.type] or [
            chip for chip in chips if _type(chip).startswith(form.type)
        ]
    if form.factor:
        chips = _of_factor(chips, form.factor)
    return chips


def _of_size(chips: "list[Chip]", size: float) -> "list[Chip]":
    """The chips of exactly that size, else those in the window, else those of no known size."""
    sized = [(chip, _sizes(chip)) for chip in chips]
    exact = [chip for chip, sizes in sized if size in sizes]
    if exact:
        return exact
    near = [
        chip
        for chip, sizes in sized
        if any(_LOW * nominal <= size <= _HIGH * nominal for nominal in sizes)
    ]
    return near or [chip for chip, sizes in sized if not sizes and size in _SOLD]


def _sizes(chip: "Chip") -> list[float]:
    """The sizes in GiB: of one device, of a board that shows several, and as in its own name."""
    gib = chip.memory.gib
    nominal = [] if gib is None else [gib, gib * chip.boards]
    return nominal + [size for word in chip.words if (size := size_in(word)) is not None]


def _type(chip: "Chip") -> str:
    """HBM3 is also what people call HBM3e; the reverse is another product."""
    return (chip.memory.type or "").lower()


def _of_factor(chips: "list[Chip]", factor: str) -> "list[Chip]":
    declared = [(chip, _factors(chip)) for chip in chips]
    chosen = [chip for chip, own in declared if any(_is_factor(name, factor) for name in own)]
    if chosen or factor not in ("pcie", "oam"):
        return chosen
    # An L40S is a PCIe card and an MI300X an OAM module, although their names do not say it.
    return [
        chip
        for chip, own in declared
        if not own and chip.form_factor == factor and chip.memory.gib is not None
    ]


def _is_factor(own: str, factor: str) -> bool:
    return own == factor or (factor == "sxm" and own.startswith("sxm"))


def _factors(chip: "Chip") -> set[str]:
    prefixes = built().set("declared_factor")
    return {word for word in chip.words if word.startswith(prefixes)}


# Shows people the entries that look like what they typed. Nothing here ever matches anything.


def near(db: "Database", query: str, n: int) -> tuple[Chip, ...]:
    """The n nearest names: shared words first, then shared letters. Empty for an empty query."""
    typed = normalise(query)
    if not typed:
        return ()
    scores: dict[str, float] = {}
    for table in db.tables():
        for key, ids in table.index:
            if key.startswith("n:") and (score := _score(typed, key[2:])):
                for id_ in ids.split(" "):
                    scores[id_] = max(score, scores.get(id_, 0.0))
    ranked = sorted(scores, key=lambda id_: (-scores[id_], id_))[:n]
    return tuple(chip for id_ in ranked if (chip := db.chip(id_)))


def _score(typed: str, name: str) -> float:
    """0 (nothing alike) to 3: twice the share of common words, and the share of common letters."""
    tokens, name_tokens = set(typed.split()), set(name.split())
    common = len(tokens & name_tokens)
    # Letters alone count only from a common beginning: comparing all of a big table takes seconds.
    if not common and typed[:4] not in name:
        return 0.0
    from difflib import SequenceMatcher

    share = 2 * common / (len(tokens) + len(name_tokens))
    return share + SequenceMatcher(None, typed, name).ratio()
