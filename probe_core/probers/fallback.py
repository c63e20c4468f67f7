"""The terminal prober, owned by the core: cannot be blocked, shadowed or made to fail.

The GPU is the accelerator, the CPU is the safety net: whatever happened before, the node has one
device, and the report says why it is only that.
"""

from __future__ import annotations

import os

from probe_core.model.kinds import ACCELERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, Fallback, Sighting

__all__ = ["last_resort", "verdict"]


def last_resort(machine: Machine) -> Sighting:
    """Return a processor of which nothing is known but, on this machine, its threads."""
    sighting: Sighting = {
        "ids": ["cpu:0"],
        "kind": "cpu",
        "backends": ["cpu"],
        "memory": {"kind": "shared"},
        "unknown": {"name": "no prober could read the processor"},
    }
    threads = os.cpu_count() if machine.live else None
    if threads:
        sighting["threads"] = threads
    return sighting


def verdict(primary: DeviceDoc | None, troubles: Iterable[object]) -> Fallback | None:
    """Return the report's `fallback`: which net the node fell into, if any.

    None when an accelerator is primary; ``no-accelerator`` when there is none and nothing failed;
    ``degraded`` when something failed, so that there may be one.
    """
    if primary is not None and primary["kind"] in ACCELERATORS:
        return None
    return "degraded" if any(troubles) else "no-accelerator"
