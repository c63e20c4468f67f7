"""Says what the registry knows of an adapter's memory, and whose memory that is.

``HardwareInformation.qwMemorySize`` is the dedicated video memory in bytes; its 32-bit sibling and
WMI's AdapterRAM end at 4 GiB and are not used. Of an integrated GPU it is the part of the system's
memory that firmware set aside, which is not the memory that a program can use.
"""

from __future__ import annotations

from probe_windows.registry import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_windows.adapters import Adapter

SIZE = "hardwareinformation.qwmemorysize"
ADRENO = "ACPI\\QCOM"
"""How the instance path of a Qualcomm GPU begins: it is part of the processor, not on PCI."""

# A smaller total is no size: the core takes none below it either.
_MIB = 1 << 20


def describe(
    sighting: dict[str, Any], adapter: Adapter, place: tuple[int, int, int] | None, arch: str
) -> None:
    """Put the memory into `sighting`.

    `place` is the adapter's (bus, device, function), `arch` the machine's architecture.
    """
    unknown: dict[str, str] = sighting["unknown"]
    size = number(adapter.driver.get(SIZE))
    vram = size if size and size >= _MIB else None
    own = False if adapter.instance.startswith(ADRENO) else _is_own(sighting, place, arch)
    memory: dict[str, Any] = {"parts": {"vram": vram}} if vram else {}
    if own is not None:
        memory["kind"] = "dedicated" if own else "unified"
    else:
        unknown["memory.kind"] = "the registry does not distinguish a card from an integrated GPU"
    if own and vram:
        memory["total"] = vram
    elif own is not False:
        reason = "its size is known, but not whether a program can use more" if vram else "no size"
        unknown["memory.total"] = f"HardwareInformation.qwMemorySize: {reason}"
    if memory:
        sighting["memory"] = memory


def _is_own(sighting: dict[str, Any], place: tuple[int, int, int] | None, arch: str) -> bool | None:
    """Return whether the memory is the adapter's own; None when nothing tells.

    NVIDIA's GPUs beside x86 processors are all cards (since its chipsets of 2010), beside Arm ones
    they may be part of them. Intel's integrated ones are device 2 of bus 0. AMD's bear names that
    end in "Graphics", and so do a few cards: "RX" without that ending is a card.
    """
    vendor = sighting.get("vendor")
    if place is None:
        return None
    if vendor == "nvidia":
        return True if arch == "x86_64" else None
    if vendor == "intel":
        return False if place[:2] == (0, 2) else (True if place[0] else None)
    name = str(sighting.get("name") or "").split()
    is_card = vendor == "amd" and "RX" in name and name[-1] != "Graphics"
    return True if is_card else None
