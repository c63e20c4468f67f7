"""What sites and vendors ship: a site overrides, a vendor only adds to what is its own."""

from probe_chipdb.candidates import register_keys
from probe_chipdb.entry.files import MAX_CHIPS, Budget, add, read, toml_files
from probe_chipdb.entry.pack import arch_index_keys, chip_keys, loose_keys, to_table
from probe_chipdb.entry.spec import Problem
from probe_chipdb.entry.validate import Data, distribution_name
from probe_chipdb.rules import built as builtin_rules
from probe_chipdb.spelling import is_generic, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from probe_chipdb.entry.fields import ArchEntry, ChipEntry, MatchEntry
    from probe_chipdb.packages import Package
    from probe_chipdb.table import Table

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it
    Named = Callable[[str], tuple[str, ...]]
    """The ids of the built table's chips that a name means, by any rule of the matcher."""
    Accept = Callable[[str], str | None] | None


# Takes off a package's architecture the keys by which drivers name other vendors' hardware.

# Whose numbers a key counts.
_COUNTED_BY = {"compute_capability": "nvidia", "gfx": "amd", "metal_family": "apple"}


def foreign_keys(
    arch: "ArchEntry", built: "Table", vendors: frozenset[str]
) -> "Iterator[tuple[str, str]]":
    """Remove each key of `match` that is another vendor's; (field, what is wrong) of each.

    vendors: whose namespaces the package may add to.
    """
    match = arch.get("match", {})
    vendor = arch["vendor"]
    own = vendor in vendors or not built.ids(f"v:{vendor}")
    for field in list(match):
        if fault := _fault(field, match, vendor if own else "", built):
            del match[field]  # type: ignore[misc]  # one of its own keys
            yield field, fault


def is_foreign(owner: str, vendor: str, built: "Table") -> bool:
    """Whether the owner of a register or compatible is another vendor that the table has."""
    return owner != vendor and bool(built.ids(f"v:{owner}"))


def _fault(field: str, match: "MatchEntry", vendor: str, built: "Table") -> str:
    """vendor: the package's, or empty where it may add nothing to that vendor's namespace."""
    counter = _COUNTED_BY.get(field)
    if counter and counter != vendor:
        return f"{field} is a number of {counter}"
    for pci in match.get("pci", ()) if field == "pci" else ():
        owners = built.ids(f"pv:{pci[:4]}")
        if owners and vendor not in owners:
            return f"the PCI vendor id {pci[:4]} is that of {', '.join(owners)}"
    for mark, listed in ((":", "gpu_id"), (",", "dt")):
        for text in match.get(listed, ()) if field == listed else ():  # type: ignore[attr-defined]
            owner = text.partition(mark)[0]
            if is_foreign(owner, vendor, built):
                return f"{text!r} is hardware of {owner}"
    alone: MatchEntry = {field: match[field]}  # type: ignore[misc]
    for key in arch_index_keys(alone):
        if others := built.ids(key):
            return f"{key!r} already means {', '.join(others[:4])}"
    return ""


# Whose a namespace, a PCI id and a name are: what a vendor's package may add, and what it may not.
#
# A package adds chips of a vendor that nobody else has. To a vendor of the built table it may add
# where it is that vendor's own: chipdb lists its distribution among the publishers, or the user's
# own file does. It never takes a key that means another chip, a name that is read as another
# chip's, nor ids of another vendor.

# Kinds of keys that no table owns: vendor ("v:"), and architecture with unit count ("u:").
_COMMON = ("v", "u")
_MOST_NAMED = 4  # ids in one sentence


class Consent:
    """Which distributions may add to which namespaces: by chipdb's list, and by the user's."""

    __slots__ = ("_built", "_by_user")

    def __init__(self, built: "Table") -> None:
        self._built = built
        self._by_user: dict[str, list[str]] = {}

    def add(self, publishers: "Mapping[str, list[str]]") -> None:
        """What the user's own file allows."""
        for distribution, vendors in publishers.items():
            self._by_user.setdefault(distribution, []).extend(vendors)

    def vendors(self, distribution: str) -> frozenset[str]:
        """The vendors of the built table for which a distribution may publish."""
        name = distribution_name(distribution)
        return frozenset((*self._built.ids(f"pub:{name}"), *self._by_user.get(name, ())))


