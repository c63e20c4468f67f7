"""What `probe bench` and `probe check` print of a device, line by line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import pytest
from bench_devices import gpu

from probe_bench.bench_command import Saved, _entry, _lines, measured_here
from probe_bench.check_command import _lines as check_lines
from probe_bench.figures import figure
from probe_bench.measuring import Outcome
from probe_bench.sensors import Readings
from probe_bench.tasks import Line, Task
from probe_bench.verdicts import judged
from probe_core.commands import Context
from probe_core.machine import Machine
from probe_core.model.document import MeasuredDoc, ReportDoc

INT8: Task = {"figure": "products", "kind": "matmul", "dtype": "int8", "library": "tinygrad"}
HALF: Task = {**INT8, "dtype": "fp16"}
COPY: Task = {"figure": "copy", "kind": "memory", "dtype": None, "library": "tinygrad"}
LINE: Line = {
    "event": "result", "rates": [2e12] * 10, "cold": 2e12, "warm_s": 0.5, "by": "tinygrad 0.14",
}  # fmt: skip
HEAD = "pci:0000:01:00.0  NVIDIA H100"
NO_PROOF = "  No error in some seconds is no proof that a device is sound."
REPORT = cast(ReportDoc, {"devices": []})


def context(stdout: io.StringIO | None = None) -> Context:
    own = Context(environ={}, stdout=stdout or io.StringIO())
    own.width = 160
    return own


def copied(**changes: Any) -> MeasuredDoc:
    entry = figure(gpu(), COPY, LINE, Readings(), 0)
    return cast(MeasuredDoc, entry | changes)


def checked_text(outcome: Outcome, **changes: Any) -> list[str]:
    return list(check_lines(judged([(gpu(**changes), outcome)]), context()))


def test_a_node_without_a_gpu_says_so() -> None:
    assert list(check_lines([], context())) == ["There is no GPU to check."]


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ([], []),
        ([{}], ["  memory copy 2000 GB/s"]),
        ([{"clock_mhz": 1755.4}], ["  memory copy 2000 GB/s", "  meanwhile 1755 MHz"]),
        (
            [{"clock_mhz": 1200.0, "power_w": 612.4, "clock_reasons": ["sw-power-cap"]},
             {"clock_mhz": 1300.0, "power_w": 590.0, "clock_reasons": ["hw-slowdown"]}],
            ["  memory copy 2000 GB/s, memory copy 2000 GB/s",
             "  meanwhile 1300 MHz, 612 W, held back by hw-slowdown, sw-power-cap"],
        ),
    ],
    ids=range(4),
)  # fmt: skip
def test_a_check_shows_what_moved_and_what_held_it_back(
    figures: list[dict[str, Any]], said: list[str]
) -> None:
    outcome = Outcome([copied(**one) for one in figures], [(HALF, "no fp16")], compared=[(INT8, 3)])
    moved = "; memory moved what they were given" if figures else ""
    assert checked_text(outcome) == [
        HEAD,
        f"  ok: no error in 3 products (3 of int8){moved}",
        *said,
        "  not computed: no fp16",
        NO_PROOF,
    ]


def test_what_was_not_checked_is_told_once() -> None:
    outcome = Outcome([], [(INT8, "no clang"), (HALF, "no clang")])
    assert checked_text(outcome, name=None) == [
        HEAD.split()[0],
        "  not checked: no clang",
        NO_PROOF,
    ]


ABOVE = copied(repeated=True, fraction_at_clock=1.25, clock_mhz=1755.4, fraction=0.5)
WHAT = "pci:0000:01:00.0 computes faster than its derived peak: 125% of it at 1755 MHz, twice"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome([], [], "leased by process 3"), ["  not measured: leased by process 3"]),
        (
            Outcome([], [(HALF, "no fp16")], wrong=[(INT8, "product 7 is wrong")]),
            ["  WRONG: product 7 is wrong", "  no known fp16 products by tinygrad: no fp16"],
        ),
    ],
    ids=range(2),
)
def test_what_a_bench_says_of_a_device(outcome: Outcome, said: list[str]) -> None:
    assert _lines(gpu(), outcome, context()) == [HEAD, *said]


def test_a_figure_above_the_peak_stands_below_the_table_and_in_the_entry() -> None:
    outcome = Outcome([ABOVE], [])
    assert _lines(gpu(), outcome, context())[-1] == f"  {WHAT}: the rate in chipdb is too low"
    assert [found["what"] for found in _entry(gpu(), outcome)["findings"]] == [WHAT]


def test_the_entry_of_a_device_has_what_its_lines_say() -> None:
    outcome = Outcome([], [(HALF, "no fp16")], wrong=[(INT8, "product 7 is wrong")])
    assert _entry(gpu(), outcome) == {
        "id": "pci:0000:01:00.0",
        "name": "NVIDIA H100",
        "not_measured": None,
        "measured": [],
        "wrong": [{**INT8, "reason": "product 7 is wrong"}],
        "problems": [{**HALF, "reason": "no fp16"}],
        "findings": [],
    }


def test_a_device_with_a_refusal_or_without_tasks_is_not_measured() -> None:
    here = (1.0, Machine(), REPORT, context())
    assert measured_here(gpu(), [COPY], "it is blocked", *here) == Outcome([], [], "it is blocked")
    nothing = "nothing of what is asked for concerns it"
    assert measured_here(gpu(), [], None, *here) == Outcome([], [], nothing)


@pytest.mark.parametrize(
    ("path", "problem", "devices", "out", "err"),
    [
        (None, None, None, "", ""),
        ("/s/m.json", None, None, "", "The figures were kept in /s/m.json.\n"),
        (None, "full", None, "", "probe check: the figures were not kept: full\n"),
        ("/s/m.json", None, [],
         '{"schema":1,"devices":[],"kept":"/s/m.json","not_kept":null,"note":"n"}', ""),
        (None, "full", [],
         '{"schema":1,"devices":[],"kept":null,"not_kept":"full","note":"n"}',
         "probe check: the figures were not kept: full\n"),
    ],
    ids=range(5),
)  # fmt: skip
def test_where_the_figures_are_is_told(
    path: str | None,
    problem: str | None,
    devices: list[Any] | None,
    out: str,
    err: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved, shown = Saved(), io.StringIO()
    saved.path, saved.problem = path, problem
    saved.tell("check", context(shown), devices, note="n")
    assert "".join(shown.getvalue().split()) == out
    assert capsys.readouterr().err == err


def test_after_a_problem_no_more_figures_are_kept(tmp_path: Path) -> None:
    machine = Machine(environ={"XDG_STATE_HOME": str(tmp_path)})
    report = cast(ReportDoc, {"devices": [gpu()], "node": {"hostname": "n", "id": "1"}})
    path = tmp_path / "probe-core" / "measured.json"
    saved = Saved()
    saved.add(machine, report, "pci:0000:01:00.0", [])
    assert (saved.path, saved.problem, path.exists()) == (None, None, False)
    saved.add(machine, report, "pci:0000:01:00.0", [copied()])
    assert (saved.path, saved.problem) == (str(path), None)
    path.write_text('{"schema": 99}')
    saved.add(machine, report, "pci:0000:01:00.0", [copied()])
    assert saved.problem == f"{path}: it is not of schema 1; remove it"
    path.unlink()
    saved.add(machine, report, "pci:0000:01:00.0", [copied()])
    assert not path.exists()


def test_a_folder_of_state_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    machine = Machine(environ={"XDG_STATE_HOME": str(tmp_path / "state")})
    report = cast(ReportDoc, {"devices": [gpu()], "node": {"hostname": "n", "id": "1"}})
    saved = Saved()
    saved.add(machine, report, "pci:0000:01:00.0", [copied()])
    assert saved.problem == f"{tmp_path}/state/probe-core: Not a directory"
