"""Adds what sites and vendors ship: a site overrides, a vendor only adds, and nobody is trusted."""

from collections.abc import Callable, Iterable
from typing import Any

from probe_chipdb.entry.files import MAX_CHIPS, read
from probe_chipdb.entry.folder import toml_files
from probe_chipdb.entry.judge import Data
from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.rows import chip_keys, loose_keys, to_table
from probe_chipdb.packages import Package
from probe_chipdb.table import Table

Accept = Callable[[str], str | None] | None


def read_extras(
    built: Table, extra: Iterable[str], packages: Iterable[Package], accept: Accept
) -> tuple[list[Table], list[Table], tuple[str, ...]]:
    """Site tables, package tables, and what was left out of them."""
    problems: list[Problem] = []
    sites = [_site(path, problems) for path in extra]
    taken: list[Table] = [built]
    for package in packages:
        table = _package(package, taken, accept, problems)
        if table:
            taken.append(table)
    return sites, taken[1:], tuple(map(str, problems))


def _site(path: str, problems: list[Problem]) -> Table:
    data = Data()
    tables, bad = read(path)
    data.add_chips(path, tables)
    problems += bad + data.problems
    return to_table(data, f"site:{path}", "")


def _package(
    package: Package, taken: list[Table], accept: Accept, problems: list[Problem]
) -> Table | None:
    if package.problem:
        problems.append(
            Problem(
                package.distribution,
                package.name,
                "",
                package.problem,
                "mend the entry point or reinstall",
            )
        )
        return None
    data = Data()
    for path in toml_files(package.folder):
        shown = f"{package.distribution}: {path[len(package.folder) + 1 :]}"
        why = accept(path) if accept else None
        tables, bad = (
            ({}, [Problem(shown, "", "", why, "see the host's policy")])
            if why
            else read(path, shown)
        )
        problems += bad
        data.add_chips(shown, tables)
    _disown(data, taken)
    _limit(data, package)
    problems += data.problems
    return to_table(data, f"package:{package.distribution}", "")


def _disown(data: Data, taken: list[Table]) -> None:
    """Leave out chips of a namespace that somebody else holds, and keys of somebody else."""
    for id_, chip in list(data.chips.items()):
        holder = next((table for table in taken if table.ids(f"v:{chip['vendor']}")), None)
        if holder is not None:
            del data.chips[id_]
            what = f"the namespace {chip['vendor']!r} belongs to {_who(holder)}"
            _say(data, id_, "id", what, "use a namespace of your own; a site file may override")
        else:
            _drop_taken_keys(data, id_, chip, taken[0])
            _tell_shared_keys(data, id_, chip, taken[1:])
    for name in [name for name in data.archs if any(table.archs.find(name) for table in taken)]:
        del data.archs[name]
        _say(
            data,
            name,
            "arch",
            "the architecture is defined already",
            "give yours another name",
            "arch",
        )


def _keys(chip: dict[str, Any]) -> list[str]:
    return [*chip_keys(chip), *loose_keys(chip)]


def _drop_taken_keys(data: Data, id_: str, chip: dict[str, Any], built: Table) -> None:
    for key in _keys(chip):
        owners = built.ids(key)
        if not owners or key[0] in "vu":
            continue
        _say(
            data,
            id_,
            key,
            f"it already means {', '.join(owners)}",
            "remove it; the built table keeps it",
        )
        _forget(chip, key)


def _tell_shared_keys(data: Data, id_: str, chip: dict[str, Any], packages: list[Table]) -> None:
    """Two packages with one key: neither is better, so the key answers "one of", and says so."""
    for key in _keys(chip):
        others = [other for table in packages for other in table.ids(key)]
        if others and key[0] not in "vu":
            what = f"it means {', '.join(others)} too"
            _say(data, id_, key, what, "agree with the other vendor; until then it is ambiguous")


def _forget(chip: dict[str, Any], key: str) -> None:
    """Remove whatever gives the chip this key. A taken name stays readable, but finds the owner."""
    for field in ("pci", "dt", "gpu_id", "aliases"):
        chip[field] = [
            item
            for item in chip.get(field, ())
            if key not in _keys({"vendor": "", "name": "", field: [item]})
        ]


def _limit(data: Data, package: Package) -> None:
    for id_ in list(data.chips)[MAX_CHIPS:]:
        del data.chips[id_]
    if len(data.chips) == MAX_CHIPS:
        data.problems.append(
            Problem(
                package.distribution,
                package.name,
                "",
                f"has more than {MAX_CHIPS} chips",
                "ship fewer",
            )
        )


def _say(data: Data, id_: str, field: str, what: str, fix: str, kind: str = "chip") -> None:
    data.problems.append(Problem(data.where[f"{kind}:{id_}"], f"{kind} {id_!r}", field, what, fix))


def _who(table: Table) -> str:
    return table.origin.removeprefix("package:")
