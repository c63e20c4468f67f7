"""Exact answers for healthy machines: the real nvidia-ml-py over the fake library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probe_core.api import Request
from probe_core.probers import bus
from probe_nvidia.walk import _bus_id

Ask = Callable[..., dict[str, Any]]
Steps = Callable[[dict[str, Any]], dict[str, tuple[str, str | None]]]

PROFILES = Path(__file__).resolve().parents[3] / "tests" / "fakes" / "nvml" / "profiles"
CLOCK_BY = "NVML's maximum SM clock: an upper bound, not the boost clock"
BANDWIDTH_BY = "computed: 2 transfers x memory_max_mhz x bus_width_bits / 8"
DRIVER = {"name": "nvidia", "version": "580.95.05", "cuda": "13.0"}


def h100(number: int, address: str) -> dict[str, Any]:
    return {
        "ids": [
            f"pci:0000:{address}:00.0",
            f"uuid:GPU-a1000000-0000-4000-8000-00000000000{number}",
        ],
        "kind": "gpu",
        "vendor": "nvidia",
        "backends": ["cuda"],
        "node_index": {"nvml": number},
        "extra": {
            "clock_by": CLOCK_BY,
            "bandwidth_by": BANDWIDTH_BY,
            "nvlink": {"links": 18, "active": 18},
            "fabric": "completed",
        },
        "name": "NVIDIA H100 80GB HBM3",
        "compute_capability": "9.0",
        "cores": 16896,
        "units": 132,
        "bus_width_bits": 5120,
        "bandwidth": 3352320000000,
        "memory": {
            "kind": "dedicated",
            "total": 85520809984,
            "free": 84913684480,
            "used": 6291456,
            "usable": 84919975936,
            "parts": {"vram": 85520809984, "reserved": 600834048},
        },
        "processes": 3 if number == 1 else 0,
        "clocks": {"max_mhz": 1980, "memory_max_mhz": 2619},
        "links": [
            {
                "kind": "nvlink",
                "peer": None,
                "count": 18,
                "to": "switch",
                "bandwidth": 18 * 26562000000,
            }
        ],
        "power": {
            "limit_watts": 700.0,
            "default_watts": 700.0,
            "max_watts": 700.0,
            "reasons": ["idle"],
        },
        "ecc": {
            "enabled": True,
            "pending": True,
            "remapped": 0,
            "remap_pending": False,
            "remap_failed": False,
        },
        "compute_mode": "default",
        "persistence": True,
        "power_state": "active",
        "driver": DRIVER,
        "pci": {"id": "10de:2330", "subsystem": "10de:16c1"},
        "nodes": [f"/dev/nvidia{number}", "/dev/nvidiactl", "/dev/nvidia-uvm"],
        "step_facts": [
            {
                "step": "library",
                "status": "ok",
                "evidence": "nvmlInit succeeded, driver 580.95.05",
            },
            # One more from the first: how many links boards like it have.
            {
                "step": "responding",
                "status": "ok",
                "evidence": f"NVML answered {10 if number else 11} queries",
            },
            {"step": "granted", "status": "ok", "evidence": f"NVML lists it as GPU {number} of 8"},
        ],
    }


UNSET = {
    "ecc.enabled": "nvmlDeviceGetEccMode",
    "persistence": "nvmlDeviceGetPersistenceMode",
    "power.limit_watts": "nvmlDeviceGetPowerManagementLimit",
    "power.default_watts": "nvmlDeviceGetPowerManagementDefaultLimit",
    "power.max_watts": "nvmlDeviceGetPowerManagementLimitConstraints",
    "power.reasons": "nvmlDeviceGetCurrentClocksEventReasons",
}


def unset(*fields: str) -> dict[str, str]:
    return {field: f"NVML_ERROR_NOT_SUPPORTED from {UNSET[field]}" for field in fields}


@pytest.mark.heavy
def test_eight_h100_behind_switches(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    trees.eight_h100(tmp_path)
    said = ask("h100x8", tmp_path)
    addresses = "1b 43 52 61 9d c3 d1 df".split()
    assert said["devices"] == [h100(n, address) for n, address in enumerate(addresses)]
    assert said["findings"] == []


@pytest.mark.parametrize(("has_links", "calls"), [(False, 89), (True, 98)])
def test_eight_gpus_take_fewer_than_a_hundred_calls(
    ask: Ask, trees: ModuleType, tmp_path: Path, has_links: bool, calls: int
) -> None:
    """With 1 ms a call each costs a millisecond."""
    trees.eight_h100(tmp_path)
    lines = (PROFILES / "h100x8.profile").read_text().splitlines()
    unwanted = () if has_links else ("nvlink", "fabric")
    profile = "\n".join(line for line in lines if not line.startswith(unwanted))
    logs = tmp_path / "calls", tmp_path / "calls-side-by-side"
    said = ask(f"{profile}\n", tmp_path, log=logs[0])
    slow = profile.replace("\ngpu\n", "\ngpu\non * sleep 1\n") + "\n"
    beside = ask(slow, tmp_path, log=logs[1], threads=True)
    assert len(said["devices"]) == 8
    assert [len(log.read_text().split()) for log in logs] == [calls, calls]
    assert beside["devices"] == said["devices"]


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["h100x8", "a100-mig", "3090-pair", "4090-3090", "lost-call"])
def test_a_slow_driver_gives_the_same_report(ask: Ask, trees: ModuleType, name: str) -> None:
    """Of GPUs that are asked side by side: devices, findings, and their order."""
    profile = (PROFILES / f"{name}.profile").read_text()
    slow = "\n".join(
        f"{line}\non * sleep 1" if line == "gpu" or line.startswith("mig ") else line
        for line in profile.splitlines()
    )
    fast = ask(profile)
    beside = ask(f"{slow}\n", threads=True)
    assert any(isinstance(device, list) for device in beside["touched"]) == (name != "a100-mig")
    assert {**beside, "touched": []} == {**fast, "touched": []}


def test_sysfs_spares_four_calls_a_gpu(ask: Ask, trees: ModuleType, tmp_path: Path) -> None:
    trees.eight_h100(tmp_path)
    log = tmp_path / "calls"
    ask("h100x8", tmp_path, log=log)
    calls = log.read_text().split()
    assert not [call for call in calls if "Pcie" in call]
    assert calls.count("nvmlInit") == 1
    # The child ends without it: a shutdown that hangs would cost what was read already.
    assert calls.count("nvmlShutdown") == 0
    # 10 questions to each and its fabric, 6 and the states of the links to one of equal boards.
    assert len(calls) == 3 + 6 + 1 + 8 * (10 + 1)


@pytest.mark.heavy
def test_two_different_cards(ask: Ask) -> None:
    new, old = ask("4090-3090")["devices"]
    assert (new["name"], new["units"], new["cores"]) == ("NVIDIA GeForce RTX 4090", 128, 16384)
    assert new["memory"] == {
        "kind": "dedicated",
        "total": 25757220864,
        "free": 24872222720,
        "used": 522190848,
        "usable": 25394413568,
        "parts": {"vram": 25757220864, "reserved": 362807296},
    }
    assert new["bandwidth"] == 1008096000000
    assert new["pci"] == {"id": "10de:2684", "subsystem": "1043:889a"}
    assert new["links"] == [
        {
            "kind": "pcie",
            "peer": None,
            "local_generation": 1,
            "local_gts": 2.5,
            "local_width": 16,
            "local_bandwidth": 4_000_000_000,
            "local_max_gts": 16.0,
            "local_max_width": 16,
        }
    ]
    assert "own PCIe hop" in new["unknown"]["links.bandwidth"]
    assert (old["name"], old["units"], old["bandwidth"]) == (
        "NVIDIA GeForce RTX 3090",
        82,
        936096000000,
    )
    assert old["extra"]["nvlink"] == {"links": 4, "active": 0}
    assert [link["kind"] for link in old["links"]] == ["pcie"]


def test_a_switch_with_a_narrow_uplink_limits_the_card_behind_it(
    ask: Ask, trees: ModuleType, tmp_path: Path
) -> None:
    """NVML says x16 of the third generation; the way to the host has four lanes, and sysfs knows.

    So the prober leaves the link to the bus prober's sighting, whose figures the report has.
    """
    tree = trees.Tree(tmp_path)
    tree.add_driver()
    tree.add_pci("0000:04:00.0", "1eb8", under=tree.switch(uplink=(4, 8.0)))
    (gpu,) = ask("t4", tmp_path)["devices"]
    assert "links" not in gpu
    assert "links.bandwidth" not in gpu.get("unknown", {})
    (seen,) = bus.probe_devices(Request(tree.machine()))
    assert seen["ids"] == gpu["ids"][:1]
    assert seen["links"] == [
        {
            "kind": "pcie",
            "peer": None,
            "width": 4,
            "gts": 8.0,
            "generation": 3,
            "bandwidth": 3_938_461_538,
            "local_width": 16,
            "local_gts": 16.0,
            "local_generation": 4,
            "local_bandwidth": 31_507_692_307,
            "local_max_width": 16,
            "local_max_gts": 32.0,
            "limited_by": "0000:01:00.0",
        }
    ]


def test_bridge_between_two_cards(ask: Ask) -> None:
    first, second = ask("3090-pair")["devices"]
    bridge = {"kind": "nvlink", "count": 4, "to": "gpu", "bandwidth": 56248000000}
    assert first["links"][1] == bridge | {"peer": second["ids"][0]}
    assert second["links"][1] == bridge | {"peer": first["ids"][0]}


@pytest.mark.heavy
def test_fabric_manager_that_does_not_run(ask: Ask, fake: ModuleType) -> None:
    text = (fake.PROFILES / "h100x8.profile").read_text()
    said = ask(text.replace("fabric 3", "fabric 1", 1))
    assert [gpu["extra"]["fabric"] for gpu in said["devices"][:2]] == ["not-started", "completed"]
    (finding,) = said["findings"]
    assert (finding["code"], finding["device"]) == ("fabric-not-ready", "pci:0000:1b:00.0")
    assert "802" in finding["what"]


def test_laptop(ask: Ask) -> None:
    (gpu,) = ask("laptop")["devices"]
    assert gpu["name"] == "NVIDIA GeForce RTX 4060 Laptop GPU"
    assert (gpu["units"], gpu["memory"]["total"], gpu["bandwidth"]) == (
        24,
        8585740288,
        256032000000,
    )


def test_passed_through_t4(ask: Ask) -> None:
    said = ask("t4")
    (gpu,) = said["devices"]
    assert (gpu["name"], gpu["units"], gpu["compute_capability"]) == ("Tesla T4", 40, "7.5")
    assert gpu["clocks"] == {"max_mhz": 1590, "memory_max_mhz": 5001}
    assert gpu["extra"]["virtualization"] == "passthrough"
    assert said["findings"] == []


def test_virtual_gpu_says_that_it_is_a_share(ask: Ask) -> None:
    said = ask("vgpu")
    (gpu,) = said["devices"]
    assert gpu["ids"][0] == "pci:0000:02:01.0"
    assert gpu["memory"]["total"] == 25769803776
    assert gpu["unknown"] == {
        "cores": "NVML_ERROR_NOT_SUPPORTED from nvmlDeviceGetNumGpuCores",
        "units": "NVML gives neither SMs nor cores",
        "bus_width_bits": "NVML_ERROR_NOT_SUPPORTED from nvmlDeviceGetMemoryBusWidth",
        "bandwidth": "needs the memory clock and the bus width",
        **unset("ecc.enabled", "persistence"),
        **unset("power.limit_watts", "power.default_watts", "power.max_watts", "power.reasons"),
    }
    assert [(f["code"], f["severity"]) for f in said["findings"]] == [("vgpu-guest", "info")]


def test_name_that_is_no_utf8(ask: Ask) -> None:
    (gpu,) = ask("bad-name")["devices"]
    assert gpu["name"] == "Tesla \ufffdT4\ufffd"
    assert gpu["memory"]["total"] == 16106127360


def test_compute_mode_prohibited(ask: Ask, steps: Steps) -> None:
    profile = "driver 1.0\ngpu\nname A\npci 00000000:01:00.0 0x1EB810DE 0\ncompute-mode 2\n"
    said = ask(profile)
    (gpu,) = said["devices"]
    assert gpu["compute_mode"] == "prohibited"
    assert steps(gpu)["granted"] == ("broken", "compute-prohibited")
    assert gpu["pci"] == {"id": "10de:1eb8"}
    assert [(f["code"], f["severity"]) for f in said["findings"]] == [
        ("compute-prohibited", "info")
    ]


def test_domain_beyond_four_digits(ask: Ask) -> None:
    said = ask("gpu\nname A\npci 00010000:E1:00.0 0x1EB810DE 0\n")
    assert said["devices"][0]["ids"] == ["pci:10000:e1:00.0"]


def test_old_driver_answers_what_it_can(ask: Ask) -> None:
    (gpu,) = ask("old-driver")["devices"]
    assert gpu["driver"] == {"name": "nvidia", "version": "384.111"}
    assert gpu["memory"] == {
        "kind": "dedicated",
        "total": 17066885120,
        "free": 17066885120,
        "used": 0,
        "usable": 17066885120,
        "parts": {"vram": 17066885120},
    }
    fields = ["bandwidth", "bus_width_bits", "cores", "links.bandwidth", "processes", "units"]
    assert sorted(set(gpu["unknown"]) - set(UNSET)) == fields


def test_old_nvidia_ml_py_lacks_functions(ask: Ask) -> None:
    lacking = [
        "nvmlDeviceGetNumGpuCores",
        "nvmlDeviceGetMemoryBusWidth",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetComputeMode",
        "nvmlDeviceGetPersistenceMode",
        "nvmlMemory_v2",
        "nvmlSystemGetCudaDriverVersion_v2",
    ]
    (gpu,) = ask("t4", without=lacking)["devices"]
    assert gpu["unknown"] == {
        "cores": "this nvidia-ml-py has no nvmlDeviceGetNumGpuCores",
        "units": "NVML gives neither SMs nor cores",
        "bus_width_bits": "this nvidia-ml-py has no nvmlDeviceGetMemoryBusWidth",
        "bandwidth": "needs the memory clock and the bus width",
        "links.bandwidth": "NVML gives the GPU's own PCIe hop, not the bridges between it and the"
        " host",
        "compute_mode": "this nvidia-ml-py has no nvmlDeviceGetComputeMode",
        "persistence": "this nvidia-ml-py has no nvmlDeviceGetPersistenceMode",
    }
    assert gpu["processes"] == 0
    assert gpu["memory"]["parts"] == {"vram": 16106127360, "reserved": 470810624}
    assert gpu["driver"] == DRIVER


@pytest.mark.parametrize(
    ("identity", "written"),
    [("pci:0000:1b:00.0", b"00000000:1B:00.0"), ("pci:10000:01:00.0", b"00010000:01:00.0")],
)
def test_an_address_is_written_as_nvml_prints_it(identity: str, written: bytes) -> None:
    """Domains of Intel's VMD begin at 0x10000."""
    assert _bus_id(identity) == written


@pytest.mark.parametrize(
    ("refused", "link"),
    [
        ((), {"local_width": 16, "local_gts": 8.0, "local_generation": 3,
              "local_bandwidth": 15_753_846_153, "local_max_width": 16, "local_max_gts": 8.0}),
        (("CurrPcieLinkWidth",), {"local_gts": 8.0, "local_generation": 3, "local_max_width": 16,
                                  "local_max_gts": 8.0}),
        (("CurrPcieLinkGeneration", "MaxPcieLinkGeneration"),
         {"local_width": 16, "local_max_width": 16}),
        (("CurrPcieLinkWidth", "CurrPcieLinkGeneration", "MaxPcieLinkWidth",
          "MaxPcieLinkGeneration"), None),
    ],
)  # fmt: skip
def test_each_figure_of_its_hop_stands_alone(
    ask: Ask, fake: ModuleType, refused: tuple[str, ...], link: dict[str, Any] | None
) -> None:
    profile = (fake.PROFILES / "t4.profile").read_text()
    rules = "".join(f"on nvmlDeviceGet{call} 3\n" for call in refused)
    (gpu,) = ask(profile + rules)["devices"]
    expected = [{"kind": "pcie", "peer": None, **link}] if link else None
    assert gpu.get("links") == expected
