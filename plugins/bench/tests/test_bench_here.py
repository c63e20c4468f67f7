"""What a measuring child does of each task, in this process and on a clock that tests move."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from bench_devices import cpu, gpu
from fake_tinygrad import Clock, Fake

from probe_bench import cpu_runs, library_runs, statistics
from probe_bench.child import Bench
from probe_bench.cores import Crew
from probe_bench.cpu_runs import Memory, WrongResult
from probe_bench.library_runs import Tinygrad, check_opened, edges
from probe_bench.measuring import Outcome, measured
from probe_bench.sensors import Live, Readings
from probe_bench.tasks import Job, Task
from probe_core.machine import Machine

BY = f"tinygrad {version('tinygrad')} (PYTHON)"
STEP_S = 2.0**-8


def task(figure: str, kind: str, dtype: str | None, library: str = "tinygrad") -> Task:
    return {"figure": figure, "kind": kind, "dtype": dtype, "library": library}


def job(folder: Path, *tasks: Task, **changes: Any) -> Job:
    own: Job = {
        "tasks": list(tasks),
        "seconds": 0.5,
        "folder": str(folder),
        "cpus": [],
        "flags": [],
        "arch": platform.machine(),
        "backends": ["PYTHON"],
        "address": None,
        "buffer_bytes": 64,
    }
    return {**own, **changes}  # type: ignore[typeddict-item]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (library_runs, statistics):
        monkeypatch.setattr(module, "perf_counter", made)
    monkeypatch.setattr(library_runs, "process_time", made)
    monkeypatch.setattr("time.monotonic", made)
    return made


@pytest.fixture
def fake(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake(clock, "PYTHON", "CPU", "CL")
    monkeypatch.setitem(sys.modules, "tinygrad", made)  # type: ignore[arg-type]
    return made


RESULTS = [
    (task("compute", "matmul", "fp32"), 2 * 4**3, {"size": 4, "accumulate": "fp32"}),
    (task("compute", "matmul", "fp16"), 2 * 4**3, {"size": 4, "accumulate": "fp32"}),
    (task("compute", "matmul", "int8"), 2 * 4**3, {"size": 4, "accumulate": "int32"}),
    (task("read", "memory", None), 64, {"size": 64}),
    (task("write", "memory", None), 64, {"size": 64}),
    (task("copy", "memory", None), 128, {"size": 64}),
]


@pytest.mark.parametrize(("wanted", "amount", "more"), RESULTS, ids=range(len(RESULTS)))
def test_a_task_of_a_gpu_is_a_rate_of_what_it_was_given(
    wanted: Task, amount: int, more: dict[str, Any], fake: Fake, tmp_path: Path
) -> None:
    line = Bench(job(tmp_path, wanted)).measured(wanted)
    # Half a second is a quarter for warming up, and the rest for runs of one call.
    assert line.pop("others_share", "absent") != "absent"
    assert line == {
        "event": "result",
        "rates": [amount / STEP_S] * 97,
        "cold": amount / STEP_S,
        "warm_s": 0.125,
        "cpu_share": None,
        "by": BY,
        **more,
    }


@pytest.mark.parametrize("figure", ["upload", "download"])
def test_a_link_moves_no_more_than_64_mib(figure: str, fake: Fake, tmp_path: Path) -> None:
    wanted = task(figure, "link", None)
    bench = Bench(job(tmp_path, wanted, seconds=0.0))
    fake.Tensor.data = advancing(fake.Tensor.data, fake.clock)
    try:
        line = bench.measured(wanted)
    finally:
        fake.Tensor.data = fake.Tensor.data.__wrapped__
    assert (line["event"], line["size"], line["by"]) == ("result", 64, BY)
    # An upload is read back outside of the time that counts, which is then nothing.
    assert set(line["rates"]) == {64 / (STEP_S if figure == "download" else 1e-9)}


def advancing(method: Any, clock: Clock) -> Any:
    def slow(self: Any) -> Any:
        clock.wait(STEP_S)
        return method(self)

    slow.__wrapped__ = method  # type: ignore[attr-defined]
    return slow


@pytest.mark.parametrize(
    ("step_s", "edge"), [(2.0**-10, 512), (0.05 / 8, 512), (2.0**-7, 256)], ids=range(3)
)
def test_matrices_grow_as_long_as_a_kernel_is_short(step_s: float, edge: int, fake: Fake) -> None:
    fake.step_s = step_s
    found, sums, run = Tinygrad(["CPU"], None).matmul("fp32", 3.5 * step_s)
    begin = fake.clock.now
    taken = run()
    # What takes three and a half calls' time are three; of a CPU its own time counts, too.
    assert (found, sums, taken.amount) == (edge, "fp32", 3 * 2.0 * edge**3)
    assert taken.seconds == taken.cpu_s == taken.thread_s == fake.clock.now - begin
    assert taken.seconds == pytest.approx(3 * step_s)


@pytest.mark.parametrize(
    ("backend", "found"),
    [("CPU", (256, 512)), ("CPU:1", (256, 512)), ("PYTHON", (4, 4)), ("CUDA", (512, 8192))],
)
def test_edges_of_a_backend(backend: str, found: tuple[int, int]) -> None:
    assert edges(backend) == found


def put(at: int, value: int) -> Callable[[list[Any], int], None]:
    def spoil(values: list[Any], call: int) -> None:
        values[at % len(values)] = value

    return spoil


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (task("compute", "matmul", "fp32"), "a fp32 product of edge 4 is wrong in row 1, column 2"),
        (task("read", "memory", None), "a sum over 64 bytes of memory is wrong after a read"),
        (task("write", "memory", None), "1 elements of 64 bytes of memory is wrong after a write"),
        (task("copy", "memory", None), "1 elements of 64 bytes of memory is wrong after a copy"),
        (
            task("products", "matmul", "int8"),
            "product 1 of int8 matrices of edge 4 is wrong: the element in row 1, column 2",
        ),
    ],
    ids=range(5),
)
def test_what_a_device_computed_wrong_is_told(
    wanted: Task, reason: str, fake: Fake, tmp_path: Path
) -> None:
    fake.spoil = put(6, 99)
    assert Bench(job(tmp_path, wanted)).measured(wanted) == {"event": "wrong", "reason": reason}


@pytest.mark.parametrize("wanted", [RESULTS[0][0], RESULTS[4][0]], ids=["matmul", "write"])
def test_what_is_wrong_at_the_end_alone_is_told(wanted: Task, fake: Fake, tmp_path: Path) -> None:
    def spoil(values: list[Any], call: int) -> None:
        values[-1] = values[-1] if call <= 90 else 99

    fake.spoil = spoil
    assert Bench(job(tmp_path, wanted)).measured(wanted)["event"] == "wrong"


@pytest.mark.parametrize("dtype", ["int8", "fp32", "fp16"])
def test_known_products_are_compared_until_the_time_is_over(
    dtype: str, fake: Fake, tmp_path: Path
) -> None:
    wanted = task("products", "matmul", dtype)
    line = Bench(job(tmp_path, wanted, seconds=12 * STEP_S)).measured(wanted)
    # Each of three seeds ends with the first call after its third of the time.
    assert line == {"event": "compared", "count": 13, "by": BY}
    # Of no time each seed still has one.
    assert Tinygrad(["PYTHON"], None).products(dtype, 0.0) == 3


def test_a_later_product_that_differs_is_told(fake: Fake) -> None:
    fake.spoil = lambda values, call: put(5, 7)(values, call) if call == 2 else None
    with pytest.raises(WrongResult, match=r"^product 2 of int8 matrices .* row 1, column 1$"):
        Tinygrad(["PYTHON"], None).products("int8", 1.0)


# Which backend opens.


def test_the_first_backend_that_opens_is_taken(fake: Fake) -> None:
    opened = Tinygrad(["NOSUCH", "PYTHON", "CPU"], None)
    assert (opened.device, opened.by) == ("PYTHON", BY)


class WithoutClang:
    """tinygrad's devices where no clang is installed."""

    def __getitem__(self, name: str) -> NoReturn:
        raise FileNotFoundError(2, "No such file or directory", "clang")


