"""What is measured where: tasks, obstacles, cores, caches and sensors, from invented machines."""

from __future__ import annotations

import io
import os
import tempfile
import time
from pathlib import Path
from typing import cast

import pytest
from bench_devices import cpu, gpu

from probe_bench import cores
from probe_bench.bench_command import devices_named
from probe_bench.figures import _row, checked, figure, grouped, lines, notes
from probe_bench.measuring import remove, scratch
from probe_bench.sensors import Readings, Sensors, joined, of_sample
from probe_bench.session import bound, child_environ, variables
from probe_bench.tasks import Line, Task, backends, buffer_bytes, obstacle, tasks, title
from probe_core.commands import CommandError, Context
from probe_core.model.document import DeviceDoc, ReportDoc
from probe_core.testing import Tree

FP32: Task = {"figure": "compute", "kind": "alu", "dtype": "fp32", "library": "c"}
READ: Task = {"figure": "read", "kind": "memory", "dtype": None, "library": "libc"}
LINE: Line = {
    "event": "result",
    "rates": [2e12, 4e12, 3e12],
    "cold": 1e12,
    "warm_s": 0.25,
    "by": "gcc 12, AVX2",
    "threads": 2,
    "clock_mhz": 3000.0,
    "cpu_share": 1.0,
}


@pytest.mark.parametrize(
    ("device", "named", "reason"),
    [
        (cpu(), False, None),
        (gpu(), False, None),
        (gpu("limited"), True, None),
        (gpu("unknown"), True, None),
        (gpu("limited"), False, "it is limited, not ready; --device names it all the same"),
        (gpu("blocked"), True, "it is blocked (no-access), not ready"),
        (gpu(kind="npu"), True, "tinygrad has no backend for a npu"),
        (gpu(vendor="matrox"), False, "tinygrad has no backend for GPUs of matrox"),
        (gpu(vendor=None), False, "tinygrad has no backend for GPUs of an unknown vendor"),
        (
            gpu(
                readiness={
                    "state": "limited",
                    "broken": "responding",
                    "steps": [{"step": "responding", "status": "broken", "code": "power-capped"}],
                }
            ),
            False,
            "it is limited (power-capped), not ready; --device names it all the same",
        ),
        (
            gpu(
                readiness={
                    "state": "limited",
                    "broken": "responding",
                    "steps": [{"step": "responding", "status": "broken", "code": None}],
                }
            ),
            False,
            "it is limited (responding), not ready; --device names it all the same",
        ),
    ],
    ids=range(11),
)
def test_only_ready_devices_are_measured(
    device: DeviceDoc, named: bool, reason: str | None
) -> None:
    assert obstacle(device, named) == reason


def test_tasks_of_a_cpu_and_of_a_gpu() -> None:
    everything = ("alu", "matmul", "memory")
    assert list(map(title, tasks(cpu(), ("fp32", "int8"), everything))) == [
        "fp32 alu by c",
        "fp32 matmul by tinygrad",
        "fp32 matmul by numpy",
        "int8 alu by c",
        "int8 matmul by tinygrad",
        "memory read by libc",
        "memory write by libc",
        "memory copy by libc",
    ]
    assert list(map(title, tasks(gpu(), (), ("matmul",)))) == [
        "fp32 matmul by tinygrad",
        "fp16 matmul by tinygrad",
        "bf16 matmul by tinygrad",
    ]
    assert tasks(gpu(), (), ("alu",)) == []
    assert backends(gpu()) == ["CUDA", "NV"]
    assert backends(cpu()) == ["CPU"]


@pytest.mark.parametrize(
    ("device", "cache", "free", "size"),
    [
        (cpu(), 32 << 20, 4 << 30, 128 << 20),
        (cpu(), 1 << 20, 4 << 30, 64 << 20),
        (cpu(), None, None, 256 << 20),
        (cpu(), 32 << 20, 1000 << 20, 0),
        (gpu(), None, 80 << 30, 1 << 30),
        (gpu(memory={"kind": "unified"}), None, 8 << 30, 256 << 20),
        (gpu(), None, 4 << 30, 0),
    ],
    ids=range(7),
)
def test_buffer_is_larger_than_caches_and_small_beside_what_is_free(
    device: DeviceDoc, cache: int | None, free: int | None, size: int
) -> None:
    assert buffer_bytes(device, cache, free) == size


