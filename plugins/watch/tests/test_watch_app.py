"""The screen by Textual's pilot: tabs, keys, processes, and what is strange; no terminal."""

from __future__ import annotations

import asyncio
import io
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.widgets._footer import FooterKey
from watch_samples import GIB, NIGHT, address, busy, report, sample, silent

from probe_core.commands import Context
from probe_watch import panels
from probe_watch.alerts import Alerts, rules_of
from probe_watch.app import KEYS, Dialog, WatchApp
from probe_watch.columns import COLUMNS, device_table, fit
from probe_watch.grid import Grid
from probe_watch.node import Node, Row, drivers, short_names, summary
from probe_watch.processes import Handle, Refused, Table, Task, container_of, environment
from probe_watch.query import QueryError, matches
from probe_watch.rounds import Happening
from probe_watch.watch_command import OWN_OPTIONS, drawn

H100 = "NVIDIA H100 80GB HBM3"
ME = pwd.getpwuid(os.getuid()).pw_name


def node_of(samples: list[Any], *names: str, host: str = "", **rules: Any) -> Node:
    node = Node(host, Alerts(rules_of(rules)))
    node.describe(report(*names)["devices"])
    for second in range(3):
        edges = node.alerts.update(second, NIGHT + second, samples)
        node.take(Happening(NIGHT + second, samples, (), edges, ()))
    return node


EIGHT = [busy(address(number), number / 10) for number in range(1, 9)]


def run(
    nodes: list[Node],
    scenario: Callable[[WatchApp, Any], Awaitable[None]],
    size: tuple[int, int] = (110, 36),
    **options: Any,
) -> None:
    async def main() -> None:
        app = WatchApp(nodes, 1.0, **options)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await scenario(app, pilot)

    asyncio.run(main())


def text(app: WatchApp, name: str) -> str:
    widget = app.query_one(f"#{name}")
    return widget.text if isinstance(widget, Grid) else str(widget.content)  # type: ignore[attr-defined]


def footer(app: WatchApp) -> list[str]:
    return [key.key_display for key in app.query(FooterKey)]


# Names and columns, without an app.


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", "│▁█▏– 60°"), ("ascii", "|_##- 60o")])
def test_bars_and_frames_are_drawn_in_what_the_terminal_encodes(
    encoding: str, expected: str
) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding)
    assert drawn(Context(environ={}, stdout=stdout), "│▁█▏– 60°") == expected


def shown(rows: list[Row], room: int) -> list[str]:
    head, lines = device_table(rows, room)
    return [head.plain, *(line.plain for _, line in lines)]


def names(*models: str) -> list[str]:
    return list(short_names(report(*models, cpu=False)["devices"]).values())


def test_names_lose_what_tells_none_apart() -> None:
    two = names("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4060 Ti")
    assert two == ["RTX 4090", "RTX 4060 Ti"]
    assert names(H100, H100) == ["H100 80GB HBM3"] * 2
    assert names("NVIDIA A100-SXM4-80GB") == ["A100-SXM4-80GB"]
    assert names("AMD Instinct MI300X", "NVIDIA H200") == ["AMD Instinct MI300X", "H200"]
    assert names("", "Tesla") == ["", "Tesla"]
    ada = "NVIDIA RTX {} Ada Generation"
    assert names(ada.format(6000), ada.format(5000))[1] == "RTX 5000 Ada Generation"


@pytest.mark.parametrize("room", [*range(40, 60), 79, 80, 110, 140, 200])
@pytest.mark.parametrize("count", [0, 1, 8, 64])
def test_no_line_is_wider_than_the_screen(room: int, count: int) -> None:
    models = ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4060 Ti"] * 32
    samples = [busy(address(number)) for number in range(1, count + 1)]
    rows = node_of(samples, *models[:count]).rows()
    head, *lines = shown(rows, room)
    assert all(cell_len(text.rstrip()) <= room for text in [head, *lines])
    assert len(set(lines)) == count
    assert all(row.short in text for row, text in zip(rows, lines, strict=True))


