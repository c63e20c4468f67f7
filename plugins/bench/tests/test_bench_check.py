"""`probe check`: the verdicts of simulated nodes, and the command on a stand-in for a device."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import stand_in
from bench_devices import cpu, gpu
from bench_runs import environment, probe_report, run_here

from probe_bench.measuring import Outcome
from probe_bench.tasks import Task, check_tasks, title
from probe_bench.verdicts import judged, sentence_of, to_repeat, with_repeat
from probe_core.model.document import DeviceDoc, MeasuredDoc

INT8: Task = {"figure": "products", "kind": "matmul", "dtype": "int8", "library": "tinygrad"}
NO_PROOF = "No error in some seconds is no proof that a device is sound."
NAMES = {"memory": ("read", "write", "copy"), "link": ("upload", "download")}


def card(number: int, **changes: Any) -> DeviceDoc:
    id_ = f"pci:0000:{number + 1:02x}:00.0"
    return gpu(id=id_, ids=[id_], links=[{"kind": "pcie", "width": 16}], **changes)


def figure(kind: str, name: str, median: float, best: float = 0.0, **more: Any) -> MeasuredDoc:
    entry = {"kind": kind, "figure": name, "dtype": None, "unit": "B/s", "by": "tinygrad 1 (CUDA)"}
    entry |= {"median": median, "best": best or median * 1.01, "disturbed": [], "stale": None}
    return entry | {"date": "2026-11-01T00:00:00Z"} | more  # type: ignore[return-value]


def outcome(factor: float = 1.0, noise: float = 0.0, dice: random.Random | None = None) -> Outcome:
    """Return an outcome whose figures are `factor` times the usual, but for noise."""
    dice = dice or random.Random(0)
    figures = [
        figure(kind, name, 3e12 * factor * dice.gauss(1.0, noise))
        for kind, names in NAMES.items()
        for name in names
    ]
    return Outcome(figures, [], compared=[(INT8, 40)])


def words(*outcomes: Outcome) -> list[str | None]:
    return [v["verdict"] for v in judged([(card(at), own) for at, own in enumerate(outcomes)])]


@pytest.mark.parametrize("size", [3, 4, 8])
def test_who_is_a_tenth_slower_than_its_siblings_is_found(size: int) -> None:
    dice = random.Random(size)
    found = accused = 0
    for _ in range(200):
        slow = dice.randrange(size)
        verdicts = words(*(outcome(0.9 if at == slow else 1.0, 0.01, dice) for at in range(size)))
        found += verdicts[slow] == "slow"
        accused += verdicts.count("slow") - (verdicts[slow] == "slow")
    assert found >= 190  # 95 %
    assert accused == 0


def test_equal_devices_are_ok_and_two_have_no_norm() -> None:
    assert words(*(outcome() for _ in range(4))) == ["ok"] * 4
    assert words(outcome(), outcome(0.5)) == ["ok", "ok"]


def test_what_was_kept_is_the_norm_of_one_device() -> None:
    kept = figure("memory", "read", 3e12)
    for changes, word in (
        ({}, "slow"),
        ({"stale": "another driver"}, "ok"),
        ({"disturbed": ["median"]}, "ok"),
        ({"by": "memchr of glibc"}, "ok"),
        ({"median": 2.7e12}, "ok"),
    ):
        device = card(0, measured=[kept | changes])
        (verdict,) = judged([(device, outcome(0.9))])
        assert verdict["verdict"] == word, changes
    (verdict,) = judged([(card(0, measured=[kept]), outcome(0.9))])
    assert sentence_of(verdict) == (
        "memory read 2700 GB/s, 90% of what was kept on 2026-11-01, 3000 GB/s"
    )


def test_runs_that_differ_decide_nothing_and_are_repeated() -> None:
    shaky = outcome(0.9)
    shaky.figures[0]["best"] = shaky.figures[0]["median"] * 1.2
    usual = [outcome() for _ in range(3)]
    for one in shaky.figures[1:]:
        one["median"] = 3e12
    assert words(shaky, *usual) == ["not decided", "ok", "ok", "ok"]
    verdicts = judged([(card(at), own) for at, own in enumerate((shaky, *usual))])
    assert [to_repeat(verdict) for verdict in verdicts] == [True, False, False, False]
    assert "its runs differ too much to decide" in sentence_of(verdicts[0])
    # The better of both counts: who was slow once, and not again, was disturbed.
    assert words(with_repeat(shaky, outcome()), *usual) == ["ok"] * 4
    assert words(with_repeat(outcome(0.9), outcome(0.89)), *usual)[0] == "slow"


def test_slots_of_other_widths_are_not_compared_by_their_links() -> None:
    cards = [card(at) for at in range(4)]
    cards[0]["links"] = [{"kind": "pcie", "width": 8}]
    narrow = outcome()
    for one in narrow.figures:
        one["median"] *= 0.5 if one["kind"] == "link" else 1.0
    verdicts = judged([(cards[0], narrow), *((other, outcome()) for other in cards[1:])])
    assert [verdict["verdict"] for verdict in verdicts] == ["ok"] * 4


def test_a_wrong_result_is_the_verdict_whatever_the_speed() -> None:
    wrong = outcome()._replace(wrong=[(INT8, "product 7 of int8 matrices is wrong")])
    assert words(wrong, outcome(), outcome()) == ["wrong", "ok", "ok"]
    assert words(with_repeat(wrong, outcome())) == ["wrong"]
    (verdict,) = judged([(card(0), wrong)])
    assert sentence_of(verdict) == "product 7 of int8 matrices is wrong"


def test_what_computed_nothing_has_no_verdict() -> None:
    (verdict,) = judged([(card(0), Outcome([], [(INT8, "no driver")]))])
    assert (verdict["verdict"], verdict["not_checked"]) == (None, "no driver")
    (verdict,) = judged([(card(0), Outcome([], [], "leased by process 3"))])
    assert (verdict["verdict"], sentence_of(verdict)) == (None, "leased by process 3")
    (verdict,) = judged([(card(0), Outcome([], []))])
    assert (verdict["verdict"], verdict["not_checked"]) == (None, "no answer")
    untyped: Task = {**INT8, "dtype": None}
    (verdict,) = judged([(card(0), Outcome([], [], compared=[(untyped, 3), (INT8, 0)]))])
    assert (verdict["verdict"], verdict["products"], verdict["not_checked"]) == (
        "ok",
        {"": 3},
        None,
    )


def test_what_a_check_does() -> None:
    titles = [title(task) for task in check_tasks(card(0))]
    assert titles == [
        *(f"known {dtype} products by tinygrad" for dtype in ("int8", "fp32", "fp16")),
        *(f"memory {name} by tinygrad" for name in NAMES["memory"]),
        *(f"link {name} by tinygrad" for name in NAMES["link"]),
    ]
    assert not any(task["kind"] == "link" for task in check_tasks(cpu()))


# The command, on the computer's CPU: the code of GPUs on a device that is always there.

needs_gcc = pytest.mark.skipif(stand_in.GCC is None, reason="gcc stands in for clang")


def checked(place: Path, compiler: str, *options: str) -> tuple[int, dict[str, Any]]:
    path = f"{compiler}{os.pathsep}{os.environ['PATH']}"
    done = run_check(place, "--device", "cpu:0", "--seconds", "0.3", *options, PATH=path)
    return done


def run_check(place: Path, *options: str, **changes: str) -> tuple[int, dict[str, Any]]:
    import subprocess
    import sys

    command = [sys.executable, "-m", "probe_core", "check", "--json", *options]
    env = environment(place, **changes)
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.heavy
@needs_gcc
def test_the_command_finds_a_device_ok_and_keeps_its_figures(tmp_path: Path) -> None:
    status, answer = checked(tmp_path, stand_in.compiler(tmp_path / "bin"), "--save")
    (entry,) = answer["devices"]
    assert (status, entry["verdict"]) == (0, "ok"), entry
    assert entry["products"]["int8"] >= 3
    assert answer["note"] == NO_PROOF
    kept = probe_report(tmp_path)["devices"][0]["measured"]
    assert {one["figure"] for one in kept} == {"read", "write", "copy"}


@pytest.mark.heavy
@needs_gcc
def test_the_command_finds_a_device_wrong(tmp_path: Path) -> None:
    fault = {"text": "signed char", "result": "int", "fault": "*(RESULT+70000) = 5;"}
    status, answer = checked(tmp_path, stand_in.compiler(tmp_path / "bin", **fault), "--save")
    (entry,) = answer["devices"]
    assert (status, entry["verdict"], answer["kept"]) == (1, "wrong", None)
    assert "row 136, column 368" in entry["wrong"][0]


def test_a_computer_without_a_gpu_has_nothing_to_check(tmp_path: Path) -> None:
    done = run_here(tmp_path, "--json", command="check")
    assert (done.returncode, json.loads(done.stdout)) == (
        1,
        {"schema": 1, "devices": [], "kept": None, "not_kept": None, "note": NO_PROOF},
    )
    done = run_here(tmp_path, command="check")
    assert (done.returncode, done.stdout) == (1, "There is no GPU to check.\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--seconds", "x"), "--seconds x: expected seconds, 0.1 to 25"),
        (("--device", "99"), "--device 99: no such device"),
        (("--machine", "x.json"), "check computes on this computer; leave out --machine"),
    ],
)
def test_bad_input_is_one_sentence(
    options: tuple[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from probe_core.cli import main

    assert main(["check", "--only", "cpu", *options]) == 2
    assert sentence in capsys.readouterr().err
