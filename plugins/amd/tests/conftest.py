"""Builds the /sys of machines with AMD GPUs, from figures of real ones where a test says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_amd.prober import probe_devices
from probe_core import testing
from probe_core.api import Machine, NotApplicable, Request

KFD = "/sys/class/kfd/kfd/topology/nodes"


class Tree(testing.Tree):
    """A machine that grows AMD GPUs, and the nodes by which KFD knows them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.release("6.12.9")

    def card(
        self,
        address: str,
        device: str,
        *,
        driver: str | None = "amdgpu",
        status: str = "active",
        vendor: str = "0x1002",
        pci_class: str = "0x030000",
        **options: Any,
    ) -> str:
        """Add a PCI function, of AMD unless `vendor` says another; ids are as in /sys (0x744c)."""
        ids = f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}"
        options = {"pci_class": pci_class.removeprefix("0x"), "revision": "0xc8", **options}
        return self.pci(address, ids, driver=driver, power=status, **options)

    def cpu_node(self, number: int = 0) -> None:
        self.file(f"{KFD}/{number}/properties", "cpu_cores_count 16\nsimd_count 0\nlocation_id 0")

    def kfd_node(self, number: int, bank: dict[str, int] | None = None, **properties: int) -> None:
        self.file(f"{KFD}/{number}/properties", _lines(properties))
        if bank:
            self.file(f"{KFD}/{number}/mem_banks/0/properties", _lines(bank))

    def io_link(self, number: int, name: int, **properties: int) -> None:
        self.file(f"{KFD}/{number}/io_links/{name}/properties", _lines(properties))

    def closed(self, number: int, content: str | None = "") -> None:
        """Add a KFD node that may not be read; a folder in the file's place fails for root, too."""
        if content is None:
            (self.root / f"{KFD}/{number}/properties".lstrip("/")).mkdir(parents=True)
        else:
            self.file(f"{KFD}/{number}/properties", content)

    def probe(
        self, bus: tuple[dict[str, Any], ...] = (), avoid: tuple[str, ...] = ()
    ) -> list[dict[str, Any]]:
        """Run the prober on what was built; returns devices and findings."""
        answer = probe_devices(Request(Machine(str(self.root)), bus, avoid=avoid))
        return [answer] if isinstance(answer, NotApplicable) else list(answer)  # type: ignore[list-item]

    def devices(self) -> dict[str, dict[str, Any]]:
        return {item["ids"][0]: item for item in self.probe() if "ids" in item}

    def steps(self) -> dict[str, list[tuple[str, str, str | None]]]:
        """Return what the prober learnt of steps of readiness, by device."""
        return {
            identity: [(f["step"], f["status"], f["code"]) for f in device.get("step_facts", ())]
            for identity, device in self.devices().items()
        }

    def findings(self) -> list[dict[str, Any]]:
        return [item["finding"] for item in self.probe() if "finding" in item]


def _lines(properties: dict[str, int]) -> str:
    return "\n".join(f"{name} {value}" for name, value in properties.items())


@pytest.fixture(scope="session")
def new_tree() -> type[Tree]:
    """Return the builder of a machine, for those that a test places itself."""
    return Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
