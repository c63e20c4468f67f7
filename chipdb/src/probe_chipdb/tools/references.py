"""Checks what entries say of each other: sources, architectures, shared names and ids."""

from collections.abc import Iterable, Iterator
from typing import Any

from probe_chipdb.database import Database
from probe_chipdb.entry.judge import Data
from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.rows import chip_keys
from probe_chipdb.exclusions import exclusion
from probe_chipdb.spelling import is_generic, normalise


def problems(data: Data, db: Database) -> Iterator[Problem]:
    """Unknown sources and architectures, and names that would mislead."""
    for id_, chip in data.chips.items():
        file, shown = data.where[f"chip:{id_}"], f"chip {id_!r}"
        yield from _sources(db, file, shown, chip)
        if chip.get("arch") and db.arch(str(chip["arch"])) is None:
            yield Problem(
                file, shown, "arch", f"{chip['arch']!r} is unknown", "name one of data/arch"
            )
        yield from _names(db, file, shown, chip)
    for name, arch in data.archs.items():
        yield from _sources(db, data.where[f"arch:{name}"], f"[{name}]", arch)
        yield from _rates(data.where[f"arch:{name}"], f"[{name}]", arch)


def _sources(db: Database, file: str, shown: str, entry: dict[str, Any]) -> Iterator[Problem]:
    inner = [item["source"] for key in ("published", "override") for item in entry.get(key, ())]
    for key in dict.fromkeys([*entry.get("source", ()), *inner]):
        if db.source(key) is None:
            yield Problem(file, shown, "source", f"{key!r} is unknown", "add it to data/sources")
    if not entry.get("source"):
        yield Problem(file, shown, "source", "is missing", "name a source here or in [family]")


def _rates(file: str, shown: str, arch: dict[str, Any]) -> Iterator[Problem]:
    rates: dict[str, float] = arch.get("rates", {})
    for key in arch.get("sparse", {}).get("keys", ()):
        if key not in rates:
            yield Problem(
                file, shown, "sparse", f"{key!r} is no rate of it", "name one of its rates"
            )
        elif ".matrix." not in key:
            yield Problem(
                file, shown, "sparse", f"{key!r} is a vector path", "only matrix paths are sparse"
            )


def _names(db: Database, file: str, shown: str, chip: dict[str, Any]) -> Iterator[Problem]:
    for name in (chip["name"], *chip.get("aliases", ())):
        key = normalise(name)
        if why := exclusion(name, None):
            yield Problem(file, shown, "aliases", f"{name!r} can never match: {why}", "remove it")
        elif is_generic(key) and len(db.ids(f"n:{key}")) == 1:
            yield Problem(
                file,
                shown,
                "aliases",
                f"{name!r} names no product, yet only this chip has it",
                "remove it, or give it to every chip that it may mean",
            )
    if why := exclusion(None, next(iter(chip.get("pci", ())), None)):
        yield Problem(file, shown, "pci", why, "remove the chip")


def indistinct(chips: Iterable[dict[str, Any]]) -> dict[tuple[str, ...], list[str]]:
    """Chips that nothing live can tell apart: same keys, units and memory."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for chip in chips:
        keys = sorted(chip_keys(chip))
        live = (str(chip.get("units")), str(chip.get("memory", {}).get("gib")))
        groups.setdefault((*keys, *live), []).append(str(chip["id"]))
    return {key: ids for key, ids in groups.items() if len(ids) > 1}
