"""What a person should know about a GPU that answers badly, is kept back, or does not answer."""

from __future__ import annotations

from probe_core.api import finding
from probe_nvidia.codes import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from probe_nvidia.ask import Asker
    from probe_nvidia.causes import Cause
    from probe_nvidia.facts import Fact

    Finding = dict[str, Any]

__all__ = ["failed", "of_device", "restricted"]

_RESET = "drain the node and reset the GPU (nvidia-smi -r) or reboot; look for Xid in dmesg"
_NOT_INTENDED = "nothing, if that is intended; else "

# Of the facts that have more to say than the core, which makes a finding of each broken step; {} is
# the device's name. Without "why" the evidence says it.
_SENTENCES: dict[str, dict[str, str]] = {
    entry["code"]: entry
    for entry in (
        {
            "code": "gpu-lost",
            "severity": "error",
            "what": "{} does not answer any more",
            "fix": _RESET,
        },
        {
            "code": "gpu-reset-required",
            "severity": "error",
            "what": "{} does not answer any more",
            "fix": _RESET,
        },
        {
            "code": "compute-prohibited",
            "severity": "info",
            "what": "no program may compute on {}",
            "why": "its compute mode is PROHIBITED",
            "fix": _NOT_INTENDED + "as root: nvidia-smi -c DEFAULT",
        },
        {
            "code": "mig-without-instances",
            "severity": "info",
            "what": "{} is in MIG mode and has no instance",
            "why": "in MIG mode programs can use instances only, and none was created or granted",
            "fix": "create instances (nvidia-smi mig -cgi … -C), or turn MIG off (-mig 0)",
        },
        {
            "code": "fabric-not-ready",
            "severity": "warning",
            "what": "CUDA will not start on {} (error 802, system not yet initialized)",
            "why": "its NVSwitch fabric is not set up: the fabric manager does that",
            "fix": "start nvidia-fabricmanager, of the driver's version; see its log",
        },
    )
}


def of_device(asker: Asker, sighting: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings about a GPU that NVML gave a handle for."""
    device = sighting["ids"][0]
    name = sighting.get("name") or f"GPU {device}"
    for fact in sighting["step_facts"]:
        if fact["status"] == "broken" and fact["code"] in _SENTENCES:
            yield _of_fact(fact, name, device)
    if asker.faults and not asker.lost:
        faults = ", ".join(f"{field}: {name_of(code)}" for field, code in asker.faults.items())
        yield finding(
            "gpu-errors",
            severity="error",
            what=f"{name} answers some questions with errors",
            why=faults,
            fix=_RESET,
            device=device,
            step="responding",
        )
    if sighting["extra"].get("virtualization") == "vgpu":
        yield finding(
            "vgpu-guest",
            severity="info",
            what=f"{name} is a virtual GPU: its memory is a share, its speed is shared in time",
            why="the hypervisor divides the card (NVIDIA vGPU): the chip's peak is an upper bound",
            fix="nothing, if that is intended",
            device=device,
        )


def _of_fact(fact: Fact, name: str, device: str) -> Finding:
    sentences = _SENTENCES[fact["code"]]
    return finding(
        fact["code"],
        severity=sentences["severity"],
        what=sentences["what"].format(name),
        why=sentences.get("why", fact["evidence"]),
        fix=sentences["fix"],
        device=device,
        step=fact["step"],
        evidence=fact["evidence"],
    )


def failed(key: int | str, fact: Fact, device: str | None) -> Finding:
    """Return the finding about a GPU that NVML counts but gives no handle for.

    `key` is its index or its PCI id, `device` the id under which it is reported, if it is.
    """
    name = f"GPU {device or f'number {key} of NVML'}"
    if fact["step"] == "granted":
        return finding(
            "gpu-not-listed",
            severity="info",
            what=f"{name} is not granted to this process",
            why=fact["evidence"],
            fix=_NOT_INTENDED + "check the mode of its /dev/nvidia node and the device cgroup",
            device=device,
            step=fact["step"],
            evidence=fact["evidence"],
        )
    is_known = fact["code"] in ("gpu-lost", "gpu-reset-required")
    return finding(
        fact["code"] if is_known else "gpu-errors",
        severity="error",
        what=f"{name} fails",
        why=fact["evidence"],
        fix=_RESET,
        device=device,
        step=fact["step"],
        evidence=fact["evidence"],
    )


def restricted(cause: Cause, ids: Sequence[str], evidence: str) -> Finding:
    """Return the finding about GPUs of the kernel driver that this process cannot use."""
    return finding(
        "gpu-not-listed",
        severity=cause.severity,
        what=f"NVML does not list {', '.join(ids)}",
        why=cause.reason,
        fix=cause.fix,
        device=ids[0],
        step=cause.step,
        evidence=evidence,
    )
