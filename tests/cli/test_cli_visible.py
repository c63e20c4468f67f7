"""The table of `probe visible`: first what is shown, then what may be, then what is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core.cli import main
from probe_core.cli.visible import _rows
from probe_core.visibility.view import Mask, View

TITLES: Any = {name: (name.upper(), f"card {name}", "ready") for name in "abcd"}


def test_rows_are_in_the_order_of_the_runtimes_numbers() -> None:
    mask = Mask(["c", "a"], "the variable does not name it")
    mask.maybe = {"d": "its driver decides"}
    rows = list(_rows("cuda", [View("cuda", ["b", "d", "a", "c"], [mask])], TITLES))
    assert rows == [
        ("cuda", "0", "C", "card c", "ready", ""),
        ("cuda", "1", "A", "card a", "ready", ""),
        ("cuda", "?", "D", "card d", "ready", "its driver decides"),
        ("cuda", "hidden", "B", "card b", "ready", "the variable does not name it"),
    ]


def test_a_number_that_the_driver_decides_is_one_of_several() -> None:
    masks = [Mask(["a", "b"]), Mask(["b", "a"])]
    view = View("cuda", ["a", "b"], masks, uncertain="its driver orders them")
    rows = list(_rows("cuda", [view], {"a": TITLES["a"]}))
    assert rows == [
        ("cuda", "0/1", "A", "card a", "ready", "its driver orders them"),
        ("cuda", "0/1", "b", "", "", "its driver orders them"),
    ]
    view.complete = False
    assert [row[1] for row in _rows("cuda", [view], TITLES)] == ["?", "?"]


def test_a_computer_without_such_devices_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "sys").mkdir()
    assert main(["visible", "--machine", str(tmp_path)]) == 0
    sentence = "no device of this computer belongs to a runtime that numbers devices\n"
    assert capsys.readouterr() == ("", sentence)
