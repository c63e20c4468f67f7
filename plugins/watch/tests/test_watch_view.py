"""The screen's content at all widths, and what happened beside the samples: without a terminal."""

from __future__ import annotations

import io
import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from watch_samples import GIB, NIGHT, address, busy, report, sample, silent

from probe_core.commands import Context
from probe_watch.alerts import Alerts, rules_of
from probe_watch.columns import fit
from probe_watch.figures import ASCII_LEVELS, History, spark
from probe_watch.frame import Painter
from probe_watch.lines import Lines
from probe_watch.rounds import Happening
from probe_watch.view import KEYS, Panel, Program, Programs, View

H100 = "NVIDIA H100 80GB HBM3"
MORE_KEYS = "0–8 history  t thresholds  P processes  ? help"


def painter(encodable: Any = None) -> Painter:
    return Painter(True, encodable or (lambda text: text))


def frame(view: View, columns: int = 120, rows: int = 40, **options: Any) -> list[str]:
    lines = painter().lines(view, columns, rows, **options)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert len(plain) <= rows
    assert all(cell_len(line) <= columns for line in plain), plain
    return [line.rstrip() for line in plain]


def view_of(samples: list[Any], *names: str, **rules: Any) -> View:
    alerts = Alerts(rules_of(rules))
    view = View(report(*names), alerts, 1.0)
    for second in range(3):
        for edge in alerts.update(second, NIGHT + second, samples):
            view.remember(NIGHT + second, edge)
        view.update(NIGHT + second, samples)
    return view


EIGHT = [busy(address(number), number / 10) for number in range(1, 9)]


@pytest.mark.parametrize("columns", [*range(40, 60), 60, 61, 79, 80, 100, 119, 120, 200])
def test_no_line_is_wider_than_the_screen(columns: int) -> None:
    for rows in (1, 2, 3, 5, 8, 12, 24, 60):
        view = view_of([*EIGHT[:7], silent(address(8), reason="x" * 300)], *[H100] * 8)
        lines = frame(view, columns, rows)
        assert lines[0].startswith("8 × NVIDIA H100")


def test_columns_leave_in_the_order_of_the_design() -> None:
    shown = [tuple(fit(columns, 0, 7, distinct=False).widths()) for columns in range(160, 39, -1)]
    heads = list(dict.fromkeys(shown))
    assert heads[0] == (
        "#", "ID", "BUSY", "PEAK", "MEMORY", "TEMP", "POWER", "CLOCK", "LINK", "PROC",
    )  # fmt: skip
    gone = [set(wide) - set(narrow) for wide, narrow in pairwise(heads)]
    assert gone == [{"LINK"}, {"PEAK"}, {"CLOCK"}, {"PROC"}, {"POWER"}]
    caps = [fit(columns, 0, 7, distinct=False).cap for columns in (120, 80)]
    assert caps == [True, False]
    assert fit(40, 30, 7, distinct=False).needed() <= 40
    assert fit(60, 30, 7, distinct=False).spark >= 8


def test_names_are_shown_where_they_tell_devices_apart() -> None:
    two = [busy(address(1)), silent(address(2), "asleep", "it sleeps, and is not woken")]
    lines = frame(view_of(two, "RTX 4060 Laptop", "Iris Xe"), 80)
    assert "RTX 4060 Lap…" not in lines[2]
    assert any("RTX 4060" in line and "50.0 / 80.0 GiB" in line for line in lines)
    assert any(
        "Iris Xe" in line and "asleep: it sleeps, and is not woken" in line for line in lines
    )
    assert not any("01:00.0" in line for line in lines[1:4])


def test_marks_tell_what_colours_tell() -> None:
    full = {"memory": {"used": 79 * GIB, "total": 80 * GIB}, "temperature_c": 95.0}
    view = view_of(
        [busy(address(1), **full), busy(address(2))], H100, H100,
        memory={"seconds": 0}, temperature={"seconds": 0},
    )  # fmt: skip
    lines = frame(view)
    hot = next(line for line in lines if "95 °C" in line)
    assert "███████▉!" in hot
    assert hot.count("!") == 2
    assert lines.index(hot) == 2
    assert "!" not in next(line for line in lines if "67 °C" in line)
    assert sum(line.startswith("! 22:14:04Z  01:00.0  ") for line in lines) == 2