def two_packages(tree: Tree) -> None:
    """Eight CPUs: two packages of two cores with two threads, each with an L3 of 16 MiB."""
    tree.file("/sys/devices/system/cpu/online", "0-7\n")
    for number in range(8):
        core, package = number % 4, number % 4 // 2
        base = f"/sys/devices/system/cpu/cpu{number}"
        tree.file(f"{base}/topology/core_cpus_list", f"{core},{core + 4}\n")
        members = "0-1,4-5" if package == 0 else "2-3,6-7"
        tree.file(f"{base}/topology/package_cpus_list", f"{members}\n")
        for index, (level, size) in enumerate(((1, "32K"), (3, "16384K"))):
            tree.file(f"{base}/cache/index{index}/level", level)
            tree.file(f"{base}/cache/index{index}/size", f"{size}\n")
            tree.file(f"{base}/cache/index{index}/shared_cpu_list", f"{members}\n")


@pytest.fixture
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("root"))


def test_cores_of_a_package(tree: Tree) -> None:
    two_packages(tree)
    machine = tree.machine()
    groups = cores.packages(machine, cores.online(machine))
    assert groups == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert cores.chosen(machine, groups[1], range(8), None) == [2, 3]
    assert cores.chosen(machine, groups[1], [6, 7], None) == [6, 7]
    assert cores.chosen(machine, groups[1], [], None) == []
    assert cores.chosen(machine, groups[0], range(8), 1.5) == [0]
    assert cores.chosen(machine, groups[0], range(8), 0.2) == [0]
    assert cores.last_cache(machine, [2, 3]) == 16 << 20
    assert cores.last_cache(machine, [0, 2]) == 32 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [("1K", 1 << 10), ("3M", 3 << 20), ("2G", 2 << 30), (f"{'1' * 11}K", int("1" * 11) << 10)],
)
def test_a_cache_has_its_size(text: str, size: int, tree: Tree) -> None:
    folder = "/sys/devices/system/cpu/cpu0/cache/index3"
    tree.file(f"{folder}/level", 3)
    tree.file(f"{folder}/size", f"{text}\n")
    assert cores.last_cache(tree.machine(), [0]) == size


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({}, "gcc 12"),
        ({"by": None}, ""),
        ({"dtype": "fp32", "size": 512}, "gcc 12, n=512"),
        ({"dtype": None, "size": 512}, "gcc 12"),
        ({"dtype": "fp32", "size": None}, "gcc 12"),
        ({"threads": 1}, "gcc 12"),
        ({"threads": 2}, "gcc 12, 2 threads"),
        ({"dtype": "int8", "size": 8, "threads": 3}, "gcc 12, n=8, 3 threads"),
    ],
)
def test_a_row_says_by_what_and_how_large(changes: dict[str, object], by: str) -> None:
    entry = figure(cpu(), FP32, LINE, Readings(), 0)
    entry |= {"by": "gcc 12", "size": None, "threads": None}  # type: ignore[typeddict-item]
    entry |= changes  # type: ignore[typeddict-item]
    assert _row(entry)[-1] == by


def test_a_device_without_figures_is_its_name() -> None:
    context = Context(stdout=io.StringIO())
    device = gpu()
    assert list(lines(device, [], context)) == [f"{device['id']}  {device['name']}"]
    unnamed: DeviceDoc = {**device, "name": None}
    assert list(lines(unnamed, [], context)) == [device["id"]]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (None, ["cpu:0", "pci:0000:01:00.0"]),
        ("cpu:0", ["cpu:0"]),
        ("01:00", ["pci:0000:01:00.0"]),
        ("CPU", ["cpu:0"]),
        ("gpu-7a", ["pci:0000:01:00.0"]),
    ],
)
def test_a_device_is_named_by_an_id_or_a_part_of_one(named: str | None, found: list[str]) -> None:
    assert [device["id"] for device in devices_named(two_devices(), named)] == found


@pytest.mark.parametrize(
    ("named", "problem"), [(":", "names 3 devices"), ("x" * 90, "no such device")]
)
def test_a_device_that_no_name_tells_is_refused(named: str, problem: str) -> None:
    with pytest.raises(CommandError) as error:
        devices_named(two_devices(), named)
    listed = "cpu:0, pci:0000:01:00.0, pci:0000:02:00.0"
    assert str(error.value) == f"--device {named[:80]}: {problem}; there are: {listed}"


