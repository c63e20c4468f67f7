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

__all__ = ["failed", "kept", "of_device"]

_RESET = "drain the node and reset the GPU (nvidia-smi -r) or reboot; look for Xid in dmesg"

# Code of a fact → severity, sentence about the device, why (None: the evidence), fix.
_SENTENCES: dict[str, tuple[str, str, str | None, str]] = {
    "gpu-lost": ("error", "{} does not answer any more", None, _RESET),
    "gpu-reset-required": ("error", "{} does not answer any more", None, _RESET),
    "row-remap-failed": (
        "error",
        "{} has faulty memory that could not be replaced",
        "a row of its memory fails, and no spare row is left for it (row remapping)",
        "drain the node and have the card replaced; nvidia-smi -q -d ROW_REMAPPER",
    ),
    "row-remap-pending": (
        "warning",
        "{} has faulty rows of memory that the next reset replaces",
        "rows of its memory failed; spare rows take their place at a reset (row remapping)",
        "reset the GPU (nvidia-smi -r -i N) or reboot when no program uses it",
    ),
    "power-capped": (
        "info",
        "{} may draw less power than it is sold with",
        None,
        "nothing, if that is intended; else as root: nvidia-smi -pl WATTS",
    ),
    "thermal-slowdown": (
        "warning",
        "{} is slowed down by heat",
        None,
        "check fans, airflow, dust and the room; nvidia-smi -q -d TEMPERATURE,PERFORMANCE",
    ),
    "compute-prohibited": (
        "info",
        "no program may compute on {}",
        "its compute mode is PROHIBITED",
        "as root: nvidia-smi -c DEFAULT",
    ),
    "not-granted": (
        "info",
        "{} is not granted to this process",
        None,
        "if it is needed, let this process open its /dev/nvidia node: its mode, the device cgroup",
    ),
    "mig-without-instances": (
        "warning",
        "{} is in MIG mode and has no instance",
        "in MIG mode programs can use instances only, and none was created or granted",
        "create instances (nvidia-smi mig -cgi … -C), or turn MIG off (nvidia-smi -mig 0)",
    ),
    "fabric-not-ready": (
        "warning",
        "CUDA will not start on {} (error 802, system not yet initialized)",
        "its NVSwitch fabric is not set up: the fabric manager does that",
        "start nvidia-fabricmanager, of the driver's version (systemctl status …, its log)",
    ),
}


def of_device(asker: Asker, sighting: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings about a GPU that NVML gave a handle for."""
    device = sighting["ids"][0]
    name = sighting.get("name") or f"GPU {device}"
    for fact in sighting["step_facts"]:
        if fact["status"] == "broken":
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
    severity, what, why, fix = _SENTENCES[fact["code"]]
    return finding(
        fact["code"],
        severity=severity,
        what=what.format(name),
        why=why or fact["evidence"],
        fix=fix,
        device=device,
        step=fact["step"],
        evidence=fact["evidence"],
    )


def failed(key: int | str, fact: Fact, device: str | None) -> Finding:
    """Return the finding about a GPU that NVML counts but gives no handle for.

    `key` is its index or its PCI id, `device` the id under which it is reported, if it is.
    """
    which = device or f"number {key} of NVML"
    is_kept = fact["step"] == "granted"
    return finding(
        fact["code"],
        severity="info" if is_kept else "error",
        what=f"GPU {which} is not granted to this process" if is_kept else f"GPU {which} fails",
        why=fact["evidence"],
        fix=_SENTENCES["not-granted"][3] if is_kept else _RESET,
        device=device,
        step=fact["step"],
        evidence=fact["evidence"],
    )


def kept(code: str, cause: Cause, ids: Sequence[str], evidence: str) -> Finding:
    """Return the finding about GPUs of the kernel driver that NVML keeps from this process."""
    names = ", ".join(ids)
    what = f"NVML does not list {names}" if code == "gpu-not-listed" else f"{names}: not granted"
    return finding(
        code,
        severity=cause.severity,
        what=what,
        why=cause.why,
        fix=cause.fix,
        device=ids[0],
        step=cause.step,
        evidence=evidence,
    )