def test_what_is_not_known_is_a_dash_and_never_zero() -> None:
    line = frame(view_of([sample(address(1))], H100))[2]
    assert "0" not in line.replace("01:00.0", "").replace("H100 80GB HBM3", "").lstrip(" 0")
    assert line.count("–") == 5


def test_a_device_that_came_and_a_name_that_is_hostile() -> None:
    view = view_of([busy(address(1)), busy("uuid:GPU-1a2b3c4d-0000")], "<script> 漢字")
    event: Any = {"event": "added", "device": "pci:0000:05:00.0", "change": "it is on the bus"}
    view.remember(NIGHT, event)
    lines = frame(view)
    assert "  22:14:03Z  05:00.0  added: it is on the bus" in lines
    assert any("GPU-1a2b3c4d" in line for line in lines)
    assert lines[0].startswith("<script> 漢字   every 1 s")


def test_the_node_and_its_network() -> None:
    links = [
        {"kind": "ethernet", "name": "eth0", "generation": None, "width": None,
         "received": 1.5e6, "sent": 2.5e9}
    ]  # fmt: skip
    node = sample(
        "node:self", busy=0.1, links=links, pressure={"cpu": 0.25, "memory": 0.0, "io": None}
    )
    lines = frame(view_of([busy(address(1)), node], H100))
    assert "    eth0 in 1.5 MB/s, out 2.5 GB/s   waiting for cpu 25%, memory 0%" in lines


def test_processes_by_memory_and_how_many_are_not_shown() -> None:
    many = [
        {"pid": 1000 + number, "user": "u" * 40, "memory": number * GIB} for number in range(60)
    ]
    view = view_of([busy(address(1), processes=many)], H100)
    lines = frame(view, 80, 24)
    pids = [line.split()[1] for line in lines if line.startswith("    01:00.0")]
    assert pids[:2] == ["1059", "1058"]
    assert len(lines) == 24
    assert f"    … {60 - len(pids)} more" in lines


def test_an_ascii_screen() -> None:
    view = view_of(EIGHT, *[H100] * 8)
    ascii_only = painter(lambda text: text.encode("ascii", "replace").decode())
    lines = ascii_only.lines(view, 120, 40)
    assert all(line.isascii() for line in lines)
    assert "#####" in lines[5]


def test_history() -> None:
    history = History()
    for value in (0.0, None, 0.5, 1.0):
        history.add([sample("a", busy=value), sample("b", busy=value)])
    assert spark(history.values("a"), 4) == "▁ ▅█"
    assert spark(history.values("a"), 6) == "  ▁ ▅█"
    assert spark(history.values("a"), 2) == "▅█"
    assert spark(history.values("a"), 4, ASCII_LEVELS) == "_ =#"
    assert spark(history.values("a"), 0) == ""
    history.add([sample("b", busy=0.1)])
    assert history.values("a") == []
    for _ in range(500):
        history.add([sample("b", busy=0.1)])
    assert len(history.values("b")) == 60


def test_pausing_keeps_the_picture() -> None:
    view = view_of([busy(address(1), temperature_c=61.0)], H100)
    assert view.key("p")
    view.update(NIGHT + 9, [busy(address(1), temperature_c=71.0)])
    assert any("61 °C" in line for line in frame(view))
    assert view.key(" ")
    assert any("71 °C" in line for line in frame(view))
    assert not view.key("x")


@pytest.mark.parametrize("is_json", [True, False])
def test_devices_that_come_and_go_are_lines(is_json: bool) -> None:
    out = io.StringIO()
    lines = Lines(Context(stdout=out), Alerts(rules_of({})), json=is_json, full=False)
    events: Any = [
        {"event": "added", "device": address(2), "change": "it is on the bus now"},
        {"event": "removed", "device": address(1), "change": "it left the bus"},
    ]
    lines.take(Happening(NIGHT, [busy(address(2))], events, [], []))
    written = out.getvalue().splitlines()
    assert len(written) == 3
    if is_json:
        documents = [json.loads(line) for line in written]
        assert [d.get("event") for d in documents] == ["added", "removed", None]
        assert documents[1]["device"] == address(1)
    else:
        assert written[0].endswith("pci:0000:02:00.0 added: it is on the bus now")


