"""The contracts in `pyproject.toml` refuse what they are there for, and miss no package."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts import acyclic_siblings, forbidden, layers, protected
from importlinter.domain.contract import Contract

ROOT = Path(__file__).parents[1]
TYPES: dict[str, type[Contract]] = {
    "acyclic_siblings": acyclic_siblings.AcyclicSiblingsContract,
    "forbidden": forbidden.ForbiddenContract,
    "layers": layers.LayersContract,
    "protected": protected.ProtectedContract,
}
OPTIONS = read_configuration(str(ROOT / "pyproject.toml"))
SESSION, CONTRACTS = OPTIONS["session_options"], OPTIONS["contracts_options"]

ROOMS = "the rooms of the core are layered"
CIRCLES = "no circle among rooms, nor among the modules of chipdb or of a plugin"
DIRECTION = "a distribution imports downwards"
PROBERS = "a prober imports what authors are promised"
COMMANDS = "a command imports none of the steps of a probe"


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return what imports what in this repository, without what only a type checker sees."""
    packages = SESSION["root_packages"]
    return grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)


def refused(graph: grimp.ImportGraph) -> set[str]:
    """Return the names of the contracts that the imports break."""
    names = set()
    for options in CONTRACTS:
        contract = TYPES[options["type"]](options["name"], SESSION, options)
        if not contract.check(copy.deepcopy(graph), verbose=False).kept:
            names.add(options["name"])
    return names


def with_import(graph: grimp.ImportGraph, importer: str, imported: str) -> grimp.ImportGraph:
    """Return the graph with one import more, between modules that there are."""
    assert {importer, imported} <= graph.modules
    changed = copy.deepcopy(graph)
    changed.add_import(importer=importer, imported=imported)
    return changed


def test_what_is_there_keeps_every_contract(graph: grimp.ImportGraph) -> None:
    assert refused(graph) == set()


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        ("probe_core.model", "probe_core.machine", ROOMS),
        ("probe_core.readiness", "probe_core.pipeline", ROOMS),
        ("probe_core.pipeline", "probe_core.cli", ROOMS),
        ("probe_core.sysfs", "probe_core.registry", ROOMS),
        ("probe_core.visibility", "probe_core.resolve", ROOMS),
        ("probe_chipdb.chip", "probe_chipdb.database", CIRCLES),
        ("probe_mali.find", "probe_mali.prober", CIRCLES),
        ("probe_core.resolve", "probe_nvidia", DIRECTION),
        ("probe_core.cli", "probe_cluster", DIRECTION),
        ("probe_chipdb", "probe_core.model", DIRECTION),
        ("probe_chipdb.tools", "probe_wheels", DIRECTION),
        ("probe_nvidia", "probe_amd", DIRECTION),
        ("probe_nvidia", "probe_export", "who imports export"),
        ("probe_cluster", "probe_exo", DIRECTION),
        ("probe_export", "probe_watch", DIRECTION),
        ("probe_intel", "probe_core.model", PROBERS),
        ("probe_intel", "probe_core.isolation", PROBERS),
        ("probe_intel", "probe_core.guard", PROBERS),
        ("probe_intel", "probe_core", PROBERS),
        ("probe_report", "probe_core.pipeline", COMMANDS),
        ("probe_watch", "probe_core.isolation", COMMANDS),
        ("probe_watch", "probe_chipdb", "who imports chipdb"),
        ("probe_core.model", "probe_chipdb", "who imports chipdb"),
        ("probe_report", "probe_cluster", "who imports cluster"),
        ("probe_exo", "probe_export", "who imports export"),
        ("probe_exo", "probe_wheels", DIRECTION),
    ],
)
def test_an_import_that_is_not_allowed_is_refused(
    graph: grimp.ImportGraph, importer: str, imported: str, contract: str
) -> None:
    changed = with_import(graph, importer, imported)
    assert contract in refused(changed)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("probe_intel", "probe_core.api"),
        ("probe_intel", "probe_core.sysfs"),
        ("probe_intel", "probe_core.testing"),
        ("probe_report", "probe_core"),
        ("probe_report", "probe_core.commands"),
        ("probe_exo", "probe_cluster"),
    ],
)
def test_what_authors_are_promised_may_be_imported(
    graph: grimp.ImportGraph, importer: str, imported: str
) -> None:
    changed = with_import(graph, importer, imported)
    assert refused(changed) == set()


def test_a_new_room_needs_a_place(graph: grimp.ImportGraph) -> None:
    changed = copy.deepcopy(graph)
    changed.add_module("probe_core.attic")
    assert refused(changed) == {ROOMS}


def options_of(name: str) -> dict[str, list[str]]:
    return next(options for options in CONTRACTS if options["name"] == name)


def test_every_distribution_stands_in_the_contracts() -> None:
    sources = [ROOT / "probe_core", *ROOT.glob("chipdb/src/*"), *ROOT.glob("plugins/*/src/*")]
    packages = {path.name for path in sources if (path / "__init__.py").exists()}
    assert set(SESSION["root_packages"]) == packages
    words = " ".join(options_of(DIRECTION)["layers"]).replace("|", " ").split()
    assert set(words) == packages


def test_every_plugin_is_held_to_what_its_kind_may_import() -> None:
    probers, commands = set(), set()
    for path in ROOT.glob("plugins/*/pyproject.toml"):
        groups = tomllib.loads(path.read_text())["project"].get("entry-points", {})
        package = next(path.parent.glob("src/*/__init__.py")).parent.name
        (probers if "probe_core.probers.v1" in groups else commands).add(package)
    assert set(options_of(PROBERS)["source_modules"]) == probers
    assert set(options_of(COMMANDS)["source_modules"]) == commands
    manifests = {path.parent.name for path in ROOT.glob("plugins/*/src/*/prober.json")}
    assert manifests == probers