def two_devices() -> ReportDoc:
    """Return a CPU, a GPU, and a display that is not measured unless it is named."""
    address = "pci:0000:0{}:00.0"
    card: DeviceDoc = {**gpu(), "id": address.format(1), "ids": [address.format(1), "GPU-7A"]}
    display: DeviceDoc = {
        **gpu(), "id": address.format(2), "ids": [address.format(2)], "kind": "display"
    }  # fmt: skip
    return cast(ReportDoc, {"devices": [{**cpu(), "id": "cpu:0", "ids": ["cpu:0"]}, card, display]})


def test_a_cache_without_a_level_is_below_the_first(tree: Tree) -> None:
    folder = "/sys/devices/system/cpu/cpu0/cache"
    tree.file(f"{folder}/index0/size", "64K\n")
    tree.file(f"{folder}/index1/size", "32K\n")
    assert cores.last_cache(tree.machine(), [0]) == 32 << 10  # of equals the last
    tree.file(f"{folder}/index0/level", 1)
    assert cores.last_cache(tree.machine(), [0]) == 64 << 10


@pytest.mark.parametrize("text", ["", "K", "manyK", "-1K", "16384", "16384X", f"{'9' * 12}K"])
def test_a_cache_of_no_size_is_unknown(text: str, tree: Tree) -> None:
    folder = "/sys/devices/system/cpu/cpu0/cache/index3"
    tree.file(f"{folder}/level", 3)
    tree.file(f"{folder}/size", f"{text}\n")
    assert cores.last_cache(tree.machine(), [0]) is None


def test_machine_that_tells_nothing_of_its_cores(tree: Tree) -> None:
    machine = tree.machine()
    assert cores.online(machine) == []
    assert cores.packages(machine, [0, 1]) == [[0, 1]]
    assert cores.chosen(machine, [0, 1], [0, 1], None) == [0, 1]
    assert cores.last_cache(machine, [0, 1]) is None


def test_sensors_of_a_card_are_read_while_it_runs(tree: Tree) -> None:
    folder = tree.pci("0000:01:00.0", "1002:74a1")
    base = f"{folder}/hwmon/hwmon3"
    files = {"name": "amdgpu", "power1_average": 350_000_000, "power1_cap": 750_000_000,
             "temp1_input": 50_000, "temp1_label": "edge", "temp2_input": 61_000,
             "temp2_label": "junction", "temp3_input": 90_000, "temp3_label": "mem",
             "freq1_input": 2_100_000_000, "freq1_label": "sclk",
             "freq2_input": 2_600_000_000, "freq2_label": "mclk"}  # fmt: skip
    for name, content in files.items():
        tree.file(f"{base}/{name}", content)
    sensors = Sensors(tree.machine(), gpu(vendor="amd"))
    first = sensors.read()
    assert first == Readings(350.0, 750.0, 61.0, 2100.0)
    tree.file(f"{base}/power1_average", 700_000_000)
    assert joined(first, sensors.read()) == Readings(700.0, 750.0, 61.0, 2100.0)


def test_sleeping_card_is_left_alone(tree: Tree) -> None:
    folder = tree.pci("0000:01:00.0", "1002:74a1", power="suspended")
    tree.file(f"{folder}/hwmon/hwmon3/power1_average", 350_000_000)
    assert Sensors(tree.machine(), gpu()).read() == Readings()


def test_figures_of_a_sampler_are_joined_with_those_of_files() -> None:
    clocks = {"sm": 1755.0, "memory": 2619.0}
    figures = {"power_w": 690.0, "power_cap_w": 700.0, "temperature_c": 64.0}
    sample = {**figures, "clocks_mhz": clocks, "throttled": ["idle", "sw-power-cap"]}
    live = of_sample(sample)
    assert live == Readings(690.0, 700.0, 64.0, 1755.0, ("sw-power-cap",))
    asleep = of_sample({"power_w": None, "clocks_mhz": None, "throttled": None})
    assert asleep == Readings()
    later = Readings(temperature_c=66.0, reasons=("sw-thermal",))
    assert joined(joined(asleep, live), later) == Readings(
        690.0, 700.0, 66.0, 1755.0, ("sw-power-cap", "sw-thermal")
    )


