"""Builds the /sys of machines with Intel devices; figures of real ones where a test says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request
from probe_core.pipeline.validate import check_sighting
from probe_intel.prober import probe_devices


class Tree:
    """A folder that stands for / and is filled file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("/proc/sys/kernel/osrelease", "6.14.2")
        self.file("/proc/meminfo", "MemTotal: 32000000 kB\nMemAvailable: 20000000 kB")

    def file(self, path: str, content: object) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{content}\n")

    def link(self, path: str, target: str) -> None:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        here = "/" + str(place.parent.relative_to(self.root))
        place.symlink_to("../" * len(Path(here).parts[1:]) + target.lstrip("/"))

    def function(
        self,
        address: str,
        device: str,
        driver: str | None,
        *,
        vendor: str = "0x8086",
        pci_class: str = "0x030000",
        status: str = "active",
        under: str = "/sys/devices/pci0000:00",
        **files: object,
    ) -> str:
        """Add a PCI function below the folder `under`; returns its folder."""
        folder = f"{under}/{address}"
        identity = {"vendor": vendor, "device": device, "revision": "0x08", "class": pci_class}
        for name, content in (identity | files).items():
            self.file(f"{folder}/{name}", content)
        self.file(f"{folder}/power/runtime_status", status)
        if driver:
            (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
            self.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")
        self.link(f"/sys/bus/pci/devices/{address}", folder)
        return folder

    def behind_switch(self, root_port: str = "0000:00:01.0") -> str:
        """Add a root port and the switch on an Arc card; returns the folder for the GPU, 03:00.0.

        The slot gives 16 GT/s x8; below the switch all links say 2.5 GT/s x1.
        """
        slot = {"current_link_speed": "16.0 GT/s PCIe", "current_link_width": 8,
                "max_link_speed": "16.0 GT/s PCIe", "max_link_width": 16}  # fmt: skip
        bridge = {"driver": "pcieport", "pci_class": "0x060400"}
        port = self.function(root_port, "0xa70d", **bridge, **slot)  # type: ignore[arg-type]
        up = self.function("0000:01:00.0", "0x4fa1", under=port, **bridge, **slot)  # type: ignore[arg-type]
        return self.function("0000:02:01.0", "0x4fa4", under=up, **bridge, **INNER)  # type: ignore[arg-type]

    def said(self, bus: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
        """Run the prober on what was built; every device must pass the core's own checks."""
        answer = probe_devices(Request(Machine(str(self.root)), bus))
        assert not isinstance(answer, NotApplicable)
        items = list(answer)
        for item in items:
            assert "finding" in item or check_sighting(item)[1] == []
        return items

    def devices(self) -> dict[str, dict[str, Any]]:
        return {one["ids"][0]: one for one in self.said() if "ids" in one}

    def one(self) -> dict[str, Any]:
        (device,) = self.devices().values()
        return device

    def findings(self) -> list[dict[str, Any]]:
        return [one["finding"] for one in self.said() if "finding" in one]


INNER = {
    "current_link_speed": "2.5 GT/s PCIe", "current_link_width": 1,
    "max_link_speed": "2.5 GT/s PCIe", "max_link_width": 1,
}  # fmt: skip


@pytest.fixture(scope="session")
def new_tree() -> type[Tree]:
    """Return the builder of a machine, for those that a test places itself."""
    return Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
