"""Adds what sites and vendors ship: a site overrides, a vendor only adds; neither is trusted."""

from probe_chipdb.entry.files import MAX_CHIPS, Budget, read
from probe_chipdb.entry.folder import toml_files
from probe_chipdb.entry.pack import chip_keys, loose_keys, to_table
from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.validate import Data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_chipdb.entry.types import ChipEntry
    from probe_chipdb.packages import Package
    from probe_chipdb.table import Table

    Accept = Callable[[str], str | None] | None

# Kinds of keys that no table owns: vendor ("v:"), and architecture with unit count ("u:").
_COMMON = ("v", "u")


def read_extras(
    built: "Table", extra: "Iterable[str]", packages: "Iterable[Package]", accept: "Accept"
) -> "tuple[list[Table], list[Table], tuple[str, ...]]":
    """Site tables, package tables, and what was left out of them."""
    problems: list[Problem] = []
    budget = Budget()
    sites = [_site(path, budget, problems) for path in extra]
    tables = [built]
    for package in packages:
        table = _package(package, tables, accept, budget, problems)
        if table:
            tables.append(table)
    return sites, tables[1:], tuple(map(str, problems))


def _site(path: str, budget: Budget, problems: list[Problem]) -> "Table":
    data = Data()
    refusal = budget.refusal(path)
    content, faults = ({}, [_unread(path, refusal)]) if refusal else read(path)
    data.add_chips(path, content)
    problems += faults + data.problems
    return to_table(data, f"site:{path}", "")


def _package(
    package: "Package",
    earlier: "list[Table]",
    accept: "Accept",
    budget: Budget,
    problems: list[Problem],
) -> "Table | None":
    """A vendor package's table; `earlier` are the built one and those of packages before it."""
    if package.problem:
        fix = "correct the entry point or reinstall"
        problems.append(Problem(package.distribution, package.name, "", package.problem, fix))
        return None
    data = Data()
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
        data.add_chips(label, content)
    _disown(data, earlier)
    _limit(data, package)
    problems += data.problems
    return to_table(data, f"package:{package.distribution}", "")


def _unread(label: str, refusal: str) -> Problem:
    return Problem(label, "", "", refusal, "ship fewer or smaller files")


def _disown(data: Data, earlier: "list[Table]") -> None:
    """Leave out what another table defines: its namespaces, its keys, its architectures."""
    built, *packages = earlier
    for id_, chip in list(data.chips.items()):
        owner = next((table for table in earlier if table.ids(f"v:{chip['vendor']}")), None)
        if owner is not None:
            del data.chips[id_]
            name = owner.origin.removeprefix("package:")
            fault = f"the namespace {chip['vendor']!r} belongs to {name}"
            fix = "use a namespace of your own; a site file may override"
            _report_chip(data, id_, "id", fault, fix)
        else:
            _drop_built_keys(data, id_, chip, built)
            _report_shared_keys(data, id_, chip, packages)
    for name in list(data.archs):
        if any(table.archs.find(name) for table in earlier):
            del data.archs[name]
            fault = "the architecture is defined already"
            problem = Problem(
                data.where[f"arch:{name}"],
                f"arch {name!r}",
                "arch",
                fault,
                "give yours another name",
            )
            data.problems.append(problem)


def _keys(chip: "ChipEntry") -> list[str]:
    return [key for key in (*chip_keys(chip), *loose_keys(chip)) if key[0] not in _COMMON]


def _drop_built_keys(data: Data, id_: str, chip: "ChipEntry", built: "Table") -> None:
    for key in _keys(chip):
        owners = built.ids(key)
        if owners:
            fault = f"it already means {', '.join(owners)}"
            _report_chip(data, id_, key, fault, "remove it; the built table keeps it")
            _drop_key(chip, key)


def _report_shared_keys(data: Data, id_: str, chip: "ChipEntry", packages: "list[Table]") -> None:
    """Two packages with one key: neither is better, so the key is ambiguous, and a problem."""
    for key in _keys(chip):
        owners = [owner for table in packages for owner in table.ids(key)]
        if owners:
            fault = f"it means {', '.join(owners)} too"
            fix = "agree with the other vendor; until then it is ambiguous"
            _report_chip(data, id_, key, fault, fix)


def _drop_key(chip: "ChipEntry", key: str) -> None:
    """Remove whatever gives the chip this key. A name that is not its own stays readable."""
    bare: ChipEntry = {"id": "", "name": "", "kind": "", "vendor": "", "family": ""}
    chip["pci"] = [id_ for id_ in chip.get("pci", []) if key not in _keys({**bare, "pci": [id_]})]
    chip["dt"] = [name for name in chip.get("dt", []) if key not in _keys({**bare, "dt": [name]})]
    chip["gpu_id"] = [
        id_ for id_ in chip.get("gpu_id", []) if key not in _keys({**bare, "gpu_id": [id_]})
    ]
    chip["aliases"] = [
        name for name in chip.get("aliases", []) if key not in _keys({**bare, "aliases": [name]})
    ]


def _limit(data: Data, package: "Package") -> None:
    surplus = list(data.chips)[MAX_CHIPS:]
    for id_ in surplus:
        del data.chips[id_]
    if surplus:
        fault = f"has more than {MAX_CHIPS} chips"
        problem = Problem(package.distribution, package.name, "", fault, "ship fewer")
        data.problems.append(problem)


def _report_chip(data: Data, id_: str, field: str, fault: str, fix: str) -> None:
    problem = Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", field, fault, fix)
    data.problems.append(problem)