def test_temperature_of_the_first_package(tree: Tree) -> None:
    tree.file("/sys/class/hwmon/hwmon0/name", "k10temp\n")
    tree.file("/sys/class/hwmon/hwmon0/device/hwmon/hwmon0/temp1_input", 71_500)
    machine = tree.machine()
    assert Sensors(machine, cpu()).read().temperature_c == 71.5
    assert Sensors(machine, cpu(id="cpu:1")).read() == Readings()


def test_figure_of_a_result() -> None:
    own = cpu(peaks=[{"dtype": "fp32", "accumulate": "fp32", "sparsity": "dense", "path": "vector",
                      "clock": "base", "mhz": 2000.0, "tflops": 4.0}])  # fmt: skip
    entry = figure(own, FP32, LINE, Readings(temperature_c=70.0), None)
    assert (entry["best"], entry["median"], entry.get("cold"), entry["runs"]) == (4.0, 3.0, 1.0, 3)
    assert (entry.get("fraction"), entry.get("fraction_at_clock")) == (1.0, 0.6667)
    assert entry["disturbed"] == ["median"]
    assert entry["unknown"] == {
        "power_w": "no sensor file and no sampler shows it",
        "power_cap_w": "no sensor file and no sampler shows it",
        "clock_reasons": "no sensor file and no sampler shows it",
    }
    assert list(notes(own, [entry])) == [
        "* not for planning (fp32 alu): the median is below 0.9 of the best run"
    ]


@pytest.mark.parametrize(
    "changes",
    [{"rates": [float("inf")]}, {"rates": []}, {"rates": ["fast"]}, {"rates": [-1.0]},
     {"rates": [1e40]}, {"threads": -3}, {"clock_mhz": 1e9}, {"by": ""}, {"cold": None}],
    ids=range(9),
)  # fmt: skip
def test_absurd_answers_are_refused(changes: dict[str, object]) -> None:
    line = cast(Line, {**LINE, **changes})
    with pytest.raises((ValueError, TypeError)):
        checked(figure(cpu(), FP32, line, Readings(), None))
    fine = checked(figure(cpu(), FP32, {**LINE, "by": "gcc\x1b[31m 12"}, Readings(), None))
    assert "\x1b" not in (fine["by"] or "")


@pytest.mark.parametrize(
    ("seen", "limit", "cap"),
    [(650.0, 700.0, 650.0), (None, 700.0, 700.0), (None, None, None), (650.0, None, 650.0)],
)
def test_the_power_cap_is_the_sensors_or_else_the_reports(
    seen: float | None, limit: float | None, cap: float | None
) -> None:
    own = gpu(power={"limit_watts": limit}) if limit else gpu()
    line: Line = {**LINE, "warm_s": 0.25049}
    entry = figure(own, READ, line, Readings(power_cap_w=seen), 0)
    assert (entry["power_cap_w"], entry["warm_s"], entry["clock_mhz"]) == (cap, 0.25, 3000.0)


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (cpu(), "no C compiler made the loop that measures it"),
        (gpu(), "no sensor file and no sampler shows it"),
    ],
)
def test_a_clock_that_is_not_known_has_a_reason(device: DeviceDoc, reason: str) -> None:
    entry = figure(device, READ, {**LINE, "clock_mhz": None}, Readings(power_w=1.0), 0)
    assert entry["unknown"] == {
        "power_cap_w": "no sensor file and no sampler shows it",
        "temperature_c": "no sensor file and no sampler shows it",
        "clock_mhz": reason,
        "clock_reasons": "no sensor file and no sampler shows it",
    }


@pytest.mark.parametrize(
    ("disturbed", "name"), [([], "memory read"), (["median"], "memory read *")]
)
def test_a_disturbed_figure_has_a_mark(disturbed: list[str], name: str) -> None:
    entry = figure(gpu(), READ, {**LINE, "cold": 2e12, "rates": [2e12]}, Readings(), 0)
    entry["disturbed"] = disturbed
    assert _row(entry) == (
        name, "2000 GB/s", "2000 GB/s", "2000 GB/s", "1", "–", "3000 MHz", "–", "–",
        "gcc 12, AVX2, 2 threads",
    )  # fmt: skip


