"""What the screen's panels say, line by line, of a node that has every kind of row."""

from __future__ import annotations

from typing import Any

import pytest
from watch_samples import GIB, NIGHT, address, busy, sample, silent

from probe_watch import panels
from probe_watch.alerts import Alerts, rules_of
from probe_watch.columns import COLUMNS, device_table, fit
from probe_watch.figures import NODE
from probe_watch.node import Node, Row, short_names, summary
from probe_watch.processes import Task, age
from probe_watch.rounds import Happening


def device(identity: str, name: str | None, kind: str = "gpu", memory: str = "dedicated") -> Any:
    vendor = (name or "").partition(" ")[0].lower()
    return {
        "id": identity,
        "kind": kind,
        "name": name,
        "vendor": vendor,
        "memory": {"kind": memory},
    }


LINK = {"kind": "nvlink", "name": "NVLink 4", "received": 3 * GIB, "sent": None}
PRESSURE = {"cpu": 0.5, "memory": None, "io": 0.07}


@pytest.fixture
def node() -> Node:
    made = Node("far", Alerts(rules_of({"temperature": {"seconds": 1}, "latency": False})))
    made.describe(
        [
            *(device(address(number), "NVIDIA H100 80GB HBM3") for number in (1, 2)),
            *(device(address(number), "NVIDIA H200") for number in (3, 4)),
            device("cpu:0", "AMD EPYC 9654", "cpu", "unified"),
        ]
    )
    first = [
        busy(address(1), 0.5, power_w=500.0, temperature_c=85.0),
        sample(address(2), busy=0.25),
    ]
    made.take(Happening(NIGHT - 1, first, [], None, []))
    second = [
        busy(address(1), temperature_c=92.0),
        sample(address(2)),
        busy(
            address(3), 0.2, temperature_c=60.0, power_w=100.0, links=[LINK],
            throttled=["hw-thermal", "power-cap"], pressure=PRESSURE, unknown={"xids": "no right"},
        ),
        silent(address(4)),
        sample(NODE),
        busy("cpu:0", 0.1),
    ]  # fmt: skip
    removed: Any = {"event": "removed", "device": address(4), "change": "it is off the bus"}
    made.take(Happening(NIGHT, second, [removed], None, []))
    return made


@pytest.fixture
def tasks() -> list[Task]:
    return [
        Task(
            7, "u1", {"01:00.0": GIB, "02:00.0": None}, started=5, age=90.0, name="python",
            command="train", container="docker 0123456789ab", lease="night", parent=1,
        ),
        Task(8, None, depth=2),
        Task(None, "u2", {"03:00.0": 3 * GIB}, age=7200.0),
    ]  # fmt: skip


def test_rows(node: Node) -> None:
    rows = node.rows()
    assert [(row.short, row.number, row.name, row.group) for row in rows] == [
        ("01:00.0", 0, "H100 80GB HBM3", 0),
        ("02:00.0", 1, "H100 80GB HBM3", 0),
        ("03:00.0", 2, "H200", 0),
        ("04:00.0", 3, "H200", 0),
        ("cpu:0", 4, "EPYC 9654", 1),
        ("node", None, "", 2),
    ]
    assert [row.state for row in rows] == ["warning", "ok", "ok", "unresponsive", "ok", "ok"]
    assert not any(row.is_shared for row in rows)
    assert summary(rows) == "2 × H100 80GB HBM3 + 2 × H200"
    assert summary(rows[:2]) == "2 × NVIDIA H100 80GB HBM3"
    assert summary(rows[4:]) == "no accelerator"


@pytest.mark.parametrize(
    ("order", "falling", "expected"),
    [
        ("device", False, [0, 1, 2, 3]),
        ("device", True, [3, 2, 1, 0]),
        ("state", False, [3, 0, 1, 2]),
        ("busy", False, [0, 2, 1, 3]),
        ("memory", False, [0, 2, 1, 3]),
        ("temperature", False, [0, 2, 1, 3]),
        ("power", False, [0, 2, 1, 3]),
        ("power", True, [3, 1, 2, 0]),
    ],
)
def test_orders(node: Node, order: str, falling: bool, expected: list[int]) -> None:
    assert [row.number for row in node.rows(order, falling=falling)] == [*expected, 4, None]


def test_a_gpu_with_the_processors_memory_says_so() -> None:
    node = Node("", Alerts({}))
    kinds = ("unified", "shared", "dedicated")
    node.describe([device(address(n), "Intel Arc 140V", memory=m) for n, m in enumerate(kinds)])
    assert [Row(node, sample(address(n))).is_shared for n in range(3)] == [True, True, False]


