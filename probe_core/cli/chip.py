"""One query of `probe chip`: which key it is by its form, and chipdb's answer as plain data."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.commands.options import Argument, Option
from probe_core.commands.tables import grid
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_chipdb import Arch, Chip, CpuMatch, Database
    from probe_core.commands import Context

    Answer = Mapping[str, Any]


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
    name_kind = kind or _kind_of(query)
    if name_kind == "cpuinfo":
        return answer | _cpu(database, query)
    if kind is None and (chip := database.chip(query.casefold())) is not None:
        return answer | {"by": "id", "confidence": "high", "match": _chip(chip, units, database)}
    match = database.match(name=query, name_kind=name_kind, memory=memory, units=units)
    answer["by"], answer["confidence"] = match.by, match.confidence
    answer["candidates"] = [chip.id for chip in match.candidates]
    answer["conflicts"] = list(match.conflicts)
    # An older chipdb does not name the card of a share.
    answer["parents"] = [chip.id for chip in getattr(match, "parents", ())]
    answer["profile"] = getattr(match, "profile", None)
    answer["virtual"] = getattr(match, "virtual", False)
    if match.chip is not None:
        return answer | {"match": _chip(match.chip, match.units, database)}
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
        **dict.fromkeys(("power_limits", "interconnect", "sram", "ecc")),
        "power_limits_at": {},
        "sustained": [],
        "reads": [],
        "formats": [],
        "sources": list(arch.sources),
        "note": "operations per clock and core: " + _rates(match.rates),
        "peaks": [],
    }


def _rates(rates: Mapping[str, float]) -> str:
    """Return ``fp64 vector 16, fp32 vector 32`` for a core's rates by path."""
    paths = ((" ".join(path.split(".")[:2]), rate) for path, rate in rates.items())
    return ", ".join(f"{path} {rate:g}" for path, rate in paths) or "unknown"


def _reads(chip: Chip, database: Database) -> list[dict[str, str | None]]:
    """Return what was read of each figure: the words, their place, the document and the date."""
    rows = []
    for rate, sparsity, source, place, quote in chip.reads:
        document = database.source(source) or {}
        rows.append(
            {
                "rate": rate or None,
                "sparsity": sparsity or None,
                "source": source,
                "url": document.get("url"),
                "at": place,
                "quote": quote,
                "date": document.get("date"),
            }
        )
    return rows


def _chip(chip: Chip, units: int | None, database: Database) -> dict[str, Any]:
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
        "power_limits": list(chip.power_limits) if chip.power_limits else None,
        "power_limits_at": chip.power_limits_at,
        "interconnect": list(chip.interconnect) if chip.interconnect else None,
        "sram": chip.sram,
        "ecc": chip.ecc,
        "sustained": [measured.as_json() for measured in chip.sustained],
        "reads": _reads(chip, database),
        "formats": _formats(chip),
        "note": chip.note,
        "peaks": [peak.as_json() for peak in chip.peaks(units=units)],
    }


def _formats(chip: Chip) -> list[dict[str, str]]:
    """Return the cells of the number formats; none of an older chipdb, or of an unbuilt table."""
    try:
        return [cell.as_json() for cell in getattr(chip, "formats", tuple)()]
    except OSError:
        return []


def formats_of(chip_id: str) -> list[dict[str, str]]:
    """Return the cells of a chip by its id; none where chipdb or the chip is not there."""
    from probe_core.resolve import open_chipdb

    database, _ = open_chipdb(())
    chip = database.chip(chip_id) if database is not None else None
    return _formats(chip) if chip is not None else []


def format_lines(cells: list[dict[str, str]]) -> Iterator[str]:
    """Yield what the hardware computes in, and what each program can use, in a line each.

    An unknown format is in no line; `probe chip --json` has the reason.
    """
    for by in dict.fromkeys(cell["by"] for cell in cells):
        own = [cell for cell in cells if cell["by"] == by and "state" in cell]
        usable = _formats_by_release(cell for cell in own if cell["state"] != "none")
        absent = _formats_by_release(cell for cell in own if cell["state"] == "none")
        parts = [usable, f"not {absent}" if absent else ""]
        if own:
            yield f"formats, {by}: " + "; ".join(filter(None, parts))


def _formats_by_release(cells: Iterable[dict[str, str]]) -> str:
    """Return ``mxfp8, nvfp4 emulated (since 0.30.3), mxfp4 emulated (since 0.29.0)``."""
    groups: dict[str, list[str]] = {}
    for cell in cells:
        release = f" (since {cell['since']})" if "since" in cell else ""
        release = release or (f" (in {cell['seen']})" if "seen" in cell else "")
        state = " emulated" if cell["state"] == "emulated" else ""
        groups.setdefault(state + release, []).append(cell["format"])
    return ", ".join(", ".join(names) + suffix for suffix, names in groups.items())


# `probe chip QUERY…`: what chipdb knows of a chip, and what is only near when none matches.

