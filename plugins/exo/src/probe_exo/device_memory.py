"""`DeviceMemory`, for forks that tell a node's total and its available memory apart."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel

from probe_cluster.planning.members import capacity
from probe_exo.override import overridden
from probe_exo.static_part import node_document

__all__ = ["DeviceMemory", "device_memory"]


class DeviceMemory(BaseModel):
    """Memory that a model can lie in, in MiB as `DeviceCapabilities.memory`; 0 is unknown."""

    total: int
    available: int

    def to_dict(self) -> dict[str, int]:
        """Return the two numbers."""
        return self.model_dump()


def device_memory(report: Any = None, devices: str = "all") -> DeviceMemory:
    """Return the memory of this node's devices, or of a `report`, by the rule of `capacity`.

    Of dedicated memory and of memory that a processor shares alike; available is read anew.
    OVERRIDE_MEMORY_MB is honoured for both, as exo does. Blocks for the first probe.
    """
    size, _ = overridden(os.environ)
    if size is not None:
        return DeviceMemory(total=size >> 20, available=size >> 20)
    offer = capacity(node_document() if report is None else report, devices)
    available = offer.memory_available
    if report is None and devices == "all":
        from probe_exo.memory import node_memory

        available = node_memory().usable_available
    return DeviceMemory(total=(offer.memory_total or 0) >> 20, available=(available or 0) >> 20)
