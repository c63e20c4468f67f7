"""Describes an Intel NPU ("AI Boost") from the files of its driver, intel_vpu.

All of them answer from memory: the maximum is computed from ratios read at start, the resident
bytes are summed over a list (ivpu_sysfs.c), so a sleeping NPU stays asleep.
"""

from __future__ import annotations

from probe_intel import gpu, memory
from probe_intel.bound import add_fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine
    from probe_core.sysfs.pci import Function

# freq/hw_max_freq is newer, and the first name stays as its alias. Older kernels have neither.
_MAXIMA = ("npu_max_frequency_mhz", "freq/hw_max_freq")


def describe(machine: Machine, function: Function) -> dict[str, Any]:
    """Return the sighting of an NPU; its memory is the system's."""
    draft = gpu.start(machine, function, "npu")
    add_fact(machine, draft, function)
    memory.describe_system(machine, draft)
    if function.driver != "intel_vpu":
        draft.put("clocks.max_mhz", None, gpu.not_driven(function, ("intel_vpu",)))
        return draft.sighting()
    draft.fields["backends"] = ["level-zero"]
    draft.put("name", None, "intel_vpu gives no product name")
    maxima = (machine.read_int(f"{function.folder}/{name}") for name in _MAXIMA)
    highest = next((mhz for mhz in maxima if mhz is not None and mhz > 0), None)
    draft.put("clocks.max_mhz", highest, "this intel_vpu shows no maximum frequency")
    draft.note("resident_bytes", machine.read_int(f"{function.folder}/npu_memory_utilization"))
    return draft.sighting()