def test_two_cards_differ_at_80_columns_by_name_and_by_id() -> None:
    node = node_of([busy(address(1)), busy(address(2))],
                   "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4060 Ti")  # fmt: skip
    for room in (80, 110, 140):
        _, first, second = shown(node.rows(), room)
        assert "01:00.0  RTX 4090 " in first
        assert "02:00.0  RTX 4060 Ti" in second
        assert "…" not in first + second
    assert {"POWER", "CLOCK", "LINK", "PEAK"} <= set(fit(140, node.rows()))
    # A processor's long name costs no figure of the accelerators.
    node.describe([*report("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4060 Ti")["devices"][:2],
                   {"id": "cpu:0", "ids": ["cpu:0"], "kind": "cpu", "vendor": "amd", "memory": None,
                    "name": "AMD EPYC 9654 96-Core Processor"}])  # fmt: skip
    node.take(Happening(NIGHT, [*EIGHT[:2], busy("cpu:0")], (), (), ()))
    widths = fit(79, node.rows())
    _, card, _, processor = shown(node.rows(), 79)
    assert list(widths) == "# ID DEVICE BUSY HISTORY MEMORY TEMP POWER".split()
    assert "cpu:0    EPYC 9654 " in processor
    assert "50.0 / 80.0 GiB" in card
    assert summary(node.rows()) == "RTX 4090 + RTX 4060 Ti"


def test_what_is_not_known_is_a_dash_and_marks_tell_what_colours_tell() -> None:
    full = {"memory": {"used": 79 * GIB, "total": 80 * GIB}, "temperature_c": 95.0}
    node = node_of([sample(address(1)), busy(address(2), **full)], H100, H100,
                   memory={"seconds": 0}, temperature={"seconds": 0})  # fmt: skip
    _, unknown, hot = shown(node.rows(), 200)
    assert unknown.count("–") == 8
    assert "79.0 / 80.0 GiB !" in hot
    assert "95 °C!" in hot
    assert [row.number for row in node.rows("state")] == [1, 0]


def test_the_filter() -> None:
    facts: dict[str, Any] = {"name": "H100", "user": "ann", "temp": 81.0, "busy": None}
    assert matches("", facts)
    assert matches("h100 temp>80 user~an", facts)
    assert not matches("temp>81", facts)
    assert not matches("busy<10", facts)  # not known is no small number
    assert matches("power>1", facts)  # of what these facts do not have
    assert matches("user!=bob user=ANN", facts)
    for wrong in ("colour=red", "temp>hot"):
        with pytest.raises(QueryError):
            matches(wrong, {})


@pytest.mark.parametrize(
    ("query", "facts", "passes"),
    [
        ("user=ann", {"user": None}, True),  # a device has no user: the term says nothing of it
        ("user=ann", {}, True),
        ("user=ann", {"user": "bob"}, False),
        ("user~n", {"user": "ANN"}, True),
        ("user~m", {"user": "ann"}, False),
        ("user!=ann", {"user": "ann"}, False),
        ("temp>=81", {"temp": 81.0}, True),
        ("temp<=81", {"temp": 81.0}, True),
        ("temp<81", {"temp": 81.0}, False),
        ("temp=81", {"temp": 81.0}, True),
        ("temp!=81", {"temp": 81.0}, False),
        ("temp>=0", {"temp": None}, False),
        ("81", {"temp": 81.0, "name": "H100"}, False),  # words are sought in texts alone
        ("h1", {"temp": 81.0, "name": "H100"}, True),
    ],
)
def test_terms_of_the_filter(query: str, facts: dict[str, Any], passes: bool) -> None:
    assert matches(query, facts) == passes


# The app.


