"""Tells VRAM, GTT and system memory apart: on an APU no single one of them is "the memory".

mem_info_* are bytes (amdgpu_vram_mgr.c, amdgpu_gtt_mgr.c); they answer from the driver's books.
"""

from __future__ import annotations

from probe_amd import kfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_amd.facts import Facts
    from probe_amd.kfd import Node
    from probe_core.api import Machine

# Transfers per cycle of the clock that the driver reports, by memory. HBM3 (gfx942) checked
# against 5.3 TB/s of MI300X's datasheet (8192 bit, 1300 MHz), HBM2 against 483.8 GB/s of Vega 64
# (2048 bit, 945 MHz), GDDR6 against 624 GB/s of RX 7800 XT (256 bit, 1218 MHz).
_HBM, _HBM3, _GDDR5, _GDDR6 = 2, 4, 4, 16
HBM_WIDTH = 1024
"""Bits of one HBM stack: no GDDR card is that wide."""


def tell(
    machine: Machine,
    facts: Facts,
    folder: str,
    nodes: list[Node],
    shared: bool | None,
    asleep: bool,
) -> None:
    """Put the memory of the GPU at sysfs `folder` into `facts`.

    `shared` is whether it lives in the processor's memory (None: not known). A sleeping card's own
    files are not read; then KFD's tables still know the size.
    """
    parts, used, sources = _sizes(machine, folder, nodes, asleep)
    if shared:
        _unified(machine, facts, parts, used, sources)
    else:
        _dedicated(facts, parts, used, shared)
    reason = (
        "asleep: KFD has no size, and the card was not woken for it"
        if asleep
        else "mem_info_vram_total is missing or not a number, and KFD has no size"
    )
    facts.say("memory.parts", parts, reason)
    if "total" not in facts.fields.get("memory", {}):
        facts.say("memory.total", None, reason)
    if sources:
        facts.fields.setdefault("extra", {})["memory_sources"] = sources
    if asleep and parts:
        facts.say("memory.used", None, "asleep: not read, so that the card is not woken")


def _sizes(
    machine: Machine, folder: str, nodes: list[Node], asleep: bool
) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """Return bytes in all and in use by part, and the file that gave each part."""
    parts: dict[str, int] = {}
    used: dict[str, int] = {}
    sources: dict[str, str] = {}
    for part in () if asleep else ("vram", "gtt"):
        for kind, into in (("total", parts), ("used", used)):
            size = machine.read_int(f"{folder}/mem_info_{part}_{kind}")
            if size is not None and size >= (kind == "total"):
                into[part] = size
        if part in parts:
            sources[part] = f"mem_info_{part}_total"
    if "vram" not in parts and (size := _bank_bytes(machine, nodes)):
        parts["vram"], sources["vram"] = size, "KFD mem_banks"
    return parts, used, sources


def _dedicated(
    facts: Facts, parts: dict[str, int], used: dict[str, int], shared: bool | None
) -> None:
    """VRAM is the memory; GTT is borrowed host memory across PCIe, and stays a part."""
    why = "neither the gfx target nor the memory's vendor tells a card from an APU"
    facts.say("memory.kind", None if shared is None else "dedicated", why)
    vram = parts.get("vram")
    if not vram:
        return
    facts.say("memory.total", vram, "")
    if shared is None:
        facts.say("memory.usable", None, why)
    else:
        facts.say("memory.usable", vram, "")
    if "vram" in used and used["vram"] <= vram:
        facts.say("memory.used", used["vram"], "")
        facts.say("memory.free", vram - used["vram"], "")


def _unified(
    machine: Machine,
    facts: Facts,
    parts: dict[str, int],
    used: dict[str, int],
    sources: dict[str, str],
) -> None:
    """Of an APU a program can use the carve-out (VRAM) and what GTT may map of the system's."""
    facts.say("memory.kind", "unified", "")
    system, available = meminfo(machine, "MemTotal"), meminfo(machine, "MemAvailable")
    if system:
        parts["system"], sources["system"] = system, "/proc/meminfo"
    reach = [part for part in ("vram", "gtt") if part in parts]
    if reach == ["vram", "gtt"] and facts.fields.get("gfx") == "gfx942":
        reach = ["vram"]  # MI300A: all memory is VRAM, GTT is the same memory once more
    if not reach or (reach == ["gtt"]):
        return
    total = sum(parts[part] for part in reach)
    facts.say("memory.total", total, "")
    facts.say("memory.usable", total, "")
    if all(part in used and used[part] <= parts[part] for part in reach):
        spare = {part: parts[part] - used[part] for part in reach}
        if available is not None and "gtt" in spare:
            spare["gtt"] = min(spare["gtt"], available)
        facts.say("memory.used", sum(used[part] for part in reach), "")
        facts.say("memory.free", sum(spare.values()), "")


def meminfo(machine: Machine, name: str) -> int | None:
    """Return a line of /proc/meminfo in bytes."""
    for line in (machine.read("/proc/meminfo") or "").splitlines():
        words = line.split()
        size = words[1] if words[:1] == [name + ":"] and len(words) > 1 else ""
        if size.isdecimal() and len(size) <= 20:
            return int(size) * 1024
    return None


def _bank_bytes(machine: Machine, nodes: list[Node]) -> int:
    return sum(bank.get("size_in_bytes", 0) for node in nodes for bank in kfd.banks(machine, node))


def has_stacks(machine: Machine, node: Node) -> bool:
    """Return whether the GPU's memory is as wide as only stacked memory (HBM) is."""
    return any(bank.get("width", 0) >= HBM_WIDTH for bank in kfd.banks(machine, node))


def tell_bandwidth(machine: Machine, facts: Facts, node: Node, shared: bool | None) -> None:
    """Put bus width, memory clock and bandwidth into `facts`, from KFD's mem_banks."""
    bank: dict[str, Any] = next(iter(kfd.banks(machine, node)), {})
    width, clock = bank.get("width", 0), bank.get("mem_clk_max", 0)
    facts.say("bus_width_bits", width or None, "KFD gives no width")
    facts.say("clocks.memory_max_mhz", clock or None, "KFD gives no memory clock")
    rate = None if shared else _transfers(str(facts.fields.get("gfx") or ""), width)
    known = int(width * clock * 1_000_000 * rate // 8) if width and clock and rate else None
    facts.say("bandwidth", known, _why_no_rate(width, clock, shared))


def _transfers(gfx: str, width: int) -> int | None:
    """Return transfers per clock of the card's memory; None where generations mixed kinds."""
    if width >= HBM_WIDTH:
        if gfx.startswith(("gfx8", "gfx90", "gfx1011")):
            return _HBM
        return _HBM3 if gfx == "gfx942" else None
    if gfx.startswith("gfx80"):
        return _GDDR5
    return _GDDR6 if gfx.startswith(("gfx10", "gfx11", "gfx12")) else None


def _why_no_rate(width: int, clock: int, shared: bool | None) -> str:
    if not (width and clock):
        return "KFD gives no memory width or clock"
    if shared:
        return "an APU's memory rate per clock depends on the board's memory, which sysfs hides"
    return f"the memory's kind at {width} bit is not known, so neither are its transfers per clock"
