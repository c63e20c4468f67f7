"""Identity without a library: what the kernel driver says in /proc/driver/nvidia.

These files print what the driver remembers (nv_procfs_read_gpu_info in nv-procfs.c of
open-gpu-kernel-modules) and initialise no GPU. Before driver 590 reading ``information`` takes a
power reference (rm_ref_dynamic_power), which resumes a suspended GPU; since then it is cached.
"""

from __future__ import annotations

from probe_core.sysfs.pci import normal_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from probe_core.api import Machine

__all__ = ["ProcCard", "cards", "driver_version", "is_open", "major", "wakes"]

FOLDER = "/proc/driver/nvidia"
LIMIT = 8192
"""Bytes of one file, of which the driver writes some twenty short lines."""

_CACHED_SINCE = 590


class ProcCard:
    """One GPU: its model and UUID (None when the driver does not know them yet).

    `minor` is the number of its device node, `excluded` whether NVreg_ExcludedGpus names it.
    """

    __slots__ = ("excluded", "minor", "model", "uuid")

    def __init__(self, facts: dict[str, str]) -> None:
        self.model = _reported(facts.get("Model"))
        self.uuid = _reported(facts.get("GPU UUID"))
        self.excluded = facts.get("GPU Excluded") == "Yes"
        minor = facts.get("Device Minor", "")
        self.minor = int(minor) if minor.isdecimal() and len(minor) <= 4 else None


def cards(machine: Machine, unread: Collection[str] = ()) -> dict[str, ProcCard]:
    """Return the GPUs of the loaded driver by PCI id (``pci:0000:01:00.0``).

    The files of those in `unread` are left alone: nothing but their presence is known.
    """
    gpus = {}
    for address in machine.listdir(f"{FOLDER}/gpus"):
        identity = normal_id(address)
        if identity and identity in unread:
            gpus[identity] = ProcCard({})
            continue
        text = machine.read(f"{FOLDER}/gpus/{address}/information", LIMIT)
        if identity and text is not None:
            gpus[identity] = ProcCard(_facts(text))
    return gpus


def driver_version(machine: Machine) -> str | None:
    """Return the loaded kernel driver's version ("580.95.05"), None when it is not loaded.

    The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue …", or
    "… Open Kernel Module for x86_64  580.95.05  Release Build …".
    """
    for token in _version_line(machine).split():
        if token.replace(".", "").isdecimal() and "." in token:
            return token
    return None


def is_open(machine: Machine) -> bool:
    """Return whether the loaded driver is the one with open kernel modules."""
    return "Open Kernel Module" in _version_line(machine)


def major(version: str | None) -> int | None:
    """Return the branch of a driver's version: 580 of "580.95.05"."""
    number = (version or "").partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= 4 else None


def wakes(version: str | None) -> bool:
    """Return whether reading a suspended GPU's ``information`` would resume it."""
    return (major(version) or 0) < _CACHED_SINCE


def _version_line(machine: Machine) -> str:
    text = machine.read(f"{FOLDER}/version", LIMIT) or ""
    return next((line for line in text.splitlines() if line.startswith("NVRM version")), "")


def _facts(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _reported(value: str | None) -> str | None:
    # Before first use the driver prints question marks in place of the UUID's digits.
    return value if value and "?" not in value and value != "Unknown" else None