def disown(data: Data, earlier: "list[Table]", vendors: frozenset[str], named: "Named") -> None:
    """Leave out what another table defines: its namespaces, its ids, its keys, its architectures.

    earlier: the built table, then the packages before. vendors: whose namespaces the package may
    add to. named: see Named.
    """
    built, *packages = earlier
    for id_, chip in list(data.chips.items()):
        if refusal := _refusal(chip, earlier, vendors):
            del data.chips[id_]
            _report(data, id_, "id", *refusal)
            continue
        for field, fault, fix in list(taken(chip, built, named)):
            _report(data, id_, field, fault, fix)
            _drop_key(chip, field)
            if field == f"n:{normalise(chip['name'])}":
                data.unnamed.add(id_)  # it stays under its id and its other keys
        _report_shared_keys(data, id_, chip, packages)
    if data.publishers:
        problem = ("[publishers]", "", "only a site's own file may list publishers", "remove it")
        data.problems.append(Problem("package", *problem))
    _disown_archs(data, earlier, vendors)
    for at, of_format in reversed([*foreign_formats(data)]):
        del data.formats.rows[at]
        data.problems.append(of_format)
    for at, of_row in reversed([*foreign_rows(data, built, vendors)]):
        data.rules.remove(at)
        data.problems.append(of_row)
    for text, of_name in [*foreign_names(data, built)]:
        del data.names[text]
        data.problems.append(of_name)


MAX_ROWS = 500
"""Rows of names that one package may have: three times ours."""


def foreign_rows(
    data: Data, built: "Table", vendors: frozenset[str]
) -> "Iterator[tuple[int, Problem]]":
    """Rows of names that would be held against names of others, by their place."""
    known = _others_words(built, vendors) if data.rules.rows else {}
    for at, runs in _runs(data):
        stage, row = data.rules.rows[at]
        fault, fix = "", "add a word of your own to the pattern"
        if at >= MAX_ROWS:
            fault, fix = f"it is beyond the {MAX_ROWS} rows that a package may have", "ship fewer"
        elif stage == "host":
            fault, fix = "a host's device is another vendor's", "send the row to the project"
        elif not any(all(_is_own(words, known) for words in run) for run in runs):
            named = ", ".join(sorted({word for run in runs for words in run for word in words})[:4])
            fault = f"its text ({named}) is others', too" if named else "it has no text of its own"
        if fault:
            label = f"{stage} {row['pattern']!r}"
            yield at, Problem(data.rules.files[at], label, "pattern", fault, fix)


def _runs(data: Data) -> "Iterator[tuple[int, list[list[list[str]]]]]":
    """Yield the place of each row, and the words in the texts of its pattern's runs."""
    for at, (_, row) in enumerate(data.rules.rows):
        if not data.rules.fault(row):
            runs = data.rules.pattern(row).runs()
            yield at, [[_words(text) for text in texts] for texts in runs]


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


_LEAST = 3  # letters of a word that names somebody


def _is_own(words: list[str], known: "dict[str, list[str]]") -> bool:
    return any(len(word) >= _LEAST and word not in known for word in words)


def foreign_formats(data: Data) -> "Iterator[tuple[int, Problem]]":
    """Rows of number formats of architectures that the package does not have, by their place."""
    for at, row in enumerate(data.formats.rows):
        if others := [arch for arch in data.formats.archs(row) if arch not in data.archs]:
            fault = f"{', '.join(others[:_MOST_NAMED])} is no architecture of this package"
            label = f"row {at + 1}, {', '.join(row['formats'])}"
            yield at, Problem("formats", label, "archs", fault, "name its own architectures alone")


def rows_with_brands(data: Data, built: "Table", vendors: frozenset[str]) -> "Iterator[Problem]":
    """Rows of names with a word that only names of one other vendor have: they may be meant."""
    words = _others_words(built, vendors) if data.rules.rows else {}
    brands = {
        word: owners[0]
        for word, owners in words.items()
        if len(owners) >= _MANY and len(set(owners)) == 1
    }
    for at, runs in _runs(data):
        stage, row = data.rules.rows[at]
        own = {word for run in runs for words in run for word in words}
        for word in sorted(own & brands.keys()):
            fault = f"{word!r} is a word of names of {brands[word]} alone"
            fix = "leave names of others to them"
            label = f"{stage} {row['pattern']!r}"
            yield Problem(data.rules.files[at], label, "pattern", fault, fix, "warning")


_MANY = 20  # names with a word that is a brand or series; "one" is in some of AMD's


def _others_words(built: "Table", vendors: frozenset[str]) -> dict[str, list[str]]:
    """Words of names of the built table's chips to their vendors, without those of `vendors`."""
    words: dict[str, list[str]] = {}
    for key, ids in built.index:
        if key.startswith(("n:", "v:")):
            owners = {id_.partition("/")[0] for id_ in ids.split(" ")} - vendors
            for word in key[2:].split() if owners else ():
                words.setdefault(word, []).extend(owners)
    return words


