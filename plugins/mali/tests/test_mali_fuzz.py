"""Whatever the files of a board with a Mali hold, the prober answers; see tests/fuzz."""

from __future__ import annotations

from typing import Any

import pytest
from foreign import CHANCES, Chance, devices_in, files_of, write_files
from hypothesis import given

from probe_core.api import Machine, Request
from probe_mali.gpuinfo import GpuInfo
from probe_mali.prober import probe_devices

LINES = (
    b"Mali-G610 4 cores r0p0 0xA867\n",
    b"Mali-T60x MP4 r0p0 0x6956\n",
    b"(Unknown Mali GPU) 7 cores r0p1 0xC870\n",
)


def build(board: Any) -> dict[str, bytes]:
    board.soc("radxa,rock-5b", "rockchip,rk3588")
    board.node("/gpu@fb000000", "rockchip,rk3588-mali", "arm,mali-valhall-csf", status="okay")
    board.gpu(
        "fb000000.gpu", "/gpu@fb000000", driver="mali", misc=0, render=128,
        gpuinfo="Mali-G610 4 cores r0p0 0xA867",
        devfreq__fb000000gpu__available_frequencies="300000000 1000000000",
        devfreq__fb000000gpu__max_freq="1000000000",
    )  # fmt: skip
    return files_of(board.root)


@pytest.mark.heavy
@given(CHANCES)
def test_files(board: Any, chance: Chance) -> None:
    board.examples = getattr(board, "examples", None) or build(board)
    write_files(board.root, chance.files(board.examples))
    devices_in(probe_devices(Request(Machine(str(board.root), arch="aarch64"))))


@given(CHANCES)
def test_the_line_of_arms_driver(chance: Chance) -> None:
    info = GpuInfo(chance.mutate(*LINES).decode("utf-8", "replace"))
    assert info.cores is None or info.cores > 0
    assert info.gpu_id is None or info.gpu_id.startswith("arm:0x")
