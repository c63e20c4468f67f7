"""`probe bench` on this computer's CPU: short runs, what is kept, and refusals in one sentence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from bench_runs import PROBE, document, environment, probe_report, run, run_here
from report_schema import schema

SHORT = ("--seconds", "0.1")
compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.mark.heavy
@compiled
def test_arithmetic_of_the_cpu_is_measured_and_kept(tmp_path: Path) -> None:
    words = ("--kind", "alu", "--dtype", "fp32", *SHORT)
    answer = document(tmp_path, *words)
    (cpu,) = (device for device in answer["devices"] if device["id"] == "cpu:0")
    assert (answer["schema"], answer["not_kept"], cpu["not_measured"]) == (1, None, None)
    (figure,) = cpu["measured"]
    assert cpu["problems"] == []
    assert (figure["figure"], figure["kind"], figure["dtype"]) == ("compute", "alu", "fp32")
    assert figure["best"] >= figure["median"] > 0
    assert (figure["accumulate"], figure["unit"], figure["stale"]) == ("fp32", "TFLOPS", None)
    assert figure["runs"] >= 10
    assert figure["clock_mhz"] > 0
    kept = json.loads(Path(answer["kept"]).read_text())
    (device,) = next(iter(kept["nodes"].values()))
    assert device["measured"][0]["best"] == figure["best"]
    report = probe_report(tmp_path)
    jsonschema.validate(report, schema())
    measured = report["devices"][0]["measured"]
    assert [(entry["by"], entry["best"]) for entry in measured] == [(figure["by"], figure["best"])]
    assert os.listdir(tmp_path / "cache" / "probe-core") == []


@pytest.mark.heavy
def test_memory_needs_no_compiler(tmp_path: Path) -> None:
    nowhere = tmp_path / "empty"
    nowhere.mkdir()
    words = ("--kind", "memory,alu", "--dtype", "fp32", "--no-save", *SHORT)
    answer = document(tmp_path, *words, PATH=str(nowhere), CC="")
    cpu = answer["devices"][0]
    figures = {figure["figure"]: figure for figure in cpu["measured"]}
    assert list(figures) == ["read", "write", "copy"]
    assert all(figure["best"] > 0 for figure in figures.values())
    assert {figure["size"] for figure in figures.values()} != {None}
    assert figures["read"]["by"].startswith("memchr of ")
    assert [figure["unknown"].get("clock_mhz") for figure in figures.values()] == [
        "no C compiler made the loop that measures it"
    ] * 3
    reason = "no C compiler is installed; install gcc or clang"
    assert cpu["problems"] == [
        {"figure": "compute", "kind": "alu", "dtype": "fp32", "library": "c", "reason": reason}
    ]
    assert (answer["kept"], answer["not_kept"]) == (None, None)
    assert not (tmp_path / "state").exists()


@pytest.mark.heavy
def test_library_that_cannot_work_is_told_and_status_is_1(tmp_path: Path) -> None:
    words = ("--kind", "matmul", "--dtype", "int8", "--no-save", *SHORT)
    done = run(tmp_path, *words, PATH="/nowhere")
    assert done.returncode == 1
    assert "no int8 matmul by tinygrad: " in done.stdout
    assert done.stderr == ""


def test_list_runs_nothing(tmp_path: Path) -> None:
    done = run_here(tmp_path, "--list", "--kind", "alu", "--dtype", "fp32,fp32")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["  fp32 alu by c"]
    done = run_here(tmp_path, "--list", "--kind", "link")
    assert done.stdout.splitlines()[1:] == ["  not measured: no task"]
    answer = json.loads(run_here(tmp_path, "--list", "--json").stdout)
    (entry,) = answer.pop("devices")
    assert answer == {"schema": 1}
    assert (entry["id"], entry["not_measured"]) == ("cpu:0", None)
    kinds = [task["kind"] for task in entry["tasks"]]
    assert list(dict.fromkeys(kinds)) == ["alu", "matmul", "memory"]
    common = {"kind": "memory", "dtype": None, "library": "libc"}
    assert entry["tasks"][-3:] == [{"figure": word, **common} for word in ("read", "write", "copy")]
    assert list(tmp_path.iterdir()) == []


def test_what_nothing_concerns_is_not_measured(tmp_path: Path) -> None:
    done = run_here(tmp_path, "--kind", "link")
    assert (done.returncode, done.stderr) == (1, "")
    sentence = "  not measured: nothing of what is asked for concerns it"
    assert done.stdout.splitlines()[1:] == [sentence]
    answer = json.loads(run_here(tmp_path, "--kind", "link", "--json").stdout)
    assert (answer["kept"], answer["not_kept"]) == (None, None)
    assert list(tmp_path.iterdir()) == []


def test_figures_are_kept(tmp_path: Path) -> None:
    done = run_here(tmp_path, "--kind", "memory", *SHORT)
    path = tmp_path / "state" / "probe-core" / "measured.json"
    assert (done.returncode, done.stderr) == (0, f"The figures were kept in {path}.\n")
    assert "memory read" in done.stdout
    assert path.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--dtype fp8", "--dtype fp8: expected fp64, fp32, fp16, bf16, int8"),
        ("--kind=", "--kind has an empty name: expected alu, matmul, memory, link"),
        ("--kind gpu", "--kind gpu: expected alu, matmul, memory, link"),
        ("--seconds 0", "--seconds 0: expected seconds, 0.1 to 25"),
        ("--seconds nan", "--seconds nan: expected seconds, 0.1 to 25"),
        ("--seconds 26", "--seconds 26: expected seconds, 0.1 to 25"),
        ("--device gpu9", "--device gpu9: no such device; there are: cpu:0"),
        ("--machine .", "bench measures this computer; leave out --machine"),
        ("--static x.json", "bench measures this computer; leave out --static"),
    ],
)
def test_wrong_words_get_one_sentence(words: str, sentence: str, tmp_path: Path) -> None:
    done = run_here(tmp_path, *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"probe bench: {sentence}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
def test_result_is_printed_where_it_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    done = run(tmp_path, "--kind", "memory", *SHORT)
    assert done.returncode == 0
    assert "memory read" in done.stdout
    assert done.stderr == (
        f"probe bench: the figures were not kept: {tmp_path}/state/probe-core: Not a directory\n"
    )


@pytest.mark.heavy
def test_file_of_another_version_stays(tmp_path: Path) -> None:
    path = tmp_path / "state" / "probe-core" / "measured.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 99}')
    answer = document(tmp_path, "--kind", "memory", *SHORT)
    assert len(answer["devices"][0]["measured"]) == 3
    assert answer["not_kept"] == f"{path}: it is not of schema 1; remove it"
    assert path.read_text() == '{"schema": 99}'


@pytest.mark.heavy
def test_full_disk_ends_without_a_traceback(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROBE, "--kind", "memory", "--no-save", *SHORT], stdout=full, stderr=subprocess.PIPE,
            env=environment(tmp_path), text=True, check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path / "cache" / "probe-core") == []


@pytest.mark.heavy
def test_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*PROBE, "--kind", "memory", "--no-save", *SHORT], stdout=writer,
            stderr=subprocess.PIPE, env=environment(tmp_path), text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert os.listdir(tmp_path / "cache" / "probe-core") == []


@pytest.mark.heavy
def test_folder_that_a_killed_run_left_is_removed_later(tmp_path: Path) -> None:
    base = tmp_path / "cache" / "probe-core"
    old, fresh = base / "bench-1-old", base / "bench-2-fresh"
    for folder in (old, fresh):
        folder.mkdir(parents=True)
        (folder / "fp32.so").write_text("")
    os.utime(old, (1, 1))
    run(tmp_path, "--kind", "memory", "--no-save", *SHORT)
    assert os.listdir(base) == ["bench-2-fresh"]
