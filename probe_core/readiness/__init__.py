"""Whether this process can use each device, and where the chain from the bus to a program breaks.

`judge` runs after the chips are resolved and before visibility is worked out, so that visibility
starts from the devices that are not blocked; `conclude` adds what visibility and the runtimes say.
Each step is a pure function over the device and the `Scene`, in a module of its own.
"""

from __future__ import annotations

from probe_core.readiness.chain import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, FindingDoc

__all__ = ["conclude", "judge"]


def judge(devices: Iterable[DeviceDoc], machine: Machine) -> list[FindingDoc]:
    """Write each device's `readiness` up to the step `granted`; return what a person should know.

    What probers learnt (`step_facts`) is used and taken out of the devices.
    """
    for device in devices:
        facts = device.pop("step_facts", [])
        device["readiness"] = result(facts)
    return []


def conclude(devices: Iterable[DeviceDoc]) -> None:
    """Add the steps `visible` and `runtime`, once each device's `visibility` is there."""
