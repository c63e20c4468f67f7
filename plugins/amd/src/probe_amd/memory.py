"""Tells VRAM, GTT and system memory apart: on an APU no single one of them is "the memory".

mem_info_* are bytes (amdgpu_vram_mgr.c, amdgpu_gtt_mgr.c); they answer from the driver's books.
"""

from __future__ import annotations

from probe_amd import gfx, kfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_amd.kfd import Node
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft

# Transfers per cycle of the clock that the driver reports, by memory. HBM3 (gfx942) checked
# against 5.3 TB/s of MI300X's datasheet (8192 bit, 1300 MHz), HBM2 against 483.8 GB/s of Vega 64
# (2048 bit, 945 MHz), GDDR6 against 624 GB/s of RX 7800 XT (256 bit, 1218 MHz).
_HBM, _HBM3, _GDDR5, _GDDR6 = 2, 4, 4, 16
HBM_WIDTH = 1024
"""Bits of one HBM stack: no GDDR card is that wide."""


TTM = "/sys/module/ttm/parameters"
_PAGE = 4096
"""Bytes of a page where APUs are: x86 alone."""


class Sizes:
    """Bytes by part (vram, gtt, system): in all, in use, and the file that gave the total."""

    __slots__ = ("sources", "total", "used")

    def __init__(self) -> None:
        self.total: dict[str, int] = {}
        self.used: dict[str, int] = {}
        self.sources: dict[str, str] = {}

    def fits(self, part: str) -> bool:
        """Return whether the part's use is known, and no more than there is of it."""
        return part in self.used and self.used[part] <= self.total[part]


def describe(
    machine: Machine,
    draft: Draft,
    folder: str,
    nodes: list[Node],
    shared: bool | None,
    asleep: bool,
) -> None:
    """Put the memory of the GPU at sysfs `folder` into `draft`.

    `shared` is whether it lives in the processor's memory (None: not known). A sleeping card's own
    files are not read; then KFD's tables still know the size.
    """
    sizes = _sizes(machine, folder, nodes, asleep)
    if shared:
        _unified(machine, draft, sizes)
    else:
        _dedicated(draft, sizes, shared)
    reason = (
        "asleep: KFD has no size, and the card was not woken for it"
        if asleep
        else "mem_info_vram_total is missing or not a number, and KFD has no size"
    )
    draft.put("memory.parts", sizes.total, reason)
    if "total" not in draft.fields.get("memory", {}) and "memory.total" not in draft.unknown:
        draft.put("memory.total", None, reason)
    draft.put("extra.memory_sources", sizes.sources)
    if asleep and sizes.total:
        draft.put("memory.used", None, "asleep: not read, so that the card is not woken")


def _sizes(machine: Machine, folder: str, nodes: list[Node], asleep: bool) -> Sizes:
    sizes = Sizes()
    for part in () if asleep else ("vram", "gtt"):
        total = machine.read_int(f"{folder}/mem_info_{part}_total")
        if total is not None and total > 0:
            sizes.total[part] = total
            sizes.sources[part] = f"mem_info_{part}_total"
        used = machine.read_int(f"{folder}/mem_info_{part}_used")
        if used is not None and used >= 0:
            sizes.used[part] = used
    if "vram" not in sizes.total and (size := _bank_bytes(machine, nodes)):
        sizes.total["vram"], sizes.sources["vram"] = size, "KFD mem_banks"
    return sizes


def is_shared(
    machine: Machine, function: Function, name: str | None, node: Node | None
) -> bool | None:
    """Return whether the GPU with gfx target `name` lives in the processor's memory."""
    vendor = None
    if not function.asleep:
        vendor = machine.read(f"{function.folder}/mem_info_vram_vendor", 64)
    cores = node.properties.get("cpu_cores_count") if node else None
    shared = gfx.is_integrated(name, function.pci.get("id"), vendor, cores)
    return False if shared is None and node and has_stacks(machine, node) else shared


