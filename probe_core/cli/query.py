"""One query of `probe chip`: which key it is by its form, and chipdb's answer as plain data."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_chipdb import Arch, Chip, CpuMatch, Database

__all__ = ["ask", "parse_size"]

_NEAR = 5
"""Close matches shown: what fits on a line."""


def parse_size(size: str) -> int:
    """Return bytes of ``24GiB``, ``24G``, ``24GB`` or ``24576MiB``; a bare number is bytes.

    ``G`` is binary and ``GB`` decimal. Raises `CommandError`.
    """
    from probe_core import sizes
    from probe_core.commands import CommandError

    try:
        return sizes.parse_size(size)
    except ValueError:
        raise CommandError(
            f"{size!r} is no memory size; write 24GiB, 24576MiB or 25769803776"
        ) from None


def ask(
    database: Database, query: str, kind: str | None, memory: int | None, units: int | None
) -> dict[str, Any]:
    """Return ``{query, match, by, confidence, candidates, conflicts, near, reason}``.

    Where it is one of several, ``shared_peaks`` are the figures that hold for each of them. A share
    of a card (MIG, vGPU) has its ``profile``, and the ``parents`` that it may be of; ``virtual`` is
    true for a virtual machine's view of the host's chip.
    """
    query = query.strip()
    answer: dict[str, Any] = {"query": query, "match": None, "by": None, "confidence": None}
    answer |= {"candidates": [], "conflicts": [], "near": [], "reason": None}
    answer |= {"shared_peaks": [], "parents": [], "profile": None, "virtual": False}
    if not query:
        return answer | {"reason": "the query is empty"}
    name_kind = kind or _kind_of(query)
    if name_kind == "cpuinfo":
        return answer | _cpu(database, query)
    if kind is None and (chip := database.chip(query.casefold())) is not None:
        return answer | {"by": "id", "confidence": "high", "match": _chip(chip, units)}
    match = database.match(name=query, name_kind=name_kind, memory=memory, units=units)
    answer["by"], answer["confidence"] = match.by, match.confidence
    answer["candidates"] = [chip.id for chip in match.candidates]
    answer["conflicts"] = list(match.conflicts)
    # An older chipdb does not name the card of a share.
    answer["parents"] = [chip.id for chip in getattr(match, "parents", ())]
    answer["profile"] = getattr(match, "profile", None)
    answer["virtual"] = getattr(match, "virtual", False)
    if match.chip is not None:
        return answer | {"match": _chip(match.chip, match.units)}
    answer["reason"] = match.reason or "chipdb does not have it"
    if answer["parents"] or answer["profile"]:
        return answer
    if match.candidates:
        return answer | {"shared_peaks": [peak.as_json() for peak in match.shared_peaks()]}
    if kind is None and (core := _cpu(database, query))["match"]:
        return answer | {"reason": None} | core
    return answer | {"near": [chip.id for chip in database.near(query, _NEAR)]}


def _kind_of(query: str) -> str:
    """Return the kind of key that a query is by its form; a name when nothing tells.

    PCI ids need no kind: chipdb reads them in whatever text they stand.
    """
    if query.startswith(("compatible", "of:N", "OF_COMPATIBLE")) or "\0" in query:
        return "dt"
    return "dt" if "," in query and " " not in query else "name"


def _cpu(database: Database, query: str) -> dict[str, Any]:
    """Return the answer for a processor's brand string: its microarchitecture, if it says it."""
    match = database.cpu(name=query)
    if match.arch is None:
        return {"match": None, "reason": match.reason}
    return {"by": match.by, "confidence": "medium", "match": _core(match, match.arch)}


def _core(match: CpuMatch, arch: Arch) -> dict[str, Any]:
    return {
        **dict.fromkeys(("year", "units", "cores", "power", "bandwidth")),
        "id": arch.id,
        "name": match.uarch or arch.name,
        "vendor": arch.vendor,
        "kind": "cpu",
        "arch": arch.family,
        "unit": arch.unit,
        "clock": {},
        "memory": {"bytes": None, "type": None},
        "sources": list(arch.sources),
        "note": "operations per clock and core: " + _rates(match.rates),
        "peaks": [],
    }


def _rates(rates: Mapping[str, float]) -> str:
    """Return ``fp64 vector 16, fp32 vector 32`` for a core's rates by path."""
    paths = ((" ".join(path.split(".")[:2]), rate) for path, rate in rates.items())
    return ", ".join(f"{path} {rate:g}" for path, rate in paths) or "unknown"


def _chip(chip: Chip, units: int | None) -> dict[str, Any]:
    clock, memory = chip.clock, chip.memory
    return {
        "id": chip.id,
        "name": chip.name,
        "vendor": chip.vendor,
        "kind": chip.kind,
        "arch": chip.family,
        "codename": chip.codename,
        "year": chip.year,
        "units": units or chip.units,
        "unit": chip.unit,
        "cores": chip.cores,
        "clock": {
            "base": clock.base,
            "boost": clock.boost,
            "matrix": clock.matrix,
            "boost_low": clock.boost_low,
            "game": clock.game,
        },
        "memory": {"bytes": memory.bytes, "type": memory.type, "bus": memory.bus},
        "bandwidth": chip.bandwidth,
        "power": chip.power,
        "boards": chip.boards,
        "sources": list(chip.sources),
        "confidence": chip.confidence,
        "note": chip.note,
        "peaks": [peak.as_json() for peak in chip.peaks(units=units)],
    }