@pytest.mark.heavy
def test_tabs_keys_filter_and_themes() -> None:
    node = node_of([*EIGHT[:7], silent(address(8))], *[H100] * 8)

    async def scenario(app: WatchApp, pilot: Any) -> None:
        lines = text(app, "devices-table").splitlines()
        assert "no answer: it hangs" in lines[1]
        assert "8 × NVIDIA H100 80GB HBM3" in text(app, "title")
        await pilot.press("s")
        assert "by device" in text(app, "title")
        assert "01:00.0" in text(app, "devices-table").splitlines()[1]
        await pilot.press("r")
        assert "08:00.0" in text(app, "devices-table").splitlines()[1]
        assert footer(app) == "enter q 1-5 space s / I T K ?".split()
        await pilot.press("slash", *"busy>60")
        await pilot.pause()
        assert footer(app) == ["enter", "esc"]
        assert text(app, "devices-table").count(":00.0") == 1
        await pilot.press(*" colour=1")
        assert "colour is none of" in text(app, "note")
        await pilot.press("escape")
        assert text(app, "devices-table").count(":00.0") == 8
        await pilot.press("slash", *"busy>60", "enter")
        await pilot.pause()
        assert text(app, "devices-table").count(":00.0") == 1
        assert "esc" in footer(app)
        await pilot.press("escape")
        await pilot.pause()
        assert text(app, "devices-table").count(":00.0") == 8
        assert "esc" not in footer(app)
        await pilot.press("down", "down")
        assert "05:00.0" in text(app, "graphs").splitlines()[0]
        assert "50 to 50 %" in text(app, "graphs")
        await pilot.press("2")
        assert "81234" in text(app, "processes-table")
        await pilot.press("3")
        assert text(app, "users-table").splitlines()[1].split()[:3] == ["u1001", "1", "7"]
        await pilot.press("4")
        assert "not measured: give --peer HOST:PORT" in text(app, "thresholds")
        dark = app.theme
        await pilot.press("d")
        assert app.theme != dark
        await pilot.press("question_mark")
        assert isinstance(app.screen, Dialog)
        assert "share of time in which anything ran" in app.screen.text.plain
        await pilot.press("y")  # it asks nothing
        assert isinstance(app.screen, Dialog)
        await pilot.press("escape", "space")
        app.take(node, Happening(NIGHT + 9, [busy(address(1), 0.11)], (), (), ()))
        await pilot.press("1")
        assert "paused" in text(app, "title")
        assert " 11 %" not in text(app, "devices-table")
        await pilot.press("space")
        assert " 11 %" in text(app, "devices-table")
        grid = app.query_one("#devices-table", Grid)
        shown = [grid.get_row_at(number)[0].plain for number in range(grid.row_count)]
        assert shown == text(app, "devices-table").splitlines()[1:]

    run([node], scenario)


def test_names_of_strangers_are_neither_markup_nor_escapes() -> None:
    # What reaches the screen was cleaned by the core; brackets are left, and must be shown.
    name, user = "[b]x[/b] [link=evil]", "[red]ann"
    processes = [{"pid": None, "user": user, "memory": GIB}]
    node = node_of([busy(address(1), processes=processes)], name, host="[i]desk[/i]")

    async def scenario(app: WatchApp, pilot: Any) -> None:
        assert name in text(app, "title")
        assert "[i]desk[/i]" in text(app, "title")
        assert name in text(app, "devices-table")
        assert user in text(app, "used")
        shown = app.export_screenshot(simplify=True).replace("&#160;", " ")
        assert "[link=evil]" in shown
        await pilot.press("enter")
        assert name in app.screen.query_one("Static").render().plain  # type: ignore[attr-defined]

    run([node], scenario)


def test_without_colours_there_is_none_and_the_cursor_is_reverse() -> None:
    async def scenario(app: WatchApp, pilot: Any) -> None:
        strips = app.screen._compositor.render_strips()
        filters = app.get_line_filters()
        styles = []
        for strip in strips:
            for one in filters:
                strip = strip.apply_filter(one, app.screen.styles.background)
            styles += [segment.style for segment in strip if segment.style]
        assert all(s.color is None or s.color.is_default for s in styles)
        assert all(s.bgcolor is None or s.bgcolor.is_default for s in styles)
        assert any(s.reverse for s in styles)

    run([node_of(EIGHT, *[H100] * 8)], scenario, colour=False)


def test_a_round_that_comes_before_the_screen_or_after_it_is_kept() -> None:
    nodes = [node_of(EIGHT, *[H100] * 8, host=host) for host in ("desk", "studio")]
    app = WatchApp(nodes, 1.0)

    async def main() -> None:
        app.take(nodes[1], Happening(NIGHT + 9, EIGHT, (), (), ()))
        async with app.run_test():
            app.exit(0)
            app.take(nodes[1], Happening(NIGHT + 10, EIGHT, (), (), ()))
        app.take(nodes[1], Happening(NIGHT + 11, EIGHT, (), (), ()))

    asyncio.run(main())
    assert nodes[1].time == NIGHT + 11