def _dedicated(draft: Draft, sizes: Sizes, shared: bool | None) -> None:
    """VRAM is the memory; GTT is borrowed host memory across PCIe, and stays a part."""
    reason = "neither the gfx target nor the memory's vendor distinguishes a card from an APU"
    draft.put("memory.kind", None if shared is None else "dedicated", reason)
    vram = sizes.total.get("vram")
    if shared is None:  # VRAM may be an APU's carve-out, a part of what programs can use
        draft.put("memory.total", None, reason)
    if not vram or shared is None:
        return
    draft.put("memory.total", vram)
    draft.put("memory.usable", vram)
    if sizes.fits("vram"):
        draft.put("memory.used", sizes.used["vram"])
        draft.put("memory.free", vram - sizes.used["vram"])


def _unified(machine: Machine, draft: Draft, sizes: Sizes) -> None:
    """Of an APU a program can use the carve-out (VRAM) and what GTT may map of the system's."""
    draft.put("memory.kind", "unified")
    from probe_core.sysfs import meminfo  # here: cards have memory of their own

    lines = meminfo.sizes(machine)
    system, available = lines.get("MemTotal"), lines.get("MemAvailable")
    if system:
        sizes.total["system"], sizes.sources["system"] = system, "/proc/meminfo"
    reach = [part for part in ("vram", "gtt") if part in sizes.total]
    if draft.fields.get("gfx") == "gfx942":
        reach = reach[:1]  # MI300A: all memory is VRAM, GTT is the same memory once more
    elif reach == ["vram"]:
        draft.put("memory.total", None, "an APU's carve-out alone is not what programs can use")
        return
    if "vram" not in reach:
        return
    total = sum(sizes.total[part] for part in reach)
    draft.put("memory.total", total)
    beyond = _beyond_ttm(machine, draft, sizes) if "gtt" in reach else 0
    draft.put("memory.usable", total - beyond)
    if all(sizes.fits(part) for part in reach):
        spare = {part: sizes.total[part] - sizes.used[part] for part in reach}
        if available is not None and "gtt" in spare:
            spare["gtt"] = min(max(0, spare["gtt"] - beyond), available)
        draft.put("memory.used", sum(sizes.used[part] for part in reach))
        draft.put("memory.free", sum(spare.values()))


def _beyond_ttm(machine: Machine, draft: Draft, sizes: Sizes) -> int:
    """Return the bytes of GTT that the kernel's memory manager would refuse, and note its limits.

    TTM gives out pages_limit pages to all GPUs together, however large GTT is; page_pool_size only
    says how many freed ones it keeps (drivers/gpu/drm/ttm/ttm_tt.c, ttm_pool.c).
    """
    pages = {
        name: number
        for name in ("pages_limit", "page_pool_size")
        if (number := machine.read_int(f"{TTM}/{name}") or 0) > 0
    }
    draft.put("extra.ttm", {name: number * _PAGE for name, number in pages.items()})
    limit = pages.get("pages_limit", 0) * _PAGE
    if not 0 < limit < sizes.total["gtt"]:
        return 0
    sizes.total["limit"], sizes.sources["limit"] = limit, f"{TTM}/pages_limit"
    return sizes.total["gtt"] - limit


def _bank_bytes(machine: Machine, nodes: list[Node]) -> int:
    return sum(bank.get("size_in_bytes", 0) for node in nodes for bank in kfd.banks(machine, node))


def has_stacks(machine: Machine, node: Node) -> bool:
    """Return whether the GPU's memory is as wide as only stacked memory (HBM) is."""
    return any(bank.get("width", 0) >= HBM_WIDTH for bank in kfd.banks(machine, node))


def describe_bandwidth(machine: Machine, draft: Draft, node: Node, shared: bool | None) -> None:
    """Put bus width, memory clock and bandwidth into `draft`, from KFD's mem_banks."""
    bank: dict[str, int] = next(iter(kfd.banks(machine, node)), {})
    width, clock = bank.get("width", 0), bank.get("mem_clk_max", 0)
    draft.put("bus_width_bits", width or None, "KFD gives no width")
    draft.put("clocks.memory_max_mhz", clock or None, "KFD gives no memory clock")
    rate = None if shared else _transfers(str(draft.fields.get("gfx") or ""), width)
    bandwidth = width * clock * 1_000_000 * rate // 8 if width and clock and rate else None
    draft.put("bandwidth", bandwidth, _why_no_rate(width, clock, shared))


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
