"""Builds the file side of a machine with NVIDIA GPUs: what /sys and /proc show of them.

For tests of probers and of the whole: an invented machine in a temporary folder, that
`probe_core.machine.Machine` reads as its root.
"""

from __future__ import annotations

from pathlib import Path

NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (invented)\n"


class Tree:
    """A machine's root folder that grows NVIDIA GPUs."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        """Write a file at an absolute path of the machine."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def add_pci(
        self,
        address: str,
        device: str,
        *,
        driver: str | None = "nvidia",
        power: str = "active",
        subsystem: str = "10de:0000",
        link: bool = True,
    ) -> None:
        """Add a PCI device of NVIDIA; `device` is the four hex digits, `address` dddd:bb:dd.f."""
        folder = f"/sys/bus/pci/devices/{address}"
        vendor, _, board = subsystem.partition(":")
        facts = {
            "class": "0x030000",
            "vendor": "0x10de",
            "device": f"0x{device}",
            "subsystem_vendor": f"0x{vendor}",
            "subsystem_device": f"0x{board}",
            "revision": "0xa1",
            "numa_node": "0",
            "power/runtime_status": power,
        }
        if link:
            facts |= {"current_link_speed": "16.0 GT/s PCIe", "current_link_width": "16"}
            facts |= {"max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"}
        for name, value in facts.items():
            self.write(f"{folder}/{name}", value + "\n")
        if driver:
            home = self.root / "sys/bus/pci/drivers" / driver
            home.mkdir(parents=True, exist_ok=True)
            (self.root / folder.lstrip("/") / "driver").symlink_to(f"../../drivers/{driver}")

    def add_driver(self, version: str = "580.95.05") -> None:
        """Add the loaded kernel driver's own version file."""
        self.write("/proc/driver/nvidia/version", NVRM.format(version))

    def add_information(
        self, address: str, model: str, uuid: str | None, *, excluded: bool = False
    ) -> None:
        """Add what the kernel driver says of a GPU; `uuid` None as before its first use."""
        lines = [
            f"Model: \t\t {model}",
            "IRQ:   \t\t 184",
            *([f"GPU UUID: \t {uuid}"] if uuid else []),
            f"Bus Location: \t {address}",
            f"GPU Excluded:\t {'Yes' if excluded else 'No'}",
        ]
        self.write(f"/proc/driver/nvidia/gpus/{address}/information", "\n".join([*lines, ""]))

    def add_meminfo(self, total_kib: int, available_kib: int) -> None:
        """Add the system's memory in KiB."""
        text = f"MemTotal: {total_kib} kB\nMemFree: 1 kB\nMemAvailable: {available_kib} kB\n"
        self.write("/proc/meminfo", text)


H100_ADDRESSES = tuple(f"0000:{bus}:00.0" for bus in "1b 43 52 61 9d c3 d1 df".split())


def eight_h100(root: Path) -> Tree:
    """Return the file side of the profile ``h100x8``."""
    tree = Tree(root)
    tree.add_driver()
    for number, address in enumerate(H100_ADDRESSES):
        tree.add_pci(address, "2330", subsystem="10de:16c1")
        uuid = f"GPU-a1000000-0000-4000-8000-00000000000{number}"
        tree.add_information(address, "NVIDIA H100 80GB HBM3", uuid)
    return tree