def foreign_names(data: Data, built: "Table") -> "Iterator[tuple[str, Problem]]":
    """Names of machines and boards that mean chips of others, or are in a scheme of ours."""
    schemes = {
        key[2:].partition("/")[0]
        for key, _ in (built.index if data.names else ())
        if key[:2] == "s:"
    }
    for text, entry in data.names.items():
        scheme, _, name = text.partition("/")
        others = [id_ for id_ in entry["means"] if id_ not in data.chips]
        fault = (
            (f"the names of {scheme!r} are the project's", "name the file otherwise")
            if scheme in schemes
            else (f"{', '.join(others)} is no chip of this package", "name its own chips alone")
        )
        if others or scheme in schemes:
            yield text, Problem(data.where[f"name:{text}"], f"[{name}]", "means", *fault)


def _disown_archs(data: Data, earlier: "list[Table]", vendors: frozenset[str]) -> None:
    built = earlier[0]
    for name, arch in list(data.archs.items()):
        where, label = data.where[f"arch:{name}"], f"arch {name!r}"
        if any(table.archs.find(name) for table in earlier):
            del data.archs[name]
            fault, fix = "the architecture is defined already", "give yours another name"
            data.problems.append(Problem(where, label, "arch", fault, fix))
            continue
        for field, fault in foreign_keys(arch, built, vendors):
            fix = "remove it; list keys of your own hardware alone"
            data.problems.append(Problem(where, label, f"match.{field}", fault, fix))


def _refusal(
    chip: "ChipEntry", earlier: "list[Table]", vendors: frozenset[str]
) -> tuple[str, str] | None:
    """Why a chip cannot be added at all, and what to do."""
    vendor = chip["vendor"]
    owner = next((table for table in earlier if table.ids(f"v:{vendor}")), None)
    if owner is not None and vendor not in vendors:
        name = owner.origin.removeprefix("package:")
        fault = f"the namespace {vendor!r} belongs to {name}"
        return fault, "use a namespace of your own; a site file may override"
    if any(table.chips.find(chip["id"]) for table in earlier):
        return "the chip is defined already", "give yours another id; a site file may override"
    return None


def taken(chip: "ChipEntry", built: "Table", named: "Named") -> "Iterator[Fault]":
    """The keys of a chip that the built table has for another, and ids of another vendor.

    named: see Named.
    """
    yield from _foreign_ids(chip, built)
    exact = set()
    for key in _keys(chip):
        others = [id_ for id_ in built.ids(key) if id_ != chip["id"]]
        if others:
            exact.add(key)
            yield key, _means(others), "remove it; the built table keeps it"
    for name in (chip["name"], *chip.get("aliases", ())):
        key = f"n:{normalise(name)}"
        if key in exact:
            continue
        if is_generic(key[2:]):
            yield key, "it names no product", "remove it"
        elif others := [id_ for id_ in named(name) if id_ != chip["id"]]:
            yield key, _means(others), "remove it; the built table keeps it"


def _foreign_ids(chip: "ChipEntry", built: "Table") -> "Iterator[Fault]":
    """Ids that another vendor gives: of PCI, of device trees, and in registers."""
    vendor = chip["vendor"]
    for pci in list(chip.get("pci", ())):
        owners = built.ids(f"pv:{pci[:4]}")
        if owners and vendor not in owners and not built.ids(f"p:{pci}"):
            fault = f"the PCI vendor id {pci[:4]} is that of {', '.join(owners)}"
            yield f"p:{pci}", fault, "list PCI ids of your own vendor id alone"
    for register in list(chip.get("gpu_id", ())):
        owner = register.partition(":")[0]
        keys = register_keys(built, register.partition("/")[0], "gm")
        others = [id_ for key in keys for id_ in built.ids(f"g:{key}") if id_ != chip["id"]]
        if others:
            yield f"g:{register}", _means(others), "remove it; the built table keeps it"
        elif is_foreign(owner, vendor, built):
            fault = f"the id registers of {owner} are not those of {vendor}"
            yield f"g:{register}", fault, "list registers of your own hardware alone"

    for compatible in list(chip.get("dt", ())):
        owner = compatible.partition(",")[0]
        if is_foreign(owner, vendor, built) and not built.ids(f"d:{compatible}"):
            fault = f"compatibles of {owner} are not those of {vendor}"
            yield f"d:{compatible}", fault, "list compatibles of your own alone"


