"""What NVIDIA's library says of single steps of a GPU's readiness."""

from __future__ import annotations

from probe_nvidia.codes import GPU_IS_LOST, NO_PERMISSION, RESET_REQUIRED, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from probe_nvidia.ask import Asker

    Fact = dict[str, str]

__all__ = ["broken", "excluded", "fact", "failed", "listed", "of_device", "responding"]

PROHIBITED = "prohibited"
# Heat, or the power supply, which asserts the brake.
_SLOWDOWNS = frozenset({"sw-thermal", "hw-thermal", "hw-slowdown", "hw-power-brake"})
_FABRIC = {
    "not-started": "nvmlDeviceGetGpuFabricInfo: state 1, not started",
    "in-progress": "nvmlDeviceGetGpuFabricInfo: state 2, in progress",
    "failed": "nvmlDeviceGetGpuFabricInfo: completed with an error",
}
# What a GPU that this process may not use refuses, and any other answers.
_REFUSED = frozenset({"nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo"})


def fact(step: str, status: str, evidence: str, code: str | None = None) -> Fact:
    """Return one step's fact, as a sighting's ``step_facts`` have it."""
    words = {"step": step, "status": status, "evidence": evidence}
    return words | {"code": code} if code else words


def broken(step: str, code: str, evidence: str) -> Fact:
    """Return the fact that a step is broken, and why."""
    return fact(step, "broken", evidence, code)


def listed(place: str) -> Fact:
    """Return the fact that NVML lists the device, at `place`."""
    return fact("granted", "ok", f"NVML lists it as {place}")


def excluded(identity: str) -> Fact:
    """Return the fact that the kernel driver was told to leave the GPU alone (NVreg_ExcludedGpus).

    `identity` is its PCI id.
    """
    evidence = f"/proc/driver/nvidia/gpus/{identity[4:]}/information: GPU Excluded: Yes"
    return broken("granted", "gpu-excluded", evidence)


def failed(code: int | None, reason: str) -> Fact:
    """Return what it means that NVML counts a GPU, and gives no handle for it."""
    if code == NO_PERMISSION:
        # NVML counts all GPUs of the system, also those that this process may not use
        # (nvmlDeviceGetCount_v2 in NVIDIA's NVML API reference).
        return broken("granted", "not-granted", reason)
    return broken("responding", _code_of(code), reason)


def of_device(
    asker: Asker, sighting: dict[str, Any], place: str, instances: Sequence[object] | None
) -> list[Fact]:
    """Return the facts about a GPU that NVML gave a handle for.

    `instances` are its MIG instances, None where MIG is off.
    """
    facts = [responding(asker, sighting), _granted(asker, sighting, place, instances)]
    fabric = sighting["extra"].get("fabric")
    if fabric in _FABRIC:
        facts.append(broken("runtime", "fabric-not-ready", _FABRIC[fabric]))
    return facts


def responding(asker: Asker, sighting: dict[str, Any]) -> Fact:
    """Return whether the GPU or MIG instance answers, and at its full speed."""
    if asker.lost:
        return broken("responding", _code_of(asker.lost_code), asker.lost)
    ecc = sighting.get("ecc", {})
    if ecc.get("remap_failed"):
        reason = "nvmlDeviceGetRemappedRows: a row could not be remapped"
        return broken("responding", "row-remap-failed", reason)
    if asker.faults:
        faults = (f"{field}: {name_of(code)}" for field, code in asker.faults.items())
        return fact("responding", "unknown", ", ".join(faults)[:250])
    if ecc.get("remap_pending"):
        reason = "nvmlDeviceGetRemappedRows: rows wait for a reset"
        return broken("responding", "row-remap-pending", reason)
    if not asker.answers:
        return fact("responding", "unknown", "NVML answered no query about it")
    return _slowed(sighting.get("power", {})) or fact(
        "responding", "ok", f"NVML answered {asker.answers} queries"
    )


def _slowed(power: dict[str, Any]) -> Fact | None:
    """Return the fact that heat, the power supply or a lowered limit slows the GPU down."""
    slow = sorted(_SLOWDOWNS.intersection(power.get("reasons", ())))
    if slow:
        evidence = f"nvmlDeviceGetCurrentClocksEventReasons: {', '.join(slow)}"
        return broken("responding", "thermal-slowdown", evidence)
    limit, default = power.get("limit_watts"), power.get("default_watts")
    if limit and default and limit < default:
        evidence = f"NVML's power limit is {limit:g} W, the default {default:g} W"
        return broken("responding", "power-capped", evidence)
    return None


def _granted(
    asker: Asker, sighting: dict[str, Any], place: str, instances: Sequence[object] | None
) -> Fact:
    if asker.refused >= _REFUSED:
        reason = f"{name_of(NO_PERMISSION)} from {', '.join(sorted(_REFUSED))}"
        return broken("granted", "not-granted", reason)
    if sighting.get("compute_mode") == PROHIBITED:
        return broken("granted", "compute-prohibited", "nvmlDeviceGetComputeMode: 2, prohibited")
    if instances is not None and not instances and not asker.lost:
        reason = "nvmlDeviceGetMigMode: enabled; no instance is listed"
        return broken("granted", "mig-without-instances", reason)
    return listed(place)


def _code_of(code: int | None) -> str:
    if code == RESET_REQUIRED:
        return "gpu-reset-required"
    return "gpu-lost" if code == GPU_IS_LOST else "query-fails"
