"""The patch's own code, under exo's names, in a gathering loop over faked machines."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from exo_stand_in import patched

import probe_core
from probe_core.machine import Machine
from probe_core.recording import open_machine
from probe_exo import node_compute, node_interfaces, node_memory
from probe_exo.memory import MemoryReader, close_samplers

ROOT = Path(__file__).parents[3]
KIB, GIB = 1 << 10, 1 << 30


Probed = Callable[..., dict[str, Any]]
AMD = {"amd": "probe_amd.prober"} if importlib.util.find_spec("probe_amd") else {}


def linux(folder: Path) -> Machine:
    """Return a Linux machine with 62 GiB."""
    meminfo = folder / "proc" / "meminfo"
    meminfo.parent.mkdir(parents=True)
    meminfo.write_text("MemTotal: 65536000 kB\nMemAvailable: 40000000 kB\n")
    return Machine(str(folder), os="linux", arch="x86_64")


def card(slot: int, name: str, pci: str, total: int, free: int) -> dict[str, Any]:
    return {
        "ids": [f"pci:0000:{slot:02x}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": name,
        "pci": {"id": pci},
        "memory": {"kind": "dedicated", "total": total, "free": free},
        "backends": ["cuda"],
    }


CARDS = [
    card(1, "NVIDIA GeForce RTX 4090", "10de:2684", 24 * GIB, 23 * GIB),
    card(2, "NVIDIA GeForce RTX 3090", "10de:2204", 24 * GIB, 20 * GIB),
]
GB10 = [
    {
        "ids": ["pci:000f:01:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA GB10",
        "memory": {"kind": "unified", "total": 125_513_920 * KIB},
        "backends": ["cuda"],
    }
]
MAC = [
    {
        "ids": ["soc:gpu"],
        "kind": "gpu",
        "vendor": "apple",
        "name": "Apple M3 Ultra",
        "units": 80,
        "memory": {"kind": "unified", "total": 384 * GIB, "free": 300 * GIB},
        "backends": ["metal"],
    }
]


@pytest.fixture
def probed(tmp_path: Path) -> Probed:
    """Probe a machine, with what a made-up prober finds there."""

    def probe(machine: Machine, devices: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        if devices is None:
            return probe_core.probe(machine=machine, probers=AMD).to_json()
        path = tmp_path / "devices.json"
        path.write_text(json.dumps(devices))
        environ = {"EXO_TEST_DEVICES": str(path)}
        given = Machine(machine.root, environ, machine.os, machine.arch)
        return probe_core.probe(machine=given, probers={"given": "exo_given_prober"}).to_json()

    return probe


def usage(machine: Machine, report: dict[str, Any]) -> Any:
    """Return what exo gathers of a machine once it is patched."""
    reader = MemoryReader(machine, report)
    names = patched(lambda max_age_s: reader.read({}, max_age_s))
    return names["MemoryUsage"].from_node()


def summary(told: Any) -> tuple[int | None, int, bool | None, int]:
    """Return usable bytes in all, those for placement, whether a GPU counts, and how many."""
    usable = None if told.usable_total is None else told.usable_total.in_bytes
    return usable, told.placeable.in_bytes, told.accelerated, len(told.accelerators)


def test_a_4090_and_a_3090(probed: Probed, tmp_path: Path) -> None:
    machine = linux(tmp_path / "cards")
    report = probed(machine, CARDS)
    told = usage(machine, report)
    assert summary(told) == (48 * GIB, 43 * GIB, True, 2)
    assert told.ram_available.in_bytes == 40_000_000 * KIB
    assert [(gpu.name, gpu.available.in_bytes) for gpu in told.accelerators] == [
        ("NVIDIA GeForce RTX 4090", 23 * GIB),
        ("NVIDIA GeForce RTX 3090", 20 * GIB),
    ]
    compute = node_compute(report)
    assert compute.fp16_tflops == pytest.approx(165.15072 + 71.16, abs=0.1)
    assert compute.memory_bandwidth == pytest.approx(2 / (1 / 1008e9 + 1 / 936.192e9), rel=1e-3)


@pytest.mark.skipif(not AMD, reason="probe-amd is not installed")
def test_strix_halo(probed: Probed) -> None:
    machine = Machine(str(ROOT / "plugins/exo/examples/machines/strix-halo"))
    told = usage(machine, probed(machine))
    # GTT and carve-out: the GPU reaches 120.5 GiB of the system's memory, 114.4 GiB of it free.
    assert summary(told) == (128_849_018_880 + 536_870_912, 120_000_000 * KIB, True, 0)
    assert told.ram_total.in_bytes == 131_000_000 * KIB


def board(name: str, probed: Probed, devices: list[dict[str, Any]] | None = None) -> Any:
    with open_machine(str(ROOT / "tests" / "machines" / f"{name}.json")) as machine:
        report = probed(machine, devices)
        return usage(machine, report), node_compute(report)


def test_gb10(probed: Probed) -> None:
    told, compute = board("dgx-spark--nvidia-gb10", probed, GB10)
    assert summary(told) == (125_513_920 * KIB, 117_440_512 * KIB, True, 0)
    assert compute.devices == ("pci:000f:01:00.0",)


def test_a_gpu_whose_driver_does_not_answer_is_no_accelerator(probed: Probed) -> None:
    told, compute = board("dgx-spark--nvidia-gb10", probed)
    assert summary(told) == (125_513_920 * KIB, 117_440_512 * KIB, False, 0)
    assert compute.devices == ("cpu:0",)


def test_a_mali_board(probed: Probed) -> None:
    told, compute = board("rock-5b--mali-g610-and-rk3588-npu", probed)
    assert summary(told) == (16_629_014_528, 15_470_641_152, True, 0)
    assert compute.fp16_tflops == 1.024
    assert compute.memory_bandwidth is None


def test_a_mac(probed: Probed, tmp_path: Path) -> None:
    folder = tmp_path / "mac"
    folder.mkdir()
    machine = Machine(str(folder), os="darwin", arch="aarch64")
    report = probed(machine, MAC)
    assert summary(usage(machine, report)) == (384 * GIB, 300 * GIB, True, 0)
    compute = node_compute(report)
    assert (compute.fp16_tflops, compute.memory_bandwidth) == (28.2624, pytest.approx(819.2e9))


class Told(NamedTuple):
    accelerated: bool | None


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        ({"a": True, "b": False}, [["a"]]),
        ({"a": False, "b": False}, [["a"], ["b"], ["a", "b"]]),
        ({"a": True, "b": True}, [["a"], ["b"], ["a", "b"]]),
        ({"a": True, "b": None}, [["a"], ["b"], ["a", "b"]]),
    ],
)
def test_nodes_with_gpus_are_preferred_where_every_node_tells(
    nodes: dict[str, bool | None], kept: list[list[str]]
) -> None:
    prefer = patched(None)["prefer_accelerated_cycles"]
    told = {name: Told(accelerated) for name, accelerated in nodes.items()}
    assert prefer([["a"], ["b"], ["a", "b"]], told) == kept


def test_peaks_stay_when_a_reading_of_now_comes() -> None:
    peaks = patched(None)["_peaks"]
    assert peaks(None) == {}
    compute = SimpleNamespace(flops_fp16=165.2, memory_bandwidth=1.008e12)
    assert peaks(compute) == {"flops_fp16": 165.2, "memory_bandwidth": 1.008e12}


@pytest.mark.heavy
def test_the_loop_sees_memory_that_was_taken_meanwhile(
    given: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    samples = tmp_path / "samples.json"

    def use(*used: int) -> None:
        now = {
            f"pci:0000:0{slot}:00.0": {
                "status": "ok", "memory": {"total": 24 * GIB, "used": amount}
            }
            for slot, amount in enumerate(used, start=1)
        }  # fmt: skip
        fresh = tmp_path / "fresh.json"
        fresh.write_text(json.dumps(now))
        fresh.replace(samples)

    monkeypatch.setenv("EXO_TEST_SAMPLES", str(samples))
    use(1 * GIB, 4 * GIB)
    given(*CARDS)
    usage_of_node = patched(lambda max_age_s: node_memory(max_age_s=0.2))["MemoryUsage"]
    try:
        assert poll(usage_of_node, 43 * GIB).placeable.in_bytes == 43 * GIB
        use(20 * GIB, 4 * GIB)
        later = poll(usage_of_node, 24 * GIB)
        assert later.placeable.in_bytes == 24 * GIB
        assert [gpu.available.in_bytes for gpu in later.accelerators] == [4 * GIB, 20 * GIB]
        assert later.ram_available != later.placeable
    finally:
        close_samplers()


def poll(usage_of_node: Any, wanted: int) -> Any:
    """Gather as exo does, in a thread every second or so, until a figure is there."""

    async def loop() -> Any:
        for _ in range(200):
            told = await asyncio.to_thread(usage_of_node.from_node)
            if told.placeable.in_bytes == wanted:
                break
            await asyncio.sleep(0.1)
        return told

    return asyncio.run(loop())


WIFI = {
    "/sys/class/net/lo/type": "772\n",
    "/sys/class/net/wlan0/type": "1\n",
    "/sys/class/net/wlan0/phy80211/name": "phy0\n",
    "/sys/class/net/wlan0/device/vendor": "0x8086\n",
    "/sys/class/net/eth0/type": "1\n",
    "/sys/class/net/eth0/device/vendor": "0x15b3\n",
    "/sys/class/net/eth0/speed": "100000\n",
    "/sys/class/net/eth1/type": "1\n",
    "/sys/class/net/eth1/device/vendor": "0x8086\n",
    "/sys/class/net/eth1/speed": "-1\n",
    "/sys/class/net/docker0/type": "1\n",
    "/sys/class/net/docker0/speed": "10000\n",
    "/sys/class/net/bonding_masters": "bond0\n",
}


def test_interfaces_have_their_kind_and_speed(machine: Callable[..., Machine]) -> None:
    here = machine(WIFI)
    folder = Path(here.root) / "sys/class/net"
    (folder / "tb0/device").mkdir(parents=True)
    (folder / "tb0/type").write_text("1\n")
    driver = Path(here.root) / "sys/bus/thunderbolt/drivers/thunderbolt-net"
    driver.mkdir(parents=True)
    (folder / "tb0/device/driver").symlink_to("../../../../bus/thunderbolt/drivers/thunderbolt-net")
    told = {name: (link.kind, link.mbits) for name, link in node_interfaces(here).items()}
    assert told == {
        "lo": ("unknown", None),
        "wlan0": ("wifi", None),
        "eth0": ("ethernet", 100_000.0),
        "eth1": ("ethernet", None),
        "docker0": ("unknown", None),
        "tb0": ("thunderbolt", None),
    }
