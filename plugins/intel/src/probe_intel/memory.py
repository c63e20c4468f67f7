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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine
    from probe_intel.facts import Facts
    from probe_intel.pci import Function

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
    device = function.pci.get("id", "")[5:]
    if vram or device.startswith(tuple(DISCRETE)):
        return True
    return False if function.address.partition(":")[2].startswith("00:02.") else None


def tell(machine: Machine, facts: Facts, function: Function) -> bool | None:
    """Put the memory of a GPU into `facts`; returns whether it is its own (None: not known)."""
    whole, source = _vram(machine, function)
    capacity = _capacity(machine, function.address)
    discrete = is_discrete(function, whole or capacity)
    if discrete is False:
        tell_system(machine, facts)
    elif discrete:
        _tell_own(machine, facts, function, whole, source, capacity)
    else:
        why = "neither its id nor its place on the bus tells a card from an integrated GPU"
        facts.say("memory.kind", None, why)
        facts.say("memory.total", None, why)
    return discrete


def _tell_own(
    machine: Machine,
    facts: Facts,
    function: Function,
    whole: int | None,
    source: str,
    capacity: int | None,
) -> None:
    facts.say("memory.kind", "dedicated", "")
    total = whole or capacity
    why = f"{function.driver or 'no driver'} tells it only to programs that open the device"
    facts.say("memory.total", total, why)
    facts.say("memory.usable", capacity, f"the part that firmware keeps is not in sysfs; {why}")
    facts.say("memory.free", None, why)
    if total:
        facts.fields["memory"]["parts"] = {"vram": total}
        facts.note("memory_source", source if whole else "dmem.capacity, without firmware's part")
    facts.note("vram_bar_bytes", _bar(machine, function.folder))


def tell_system(machine: Machine, facts: Facts) -> None:
    """Say that the device uses the system's memory, all of it."""
    facts.say("memory.kind", "unified", "")
    total, free = _meminfo(machine, "MemTotal"), _meminfo(machine, "MemAvailable")
    facts.say("memory.total", total, "/proc/meminfo gives no MemTotal")
    if total:
        facts.fields["memory"] |= {"usable": total, "parts": {"system": total}}
    if free is not None:
        facts.fields["memory"]["free"] = free


def _vram(machine: Machine, function: Function) -> tuple[int | None, str]:
    """Return (bytes of VRAM in all, the file that says so)."""
    sizes = [
        machine.read_int(f"{function.folder}/{name}/physical_vram_size_bytes")
        for name in machine.listdir(function.folder)
        if name[:4] == "tile" and name[4:].isdecimal()
    ]
    known = [size for size in sizes if size and size > 0]
    if known and len(known) == len(sizes):
        return sum(known), "physical_vram_size_bytes"
    # An out-of-tree file of which no source says that it wakes nothing.
    for name in () if function.asleep else machine.listdir(f"{function.folder}/drm"):
        size = machine.read_int(f"{function.folder}/drm/{name}/lmem_total_bytes")
        if name.startswith("card") and size and size > 0:
            return size, "lmem_total_bytes"
    return None, ""


def _capacity(machine: Machine, address: str) -> int | None:
    """Return the sum of ``drm/0000:03:00.0/vram0 8514437120`` over a device's tiles."""
    total = 0
    for line in (machine.read(DMEM) or "").splitlines():
        region, _, size = line.partition(" ")
        if region.startswith(f"drm/{address}/vram") and size.isdecimal() and len(size) <= 20:
            total += int(size)
    return total or None


def _bar(machine: Machine, folder: str) -> int | None:
    """Return the bytes of VRAM that the processor can map: BAR 2, the third line of `resource`.

    With a resizable BAR that is the VRAM rounded up to a power of two, else 256 MiB.
    """
    lines = (machine.read(f"{folder}/resource", 4096) or "").splitlines()
    try:
        start, end = (int(word, 16) for word in lines[2].split()[:2])
    except (IndexError, ValueError):
        return None
    return end - start + 1 if 0 < start < end else None


def _meminfo(machine: Machine, name: str) -> int | None:
    for line in (machine.read("/proc/meminfo") or "").splitlines():
        words = line.split()
        size = words[1] if words[:1] == [name + ":"] and len(words) > 1 else ""
        if size.isdecimal() and len(size) <= 20:
            return int(size) * 1024
    return None
