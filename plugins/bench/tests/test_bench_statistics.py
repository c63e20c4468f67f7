"""Best, median, warm-up, and what shows that others disturbed: exact arithmetic."""

from __future__ import annotations

import os

import pytest

from probe_bench.cores import Crew, Span
from probe_bench.cpu_runs import span_run
from probe_bench.statistics import (
    LEAST_RUNS,
    Run,
    _is_complete,
    disturbances,
    median,
    others_share,
    parsed,
    series,
)


@pytest.mark.parametrize(
    ("values", "middle"), [([3.0], 3.0), ([3.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 9.0], 3.0)]
)
def test_median(values: list[float], middle: float) -> None:
    assert median(values) == middle


@pytest.mark.parametrize(
    ("rates", "cpu", "others", "processes", "signs"),
    [
        ([100.0, 90.0, 90.0], 0.95, 0.05, 0, []),
        ([100.0, 89.0, 89.0], 1.0, 0.0, None, ["median"]),
        ([100.0], 0.949, None, None, ["cpu-time"]),
        ([100.0], None, 0.051, None, ["other-load"]),
        ([100.0], None, None, 1, ["processes"]),
        ([100.0, 1.0, 1.0], 0.5, 0.5, 2, ["median", "cpu-time", "other-load", "processes"]),
    ],
)
def test_disturbances(
    rates: list[float],
    cpu: float | None,
    others: float | None,
    processes: int | None,
    signs: list[str],
) -> None:
    assert disturbances(rates, cpu, others, processes) == signs


def test_series_has_the_first_run_apart_and_ten_more_at_least() -> None:
    amounts = iter([5.0, *[10.0] * 100_000])
    values = series(lambda: Run(next(amounts), 2.0, 0.5, 1.0), 0.0)
    assert values.cold == 2.5
    assert values.rates == [5.0] * LEAST_RUNS
    assert values.cpu_share == 0.5


def test_series_has_ten_thousand_runs_at_most() -> None:
    assert len(series(lambda: Run(1.0, 1.0), 1e6).rates) == 10_000


@pytest.mark.parametrize(
    ("count", "elapsed", "is_complete"),
    [(0, 1e9, False), (1, 9.0, False), (1, 9.1, True), (9, 9.0, False), (9, 9.1, True),
     (10, 2.0, False), (10, 2.1, True), (9_999, 0.0, False), (10_000, 0.0, True)],
)  # fmt: skip
def test_a_slow_device_gets_four_times_as_long_for_ten_runs(
    count: int, elapsed: float, is_complete: bool
) -> None:
    assert _is_complete(count, elapsed, 2.0) is is_complete


def test_series_of_a_device_has_no_share_of_a_cpu() -> None:
    assert series(lambda: Run(1.0, 1.0), 0.0).cpu_share is None


def test_run_of_a_crew_is_from_the_first_begin_to_the_last_end() -> None:
    run = span_run([Span(1.0, 3.0, 1.5), Span(1.5, 3.5, 2.0)], 50.0)
    assert run == Run(50.0, 2.5, 3.5, 4.0)


def test_crew_calls_every_member_and_passes_on_what_it_raises() -> None:
    own = sorted(os.sched_getaffinity(0))
    crew, calls = Crew([own[0], own[-1], own[0]]), []
    assert len(crew.run(lambda number: calls.append((number, os.sched_getaffinity(0))))) == 3
    assert sorted(calls) == [(0, {own[0]}), (1, {own[-1]}), (2, {own[0]})]
    assert sorted(os.sched_getaffinity(0)) == own
    assert Crew([]).size == 1

    def fail(number: int) -> None:
        raise ValueError(str(number))

    with pytest.raises(ValueError, match=r"[012]"):
        crew.run(fail)
    assert len(crew.run(lambda number: None)) == 3


@pytest.mark.parametrize(
    ("line", "times"),
    [
        # user nice system idle iowait irq softirq steal guest: stolen time is busy, a guest's is
        # in user already.
        ("cpu  100 10 20 500 50 1 2 7 40 0\n", (140, 690)),
        ("cpu  1 2 3 4 5\n", (6, 15)),
        ("cpu  1 2 3\n", None),
        ("intr 1 2 3 4 5 6\n", None),
    ],
)
def test_times_of_the_cpus(line: str, times: tuple[int, int] | None) -> None:
    assert parsed(line) == times


def test_share_of_others_is_what_is_busy_without_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    assert others_share((0, 0), (150, 200), 1.0) == 0.25
    assert others_share((0, 0), (90, 200), 1.0) == 0.0
    assert others_share((0, 0), (30, 39), 0.0) is None  # too short
    assert others_share(None, (1, 100), 0.0) is None
