"""Sleeping devices, hot-plug, processors and the node, on machines made of files."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import probe_core
from probe_core.api import SampleRequest
from probe_core.machine import Machine
from probe_core.sampling import boards
from probe_core.sampling.cpu import CpuSampler, _busy, interfaces, read_times
from probe_core.sampling.node import NODE
from probe_core.sampling.roster import IDLE_S, Idle, Roster
from probe_core.sysfs import rates
from probe_core.sysfs.rates import NEEDS_TWO, WENT_BACK
from probe_core.testing import Tree

CARD = "pci:0000:01:00.0"
OTHER = "pci:0000:02:00.0"

SOURCE = """
asked = []
@hookimpl
def probe_devices():
    return []
@hookimpl
def sample_devices(request):
    for name in NAMES[:2]:
        if not request.skip(name):
            request.touching(name)
            asked.append(name)
            yield {"device": name, "busy": 0.0, "processes": [], "temperature_c": len(asked)}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "tree")
    tree.root.mkdir()
    for address in ("0000:01:00.0", "0000:02:00.0"):
        tree.pci(address, "1ac0:0001", pci_class="120000", driver="acme", power__control="on")
    return tree


def status(tree: Tree, address: str, word: str) -> None:
    tree.file(f"/sys/bus/pci/devices/{address}/power/runtime_status", f"{word}\n")


def test_a_sleeping_device_is_not_asked(stage: Any, tree: Tree) -> None:
    stage.add(SOURCE)
    rounds = stage.rounds(machine=tree.machine())
    assert next(rounds).sample(CARD)["temperature_c"] == 1
    status(tree, "0000:01:00.0", "suspended")
    for _ in range(3):
        sample = next(rounds).sample(CARD)
        assert (sample["status"], sample["temperature_c"]) == ("asleep", None)
    status(tree, "0000:01:00.0", "active")
    # Asked twice in the first round, then three times the other alone.
    assert next(rounds).sample(CARD)["temperature_c"] == 6


def test_an_unsupported_status_is_awake(stage: Any, tree: Tree) -> None:
    status(tree, "0000:01:00.0", "unsupported")
    stage.add(SOURCE)
    (look,) = stage.rounds(1, machine=tree.machine())
    assert look.sample(CARD)["status"] == "ok"


@pytest.mark.heavy
def test_idle_devices_that_may_sleep_are_left_alone(
    stage: Any, tree: Tree, children: Callable[[], list[int]]
) -> None:
    tree.file("/sys/bus/pci/devices/0000:02:00.0/power/control", "auto\n")
    stage.add(SOURCE)
    before = children()
    rounds = stage.rounds(machine=tree.machine())
    for _ in range(int(IDLE_S)):
        assert next(rounds).sample(CARD)["status"] == "ok"
    next(rounds)
    assert children() == before  # its process has ended, and with it every open file
    sample = next(rounds).sample(CARD)
    assert sample["status"] == "unavailable"
    assert "idle for 30 s" in sample["reason"]
    status(tree, "0000:02:00.0", "suspended")
    for _ in range(100):
        assert next(rounds).sample(OTHER)["status"] == "asleep"
    assert children() == before
    status(tree, "0000:02:00.0", "active")
    assert next(rounds).sample(OTHER)["status"] == "ok"


@pytest.mark.heavy
def test_a_device_that_stays_awake_is_left_alone_once(stage: Any, tree: Tree) -> None:
    tree.file("/sys/bus/pci/devices/0000:02:00.0/power/control", "auto\n")
    stage.add("open(__file__ + '.starts', 'a').write('x')\n" + SOURCE)
    rounds = stage.rounds(machine=tree.machine())
    statuses = [next(rounds).sample(CARD)["status"] for _ in range(200)]
    assert statuses[-100:] == ["ok"] * 100
    assert (stage.folder / "stage_acme.py.starts").read_text() == "xx"


