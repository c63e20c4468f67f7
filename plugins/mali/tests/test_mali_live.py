"""Live figures of Mali GPUs: clock, temperature, load, and profiling that is off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sampled_here import Round, sample_here

from probe_core.testing import Case, Machine
from probe_mali import prober

GPU = "dt:/gpu@fb000000"
FOLDER = "sys/devices/platform/fb000000.gpu"


@pytest.fixture
def board(new_board: Any, tmp_path: Path) -> Any:
    board = new_board(tmp_path)
    board.soc("radxa,rock-5b", "rockchip,rk3588")
    board.node("/gpu@fb000000", "rockchip,rk3588-mali", "arm,mali-valhall-csf")
    return board


def look(board: Any) -> Round:
    last = sample_here(prober, Case(Machine(str(board.root), arch="aarch64")), count=1)[-1]
    assert last.status == "ok", last.reason
    return last


def test_kbase_shows_clock_and_load(board: Any) -> None:
    board.gpu("fb000000.gpu", "/gpu@fb000000", "mali", misc=0)
    board.file(f"{FOLDER}/devfreq/fb000000.gpu/cur_freq", "850000000\n")
    board.file(f"{FOLDER}/devfreq/fb000000.gpu/load", "37@850000000Hz\n")
    board.file("sys/class/thermal/thermal_zone0/type", "soc-thermal\n")
    board.file("sys/class/thermal/thermal_zone0/temp", "90000\n")
    board.file("sys/class/thermal/thermal_zone5/type", "gpu-thermal\n")
    board.file("sys/class/thermal/thermal_zone5/temp", "52000\n")
    (sample,) = look(board).samples
    assert sample["device"] == GPU
    assert sample["clocks_mhz"] == {"sm": 850}
    assert sample["busy"] == pytest.approx(0.37)
    assert sample["temperature_c"] == pytest.approx(52)
    assert sample["unknown"]["memory"] == "its memory is the system's"


@pytest.mark.parametrize("driver", ["panfrost", "panthor"])
def test_profiling_that_is_off_is_a_reason_with_a_fix(board: Any, driver: str) -> None:
    board.gpu("fb000000.gpu", "/gpu@fb000000", driver, render=128, profiling="0")
    seen = look(board)
    (sample,) = seen.samples
    assert "busy" not in sample
    assert sample["unknown"]["busy"].endswith(f"/profiling is 0, so {driver} counts nothing")
    (finding,) = seen.findings
    assert finding["code"] == "profiling-off"
    assert finding["fix"].startswith("as root: echo 1 > /sys/devices/platform/fb000000.gpu/")


def test_a_gpu_between_two_jobs_is_asleep(board: Any) -> None:
    board.gpu("fb000000.gpu", "/gpu@fb000000", "panfrost", render=128)
    board.file(f"{FOLDER}/power/runtime_status", "suspended\n")
    (sample,) = look(board).samples
    assert sample["status"] == "asleep"
