"""Whose a namespace, a PCI id and a name are: what a vendor's package may add, and what it may not.

A package adds chips of a vendor that nobody else has. To a vendor of the built table it may add
where it is that vendor's own: chipdb lists its distribution among the publishers, or the user's own
file does. It never takes a key that means another chip, a name that is read as another chip's, nor
ids of another vendor.
"""

from probe_chipdb.candidates import register_keys
from probe_chipdb.entry.arch_keys import foreign_keys, is_foreign
from probe_chipdb.entry.pack import chip_keys, loose_keys
from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.validate import Data, distribution_name
from probe_chipdb.spelling import is_generic, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from probe_chipdb.entry.types import ChipEntry
    from probe_chipdb.table import Table

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it
    Named = Callable[[str], tuple[str, ...]]
    """The ids of the built table's chips that a name means, by any rule of the matcher."""

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
