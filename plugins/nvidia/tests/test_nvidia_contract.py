"""The contract, on a server with seven H100 and an A100 in MIG mode: real client, fake NVML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from probe_core.testing import Case, Machine, ProberContract

A100 = "0000:3b:00.0"


class TestNvidia(ProberContract):
    name = "nvidia"
    target = "probe_nvidia.prober"
    project = Path(__file__).parents[1]
    may = frozenset({"library"})

    @pytest.fixture(autouse=True)
    def fakes(
        self,
        request: pytest.FixtureRequest,
        fake: ModuleType,
        trees: ModuleType,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        self.fixtures, self.fake, self.trees = request, fake, trees
        self.profiles = tmp_path_factory.mktemp("profiles")

    def hardware(self, root: Path) -> Case:
        mig = (self.fake.PROFILES / "a100-mig.profile").read_text()
        return self.case(root, self.fake.many(7) + mig[mig.index("gpu\n") :])

    def sampled(self, root: Path) -> Case:
        figures = "utilization 25 5\ntemperature 51\nusage 90000\nclocks-now 900 900 1200 900\n"
        mig = (self.fake.PROFILES / "a100-mig.profile").read_text()
        whole = self.fake.many(7).replace("mig-mode", f"{figures}mig-mode")
        return self.case(root, whole + mig[mig.index("gpu\n") :])

    def broken(self, root: Path) -> Mapping[str, Case]:
        return {
            "the driver is not loaded": self.case(root / "9", "on nvmlInit 9\n", 1),
            "the library is another version's": self.case(root / "18", "on nvmlInit 18\n", 1),
            "no permission": self.case(root / "4", "on nvmlInit 4\n", 1),
            "the driver does not answer": self.case(root / "10", "on nvmlDeviceGetCount 10\n", 1),
            "no GPU in the container": self.case(root / "0", "driver 580.95.05\n", 1),
            "a lost GPU": self.case(root / "15", "gpu\non handle 15\n", 1),
        }

    def lacking(self, root: Path) -> Mapping[str, Case]:
        (root / "sys/module/nvidia_drm").mkdir(parents=True)
        return {"the library alone": self.live(root, self.fake.many(1))}

    def case(self, root: Path, profile: str, h100s: int = 7) -> Case:
        """Return a machine with GPUs on its bus, about which NVML answers by a profile."""
        tree = self.trees.Tree(root)
        tree.add_driver()
        tree.memory(263_000_000, 250_000_000)
        for number in range(h100s):
            address = f"0000:{number + 1:02x}:00.0"
            tree.add_pci(address, "2330", subsystem="10de:16c1")
            uuid = f"GPU-00000000-0000-4000-8000-{number:012x}"
            tree.add_information(address, "NVIDIA H100 80GB HBM3", uuid)
        tree.add_pci(A100, "20b0", subsystem="10de:134f")
        return self.live(root, profile)

    def live(self, root: Path, profile: str) -> Case:
        """Return the machine that lies below `root`, with the library of a profile."""
        path = self.profiles / f"{root.name}.profile"
        path.write_text(profile)
        library: Path = self.fixtures.getfixturevalue("library")
        variables = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_PROFILE": str(path)}
        return Case(Machine(str(root)), live=True, variables=variables)

    def test_the_machine_is_the_one_described(self, tmp_path: Path) -> None:
        _, run = self.found(tmp_path)
        assert len(run.sightings) == 11
        assert [one["parent"] for one in run.sightings if "parent" in one] == [f"pci:{A100}"] * 3
