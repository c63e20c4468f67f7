"""The screen in a real pseudo-terminal: what it shows, its keys, and how each end restores it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from watch_prober import Live, card

pytest.importorskip("termios", reason="no terminals of POSIX here")

from watch_terminal import ALONE, Emulator, Terminal, remaining

SOON = ("--interval", "0.2")


@pytest.fixture
def live(tmp_path: Path) -> Live:
    live = Live(tmp_path)
    live.set(*(card(number, number / 10) for number in range(1, 9)))
    return live


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.mark.heavy
def test_eight_devices_and_q(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    for part in ("▇▇▇▇", "4242", "1-5 tabs"):
        text = terminal.shows(part)
    lines = text.splitlines()
    assert lines[0].startswith("8 × NVIDIA H100 80GB HBM3   every 0.2 s")
    assert lines[1].split() == ["Devices", "Processes", "Users", "Alerts"]
    heads = "# ID BUSY HISTORY PEAK MEMORY USED TEMP POWER CLOCK PROC".split()
    assert lines[3].split() == heads
    device = next(line for line in lines if "08:00.0" in line)
    assert " 80 % " in device
    assert "40.0 / 80.0 GiB    ████" in device
    assert "60 °C" in device
    assert "300 / 700 W" in device
    process = next(line for line in lines if "4242" in line)
    assert process.split()[:5] == ["4242", "u1001", "0-7", "312.0", "GiB"]
    assert lines[-1].split()[:4] == ["enter", "info", "q", "quit"]
    assert terminal.screen.alternate
    assert not terminal.screen.cursor_shown
    terminal.type("q")
    assert terminal.ended() == 0


ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGQUIT: 131}


@pytest.mark.heavy
@pytest.mark.parametrize("number", ENDS, ids=lambda number: number.name)
def test_a_signal_ends_it_and_restores_the_terminal(
    number: signal.Signals, live: Live, terminal: Terminal
) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    terminal.signal(number)
    assert terminal.ended() == ENDS[number]


@pytest.mark.heavy
def test_ctrl_c_is_typed(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    began = time.monotonic()
    terminal.type("\x03")
    assert terminal.ended() == 130
    assert time.monotonic() - began < 10


@pytest.mark.heavy
@pytest.mark.parametrize("after", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8])
def test_ctrl_c_at_any_moment_leaves_nothing(after: float, live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    end = time.monotonic() + after
    while time.monotonic() < end:
        terminal.read(0.01)
    terminal.signal(signal.SIGINT)
    # Python's own start has status 1 where the signal strikes in the middle of it.
    assert terminal.ended() in (1, 130)


@pytest.mark.heavy
def test_count_ends_it(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, "-n", "2", env=live.env)
    assert terminal.ended() == 0
    assert terminal.screen.written > 500


@pytest.mark.heavy
def test_ctrl_z_gives_the_terminal_back_until_fg(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    for _ in range(2):
        terminal.shows("08:00.0")
        terminal.type("\x1a")
        terminal.until(lambda screen: not screen.alternate)
        terminal.stopped()
        terminal.is_restored()
        terminal.screen.resize(120, 30)  # the shell's own output
        terminal.signal(signal.SIGCONT)
        terminal.until(lambda screen: screen.alternate)
    terminal.shows("08:00.0")
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.heavy
def test_ctrl_z_without_a_shell_stops_nothing(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env, start=ALONE)
    terminal.shows("08:00.0")
    terminal.type("\x1a")
    # Left and taken again, maybe at once.
    terminal.until(lambda screen: screen.raw.count("\x1b[?1049h") == 2)
    terminal.shows("08:00.0")
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.heavy
def test_pause_keeps_the_figures_and_goes_on(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.shows("60 °C")
    terminal.type("p")
    terminal.shows("paused")
    live.set(*(card(number, 0.9, temperature_c=71) for number in range(1, 9)))
    end = time.monotonic() + 1
    while time.monotonic() < end:
        terminal.read()
        assert "71 °C" not in terminal.screen.text()
    terminal.type(" ")
    assert "paused" not in terminal.shows("71 °C")


def order(text: str) -> list[int]:
    """Return the numbers of the devices from top to bottom."""
    lines = [line.split() for line in text.splitlines()[3:] if ":00.0" in line]
    return [int(line[0]) for line in lines if line[0].isdecimal()]


@pytest.mark.heavy
def test_sorts_by_state_first_and_s_goes_on(live: Live, terminal: Terminal) -> None:
    devices = [card(number, number / 10, temperature_c=90 - number) for number in range(1, 5)]
    devices[2] = {"device": devices[2]["device"], "status": "unavailable", "reason": "no rights"}
    live.set(*devices)
    terminal.start(*SOON, env=live.env)
    terminal.shows("unavailable: no rights")
    terminal.shows("by state")
    assert order(terminal.screen.text()) == [2, 0, 1, 3]
    for name, expected in (
        ("device", [0, 1, 2, 3]),
        ("busy", [3, 1, 0, 2]),
        ("memory", [0, 1, 3, 2]),
        ("temperature", [0, 1, 3, 2]),
        ("power", [0, 1, 3, 2]),
        ("state", [2, 0, 1, 3]),
    ):
        terminal.type("s")
        terminal.shows(f"by {name}")
        assert order(terminal.screen.text()) == expected


@pytest.mark.heavy
def test_keys_are_typed(live: Live, terminal: Terminal) -> None:
    """What each does is tested without a terminal; here that they arrive, those of several bytes
    and Escape among them, and that a paste is none.
    """
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    for key, text in (
        ("?", "share of time in which anything ran"),
        ("\x1b", "08:00.0"),
        ("2", "by memory"),
        ("3", "LONGEST"),
        ("4", "[command.watch.alerts]"),
        ("1", "by state"),  # written when its table has the keys
        ("\x1b[B", "02:00.0  NVIDIA H100"),
        ("\r", "pci:0000:02:00.0  gpu  ok"),
        ("\x1b", "08:00.0"),
        ("/", "user~ann"),
        ("zzz", "/zzz"),
        ("\x1b", "08:00.0"),
        ("\x1b[200~q\x1b[201~", "08:00.0"),
    ):
        terminal.type(key)
        terminal.shows(text)
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.heavy
@pytest.mark.parametrize("shown", ["", "Alerts", "08:00.0"])
def test_a_key_that_comes_while_it_starts_opens_its_tab(
    shown: str, live: Live, terminal: Terminal
) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.until(lambda screen: screen.alternate and shown in screen.text())
    terminal.type("2")
    terminal.shows("by memory")
    terminal.shows("PID")
    terminal.until(lambda screen: "08:00.0" not in screen.text())
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.heavy
@pytest.mark.parametrize("columns", [120, 80, 60, 40])
def test_a_line_fits_at_any_width(columns: int, live: Live) -> None:
    live.settings("[command.watch.alerts]\nmemory = { above = 0.1, seconds = 0 }\n")
    terminal = Terminal(columns, 24)
    try:
        terminal.start(*SOON, env=live.env)
        # The emulator refuses what is written behind the last column.
        terminal.until(lambda screen: all("!" in line for line in screen.lines()[4:12]))
        text = terminal.screen.text()
        assert "08:00.0" in text
        assert "80 %" in text
        assert ("40.0 / 80.0 GiB" in text) == (columns >= 80)
        assert "60 °C" in text
        terminal.type("q")
        assert terminal.ended() == 0
    finally:
        terminal.close()


@pytest.mark.heavy
def test_a_storm_of_resizes(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    written = terminal.screen.written
    for number in range(200):
        # What is still on its way was for the size before, so nothing of it is looked at here.
        terminal.screen.resize(300, 100)
        terminal.resize(40 + number % 60, 5 + number % 30)
        terminal.screen.resize(300, 100)
        if number % 10 == 0:
            terminal.read(0.005)
    terminal.resize(100, 30)
    terminal.screen.resize(300, 100)
    terminal.until(lambda screen: "PROC" in screen.text())
    terminal.read(0.5)
    # Twenty frames a second at most, however many resizes there are.
    assert terminal.screen.written - written < 400_000
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.heavy
def test_few_rows_and_one_row(live: Live) -> None:
    terminal = Terminal(80, 8)
    try:
        terminal.start(*SOON, env=live.env)
        terminal.until(lambda screen: "q quit" in screen.lines()[7] and "01:00.0" in screen.text())
        terminal.resize(80, 1)
        terminal.until(lambda screen: "NVIDIA" in screen.text() or "quit" in screen.text())
        terminal.type("q")
        assert terminal.ended() == 0
    finally:
        terminal.close()


@pytest.mark.heavy
def test_only_what_changes_is_written(live: Live, terminal: Terminal) -> None:
    """Frames for a slow line: figures that stand still cost the clock of the title alone."""
    terminal.start("--interval", "0.1", env=live.env)
    terminal.until(lambda screen: "▇" * 20 in screen.text())
    before, rounds = terminal.screen.written, 20
    end = time.monotonic() + 0.1 * rounds
    while time.monotonic() < end:
        terminal.read(0.02)
    # A whole frame has some 6,000 characters.
    assert (terminal.screen.written - before) / rounds < 1500
    assert terminal.screen.alternate


@pytest.mark.heavy
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "vt220"}], ids=str)
def test_no_colour(variables: dict[str, str], live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env | variables)
    terminal.shows("08:00.0")
    # The terminal's own colours, bold and dim: nothing that is a colour.
    shown = {part for colour in terminal.screen.colours for part in colour.split(";")}
    assert shown <= {"1", "2", "4", "7", "39", "49"}
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.heavy
def test_colours_are_those_of_the_state(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    before = set(terminal.screen.colours)
    live.set(card(1), {"device": card(2)["device"], "status": "unavailable", "reason": "no rights"})
    terminal.until(lambda screen: screen.colours > before)


@pytest.mark.heavy
def test_an_ascii_terminal(live: Live, terminal: Terminal) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    terminal.start(*SOON, env=live.env | plain | {"PYTHONIOENCODING": "ascii"})
    text = terminal.until(
        lambda screen: "8 x NVIDIA" in screen.text() and "08:00.0" in screen.text()
    )
    assert text.isascii()
    assert "60 oC" in text
    assert "####" in text
    assert "*" in text  # of the history


@pytest.mark.heavy
def test_a_dumb_terminal_gets_lines(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, "-n", "1", env=live.env | {"TERM": "dumb"})
    assert terminal.process is not None
    assert terminal.ended() == 0
    assert "\x1b" not in terminal.screen.raw
    assert "pci:0000:08:00.0 busy=80%" in terminal.screen.raw


@pytest.mark.heavy
def test_a_pipe_on_standard_input_is_not_read(live: Live, terminal: Terminal) -> None:
    """As in `… | probe watch`: the keys are those of the terminal."""
    read, write = os.pipe()
    terminal.start(*SOON, env=live.env, stdin=read)
    os.close(read)
    os.write(write, b"q")
    terminal.shows("08:00.0")
    terminal.type("q")
    assert terminal.ended() == 0
    os.close(write)


@pytest.mark.heavy
def test_a_terminal_that_takes_nothing_stops_neither_samples_nor_the_end(
    live: Live, terminal: Terminal
) -> None:
    """As after Ctrl-S, or on a line that is too slow for any frame."""
    seen = live.folder / "seen"
    live.settings("[command.watch.alerts]\nmemory = { above = 0.1, seconds = 0 }\n")
    terminal.start(*SOON, "--on-alert", f"touch {seen}", env=live.env)
    terminal.shows("08:00.0")
    end = time.monotonic() + 60
    # Nobody reads: the kernel's buffer of a terminal takes some kilobytes of frames.
    number = 0
    while number < 40 or not seen.exists():
        assert time.monotonic() < end
        live.set(*(card(n, (number % 10) / 10) for n in range(1, 9)))
        number += 1
        time.sleep(0.05)
    began = time.monotonic()
    terminal.signal(signal.SIGTERM)
    assert terminal.process is not None
    assert terminal.process.wait(30) == 143
    assert time.monotonic() - began < 20


@pytest.mark.heavy
def test_a_terminal_that_is_closed_ends_it(live: Live) -> None:
    terminal = Terminal()
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    os.close(terminal.theirs)
    os.close(terminal.ours)
    assert terminal.process is not None
    assert terminal.process.wait(60) == 129
    assert remaining() == []


@pytest.mark.heavy
def test_a_hung_device_shows_no_figure_and_the_others_go_on(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    terminal.shows("08:00.0")
    devices = [card(number, 0.33) for number in range(1, 9)]
    devices[2]["hang"] = True
    live.set(*devices)
    terminal.shows("no answer")
    text = terminal.until(lambda screen: "\n".join(screen.lines()[4:14]).count(" 33 % ") == 7)
    hung = next(line for line in text.splitlines() if "03:00.0" in line and "no answer" in line)
    assert "%" not in hung
    assert order(text)[0] == 2
    began = time.monotonic()
    terminal.type("\x03")
    assert terminal.ended() == 130
    assert time.monotonic() - began < 20


MISTAKE = """
import asyncio, sys
from probe_watch.alerts import Alerts
from probe_watch.app import WatchApp
from probe_watch.node import Node
from probe_watch.rounds import Intake
from probe_watch.screen import run_screen
from probe_watch.terminal import Terminal
alerts = Alerts({})
async def source(app):
    await asyncio.sleep(0.2)
    if sys.argv[1] == "samples":
        raise RuntimeError("a mistake")
    if sys.argv[1] == "callback":
        asyncio.get_running_loop().call_soon(lambda: {}["a mistake"])
    else:
        app.call_later(lambda: {}["a mistake"])
    await asyncio.sleep(60)
