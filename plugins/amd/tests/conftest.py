"""Builds the /sys of machines with AMD GPUs, from figures of real ones where a test says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_amd.prober import probe_devices
from probe_core.api import Machine, NotApplicable, Request

KFD = "/sys/class/kfd/kfd/topology/nodes"


class Tree:
    """A folder that stands for / and is filled file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("/proc/sys/kernel/osrelease", "6.12.9")

    def file(self, path: str, content: object) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{content}\n")

    def link(self, path: str, target: str) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        here = "/" + str(place.parent.relative_to(self.root))
        up = "../" * len(Path(here).parts[1:])
        place.symlink_to(up + target.lstrip("/"))

    def memory(self, total_kb: int, available_kb: int) -> None:
        self.file("/proc/meminfo", f"MemTotal: {total_kb} kB\nMemAvailable: {available_kb} kB")

    def card(
        self,
        address: str,
        device: str,
        *,
        driver: str | None = "amdgpu",
        status: str = "active",
        drm: tuple[int, int] | None = None,
        under: str = "/sys/devices/pci0000:00",
        vendor: str = "0x1002",
        pci_class: str = "0x030000",
        **files: object,
    ) -> str:
        """Add a PCI function below the folder `under`; returns its folder."""
        folder = f"{under}/{address}"
        identity = {"vendor": vendor, "device": device, "revision": "0xc8", "class": pci_class}
        for name, content in (identity | files).items():
            self.file(f"{folder}/{name}", content)
        self.file(f"{folder}/power/runtime_status", status)
        if driver:
            (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
            self.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")
        if drm:
            self.file(f"{folder}/drm/card{drm[0]}/dev", f"226:{drm[0]}")
            self.file(f"{folder}/drm/renderD{drm[1]}/dev", f"226:{drm[1]}")
        self.link(f"/sys/bus/pci/devices/{address}", folder)
        return folder

    def cpu_node(self, number: int = 0) -> None:
        self.file(f"{KFD}/{number}/properties", "cpu_cores_count 16\nsimd_count 0\nlocation_id 0")

    def node(self, number: int, bank: dict[str, int] | None = None, **properties: int) -> None:
        self.file(f"{KFD}/{number}/properties", _lines(properties))
        if bank:
            self.file(f"{KFD}/{number}/mem_banks/0/properties", _lines(bank))

    def io_link(self, number: int, name: int, **properties: int) -> None:
        self.file(f"{KFD}/{number}/io_links/{name}/properties", _lines(properties))

    def probe(self, bus: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
        """Run the prober on what was built; returns devices and findings."""
        said = probe_devices(Request(Machine(str(self.root)), bus))
        return [said] if isinstance(said, NotApplicable) else list(said)  # type: ignore[list-item]

    def devices(self) -> dict[str, dict[str, Any]]:
        return {one["ids"][0]: one for one in self.probe() if "ids" in one}

    def findings(self) -> list[dict[str, Any]]:
        return [one["finding"] for one in self.probe() if "finding" in one]


def _lines(properties: dict[str, int]) -> str:
    return "\n".join(f"{name} {value}" for name, value in properties.items())


@pytest.fixture(scope="session")
def new_tree() -> type[Tree]:
    """Return the builder of a machine, for those that a test places itself."""
    return Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