def test_a_row_of_a_narrow_terminal_is_its_name_and_what_is_known() -> None:
    entry = figure(gpu(), READ, {**LINE, "cold": 2e12, "rates": [2e12] * 10}, Readings(), 0)
    context = Context(stdout=io.StringIO())
    context.width = 30
    assert list(lines(gpu(), [entry], context))[1:] == [
        "  memory read", "    best: 2000 GB/s", "    median: 2000 GB/s", "    cold: 2000 GB/s",
        "    runs: 10", "    clock: 3000 MHz", "    by: gcc 12, AVX2, 2", "      threads",
    ]  # fmt: skip


def test_figure_of_a_memory_is_in_bytes_and_of_int8_in_tops() -> None:
    entry = figure(gpu(), READ, {**LINE, "rates": [4e9], "cold": 3.9e9}, Readings(), 2)
    assert (entry["best"], entry["unit"], entry["dtype"]) == (4e9, "B/s", None)
    assert (entry["driver"], entry["disturbed"]) == ("nvidia 580.1", ["processes"])
    assert figure(cpu(), {**FP32, "dtype": "int8"}, LINE, Readings(), None)["unit"] == "TOPS"


def test_first_run_above_the_others_is_the_best_and_a_sign_of_disturbance() -> None:
    entry = figure(cpu(), FP32, {**LINE, "rates": [3e12, 3e12], "cold": 4e12}, Readings(), None)
    assert (entry["best"], entry["median"], entry["disturbed"]) == (4.0, 3.0, ["median"])


LOW_COPY = (
    "memory copy by x: 50% of the derived bandwidth; vendors' copies achieve about 90 %,"
    " tinygrad's kernels without a search less"
)


@pytest.mark.parametrize(("part", "sentences"), [(0.5, [LOW_COPY]), (0.7, []), (None, [])])
def test_bandwidth_below_what_is_usual(part: float | None, sentences: list[str]) -> None:
    entry = figure(gpu(), {**READ, "figure": "copy"}, {**LINE, "by": "x"}, Readings(), 0)
    entry["disturbed"], entry["runs"] = [], 10
    entry["fraction"] = part
    assert list(notes(gpu(), [entry])) == sentences
    assert list(notes(cpu(), [entry])) == []


LOW_MATMUL = (
    "bf16 matmul by x: 49% of the derived peak; vendors' libraries achieve 50 % to 97 %,"
    " tinygrad's kernels without a search less"
)
LOW_ALU = "bf16 alu by x: 89% of the derived peak; a register kernel achieves 90 % and more"


@pytest.mark.parametrize(
    ("part", "kind", "sentences"),
    [
        (0.49, "matmul", [LOW_MATMUL]),
        (0.5, "matmul", []),
        (0.89, "alu", [LOW_ALU]),
        (0.9, "alu", []),
    ],
    ids=range(4),
)
def test_figure_below_what_is_usual_is_told(part: float, kind: str, sentences: list[str]) -> None:
    task: Task = {"figure": "compute", "kind": kind, "dtype": "bf16", "library": "tinygrad"}
    entry = figure(gpu(), task, {**LINE, "rates": [1e12], "cold": 1e12, "by": "x"}, Readings(), 0)
    entry["fraction_at_clock"], entry["runs"] = part, 10
    assert list(notes(gpu(), [entry])) == sentences
    entry["runs"] = 9  # a short run makes no claim
    assert list(notes(gpu(), [entry])) == []


def test_problems_of_one_cause_are_one_sentence() -> None:
    single: Task = {"figure": "compute", "kind": "matmul", "dtype": "fp32", "library": "tinygrad"}
    half: Task = {**single, "dtype": "bf16"}
    alu: Task = {**single, "kind": "alu", "library": "c"}
    assert list(grouped([(single, "no clang"), (alu, "no cc"), (half, "no clang")])) == [
        "no fp32 matmul by tinygrad, bf16 matmul by tinygrad: no clang",
        "no fp32 alu by c: no cc",
    ]


def test_child_gets_the_leases_variables_and_no_others() -> None:
    leased = {"CUDA_VISIBLE_DEVICES": "GPU-1", "PROBE_LEASED": "x", "DEV": "CUDA", "PATH": "/bin"}
    environ = {**leased, "DEBUG": "true", "BEAM": "4", "HOME": "/home/a", "LD_PRELOAD": "x"}
    own = child_environ(environ, "/f", ["CUDA", "NV"], "0.14.0")
    assert own == {
        **leased, "HOME": "/f", "TMPDIR": "/f", "TEMP": "/f", "TMP": "/f", "XDG_CACHE_HOME": "/f",
        "CACHEDB": "/f/tinygrad.db", "CUDA_CACHE_PATH": "/f", "DEV": "CUDA;NVK+NV;KFD+AMD",
    }  # fmt: skip
    assert child_environ(environ, "/f", ["CPU"], "0.14.0")["DEV"] == "CPU;NVK+NV;KFD+AMD"
    older = child_environ(environ, "/f", ["PYTHON", "CPU"], "0.12.0")
    assert older["DEV"] == "PYTHON"
    older = child_environ(environ, "/f", ["CPU", "LLVM"], "0.12.0")
    assert (older["DEV"], older["NV_IFACE"], older["AMD_IFACE"]) == ("CPU", "NVK", "KFD")


