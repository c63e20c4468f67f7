"""Values that are possible one by one but not together: the traces of a slip."""

from collections.abc import Iterator
from typing import Any

from probe_chipdb.chip import Chip
from probe_chipdb.database import Database
from probe_chipdb.entry.judge import Data
from probe_chipdb.entry.problem import Problem
from probe_chipdb.tools.references import indistinct

_FP32_PER_WATT = (0.001, 0.8)
# Data rate per pin in Gb/s: the slowest and fastest that was ever sold, a little widened.
_PIN_RATE = {"GDDR": (1.5, 40.0), "HBM": (0.9, 12.0), "LPDDR": (0.3, 11.0), "DDR": (0.3, 9.0)}


def problems(data: Data, db: Database) -> Iterator[Problem]:
    """Clocks out of order, bandwidth that the bus cannot carry, chips that cannot be told apart."""
    for id_, chip in data.chips.items():
        file, shown = data.where[f"chip:{id_}"], f"chip {id_!r}"
        for field, what, fix in [*_clocks(chip.get("clock", {})), *_memory(chip.get("memory", {}))]:
            yield Problem(file, shown, field, what, fix)
        for field, what, fix in [*_overrides(chip), *_efficiency(chip, db.chip(id_))]:
            yield Problem(file, shown, field, what, fix)
    for ids in indistinct(data.chips.values()).values():
        yield Problem(
            data.where[f"chip:{ids[0]}"],
            f"chip {ids[0]!r}",
            "id",
            f"nothing tells it from {', '.join(ids[1:])}",
            "add units, memory or keys, or merge them",
            "warning",
        )


def _clocks(clock: Any) -> Iterator[tuple[str, str, str]]:
    base, boost, low = clock.get("base"), clock.get("boost"), clock.get("boost_low")
    if base and boost and base > boost:
        yield "clock", f"base {base:g} is above boost {boost:g}", "swap them"
    if low and boost and low > boost:
        yield "clock", f"boost_low {low:g} is above boost {boost:g}", "swap them"
    if low and not boost:
        yield "clock", "boost_low without boost", "give the highest boost too"


def _memory(memory: Any) -> Iterator[tuple[str, str, str]]:
    bus, gbs, type_ = memory.get("bus"), memory.get("gbs"), memory.get("type", "")
    family = next((name for name in _PIN_RATE if name in type_), None)
    if not (bus and gbs and family):
        return
    low, high = _PIN_RATE["LPDDR" if "LPDDR" in type_ else family]
    rate = gbs * 8 / bus
    if not low <= rate <= high:
        what = f"{gbs:g} GB/s over {bus} bits is {rate:.3g} Gb/s per pin, not possible for {type_}"
        yield "memory", what, f"{type_} carries {low:g} to {high:g}: mend gbs or bus"


def _efficiency(entry: Any, chip: Chip | None) -> Iterator[tuple[str, str, str]]:
    """fp32 TFLOPS per watt of board power: a wrong unit count, clock or power shows here."""
    power = entry.get("power")
    peak = chip.peak("fp32", path="vector") if chip and power else None
    if peak is None or chip is None:
        return
    ratio = peak.tflops * chip.boards / power
    if not _FP32_PER_WATT[0] <= ratio <= _FP32_PER_WATT[1]:
        low, high = _FP32_PER_WATT
        what = f"{peak.tflops:.4g} fp32 TFLOPS at {power:g} W is {ratio:.3g} per watt"
        yield "power", what, f"{low:g} to {high:g} was ever sold: mend units, clock or power"


def _overrides(chip: Any) -> Iterator[tuple[str, str, str]]:
    for item in chip.get("override", ()):
        if ("tflops" in item) == bool(item.get("absent")):
            yield (
                "override",
                f"{item['rate']} needs either tflops or absent = true",
                "give one of them",
            )
