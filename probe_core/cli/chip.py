"""`probe chip QUERY…`: what chipdb knows of a chip, and what is only near when none matches."""

from __future__ import annotations

from probe_core.cli.query import ask, parse_size
from probe_core.commands import text
from probe_core.commands.tables import grid
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.commands import Context

    Answer = Mapping[str, Any]

HELP = "Look chips up by a name or id that a tool prints. Exact matches only: nothing is guessed."
_LEAVING = ("CONFIDENCE", "CLOCK")
KINDS = ("nvml", "amdgpu", "pci", "lspci", "cpuinfo", "dt", "vulkan", "metal", "wmi", "name")
_ADDING = "A TOML file adds a chip, with `--chipdb FILE`; docs/how-to/ship-chips.md has its format."
EXAMPLES = (
    ("probe chip 10de:2684", "by PCI id"),
    ('probe chip "NVIDIA A100-SXM4-80GB"', "by the name that a driver prints"),
    ('probe chip "Apple M4 Max" --units 40', "one name, two chips: tell the GPU cores"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe chip`."""
    parser.add_argument("query", nargs="+", help="a name, a PCI id (10de:2684), a compatible …")
    parser.add_argument(
        "--kind", choices=KINDS, help="what printed the query (default: by its form)"
    )
    parser.add_argument("--memory", metavar="SIZE", help="choose by memory (24GiB)")
    parser.add_argument("--units", metavar="N", help="choose by number of SMs, CUs or cores")
    parser.add_argument("--chipdb", metavar="FILE", help="also read this TOML file of chips")
    parser.add_argument("--json", action="store_true", help="print one JSON list, one per query")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a query is unknown")


def run(args: argparse.Namespace, context: Context) -> int:
    """Print what is known of each query."""
    from probe_core.commands.context import CommandError
    from probe_core.commands.typed import refuse_missing
    from probe_core.resolve import open_chipdb

    memory = parse_size(args.memory) if args.memory else None
    units = _units(args.units)
    if args.chipdb is not None:
        refuse_missing("--chipdb", args.chipdb)
    file = args.chipdb or context.environ.get("PROBE_CHIPDB")
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
            for line in _lines(answer, context):
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


def _lines(answer: Answer, context: Context) -> Iterator[str]:
    match, width = answer["match"], context.width
    if match is None:
        yield from text.folded(f"{clean_text(answer['query'])}: {answer['reason']}", width)
        if answer["parents"]:
            profile = f", profile {answer['profile']}" if answer["profile"] else ""
            yield from _indented("a share of: " + " or ".join(answer["parents"]) + profile, width)
        elif answer["candidates"]:
            yield from _indented("ambiguous: " + " or ".join(answer["candidates"]), width)
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
    yield ""


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
    if match["sources"]:
        yield ["sources: " + ", ".join(match["sources"])]
    if match["note"]:
        yield [f"note: {match['note']}"]


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
                peak["confidence"],
            )
        )
    conditions = dict.fromkeys(peak["condition"] for peak in peaks if peak.get("condition"))
    ranges = [line for c in conditions for line in _indented(f"range: {c}", context.width)]
    return [*grid(rows, context.width, right=("TFLOPS",), leaving=_LEAVING, indent="  "), *ranges]