def test_a_title_that_is_too_long_loses_names_and_not_what_keys_have_changed() -> None:
    models = [f"NVIDIA RTX {number}000 Ada Generation" for number in range(1, 9)]

    async def scenario(app: WatchApp, pilot: Any) -> None:
        await pilot.press("space")
        title = text(app, "title")
        assert cell_len(title) <= 80
        assert title.startswith("RTX 1000 Ada")
        assert title.endswith("by state   paused")
        app.node.describe(report(H100)["devices"])
        app.node.about = ["desk", "a driver that has no room", "amdgpu 6.12"]
        app.take(app.node, Happening(NIGHT, EIGHT[:1], (), (), ()))
        await pilot.press("space")
        assert text(app, "title").endswith("by state   desk   amdgpu 6.12")

    run([node_of(EIGHT, *models)], scenario, (80, 24))


def test_the_drivers_of_a_title() -> None:
    own = {"name": "nvidia", "version": "550.163.01"}
    devices = [device | {"driver": own} for device in report(H100, H100)["devices"]]
    devices.append({"kind": "gpu", "driver": {"name": "amdgpu"}})  # as old as its kernel
    assert drivers(devices) == ["nvidia 550.163.01"]


@pytest.mark.heavy
def test_no_figure_is_cut_and_what_does_not_fit_is_read_with_enter() -> None:
    figures: dict[str, Any] = {"throttled": ["hw-thermal"], "temperature_c": 95.0}
    hot = [busy(address(number), **figures) for number in range(1, 9)]
    nodes = [node_of(hot, *[H100] * 8, host=f"node{n:02}.rack.example.org",
                     temperature={"seconds": 0}) for n in range(13)]  # fmt: skip
    nodes.append(Node("new", Alerts(rules_of({}))))

    async def scenario(app: WatchApp, pilot: Any) -> None:
        await pilot.press("5")
        heading, new, first, *_ = text(app, "hosts-table").splitlines()
        assert heading.split() == ["HOST", "ALERTS", "GPUS", "BUSY", "MEMORY", "TEMP"]
        assert (
            first.split() == "node00.rack.example.org 8 ! 8 96% 400.0 GiB / 640.0 GiB 95 °C".split()
        )
        assert new == "new                      no sample yet"
        await pilot.press("enter")
        assert text(app, "title").startswith("new  no sample yet ")
        app.select("node00.rack.example.org")
        await pilot.press("4")
        assert "! 0-7" in text(app, "thresholds")
        await pilot.press("enter")
        assert "the device slows down (hw-thermal) since" in app.screen.text.plain  # type: ignore[attr-defined]

    run(nodes, scenario, (80, 24))


def test_devices_have_the_rows_that_processes_leave() -> None:
    async def scenario(app: WatchApp, pilot: Any) -> None:
        await pilot.pause()
        assert app.query_one("#devices-table").size.height == 16
        assert app.query_one("#used").size.height == 2

    run([node_of([busy(address(n)) for n in range(1, 65)], *[H100] * 64)], scenario, (80, 24))
    # The line that says of which devices they are not known is one of theirs.
    others = [busy(address(n), processes=None) for n in range(2, 64)]
    samples = [*others, *(busy(address(n), processes=[]) for n in (1, 64))]
    run([node_of(samples, *[H100] * 64)], scenario, (80, 24))


@pytest.mark.heavy
@pytest.mark.parametrize("size", [(80, 24), (110, 30), (140, 40), (40, 8), (20, 3)])
def test_sixty_four_devices_at_any_size(size: tuple[int, int]) -> None:
    node = node_of([busy(address(number)) for number in range(1, 65)], *[H100] * 64)

    async def scenario(app: WatchApp, pilot: Any) -> None:
        await pilot.press("end")
        grid = app.query_one("#devices-table", Grid)
        assert grid.key == address(64)
        if size[1] >= 24:
            shown = app.export_screenshot(simplify=True).replace("&#160;", " ")
            assert "40:00.0" in shown
            assert "#  ID" in shown
        await pilot.resize_terminal(100, 30)
        assert len(grid.keys) == 64

    run([node], scenario, size)


