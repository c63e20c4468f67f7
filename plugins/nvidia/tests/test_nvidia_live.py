"""Live figures through NVML: the real way through a child, a fake library below it."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sampled_here import Round, sample_here

from probe_core.pipeline.settings import load_settings
from probe_core.sampling.engine import Engine
from probe_core.sampling.rounds import Rhythm, Rounds
from probe_core.testing import Case, Machine
from probe_core.testing.case import staged_machine
from probe_nvidia import live, prober

IDS = [f"pci:0000:0{number}:00.0" for number in range(1, 9)]
FIGURES = """utilization {n}0 5
temperature 4{n}
usage 10{n}500
power 700000 700000 200000 700000
clocks-now 1900 1980 2619 1500
throttle 0x4
traffic 1000000000 2500000000
nvlink-traffic 1000000 3000000
gpm 50.5 25.25 12.5
tally 12345678{n} 7 2 {n}
nvlink-errors 1 20 300 4
violation 1500000000 250000000
process {pid} 1000000000
process {pid} 1000000000 graphics
process 4194300 18446744073709551615
"""


class Bench:
    """A machine with eight GPUs, and the files that say what NVML answers."""

    def __init__(
        self, root: Path, fake: ModuleType, trees: ModuleType, library: Path, loaded: Any
    ) -> None:
        self.folder, self.fake, self.loaded = root, fake, loaded
        (root / "root").mkdir()
        self.tree = trees.Tree(root / "root")
        self.tree.add_driver()
        for identity in IDS:
            self.tree.add_pci(identity[4:], "2330")
        self.live, self.log = root / "live", root / "log"
        self.now()
        self.log.write_text("")
        self.variables = {
            "LD_LIBRARY_PATH": str(library.parent),
            "FAKE_NVML_PROFILE": str(root / "eight.profile"),
            "FAKE_NVML_LIVE": str(self.live),
            "FAKE_NVML_LOG": str(self.log),
        }
        self.profile(FIGURES)

    def profile(self, figures: str) -> None:
        gpus = self.fake.many(8).split("gpu\n")
        text = gpus[0]
        for number, gpu in enumerate(gpus[1:]):
            text += "gpu\n" + gpu + figures.format(n=number, pid=os.getpid())
        (self.folder / "eight.profile").write_text(text)

    def now(self, *lines: str) -> None:
        """Say what changes under the running process."""
        fresh = self.folder / "live.new"
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.live)

    def calls(self) -> list[str]:
        return self.log.read_text().split()

    def case(self) -> Case:
        machine = Machine(str(self.tree.root))
        return Case(machine, live=True, variables=self.variables)

    def rounds(self, **options: Any) -> list[Round]:
        with self.loaded(self.variables):
            return sample_here(prober, self.case(), **options)

    def engine(self, clock: Any = time.monotonic) -> Engine:
        config, _ = load_settings({"only": ["bus", "nvidia"]}, {})
        machine = staged_machine(self.case(), "probe_nvidia.prober")
        extra: Any = {"nvidia": {"target": "probe_core.testing.stage", "deadline_s": 15.0}}
        return Engine(machine, config, extra=extra, clock=clock)


@pytest.fixture
def bench(tmp_path: Path, fake: ModuleType, trees: ModuleType, library: Path, loaded: Any) -> Bench:
    return Bench(tmp_path, fake, trees, library, loaded)


@pytest.fixture
def watching(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rounds]:
    """Return a function that gives rounds of the whole way."""
    for name, value in bench.variables.items():
        monkeypatch.setenv(name, value)
    opened: list[Rounds] = []

    def start(interval: float = 0.1, clock: Any = time.monotonic, **options: Any) -> Rounds:
        rounds = Rounds(lambda: bench.engine(clock), Rhythm(interval, clock, **options), None)
        opened.append(rounds)
        return rounds

    yield start  # type: ignore[misc]
    for rounds in opened:
        rounds.close()


def test_values_are_those_of_the_driver(bench: Bench) -> None:
    last = bench.rounds(count=3, pause=lambda _: time.sleep(0.05))[-1]
    assert last.status == "ok", last.reason
    assert [sample["device"] for sample in last.samples] == IDS
    for number, sample in enumerate(last.samples):
        assert sample["busy"] == pytest.approx(number / 10, abs=1e-9)
        assert sample["temperature_c"] == 40 + number
        assert sample["power_w"] == pytest.approx(100.5 + number)
        assert sample["power_cap_w"] == 700
        assert sample["clocks_mhz"] == {"sm": 1980, "memory": 2619}
        assert sample["throttled"] == ["sw-power-cap"]
        assert sample["memory"] == {"used": 6291456, "total": 85520809984}
        assert sample["activity"] == {"sm": 0.505, "tensor": 0.2525, "memory": 0.125}
        pcie, nvlink = sample["links"]
        assert (pcie["generation"], pcie["width"]) == (5, 16)
        assert pcie["sent"] == pytest.approx(1e9, rel=1e-4)
        assert pcie["received"] == pytest.approx(2.5e9, rel=1e-4)
        assert nvlink["sent"] == pytest.approx(1e6 * 1024, rel=1e-4)
        assert nvlink["received"] == pytest.approx(3e6 * 1024, rel=1e-4)
        assert sample["counters"] == {
            "energy_j": pytest.approx(123456.78 + number / 1000, abs=0.01),
            "ecc_corrected": 7,
            "ecc_uncorrected": 2,
            "pcie_replays": number,
            "nvlink_crc": 21,
            "nvlink_replays": 300,
            "nvlink_recoveries": 4,
            "throttled_power_s": pytest.approx(1.5),
            "throttled_thermal_s": pytest.approx(0.25),
        }
        assert sample["xids"] == []
        own, other = sample["processes"]
        assert (own["pid"], own["memory"]) == (os.getpid(), 10**9)
        assert other == {"pid": 4194300}  # all ones: not known, and not 17 billion GiB


def test_xid_errors_are_counted_by_code(bench: Bench) -> None:
    def pause(number: int) -> None:
        bench.now(*([*["0 xid 94"] * 16, "7 xid 79"] if number == 2 else []))

    last = bench.rounds(count=3, pause=pause)[-1]
    assert last.samples[0]["xids"] == [{"code": 94, "count": 16}]
    assert last.samples[7]["xids"] == [{"code": 79, "count": 1}]
    assert last.samples[1]["xids"] == []
    assert bench.calls().count("nvmlEventSetCreate") == 8  # and not again in each round


def test_counters_are_read_every_ten_seconds(bench: Bench) -> None:
    last = bench.rounds(count=6)[-1]
    assert last.samples[3]["counters"]["pcie_replays"] == 3  # kept from the first round
    fields = bench.calls().count("nvmlDeviceGetFieldValues")
    assert fields == 8 * (6 + 1)  # the rates of links in each round, the counters once


def test_a_counter_that_a_device_has_not_has_a_reason(bench: Bench) -> None:
    bench.profile(FIGURES.replace("tally", "# tally").replace("violation", "# violation"))
    sample = bench.rounds(count=1)[-1].samples[0]
    assert set(sample["counters"]) == {"nvlink_crc", "nvlink_replays", "nvlink_recoveries"}
    for name in ("energy_j", "ecc_corrected", "pcie_replays", "throttled_power_s"):
        assert "NOT_SUPPORTED" in sample["unknown"][f"counters.{name}"]


def test_the_library_is_initialised_once_and_closed(bench: Bench) -> None:
    bench.rounds(count=5)
    calls = bench.calls()
    assert calls.count("nvmlInit") == 1
    assert calls[-1] == "nvmlShutdown"


def test_what_is_not_supported_is_asked_once(bench: Bench) -> None:
    bench.profile("")
    last = bench.rounds(count=4)[-1]
    for sample in last.samples:
        assert "busy" not in sample
        assert sample["unknown"]["busy"].startswith("NVML_ERROR_NOT_SUPPORTED")
        assert "Hopper" in sample["unknown"]["activity"]
    assert bench.calls().count("nvmlDeviceGetUtilizationRates") == 8


def test_pcie_throughput_which_blocks_is_never_called() -> None:
    names = Path(live.__file__).parent.glob("*.py")
    asked = [path.name for path in names if '"nvmlDeviceGetPcieThroughput' in path.read_text()]
    assert asked == []


def test_while_one_gpu_sleeps_the_library_is_not_loaded(bench: Bench) -> None:
    rounds = bench.rounds(count=3, asleep=[[IDS[2]], [IDS[2]], []])
    for look in rounds[:2]:
        assert {sample["status"] for sample in look.samples} == {"unavailable"}
        assert IDS[2] not in [sample["device"] for sample in look.samples]
        assert IDS[2] in look.samples[0]["reason"]
    assert rounds[2].samples[0]["busy"] == 0
    assert bench.calls().index("nvmlInit") == 0  # nothing came before


def test_no_call_at_all_while_all_sleep(bench: Bench) -> None:
    bench.rounds(count=3, asleep=[IDS])
    assert bench.calls() == []


def test_a_library_that_cannot_start_is_not_tried_each_second(bench: Bench) -> None:
    (bench.folder / "eight.profile").write_text("on nvmlInit 9\n")
    rounds = bench.rounds(count=4)
    assert [look.status for look in rounds] == ["unavailable"] * 4
    assert "NVML_ERROR_DRIVER_NOT_LOADED" in str(rounds[-1].reason)
    assert bench.calls().count("nvmlInit") == 1


def test_a_lost_gpu_is_unavailable_and_the_others_are_not(bench: Bench) -> None:
    def lose(_: int) -> None:
        bench.now("5 on nvmlDeviceGetUtilizationRates 15")

    last = bench.rounds(pause=lose)[-1]
    statuses = {s["device"]: s.get("status", "ok") for s in last.samples}
    assert statuses.pop(IDS[5]) == "unavailable"
    assert set(statuses.values()) == {"ok"}
    assert "GPU_IS_LOST" in last.samples[5]["reason"]


def test_a_gpu_without_a_handle_keeps_its_reason(bench: Bench) -> None:
    head, *gpus = (bench.folder / "eight.profile").read_text().split("gpu\nname")
    gpus[4] += "on * 15\n"
    (bench.folder / "eight.profile").write_text("gpu\nname".join([head, *gpus]))
    for sampled in bench.rounds(count=3):
        samples = {sample["device"]: sample for sample in sampled.samples}
        assert samples[IDS[4]]["reason"] == "NVML_ERROR_GPU_IS_LOST from nvmlDeviceGetHandleByIndex"
        assert [samples[i].get("temperature_c") for i in IDS] == [40, 41, 42, 43, None, 45, 46, 47]


@pytest.mark.heavy
def test_readings_of_devices_that_are_found_anew_are_given_back(bench: Bench) -> None:
    rounds = bench.rounds(count=4, asleep=[[], [], [IDS[2]], []])
    assert [len(look.samples) for look in rounds] == [8, 8, 7, 8]
    assert rounds[1].samples[0]["activity"] == {"sm": 0.505, "tensor": 0.2525, "memory": 0.125}
    calls = bench.calls()
    # Two readings a GPU: of eight, then of seven, then of eight again.
    assert calls.count("nvmlGpmSampleAlloc") == 16 + 14 + 16
    assert calls.count("nvmlGpmSampleFree") == 16 + 14


@pytest.mark.parametrize(
    ("inode", "reason"),
    [(0xEFFFFFFC, None), (0xEFFFFFFD, "NVML counts processes as the host does")],
)
def test_whose_a_process_is_is_known_in_the_hosts_namespace_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, inode: int, reason: str | None
) -> None:
    """The first namespace of processes has a number of its own (PROC_PID_INIT_INO)."""
    real = os.stat

    def stat(path: Any, **options: Any) -> Any:
        known = path == "/proc/self/ns/pid"
        return SimpleNamespace(st_ino=inode) if known else real(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    (sample, *_) = bench.rounds(count=1)[0].samples
    assert sample["unknown"].get("processes.user") == reason
    assert [entry["pid"] for entry in sample["processes"]] == [os.getpid(), 4194300]


def test_a_gpu_that_nvml_counts_otherwise_is_named_by_its_handle(bench: Bench) -> None:
    """NVML has eight, the driver nine: then no index means an address."""
    bench.tree.add_pci("0000:0a:00.0", "2330")
    (look,) = bench.rounds(count=1, avoid=[IDS[2]])
    assert [sample["device"] for sample in look.samples] == [*IDS[:2], *IDS[3:]]
    assert set(look.touched) >= {*IDS[:2], *IDS[3:]}
    assert IDS[2] not in look.touched


def test_mig_instances_are_sampled_with_their_gpu(bench: Bench) -> None:
    mig = (bench.fake.PROFILES / "a100-mig.profile").read_text()
    (bench.folder / "eight.profile").write_text(mig)
    samples = bench.rounds(count=1)[0].samples
    instances = [s for s in samples if s["device"].startswith("uuid:MIG-")]
    assert len(instances) == 3
    for sample in instances:
        assert sample["memory"]["total"] > 0
        assert sample["unknown"]["power_w"] == "it is the whole GPU's"


@pytest.mark.heavy
def test_a_gpu_that_hangs_midway_costs_no_other(
    bench: Bench, watching: Callable[..., Rounds]
) -> None:
    rounds = watching()
    look = next(rounds)
    assert [s["status"] for s in look.samples[:8]] == ["ok"] * 8
    bench.now("3 on nvmlDeviceGetTemperature hang")
    begin = time.monotonic()
    while True:
        look = next(rounds)
        hung = look.sample(IDS[3])
        assert hung
        if hung["status"] == "unresponsive":
            assert hung["temperature_c"] is None
            if [s["status"] for s in look.samples[:8]].count("ok") == 7:
                break
        assert time.monotonic() - begin < 20
    begin = time.monotonic()
    rounds.close()
    assert time.monotonic() - begin < 3


@pytest.mark.heavy
def test_an_hour_needs_one_start_and_no_more_memory(
    bench: Bench, watching: Callable[..., Rounds]
) -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

        def sleep(self, seconds: float) -> None:
            self.now += seconds

    clock = Clock()
    del os.environ["FAKE_NVML_LOG"]  # it would be the largest file
    rounds = watching(15.0, clock, sleep=clock.sleep)
    tracemalloc.start()
    try:
        for _ in range(60):  # a history of a minute is full
            next(rounds)
        early = _memory(next(rounds), rounds)
        while clock.now < 3600:
            look = next(rounds)
        late = _memory(look, rounds)
    finally:
        tracemalloc.stop()
    # It is a few KiB. What another test leaves listening in this process counts too: an audit hook
    # that kept each path that was opened made it 1.2 MiB, in the runs that put both in one process.
    assert late - early < 64 << 10
    engine = rounds._engine
    assert engine
    assert engine.sources[0].starts == 1
    assert len(os.listdir("/proc/self/fd")) < 64


def _memory(look: Any, rounds: Rounds) -> int:
    """Return what Python holds here, where other tests left pages free, and the sampler's pages."""
    assert look.sample(IDS[0])["status"] == "ok"
    engine = rounds._engine
    assert engine
    run = engine.sources[0].run
    assert run
    gc.collect()
    pages = int(Path(f"/proc/{run.pid}/statm").read_text().split()[1])
    return tracemalloc.get_traced_memory()[0] + pages * os.sysconf("SC_PAGE_SIZE")


def test_a_jetson_module_is_sampled_from_its_files(trees: ModuleType, tmp_path: Path) -> None:
    tree = trees.Tree(tmp_path, "aarch64")
    tree.node("", "nvidia,p3737-0000+p3701-0000", "nvidia,tegra234")
    tree.node("/bus@0/gpu@17000000", "nvidia,ga10b")
    folder = tree.platform("17000000.gpu", "/bus@0/gpu@17000000", driver="gk20a", load=370)
    tree.file(f"{folder}/devfreq/17000000.gpu/cur_freq", 1_300_500_000)
    case = Case(Machine(str(tmp_path), arch="aarch64"), live=True)
    (look,) = sample_here(prober, case, count=1)
    (sample,) = look.samples
    assert sample["device"] == "dt:/bus@0/gpu@17000000"
    assert sample["busy"] == pytest.approx(0.37)
    assert sample["clocks_mhz"] == {"sm": 1300.5}
