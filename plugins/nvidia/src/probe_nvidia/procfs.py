"""Identity without a library: what the kernel driver says in /proc/driver/nvidia.

These files print what the driver remembers (nv_procfs_read_gpu_info in nv-procfs.c of
open-gpu-kernel-modules): reading them neither initialises nor wakes a GPU.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Machine

__all__ = ["ProcCard", "cards", "driver_version"]

FOLDER = "/proc/driver/nvidia"
_ADDRESS = set("0123456789abcdefABCDEF:.")  # `int` also takes signs and underscores


class ProcCard:
    """One GPU: its model and UUID (None when the driver does not know them yet)."""

    __slots__ = ("excluded", "model", "uuid")

    def __init__(self, facts: dict[str, str]) -> None:
        self.model = _known(facts.get("Model"))
        self.uuid = _known(facts.get("GPU UUID"))
        self.excluded = facts.get("GPU Excluded") == "Yes"


def cards(machine: Machine) -> dict[str, ProcCard]:
    """Return the GPUs of the loaded driver by PCI id (``pci:0000:01:00.0``)."""
    found = {}
    for address in machine.listdir(f"{FOLDER}/gpus"):
        identity = pci_identity(address)
        text = machine.read(f"{FOLDER}/gpus/{address}/information")
        if identity and text is not None:
            found[identity] = ProcCard(_facts(text))
    return found


def driver_version(machine: Machine) -> str | None:
    """Return the loaded kernel driver's version ("580.95.05"), None when it is not loaded.

    The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue …", or
    "… Open Kernel Module for x86_64  580.95.05  Release Build …".
    """
    text = machine.read(f"{FOLDER}/version") or ""
    line = next((one for one in text.splitlines() if one.startswith("NVRM version")), "")
    for word in line.split():
        if word.replace(".", "").isdecimal() and "." in word:
            return word
    return None


def pci_identity(address: str) -> str | None:
    """Return ``pci:dddd:bb:dd.f`` of an address with a domain of any length; None when it is none.

    NVML writes the domain with eight digits, the kernel with four: numbers, never cut
    (GB10 sits in domain 000f, VMD domains begin at 10000).
    """
    if not set(address) <= _ADDRESS:
        return None
    domain, _, rest = address.partition(":")
    bus, _, rest = rest.partition(":")
    device, _, function = rest.partition(".")
    try:
        numbers = [int(part, 16) for part in (domain, bus, device, function)]
    except ValueError:
        return None
    if numbers[0] >= 0xFFFF_FFFF or numbers[1] > 0xFF or numbers[2] > 0x1F or numbers[3] > 7:
        return None
    return "pci:{:04x}:{:02x}:{:02x}.{:x}".format(*numbers)


def _facts(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _known(value: str | None) -> str | None:
    # Before first use the driver prints question marks in place of the UUID's digits.
    return value if value and "?" not in value and value != "Unknown" else None