@pytest.mark.parametrize(
    ("version", "dev", "expected"),
    [
        (None, "CPU", {"DEV": "CPU;NVK+NV;KFD+AMD"}),
        ("0.x", "CPU", {"DEV": "CPU;NVK+NV;KFD+AMD"}),
        ("1", "CPU", {"DEV": "CPU;NVK+NV;KFD+AMD"}),
        ("0.13", "CPU", {"DEV": "CPU;NVK+NV;KFD+AMD"}),
        ("0.12.9", "CPU", {"NV_IFACE": "NVK", "AMD_IFACE": "KFD", "DEV": "CPU"}),
        ("0.12.9", "", {"NV_IFACE": "NVK", "AMD_IFACE": "KFD"}),
    ],
)
def test_which_variables_each_tinygrad_reads(
    version: str | None, dev: str, expected: dict[str, str]
) -> None:
    assert variables(version, dev) == expected


@pytest.mark.parametrize(
    ("dev", "result"),
    [
        ("", "NVK+NV;KFD+AMD"),
        (":0+NV", "NVK:0+NV;KFD+AMD"),
        ("PCI:1+AMD;:0,2+NV:PTX", "NVK:0,2+NV:PTX;KFD:1+AMD"),
        ("USB+AMD", "NVK+NV;KFD+AMD"),
        (":3+", "NVK:3+NV;KFD:3+AMD"),
        ("CUDA:PTX;:0+NV", "CUDA:PTX;NVK:0+NV;KFD+AMD"),
    ],
)
def test_tinygrad_never_takes_a_device_from_its_driver(dev: str, result: str) -> None:
    assert bound(dev) == result


@pytest.mark.parametrize("width", range(40, 161, 8))
def test_every_width_has_the_heads(width: int) -> None:
    entry = figure(gpu(), {**READ, "figure": "copy"}, {**LINE, "by": "x 1.0"}, Readings(), 0)
    entry |= {"power_w": 612.0, "temperature_c": 67.0, "clock_mhz": 1755.0}
    context = Context(stdout=io.StringIO())
    context.width = width
    shown = list(lines(gpu(), [entry], context))
    assert all(len(line) <= width for line in shown[1:])
    text = "\n".join(shown[1:])
    assert ("ACHIEVED" in text and "MEDIAN" in text) or "    median: " in text
    assert "x 1.0" in text  # what BY does not fit beside the figures stands below them


def test_a_run_has_a_folder_of_its_own_and_removes_what_runs_left(tmp_path: Path) -> None:
    base = tmp_path / "cache" / "probe-core"
    ages = {"bench-1-left": 3700, "bench-2-runs": 3500, "other": 9000}
    for name, age in ages.items():
        (base / name).mkdir(parents=True)
        os.utime(base / name, (time.time() - age,) * 2)
    folder = Path(scratch({"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": "/nonexistent"}))
    assert folder.parent == base
    assert folder.name.startswith(f"bench-{os.getpid()}-")
    assert sorted(os.listdir(base)) == sorted(["bench-2-runs", "other", folder.name])
    (folder / "kernel.c").write_text("")
    for _ in range(2):  # nothing is there any more, and nothing is raised
        remove(str(folder))
        assert not folder.exists()


@pytest.mark.parametrize(
    "environ", [{}, {"HOME": "relative"}, {"XDG_CACHE_HOME": "/proc/nowhere", "HOME": ""}]
)
def test_a_run_without_a_cache_has_the_systems_folder(environ: dict[str, str]) -> None:
    folder = Path(scratch(environ))
    try:
        assert folder.parent == Path(tempfile.gettempdir())
        assert folder.name.startswith("probe-bench-")
    finally:
        remove(str(folder))