def test_a_note_is_shown_for_a_while() -> None:
    view = view_of(EIGHT, *[H100] * 8)
    view.annotate(NIGHT + 2, ["first", "the sampler hangs"])
    assert frame(view)[-1] == "q quit  p pause  s sort: state  ? help   the sampler hangs"
    view.update(NIGHT + 33, EIGHT)
    assert frame(view)[-1] == f"q quit  p pause  s sort: state  {MORE_KEYS}"


def test_the_title_keeps_the_order_of_the_report() -> None:
    two = [busy(address(1)), silent(address(2))]
    assert frame(view_of(two, "RTX 4090", "RTX 3090"))[0].startswith("RTX 4090 + RTX 3090   every")


def panel(view: View, keys: str, columns: int = 120) -> list[str]:
    for key in keys:
        assert view.key(key), key
    return frame(view, columns)


def test_thresholds_say_what_each_alert_does_now() -> None:
    full = {"memory": {"used": 79 * GIB, "total": 80 * GIB}, "activity": None}
    two = [busy(address(1), **full), busy(address(2), activity=None)]
    view = view_of(two, H100, H100, memory={"above": 0.9, "seconds": 0}, latency=False)
    lines = panel(view, "t")
    at = lines.index("    ALERT           ABOVE    FOR  ENDS AT   NOW")
    assert lines[at + 1 : at + 6] == [
        "    utilisation      90 %    5 s     87 %   – not known",
        "    memory           90 %    0 s     87 %   ! 01:00.0",
        "    latency      off in the file of settings",
        "    temperature     80 °C   10 s    77 °C   no alert",
        "    the file of settings changes them: [command.watch.alerts]",
    ]
    assert not any("ALERT" in line for line in panel(view, "t"))


def test_the_history_of_a_device_has_its_figures_and_the_reasons() -> None:
    view = View(report(H100, H100), Alerts(rules_of({})), 1.0)
    for second in range(70):
        heat = 40.0 + second
        view.update(
            NIGHT + second,
            [busy(address(1)), busy(address(2), second / 100, temperature_c=heat, power_w=None,
                                    unknown={"power_w": "no rights to it"})],
        )  # fmt: skip
    lines = panel(view, "1")
    at = lines.index(f"    history of 1  02:00.0  {H100}")
    bars = [line.split("  ") for line in lines[at + 1 : at + 6]]
    assert lines[at + 1].startswith("    busy           69 %  ")
    assert lines[at + 1].endswith("▄▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▆▆▆▆▆  10 % to 69 %")
    assert len(next(part for part in bars[0] if "▅" in part)) == 60
    assert lines[at + 4].startswith("    temperature  109 °C  ▁▁")
    assert lines[at + 4].endswith("██  50 °C to 109 °C")
    assert lines[at + 5] == "    power             –  no rights to it"
    # A second figure soon is the second digit of a number, where there is such a device.
    assert not view.key("9")
    assert not any("history of" in line for line in panel(view, "\x1b"))


def test_two_digits_are_a_number_and_the_same_key_ends_it() -> None:
    chosen = Panel()
    assert chosen.press("1", 15, 10.0)
    assert chosen.press("2", 15, 10.5)
    assert (chosen.name, chosen.number) == ("history", 12)
    assert chosen.press("1", 15, 20.0)
    assert chosen.press("9", 15, 20.5)
    assert (chosen.name, chosen.number) == ("history", 9)
    assert chosen.press("9", 15, 30.0)
    assert chosen.name == "processes"
    assert not chosen.press("5", 3, 40.0)
    assert not chosen.press("0", -1, 41.0)
    assert not chosen.press("²", 15, 42.0)