def lines(row: Row, width: int) -> list[str]:
    return panels.graphs(row, width).plain.split("\n")


def test_graphs(node: Node) -> None:
    first, second, third, *_ = node.rows()
    assert lines(first, 45) == [
        "01:00.0  NVIDIA H100 80GB HBM3",
        "busy           96 %         50 to 96 %   ▅█",
        "peak           61 %         61 to 61 %   ▅▅",
        "memory         62 %         62 to 62 %   ▅▅",
        "temperature   92 °C        85 to 92 °C   ▁█",
        "power         612 W       500 to 612 W   ▁█",
    ]
    assert lines(second, 44)[:3] == [
        "02:00.0  NVIDIA H100 80GB HBM3",
        "busy              –         25 to 25 %  ▃ ",
        "peak              –   not known",
    ]
    assert lines(third, 42)[4] == "temperature   60 °C        60 to 60 °C  "


def test_all_that_is_known_of_a_device(node: Node) -> None:
    first, _, third, fourth, *_ = node.rows()
    assert panels.device_details(first).plain.split("\n") == [
        "NVIDIA H100 80GB HBM3",
        "pci:0000:01:00.0  gpu  warning",
        "busy                 96 %",
        "peak                 61 %",
        "memory               50.0 / 80.0 GiB",
        "temp                 92 °C!",
        "power                612 / 700 W",
        "clock                1755 MHz",
        "link                 5×16",
        "proc                 1",
        "memory clock         2619 MHz",
        "sm activity          90%",
        "memory activity      40%",
        "pcie  in 953.7 MiB/s, out 1.9 GiB/s",
    ]
    counted: Any = {"energy_j": 12.5e6, "ecc_corrected": 0, "ecc_uncorrected": None}
    odd = sample(address(2), busy=0.5, counters=counted, xids=[{"code": 79, "count": 2}])
    assert panels.device_details(Row(node, odd)).plain.split("\n")[2:] == [
        "busy                 50 %",
        "energy j             12500000",
        "ecc corrected        0",
        "xid 79               2 times",
    ]
    assert panels.device_details(third).plain.split("\n") == [
        "NVIDIA H200",
        "pci:0000:03:00.0  gpu  ok",
        "busy                 20 %",
        "peak                 61 %",
        "memory               50.0 / 80.0 GiB",
        "temp                 60 °C",
        "power                100 / 700 W",
        "clock                1755 MHz",
        "proc                 1",
        "memory clock         2619 MHz",
        "sm activity          90%",
        "memory activity      40%",
        "its clock is lowered for hw-thermal, power-cap",
        "NVLink 4  in 3.0 GiB/s",
        "waits for cpu: 50%",
        "waits for io: 7%",
        "xids: not known: no right",
    ]
    assert panels.device_details(fourth).plain.split("\n") == [
        "NVIDIA H200",
        "pci:0000:04:00.0  gpu  unresponsive",
        "it hangs",
    ]
    plain = {"id": "03:00.0", "name": "NVIDIA H200", "kind": "gpu", "state": "ok", "busy": 20.0}
    figures = {"temp": 60.0, "power": 100.0, "memory": 50.0, "user": "u1001"}
    assert panels.device_facts(third) == plain | figures
    nothing = dict.fromkeys(("busy", "temp", "power", "memory"), None)
    assert panels.device_facts(fourth) == plain | nothing | {
        "id": "04:00.0",
        "state": "unresponsive",
        "user": "",
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.9, "00:00:00"),
        (3 * 3600 + 11 * 60 + 40, "03:11:40"),
        (99 * 3600 + 59 * 60 + 59.9, "99:59:59"),
        (100 * 3600, "4 d"),
        (120 * 3600 - 1, "4 d"),
        (120 * 3600, "5 d"),
    ],
)
def test_an_age_is_in_days_from_a_hundred_hours_on(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


def test_processes(node: Node, tasks: list[Task]) -> None:
    head, rows = panels.task_table(tasks, node.rows(), 120)
    assert head.plain == (
        "    PID  USER  DEVICE      MEMORY       AGE  LEASE  CONTAINER            COMMAND"
    )
    assert [(key, text.plain, str(text.spans[0].style)) for key, text in rows if text.spans] == [
        (
            "8@None",
            "      8  –                                –                                └─ –",
            "dim",
        ),
        (
            "? no reason is given",
            "      –  of device 1 not known: no reason is given",
            "dim",
        ),
    ]
    assert [(key, text.plain) for key, text in rows if not text.spans] == [
        (
            "7@5",
            "      7  u1    0-1        1.0 GiB  00:01:30  night  docker 0123456789ab  train",
        ),
        (
            "?['03:00.0']",
            "      –  u2    2          3.0 GiB  02:00:00                              –",
        ),
    ]


def test_numbers_of_devices_as_ranges(node: Node) -> None:
    rows = node.rows()
    for numbers, expected in {(0, 1, 2): "0-2", (0, 2): "0,2", (3, 1, 0): "0-1,3"}.items():
        task = Task(1, "u", {rows[number].short: None for number in numbers} | {"gone": None})
        _, ((_, text), _) = panels.task_table([task], rows, 120)
        assert text.plain.split()[2] == expected


def test_all_that_is_known_of_a_process(tasks: list[Task]) -> None:
    first, second, third = tasks
    assert panels.task_details(first).plain.split("\n") == [
        "command      train",
        "program      python",
        "user         u1",
        "age          00:01:30",
        "parent       1",
        "container    docker 0123456789ab",
        "lease        night",
        "on 01:00.0   1.0 GiB",
        "on 02:00.0   –",
    ]
    assert {line.split()[-1] for line in panels.task_details(second).plain.split("\n")} == {"–"}
    names = ("pid", "user", "command", "container", "lease", "id", "memory", "age")
    assert [panels.task_facts(first)[name] for name in names] == [
        "7", "u1", "train", "docker 0123456789ab", "night", "01:00.0 02:00.0", 1.0, 90.0,
    ]  # fmt: skip
    assert [panels.task_facts(third)[name] for name in names] == [
        "", "u2", "–", "", "", "03:00.0", 3.0, 7200.0,
    ]  # fmt: skip
    assert panels.task_facts(second)["memory"] is None


def test_users(node: Node, tasks: list[Task]) -> None:
    other = Node("near", Alerts({}))
    used = {"far": tasks, "near": [tasks[0], Task(9, "u3", {"01:00.0": None}, age=5.0)]}
    assert panels.user_table([node, other], lambda each: used[each.name]) == [
        ("u2", ("u2", "1", "1", "3.0 GiB", "1", "02:00:00"), ""),
        ("u1", ("u1", "2", "4", "2.0 GiB", "2", "00:01:30"), ""),
        ("u3", ("u3", "1", "1", "–", "1", "00:00:05"), ""),
        ("–", ("–", "1", "0", "–", "1", "–"), ""),
    ]


def test_thresholds(node: Node) -> None:
    assert panels.thresholds(node, 90).plain.split("\n") == [
        "ALERT        ABOVE  FOR  ENDS AT  NOW  [command.watch.alerts] changes them",
        "utilisation   90 %  5 s     87 %  no alert",
        "memory        85 %  3 s     82 %  no alert",
        "latency                           off in the file of settings",
        "temperature  80 °C  1 s    77 °C  ! 0",
    ]
    styles = [panels.thresholds(node, 90).spans[-1].style]
    node.rows()[0].alerts = {"temperature": "error"}
    styles.append(panels.thresholds(node, 90).spans[-1].style)
    assert styles == ["yellow", "bold red"]


def test_what_happened_lately(node: Node) -> None:
    told = [panels.happened(node, time, event) for time, event in node.recent]
    assert [text.plain for text in told] == [
        "!  22:14:03Z  01:00.0       temperature  92 °C, above 80 °C since 22:14:02Z",
        "   22:14:03Z  04:00.0       removed: it is off the bus",
    ]
    assert [str(text.spans[0].style) for text in told] == ["yellow", "cyan"]


def test_a_host(node: Node) -> None:
    rank, (key, cells, style) = panels.host(node)
    assert rank == ("far", -1, -4, pytest.approx(-0.58), -100 * GIB, -92.0, -712.4, -1)
    assert (key, style) == ("far", "yellow")
    assert cells == (
        "far", "1 !", "4", "58%", "100.0 GiB / 160.0 GiB", "92 °C", "712 W", "1", "",
    )  # fmt: skip
    node.lost = "its key changed"
    assert panels.host(node)[1][1] == ("far", "no answer: its key changed")
    empty = Node("near", Alerts({}))
    rank, (_, cells, _) = panels.host(empty)
    assert (rank, cells) == (("near", 0, 0, 1.0, 0, 1, 0, 0), ("near", "no sample yet"))
    empty.take(Happening(NIGHT, [sample(address(1))], [], None, []))
    assert panels.host(empty)[1][1:] == (("near", "0", "1", "–", "–", "–", "–", "0", ""), "")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4060 Ti"], ["RTX 4090", "RTX 4060 Ti"]),
        (["NVIDIA RTX 6000 Ada", "NVIDIA RTX 5000 Ada"], ["RTX 6000 Ada", "RTX 5000 Ada"]),
        (["NVIDIA H100"], ["H100"]),
        (["AMD Instinct MI300X", "NVIDIA Tesla V100"], ["Instinct MI300X", "Tesla V100"]),
        (["AMD Instinct MI300X", None], ["MI300X", ""]),
        (["Apple M4"], ["M4"]),
    ],
)
def test_names_without_what_tells_none_apart(names: list[str | None], expected: list[str]) -> None:
    devices = [device(address(number), name) for number, name in enumerate(names)]
    assert list(short_names(devices).values()) == expected


