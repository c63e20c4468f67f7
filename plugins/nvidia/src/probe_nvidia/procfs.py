"""Identity without a library: what the kernel driver says in /proc/driver/nvidia.

These files print what the driver remembers (nv_procfs_read_gpu_info in nv-procfs.c of
open-gpu-kernel-modules): reading them neither initialises nor wakes a GPU.
"""

from __future__ import annotations

from probe_core.sysfs.pci import normal_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine

__all__ = ["ProcCard", "cards", "driver_version"]

FOLDER = "/proc/driver/nvidia"
LIMIT = 8192
"""Bytes of one file, of which the driver writes some twenty short lines."""


class ProcCard:
    """One GPU: its model and UUID (None when the driver does not know them yet)."""

    __slots__ = ("excluded", "model", "uuid")

    def __init__(self, facts: dict[str, str]) -> None:
        self.model = _reported(facts.get("Model"))
        self.uuid = _reported(facts.get("GPU UUID"))
        self.excluded = facts.get("GPU Excluded") == "Yes"


def cards(machine: Machine) -> dict[str, ProcCard]:
    """Return the GPUs of the loaded driver by PCI id (``pci:0000:01:00.0``)."""
    gpus = {}
    for address in machine.listdir(f"{FOLDER}/gpus"):
        identity = normal_id(address)
        text = machine.read(f"{FOLDER}/gpus/{address}/information", LIMIT)
        if identity and text is not None:
            gpus[identity] = ProcCard(_facts(text))
    return gpus


def driver_version(machine: Machine) -> str | None:
    """Return the loaded kernel driver's version ("580.95.05"), None when it is not loaded.

    The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue …", or
    "… Open Kernel Module for x86_64  580.95.05  Release Build …".
    """
    text = machine.read(f"{FOLDER}/version", LIMIT) or ""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version")), "")
    for token in line.split():
        if token.replace(".", "").isdecimal() and "." in token:
            return token
    return None


def _facts(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _reported(value: str | None) -> str | None:
    # Before first use the driver prints question marks in place of the UUID's digits.
    return value if value and "?" not in value and value != "Unknown" else None
