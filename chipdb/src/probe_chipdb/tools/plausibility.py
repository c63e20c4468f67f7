"""Checks values that are possible one by one but not together: the traces of a slip."""

import math
import re

from probe_chipdb.entry.problem import Problem
from probe_chipdb.tools.references import indistinct
from probe_chipdb.unknown import RANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.entry.types import ChipEntry, ClockEntry, MemoryEntry
    from probe_chipdb.entry.validate import Data

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it

# fp32 TFLOPS per watt of board power. The data's chips lie between 0.0043 (GeForce GTX 465) and
# 0.47 (Biren BR100); widened, because a new chip is not wrong for being the best.
_FP32_PER_WATT = (0.001, 0.8)
# Data rate per pin in Gb/s: the slowest and fastest that was ever sold, a little widened.
_PIN_RATE = {"GDDR": (1.5, 40.0), "HBM": (0.9, 12.0), "LPDDR": (0.3, 11.0), "DDR": (0.3, 9.0)}

# Words of a note that deny the one clock beside it, and names of parts that a laptop's maker tunes.
_DIFFERS = re.compile(
    r"clock (?:depends|differs|varies)|game clock|Super mode|power mode|other .* models run at"
    r"|rates the models differently|(?:runs|launched).* at .*MHz|MHz as launched"
    r"|clock of (?:the )?(?:Ryzen|Core|Snapdragon)|may be rated|another SoC may set",
    re.IGNORECASE,
)
_LAPTOP = re.compile(r"Laptop GPU|Max-Q Design|\bMobile\b|\bRX \d{4}[MS]\b|\bArc A\d{3}M\b")


def problems(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Clocks out of order, bandwidth that the bus cannot carry, chips that look the same."""
    for id_, chip in data.chips.items():
        for fault in _faults(chip, db.chip(id_)):
            yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", *fault)
    for first, *twins in indistinct(data.chips.values()):
        fault = (
            "id",
            f"nothing distinguishes it from {', '.join(twins)}",
            "add units, memory or keys, or merge them",
        )
        yield Problem(data.where[f"chip:{first}"], f"chip {first!r}", *fault, level="warning")


def _faults(entry: "ChipEntry", chip: "Chip | None") -> "Iterator[Fault]":
    yield from _clocks(entry.get("clock", {}))
    yield from _range(entry)
    yield from _memory(entry.get("memory", {}))
    yield from _overrides(entry)
    yield from _efficiency(entry, chip)


def _clocks(clock: "ClockEntry") -> "Iterator[Fault]":
    base, boost, low = clock.get("base"), clock.get("boost"), clock.get("boost_low")
    if base and boost and base > boost:
        yield "clock", f"base {base:g} is above boost {boost:g}", "swap them"
    if low and boost and low > boost:
        yield "clock", f"boost_low {low:g} is above boost {boost:g}", "swap them"
    if low and not boost:
        yield "clock", "boost_low without boost", "give the highest boost too"


def _range(entry: "ChipEntry") -> "Iterator[Fault]":
    """One figure where the clock is not one: the name or the note tells."""
    clock = entry.get("clock", {})
    if clock.get("boost_low") and not clock.get("set_by"):
        yield "clock", "boost_low without set_by", f"name what decides: {', '.join(RANGES)}"
    yield from _units(entry)
    if entry.get("power_low", 0) > entry.get("power", math.inf):
        yield "power", "power_low is above power", "swap them"
    ranged = clock.get("set_by") or clock.get("game")
    if entry.get("confidence", "vendor") != "vendor" or ranged or not clock.get("boost"):
        return
    if _LAPTOP.search(entry["name"]):
        fix = 'write boost_low and set_by = "laptop", or the confidence of the one clock'
        yield "clock", "a laptop part has one vendor clock, but laptops differ", fix
    elif _DIFFERS.search(entry.get("note", "")):
        fix = "write boost_low and set_by, or the confidence of the one clock"
        yield "clock", "one vendor clock, but the note says that it differs", fix


def _units(entry: "ChipEntry") -> "Iterator[Fault]":
    counts = entry.get("counts", [])
    if counts and "units" in entry:
        yield "counts", "beside units", "give one of them"
    for text in counts:
        first, _, last = text.partition("-")
        if last and int(first) >= int(last):
            yield "counts", f"{text} does not go up", "write the lower one first"


def _memory(memory: "MemoryEntry") -> "Iterator[Fault]":
    bus, gbs, type_ = memory.get("bus"), memory.get("gbs"), memory.get("type", "")
    family = next((name for name in _PIN_RATE if name in type_), None)
    if not (bus and gbs and family):
        return
    low, high = _PIN_RATE["LPDDR" if "LPDDR" in type_ else family]
    rate = gbs * 8 / bus
    if not low <= rate <= high:
        fault = f"{gbs:g} GB/s over {bus} bits is {rate:.3g} Gb/s per pin, not possible for {type_}"
        yield "memory", fault, f"{type_} carries {low:g} to {high:g}: correct gbs or bus"


def _efficiency(entry: "ChipEntry", chip: "Chip | None") -> "Iterator[Fault]":
    """A wrong unit count, clock or power shows in the fp32 TFLOPS per watt of board power."""
    power = entry.get("power")
    peak = chip.peak("fp32", path="vector") if chip and power else None
    if chip is None or peak is None or power is None:
        return
    ratio = peak.tflops * chip.boards / power
    low, high = _FP32_PER_WATT
    if not low <= ratio <= high:
        fault = f"{peak.tflops:.4g} fp32 TFLOPS at {power:g} W is {ratio:.3g} per watt"
        yield "power", fault, f"{low:g} to {high:g} was ever sold: correct units, clock or power"


def _overrides(chip: "ChipEntry") -> "Iterator[Fault]":
    for item in chip.get("override", ()):
        if ("tflops" in item) == bool(item.get("absent")):
            fault = f"{item['rate']} needs either tflops or absent = true"
            yield "override", fault, "give one of them"
        if item.get("low", 0) > item.get("tflops", math.inf):
            yield "override", f"low of {item['rate']} is above tflops", "swap them"