@pytest.mark.heavy
def test_two_hundred_hosts_one_of_them_silent() -> None:
    nodes = [node_of([busy(address(1), 0.2)], H100, host=f"n{number:03}") for number in range(200)]
    nodes[7].lost = "no sample for 20 s"

    async def scenario(app: WatchApp, pilot: Any) -> None:
        await pilot.press("5")
        lines = text(app, "hosts-table").splitlines()
        assert len(lines) == 201
        assert text(app, "title").startswith("199 of 200 hosts report   every 1 s")
        assert "no answer: no sample for 20 s" in lines[8]
        assert lines[1].split()[:4] == ["n000", "0", "1", "20%"]
        await pilot.press("slash", *"n007", "enter")
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert app.node is nodes[7]
        assert "n007: no sample for 20 s" in text(app, "note")
        assert "01:00.0" in text(app, "devices-table")  # what found the host hides no device
        began = time.process_time()
        app.take(nodes[7], Happening(NIGHT, [busy(address(1), 0.9)], (), (), ()))
        assert time.process_time() - began < 1
        assert nodes[7].lost is None
        await pilot.press("5")
        await pilot.pause(1)
        drawn, draw = [], app._show_hosts
        app._show_hosts = lambda: drawn.append(draw())  # type: ignore[method-assign]
        for node in nodes:
            app.take(node, Happening(NIGHT + 1, [busy(address(1), 0.9)], (), (), ()))
        await pilot.pause(1)
        assert len(drawn) == 1

    run(nodes, scenario)


# Processes.


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    environ = {"PATH": os.environ["PATH"], "MY_API_TOKEN": "s3cret", "COLOUR": "\x1b[31mred"}
    with subprocess.Popen(["sleep", "300"], env=environ) as process:
        while b"sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        yield process
        process.kill()


def holding(*pids: int) -> Node:
    processes = [{"pid": pid, "user": ME, "memory": GIB} for pid in pids]
    return node_of([busy(address(1), processes=processes)], H100)


needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd_open here")


@needs_pidfd
@pytest.mark.heavy
def test_details_and_one_signal_to_the_chosen_process_alone(child: Any) -> None:
    with subprocess.Popen(["sleep", "301"]) as other:
        try:

            async def scenario(app: WatchApp, pilot: Any) -> None:
                await pilot.press("2")
                grid = app.query_one("#processes-table", Grid)
                assert "sleep 300" in await shows(app, pilot, "sleep 300")
                while not grid.key.startswith(f"{child.pid}@"):
                    await pilot.press("down")
                await pilot.press("enter")
                await pilot.app.workers.wait_for_complete()
                await pilot.pause()
                shown = app.screen.text.plain  # type: ignore[attr-defined]
                assert "MY_API_TOKEN=***" in shown
                assert "s3cret" not in shown
                assert "\x1b" not in shown
                await pilot.press("escape", "T")
                assert f"Terminate process {child.pid}?" in app.screen.text.plain  # type: ignore[attr-defined]
                await pilot.press("n")
                assert child.poll() is None
                await pilot.press("T", "y")
                assert child.wait(10) == -signal.SIGTERM
                assert f"sent to process {child.pid}" in text(app, "note")
                assert other.poll() is None

            run([holding(child.pid, other.pid)], scenario)
        finally:
            other.kill()


async def shows(app: WatchApp, pilot: Any, wanted: str) -> str:
    """Return the processes when a command line was read, which a thread does."""
    end = time.monotonic() + 30
    while wanted not in text(app, "processes-table"):
        assert time.monotonic() < end, text(app, "processes-table")
        await asyncio.sleep(0.01)
        app.show()
    return text(app, "processes-table")


@needs_pidfd
def test_a_signal_is_refused_where_another_could_get_it(child: Any) -> None:
    started = Table().tasks(holding(child.pid).rows())[0].started
    assert started is not None
    with pytest.raises(Refused, match="another process has its number"):
        Handle(Task(child.pid, ME, started=started - 1))
    with pytest.raises(Refused, match="another container"):
        Handle(Task(child.pid, None, started=started))
    with pytest.raises(Refused, match="it has ended"):
        Handle(Task(child.pid, ME))
    handle = Handle(Task(child.pid, ME, started=started))
    child.kill()
    child.wait()
    with pytest.raises(Refused, match="No such process"):
        handle.send(signal.SIGTERM)
    handle.close()

    async def scenario(app: WatchApp, pilot: Any) -> None:
        await pilot.press("2", "K")
        assert "--readonly is given" in text(app, "note")

    run([holding(os.getpid())], scenario, readonly=True)


