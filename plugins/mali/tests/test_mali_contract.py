"""The contract, on a board with a Mali under Arm's own driver and a second under panfrost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probe_core.testing import Case, Machine, ProberContract


@pytest.mark.heavy
class TestMali(ProberContract):
    name = "mali"
    target = "probe_mali.prober"
    project = Path(__file__).parents[1]

    @pytest.fixture(autouse=True)
    def builder(self, new_board: Any) -> None:
        self.new_board = new_board

    def board(self, root: Path) -> Any:
        board = self.new_board(root)
        board.soc("radxa,rock-5b", "rockchip,rk3588")
        board.node("/gpu@fb000000", "rockchip,rk3588-mali", "arm,mali-valhall-csf")
        return board

    def hardware(self, root: Path) -> Case:
        board = self.board(root)
        board.gpu(
            "fb000000.gpu", "/gpu@fb000000", "mali", misc=0,
            gpuinfo="Mali-G610 4 cores r0p0 0xA867",
            devfreq__fb000000gpu__available_frequencies="300000000 850000000 1000000000",
            devfreq__fb000000gpu__max_freq="1000000000",
        )  # fmt: skip
        board.file("sys/module/mali_kbase/version", "r44p0-01eac0 (UK version 11.24)\n")
        board.node("/soc/gpu@1800000", "allwinner,sun50i-h6-mali", "arm,mali-t720")
        board.gpu("1800000.gpu", "/soc/gpu@1800000", "panfrost", render=128)
        return Case(Machine(str(root), arch="aarch64"))

    def sampled(self, root: Path) -> Case:
        case = self.hardware(root)
        for number, (folder, hertz) in enumerate(
            (("fb000000.gpu", 850_000_000), ("1800000.gpu", 432_000_000))
        ):
            place = root / f"sys/devices/platform/{folder}/devfreq/{number}"
            place.mkdir(parents=True)
            (place / "cur_freq").write_text(f"{hertz}\n")
        return case

    def lacking(self, root: Path) -> Mapping[str, Case]:
        board = self.new_board(root)
        board.node("/gpu@fb000000", "arm,mali-valhall-csf", status="disabled")
        board.gpu("fb000000.gpu", "/gpu@fb000000")
        return {"a node that the board disables": Case(Machine(str(root), arch="aarch64"))}

    def broken(self, root: Path) -> Mapping[str, Case]:
        self.board(root).gpu("fb000000.gpu", "/gpu@fb000000")
        return {"no driver": Case(Machine(str(root), arch="aarch64"))}

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 2