def test_work_keeps_a_device_from_being_idle(tree: Tree) -> None:
    tree.file("/sys/bus/pci/devices/0000:01:00.0/power/control", "auto\n")
    roster = Roster(tree.machine())
    entry = roster.add([CARD], "npu", listed=True)
    assert entry
    idle = Idle(tree.machine())
    resting: Any = {"status": "ok", "busy": 0.0, "processes": []}
    busy: Any = {"status": "ok", "busy": 0.01, "processes": []}
    unknown: Any = {"status": "ok", "busy": None, "processes": []}
    used: Any = {"status": "ok", "busy": 0.0, "processes": [{"pid": 1}]}
    assert not idle.note([entry], [resting], 0)
    assert idle.note([entry], [resting], IDLE_S)
    for working in (busy, unknown, used):
        assert not idle.note([entry], [resting, working], IDLE_S + 1)
        assert not idle.note([entry], [resting], IDLE_S + 2)


def test_a_device_left_alone_is_asked_once_it_woke_or_never_slept(tree: Tree) -> None:
    entry = Roster(tree.machine()).add([CARD], "npu", listed=True)
    assert entry
    entry.folder = "/sys/bus/pci/devices/0000:01:00.0"
    idle = Idle(tree.machine())
    assert idle.may_ask([entry], 0.0)  # nobody left it alone
    idle.leave_alone(100.0)
    assert not idle.may_ask([entry], 114.0)  # it has 15 s to fall asleep
    status(tree, "0000:01:00.0", "suspended")
    assert not idle.may_ask([entry], 114.5)
    status(tree, "0000:01:00.0", "active")
    assert idle.may_ask([entry], 114.6)  # somebody woke it
    assert not idle.left_alone
    idle.leave_alone(200.0)
    assert not idle.may_ask([entry], 214.9)
    assert idle.may_ask([entry], 215.0)  # something else keeps it awake: it is not left alone again
    tree.file("/sys/bus/pci/devices/0000:01:00.0/power/control", "auto\n")
    resting: Any = {"status": "ok", "busy": 0.0, "processes": []}
    assert not idle.note([entry], [resting], 300.0)
    assert not idle.note([entry], [resting], 300.0 + IDLE_S)


def test_devices_come_go_and_change(stage: Any, tree: Tree) -> None:
    stage.add(SOURCE)
    rounds = stage.rounds(machine=tree.machine())
    assert next(rounds).events == []
    tree.pci("0000:03:00.0", "1ac0:0001", pci_class="120000")
    look = next(rounds)
    third = "pci:0000:03:00.0"
    assert [(e["event"], e["device"]) for e in look.events] == [("added", third)]
    assert look.sample(CARD)["status"] == "ok"  # its process was started anew
    tree.link("/sys/bus/pci/devices/0000:03:00.0/driver", "/sys/bus/pci/drivers/acme")
    look = next(rounds)
    assert [e["change"] for e in look.events] == ["its driver is acme now, and was none"]
    (tree.root / "sys/bus/pci/devices/0000:03:00.0").unlink()
    look = next(rounds)
    assert [(e["event"], e["device"]) for e in look.events] == [("removed", third)]
    assert look.sample(third) is None
    assert next(rounds).events == []


def test_a_sampler_that_had_nothing_is_asked_when_a_device_comes(stage: Any, tree: Tree) -> None:
    stage.add(
        SOURCE.replace(
            "@hookimpl\ndef sample_devices(request):",
            "@hookimpl\ndef sample_devices(request):\n"
            "    if len(request.bus) < 3:\n        return not_applicable('too few')\n"
            "    return samples(request)\ndef samples(request):",
        )
    )
    rounds = stage.rounds(machine=tree.machine())
    assert CARD not in [sample["device"] for sample in next(rounds).samples]
    tree.pci("0000:03:00.0", "1ac0:0001", pci_class="120000", driver="acme")
    assert next(rounds).sample(CARD)["status"] == "ok"


