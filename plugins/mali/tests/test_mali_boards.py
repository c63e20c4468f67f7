"""Boards under each of the four drivers, and what is odd about them; trees after the bindings."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.api import NotApplicable

KIB = 1024


def rk3588(board: Any, **files: Any) -> None:
    board.soc("radxa,rock-5b", "rockchip,rk3588")
    board.node("/gpu@fb000000", "rockchip,rk3588-mali", "arm,mali-valhall-csf")
    board.gpu("fb000000.gpu", "/gpu@fb000000", **files)


def test_arms_own_driver_tells_everything(board: Any) -> None:
    rk3588(
        board, driver="mali", misc=0, gpuinfo="Mali-G610 4 cores r0p0 0xA867",
        devfreq__fb000000gpu__available_frequencies="300000000 850000000 1000000000",
        devfreq__fb000000gpu__max_freq="1000000000",
    )  # fmt: skip
    board.file("sys/module/mali_kbase/version", "r44p0-01eac0 (UK version 11.24)\n")
    (gpu,) = board.probe()
    assert gpu == {
        "ids": ["dt:/gpu@fb000000"], "kind": "gpu", "vendor": "arm",
        "name": "Mali-G610", "units": 4, "gpu_id": "arm:0xa867",
        "dt": ["rockchip,rk3588-mali", "arm,mali-valhall-csf", "radxa,rock-5b", "rockchip,rk3588"],
        "driver": {
            "name": "mali", "version": "r44p0-01eac0 (UK version 11.24)", "version_of": "module",
        },
        "power_state": "active", "node_index": {"mali": 0}, "nodes": ["/dev/mali0"],
        "clocks": {"max_mhz": 1000.0},
        "memory": {
            "kind": "unified", "total": 16_000_000 * KIB, "usable": 16_000_000 * KIB,
            "free": 12_000_000 * KIB, "parts": {"system": 16_000_000 * KIB},
        },
        "extra": {"revision": "r0p0", "found_by": ["sysfs"]},
        "unknown": {},
    }  # fmt: skip


@pytest.mark.parametrize("driver", ["panthor", "panfrost", "lima"])
def test_mainline_drivers_leave_the_model_to_the_device_tree(board: Any, driver: str) -> None:
    rk3588(board, driver=driver, render=128)
    board.file("sys/class/devfreq/fb000000.gpu/max_freq", "1000000000\n")
    (gpu,) = board.probe()
    assert gpu["driver"] == {"name": driver, "version": "6.12.9", "version_of": "kernel"}
    assert gpu["node_index"] == {"drm_render": 128}
    assert gpu["nodes"] == ["/dev/dri/renderD128"]
    assert gpu["clocks"] == {"max_mhz": 1000.0}
    assert "name" not in gpu
    why = f"{driver} gives it only to programs that open the device"
    assert {gpu["unknown"][field] for field in ("name", "units", "gpu_id")} == {why}


def test_a_node_below_soc_keeps_its_whole_path(board: Any) -> None:
    board.soc("pine64,pine-h64", "allwinner,sun50i-h6")
    board.node("/soc/gpu@1800000", "allwinner,sun50i-h6-mali", "arm,mali-t720")
    board.gpu("1800000.gpu", "/soc/gpu@1800000", "panfrost")
    (gpu,) = board.probe()
    assert gpu["ids"] == ["dt:/soc/gpu@1800000"]
    assert gpu["dt"][:2] == ["allwinner,sun50i-h6-mali", "arm,mali-t720"]


def test_without_a_device_tree_the_platform_name_is_the_id(board: Any) -> None:
    board.gpu("e82c0000.mali", None, "mali", misc=0, gpuinfo="Mali-G71 MP8 r0p0 0x6000")
    (gpu,) = board.probe()
    assert gpu["ids"] == ["mali:e82c0000.mali"]
    assert (gpu["name"], gpu["units"], gpu["gpu_id"]) == ("Mali-G71", 8, "arm:0x6000")
    assert "dt" not in gpu


def test_an_administrators_limit_is_not_the_hardwares(board: Any) -> None:
    rk3588(
        board, driver="panthor", devfreq__a__available_frequencies="300000000 1000000000",
        devfreq__a__max_freq="600000000",
    )  # fmt: skip
    (gpu,) = board.probe()
    assert gpu["clocks"] == {"max_mhz": 1000.0, "limit_mhz": 600.0}


@pytest.mark.parametrize(
    ("steps", "limit", "clocks"),
    [
        ("300000000 1000000000", "1000000000", {"max_mhz": 1000.0}),
        ("300000000 1000000000", "999000000", {"max_mhz": 1000.0, "limit_mhz": 999.0}),
        ("300000000 1000000000", "1", {"max_mhz": 1000.0, "limit_mhz": 1e-6}),
        ("300000000", "0", {"max_mhz": 300.0}),
        ("300000000", "", {"max_mhz": 300.0}),
        ("", "800000000", {"max_mhz": 800.0}),
        ("fast 300000000 -1 0x9999999999", "0", {"max_mhz": 300.0}),
        (f"300000000 {10**19}", "0", {"max_mhz": 1e13}),  # 20 digits hold a number of 64 bits
        (f"300000000 {10**20}", "0", {"max_mhz": 300.0}),
        ("", "0", None),
    ],
)
def test_clocks_are_the_highest_step_and_a_lower_limit(
    board: Any, steps: str, limit: str, clocks: dict[str, float] | None
) -> None:
    rk3588(
        board, driver="panthor", devfreq__a__available_frequencies=steps, devfreq__a__max_freq=limit
    )  # fmt: skip
    (gpu,) = board.probe()
    assert gpu.get("clocks") == clocks
    assert ("clocks.max_mhz" in gpu["unknown"]) == (clocks is None)


@pytest.mark.parametrize("length", [79, 80, 300])
def test_a_line_that_is_none_is_quoted_to_eighty_characters(board: Any, length: int) -> None:
    rk3588(board, driver="mali", misc=0, gpuinfo="x" * length)
    (gpu,) = board.probe()
    shown = "x" * min(length, 80)
    assert gpu["unknown"]["name"] == f"gpuinfo does not report it: {shown!r}"


def test_a_driver_of_arm_without_its_device_is_no_gpu(board: Any) -> None:
    board.soc("radxa,rock-5b", "rockchip,rk3588")
    board.file("/sys/class/misc/mali1/dev", "10:125")
    # A module may have parameters of the name "driver", its folder of a driver no device.
    board.file("/sys/bus/platform/drivers/mali/module/driver/name", "mali")
    (said,) = board.probe()
    assert isinstance(said, NotApplicable)


def test_a_gpu_without_a_driver_is_told(board: Any) -> None:
    rk3588(board)
    (gpu,) = board.probe()
    assert gpu["ids"] == ["dt:/gpu@fb000000"]
    assert gpu["unknown"]["name"] == "no driver"
    (fact,) = gpu["step_facts"]
    assert (fact["step"], fact["status"]) == ("driver", "broken")
    assert fact["code"] == "module-not-loaded"
    assert fact["evidence"].startswith("/sys/devices/platform/fb000000.gpu/driver is absent")


def test_a_gpu_that_a_loaded_module_leaves_alone_has_no_known_cause(board: Any) -> None:
    rk3588(board)
    board.file("/sys/module/panthor/refcnt", 0)
    (fact,) = board.probe()[0]["step_facts"]
    assert (fact["status"], fact["code"]) == ("broken", None)
    assert fact["evidence"].endswith("driver is absent, though /sys/module/panthor is there")


def test_a_gpu_to_avoid_is_known_from_the_tree_alone(board: Any) -> None:
    rk3588(board, driver="mali", misc=0, gpuinfo="Mali-G610 4 cores r0p0 0xA867")
    (gpu,) = board.probe(avoid=("dt:/gpu@fb000000",))
    assert "name" not in gpu
    assert gpu["driver"]["name"] == "mali"
    assert [(f["step"], f["code"]) for f in gpu["step_facts"]] == [("responding", "driver-hangs")]


def test_a_node_that_the_board_disables_is_no_gpu(board: Any) -> None:
    board.soc("radxa,rock-5b", "rockchip,rk3588")
    board.node("/gpu@fb000000", "rockchip,rk3588-mali", "arm,mali-valhall-csf", status="disabled")
    board.gpu("fb000000.gpu", "/gpu@fb000000")
    (said,) = board.probe()
    assert isinstance(said, NotApplicable)
    assert said.reason == "no Mali GPU"


def test_an_adreno_board_is_not_applicable(board: Any) -> None:
    board.soc("lenovo,thinkpad-x13s", "qcom,sc8280xp")
    board.node("/soc@0/gpu@3d00000", "qcom,adreno-690.0", "qcom,adreno")
    board.gpu("3d00000.gpu", "/soc@0/gpu@3d00000", "adreno")
    (said,) = board.probe()
    assert isinstance(said, NotApplicable)


def test_the_bus_probers_driverless_gpu_is_found_among_the_platform_devices(board: Any) -> None:
    rk3588(board)
    board.node("/npu@fdab0000", "rockchip,rk3588-rknpu")
    board.gpu("fdab0000.npu", "/npu@fdab0000")
    bus = (
        {"ids": ["dt:/gpu@fb000000"], "kind": "gpu", "dt": ["rockchip,rk3588-mali",
                                                            "arm,mali-valhall-csf"]},
        {"ids": ["dt:/npu@fdab0000"], "kind": "npu", "dt": ["rockchip,rk3588-rknpu"]},
    )  # fmt: skip
    (gpu,) = board.probe(bus)
    assert gpu["ids"] == ["dt:/gpu@fb000000"]
    assert gpu["step_facts"][0]["code"] == "module-not-loaded"


def test_a_gpu_seen_three_ways_is_one(board: Any) -> None:
    rk3588(board, driver="mali", misc=0, gpuinfo="Mali-G610 4 cores r0p0 0xA867")
    bus = ({"ids": ["dt:/gpu@fb000000"], "kind": "gpu", "dt": ["arm,mali-valhall-csf"]},)
    assert len(board.probe(bus)) == 1


def test_missing_memory_and_clock_files_say_so(board: Any) -> None:
    rk3588(board, driver="panfrost")
    (board.root / "proc/meminfo").unlink()
    (gpu,) = board.probe()
    assert gpu["memory"] == {"kind": "unified"}
    assert gpu["unknown"]["memory.total"] == "/proc/meminfo gives no MemTotal"
    assert gpu["unknown"]["clocks.max_mhz"] == "devfreq has no frequencies for this GPU"


def test_a_garbled_gpuinfo_costs_only_what_it_would_say(board: Any) -> None:
    rk3588(board, driver="mali", misc=0, gpuinfo="\x01garbage 9 cores 0x1234")
    (gpu,) = board.probe()
    assert set(gpu["unknown"]) == {"name", "units", "gpu_id", "clocks.max_mhz"}
    assert gpu["unknown"]["units"].startswith("gpuinfo does not report it")
    assert gpu["memory"]["total"] == 16_000_000 * KIB
