"""Cells of devices and the columns that a screen has room for, each at its bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_watch.columns import COLUMNS, device_table, fit, sentence
from probe_watch.figures import (
    KEPT_SAMPLES,
    Figure,
    History,
    figure_of_rule,
    memory_fraction,
    peak_fraction,
    spark,
)
from probe_watch.grid import fitted, table

GIB, TIB = 1 << 30, 1 << 40


def sample(**fields: Any) -> Any:
    known = {
        **dict.fromkeys(("busy", "memory", "activity", "temperature_c", "power_w", "power_cap_w")),
        **dict.fromkeys(("clocks_mhz", "processes", "throttled", "reason")),
        **{"device": "pci:0000:01:00.0", "status": "ok", "links": [], "unknown": {}},
    }
    return {**known, **fields}


def row(**fields: Any) -> Any:
    alerts = fields.pop("alerts", {})
    known = {"short": "01:00.0", "name": "RTX 4090", "number": 0, "group": 0, "is_shared": False,
             "state": "ok", "history": {"busy": [0.0, 1.0]}}  # fmt: skip
    own = {name: fields.pop(name) for name in list(known) if name in fields}
    return SimpleNamespace(**{**known, **own}, alerts=alerts, sample=sample(**fields))


def cell(head: str, width: int, **fields: Any) -> str:
    return next(column for column in COLUMNS if column.head == head).cell(row(**fields), width)


def memory(used: int | None, total: int | None) -> dict[str, Any]:
    return {"memory": {"used": used, "total": total}}


@pytest.mark.parametrize(
    ("head", "width", "fields", "text"),
    [
        ("#", 2, {}, "0"),
        ("#", 2, {"number": None}, ""),
        ("BUSY", 5, {}, "–"),
        ("BUSY", 5, {"busy": 0.0}, "0 %"),
        ("BUSY", 5, {"busy": 0.996}, "100 %"),
        ("PEAK", 6, {}, "– "),
        ("PEAK", 6, {"activity": {"tensor": 0.5}, "alerts": {"utilisation": "warning"}}, "50 %!"),
        ("TEMP", 7, {"temperature_c": 83.4}, "83 °C "),
        ("TEMP", 7, {"alerts": {"temperature": "error"}}, "–!"),
        ("POWER", 11, {"power_w": 300.4, "power_cap_w": 450.0}, "300 / 450 W"),
        ("POWER", 6, {"power_w": 300.4, "power_cap_w": 450.0}, "300 W"),
        ("POWER", 11, {"power_w": 300.4}, "300 W"),
        ("POWER", 11, {"power_cap_w": 450.0}, "–"),
        ("CLOCK", 8, {"clocks_mhz": {"sm": 2520.4}}, "2520 MHz"),
        ("CLOCK", 8, {}, "–"),
        ("LINK", 5, {"links": [{"kind": "pcie", "generation": 4, "width": 16}]}, "4×16"),
        ("LINK", 5, {"links": [{"kind": "nvlink", "generation": 4, "width": 16}]}, "–"),
        ("LINK", 5, {"links": [{"kind": "pcie", "generation": None, "width": 16}]}, "–"),
        ("LINK", 5, {"links": [{"kind": "pcie", "generation": 4, "width": None}]}, "–"),
        ("PROC", 4, {}, "–"),
        ("PROC", 4, {"processes": []}, "0"),
        ("PROC", 4, {"processes": [{}, {}]}, "2"),
        ("HISTORY", 4, {}, "  ▁█"),
        ("MEMORY", 18, {}, f"{'–':>17} "),
        ("MEMORY", 10, {}, f"{'–':>9} "),
        ("MEMORY", 18, memory(8 * GIB, 24 * GIB), "  8.0 / 24.0 GiB  "),
        ("MEMORY", 10, memory(8 * GIB, 24 * GIB), "  8.0 GiB "),
        ("MEMORY", 11, memory(8 * GIB, 24 * GIB), "  8.0 / 24 "),
        ("MEMORY", 18, {**memory(8 * GIB, 24 * GIB), "is_shared": True}, "  8.0 / 24.0 GiB *"),
        (
            "MEMORY",
            18,
            {**memory(GIB, 24 * GIB), "is_shared": True, "alerts": {"memory": "warning"}},
            "  1.0 / 24.0 GiB !",
        ),
        ("MEMORY", 18, memory(None, 24 * GIB), "    – / 24.0 GiB  "),
        ("MEMORY", 18, memory(GIB, None), "  1.0 / – GiB     "),
        ("MEMORY", 18, memory(0, 9_999 * GIB), "  0.0 / 9999 GiB  "),
        ("MEMORY", 18, memory(0, 10_000 * GIB), "  0.0 / 9.8 TiB   "),
        ("MEMORY", 18, memory(0, 1000 * GIB), "  0.0 / 1000 GiB  "),
        ("MEMORY", 18, memory(0, int(999.94 * GIB)), "  0.0 / 999.9 GiB "),
        ("USED", 8, {}, ""),
        ("USED", 8, memory(1, 1), "█" * 8),
        ("USED", 8, memory(2, 1), "█" * 8),
        ("USED", 8, memory(1, 2), "█" * 4),
        ("USED", 8, memory(1, 64), "▏"),
        ("USED", 8, memory(15, 64), "█▉"),
        ("USED", 4, memory(5, 32), "▋"),
        ("USED", 8, memory(0, 1), ""),
    ],
)
def test_a_cell(head: str, width: int, fields: dict[str, Any], text: str) -> None:
    assert cell(head, width, **fields) == text


def test_what_a_narrower_screen_goes_without() -> None:
    one = [row()]
    shown = [fit(room, one) for room in range(140, 30, -1)]
    rooms = [sum(widths.values()) + 2 * (len(widths) - 1) for widths in shown]
    # Each number is the last room that is enough for what is shown in it.
    assert sorted({*rooms}, reverse=True) == [
        133, 126, 118, 108, 103, 95, 91, 87, 81, 75, 67, 59, 49, 39
    ]  # fmt: skip
    for room, taken in zip(range(140, 30, -1), rooms, strict=True):
        assert taken <= room or room < 39
    assert fit(133, one) == {
        "#": 2, "ID": 7, "DEVICE": 8, "BUSY": 5, "HISTORY": 20, "PEAK": 6, "MEMORY": 18, "USED": 8,
        "TEMP": 7, "POWER": 11, "CLOCK": 8, "LINK": 5, "PROC": 4
    }  # fmt: skip
    assert fit(30, one) == {"#": 2, "ID": 7, "BUSY": 5, "MEMORY": 10, "TEMP": 7}
    assert fit(133, [])["ID"] == 2


def test_how_wide_a_name_may_be() -> None:
    def width(room: int, *rows: Any) -> int:
        return fit(room, rows).get("DEVICE", 0)

    assert width(200, row(name="A")) == 6
    assert width(200, row(name="A" * 31)) == 30
    assert width(200, row(name="")) == 0
    # One model says nothing in each line.
    assert width(200, row(), row()) == 0
    assert width(200, row(), row(name="RTX 3090 Ti")) == 11
    # Names of processors are cut to the width of accelerators' and the room that is left, then all
    # to twelve columns.
    cpu = row(name="C" * 25, group=1)
    assert width(200, row(), cpu) == 25
    assert [width(room, row(), cpu) for room in (133, 134, 149, 150)] == [8, 9, 24, 25]
    assert width(140, row(name="G" * 20), row(name="H" * 20)) == 20


def test_lines_of_devices() -> None:
    asleep = row(state="asleep", status="asleep", reason="between two jobs", number=1)
    rows = [row(busy=0.5, **memory(GIB, 2 * GIB)), asleep]
    head, lines = device_table(rows, 60)
    assert head.plain.split() == ["#", "ID", "BUSY", "HISTORY", "MEMORY", "TEMP", "POWER"]
    assert [key for key, _ in lines] == ["pci:0000:01:00.0"] * 2
    assert lines[1][1].plain.endswith("asleep: between two jobs")
    assert "50 %" in lines[0][1].plain


def test_a_sentence_in_the_place_of_figures() -> None:
    rows = [row(status="unresponsive", reason="5 s"), row(status="asleep"), row(status="pending")]
    assert [sentence(one) for one in rows] == ["no answer: 5 s", "asleep", "pending"]


def test_the_newest_values_as_bars() -> None:
    assert spark([0, 0.5, 1], 3, "012") == "012"
    assert spark([0, 0.5, 1], 2, "012") == "12"
    assert spark([None, 1], 4, "012") == "   2"
    assert spark([1.0], 0) == ""
    assert spark([0, 1.0], 1, "012") == "2"
    assert spark([], 3) == "   "
    assert spark([0.07, 0.08, 0.92, 0.93], 4) == "▁▂▇█"


def test_shares_of_memory_and_of_the_peak() -> None:
    cases = [None, (None, 5), (1, None), (1, 0), (1, 4), (0, 4)]
    found = [
        memory_fraction(sample(memory=case and {"used": case[0], "total": case[1]}))
        for case in cases
    ]
    assert found == [None, None, None, None, 0.25, 0.0]
    activities: list[Any] = [None, {"tensor": None}, {"tensor": 0.0}]
    assert [peak_fraction(sample(activity=one)) for one in activities] == [None, None, 0.0]


def test_why_a_figure_is_not_known() -> None:
    assert (Figure(0.0, "x").reason, Figure(None, "x").reason) == (None, "x")
    assert Figure(None).reason == "not known"
    heat = sample(unknown={"temperature_c": "no sensor"})
    found = figure_of_rule("temperature", heat)
    assert found is not None
    assert (found.value, found.reason, found.critical) == (None, "no sensor", None)
    found = figure_of_rule("temperature", sample(throttled=["power", "thermal-hw"], reason="r"))
    assert found is not None
    assert (found.reason, found.critical) == ("r", "thermal-hw")
    found = figure_of_rule("memory", sample(throttled=["thermal"], unknown={"memory.total": "t"}))
    assert found is not None
    assert (found.reason, found.critical) == ("t", None)
    assert figure_of_rule("latency", heat) is None


def test_the_last_samples_of_devices_that_are_there() -> None:
    history = History()
    for number in range(KEPT_SAMPLES + 1):
        history.add([sample(busy=float(number)), sample(device="b", power_w=1.0)])
    kept = history.of("pci:0000:01:00.0")
    assert (len(kept["busy"]), kept["busy"][0], kept["busy"][-1]) == (60, 1.0, 60.0)
    assert (kept["power"][-1], history.of("b")["power"][-1]) == (None, 1.0)
    history.add([sample(device="b")])
    assert len(history.of("b")["power"]) == 60
    assert list(history.of("pci:0000:01:00.0")["busy"]) == []


def test_a_table_leaves_out_what_has_no_room() -> None:
    heads, entries = ["A", "BB", "C"], [("k", ["aaa", "b", "cccc"], "")]

    def shown(width: int) -> list[str]:
        head, lines = table(heads, entries, width)
        return [head.plain, *(text.plain for _, text in lines)]

    assert shown(13) == ["A    BB  C", "aaa  b   cccc"]
    assert shown(12) == ["A    C", "aaa  cccc"]  # the last has all that it fills
    assert shown(3) == ["A    C", "aaa  cccc"]
    entries = [("k", ["aaa", "b", "c" * 25], "")]  # or 24 columns
    assert shown(33)[1] == "aaa  b   " + "c" * 25
    assert shown(32)[1] == "aaa  " + "c" * 25
    assert [line.plain for _, line in table(["A", "B"], [("k", ["", "b"], "")], 9)[1]] == ["b"]
    wide = table(["A", "B"], [("k", ["a" * 31, "b" * 40], "")], 99)[1][0][1].plain
    assert wide == "a" * 29 + "…  " + "b" * 40


def test_a_text_of_so_many_columns() -> None:
    assert [fitted("abcd", width) for width in (5, 4, 3, 1)] == ["abcd ", "abcd", "ab…", "…"]
    assert fitted("漢字", 3) == "漢…"
    assert fitted("漢字", 4) == "漢字"
