"""What the registry has of an adapter's memory, and whose memory that is.

``HardwareInformation.qwMemorySize`` is the dedicated video memory in bytes; its 32-bit sibling and
WMI's AdapterRAM end at 4 GiB and are not used. Of an integrated GPU it is the part of the system's
memory that firmware set aside, which is not the memory that a program can use.
"""

from __future__ import annotations

from probe_windows.registry import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Sighting, SightingMemory
    from probe_windows.adapters import Adapter

    Address = tuple[int, int, int]
    """Bus, device and function."""

SIZE = "hardwareinformation.qwmemorysize"
ADRENO = "ACPI\\QCOM"
"""How the instance path of a Qualcomm GPU begins: it is part of the processor, not on PCI."""

_MIB = 1 << 20  # what is smaller is no memory's size; the core rejects it, too


def add_memory(sighting: Sighting, adapter: Adapter, address: Address | None, arch: str) -> None:
    """Put the memory into `sighting`, or the reasons why it is unknown.

    `address` is the adapter's on the bus, `arch` the machine's architecture.
    """
    size = number(adapter.driver.get(SIZE))
    vram = size if size and size >= _MIB else None
    own = False if adapter.instance.startswith(ADRENO) else _is_own(sighting, address, arch)
    memory: SightingMemory = {"parts": {"vram": vram}} if vram else {}
    if own is not None:
        memory["kind"] = "dedicated" if own else "unified"
    if own and vram:
        memory["total"] = vram
    if memory:
        sighting["memory"] = memory
    sighting["unknown"] |= _missing(own, vram)


def _missing(own: bool | None, vram: int | None) -> dict[str, str]:
    """Return the reasons; where the memory is the system's, the core fills in its size."""
    reasons = {}
    if own is None:
        reasons["memory.kind"] = "the registry does not tell a card from an integrated GPU"
    if own is None or (own and not vram):
        fact = "its size is known, but not whether a program can use more" if vram else "no size"
        reasons["memory.total"] = f"HardwareInformation.qwMemorySize: {fact}"
    return reasons


def _is_own(sighting: Sighting, address: Address | None, arch: str) -> bool | None:
    """Return whether the memory is the adapter's own; None where nothing decides.

    NVIDIA's GPUs beside x86 processors are all cards (since its chipsets of 2010), beside Arm ones
    they may be part of them. Intel's integrated ones are device 2 of bus 0.
    """
    vendor = sighting.get("vendor")
    if address is None:
        return None
    if vendor == "nvidia":
        return True if arch == "x86_64" else None
    if vendor == "intel":
        return False if address[:2] == (0, 2) else (True if address[0] else None)
    return True if vendor == "amd" and _is_radeon_card(sighting.get("name", "")) else None


def _is_radeon_card(name: str) -> bool:
    """AMD's integrated GPUs bear names that end in "Graphics"; so do a few cards, but no "RX"."""
    tokens = name.split()
    return "RX" in tokens and tokens[-1] != "Graphics"
