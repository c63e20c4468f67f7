"""The screen's keys by the actions that they are, its driver on a pty, and its loop: no process."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import pwd
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import probe_here
from textual.geometry import Size
from textual.widgets import Input
from watch_samples import GIB, NIGHT, address, busy, report

from probe_watch import terminal
from probe_watch.alerts import Alerts, rules_of
from probe_watch.app import Dialog, WatchApp
from probe_watch.grid import Grid
from probe_watch.node import Node
from probe_watch.rounds import HANGUP, Happening, Intake
from probe_watch.screen import run_screen
from probe_watch.terminal import Terminal, driver_class

ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
LEAVE = b"\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"


def node_of(host: str = "", **figures: Any) -> Node:
    node = Node(host, Alerts(rules_of({})))
    node.describe(report("NVIDIA L4", "NVIDIA L40")["devices"])
    samples = [busy(address(1), 0.2, **figures), busy(address(2), 0.9, processes=[])]
    node.take(Happening(NIGHT, samples, (), (), ()))
    return node


def text(app: WatchApp, name: str) -> str:
    widget: Any = app.query_one(f"#{name}")
    return widget.text if isinstance(widget, Grid) else str(widget.content)


async def until(condition: Callable[[], object]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    assert condition()


async def dialog(app: WatchApp) -> str:
    await until(lambda: isinstance(app.screen, Dialog))
    return app.screen.text.plain  # type: ignore[attr-defined]


async def close(app: WatchApp, answer: bool = False) -> None:
    await until(lambda: isinstance(app.screen, Dialog))
    app.screen.action_answer(answer)  # type: ignore[attr-defined]
    await until(lambda: not isinstance(app.screen, Dialog))


def scenario(app: WatchApp, steps: Callable[[WatchApp, Any], Any]) -> None:
    async def main() -> None:
        async with app.run_test(size=(100, 24)) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(main())


TABS = ("devices", "processes", "users", "alerts", "hosts")


async def tab(app: WatchApp, pilot: Any, number: int) -> None:
    app.action_tab(number)
    await until(lambda: app.tab == TABS[number - 1])
    await pilot.pause()
    app.show()


def test_each_key_of_one_computer_does_what_it_says() -> None:
    async def steps(app: WatchApp, pilot: Any) -> None:
        def first() -> str:
            return text(app, "devices-table").splitlines()[1]

        app.action_sort(1)
        assert "by device" in text(app, "title")
        assert "01:00.0" in first()
        app.action_reverse()
        assert "by device reversed" in text(app, "title")
        assert "02:00.0" in first()
        app.action_sort(-1)
        assert "by state reversed" in text(app, "title")
        app.action_pause()
        assert text(app, "title").endswith("paused")
        app.take(app.node, Happening(NIGHT + 9, [busy(address(1), 0.11)], (), (), ("a", "note")))
        assert " 11 %" not in text(app, "devices-table")
        app.action_pause()
        assert " 11 %" in text(app, "devices-table")
        assert text(app, "note") == "note"
        dark = app.theme
        app.action_dark()
        assert (dark, app.theme) == ("textual-dark", "textual-light")
        app.action_dark()
        assert app.theme == "textual-dark"
        app.refresh_all()
        # Nothing of a recording.
        assert not app.check_action("step", ())
        assert not app.check_action("speed", ())
        app.action_step(1)
        app.action_speed(2.0)
        assert not app.check_action("unfilter", ())
        # The filter: what is wrong is told, and what was right stays.
        app.action_filter()
        box = app.query_one("#filter", Input)
        assert (box.display, app.focused) == (True, box)
        allowed = {name: app.check_action(name, ()) for name in ("leave", "unfilter", "sort")}
        assert allowed == {"leave": True, "unfilter": True, "sort": False}
        box.value = "02:00"
        await pilot.pause()
        assert text(app, "title").endswith("/02:00")
        box.value = "colour=1"
        await pilot.pause()
        assert text(app, "note").startswith("filter: colour is none of id, name, ")
        assert text(app, "title").endswith("/02:00")
        app.action_unfilter()
        await pilot.pause()
        assert not box.display
        assert app.focused is app.query_one("#devices-table")
        assert "/" not in text(app, "title").removesuffix("Z")
        app.action_details()
        await pilot.pause()
        assert "NVIDIA L4" in (await dialog(app))
        app.screen.action_answer(True)  # type: ignore[attr-defined]  # it asks nothing
        await pilot.pause()
        assert isinstance(app.screen, Dialog)
        await close(app)
        app.action_help()
        await pilot.pause()
        assert "share of time in which anything ran" in (await dialog(app))
        await close(app)
        app.action_ask("kill")
        assert text(app, "note") == (
            "kill: choose a process first: tab Processes, or Tab in Devices"
        )

    scenario(WatchApp([node_of()], 1.0), steps)


def test_the_other_tabs_of_one_computer() -> None:
    async def steps(app: WatchApp, pilot: Any) -> None:
        await tab(app, pilot, 2)
        assert app.tab == "processes"
        assert "81234" in text(app, "processes-table")
        app.action_sort(1)
        assert "by memory" not in text(app, "title")
        app.action_tree()
        app.action_details()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "Environment\nnot shown: " in (await dialog(app))
        await close(app)
        app.action_ask("terminate")
        assert text(app, "note").startswith("terminate: process 81234 is not signalled: ")
        await tab(app, pilot, 3)
        users = text(app, "users-table").splitlines()
        assert users[1].split()[:3] == ["u1001", "1", "1"]
        app.action_reverse()  # users have one order
        app.action_sort(1)
        assert text(app, "users-table").splitlines() == users
        app.action_ask("kill")
        assert "choose a process first" in text(app, "note")
        await tab(app, pilot, 4)
        assert "not measured: give --peer HOST:PORT" in text(app, "thresholds")
        app.action_details()  # no alert is there
        assert not isinstance(app.screen, Dialog)
        app.action_tab(5)  # one computer has no tab of hosts
        await pilot.pause()
        assert app.tab == "alerts"
        app.readonly = True
        app.action_ask("kill")
        assert text(app, "note") == "kill: --readonly is given"
        app.action_leave(3)

    app = WatchApp([node_of()], 1.0)
    scenario(app, steps)
    assert app.return_value == 3


def test_hosts_come_together_and_one_is_chosen() -> None:
    nodes = [node_of("desk"), node_of("studio")]
    nodes[1].lost = "no sample for 20 s"

    async def steps(app: WatchApp, pilot: Any) -> None:
        assert text(app, "title").startswith("desk  L4 + L40") or "NVIDIA L4" in text(app, "title")
        await tab(app, pilot, 5)
        assert text(app, "title").startswith("1 of 2 hosts report")
        lines = text(app, "hosts-table").splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["desk", "studio"]
        assert "no answer: no sample for 20 s" in lines[2]
        app.action_reverse()
        lines = text(app, "hosts-table").splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["studio", "desk"]
        app.query_one("#filter", Input).value = "studio"
        await pilot.pause()
        assert len(text(app, "hosts-table").splitlines()) == 2
        drawn: list[object] = []
        draw = app._show_hosts
        app._show_hosts = lambda: drawn.append(draw())  # type: ignore[method-assign]
        for at in range(20):
            app.take(nodes[at % 2], Happening(NIGHT + at, [busy(address(1))], (), (), ()))
        assert drawn == []
        for _ in range(200):
            if drawn:
                break
            await pilot.pause(0.01)
        await pilot.pause(0.05)
        assert len(drawn) == 1
        app.query_one("#hosts-table", Grid).action_select_cursor()
        await pilot.pause()
        await pilot.pause()
        await until(lambda: (app.tab, app.node) == ("devices", nodes[1]))
        assert "01:00.0" in text(app, "devices-table")  # what found the host hides no device
        app.select("nobody")
        assert app.node is nodes[1]
        before = text(app, "devices-table")
        app.take(nodes[0], Happening(NIGHT + 99, [busy(address(1), 0.01)], (), (), ()))
        await pilot.pause(0.4)
        assert text(app, "devices-table") == before  # that of a host which is not shown
        await tab(app, pilot, 2)
        app.action_ask("interrupt")
        assert "it is no process of this computer" in text(app, "note")
        app.action_details()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "not shown: it is that of another computer" in (await dialog(app))

    scenario(WatchApp(nodes, 1.0), steps)


def test_keys_of_a_recording_and_an_alert_that_is_read_whole() -> None:
    node = Node("", Alerts(rules_of({"temperature": {"above": 60, "seconds": 0}})))
    node.describe(report("NVIDIA L4")["devices"])
    samples = [busy(address(1), temperature_c=67.0)]
    for second in range(2):
        edges = node.alerts.update(second, NIGHT + second, samples)
        node.take(Happening(NIGHT + second, samples, (), edges, ()))
    moved: list[tuple[str, float]] = []

    async def steps(app: WatchApp, pilot: Any) -> None:
        app.take(node, Happening(NIGHT + 5, [busy(address(1), 0.33)], (), (), ()))
        assert " 33 %" in text(app, "devices-table")
        await tab(app, pilot, 4)
        app.action_details()
        await pilot.pause()
        assert "67" in (await dialog(app))
        await close(app)
        app.replay = SimpleNamespace(
            step=lambda count: moved.append(("step", count)),
            hurry=lambda factor: moved.append(("hurry", factor)),
            where="frame 7",
        )
        assert app.check_action("step", ())
        assert app.check_action("speed", ())
        app.action_step(-10)
        app.action_speed(0.5)
        assert text(app, "title").endswith("frame 7")
        app.action_pause()
        assert moved == [("step", -10), ("hurry", 0.5), ("hurry", 1.0)]
        assert text(app, "title").endswith("frame 7   paused")

    scenario(WatchApp([node], 1.0), steps)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd_open here")
def test_a_signal_is_sent_to_who_was_asked_for_and_only_after_yes() -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    with subprocess.Popen(["sleep", "300"]) as child:

        async def steps(app: WatchApp, pilot: Any) -> None:
            await tab(app, pilot, 2)
            app.action_tree()  # as a list, without who started it
            for answer in (False, True):
                app.action_ask("terminate")
                await pilot.pause()
                assert (await dialog(app)).startswith(f"Terminate process {child.pid}?\n\n")
                assert (await dialog(app)).endswith(
                    "y  terminate this one process    n, Escape  leave it"
                )
                await close(app, answer)
                assert answer or child.poll() is None
            await until(lambda: child.poll() is not None)
            assert child.returncode == -signal.SIGTERM
            sent = f"terminate: sent to process {child.pid} ("
            await until(lambda: text(app, "note").startswith(sent))
            app.action_ask("terminate")
            assert text(app, "note").startswith(
                f"terminate: process {child.pid} is not signalled: "
            )

        processes = [{"pid": child.pid, "user": me, "memory": GIB}]
        try:
            scenario(WatchApp([node_of(processes=processes)], 1.0), steps)
        finally:
            child.kill()


# The driver.


class App:
    """What the driver asks of the app."""

    def __init__(self) -> None:
        self.posted: list[Any] = []
        self.ended: list[int] = []
        self.drawn = 0
        self.devtools = None
        self._return_code = 0

    def encodable(self, text: str) -> str:
        return text.replace("█", "#")

    def post_message(self, message: Any) -> None:
        self.posted.append(message)

    async def _post_message(self, message: Any) -> None:
        self.posted.append(message)

    def exit(self, status: int) -> None:
        self.ended.append(status)

    def refresh_all(self) -> None:
        self.drawn += 1


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """A pty of 70 columns: the program that shows it, and the terminal."""
    main, slave = pty.openpty()
    termios.tcsetwinsize(slave, (20, 70))
    shown = os.fdopen(os.dup(slave), "r+b", buffering=0)
    monkeypatch.setattr(sys, "__stdout__", shown)
    monkeypatch.setattr(sys, "__stdin__", shown)
    yield main, slave
    shown.close()
    for handle in (main, slave):
        if handle >= 0:
            try:
                os.close(handle)
            except OSError:  # the test closed it
                pass


def read(main: int) -> bytes:
    os.set_blocking(main, False)
    found = b""
    while True:
        try:
            found += os.read(main, 1 << 16)
        except BlockingIOError:
            return found


def driven(steps: Callable[[Terminal, App], Any]) -> App:
    app = App()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: app.ended.append(-1))
        driver = Terminal(app)
        try:
            await steps(driver, app)
        finally:
            driver.close()

    asyncio.run(main())
    return app


def sizes(app: App) -> list[Size]:
    return [message.size for message in app.posted if hasattr(message, "size")]


def keys(app: App) -> list[str]:
    return [message.key for message in app.posted if hasattr(message, "key")]


def test_the_terminal_is_taken_and_given_back_as_it_was(line: tuple[int, int]) -> None:
    main, slave = line
    before = termios.tcgetattr(slave)

    async def steps(driver: Terminal, app: App) -> None:
        driver.write("too early")
        driver.start_application_mode()
        assert read(main) == ENTER
        modes = termios.tcgetattr(slave)
        assert modes[3] == before[3] & ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        assert modes[0] == before[0] & ~termios.ICRNL
        assert sizes(app) == [Size(70, 20)] * 2
        assert app.drawn == 1
        driver.write("50 █")
        assert read(main) == b"50 #"
        driver._attend()  # it is there
        assert read(main) == b""
        os.write(main, b"qx")
        await until(lambda: keys(app) == ["q", "x"])
        os.write(main, b"\x1b")
        await until(lambda: keys(app) == ["q", "x", "escape"])
        driver.stop_application_mode()
        assert read(main) == LEAVE
        assert termios.tcgetattr(slave) == before
        driver.write("too late")
        driver.stop_application_mode()
        assert read(main) == b""

    app = driven(steps)
    assert app.ended == []


def test_a_terminal_that_takes_nothing_costs_frames_and_gets_the_last_one_whole(
    line: tuple[int, int],
) -> None:
    main, _ = line

    async def steps(driver: Terminal, app: App) -> None:
        driver.start_application_mode()
        read(main)
        driver.write("x" * (1 << 17))  # more than a pty holds
        driver.write("left out")
        assert app.drawn == 1
        taken = b""
        for _ in range(2000):
            taken += read(main)
            await asyncio.sleep(0.001)
            if app.drawn == 2:
                break
        assert (taken + read(main), app.drawn) == (b"x" * (1 << 17), 2)  # all is drawn again
        driver.write("y" * (1 << 17))
        driver.stop_application_mode()  # nobody reads: it ends all the same
        assert driver._pending == b""

    assert driven(steps).ended == []


def test_half_a_sequence_is_ended_before_the_terminal_is_restored(line: tuple[int, int]) -> None:
    main, _ = line

    async def steps(driver: Terminal, app: App) -> None:
        driver.start_application_mode()
        read(main)
        driver._pending = b"\x1b[3"
        driver.stop_application_mode()
        assert read(main) == b"\x18" + LEAVE

    driven(steps)


def test_a_terminal_that_is_hung_up_ends_the_watch(line: tuple[int, int]) -> None:
    main, _ = line

    async def steps(driver: Terminal, app: App) -> None:
        driver.start_application_mode()
        os.close(main)
        await until(lambda: HANGUP in app.ended)
        app.ended.clear()
        driver.write("more")
        assert app.ended == [HANGUP]
        count = len(sizes(app))
        driver._resized()
        assert len(sizes(app)) >= count

    driven(steps)


def test_without_a_keyboard_it_draws_and_reads_nothing(
    line: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    main, slave = line
    before = termios.tcgetattr(slave)
    monkeypatch.setattr(sys, "__stdin__", None)
    monkeypatch.setattr(os, "ttyname", lambda handle: "/nonexistent/tty")

    async def steps(driver: Terminal, app: App) -> None:
        driver.start_application_mode()
        assert read(main) == ENTER
        assert termios.tcgetattr(slave) == before
        driver.stop_application_mode()
        assert read(main) == LEAVE

    driven(steps)


def test_in_the_background_it_waits_for_the_terminal(
    line: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    main, _ = line
    group = [0]
    monkeypatch.setattr(os, "tcgetpgrp", lambda handle: group[0])
    monkeypatch.setattr(terminal, "_FOREGROUND_S", 0.01)

    async def steps(driver: Terminal, app: App) -> None:
        driver.start_application_mode()
        await asyncio.sleep(0.03)
        assert read(main) == b""
        group[0] = os.getpgrp()
        await until(lambda: app.drawn == 1)
        assert read(main) == ENTER

    driven(steps)


def test_a_signal_that_the_caller_ignores_stays_ignored(line: tuple[int, int]) -> None:
    _, slave = line
    was = signal.signal(signal.SIGWINCH, signal.SIG_IGN)
    try:

        async def steps(driver: Terminal, app: App) -> None:
            driver.start_application_mode()
            assert signal.getsignal(signal.SIGWINCH) is signal.SIG_IGN

        driven(steps)
    finally:
        signal.signal(signal.SIGWINCH, was)

    async def resized(driver: Terminal, app: App) -> None:
        driver.start_application_mode()
        termios.tcsetwinsize(slave, (30, 90))
        os.kill(os.getpid(), signal.SIGWINCH)
        await until(lambda: sizes(app)[-1] == Size(90, 30))

    driven(resized)


def test_without_the_private_parser_textual_draws_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert driver_class() is Terminal
    monkeypatch.setitem(sys.modules, "textual._xterm_parser", None)  # type: ignore[arg-type]
    assert driver_class() is None


# The loop.


class Screen:
    """An app that runs until it is told to end."""

    started: Callable[[], object]
    return_code = 0

    def __init__(self, meanwhile: Callable[[], object] = int, value: int | None = None) -> None:
        self.meanwhile = meanwhile
        self.return_value = value

    async def run_async(self, mouse: bool) -> None:
        assert not mouse
        self.ended = asyncio.Event()
        self.started()
        self.meanwhile()
        await asyncio.wait_for(self.ended.wait(), 20)

    def exit(self, status: int) -> None:
        self.return_value = self.return_value or status
        self.ended.set()


def looped(app: Any, source: Any) -> int:
    return run_screen(app, source, Intake(Alerts(rules_of({}))))


async def nothing(app: Any) -> None:
    """Have no round at all."""


@pytest.mark.parametrize(("value", "status"), [(None, 0), (3, 3)])
def test_the_end_of_the_rounds_is_the_end(value: int | None, status: int) -> None:
    assert looped(Screen(value=value), nothing) == status


def test_a_mistake_of_ours_is_raised_behind_the_screen() -> None:
    async def breaks(app: Any) -> None:
        raise LookupError("a mistake")

    with pytest.raises(LookupError, match="a mistake"):
        looped(Screen(), breaks)

    def fails() -> None:
        asyncio.get_running_loop().call_soon(lambda: {}["absent"])

    async def endless(app: Any) -> None:
        await asyncio.sleep(60)

    with pytest.raises(KeyError, match="absent"):
        looped(Screen(fails), endless)

    def told() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "odd"})

    with pytest.raises(RuntimeError, match="odd"):
        looped(Screen(told), endless)


def test_a_signal_ends_it_with_its_status() -> None:
    async def endless(app: Any) -> None:
        await asyncio.sleep(60)

    was = signal.getsignal(signal.SIGTERM)
    app = Screen(lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert looped(app, endless) == 128 + signal.SIGTERM
    assert app.return_value == HANGUP
    assert signal.getsignal(signal.SIGTERM) == was


# The command.

ALONE = {"PROBE_ONLY": "cpu", "PROBE_DISABLE": "bus"}


def watched(*words: str) -> Any:
    return probe_here("watch", *words, env={**os.environ, **ALONE})


def test_lines_of_one_device() -> None:
    done = watched("--json", "-n", "1", "--interval", "0.2", "--device", "cpu:0")
    assert (done.returncode, done.stderr) == (0, "")
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["device"] for entry in samples if "device" in entry] == ["cpu:0"]


@pytest.mark.parametrize(
    ("words", "text", "sentence"),
    [
        (("--device", "x9"), "", "--device x9: no such device; there are cpu:0"),
        (("--count", "0"), "", "--count 0: expected a whole number from 1"),
        (("--count", "1" * 5000), "", f"--count {'1' * 5000}: expected a whole number from 1"),
        (("--count", "1000000001"), "", "--count 1000000001: expected a whole number from 1"),
        (("--all",), "", "--all adds fields to --json; give both"),
        (("--plain", "--json"), "", "--plain and --json are two forms of the same lines; give one"),
        (("--on-alert", ""), "", "--on-alert: expected a program and its arguments"),
        (("--on-alert", "'"), "", "--on-alert ': no closing quotation"),
        (("--on-alert", "/no/such x"), "",
         "--on-alert /no/such: no such program; for a shell give sh -c '…'"),
        (("--peer", "desk"), "", "--peer desk: expected HOST:PORT, such as desk:22"),
        (("--hosts", "a", "--json"), "", "--hosts does not go with --json"),
        (("--hosts", "a", "--replay", "b"), "", "--hosts does not go with --replay"),
        (("--replay", "b", "--on-alert", "x"), "", "--replay does not go with --on-alert"),
        (("--replay", "b"), "", "--replay draws a screen, and this is no terminal for one"),
        (("--machine", "x"), "", "--machine: a recording has no live figures; `probe watch` "),
        ((), "[command.watch]\nsound = 1\n",
         "the file of settings: command.watch.sound is no setting; there are alerts and theme"),
        ((), "[command.watch.alerts]\nheat = 1\n", "the file of settings: "),
    ],
    ids=range(17),
)  # fmt: skip
def test_wrong_usage_is_one_sentence(
    words: tuple[str, ...], text: str, sentence: str, tmp_path: Path
) -> None:
    options = [*words, *(() if "--count" in words else ("-n", "1"))]
    if words[:1] in (("--hosts",), ("--replay",)):
        options = [*words]
    if text:
        (tmp_path / "config.toml").write_text(text)
        options += ["--config", str(tmp_path / "config.toml")]
    done = watched(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith(f"probe watch: {sentence}"[:200])
