"""Names the instruction set (gfx target) and tells integrated GPUs from cards.

Facts from the kernel: kfd_device.c (GC version to gfx target), amdgpu_discovery.c (ip_discovery),
amdgpu_vram_mgr.c (mem_info_vram_vendor).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine

APUS = frozenset({
    "gfx700", "gfx801", "gfx810", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035",
    "gfx1036", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
})  # fmt: skip
"""gfx targets that exist only inside a processor: Kaveri … Strix Halo."""

CARDS = frozenset({
    "gfx701", "gfx802", "gfx803", "gfx805", "gfx900", "gfx904", "gfx906", "gfx908", "gfx90a",
    "gfx950", "gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031", "gfx1032", "gfx1034",
    "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201",
})  # fmt: skip
"""gfx targets that exist only with memory of their own. gfx942 is both: MI300X and MI300A."""

MI300A = "1002:74a0"

APU_IDS = ("11", "13", "15", "16", "19", "98")
"""How PCI device ids of processors begin (amdgpu_drv.c, pci.ids): Kaveri 130a … Krackan 1114."""

CARD_IDS = ("66", "67", "68", "69", "6f", "73", "74", "75")
"""How those of cards begin, MI300A's excepted: Hainan 6660 … Navi 48 7550, MI355X 75a3."""

# GC (graphics core) versions whose gfx target is not simply the same three numbers:
# kgd2kfd_probe of amdkfd/kfd_device.c.
_BY_GC = {
    "9.0.1": "gfx900", "9.1.0": "gfx902", "9.2.2": "gfx902", "9.2.1": "gfx904",
    "9.3.0": "gfx90c", "9.4.0": "gfx906", "9.4.1": "gfx908", "9.4.2": "gfx90a",
    "10.1.10": "gfx1010", "10.1.2": "gfx1011", "10.1.1": "gfx1012",
    "10.1.3": "gfx1013", "10.1.4": "gfx1013",
    "10.3.0": "gfx1030", "10.3.2": "gfx1031", "10.3.4": "gfx1032", "10.3.1": "gfx1033",
    "10.3.5": "gfx1034", "10.3.3": "gfx1035", "10.3.6": "gfx1036", "10.3.7": "gfx1036",
    "11.0.0": "gfx1100", "11.0.3": "gfx1101", "11.0.2": "gfx1102",
    "11.0.1": "gfx1103", "11.0.4": "gfx1103",
    "11.5.0": "gfx1150", "11.5.1": "gfx1151", "11.5.2": "gfx1152", "11.5.3": "gfx1153",
    "9.4.3": "gfx942", "9.4.4": "gfx942", "9.5.0": "gfx950",
    "12.0.0": "gfx1200", "12.0.1": "gfx1201",
}  # fmt: skip


def from_target(version: int) -> str:
    """Return KFD's gfx_target_version as a name: 90010 is gfx90a, 110501 is gfx1151."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def from_discovery(machine: Machine, folder: str) -> str | None:
    """Return the gfx target of the GPU at sysfs `folder` by its IP discovery table.

    It is there from Linux 5.18 on, also where KFD is not (containers, small kernels). A version
    that the table above does not hold is unknown: the two numberings are not the same.
    """
    core = f"{folder}/ip_discovery/die/0/GC/0"
    numbers = (machine.read_int(f"{core}/{name}") for name in ("major", "minor", "revision"))
    return _BY_GC.get(".".join(map(str, numbers)))


def is_integrated(
    gfx: str | None, pci_id: str | None, vram_vendor: str | None, cpu_cores: int | None
) -> bool | None:
    """Return whether the GPU shares the processor's memory; None when nothing tells.

    `cpu_cores` of its KFD node are positive on the first APUs and MI300A alone; `vram_vendor` is
    who made the memory chips, which only cards know.
    """
    device = (pci_id or "").partition(":")[2]
    if cpu_cores or pci_id == MI300A or gfx in APUS or device.startswith(APU_IDS):
        return True
    if gfx in CARDS or (vram_vendor or "unknown") != "unknown" or device.startswith(CARD_IDS):
        return False
    return False if gfx == "gfx942" else None
