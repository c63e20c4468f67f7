"""Says what memory an Intel GPU has: its own, or the system's.

No mainline file in the device's folder tells the size of the VRAM. What there is, best first:
* ``tile*/physical_vram_size_bytes`` of xe (early xe, and Intel's own builds): all of it;
* ``lmem_total_bytes`` beside the DRM card, of Intel's own builds of i915;
* ``dmem.capacity`` of the root control group, of xe since Linux 6.14 (cgroup-v2.rst): what can be
  allocated, without the pages that firmware keeps. A container does not see the root group.
The first and the last are numbers that the kernel keeps; of the second, which is out of tree, no
source says that reading it wakes nothing, so it is read of an awake device alone.
"""

from __future__ import annotations

from probe_core.sysfs.numbered import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft

DMEM = "/sys/fs/cgroup/dmem.capacity"

# Device ids of GPUs with memory of their own, by their leading digits: DG1, DG2 (4f8x, 569x, 56ax,
# 56bx, 56cx), Ponte Vecchio, Battlemage and Crescent Island in include/drm/intel/pciids.h.
DISCRETE = (
    "4905 4906 4907 4908 4909 4f8 569 56a 56b 56c 0201 0b69 0b6e 0bd e20 e21 e22 674c 674d 674e"
    " 674f 6750"
).split()


def is_discrete(function: Function, vram: int | None) -> bool | None:
    """Return whether the GPU has memory of its own; None when nothing tells.

    An integrated GPU is always device 2 of bus 0, but in a guest anything can be there.
    """
    device = function.product
    if vram or device.startswith(tuple(DISCRETE)):
        return True
    return False if function.address.partition(":")[2].startswith("00:02.") else None


def describe(machine: Machine, draft: Draft, function: Function) -> bool | None:
    """Put the memory of a GPU into `draft`; returns whether it is its own (None: not known)."""
    whole, source = _vram(machine, function)
    capacity = _capacity(machine, function.address)
    discrete = is_discrete(function, whole or capacity)
    if discrete is False:
        describe_system(machine, draft)
    elif discrete:
        _describe_own(machine, draft, function, whole, source, capacity)
    else:
        reason = "neither its id nor its address distinguishes a card from an integrated GPU"
        draft.put("memory.kind", None, reason)
        draft.put("memory.total", None, reason)
    return discrete


def _describe_own(
    machine: Machine,
    draft: Draft,
    function: Function,
    whole: int | None,
    source: str,
    capacity: int | None,
) -> None:
    draft.put("memory.kind", "dedicated")
    total = whole or capacity
    reason = f"{function.driver or 'no driver'} gives it only to programs that open the device"
    draft.put("memory.total", total, reason)
    draft.put("memory.usable", capacity, f"the part that firmware keeps is not in sysfs; {reason}")
    draft.put("memory.free", None, reason)
    if total:
        draft.put("memory.parts.vram", total)
        draft.note("memory_source", source if whole else "dmem.capacity, without firmware's part")
    draft.note("vram_bar_bytes", _bar(machine, function.folder))


def describe_system(machine: Machine, draft: Draft) -> None:
    """Say that the device uses the system's memory, all of it."""
    from probe_core.sysfs import meminfo  # here: cards have memory of their own

    draft.fields["memory"] = meminfo.unified(machine)
    if "total" not in draft.fields["memory"]:
        draft.put("memory.total", None, "/proc/meminfo gives no MemTotal")


def _vram(machine: Machine, function: Function) -> tuple[int | None, str]:
    """Return (bytes of VRAM in all, the file that says so)."""
    tiles = [
        machine.read_int(f"{tile}/physical_vram_size_bytes")
        for _, tile in entries(machine, function.folder, "tile")
    ]
    sizes = [size for size in tiles if size is not None and size > 0]
    if sizes and len(sizes) == len(tiles):
        return sum(sizes), "physical_vram_size_bytes"
    # An out-of-tree file of which no source says that it wakes nothing.
    for _, card in () if function.asleep else entries(machine, f"{function.folder}/drm", "card"):
        size = machine.read_int(f"{card}/lmem_total_bytes")
        if size is not None and size > 0:
            return size, "lmem_total_bytes"
    return None, ""


def _capacity(machine: Machine, address: str) -> int | None:
    """Return the sum of ``drm/0000:03:00.0/vram0 8514437120`` over a device's tiles."""
    total = 0
    for line in (machine.read(DMEM) or "").splitlines():
        region, _, size = line.partition(" ")
        # One line a tile and region; system memory that the device may map is another region.
        if region.startswith(f"drm/{address}/vram") and size.isdecimal() and len(size) <= 20:
            total += int(size)
    return total or None


def _bar(machine: Machine, folder: str) -> int | None:
    """Return the bytes of VRAM that the processor can map: BAR 2, the third line of `resource`.

    With a resizable BAR that is the VRAM rounded up to a power of two, else 256 MiB.
    """
    lines = (machine.read(f"{folder}/resource", 4096) or "").splitlines()
    try:
        start, end = (int(number, 16) for number in lines[2].split()[:2])
    except (IndexError, ValueError):
        return None
    # Firmware leaves a BAR that it found no room for at zero.
    return end - start + 1 if 0 < start < end else None