app = WatchApp([Node("", alerts)], 1.0, driver=Terminal)
sys.exit(run_screen(app, source, Intake(alerts)))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("where", ["samples", "callback", "message"])
def test_a_mistake_of_ours_restores_the_terminal_first(
    where: str, live: Live, terminal: Terminal
) -> None:
    terminal.run("-c", MISTAKE, where, env=live.env)
    assert terminal.ended() == 1
    drawn, _, after = terminal.screen.raw.partition("\x1b[?1049l")
    assert "no sample yet" in drawn
    assert "Traceback" not in drawn
    assert "a mistake" in after


class Lenient(Emulator):
    """Leaves out what it does not know, of which Textual's own driver writes some."""

    def _control(self, parameters: str, kind: str) -> None:
        known = {"?1049", "?25", "?7", "?2004"}
        if kind in "HKJm" or (kind in "hl" and parameters in known):
            super()._control(parameters, kind)


WITHOUT_PARSER = """
import sys
from probe_core.cli import main
from probe_watch import terminal
terminal._parser = None  # as in a release of Textual that has another
sys.exit(main(["watch", "--interval", "0.2"]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize(("key", "status"), [("q", 0), ("\x03", 130)])
def test_without_the_private_parser_textual_draws_by_itself(
    key: str, status: int, live: Live, terminal: Terminal
) -> None:
    terminal.screen = Lenient(120, 30)
    terminal.run("-c", WITHOUT_PARSER, env=live.env)
    terminal.shows("08:00.0")
    terminal.type("s")
    terminal.shows("by device")
    terminal.type(key)
    assert terminal.ended() == status
