"""What a person should know about a GPU that answers badly, or not at all."""

from __future__ import annotations

from probe_core.api import finding
from probe_nvidia.codes import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.ask import Asker

    Finding = dict[str, Any]

__all__ = ["failed", "not_listed", "of_device"]

_LOST = "NVML_ERROR_GPU_IS_LOST"
_RESET = "drain the node and reset the GPU (nvidia-smi -r) or reboot; look for Xid in dmesg"


def of_device(asker: Asker, sighting: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings about a GPU that NVML gave a handle for."""
    device = sighting["ids"][0]
    name = sighting.get("name") or f"GPU {device}"
    if asker.lost:
        code = "gpu-lost" if _LOST in asker.lost else "gpu-reset-required"
        yield _broken(code, f"{name} does not answer any more", asker.lost, device)
    elif asker.faults:
        faults = ", ".join(f"{field}: {name_of(code)}" for field, code in asker.faults.items())
        yield _broken("gpu-errors", f"{name} answers some questions with errors", faults, device)
    if sighting["extra"].get("fabric") in ("not-started", "in-progress"):
        yield _fabric(sighting["extra"]["fabric"], name, device)
    if sighting["extra"].get("virtualization") == "vgpu":
        yield finding(
            "vgpu-guest",
            severity="info",
            what=f"{name} is a virtual GPU: its memory is a share, its speed is shared in time",
            why="the hypervisor divides the card (NVIDIA vGPU): the chip's peak is an upper bound",
            fix="nothing, if that is intended",
            device=device,
        )
    if sighting["extra"].get("compute_mode") == "prohibited":
        yield finding(
            "compute-prohibited",
            what=f"no program may compute on {name}",
            why="its compute mode is PROHIBITED",
            fix="as root: nvidia-smi -c DEFAULT",
            device=device,
        )


def failed(index: int, reason: str, device: str | None) -> Finding:
    """Return the finding about a GPU that NVML counts but gives no handle for."""
    which = device or f"number {index} of NVML"
    return _broken(
        "gpu-lost" if _LOST in reason else "gpu-errors", f"GPU {which} fails", reason, device
    )


def not_listed(ids: list[str]) -> Finding:
    """Return the finding about GPUs on the bus that the driver's library does not list."""
    return finding(
        "gpu-not-listed",
        severity="info",
        what=f"NVML does not list {', '.join(ids)}",
        why="the bus shows them; in a container only the GPUs given to it can be used",
        fix="in a container, pass more GPUs (--gpus, NVIDIA_VISIBLE_DEVICES); else see dmesg",
        device=ids[0],
    )


def _fabric(state: str, name: str, device: str) -> Finding:
    return finding(
        "fabric-not-ready",
        what=f"CUDA will not start on {name} (error 802, system not yet initialized)",
        why=f"its NVSwitch fabric is {state.replace('-', ' ')}: the fabric manager sets it up",
        fix="start nvidia-fabricmanager, of the driver's version (systemctl status …, its log)",
        device=device,
    )


def _broken(
    code: str, sentence: str, reason: str, device: str | None, step: str = "responding"
) -> Finding:
    return finding(
        code, severity="error", what=sentence, why=reason, fix=_RESET, device=device, step=step
    )
