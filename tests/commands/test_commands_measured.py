"""Figures that were measured: how they are written, and how a command keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe_core.commands.measured import (
    measured_amount,
    measured_name,
    measured_part,
    save_measured,
)


def figure(**facts: Any) -> Any:
    empty = dict.fromkeys(("dtype", "unit", "best", "median", "runs", "by", "driver", "date"))
    named = {"figure": "compute", "kind": "alu", "disturbed": [], "stale": None}
    return {**empty, **named, **facts}


READ: dict[str, Any] = {"figure": "read", "kind": "memory", "unit": "B/s"}
TFLOPS: dict[str, Any] = {"dtype": "fp32", "unit": "TFLOPS"}


@pytest.mark.parametrize(
    ("facts", "value", "words"),
    [
        (TFLOPS, None, ("fp32 alu", "–")),
        (TFLOPS, 0.1, ("fp32 alu", "0.10 TFLOPS")),
        (TFLOPS, 0.0999, ("fp32 alu", "99.9 GFLOPS")),
        ({"dtype": "int8", "unit": "TOPS"}, 0.0191, ("int8 alu", "19.1 GOPS")),
        (TFLOPS | {"unit": None}, 12.34, ("fp32 alu", "12.3 ")),
        (READ, 34e9, ("memory read", "34 GB/s")),
    ],
)
def test_names_and_amounts(facts: Any, value: float | None, words: tuple[str, str]) -> None:
    own = figure(**facts)
    assert (measured_name(own), measured_amount(own, value)) == words


@pytest.mark.parametrize(
    ("facts", "part"),
    [
        ({"fraction": 0.5, "fraction_at_clock": 0.98, "clock_mhz": 3625}, "98% at 3625 MHz"),
        ({"fraction_at_clock": 0.98}, "98% at 0 MHz"),
        ({"fraction": 0.5}, "–"),  # of another clock
        (READ | {"fraction": 0.5}, "50%"),
        (READ, "–"),
    ],
)
def test_the_part_of_the_derived_figure(facts: Any, part: str) -> None:
    assert measured_part(figure(**facts)) == part


DEVICES = [{"id": id, "ids": [id], "name": "Acme"} for id in ("a:1", "a:2")]
REPORT: Any = {"node": {"id": "n"}, "devices": DEVICES}


def test_it_is_kept_without_what_a_probe_computes(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    own = figure(**TFLOPS, median=1.0, fraction=0.5, fraction_at_clock=0.98)
    path = Path(save_measured(environ, REPORT, {"a:2": [own], "a:3": [own]}))
    assert own["fraction"] == 0.5  # the caller's stays
    assert path.stat().st_mode & 0o777 == 0o600
    kept = {name: value for name, value in own.items() if not name.startswith("fraction")}
    entry = {"ids": ["a:2"], "name": "Acme", "measured": [kept]}
    assert json.loads(path.read_text()) == {"schema": 1, "nodes": {"n": [entry]}}
    save_measured(environ, REPORT, {"a:1": [figure(**READ)]})
    both = json.loads(path.read_text())["nodes"]["n"]
    assert [e["ids"] for e in both] == [["a:2"], ["a:1"]]


def test_where_it_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither XDG_STATE_HOME nor HOME names a folder"):
        save_measured({}, REPORT, {})
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    path = Path(save_measured(environ, REPORT, {}))
    path.write_text("{}")
    with pytest.raises(ValueError, match=f"{path}: .*; remove it"):
        save_measured(environ, REPORT, {})
    assert path.read_text() == "{}"