def _means(ids: list[str]) -> str:
    uncounted = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"it already means {', '.join(ids[:_MOST_NAMED])}{uncounted}"


def _keys(chip: "ChipEntry") -> list[str]:
    return [key for key in (*chip_keys(chip), *loose_keys(chip)) if key[0] not in _COMMON]


def _report_shared_keys(data: Data, id_: str, chip: "ChipEntry", packages: "list[Table]") -> None:
    """Two packages with one key: neither is better, so the key is ambiguous, and a problem."""
    for key in _keys(chip):
        owners = [owner for table in packages for owner in table.ids(key)]
        if owners:
            fault = f"it means {', '.join(owners)} too"
            fix = "agree with the other vendor; until then it is ambiguous"
            _report(data, id_, key, fault, fix)


def _drop_key(chip: "ChipEntry", key: str) -> None:
    """Remove whatever gives the chip this key. A name that is not its own stays readable."""
    bare: ChipEntry = {"id": "", "name": "", "kind": "", "vendor": "", "family": ""}
    chip["pci"] = [id_ for id_ in chip.get("pci", []) if key not in _keys({**bare, "pci": [id_]})]
    chip["dt"] = [name for name in chip.get("dt", []) if key not in _keys({**bare, "dt": [name]})]
    chip["gpu_id"] = [
        id_
        for id_ in chip.get("gpu_id", [])
        if key != f"g:{id_}" and key not in _keys({**bare, "gpu_id": [id_]})
    ]
    chip["aliases"] = [
        name
        for name in chip.get("aliases", [])
        if key != f"n:{normalise(name)}" and key not in _keys({**bare, "aliases": [name]})
    ]


def _report(data: Data, id_: str, field: str, fault: str, fix: str) -> None:
    data.problems.append(Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", field, fault, fix))


# Adds what sites and vendors ship: a site overrides, a vendor only adds; neither is trusted.


def read_extras(
    built: "Table",
    extra: "Iterable[str]",
    packages: "Iterable[Package]",
    accept: "Accept",
    named: "Named",
) -> "tuple[list[Table], list[Table], tuple[str, ...]]":
    """Site tables, package tables, and what was left out of them. named: see `ownership`."""
    problems: list[Problem] = []
    budget = Budget()
    consent = Consent(built)
    sites = [_site(path, budget, consent, problems) for path in extra]
    tables = [built]
    for package in packages:
        table = _package(package, tables, accept, budget, consent, problems, named)
        if table:
            tables.append(table)
    return sites, tables[1:], tuple(map(str, problems))


def _site(path: str, budget: Budget, consent: Consent, problems: list[Problem]) -> "Table":
    data = Data()
    refusal = budget.refusal(path)
    content, faults = ({}, [_unread(path, refusal)]) if refusal else read(path)
    data.add_chips(path, content)
    consent.add(data.publishers)  # the user's own file is the user's consent
    problems += faults + data.problems
    return to_table(data, f"site:{path}", "")


def _package(
    package: "Package",
    earlier: "list[Table]",
    accept: "Accept",
    budget: Budget,
    consent: Consent,
    problems: list[Problem],
    named: "Named",
) -> "Table | None":
    """A vendor package's table; `earlier` are the built one and those of packages before it."""
    if package.problem:
        fault = (package.problem, package.fix)
        problems.append(Problem(package.distribution, package.name, "", *fault))
        return None
    data = Data(builtin_rules())
    for path in toml_files(package.folder):
        label = f"{package.distribution}: {path[len(package.folder) + 1 :]}"
        refusal = accept(path) if accept else None
        if refusal:
            problems.append(Problem(label, "", "", refusal, "see the host's policy"))
            continue
        if refusal := budget.refusal(path):
            problems.append(_unread(label, refusal))
            break
        content, faults = read(path, label)
        problems += faults
        add(data, path, label, content)
    data.check_rows()
    _limit(data, package)  # before what costs most for each chip
    disown(data, earlier, consent.vendors(package.distribution), named)
    problems += data.problems
    return to_table(data, f"package:{package.distribution}", "")


def _unread(label: str, refusal: str) -> Problem:
    return Problem(label, "", "", refusal, "ship fewer or smaller files")


def _limit(data: Data, package: "Package") -> None:
    surplus = list(data.chips)[MAX_CHIPS:]
    for id_ in surplus:
        del data.chips[id_]
    if surplus:
        fault = f"has more than {MAX_CHIPS} chips"
        problem = Problem(package.distribution, package.name, "", fault, "ship fewer")
        data.problems.append(problem)
