"""Old exo's device_capabilities.py as a drop-in: `from probe_exo.device_capabilities import *`.

The same names, types, units and strings. What is new: it never raises, never blocks the event
loop, ends by a deadline, knows about 2,000 chips, counts every visible GPU, works on Windows, and
`DeviceCapabilities.reasons` says why a number is 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from probe_cluster.shared import ClusterError
from probe_exo.chip_flops import CHIP_FLOPS
from probe_exo.legacy import TFLOPS, DeviceCapabilities, DeviceFlops, capabilities_of
from probe_exo.override import overridden
from probe_exo.platforms import mac_facts, other_facts, report_facts
from probe_exo.rule import UNKNOWN_CHIP, UNKNOWN_MODEL, Facts
from probe_exo.waiting import bounded

__all__ = [
    "CHIP_FLOPS",
    "TFLOPS",
    "UNKNOWN_DEVICE_CAPABILITIES",
    "DeviceCapabilities",
    "DeviceFlops",
    "device_capabilities",
    "linux_device_capabilities",
    "mac_device_capabilities",
    "windows_device_capabilities",
]

UNKNOWN_DEVICE_CAPABILITIES = DeviceCapabilities(
    model=UNKNOWN_MODEL,
    chip=UNKNOWN_CHIP,
    memory=0,
    flops=DeviceFlops(fp32=0, fp16=0, int8=0),
)
"""What a node is before it has said what it is."""

# The longest deadline of a vendor's prober (NVIDIA's, see its prober.json). What takes longer goes
# on, and is the next caller's answer.
DEADLINE_S = 15.0
"""Seconds after which an answer is given whatever the drivers do."""
CHOICE = "EXO_PROBE_DEVICES"
"""Environment variable: ``all`` (the default), ``primary``, ``cpu``, or a device's id."""

Source = Callable[[str, bool], Facts]

_SOURCES: dict[str, Source] = {"linux": report_facts, "darwin": mac_facts, "win32": report_facts}
_cached: dict[object, Facts] = {}


async def device_capabilities(
    *, devices: str | None = None, refresh: bool = False, deadline: float = DEADLINE_S
) -> DeviceCapabilities:
    """Return what this node can do; never raises, and takes at most `deadline` seconds.

    `devices` is ``all`` visible GPUs together, the ``primary`` one, ``cpu``, or a device's id; by
    default what EXO_PROBE_DEVICES says. Looked up once for the process; `refresh` looks again.
    """
    source = _SOURCES.get(sys.platform, other_facts)
    return await _capabilities(source, devices, refresh, deadline, cached=True)


async def linux_device_capabilities() -> DeviceCapabilities:
    """Return what this Linux node can do."""
    return await _capabilities(report_facts, None, False, DEADLINE_S)


async def mac_device_capabilities() -> DeviceCapabilities:
    """Return what this Mac can do: asks system_profiler at every call."""
    return await _capabilities(mac_facts, None, False, DEADLINE_S)


async def windows_device_capabilities() -> DeviceCapabilities:
    """Return what this Windows node can do."""
    return await _capabilities(report_facts, None, False, DEADLINE_S)


async def _capabilities(
    source: Source, devices: str | None, refresh: bool, deadline: float, cached: bool = False
) -> DeviceCapabilities:
    choice = devices or os.environ.get(CHOICE, "").strip() or "all"
    key = (os.getpid(), choice, *map(os.environ.get, _DECIDES))
    facts = _cached.get(key) if cached and not refresh else None
    if facts is None:
        try:
            facts = await bounded(lambda: _facts(source, choice, refresh), deadline)
        except TimeoutError:
            facts = _without_answer(f"no answer within {deadline:g} s; it is looked up further")
        else:
            if cached:
                _cached[key] = facts
    return _overridden(capabilities_of(facts))


_DECIDES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "PROBE_STATIC")


def _facts(source: Source, choice: str, refresh: bool) -> Facts:
    """Look, in the thread; whatever goes wrong is an answer too."""
    try:
        return source(choice, refresh)
    except ClusterError as error:
        return _without_answer(f"{CHOICE}: {error}")
    except Exception as error:
        return _without_answer(f"{type(error).__name__}: {error}")


def _without_answer(reason: str) -> Facts:
    fields = ("model", "chip", "memory", "fp32", "fp16", "int8")
    return Facts(reasons=dict.fromkeys(fields, reason))


def _overridden(capabilities: DeviceCapabilities) -> DeviceCapabilities:
    size, reason = overridden(os.environ)
    if size is not None:
        capabilities.memory = size >> 20
    if reason is not None:
        capabilities.explained({"memory": reason})
    return capabilities
