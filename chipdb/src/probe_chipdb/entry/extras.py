"""Adds what sites and vendors ship: a site overrides, a vendor only adds; neither is trusted."""

from probe_chipdb.entry.files import MAX_CHIPS, Budget, read
from probe_chipdb.entry.folder import toml_files
from probe_chipdb.entry.ownership import Consent, disown
from probe_chipdb.entry.pack import to_table
from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.validate import Data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_chipdb.entry.ownership import Named
    from probe_chipdb.packages import Package
    from probe_chipdb.table import Table

    Accept = Callable[[str], str | None] | None


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
