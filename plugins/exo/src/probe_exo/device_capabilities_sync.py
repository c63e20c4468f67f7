"""Old exo's device_capabilities.py as it was before December 2024: the same names, not awaited.

`from probe_exo.device_capabilities_sync import *` in place of that file's content. Each call blocks
for the first probe, by a deadline, and may be made inside or outside an event loop.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable

from probe_exo import device_capabilities as awaited
from probe_exo.chip_flops import CHIP_FLOPS
from probe_exo.device_capabilities import DEADLINE_S, UNKNOWN_DEVICE_CAPABILITIES
from probe_exo.device_memory import DeviceMemory, device_memory
from probe_exo.legacy import TFLOPS, DeviceCapabilities, DeviceFlops

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