def test_all_columns(node: Node) -> None:
    head, rows = device_table(node.rows(), 160)
    ends = [head.plain.index(name) + len(name) for name in ("BUSY", "PEAK", "TEMP", "PROC")]
    assert [" ".join(text.plain.split()) for text in (head, *(text for _, text in rows))] == [
        "# ID DEVICE BUSY HISTORY PEAK MEMORY USED TEMP POWER CLOCK LINK PROC",
        (
            "0 01:00.0 H100 80GB HBM3 96 % ▅█ 61 % 50.0 / 80.0 GiB █████ 92 °C! 612 / 700 W"
            " 1755 MHz 5×16 1"
        ),
        "1 02:00.0 H100 80GB HBM3 – ▃ – – – – – – –",
        "2 03:00.0 H200 20 % ▂ 61 % 50.0 / 80.0 GiB █████ 60 °C 100 / 700 W 1755 MHz – 1",
        "3 04:00.0 H200 no answer: it hangs",
        "4 cpu:0 EPYC 9654 10 % ▂ 61 % 50.0 / 80.0 GiB █████ 67 °C 612 / 700 W 1755 MHz 5×16 1",
        "node – – – – – – – –",
    ]
    assert [rows[0][1].plain[:end].split()[-1] for end in ends] == ["%", "%", "°C!", "1"]


