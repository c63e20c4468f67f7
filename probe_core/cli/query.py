"""One query of `probe chip`: which key it is by its form, and chipdb's answer as plain data."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_chipdb import Chip, CpuMatch, Database

__all__ = ["ask", "parse_size", "split_pci"]

_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_DECIMAL = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_HEX = frozenset("0123456789abcdef")
_NEAR = 5


def parse_size(size: str) -> int:
    """Return bytes of ``24GiB``, ``24G``, ``24GB`` or ``24576MiB``; a bare number is bytes.

    ``G`` is binary and ``GB`` decimal. Raises `CommandError`.
    """
    from probe_core.cli.context import CommandError

    number = size.strip().lower()
    digits = number.rstrip("kmgtib ")
    unit = number[len(digits) :].strip()
    try:
        value = float(digits)
    except ValueError:
        value = -1.0
    if unit in _DECIMAL:
        value *= _DECIMAL[unit]
    elif (stem := unit.removesuffix("ib")) in _UNITS and unit != "ib":
        value *= 1 << _UNITS[stem]
    else:
        value = -1.0
    if not 0 < value < 1 << 60:
        raise CommandError(f"{size!r} is no memory size; write 24GiB, 24576MiB or 25769803776")
    return int(value)


def ask(
    database: Database, query: str, kind: str | None, memory: int | None, units: int | None
) -> dict[str, Any]:
    """Return ``{query, match, by, confidence, candidates, conflicts, near, reason}``."""
    query = query.strip()
    answer: dict[str, Any] = {"query": query, "match": None, "by": None, "confidence": None}
    answer |= {"candidates": [], "conflicts": [], "near": [], "reason": None}
    if not query:
        return answer | {"reason": "the query is empty"}
    kind = kind or _kind_of(query)
    if kind == "cpuinfo":
        return answer | _cpu(database, query)
    match = database.match(**_keys(query, kind), memory=memory, units=units)
    answer["by"], answer["confidence"] = match.by, match.confidence
    answer["candidates"] = [chip.id for chip in match.candidates]
    answer["conflicts"] = list(match.conflicts)
    if match.chip is not None:
        return answer | {"match": _chip(match.chip, units)}
    answer["reason"] = match.reason or "chipdb does not have it"
    if not match.candidates:
        answer["near"] = [chip.id for chip in database.near(query, _NEAR)]
    return answer


def _kind_of(query: str) -> str:
    """Return the kind of key that a query is by its form; a name when nothing tells."""
    if split_pci(query):
        return "pci"
    return "dt" if "," in query and " " not in query else "name"


def split_pci(query: str) -> dict[str, str] | None:
    """Return the parts of ``10de:2684``, ``10de:2684/1043:889a``, ``1002:744c@c8``; else None."""
    text = query.lower().replace("0x", "")
    text, _, revision = text.partition("@")
    pci, _, subsystem = text.partition("/")
    parts = {"pci": pci}
    if subsystem:
        parts["subsystem"] = subsystem
    for part in parts.values():
        vendor, colon, device = part.partition(":")
        if not colon or not all(len(p) == 4 and _HEX.issuperset(p) for p in (vendor, device)):
            return None
    if revision:
        if len(revision) > 2 or not _HEX.issuperset(revision):
            return None
        parts["revision"] = revision.zfill(2)
    return parts


def _keys(query: str, kind: str) -> dict[str, Any]:
    parts = split_pci(query)
    if kind == "pci" and parts:
        return dict(parts)
    if kind == "dt":
        return {"dt": tuple(query.replace("\\0", " ").replace("\0", " ").split())}
    if kind == "lspci":
        return _lspci(query)
    return {"name": query, "name_kind": kind}


def _lspci(query: str) -> dict[str, Any]:
    """Return the keys in a line of `lspci` or `lspci -nn`: a bracketed id beats the name."""
    keys: dict[str, Any] = {}
    for piece in reversed(query.split("[")[1:]):
        parts = split_pci(piece.partition("]")[0])
        if parts:
            keys |= parts
            break
    head, revision, tail = query.partition("(rev ")
    if revision and keys:
        keys["revision"] = tail.partition(")")[0].strip().zfill(2)
    if keys:
        return keys
    return {"name": head.strip(), "name_kind": "lspci"}


def _cpu(database: Database, query: str) -> dict[str, Any]:
    """Return the answer for a processor's brand string: its microarchitecture, if it says it."""
    found = database.cpu(name=query)
    if found.arch is None:
        return {"reason": found.reason}
    return {"by": found.by, "confidence": "medium", "match": _core(found)}


def _core(found: CpuMatch) -> dict[str, Any]:
    arch = found.arch
    assert arch is not None
    return {
        **dict.fromkeys(("year", "units", "cores", "power", "bandwidth")),
        "id": arch.id,
        "name": found.uarch or arch.name,
        "vendor": arch.vendor,
        "kind": "cpu",
        "arch": arch.family,
        "unit": arch.unit,
        "clock": {},
        "memory": {"bytes": None, "type": None},
        "sources": list(arch.sources),
        "note": f"operations per clock and core: {found.rates}",
        "peaks": [],
    }


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