def cpus(tree: Tree) -> None:
    tree.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Acme\n\nprocessor\t: 1\n")
    tree.file("/sys/devices/system/cpu/online", "0-1\n")
    for cpu in (0, 1):
        folder = f"/sys/devices/system/cpu/cpu{cpu}"
        tree.file(f"{folder}/topology/package_cpus_list", f"{cpu}\n")
        tree.file(f"{folder}/topology/core_cpus_list", f"{cpu}\n")
        tree.file(f"{folder}/cpufreq/scaling_cur_freq", 2_000_000 + cpu * 500_000)
    times(tree, (100, 0), (50, 50))
    tree.memory(1000, 400)


def times(tree: Tree, *cpu: tuple[int, int]) -> None:
    lines = [f"cpu{n} {busy} 0 0 {idle} 0 0 0 0 0 0" for n, (busy, idle) in enumerate(cpu)]
    tree.file("/proc/stat", "cpu 0 0 0 0\n" + "\n".join(lines) + "\nintr 1 2 3\n")


def test_processors_and_the_node(stage: Any, tree: Tree) -> None:
    cpus(tree)
    tree.file("/sys/class/hwmon/hwmon0/name", "coretemp\n")
    tree.file("/sys/class/hwmon/hwmon0/temp1_label", "Package id 1\n")
    tree.file("/sys/class/hwmon/hwmon0/temp1_input", 61500)
    tree.file("/sys/class/net/eth0/type", 1)
    tree.file("/sys/class/net/eth0/device/x", 1)
    tree.file("/sys/class/net/veth0/type", 1)
    tree.file("/sys/class/net/lo/type", 772)
    for name in ("eth0", "veth0", "lo"):
        tree.file(f"/sys/class/net/{name}/statistics/rx_bytes", 1000)
        tree.file(f"/sys/class/net/{name}/statistics/tx_bytes", 1000)
    tree.file("/proc/pressure/cpu", "some avg10=12.34 avg60=0.00 avg300=0.00 total=1\n")
    rounds = stage.rounds(machine=tree.machine())
    first = next(rounds)
    assert first.sample("cpu:0")["busy"] is None
    assert first.sample("cpu:0")["unknown"]["busy"] == "a rate needs two readings"
    times(tree, (175, 25), (50, 150))
    tree.file("/sys/class/net/eth0/statistics/rx_bytes", 500)
    second = next(rounds)
    assert second.sample("cpu:0")["busy"] == pytest.approx(0.75)
    assert second.sample("cpu:1")["busy"] == 0
    assert second.sample("cpu:1")["temperature_c"] == 61.5
    assert second.sample("cpu:0")["temperature_c"] is None
    assert second.sample("cpu:1")["clocks_mhz"] == {"sm": 2500, "memory": None}
    node = second.sample(NODE)
    assert node["busy"] == pytest.approx(75 / 200)
    assert node["memory"] == {"used": 600 * 1024, "total": 1000 * 1024}
    assert node["pressure"] == {"cpu": pytest.approx(0.1234), "memory": None, "io": None}
    assert [link["name"] for link in node["links"]] == ["eth0"]
    assert node["links"][0]["received"] is None
    assert "went back" in node["unknown"]["links.0.received"]
    assert node["links"][0]["sent"] == 0


