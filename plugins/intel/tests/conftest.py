"""Builds the /sys of machines with Intel devices; figures of real ones where a test says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core import testing
from probe_core.api import Machine, NotApplicable, Request
from probe_core.pipeline.validate import check_sighting
from probe_intel.prober import probe_devices


class Tree(testing.Tree):
    """A machine that grows Intel's devices."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.release("6.14.2")
        self.memory(32_000_000, 20_000_000)

    def function(
        self,
        address: str,
        device: str,
        driver: str | None,
        *,
        vendor: str = "0x8086",
        pci_class: str = "0x030000",
        status: str = "active",
        **options: Any,
    ) -> str:
        """Add a PCI function, of Intel unless `vendor` says another; ids are as in /sys."""
        ids = f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}"
        options = {"pci_class": pci_class.removeprefix("0x"), "revision": "0x08", **options}
        return self.pci(address, ids, driver=driver, power=status, **options)

    def behind_switch(self, root_port: str = "0000:00:01.0") -> str:
        """Add a root port and the switch on an Arc card; returns the folder for the GPU, 03:00.0.

        The slot gives 16 GT/s x8; below the switch all links say 2.5 GT/s x1.
        """
        slot: Any = {"link": (8, 16.0), "max_link": (16, 16.0)}
        inner: Any = {"link": (1, 2.5), "max_link": (1, 2.5)}
        port = self.bridge(root_port, "8086:a70d", **slot)
        up = self.bridge("0000:01:00.0", "8086:4fa1", under=port, **slot)
        return self.bridge("0000:02:01.0", "8086:4fa4", under=up, **inner)

    def items(
        self, bus: tuple[dict[str, Any], ...] = (), avoid: tuple[str, ...] = ()
    ) -> list[dict[str, Any]]:
        """Run the prober on what was built; every device must pass the core's own checks."""
        answer = probe_devices(Request(Machine(str(self.root)), bus, avoid=avoid))
        assert not isinstance(answer, NotApplicable)
        items = list(answer)
        for item in items:
            assert "finding" in item or check_sighting(item)[1] == []
        return items

    def devices(self) -> dict[str, dict[str, Any]]:
        return {item["ids"][0]: item for item in self.items() if "ids" in item}

    def single(self) -> dict[str, Any]:
        (device,) = self.devices().values()
        return device

    def steps(self) -> list[tuple[str, str, str | None]]:
        """Return what the prober learnt of steps of readiness, device by device."""
        facts = [fact for item in self.items() for fact in item.get("step_facts", ())]
        return [(fact["step"], fact["status"], fact["code"]) for fact in facts]


@pytest.fixture(scope="session")
def new_tree() -> type[Tree]:
    """Return the builder of a machine, for those that a test places itself."""
    return Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
