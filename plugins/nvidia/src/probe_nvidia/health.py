"""What NVML's answers say of a GPU: whether it responds, and was given to this process."""

from __future__ import annotations

from probe_nvidia.causes import HANDLE, NO_PERMISSION, STATE, TABLE, broken, fact, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from probe_nvidia.causes import Fact, Finding
    from probe_nvidia.nvml import Asker

    Sighting = dict[str, Any]

# Heat, or the power supply, which asserts the brake.
_SLOWDOWNS = frozenset({"sw-thermal", "hw-thermal", "hw-slowdown", "hw-power-brake"})
_FABRIC = {
    "not-started": "nvmlDeviceGetGpuFabricInfo: state 1, not started",
    "in-progress": "nvmlDeviceGetGpuFabricInfo: state 2, in progress",
    "failed": "nvmlDeviceGetGpuFabricInfo: completed with an error",
}
# What a GPU that this process may not use refuses, and any other answers.
_REFUSED = frozenset({"nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo"})


def facts(
    asker: Asker, sighting: Sighting, place: str, instances: Sequence[object] | None
) -> Iterator[Fact]:
    """Yield the facts about a GPU that NVML gave a handle for, and lists as `place`.

    `instances` are its MIG instances, None where MIG is off.
    """
    yield responding(asker, sighting)
    yield _granted(asker, sighting, instances) or listed(place)
    fabric = sighting["extra"].get("fabric")
    if fabric in _FABRIC:
        yield broken("runtime", "fabric-not-ready", _FABRIC[fabric])


def listed(place: str) -> Fact:
    """Return the fact that NVML lists the device, at `place`."""
    return fact("granted", "ok", f"NVML lists it as {place}")


def responding(asker: Asker, sighting: Sighting) -> Fact:
    """Return whether the GPU or MIG instance answers, and at its full speed."""
    if asker.lost:
        return TABLE[HANDLE, asker.lost_code].fact(asker.lost)
    ecc = sighting.get("ecc", {})
    if ecc.get("remap_failed"):
        reason = "nvmlDeviceGetRemappedRows: a row could not be remapped"
        return broken("responding", "row-remap-failed", reason)
    if asker.faults:
        return fact("responding", "unknown", _faults(asker)[:250])
    if ecc.get("remap_pending"):
        reason = "nvmlDeviceGetRemappedRows: rows wait for a reset"
        return broken("responding", "row-remap-pending", reason)
    if not asker.answers:
        return fact("responding", "unknown", "NVML answered no query about it")
    answered = fact("responding", "ok", f"NVML answered {asker.answers} queries")
    return _slowed(sighting.get("power", {})) or answered


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


def _granted(asker: Asker, sighting: Sighting, instances: Sequence[object] | None) -> Fact | None:
    """Return what keeps the GPU from this process, None where nothing does."""
    if asker.refused >= _REFUSED:
        reason = f"{name_of(NO_PERMISSION)} from {', '.join(sorted(_REFUSED))}"
        return broken("granted", "not-granted", reason)
    if sighting.get("compute_mode") == "prohibited":
        return broken("granted", "compute-prohibited", "nvmlDeviceGetComputeMode: 2, prohibited")
    if instances is not None and not instances and not asker.lost:
        reason = "nvmlDeviceGetMigMode: enabled; no instance is listed"
        return broken("granted", "mig-without-instances", reason)
    return None


def findings(asker: Asker, sighting: Sighting) -> Iterator[Finding]:
    """Yield what a person should know about a GPU that NVML gave a handle for."""
    device = sighting["ids"][0]
    name = sighting.get("name") or f"GPU {device}"
    for step in sighting["step_facts"]:
        if step["status"] == "broken" and (cause := TABLE.get((STATE, step["code"]))):
            yield cause.finding(name, device, step["evidence"])
    if asker.faults and not asker.lost:
        yield TABLE[STATE, "gpu-errors"].finding(name, device, why=_faults(asker))
    if sighting["extra"].get("virtualization") == "vgpu":
        yield TABLE[STATE, "vgpu-guest"].finding(name, device)


def _faults(asker: Asker) -> str:
    return ", ".join(f"{field}: {name_of(code)}" for field, code in asker.faults.items())
