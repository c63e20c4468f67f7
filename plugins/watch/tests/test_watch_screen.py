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

from watch_terminal import Terminal

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


def test_eight_devices_and_q(live: Live, terminal: Terminal) -> None:
    terminal.start(*SOON, env=live.env)
    text = terminal.until(lambda screen: "▇▇▇▇" in screen.text())
    lines = text.splitlines()
    assert lines[0].startswith("8 × NVIDIA H100 80GB HBM3   every 0.2 s")
    assert lines[1].split() == "# ID BUSY PEAK MEMORY TEMP POWER CLOCK LINK PROC".split()
    device = next(line for line in lines if "08:00.0" in line)
    assert " 80 % " in device
    assert "40.0 / 80.0 GiB ████" in device
    assert "60 °C" in device
    assert "300 / 700 W  1755 MHz" in device
    assert "01:00.0           4242  u1001           39.0 GiB" in text
    assert lines[-1] == "q quit  p pause  s sort: state"
    assert terminal.screen.alternate
    assert not terminal.screen.cursor_shown
    terminal.type("q")
    assert terminal.ended() == 0