HELP = "Look chips up by a name or id that a tool prints. Exact matches only: nothing is guessed."
_LEAVING = ("CONFIDENCE", "CLOCK")
_SHOWN = 16
"""Candidates in the table: "Intel Graphics" alone is the name of 69 chips."""
_DETAILS = ("YEAR", "POWER", "BANDWIDTH")
KINDS = ("nvml", "amdgpu", "pci", "lspci", "cpuinfo", "dt", "vulkan", "metal", "wmi", "name")
_ADDING = "A TOML file adds a chip, with `--chipdb FILE`; docs/how-to/ship-chips.md has its format."
EXAMPLES = (
    ("probe chip 10de:2684", "by PCI id"),
    ('probe chip "NVIDIA A100-SXM4-80GB"', "by the name that a driver prints"),
    ('probe chip "Apple M4 Max" --units 40', "one name, two chips: tell the GPU cores"),
)


ARGUMENTS = (
    Argument("query", "a name, a PCI id (10de:2684), a compatible …", count="+"),
    Option("kind", "KIND", "what printed the query (default: by its form)", choices=KINDS),
    Option("memory", "SIZE", "choose by memory (24GiB)"),
    Option("units", "N", "choose by number of SMs, CUs or cores"),
    Option("chipdb", "FILE", "also read this TOML file of chips"),
    Option("json", "", "print one JSON list, one per query"),
    Option("strict", "", "exit with 1 when a query is unknown"),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print what is known of each query."""
    from probe_core.commands.context import CommandError
    from probe_core.resolve import open_chipdb

    if not all(query.strip() for query in args.query):
        raise CommandError("a query is empty; give the name or id of a chip")
    memory = parse_size(args.memory) if args.memory else None
    units = _units(args.units)
    file = context.config().chipdb
    database, problems = open_chipdb([file] if file else ())
    if database is None:
        raise CommandError(f"{problems[0]['why']}: {problems[0]['fix']}", 1)
    if problems and args.chipdb is not None:
        unread = next(iter(database.problems), f"{args.chipdb}: {problems[0]['why']}")
        raise CommandError(f"--chipdb {unread}")
    for problem in database.problems:
        context.err(f"probe: {problem}")
    answers = [ask(database, query, args.kind, memory, units) for query in args.query]
    if args.json:
        context.json(answers)
    else:
        for answer in answers:
            for line in _lines(answer, database, context):
                context.out(line)
    return 1 if args.strict and any(answer["match"] is None for answer in answers) else 0


def _units(value: str | None) -> int | None:
    from probe_core.commands import CommandError

    if value is None:
        return None
    # A million units: fifty times the largest chip's cores. Python refuses thousands of digits.
    if not value.isdecimal() or len(value) > 7 or not 1 <= int(value) <= 1_000_000:
        typed = clean_text(value, 40)
        raise CommandError(f"--units {typed}: not a whole number from 1 to 1000000")
    return int(value)


def _lines(answer: Answer, database: Database, context: Context) -> Iterator[str]:
    match, width = answer["match"], context.width
    if match is None:
        yield from text.folded(f"{clean_text(answer['query'])}: {answer['reason']}", width)
        if answer["parents"]:
            profile = f", profile {answer['profile']}" if answer["profile"] else ""
            yield from _indented("a share of: " + " or ".join(answer["parents"]) + profile, width)
        elif answer["candidates"]:
            yield from _candidates(answer["candidates"], database, width)
            if answer["shared_peaks"]:
                yield "  whichever it is:"
                yield from _peaks(answer["shared_peaks"], context)
        else:
            if answer["near"]:
                yield from _indented("close matches: " + ", ".join(answer["near"]), width)
            yield from _indented(_ADDING, width)
        yield ""
        return
    first, *others = text.listed([match["name"], match["id"]], width, "", "  ", separator="  ")
    name = min(len(first), len(match["name"]))
    yield text.paint(first[:name], "bold", context.colour) + first[name:]
    yield from others
    yield from _indented(f"matched by {answer['by']} ({answer['confidence']} confidence)", width)
    if answer["virtual"]:
        yield "  virtual: the host's chip, as a virtual machine sees it"
    for sentence in answer["conflicts"]:
        yield from _indented(f"conflict: {sentence}", width)
    for facts in _facts(match):
        shown = [context.encodable(str(fact)) for fact in facts if fact]
        yield from text.listed(shown, width, "  ")
    yield from _peaks(match["peaks"], context)
    for line in format_lines(match["formats"]):
        yield from _indented(line, width)
    yield ""


def _candidates(ids: Sequence[str], database: Database, width: int) -> list[str]:
    """Return a table of what tells the candidates apart, for a person who has the card."""
    rows: list[Sequence[str]] = [("CHIP", "UNITS", "MEMORY", "BANDWIDTH", "POWER", "YEAR")]
    for chip in filter(None, map(database.chip, ids[:_SHOWN])):
        facts = (
            counted(chip.units, chip.unit or "unit") if chip.units else "",
            text.size(chip.memory.bytes) if chip.memory.bytes else "",
            text.bandwidth(chip.bandwidth) if chip.bandwidth else "",
            f"{chip.power:g} W" if chip.power else "",
            str(chip.year or ""),
        )
        rows.append((chip.id, *(fact or "–" for fact in facts)))
    more = [f"  and {len(ids) - _SHOWN} more"] if len(ids) > _SHOWN else []
    right = ("UNITS", "MEMORY", "BANDWIDTH", "POWER")
    return [*grid(rows, width, right=right, leaving=_DETAILS, indent="  "), *more]


def _indented(sentence: str, width: int) -> list[str]:
    return text.folded(sentence, width, "  ", " " * 6)


def _facts(match: Mapping[str, Any]) -> Iterator[list[object]]:
    """Yield the facts of each line."""
    yield [match["vendor"], match["kind"], match["arch"], match["year"]]
    counts = [counted(match["units"], match["unit"] or "unit") if match["units"] else None]
    counts.append(counted(match["cores"], "core") if match["cores"] else None)
    counts += [f"{name} {mhz:g} MHz" for name, mhz in match["clock"].items() if mhz]
    counts.append(f"{match['power']:g} W" if match["power"] else None)
    memory = match["memory"]
    counts.append(text.size(memory["bytes"]) if memory["bytes"] else None)
    counts.append(memory["type"])
    counts.append(text.bandwidth(match["bandwidth"]) if match["bandwidth"] else None)
    yield [*counts]
    yield [*_beside(match)]
    for row in match["sustained"]:
        yield [_measured(row, match["peaks"])]
    if match["sources"]:
        yield ["sources: " + ", ".join(match["sources"])]
    for url, date in dict.fromkeys((read["url"], read["date"]) for read in match["reads"]):
        yield [f"read on {date}: {url}"]
    if match["note"]:
        yield [f"note: {match['note']}"]


def _beside(match: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is known of a chip beside its peaks and its memory."""
    if match["power_limits"]:
        least, most = match["power_limits"]
        seen = match["power_limits_at"]
        board = f" on board {seen['board']}" if "board" in seen else ""
        yield f"power limit {least:g} to {most:g} W{board}"
    if match["interconnect"]:
        kind, gbs = match["interconnect"]
        yield f"{kind} {gbs:g} GB/s both ways"
    if match["sram"]:
        yield f"{match['sram']:g} MiB on the chip"
    if match["ecc"]:
        yield f"ECC takes {match['ecc']:.1%} of the memory"


def _measured(row: Mapping[str, Any], peaks: list[dict[str, Any]]) -> str:
    """Return a measurement beside the peak of its kind."""
    kind = row["rate"].split(".")
    peak = next(
        (
            peak["tflops"]
            for peak in peaks
            if [peak["dtype"], peak["path"], peak["accumulate"]] == kind
            and peak["sparsity"] == "dense"
        ),
        None,
    )
    low = f"{row['low']:g} to " if row.get("low") else ""
    share = f", {row['tflops'] / peak:.0%} of the peak" if peak else ""
    watts = f" at {row['watts']:g} W" if row.get("watts") else ""
    runs = f", {counted(row['runs'], 'run')}" if row.get("runs") else ""
    software = f", {row['software']}" if row.get("software") else ""
    figure = f"{kind[0]} {low}{row['tflops']:g} TFLOPS{watts}{share}{runs}{software}"
    return f"measured: {figure} [{row['source']}]"


def _confidence(peak: Mapping[str, Any]) -> str:
    """Return ``derived (vendor)`` for a derived figure that the vendor's own, as read, confirms."""
    by = peak.get("confirmed_by")
    return f"{peak['confidence']} ({by})" if by else str(peak["confidence"])


def _peaks(peaks: list[dict[str, Any]], context: Context) -> list[str]:
    if not peaks:
        sentence = "no theoretical peaks: units, clock or rates of this chip are unknown"
        return _indented(sentence, context.width)
    rows = [("DTYPE", "PATH", "ACCUMULATE", "SPARSITY", "TFLOPS", "CLOCK", "CONFIDENCE")]
    for peak in peaks:
        low = f"{peak['low']:.4g}–" if peak.get("low") else ""
        dtype = peak["dtype"] + (f" ({peak['variant']})" if peak.get("variant") else "")
        rows.append(
            (
                dtype,
                peak["path"],
                peak["accumulate"],
                peak["sparsity"],
                f"{low}{peak['tflops']:.4g}",
                peak["clock"],
                _confidence(peak),
            )
        )
    conditions = dict.fromkeys(peak["condition"] for peak in peaks if peak.get("condition"))
    ranges = [line for c in conditions for line in _indented(f"range: {c}", context.width)]
    return [*grid(rows, context.width, right=("TFLOPS",), leaving=_LEAVING, indent="  "), *ranges]