def test_an_energy_counter_gives_power_and_wraps(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus(tree)
    zone = "/sys/class/powercap/intel-rapl:0"
    tree.file(f"{zone}/name", "package-0\n")
    tree.file(f"{zone}/max_energy_range_uj", 1_000_000)
    tree.file(f"{zone}/energy_uj", 999_000)
    monkeypatch.setattr(rates, "monotonic", iter([10.0, 12.0]).__next__)
    sampler = CpuSampler(tree.machine(), [[0, 1]])
    (first,) = sampler.sample()
    assert (first["counters"], first["unknown"]["power_w"]) == ({"energy_j": 0.999}, NEEDS_TWO)
    tree.file(f"{zone}/energy_uj", 1_000)
    (second,) = sampler.sample()
    assert (second["counters"], second["power_w"]) == ({"energy_j": 0.001}, pytest.approx(0.001))
    (tree.root / f"{zone.lstrip('/')}/max_energy_range_uj").unlink()
    tree.file(f"{zone}/energy_uj", 500)
    monkeypatch.setattr(rates, "monotonic", lambda: 14.0)
    (back,) = sampler.sample()
    assert (back.get("power_w"), back["unknown"]["power_w"]) == (None, WENT_BACK)
    tree.file(f"{zone}/energy_uj", "much\n")
    (third,) = sampler.sample()
    assert third["unknown"]["power_w"] == f"{zone}/energy_uj holds no number"


@pytest.mark.parametrize(("count", "mhz"), [(1, 0.0), (2, 0.5), (17, 7.5), (40, 15.0)])
def test_the_clock_of_a_package_is_that_of_sixteen_processors(
    tmp_path: Path, count: int, mhz: float
) -> None:
    """A read takes 15 µs; each processor's clock is its number here."""
    tree = Tree(tmp_path)
    for cpu in range(count):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq"
        tree.file(f"{folder}/scaling_cur_freq", cpu * 1000 or 1)
    (sample,) = CpuSampler(tree.machine(), [range(count)]).sample()
    assert sample["clocks_mhz"] == {"sm": pytest.approx(mhz, abs=0.01)}


def test_a_counter_that_root_alone_may_read_is_named(stage: Any, tree: Tree) -> None:
    cpus(tree)
    zone = "/sys/class/powercap/intel-rapl:0"
    tree.file(f"{zone}/name", "package-0\n")
    (tree.root / f"{zone}/energy_uj".lstrip("/")).mkdir()  # unreadable for root, too
    (look,) = stage.rounds(1, machine=tree.machine())
    assert f"{zone}/energy_uj: " in look.sample("cpu:0")["unknown"]["power_w"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe garbage", b"9" * 400])
def test_garbage_in_every_file_costs_figures_and_no_round(
    stage: Any, tree: Tree, content: bytes
) -> None:
    cpus(tree)
    machine = tree.machine()
    rounds = stage.rounds(machine=machine)
    next(rounds)
    for path in tree.root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(content)
    assert next(rounds).sample(NODE)["status"] == "ok"


def test_awaited_rounds_leave_nothing(children: Callable[[], list[int]]) -> None:
    before, threads = children(), threading.active_count()

    async def body() -> list[int]:
        async with probe_core.samples_async(0.1, 3, only=["cpu"]) as rounds:
            return [round.number async for round in rounds]

    assert asyncio.run(body()) == [1, 2, 3]
    assert (children(), threading.active_count()) == (before, threads)


def test_a_cancelled_wait_ends_the_processes(stage: Any, children: Callable[[], list[int]]) -> None:
    stage.add(SOURCE.replace("asked.append(name)", "time.sleep(60)"))
    before = children()

    async def body() -> None:
        rounds = probe_core.samples_async(1, probers=stage.targets, only=["acme"])
        task = asyncio.ensure_future(anext(rounds))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert children() == before

    asyncio.run(body())


def test_trio_waits_too(children: Callable[[], list[int]]) -> None:
    trio = pytest.importorskip("trio")

    async def body() -> int:
        rounds = probe_core.samples_async(0.1, only=["cpu"])
        look = await anext(rounds)
        await rounds.aclose()
        return int(look.number)

    before = children()
    assert trio.run(body) == 1
    assert children() == before


def test_a_recorded_machine_is_not_this_one(tmp_path: Path) -> None:
    with probe_core.samples(count=1, machine=Machine(str(tmp_path)), only=["cpu"]) as rounds:
        (look,) = rounds
    assert look.sample(NODE)["memory"] is None


@pytest.mark.parametrize("system", ["darwin", "windows"])
def test_other_systems_are_asked_through_psutil(stage: Any, system: str) -> None:
    rounds = stage.rounds(machine=Machine(os=system))
    next(rounds)
    sum(range(2_000_000))  # a tick passes
    look = next(rounds)
    node = look.sample(NODE)
    assert node["memory"]["total"] > 0
    assert node["busy"] is None or 0 <= node["busy"] <= 1
    assert look.sample("cpu:0")["status"] == "ok"


def test_other_systems_count_each_interface_but_loopbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def counters(*, pernic: bool) -> dict[str, Any]:
        assert pernic
        names = ("lo0", "Loopback Pseudo-Interface 1", "en1", "en0")
        return {
            name: SimpleNamespace(bytes_recv=number, bytes_sent=number + 10)
            for number, name in enumerate(names)
        }

    monkeypatch.setitem(sys.modules, "psutil", SimpleNamespace(net_io_counters=counters))
    assert interfaces(Machine(os="darwin")) == [
        ("network", "en0", 3, 13),
        ("network", "en1", 2, 12),
    ]


def test_other_systems_times_are_counted_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Times(NamedTuple):
        user: float
        idle: float

    def times(*, percpu: bool) -> list[Times]:
        return [Times(1.5, 2.25), Times(0.5, 4.0)] if percpu else []

    monkeypatch.setitem(sys.modules, "psutil", SimpleNamespace(cpu_times=times))
    assert read_times(Machine(os="windows")) == {0: (1500, 3750), 1: (500, 4500)}
    assert interfaces(Machine(os="windows")) == []  # this psutil counts no interface
    monkeypatch.setitem(sys.modules, "psutil", SimpleNamespace())
    assert read_times(Machine(os="windows")) == {}


def test_the_portable_way_samples_too(stage: Any, tree: Tree) -> None:
    stage.add(SOURCE.replace("asked.append(name)", "asked.append(name); time.sleep(0.01)"))
    rounds = stage.rounds(machine=tree.machine(), portable=True)
    seen = [next(rounds).sample(CARD)["temperature_c"] for _ in range(3)]
    assert seen == [1, 3, 5]


def test_a_board_without_a_prober_is_sampled_by_the_core(stage: Any, tree: Tree) -> None:
    tree.node("", "raspberrypi,5-model-b", "brcm,bcm2712")
    tree.node("/axi/gpu@1002000000", "brcm,2712-v3d")
    folder = tree.platform("1002000000.v3d", "/axi/gpu@1002000000", driver="v3d", render=128)
    tree.file(f"{folder}/devfreq/0/cur_freq", 960_000_000)
    tree.file("/sys/class/thermal/thermal_zone2/type", "gpu-thermal\n")
    tree.file("/sys/class/thermal/thermal_zone2/temp", 47500)
    machine = Machine(str(tree.root), arch="aarch64")
    look = next(stage.rounds(machine=machine))
    sample = look.sample("dt:/axi/gpu@1002000000")
    assert (sample["prober"], sample["status"]) == ("boards", "ok"), sample
    assert sample["clocks_mhz"]["sm"] == 960
    assert sample["temperature_c"] == pytest.approx(47.5)
    assert sample["busy"] is None


@pytest.mark.parametrize(
    ("sighting", "is_board"),
    [
        ({"ids": ["dt:/gpu", "pci:1"], "vendor": "broadcom"}, True),
        ({"ids": ["dt:/gpu"]}, True),
        ({"ids": ["dt:/gpu"], "vendor": "arm"}, False),  # its prober samples it
        ({"ids": ["pci:0000:01:00.0"], "vendor": "amd"}, False),
        ({"ids": []}, False),
        ({}, False),
    ],
)
def test_boards_are_what_the_device_tree_has_and_no_prober(
    sighting: dict[str, Any], is_board: bool
) -> None:
    assert boards.present([{"ids": ["pci:0000:02:00.0"]}, sighting]) is is_board


def test_boards_with_a_driver_are_sampled(tree: Tree) -> None:
    paths = {"arm": "v3d", "broadcom": "v3d", "qualcomm": None, "vivante": "etnaviv"}
    tree.node("", "acme,board")
    for number, (vendor, driver) in enumerate(paths.items()):
        tree.node(f"/gpu@{number}", f"{vendor},gpu")
        folder = tree.platform(f"{number}.gpu", f"/gpu@{number}", driver=driver)
        tree.file(f"{folder}/load", 100 * number)
    machine = Machine(str(tree.root), arch="aarch64")
    bus = [{"ids": [f"dt:/gpu@{n}"], "kind": "npu", "vendor": v} for n, v in enumerate(paths)]
    sampler = boards.open_sampler(SampleRequest(machine, bus))
    assert isinstance(sampler, boards.Sampler)
    (one, two) = sampler.sample(SampleRequest(machine, bus))
    assert [(s["device"], s["busy"], s["processes"]) for s in (one, two)] == [
        ("dt:/gpu@1", 0.1, []),
        ("dt:/gpu@3", 0.3, []),
    ]
    assert one["unknown"]["temperature_c"] == "no thermal zone is named after a npu"
    (two,) = sampler.sample(SampleRequest(machine, bus, asleep=["dt:/gpu@1"]))
    assert two["device"] == "dt:/gpu@3"
    nothing = boards.open_sampler(SampleRequest(machine, bus[:1]))
    assert getattr(nothing, "reason", None) == "no such device has a driver"


def test_a_host_that_just_ends_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "stage_acme.py").write_text(
        "from probe_core.api import *\n@hookimpl\ndef probe_devices(): return []\n"
        "@hookimpl\ndef sample_devices():\n    return [{'device': 'x:1', 'busy': 0}]\n"
    )
    script = (
        "import probe_core\n"
        "r = probe_core.samples(1, probers={'acme': 'stage_acme'}, only=['acme'])\n"
        "assert next(r).sample('x:1')['busy'] == 0\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environ, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_times_of_each_cpu(tmp_path: Path) -> None:
    """Idle and iowait are no work; what is lent to guests is counted in user time already."""
    tree = Tree(tmp_path)
    lines = ["cpu  9 9 9 9", "cpu0 1 2 4 8 16 32 64 128 256 512", "cpu1 1 2 4 8", "cpu2 1 2 4"]
    tree.file("/proc/stat", "\n".join([*lines, "cpux 1 1 1 1", "intr 1", "cpu3 1 1 1 1"]))
    assert read_times(tree.machine()) == {0: (231, 255), 1: (7, 15)}


BEFORE = {0: (10, 100), 1: (10, 100), 2: (10, 100)}


@pytest.mark.parametrize(
    ("group", "now", "busy"),
    [
        ([0], {0: (15, 110)}, (0.5, "")),
        ([0, 1], {0: (15, 110), 1: (10, 110)}, (0.25, "")),
        ([0, 3], {0: (15, 110), 3: (99, 99)}, (0.5, "")),  # it came since
        ([0], {0: (21, 110)}, (1.0, "")),
        ([0], {0: (9, 110)}, (0.0, "")),  # a tick back
        ([0], {0: (8, 110)}, (None, WENT_BACK)),
        ([0, 1], {0: (9, 110), 1: (9, 110)}, (0.0, "")),
        ([0, 1], {0: (9, 110), 1: (8, 110)}, (None, WENT_BACK)),
        ([0], {0: (10, 99)}, (None, WENT_BACK)),
        ([0], {0: (10, 100)}, (None, NEEDS_TWO)),
        ([3], {3: (10, 100)}, (None, NEEDS_TWO)),
        ([4], {0: (15, 110)}, (None, "/proc/stat does not list its CPUs")),
    ],
)
def test_the_share_of_time_in_which_processors_worked(
    group: list[int], now: dict[int, tuple[int, int]], busy: tuple[float | None, str]
) -> None:
    assert _busy(group, BEFORE, now) == busy