def test_the_environment_of_others_is_refused(child: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Table().tasks(holding(child.pid).rows())[0]
    assert "MY_API_TOKEN=***" in environment(task)
    with pytest.raises(Refused, match="ended"):
        environment(Task(task.pid, ME, started=(task.started or 0) + 1))
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(Refused, match="only that of your own"):
        environment(task)


def place(root: Path, pid: int, parent: int, name: str, *, cgroup: str = "0::/\n") -> None:
    """Write what /proc has of a process."""
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    numbers = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} {numbers} {pid * 100} 0 0\n")
    (folder / "cmdline").write_bytes(f"{name}\0--job\0{pid}\x1b[2J\0".encode())
    (folder / "cgroup").write_text(cgroup)
    (folder / "status").write_text("Uid:\t0\t0\t0\t0\n")


def test_the_tree_has_ancestors_that_started_them_containers_and_clean_commands(
    tmp_path: Path,
) -> None:
    docker = f"0::/system.slice/docker-{'1a2b3c4d5e6f' + '0' * 52}.scope\n"
    place(tmp_path, 1, 0, "init")
    place(tmp_path, 10, 1, "shell")
    place(tmp_path, 20, 10, "torchrun")
    place(tmp_path, 21, 20, "train", cgroup=docker)
    place(tmp_path, 22, 20, "train")
    place(tmp_path, 30, 10, "serve")
    (tmp_path / "proc/uptime").write_text("100.0 1.0\n")
    processes = [{"pid": pid, "user": "ann", "memory": pid * GIB} for pid in (22, 21, 30, 99)]
    processes.append({"pid": 21, "user": None, "memory": None})
    samples = [busy(address(1), processes=processes[:4]), busy(address(2), processes=processes[4:])]
    table = Table(str(tmp_path))
    rows = node_of(samples, H100, H100).rows()
    tasks = sorted(table.tasks(rows), key=lambda task: -(task.memory or 0))
    assert [task.pid for task in tasks] == [99, 30, 22, 21]
    assert tasks[0].started is None  # it has vanished
    assert tasks[3].devices == {"01:00.0": 21 * GIB, "02:00.0": None}
    assert tasks[3].container == "docker 1a2b3c4d5e6f"
    assert tasks[3].age == pytest.approx(79, abs=1)
    tree = table.tree(tasks)
    assert [(task.depth, task.pid) for task in tree] == [
        (0, 99), (0, 10), (1, 30), (1, 20), (2, 22), (2, 21),
    ]  # fmt: skip
    asyncio.run(table.read_commands())
    assert table.tasks(rows)[0].command == "train --job 22\ufffd[2J"
    assert "\x1b" not in (table.tasks(rows)[0].command or "")
    head_line, lines = panels.task_table(tree, rows, 120)
    assert "CONTAINER" in head_line.plain
    assert "LEASE" not in head_line.plain
    assert any("  └─ train" in line.plain for _, line in lines)


def test_containers_of_the_engines() -> None:
    long = "0123456789ab" + "c" * 52
    assert container_of(f"0::/user.slice/libpod-{long}.scope") == "podman 0123456789ab"
    pod = f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{long}.scope"
    assert container_of(pod) == "pod containerd 0123456789ab"
    assert container_of(f"11:devices:/docker/{long}") == "docker 0123456789ab"
    assert container_of("0::/lxc.payload.web/system.slice") == "lxc web"
    assert container_of("0::/user.slice/user-1000.slice/session-2.scope") is None


