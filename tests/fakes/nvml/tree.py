"""Builds the file side of a machine with NVIDIA GPUs: what /sys and /proc show of them.

For tests of probers and of the whole: an invented machine in a temporary folder, that
`probe_core.machine.Machine` reads as its root.
"""

from __future__ import annotations

from pathlib import Path

from probe_core import testing

NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (invented)\n"


class Tree(testing.Tree):
    """A machine's root folder that grows NVIDIA GPUs."""

    def add_pci(
        self,
        address: str,
        device: str,
        *,
        driver: str | None = "nvidia",
        power: str = "active",
        subsystem: str = "10de:0000",
        link: bool = True,
        under: str = "/sys/devices/pci0000:00",
    ) -> str:
        """Add a PCI device of NVIDIA; `device` is the four hex digits, `address` dddd:bb:dd.f."""
        return self.pci(
            address,
            f"10de:{device}",
            driver=driver,
            power=power,
            under=under,
            subsystem=subsystem,
            link=(16, 16.0) if link else None,
            max_link=(16, 32.0) if link else None,
            revision="0xa1",
            numa_node=0,
        )

    def add_driver(self, version: str = "580.95.05") -> None:
        """Add the loaded kernel driver's own version file."""
        self.file("/proc/driver/nvidia/version", NVRM.format(version))

    def add_information(
        self,
        address: str,
        model: str,
        uuid: str | None,
        *,
        minor: int | None = 0,
        excluded: bool = False,
    ) -> None:
        """Add what the kernel driver says of a GPU; `uuid` None as before its first use."""
        lines = [
            f"Model: \t\t {model}",
            "IRQ:   \t\t 184",
            *([f"GPU UUID: \t {uuid}"] if uuid else []),
            f"Bus Location: \t {address}",
            *([f"Device Minor: \t {minor}"] if minor is not None else []),
            f"GPU Excluded:\t {'Yes' if excluded else 'No'}",
        ]
        self.file(f"/proc/driver/nvidia/gpus/{address}/information", "\n".join([*lines, ""]))


H100_ADDRESSES = tuple(f"0000:{bus}:00.0" for bus in "1b 43 52 61 9d c3 d1 df".split())


def eight_h100(root: Path) -> Tree:
    """Return the file side of the profile ``h100x8``."""
    tree = Tree(root)
    tree.add_driver()
    for number, address in enumerate(H100_ADDRESSES):
        tree.add_pci(address, "2330", subsystem="10de:16c1")
        uuid = f"GPU-a1000000-0000-4000-8000-00000000000{number}"
        tree.add_information(address, "NVIDIA H100 80GB HBM3", uuid, minor=number)
    return tree