def test_processes_by_device_and_hidden() -> None:
    # Above the kernel's largest number, so that no process of this computer has a name for them.
    used = [[{"pid": 5_000_010 + n, "user": "u", "memory": n * GIB}] for n in (1, 2)]
    two = [busy(address(n), processes=used[n - 1]) for n in (1, 2)]
    view = view_of(two, H100, H100)

    def pids(lines: list[str]) -> list[str]:
        return [line.split()[1] for line in lines if " GiB" in line and "/" not in line]

    assert pids(frame(view)) == ["5000012", "5000011"]
    assert pids(panel(view, "g")) == ["5000011", "5000012"]
    assert pids(panel(view, "m")) == ["5000012", "5000011"]
    assert pids(panel(view, "P")) == []
    assert pids(panel(view, "P")) == ["5000012", "5000011"]


def test_the_help_explains_every_column_and_key_at_the_smallest_usual_screen() -> None:
    view = view_of(EIGHT, *[H100] * 8)
    heads = set(fit(200, 20, 7, distinct=False).widths())
    view.key("?")
    lines = frame(view, 80, 24)
    assert heads <= set(re.split(r"[ ,]+", " ".join(line[:16] for line in lines)))
    assert all(any(line.startswith(key) for line in lines) for key in KEYS)
    assert lines[-1].startswith("q quit")
    assert not any("08:00.0" in line for line in lines)
    view.key("?")
    assert any("08:00.0" in line for line in frame(view, 80, 24))


def test_the_guide_has_the_keys_of_the_help() -> None:
    guide = (Path(__file__).parents[3] / "docs/how-to/watch-a-node.md").read_text(encoding="utf-8")
    for keys, about in KEYS.items():
        named = ", ".join(f"`{key}`" if len(key) == 1 else key for key in keys.split(", "))
        assert f"| {named} | {about} |" in guide


@pytest.mark.parametrize("keys", ["t", "?", "0", "1", "P", "g"])
@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_panel_is_wider_or_longer_than_the_screen(keys: str, columns: int) -> None:
    view = view_of([*EIGHT[:7], silent(address(8), reason="x" * 300)], *[H100] * 8)
    view.key(keys)
    for rows in (1, 2, 3, 5, 8, 12, 24, 60):
        assert len(frame(view, columns, rows)) <= rows


def test_a_process_has_its_program_and_its_age(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    for pid, name, start in ((7, "a) (b", 60), (8, "evil\x1b[31m", 100)):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        fields = ["0"] * 40
        fields[19] = str(start * ticks)
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
    (tmp_path / "proc" / "uptime").write_text("11560.50 99.9\n")
    programs = Programs(str(tmp_path))
    assert programs.of(7) == Program("a) (b", 11500.5)
    assert "\x1b" not in programs.of(8).name  # type: ignore[union-attr]
    assert programs.of(9) is None
    used = [{"pid": 7, "user": "u", "memory": 2 * GIB}, {"pid": 8, "user": None, "memory": GIB}]
    view = view_of([busy(address(1), processes=used)], H100)
    view.programs = programs
    lines = frame(view, 100)
    at = next(number for number, line in enumerate(lines) if " PID " in line)
    head, known, foreign = lines[at : at + 3]
    assert head.endswith("SINCE  COMMAND    m: by memory  g: by GPU")
    assert known.endswith("u                2.0 GiB    03:11:40  a) (b")
    assert foreign.endswith("–                1.0 GiB           –  –")
    (tmp_path / "proc" / "uptime").write_text("x\n")
    assert programs.of(7) == Program("a) (b", None)


def test_few_columns_leave_the_key_of_the_help() -> None:
    view = view_of(EIGHT, *[H100] * 8)
    assert frame(view, 60)[-1] == "q quit  p pause  s sort: state  0–8 history  ? help"
    assert frame(view, 40)[-1] == "q quit  p pause  s sort: state  ? help"


@pytest.mark.parametrize("columns", [60, 120])
def test_memory_that_the_processor_shares_has_a_mark(columns: int) -> None:
    shown = report(H100)
    shown["devices"][0]["memory"] = {"kind": "unified"}
    view = View(shown, Alerts(rules_of({})), 1.0)
    view.update(NIGHT, [busy(address(1))])
    lines = frame(view, columns)
    assert re.search(r"50\.0 (/ 80\.0 )?GiB ?\*", lines[2])
    assert any("  49.0 GiB*  " in line for line in lines[3:])