def test_no_backend_is_a_problem_with_each_reason(fake: Fake, tmp_path: Path) -> None:
    fake.Device = WithoutClang()
    wanted = RESULTS[0][0]
    line = Bench(job(tmp_path, wanted, backends=["NOSUCH", "CPU"])).measured(wanted)
    assert line == {
        "event": "problem",
        "reason": f"tinygrad {version('tinygrad')} opens no backend: NOSUCH: RuntimeError: no"
        " NOSUCH here; CPU: it compiles with clang, which is not installed"[:300],
    }


def test_opencl_with_several_devices_is_refused(fake: Fake) -> None:
    shown: Any = type("Shown", (), {"device_ids": [1, 2]})
    fake.Device["CL"] = shown()
    with pytest.raises(LookupError, match="CL: LookupError: OpenCL shows 2 devices, and not"):
        Tinygrad(["CL"], None)
    shown.device_ids = [1]
    assert Tinygrad(["CL"], None).device == "CL"


@pytest.mark.parametrize(("compiler", "kept"), [("/usr/bin/gcc", False), ("/opt/clang-19", True)])
def test_another_compiler_of_the_environment_is_none_of_tinygrads(
    compiler: str, kept: bool, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    Tinygrad(["CPU"], None)
    assert ("CC" in os.environ) == kept


@pytest.mark.parametrize("backend", ["CUDA", "HIP"])
def test_another_gpu_than_the_leased_one_is_named(
    backend: str, fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def call(text: Any, size: int, number: int) -> int:
        text.value = [b"0000:1B:00.0"][number]
        return 0

    names = {"libcuda.so.1": "cuDeviceGetPCIBusId", "libamdhip64.so": "hipDeviceGetPCIBusId"}
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(**{names[name]: call}))
    fake.Tensor.opened = (backend, "CPU")
    fake.Device[backend] = object()
    assert Tinygrad([backend], "pci:0000:1b:00.0").device == backend
    reason = f"{backend} opens pci:0000:1b:00.0, which is not the device that was leased"
    wanted = RESULTS[0][0]
    # No other backend is tried: it would open that one, too.
    own = job(tmp_path, wanted, backends=[backend, "CPU"], address="pci:0000:43:00.0")
    assert Bench(own).measured(wanted) == {"event": "problem", "reason": reason}


def test_a_backend_that_does_not_tell_its_device_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_library(name: str) -> NoReturn:
        raise OSError(f"{name}: cannot open shared object file")

    for library in (no_library, lambda name: SimpleNamespace()):
        monkeypatch.setattr(ctypes, "CDLL", library)
        for backend in ("CUDA", "HIP", "METAL"):
            check_opened(backend, "pci:0000:1b:00.0")


# numpy.


class Matrix:
    """numpy's, as far as a product of ones needs it."""

    def __init__(self, value: float) -> None:
        self.value = value

    def copy(self) -> Matrix:
        return Matrix(self.value)

    def __eq__(self, other: object) -> Any:
        return SimpleNamespace(all=lambda: self.value == other)

    __hash__ = None  # type: ignore[assignment]


def numpy(clock: Clock, **changes: Any) -> Any:
    def multiply(first: Matrix, second: Matrix, out: Matrix) -> None:
        out.value = 1024 * first.value * second.value
        clock.wait(STEP_S)

    build = {"Build Dependencies": {"blas": {"name": "scipy-openblas", "version": "0.3.31"}}}
    own: dict[str, Any] = {
        "__version__": "2.5.0",
        "ones": lambda shape, dtype: Matrix(1.0) if shape == (1024, 1024) else None,
        "matmul": multiply,
        "show_config": lambda mode: build if mode == "dicts" else None,
    }
    return SimpleNamespace(**(own | changes))


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_products_by_numpy(
    dtype: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", numpy(clock))
    wanted = task("compute", "matmul", dtype, "numpy")
    line = Bench(job(tmp_path, wanted)).measured(wanted)
    del line["others_share"]
    assert line == {
        "event": "result",
        "rates": [2.0 * 1024**3 / STEP_S] * 97,
        "cold": 2.0 * 1024**3 / STEP_S,
        "warm_s": 0.125,
        "cpu_share": 1.0,
        "by": "numpy 2.5.0 (OpenBLAS 0.3.31)",
        "size": 1024,
        "accumulate": dtype,
    }


@pytest.mark.parametrize(
    ("changes", "dtype", "line"),
    [
        ({}, "bf16", {"event": "problem", "reason": "numpy has no fast bf16 arithmetic"}),
        (
            {"matmul": lambda first, second, out: None},
            "fp32",
            {
                "event": "wrong",
                "reason": "a product of two matrices of ones is not 1024 everywhere",
            },
        ),
    ],
)
def test_what_numpy_cannot_do_is_told(
    changes: dict[str, Any],
    dtype: str,
    line: dict[str, str],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", numpy(clock, **changes))
    wanted = task("compute", "matmul", dtype, "numpy")
    assert Bench(job(tmp_path, wanted)).measured(wanted) == line


def test_an_old_numpy_does_not_name_its_library(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", numpy(clock, show_config=lambda: None))
    assert library_runs.matmul("fp32", 1)[1] == "numpy 2.5.0 (BLAS of unknown kind)"


def test_numpys_threads_share_the_time_of_the_cores(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Clock()
    monkeypatch.setattr(library_runs, "process_time", busy)
    monkeypatch.setitem(sys.modules, "numpy", numpy(clock))
    _, _, run = library_runs.matmul("fp32", 2)
    for used, cpu_s, thread_s in ((0.5, 0.5, 1.0), (1.5, 1.5, 1.5), (3.0, 2.0, 2.0)):
        waited = numpy(clock).matmul

        def multiply(*arrays: Matrix, out: Matrix, used: float = used, own: Any = waited) -> None:
            own(*arrays, out=out)
            busy.wait(used * STEP_S)

        sys.modules["numpy"].matmul = multiply  # type: ignore[attr-defined]
        taken = run()
        assert (taken.cpu_s, taken.thread_s) == (cpu_s * STEP_S, thread_s * STEP_S)


def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)  # type: ignore[arg-type]
    wanted = task("compute", "matmul", "fp32", "numpy")
    line = Bench(job(tmp_path, wanted)).measured(wanted)
    assert line == {"event": "problem", "reason": "numpy is not installed"}


NO_KERNEL = "clang does not compile tinygrad's kernel"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (subprocess.CalledProcessError(1, ["clang", "-c"]), NO_KERNEL),
        (KeyError(), "KeyError"),
        (RuntimeError("x" * 301 + "\nmore"), "RuntimeError: " + "x" * 300),
        (LookupError(""), "LookupError"),
        (LookupError("no loop"), "no loop"),
    ],
    ids=range(5),
)  # fmt: skip
def test_an_error_of_a_library_is_a_reason(
    error: Exception, reason: str, fake: Fake, tmp_path: Path
) -> None:
    def fails(values: list[Any], call: int) -> NoReturn:
        raise error

    fake.spoil = fails
    wanted = RESULTS[0][0]
    line = Bench(job(tmp_path, wanted)).measured(wanted)
    assert line == {"event": "problem", "reason": reason}


# The C library, and kernels in registers.


@pytest.mark.parametrize("size", [1, 2])
def test_memory_is_divided_among_the_crew(size: int) -> None:
    part = 2 * os.sysconf("SC_PAGE_SIZE")
    memory = Memory(2 * size * part + part // 2, Crew([min(os.sched_getaffinity(0))] * size))
    assert memory.size == 2 * size * part
    library = " ".join(platform.libc_ver())
    names = {"read": "memchr", "write": "memset", "copy": "memcpy"}
    for figure, name in names.items():
        assert memory.prepared(figure)().amount == memory.size
        assert memory.by(figure) == f"{name} of {library}"
    # The copy goes from the first half of each member to its second one.
    for number in range(size):
        memory._buffer[number * 2 * part] = 5
    memory.prepared("copy")()
    found = [at for at, byte in enumerate(memory._buffer[:]) if byte]
    assert found == [number * part for number in range(2 * size)]
    memory.prepared("write")()
    assert not any(memory._buffer[:])


def test_a_byte_that_was_not_written_is_told() -> None:
    memory = Memory(1 << 16, Crew([]))
    memory._buffer[-1] = 1
    with pytest.raises(WrongResult, match=r"^memchr found a byte that is not there$"):
        memory.prepared("read")()


def test_memory_is_a_task_of_the_c_library(tmp_path: Path) -> None:
    wanted = task("copy", "memory", None, "libc")
    cpus = [min(os.sched_getaffinity(0))]
    line = Bench(job(tmp_path, wanted, cpus=cpus, seconds=0.0, buffer_bytes=1 << 20)).measured(
        wanted
    )
    assert (line["event"], line["size"], line["threads"]) == ("result", 1 << 20, 1)
    assert line["by"].startswith("memcpy of ")
    assert len(line["rates"]) == 10


class Loops:
    """What gcc made: loops that take time of a clock and return what they are told to."""

    def __init__(self, clock: Clock, round_s: float, result: float) -> None:
        self.clock, self.round_s, self.result = clock, round_s, result
        self.rounds: list[int] = []
        self.run = self

    def __call__(self, rounds: int, factor: float, term: float) -> float:
        self.rounds.append(rounds)
        self.clock.wait(rounds * self.round_s)
        return self.result


@pytest.fixture
def gcc(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Loops]:
    """A compiler that makes nothing, and a loader of what it made."""
    script = tmp_path / "gcc"
    script.write_text("#!/bin/sh\necho 'gcc (Free Software Foundation) 12.2.0'\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(cpu_runs, "perf_counter", clock)
    monkeypatch.setattr("probe_bench.cores.perf_counter", clock)
    monkeypatch.setattr("probe_bench.cores.thread_time", clock)

    def made(round_s: float, result: float) -> Loops:
        loops = Loops(clock, round_s, result)
        monkeypatch.setattr(ctypes, "CDLL", lambda path: loops)
        return loops

    return made


SSE = {"arch": "x86_64", "flags": ["sse2"]}


def test_a_kernel_runs_for_as_long_as_a_run_lasts(
    gcc: Callable[..., Loops], tmp_path: Path
) -> None:
    wanted = task("compute", "alu", "fp32", "c")
    bench = Bench(job(tmp_path, wanted, **SSE))
    kernel = cpu_runs.kernel_for("fp32", "x86_64", ["sse2"])
    assert kernel is not None
    loops = gcc(2.0**-23, kernel.total)
    line = bench.measured(wanted)
    rates = set(line["rates"])
    assert len(rates) == 1
    assert rates.pop() == pytest.approx(kernel.operations * 2.0**23)
    assert {name: line[name] for name in ("event", "by", "accumulate", "threads", "cpu_share")} == {
        "event": "result",
        "by": f"gcc 12.2.0, {kernel.name}",
        "accumulate": "fp32",
        "threads": 1,
        "cpu_share": 1.0,
    }
    # A quarter of 5.5 ms tells how many rounds 5.5 ms have; then the sums are looked at.
    assert loops.rounds[:4] == [10_000, 40_000, 10_000, int(0.0055 * 2**23)]
    assert set(loops.rounds[3:]) == {int(0.0055 * 2**23)}


def test_a_kernel_with_other_sums_is_wrong(gcc: Callable[..., Loops], tmp_path: Path) -> None:
    gcc(1.0, 3.0)
    wanted = task("compute", "alu", "fp32", "c")
    kernel = cpu_runs.kernel_for("fp32", "x86_64", ["sse2"])
    assert kernel is not None
    line = Bench(job(tmp_path, wanted, **SSE)).measured(wanted)
    reason = f"the kernel returned 3 for {kernel.total:g}"
    assert line == {"event": "wrong", "reason": reason}


def test_a_type_without_instructions_is_a_problem(
    gcc: Callable[..., Loops], tmp_path: Path
) -> None:
    wanted = task("compute", "alu", "bf16", "c")
    line = Bench(job(tmp_path, wanted, **SSE)).measured(wanted)
    reason = "this CPU reports no instructions for bf16 arithmetic"
    assert line == {"event": "problem", "reason": reason}


def test_the_clock_is_that_of_the_adds(gcc: Callable[..., Loops], tmp_path: Path) -> None:
    loops = gcc(2.0**-26, 0.0)
    bench = Bench(job(tmp_path, cpus=[min(os.sched_getaffinity(0))]))
    # 32 adds of one cycle each in 2^-26 s: 2147.5 MHz.
    assert bench.clock_mhz() == 2147.5
    assert bench.clock_mhz() == 2147.5
    assert len(loops.rounds) == 2 * (2 + 5)


# One device from lease to figures.


def test_the_processor_is_measured_in_a_child_whose_folder_goes(tmp_path: Path) -> None:
    titles: list[str] = []
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    wanted = task("read", "memory", None, "libc"), task("compute", "matmul", "fp8", "numpy")
    outcome = measured(Machine(environ=environ), {"devices": []}, cpu(), wanted, 0.1, titles.append)  # type: ignore[arg-type]
    (figure,) = outcome.figures
    assert (figure["figure"], figure["kind"], figure["threads"] > 0) == ("read", "memory", True)
    assert outcome.problems == [(wanted[1], "numpy has no fast fp8 arithmetic")]
    assert titles == ["memory read by libc", "fp8 matmul by numpy"]
    assert os.listdir(tmp_path / "probe-core") == []


def test_a_device_with_little_free_memory_is_not_moved_through(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    memory = {"kind": "shared", "total": 8 << 30, "free": 1, "usable": 4 << 30}
    wanted = [task("read", "memory", None, "libc")]
    machine = Machine(environ=environ)
    outcome = measured(machine, {"devices": []}, cpu(memory=memory), wanted, 0.1, print)  # type: ignore[arg-type]
    reason = "less memory is free than eight times the buffer that caches cannot hold"
    assert outcome == Outcome([], [(wanted[0], reason)], wrong=[], compared=[])


def test_a_gpu_that_the_report_does_not_have_is_refused(tmp_path: Path) -> None:
    environ = {**os.environ, "PROBE_LEASES": str(tmp_path)}
    report: Any = {"devices": [], "findings": [], "outcomes": []}
    wanted = [task("read", "memory", None)]
    outcome = measured(Machine(environ=environ), report, gpu(), wanted, 0.1, print)
    assert outcome.figures == outcome.problems == []
    assert outcome.refusal is not None


def test_a_cpu_has_no_sampler() -> None:
    live = Live(cpu(), {"devices": []})  # type: ignore[typeddict-item]
    assert live.read() == Readings()
    live.close()
