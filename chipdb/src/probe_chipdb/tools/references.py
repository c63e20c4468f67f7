"""Checks what entries say of each other: sources, architectures, shared names and ids."""

from probe_chipdb.entry.pack import chip_keys
from probe_chipdb.entry.problem import Problem
from probe_chipdb.exclusions import exclusion
from probe_chipdb.spelling import is_generic, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_chipdb.database import Database
    from probe_chipdb.entry.types import ArchEntry, ChipEntry
    from probe_chipdb.entry.validate import Data

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it


def problems(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Unknown sources and architectures, and names that would mislead."""
    for id_, chip in data.chips.items():
        figures = (*chip.get("published", ()), *chip.get("override", ()))
        sources = _sources(db, chip.get("source", []), [figure["source"] for figure in figures])
        for fault in (*sources, *_architecture(db, chip), *_names(db, chip)):
            yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", *fault)
    for name, arch in data.archs.items():
        for fault in (*_sources(db, arch.get("source", []), []), *_sparse_rates(arch)):
            yield Problem(data.where[f"arch:{name}"], f"[{name}]", *fault)


def _sources(db: "Database", own: list[str], of_figures: list[str]) -> "Iterator[Fault]":
    for key in dict.fromkeys([*own, *of_figures]):
        if db.source(key) is None:
            yield "source", f"{key!r} is unknown", "add it to data/sources"
    if not own:
        yield "source", "is missing", "name a source here or in [family]"


def _architecture(db: "Database", chip: "ChipEntry") -> "Iterator[Fault]":
    arch = chip.get("arch")
    if arch and db.arch(arch) is None:
        yield "arch", f"{arch!r} is unknown", "name one of data/arch"


def _sparse_rates(arch: "ArchEntry") -> "Iterator[Fault]":
    sparse = arch.get("sparse")
    for key in sparse["keys"] if sparse else ():
        if key not in arch.get("rates", {}):
            yield "sparse", f"{key!r} is no rate of it", "name one of its rates"
        elif ".matrix." not in key:
            yield "sparse", f"{key!r} is a vector path", "only matrix paths are sparse"


def _names(db: "Database", chip: "ChipEntry") -> "Iterator[Fault]":
    for name in (chip["name"], *chip.get("aliases", ())):
        key = normalise(name)
        if reason := exclusion(name, None):
            yield "aliases", f"{name!r} can never match: {reason}", "remove it"
        elif is_generic(key) and len(db.ids(f"n:{key}")) == 1:
            fault = f"{name!r} names no product, yet only this chip has it"
            yield "aliases", fault, "remove it, or give it to every chip that it may mean"
    if reason := exclusion(None, next(iter(chip.get("pci", ())), None)):
        yield "pci", reason, "remove the chip"


def indistinct(chips: "Iterable[ChipEntry]") -> "list[list[str]]":
    """The ids of chips that nothing live can distinguish: same keys, units and memory."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for chip in chips:
        live = (str(chip.get("units")), str(chip.get("memory", {}).get("gib")))
        groups.setdefault((*sorted(chip_keys(chip)), *live), []).append(chip["id"])
    return [ids for ids in groups.values() if len(ids) > 1]
