"""Whatever ends a run: no child, no compiler, no folder and no lease stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from bench_runs import (
    PROBE,
    compiler,
    environment,
    hanging,
    is_running,
    nothing_is_left,
    run,
    wait_for,
)

from probe_bench import measuring
from probe_bench.child import Bench
from probe_bench.session import child_environ, measure
from probe_bench.tasks import Job, Task

FP32: Task = {"figure": "compute", "kind": "alu", "dtype": "fp32", "library": "c"}
READ: Task = {"figure": "read", "kind": "memory", "dtype": None, "library": "libc"}
WORDS = ("--kind", "alu", "--dtype", "fp32", "--seconds", "0.1", "--no-save")


def job(folder: str, *tasks: Task) -> Job:
    return {
        "tasks": list(tasks),
        "seconds": 0.1,
        "folder": folder,
        "cpus": [min(os.sched_getaffinity(0))],
        "flags": [],
        "arch": "x86_64",
        "backends": ["CPU"],
        "address": None,
        "buffer_bytes": 1 << 20,
    }


@pytest.mark.parametrize("cpus", [[], [0]])
def test_only_of_cpus_the_clock_is_compiled_and_only_once(
    cpus: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    for name, value in compiler(tmp_path, f"echo >>{mark}; exit 1").items():
        monkeypatch.setenv(name, value)
    bench = Bench({**job(str(tmp_path), READ), "cpus": cpus})
    assert bench.clock_mhz() is None
    assert mark.exists() == bool(cpus)
    mark.write_text("")
    assert bench.clock_mhz() is None
    assert mark.read_text() == ""


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signal_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    env = environment(tmp_path, **hanging(tmp_path))
    with subprocess.Popen(
        [*PROBE, *WORDS], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for((tmp_path / "mark").exists)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert (out, err) == ("", "")
    wait_for(lambda: nothing_is_left(tmp_path))


@pytest.mark.heavy
def test_child_that_hangs_is_ended_at_its_deadline(tmp_path: Path) -> None:
    environ = environment(tmp_path, **hanging(tmp_path))
    folder = measuring.scratch(environ)
    places: list[int] = []
    order = job(folder, READ, FP32)
    lines, reason = measure(
        order, child_environ(environ, folder, ["CPU"], None), places.append, 12.0
    )
    measuring.remove(folder)
    assert reason == "it did not end within 12 s"
    # The compiler is asked for the clock's loop, after the first task was answered.
    assert [(line["event"], line.get("task")) for line in lines] == [("begin", 0), ("result", 0)]
    assert set(places) == {0}
    wait_for(lambda: nothing_is_left(tmp_path))


@pytest.mark.heavy
def test_what_was_measured_before_a_crash_is_kept(tmp_path: Path) -> None:
    # The driver's part is played by a compiler that kills the process it works for.
    environ = environment(tmp_path, **compiler(tmp_path, "kill -9 $PPID"))
    done = run(tmp_path, "--kind", "alu", "--dtype", "fp32", "--no-save", CC=environ["CC"])
    assert done.returncode == 1
    assert "no fp32 alu by c: its process died of signal 9" in done.stdout
    assert os.listdir(tmp_path / "cache" / "probe-core") == []


@pytest.mark.heavy
def test_child_ends_with_its_parent_and_takes_its_folder(tmp_path: Path) -> None:
    environ = environment(tmp_path, **hanging(tmp_path))
    with subprocess.Popen([*PROBE, *WORDS], env=environ) as process:
        wait_for((tmp_path / "mark").exists)
        pid = int((tmp_path / "mark").read_text())
        group = os.getpgid(pid)
        assert group != os.getpgid(process.pid)
        process.kill()
    wait_for(lambda: not is_running(pid) and not is_running(group))
    wait_for(lambda: nothing_is_left(tmp_path))