def test_what_a_narrower_screen_goes_without(node: Node) -> None:
    rows, last, left = node.rows(), fit(160, node.rows()), []
    for room in range(160, 40, -1):
        widths = fit(room, rows)
        changed = [
            (head, widths.get(head, 0)) for head in last if widths.get(head, 0) != last[head]
        ]
        left += [(room, *change) for change in changed]
        last = widths
    assert left == [
        (138, "LINK", 0), (131, "PEAK", 0), (123, "CLOCK", 0), (113, "POWER", 6),
        (108, "HISTORY", 12), (100, "USED", 4), (96, "HISTORY", 8), (92, "USED", 0),
        (86, "PROC", 0), (80, "MEMORY", 10), (72, "POWER", 0), (64, "HISTORY", 0),
        (54, "DEVICE", 13), (53, "DEVICE", 12), (52, "DEVICE", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "width", "text"),
    [
        ((50 * GIB, 80 * GIB), 18, " 50.0 / 80.0 GiB  "),
        ((50 * GIB, 80 * GIB), 10, " 50.0 GiB "),
        ((None, 80 * GIB), 18, "    – / 80.0 GiB  "),
        ((None, None), 18, "                – "),
        ((999 * GIB, 1000 * GIB), 18, "999.0 / 1000 GiB  "),
        ((1 * GIB, 9999 * GIB), 18, "  1.0 / 9999 GiB  "),
        ((512 * GIB, 10_000 * GIB), 18, "  0.5 / 9.8 TiB   "),
        ((10_240 * GIB, None), 18, " 10.0 / – TiB     "),
    ],
)
def test_bytes_of_memory(memory: tuple[int | None, int | None], width: int, text: str) -> None:
    (column,) = (column for column in COLUMNS if column.head == "MEMORY")
    used, total = memory
    row = Row(Node("", Alerts({})), sample(address(1), memory={"used": used, "total": total}))
    assert column.cell(row, width) == text
    row.is_shared = True
    assert column.cell(row, width) == (text if text.strip() == "–" else text[:-1] + "*")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, ""), (0.0625, "▌"), (0.5, "████"), (0.99, "███████▉"), (1.5, "████████")],
)
def test_a_bar_in_eighths(share: float, text: str) -> None:
    (bar,) = (column for column in COLUMNS if column.head == "USED")
    memory = {"used": round(share * 1000), "total": 1000}
    assert bar.cell(Row(Node("", Alerts({})), sample(address(1), memory=memory)), 8) == text
