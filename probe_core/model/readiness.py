"""The chain that a device must hold for this process to use it: its steps, states and words.

What judges the steps is `probe_core.readiness`; what only reads the result needs this module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_core.model.document import DeviceDoc, StepDoc

__all__ = [
    "STATES",
    "STATUSES",
    "STEPS",
    "blocked",
    "blocking_step",
    "blocking_step_of",
    "broken_step",
    "state_of",
    "state_word",
    "step_without_kfd",
]

STEPS = (
    "hardware",
    "driver",
    "node",
    "permission",
    "library",
    "responding",
    "granted",
    "visible",
    "runtime",
)
"""From the bus to the program, in the order in which a break hides what comes after it."""

STATES = ("ready", "limited", "blocked", "unknown")
"""`limited`: usable with less than the device has. `unknown` never keeps a device from use."""

STATUSES = ("ok", "broken", "unknown", "not_applicable")
"""What may be said of a step; unknown comes with the reason as its evidence."""


def state_of(device: DeviceDoc) -> str:
    """Return the device's state; of a report that an older core wrote, "unknown"."""
    readiness = device.get("readiness")
    return readiness["state"] if readiness else "unknown"


def blocked(device: DeviceDoc) -> bool:
    """Return whether this process surely cannot use the device."""
    return state_of(device) == "blocked"


def broken_step(device: DeviceDoc) -> StepDoc | None:
    """Return the first step that is broken, with its code and evidence; None where none is."""
    readiness = device.get("readiness")
    if not readiness or readiness["broken"] is None:
        return None
    return next((s for s in readiness["steps"] if s["step"] == readiness["broken"]), None)


def blocking_step(device: DeviceDoc) -> StepDoc | None:
    """Return the step that keeps a blocked device from this process; None for any other device.

    The step `visible` is not meant: variables are judged for the environment that counts.
    """
    readiness = device.get("readiness")
    if not readiness or readiness["state"] != "blocked":
        return None
    return blocking_step_of("blocked", readiness["broken"], readiness["steps"])


def blocking_step_of(state: str, broken: str | None, steps: Iterable[StepDoc]) -> StepDoc | None:
    """Return the step that blocks, of a readiness whose parts are given; see `blocking_step`."""
    if state != "blocked" or broken == "visible":
        return None
    for step in steps:
        if step["step"] == broken:
            return step
    # Written by hand: the state without its steps.
    return {"step": broken or "granted", "status": "broken", "evidence": None, "code": None}


_WITHOUT_KFD = ("kfd-missing", "kfd-no-gpu")
"""Codes of a card that Vulkan can use: ROCm's interface is not there, or not for this card."""


def step_without_kfd(device: DeviceDoc | Mapping[str, Any]) -> StepDoc | None:
    """Return the broken step of a limited card that ROCm cannot use; None for any other device."""
    readiness = device.get("readiness")
    if not readiness or readiness["state"] != "limited":
        return None
    return next((step for step in readiness["steps"] if step["code"] in _WITHOUT_KFD), None)


_WORD_OF_CODE = {
    "off-the-bus": "lost",
    "gpu-lost": "lost",
    "reserved-for-vm": "passthrough",
    "gsp-firmware-missing": "driver error",
    "vgpu-host-driver": "driver error",
    "node-missing": "driver error",
    "uvm-missing": "driver error",
    "node-number-stale": "driver error",
    "kfd-missing": "driver error",
    "hsa-override-bad": "hidden",
    "hsa-override-foreign": "hidden",
    "mig-mode": "MIG mode",
    "mig-without-instances": "MIG mode",
    "query-fails": "driver error",
    "driver-crashes": "driver error",
    "gpu-reset-required": "driver error",
    "row-remap-failed": "driver error",
    "guc-failed": "driver error",
    "uvm-stale": "driver error",
    "gaudi-not-operational": "driver error",
    "vgpu-unlicensed": "driver error",
    "iommu-faults": "driver error",
}
"""Codes whose word is not that of their step."""

_WORD_OF_STEP = {
    "hardware": "driver error",
    "driver": "no driver",
    "node": "not granted",
    "permission": "no permission",
    "library": "driver error",
    "responding": "timed out",
    "granted": "not granted",
    "visible": "hidden",
    "runtime": "driver error",
}


def state_word(device: DeviceDoc) -> str:
    """Return the device's state in a word or two, for tables; empty for a display adapter.

    What keeps the device from this process comes first: ``no driver``, ``no permission``, ``not
    granted``, ``passthrough``, ``driver error``, ``timed out`` or ``lost``; then ``hidden`` or
    ``MIG mode``; then ``asleep``, ``limited``, ``ready``, or ``unknown`` where nobody could tell.
    """
    from probe_core.model.runtimes import native_sight

    step = blocking_step(device)
    if step is not None:
        return _word(step["step"], step["code"])
    sight = native_sight(device)
    if sight is not None and sight["visible"] is False:
        return _word(sight.get("step") or "visible", sight.get("code"))
    if device.get("power_state") == "suspended":
        return "asleep"
    return _unhindered(device)


def _unhindered(device: DeviceDoc) -> str:
    """Return the word for a device that nothing keeps from this process."""
    state = state_of(device)
    if state == "limited":
        limit = broken_step(device)
        return "MIG mode" if limit and limit["code"] == "mig-without-instances" else "limited"
    if state == "unknown" and device["kind"] in ("cpu", "display"):
        return "ready" if device["kind"] == "cpu" else ""  # this process runs on the CPU
    return "ready" if state == "blocked" else state  # blocked by a variable that is unset here


def _word(step: str, code: str | None) -> str:
    return _WORD_OF_CODE.get(code or "") or _WORD_OF_STEP[step]
