"""Bounds and states of what the screen is fed with: peers, hosts, recordings, processes, lines."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.text import Text
from textual.app import App, ComposeResult
from textual.coordinate import Coordinate
from textual.widgets import Tabs
from watch_samples import GIB, NIGHT, address, busy, report

from probe_core import proc
from probe_core.commands import CommandError
from probe_watch import hosts, panels, peer, watch_command
from probe_watch.alerts import Alerts, RuleError, rules_of
from probe_watch.app import NOTE_S, WatchApp
from probe_watch.grid import Grid
from probe_watch.hosts import Host, interval_for
from probe_watch.lines import device_document, sample_document
from probe_watch.node import Node, drivers, summary
from probe_watch.peer import Peer, place_of
from probe_watch.processes import (
    ORDERS,
    Handle,
    Refused,
    Table,
    Task,
    _lease,
    container_of,
    gathered,
)
from probe_watch.recorded import Reader, Recording, seconds_of
from probe_watch.rounds import Happening
from probe_watch.screen import Replay, local

# Peers.


def test_places_have_five_digits_at_most() -> None:
    places = ("a:1", "a:65535", "a:00001", "a:000001", "a:65536", "a:0", "[a:1", "[a]:1", "[]:1")
    assert [place_of(text) for text in places] == [
        ("a", 1), ("a", 65535), ("a", 1), None, None, None, ("[a", 1), ("a", 1), None,
    ]  # fmt: skip


def test_a_peer_is_really_connected_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        measured = Peer(server.getsockname(), 60.0)
        measured.start()
        connection, _ = server.accept()
        connection.close()
        measured.close()
        measured._thread.join(60)
    assert measured.figure.reason is None
    assert 0 < (measured.figure.value or 0) <= 1000


def test_without_room_for_a_thread_the_latency_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    measured = Peer(("desk", 22), 1.0)
    measured.start()
    reason = "no thread can be started: can't start new thread"
    assert (measured.figure.value, measured.figure.reason) == (None, reason)


def test_silence_is_the_bound_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full queue of connections drops what comes, as a host that is off does."""
    monkeypatch.setattr(peer, "LIMIT_S", 0.05)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for connection in waiting:
            connection.setblocking(False)
            connection.connect_ex(full.getsockname())
        measured = Peer(full.getsockname(), 60.0)
        before = measured.figure
        measured.start()
        while measured.figure is before:
            measured._thread.join(0.005)
        measured.close()
        for connection in waiting:
            connection.close()
    assert (measured.figure.value, measured.figure.reason) == (50.0, None)


# Hosts.


@pytest.mark.parametrize(
    ("count", "seconds"),
    [(1, 3.0), (10, 3.0), (11, 4.0), (50, 4.0), (51, 5.0), (100, 5.0), (101, 6.0)],
)
def test_the_interval_of_so_many_hosts(count: int, seconds: float) -> None:
    assert interval_for(count) == seconds


class Shown:
    """An application as far as a host and a recording use it."""

    def __init__(self) -> None:
        self.node = Node("desk", Alerts(rules_of({})))
        self.paused = False
        self.replay: Any = None
        self.notes: list[str] = []
        self.lost: list[str | None] = []
        self.enough = 1
        self.done = asyncio.Event()

    def show(self) -> None:
        self.lost.append(self.node.lost)
        if len(self.lost) >= self.enough:
            self.done.set()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def refresh_bindings(self) -> None:
        """Nothing is bound."""


async def lost(count: int, interval: float, act: Callable[[Host], Any]) -> list[str | None]:
    app: Any = Shown()
    app.enough = count
    task = asyncio.ensure_future(act(Host(app, app.node, interval)))
    await asyncio.wait_for(app.done.wait(), 60)
    task.cancel()
    await asyncio.wait({task})
    return list(app.lost[:count])


