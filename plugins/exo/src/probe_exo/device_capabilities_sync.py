"""Old exo's device_capabilities.py as it was before December 2024: the same names, not awaited.

`from probe_exo.device_capabilities_sync import *` in place of that file's content. Each call blocks
for the first probe, by a deadline, and may be made inside or outside an event loop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from probe_cluster.planning.members import capacity
from probe_exo import device_capabilities as awaited
from probe_exo.device_capabilities import (
    CHIP_FLOPS,
    DEADLINE_S,
    TFLOPS,
    UNKNOWN_DEVICE_CAPABILITIES,
    DeviceCapabilities,
    DeviceFlops,
)
from probe_exo.memory import node_memory, overridden
from probe_exo.node import node_document

__all__ = [
    "CHIP_FLOPS",
    "TFLOPS",
    "UNKNOWN_DEVICE_CAPABILITIES",
    "DeviceCapabilities",
    "DeviceFlops",
    "DeviceMemory",
    "device_capabilities",
    "device_memory",
    "linux_device_capabilities",
    "mac_device_capabilities",
    "windows_device_capabilities",
]

Ask = Callable[[], Awaitable[DeviceCapabilities]]


def device_capabilities(
    inference_engine: object = None,
    *,
    devices: str | None = None,
    refresh: bool = False,
    deadline: float = DEADLINE_S,
) -> DeviceCapabilities:
    """Return what this node can do; never raises, and takes about `deadline` seconds at most.

    `inference_engine` is what the forks of mid-2024 pass; it decides nothing here. The rest as in
    `probe_exo.device_capabilities`.
    """
    return _waited(
        lambda: awaited.device_capabilities(devices=devices, refresh=refresh, deadline=deadline)
    )


def linux_device_capabilities(inference_engine: object = None) -> DeviceCapabilities:
    """Return what this Linux node can do."""
    return _waited(awaited.linux_device_capabilities)


def mac_device_capabilities(inference_engine: object = None) -> DeviceCapabilities:
    """Return what this Mac can do: asks system_profiler at every call."""
    return _waited(awaited.mac_device_capabilities)


def windows_device_capabilities(inference_engine: object = None) -> DeviceCapabilities:
    """Return what this Windows node can do."""
    return _waited(awaited.windows_device_capabilities)


def _waited(ask: Ask) -> DeviceCapabilities:
    """Run a coroutine in a loop and a thread of its own: the caller's thread may have a loop."""
    import asyncio

    answers: list[DeviceCapabilities] = []

    async def answer() -> None:
        answers.append(await ask())

    thread = threading.Thread(
        target=lambda: asyncio.run(answer()), name="probe-exo-sync", daemon=True
    )
    thread.start()
    thread.join()
    return answers[0] if answers else UNKNOWN_DEVICE_CAPABILITIES.model_copy(deep=True)


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
        available = node_memory().counted_available
    return DeviceMemory(total=(offer.memory_total or 0) >> 20, available=(available or 0) >> 20)