def test_lines_alerts_and_the_endpoint_never_import_textual() -> None:
    code = (
        "import sys; from probe_core.cli import main; import probe_watch.lines;"
        "import probe_watch.alert_commands, probe_watch.metrics, probe_watch.watch_command;"
        "status = main(['watch', '--json', '-n', '1', '--interval', '0.2']);"
        "bad = [m for m in ('textual', 'rich') if m in sys.modules];"
        "sys.exit(str(bad) if bad else status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


GUIDE = Path(__file__).parents[3] / "docs/how-to/watch-a-node.md"


def test_the_guide_has_the_keys_and_columns_of_the_help() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for keys, about in KEYS.items():
        assert f"| `{keys}` | {about} |" in guide
    described = guide.partition("| column |")[2].partition("\n\n")[0]
    for column in COLUMNS:
        assert f"`{column.head}`" in described


def test_every_feature_of_others_is_here_or_refused_with_a_reason() -> None:
    """Each key and option that the table names exists."""
    table = GUIDE.read_text(encoding="utf-8").partition("| feature | here |")[2]
    rows = [row.strip("| ").split(" | ") for row in table.partition("\n\n")[0].splitlines()[2:]]
    assert len(rows) > 20
    keys = {key for binding in WatchApp.BINDINGS for key in binding.key.split(",")}
    named = {"/": "slash", ".": "period", ",": "comma", "[": "left_square_bracket",
             "]": "right_square_bracket"}  # fmt: skip
    places = {"Devices", "Processes", "Users", "Alerts", "Hosts", "Enter"}
    options = {f"--{option.name}" for option in OWN_OPTIONS}
    for _, here in rows:
        words = re.findall(r"`([^`]+)`", here)
        is_refused = here.startswith("refused: ") and len(here) > 30
        for word in [] if is_refused else words:
            if word.startswith("--"):
                assert word in options, word
            elif len(word) == 1:
                assert named.get(word, word) in keys, word
        assert here[:1].isupper() or words or is_refused or here[:1].isdigit() or "," in here
        assert not here[:1].isupper() or here.split(",")[0] in places


@pytest.mark.heavy
def test_a_command_line_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """A fifo in place of /proc/PID/cmdline: its reader waits as for a process hung in a driver."""
    place(tmp_path, 21, 1, "hung")
    place(tmp_path, 22, 1, "train")
    (tmp_path / "proc/21/cmdline").unlink()
    os.mkfifo(tmp_path / "proc/21/cmdline")
    processes = [{"pid": pid, "user": "ann", "memory": GIB} for pid in (21, 22)]
    rows = node_of([busy(address(1), processes=processes)], H100).rows()
    table = Table(str(tmp_path))
    assert [task.title for task in table.tasks(rows)] == ["hung", "train"]
    asyncio.run(table.read_commands())
    hung, train = table.tasks(rows)
    assert (hung.title, train.title) == ("hung", "train --job 22\ufffd[2J")
    assert table.unread == []
    os.close(os.open(tmp_path / "proc/21/cmdline", os.O_WRONLY | os.O_NONBLOCK))  # lets it go


def test_what_hangs_holds_four_threads_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = range(21, 27)
    for pid in pids:
        place(tmp_path, pid, 1, "hung")
        (tmp_path / f"proc/{pid}/cmdline").unlink()
        os.mkfifo(tmp_path / f"proc/{pid}/cmdline")
    processes = [{"pid": pid, "user": "ann", "memory": GIB} for pid in pids]
    rows = node_of([busy(address(1), processes=processes)], H100).rows()
    monkeypatch.setattr("probe_watch.processes.READ_S", 0.001)
    table = Table(str(tmp_path))
    table.tasks(rows)
    asyncio.run(table.read_commands())
    assert [pid for pid, _ in table.unread] == [25, 26]
    for pid in (21, 22, 23, 24):  # lets them go
        while True:
            try:
                os.close(os.open(tmp_path / f"proc/{pid}/cmdline", os.O_WRONLY | os.O_NONBLOCK))
                break
            except OSError:  # its reader is not there yet
                time.sleep(0.001)


def test_a_task_stands_below_what_started_it_whatever_else_did(tmp_path: Path) -> None:
    """An ancestor further up is shown where it is a task, or started more than one."""
    for pid, parent in ((2, 1), (3, 2), (4, 3), (5, 4), (6, 2)):
        place(tmp_path, pid, parent, "job")
    table = Table(str(tmp_path))
    pids = [{"pid": pid, "user": "ann", "memory": GIB} for pid in (5, 3)]
    tasks = table.tasks(node_of([busy(address(1), processes=pids)], H100).rows())
    assert [(task.depth, task.pid) for task in table.tree(tasks)] == [
        (0, 2), (1, 3), (2, 4), (3, 5)
    ]  # fmt: skip


def test_commands_of_many_processes_are_read_one_after_the_other(tmp_path: Path) -> None:
    pids = range(21, 27)
    for pid in pids:
        place(tmp_path, pid, 1, "train")
    processes = [{"pid": pid, "user": "ann", "memory": GIB} for pid in pids]
    rows = node_of([busy(address(1), processes=processes)], H100).rows()
    table = Table(str(tmp_path))
    table.tasks(rows)
    asyncio.run(table.read_commands())
    titles = [task.title for task in table.tasks(rows)]
    assert titles == [f"train --job {pid}\ufffd[2J" for pid in pids]
