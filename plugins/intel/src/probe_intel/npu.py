"""Describes an Intel NPU ("AI Boost") from the files of its driver, intel_vpu.

All of them answer from memory: the maximum is computed from ratios read at start, the resident
bytes are summed over a list (ivpu_sysfs.c), so a sleeping NPU stays asleep.
"""

from __future__ import annotations

from probe_intel import gpu, memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine
    from probe_intel.pci import Function

# freq/hw_max_freq is newer, and the first name stays as its alias. Older kernels have neither.
_MAXIMA = ("npu_max_frequency_mhz", "freq/hw_max_freq")


def describe(machine: Machine, function: Function) -> dict[str, Any]:
    """Return the sighting of an NPU; its memory is the system's."""
    facts = gpu.start(machine, function, "npu")
    memory.tell_system(machine, facts)
    if function.driver != "intel_vpu":
        facts.say("clocks.max_mhz", None, gpu.not_driven(function, "intel_vpu"))
        return facts.sighting()
    facts.fields["backends"] = ["level-zero"]
    facts.say("name", None, "intel_vpu gives no product name")
    found = (machine.read_int(f"{function.folder}/{name}") for name in _MAXIMA)
    highest = next((mhz for mhz in found if mhz and mhz > 0), None)
    facts.say("clocks.max_mhz", highest, "this intel_vpu shows no maximum frequency")
    facts.note("resident_bytes", machine.read_int(f"{function.folder}/npu_memory_utilization"))
    return facts.sighting()