def put_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a script of the shell be `ssh`."""
    (folder / "ssh").write_text(f"#!/bin/sh\n{script}")
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_a_lost_host_is_asked_again_after_pauses_that_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_ssh(tmp_path, monkeypatch, "echo 'no route' >&2\nexit 255\n")
    follow: Any = lambda host: host.follow(["probe"])  # noqa: E731
    assert asyncio.run(lost(1, 3.0, follow)) == ["no route; asked again in 5 s"]
    assert hosts.LONGEST_RETRY_S == 12 * hosts.RETRY_S
    monkeypatch.setattr(hosts, "RETRY_S", 0.01)
    monkeypatch.setattr(hosts, "LONGEST_RETRY_S", 0.05)
    # Each attempt takes less than the longest pause here, or the pauses begin anew.
    monkeypatch.setattr(hosts, "monotonic", lambda: 0.0)
    pauses = ("0.01", "0.02", "0.04", "0.05", "0.05")
    told = [f"no route; asked again in {pause} s" for pause in pauses]
    assert asyncio.run(lost(5, 3.0, follow)) == told


def test_a_host_that_ran_long_is_asked_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_ssh(tmp_path, monkeypatch, "exit 3\n")
    monkeypatch.setattr(hosts, "RETRY_S", 0.01)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 61.0
        return now

    monkeypatch.setattr(hosts, "monotonic", clock)
    told = ["ssh ended with 3; asked again in 0.01 s"] * 3
    assert asyncio.run(lost(3, 1000.0, lambda host: host.follow(["probe"]))) == told


@pytest.mark.parametrize(("silent", "is_told"), [(8.0, False), (8.1, True)])
def test_a_host_that_is_silent_is_told(
    silent: float, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0])
    monkeypatch.setattr(hosts, "monotonic", lambda: next(times, silent))
    waits: list[float] = []
    sleep = asyncio.sleep

    async def pass_time(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 1:
            raise TimeoutError
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", pass_time)
    app: Any = Shown.__new__(Shown)
    app.node, app.lost, app.enough = SimpleNamespace(lost=None), [], 9

    async def watch() -> None:
        with pytest.raises(TimeoutError):
            await Host(app, app.node, 1.0)._watch()

    asyncio.run(watch())
    assert (app.lost, waits) == (["no sample for 8 s"] * is_told, [1.0, 1.0])


class Asked:
    """Rounds of this computer: they end, or are closed."""

    def __init__(self, *rounds: Any) -> None:
        self.left = list(rounds)
        self.closed = 0

    def __aiter__(self) -> Asked:
        return self

    async def __anext__(self) -> Any:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("fails", [False, True])
def test_rounds_of_this_computer_are_shown_and_closed(fails: bool) -> None:
    asked, node = Asked(1, 2), Node("", Alerts(rules_of({})))
    taken: list[Any] = []

    def take(*what: Any) -> None:
        taken.append(what)
        if fails:
            raise OSError("gone")

    intake: Any = SimpleNamespace(take=lambda current: -current)
    app: Any = SimpleNamespace(take=take)
    follow = local(lambda: asked, node, intake)  # type: ignore[arg-type,return-value]
    if fails:
        with pytest.raises(OSError, match="gone"):
            asyncio.run(follow(app))
    else:
        asyncio.run(follow(app))
    assert (taken, asked.closed) == ([(node, -1), (node, -2)][: 1 if fails else 2], 1)


# Recordings.


def written(path: Path, rounds: int, step: float = 1.0) -> Recording:
    """Write rounds of one device, whose figure is the number of the round in hundredths."""
    described = [
        device_document(device, NIGHT) for device in report("NVIDIA L4", cpu=False)["devices"]
    ]
    documents = [
        sample_document(busy(address(1), number / 100), NIGHT + step * number, [], full=True)
        for number in range(1, rounds + 1)
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in [*described, *documents]))
    return Recording(str(path))


def test_a_replay_stops_at_both_ends_and_is_hurried_within_bounds(tmp_path: Path) -> None:
    app: Any = Shown()
    replay = Replay(written(tmp_path / "x.jsonl", 100), app)
    assert replay.where == "2026-11-21  frame 1 of 100  1×"
    for count, frame in ((1, 1), (10, 11), (-99, 1), (200, 100), (1, 100), (-1, 99), (1, 100)):
        replay.step(count)
        assert f"frame {frame} of 100" in replay.where
        assert app.node.history.of(address(1))["busy"][-1] == frame / 100
    assert app.paused
    # After a jump there is a history of sixty rounds before the one that is shown.
    replay.step(-10)
    assert (app.node.rounds, len(app.node.history.of(address(1))["busy"])) == (61, 60)
    speeds = []
    for factor in (2.0, 0.5, 0.25, 0.25, 1000.0, 2.0):
        replay.hurry(factor)
        speeds.append(replay.where.rpartition("  ")[2])
    assert speeds == ["2×", "1×", "0.25×", "0.25×", "64×", "64×"]


def test_a_replay_plays_to_the_end(tmp_path: Path) -> None:
    app: Any = Shown()
    app.enough = 4
    (tmp_path / "x.jsonl").write_text("")
    recording = written(tmp_path / "x.jsonl", 4, 0.001)
    recording.note = "1 lines are no samples"

    async def play() -> None:
        replay = Replay(recording, app)
        task = asyncio.ensure_future(replay.follow(app))
        await asyncio.wait_for(app.done.wait(), 60)
        await asyncio.sleep(0)
        assert not task.done(), "it stays at its end"
        task.cancel()
        await asyncio.wait({task})
        assert app.replay is replay

    asyncio.run(play())
    assert (app.notes, app.node.rounds) == (["1 lines are no samples"], 4)
    assert list(app.node.devices) == [address(1)]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", ""),
        ("banner\n", "1 lines are no samples"),
        ("a\nb\n", "2 lines are no samples"),
        ('{"time": "x"', "1 lines are no samples; the file ends in the middle of a line"),
    ],
)
def test_what_of_a_recording_is_not_read_is_told(text: str, note: str, tmp_path: Path) -> None:
    written(tmp_path / "x.jsonl", 2)
    with (tmp_path / "x.jsonl").open("a") as file:
        file.write(text)
    assert Recording(str(tmp_path / "x.jsonl")).note == note


def test_a_recording_that_is_gone_has_rounds_of_nothing(tmp_path: Path) -> None:
    recording = written(tmp_path / "x.jsonl", 2)
    assert [recording.round(number) is None for number in (0, 1)] == [False, False]
    (tmp_path / "x.jsonl").unlink()
    assert [recording.round(number) for number in (0, 1)] == [None, None]


def test_so_many_devices_of_a_stranger_are_kept() -> None:
    reader = Reader()
    plain = {"time": "x", "status": "ok"}
    for number in range(1025):
        name = f"pci:0000:{number >> 8:02x}:{number & 31:02x}.{number >> 5 & 7}"
        device = {"time": "x", "event": "device", "device": name, "kind": "gpu"}
        reader.feed(json.dumps(device).encode())
        reader.feed(json.dumps({**plain, "device": name}).encode())
    assert (len(reader.devices), reader.skipped) == (1024, 1)
    ended = reader.end()
    assert ended is not None
    assert len(ended.samples) == 1024
    assert reader.end() is None


@pytest.mark.parametrize(
    "text", ["", "9999999999", "2026-11-21T22:14:03.512Z!", "0001-01-01T00:00"]
)
def test_what_is_no_time_is_the_first(text: str) -> None:
    assert seconds_of(text) <= 0.0


# Processes.


def test_how_processes_are_sorted() -> None:
    known = Task(7, "ann", {"b": GIB, "a": None}, age=3.0)
    unknown = Task(None, None, {"c": None})
    assert {name: (order(known), order(unknown)) for name, order in ORDERS.items()} == {
        "memory": (-GIB, 0), "device": (["a", "b"], ["c"]), "user": ("ann", "~"), "pid": (7, 0),
        "age": (-3.0, 0.0),
    }  # fmt: skip
    assert (known.memory, unknown.memory, unknown.key, unknown.title) == (GIB, None, "?['c']", "–")


LEASE: Any = {"pid": 10, "kept_by": [20, 21], "reserve": None, "share": False}


@pytest.mark.parametrize(
    ("pid", "parent", "lease", "told"),
    [
        (10, 1, {}, "exclusive"),
        (10, 1, {"share": True}, "shared"),
        (10, 1, {"share": True, "reserve": 3 * GIB >> 1}, "1.5 GiB"),
        (11, 10, {}, "exclusive"),
        (12, 11, {}, "exclusive"),  # the child of a child, of which another is shown
        (13, 12, {}, None),
        (21, 1, {}, "exclusive"),
        (11, None, {}, None),
    ],
)
def test_the_lease_of_a_process(pid: int, parent: int | None, lease: Any, told: str | None) -> None:
    leases: Any = [{**LEASE, "pid": None, "kept_by": []}, {**LEASE, **lease}]
    assert _lease(Task(pid, "ann", parent=parent), leases, {11: 10}) == told


def test_processes_of_devices_each_once() -> None:
    def row(number: int | None, short: str, *found: tuple[int | None, int | None]) -> Any:
        listed = [{"pid": pid, "user": "ann", "memory": memory} for pid, memory in found]
        return SimpleNamespace(number=number, short=short, sample={"processes": listed or None})

    rows = [row(0, "a", (5, GIB), (None, 1)), row(1, "b", (5, None), (None, 2)), row(2, "c"),
            row(None, "node", (9, 9))]  # fmt: skip
    assert [(task.pid, task.devices) for task in gathered(rows)] == [
        (5, {"a": GIB, "b": None}), (None, {"a": 1}), (None, {"b": 2}),
    ]  # fmt: skip


def place(root: Path, pid: int, parent: int) -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    numbers = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} (job) S {parent} {numbers} {pid * 100} 0 0\n")
    (folder / "status").write_text("Uid:\t0\t0\t0\t0\n")


def test_so_many_ancestors_are_looked_at(tmp_path: Path) -> None:
    for pid in range(2, 60):
        place(tmp_path, pid, pid - 1)
    table = Table(str(tmp_path))
    assert list(table._ancestors(59)) == list(range(59, 19, -1))
    assert list(table._ancestors(4)) == [4, 3, 2]
    assert list(table._ancestors(99)) == [99]
    assert list(table._ancestors(None)) == []


@pytest.mark.parametrize(("kept", "left"), [(4095, 4096), (4096, 1)])
def test_so_many_command_lines_are_kept(kept: int, left: int, tmp_path: Path) -> None:
    place(tmp_path, 5, 1)
    table = Table(str(tmp_path))
    table._commands = {(1000, number): "x" for number in range(kept)}
    table._complete(Task(5, "ann"), None)
    assert (len(table._commands), table.unread) == (left, [(5, 500)])


def test_names_and_commands_are_cut(tmp_path: Path) -> None:
    place(tmp_path, 5, 1)
    (tmp_path / "proc/5/cmdline").write_bytes(b"x" * 500)
    table = Table(str(tmp_path))
    task = Task(5, "ann")
    table._complete(task, 9.0)
    asyncio.run(table.read_commands())
    table._complete(task, 9.0)
    assert (task.name, len(task.command or ""), task.age) == ("job", 400, 4.0)
    table._complete(task, 1.0)
    assert task.age == 0.0  # the clock of /proc/uptime was read before


@pytest.mark.parametrize(
    "cgroup", ["0::/user.slice\n", f"0::/docker-{'a' * 31}\n", f"0::/docker-{'A' * 64}\n"]
)
def test_what_is_no_container(cgroup: str) -> None:
    assert container_of(cgroup) is None


def test_the_shortest_number_of_a_container() -> None:
    assert container_of(f"0::/docker/{'a' * 32}\n") == f"docker {'a' * 12}"
    assert container_of(f"0::/lxc/{'b' * 30}.scope\n") == f"lxc {'b' * 23}…"


def test_a_system_without_handles_signals_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    with pytest.raises(Refused, match="this system has no pidfd_open"):
        Handle(Task(os.getpid(), "me", started=1))


def test_a_handle_that_is_closed_is_free() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    task = Task(os.getpid(), "me", started=1)
    with pytest.raises(Refused, match="another process has its number"):
        Handle(task)
    task.started = proc.started(os.getpid())
    handle = Handle(task)
    handle.send(0)
    handle.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


# Nodes.


def test_a_summary_counts_models() -> None:
    def row(number: int | None, model: str, kind: str = "gpu") -> Any:
        return SimpleNamespace(number=number, model=model, name=f"n{model}", kind=kind)

    texts = [
        summary([row(1, "L4"), row(0, "L4")]),
        summary([row(1, "L40"), row(0, "L4"), row(2, "L40"), row(3, "i9", "cpu"), row(None, "x")]),
        summary([row(0, "L4"), row(1, "")]),
        summary([row(0, "i9", "cpu")]),
    ]
    assert texts == ["2 × L4", "nL4 + 2 × nL40", "L4", "no accelerator"]


def test_drivers_have_versions() -> None:
    def device(name: str | None, version: str | None, kind: str = "gpu") -> Any:
        return {"kind": kind, "driver": {"name": name, "version": version}}

    devices = [device("nvidia", "580.1"), device("nvidia", "580.1"), device("xe", None),
               device("x", "1", "cpu")]  # fmt: skip
    assert drivers(devices) == ["nvidia 580.1"]


@pytest.mark.parametrize(
    ("name", "most", "beyond"),
    [
        ("utilisation", 1, "expected a fraction from 0 to 1"),
        ("memory", 1, "expected a fraction from 0 to 1"),
        ("latency", 60_000, "expected a ms from 0 to 60000"),
        ("temperature", 150, "expected a °C from 0 to 150"),
    ],
)
def test_how_high_a_threshold_may_be(name: str, most: float, beyond: str) -> None:
    for key, highest, words in (
        ("above", most, beyond), ("clear", 0, ""), ("seconds", 86_400, "seconds, 0 to 86400"),
    ):  # fmt: skip
        assert getattr(rules_of({name: {key: highest}})[name], key) == highest
        if words:
            with pytest.raises(RuleError) as raised:
                rules_of({name: {key: highest + 0.1}})
            assert str(raised.value).startswith(f"command.watch.alerts.{name}.{key} = ")
            assert str(raised.value).endswith(words)
    with pytest.raises(RuleError, match=rf"above = '{'x' * 39}: expected"):
        rules_of({name: {"above": "x" * 99}})


def test_of_users_whose_memory_is_unknown_names_decide() -> None:
    tasks = [Task(1, "bob", {"a": None}), Task(2, "bob", {"a": None}), Task(3, "ann", {"a": None})]
    desk: Any = SimpleNamespace(name="desk")
    assert [user for user, *_ in panels.user_table([desk], lambda node: tasks)] == ["ann", "bob"]


@pytest.mark.parametrize(("text", "is_right"), [("0.1", True), ("0.09", False), ("3600", True),
                                                ("3601", False)])  # fmt: skip
def test_how_long_an_interval_may_be(text: str, is_right: bool) -> None:
    args = argparse.Namespace(interval=text)
    if is_right:
        assert watch_command._interval(args, 1.0) == float(text)
    else:
        with pytest.raises(CommandError):
            watch_command._interval(args, 1.0)


# The screen.


def shown_on(app: WatchApp, name: str) -> str:
    widget: Any = app.query_one(f"#{name}")
    return widget.text if isinstance(widget, Grid) else str(widget.content)


def measured(host: str, at: int) -> Node:
    node = Node(host, Alerts(rules_of({})))
    node.describe(report("NVIDIA L4", cpu=False)["devices"])
    node.take(Happening(NIGHT + at, [busy(address(1))], (), (), ()))
    return node


@pytest.mark.heavy
def test_keys_of_a_screen_of_two_hosts_and_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("probe_watch.app.monotonic", lambda: now[0])
    moved: list[Any] = []

    async def main() -> None:
        app = WatchApp([measured("desk", 0), measured("studio", 1)], 1.0)
        async with app.run_test(size=(100, 24)) as pilot:
            await pilot.pause()
            assert shown_on(app, "title").startswith(
                "desk  NVIDIA L4   every 1 s   22:14:03Z   by state"
            )
            app.query_one("#chosen", Tabs).action_next_tab()
            await pilot.pause()
            assert shown_on(app, "title").startswith("studio  NVIDIA L4 ")
            await pilot.press("enter")
            assert app.screen.query_one("VerticalScroll").border_title == "01:00.0"
            await pilot.press("q")
            # Without a recording its keys do nothing.
            await pilot.press("right_square_bracket", "plus")
            app.replay = SimpleNamespace(step=moved.append, hurry=moved.append, where="frame 7")
            for key in "left_square_bracket right_square_bracket j k plus minus space".split():
                await pilot.press(key)
            assert moved == [-1, 1, -10, 10, 2, 0.5, 1.0]
            assert shown_on(app, "title").endswith("frame 7   paused")
            await pilot.press("space", "comma")
            assert " by power" in shown_on(app, "title")
            await pilot.press("r")
            assert " by power reversed" in shown_on(app, "title")
            app.note("a word")
            for seconds, text in ((0.0, "a word"), (NOTE_S - 0.25, "a word"), (0.25, "")):
                now[0] += seconds
                app.show()
                assert shown_on(app, "note") == text
            app.take(app.node, Happening(NIGHT + 5, [busy(address(1))], (), (), ("first", "last")))
            app.show()
            assert shown_on(app, "note") == "last"
            await pilot.press("q")
        assert app.return_value == 0

    asyncio.run(main())


# Lines below a head.


class Lines(App[None]):
    def compose(self) -> ComposeResult:
        yield Grid("lines")


def texts(*lines: str) -> Sequence[tuple[str, Text]]:
    return [(line.partition(" ")[0], Text(line)) for line in lines]


def test_the_cursor_stays_on_its_line_and_a_line_that_grows_is_shown_whole() -> None:
    async def main() -> None:
        app = Lines()
        async with app.run_test(size=(40, 10)) as pilot:
            grid = app.query_one(Grid)
            assert (grid.key, grid.line, grid.text) == ("", None, "")
            head = Text("head")
            grid.show(head, texts("a 1", "b 1", "c 1"))
            assert (grid.key, grid.keys, grid.text) == ("a", ["a", "b", "c"], "head\na 1\nb 1\nc 1")
            grid.move_cursor(row=1)
            grid.show(head, texts("c 1", "b 1"))
            assert (grid.key, grid.cursor_row) == ("b", 1)
            grid.show(head, texts("x 1", "b 1"))
            grid.show(head, texts("x 1"))
            assert (grid.key, grid.cursor_row) == ("x", 0)
            grid.show(head, ())
            assert grid.key == ""
            grid.show(head, texts("y 1", "x 1", "z 1"))
            assert grid.key == "x", "a filter that nothing passes changes no choice"
            grid.move_cursor(row=2)
            grid.show(head, texts("y 1", "q 1"))
            assert grid.cursor_row == 1
            await pilot.pause()
            assert grid.virtual_size.width == 4
            # One line changes: nothing is built anew, and it is as wide as it must be.
            rows = list(grid.rows)
            grid.show(head, texts("y 123456", "q 1"))
            await pilot.pause()
            assert (list(grid.rows), grid.virtual_size.width) == (rows, 8)
            assert grid.get_cell_at(Coordinate(0, 0)).plain == "y 123456"
            grid.show(head, texts("y 1", "q 1"))
            await pilot.pause()
            assert grid.get_cell_at(Coordinate(0, 0)).plain == "y 1"
            grid.show(Text("longer head"), texts("y 1", "q 1"))
            await pilot.pause()
            assert (grid.text.partition("\n")[0], grid.virtual_size.width) == ("longer head", 11)

    asyncio.run(main())
