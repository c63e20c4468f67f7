"""Sightings that were checked while their prober still ran are not checked again."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.pipeline import collect
from probe_core.pipeline.collect import Checking, checked
from probe_core.pipeline.validate import check_sighting


def gpu(bus: int, **fields: object) -> dict[str, Any]:
    return {"ids": [f"pci:0000:{bus:02x}:00.0"], "kind": "gpu", **fields}


SIGHTINGS = [
    gpu(1, name="One"),
    gpu(2, units=-1),
    gpu(1, name="Another of that id"),
    "no mapping",
    gpu(3, name="Three"),
]


def early(sightings: list[Any]) -> Checking:
    checking = Checking()
    for sighting in sightings:
        checking.take(sighting)
    return checking


@pytest.mark.parametrize("count", range(len(SIGHTINGS) + 1))
def test_what_came_early_and_late_are_one_list(count: int) -> None:
    good, problems = checked(SIGHTINGS)
    assert [sighting["ids"] for sighting in good] == [gpu(n)["ids"] for n in (1, 2, 3)]
    assert len(problems) == 3
    assert checked(SIGHTINGS, early(SIGHTINGS[:count])) == (good, problems)


def test_only_what_is_left_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    first = early(SIGHTINGS[:3])
    calls: list[object] = []
    check_next = collect.check_next

    def counted(raw: object, *rest: Any) -> Any:
        calls.append(raw)
        return check_next(raw, *rest)

    monkeypatch.setattr(collect, "check_next", counted)
    checked(SIGHTINGS, first)
    assert calls == SIGHTINGS[3:]


@pytest.mark.parametrize(
    "other",
    [SIGHTINGS[::-1], [gpu(1, name="One"), gpu(9)], SIGHTINGS[1:], [*SIGHTINGS, gpu(7)]],
    ids=["another order", "equal, and not the same", "without the first", "more than there are"],
)
def test_what_was_sorted_since_is_checked_anew(other: list[Any]) -> None:
    assert checked(SIGHTINGS, early(other)) == checked(SIGHTINGS)


def test_a_clock_that_no_chip_has_is_left_out() -> None:
    peak = {"dtype": "fp32", "tflops": 1.0, "mhz": 100_001}
    sighting, problems = check_sighting({**gpu(1), "peaks": [peak]})
    assert sighting is not None
    assert "mhz" in str(problems)
