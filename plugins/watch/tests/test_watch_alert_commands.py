"""The commands of `--on-alert`: each edge has its turn, a few at a time."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from watch_samples import sample

from probe_watch import alert_commands
from probe_watch.alert_commands import MOST_AT_ONCE, AlertCommands, _status, variables
from probe_watch.alerts import DEFAULTS, Alerts, Edge


def edges(count: int) -> list[Edge]:
    alerts = Alerts(DEFAULTS)
    hot = [sample(f"pci:0000:{n:02x}:00.0", temperature_c=95) for n in range(count)]
    return [edge for second in (0, 5, 11) for edge in alerts.update(second, 5000 + second, hot)]


def test_more_alerts_than_run_at_once_all_have_their_command(tmp_path: Path) -> None:
    due = edges(2 * MOST_AT_ONCE + 1)
    assert len(due) == 2 * MOST_AT_ONCE + 1
    output = tmp_path / "devices"
    script = f"echo $PROBE_ALERT_DEVICE >> {output}"
    commands = AlertCommands(["sh", "-c", script], os.environ)
    try:
        commands.add(due)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            lines = output.read_text().splitlines() if output.exists() else []
            if len(lines) == len(due):
                break
            time.sleep(0.05)
    finally:
        commands.close()
    assert sorted(lines) == sorted(edge.device for edge in due)
    assert commands.notes() == []


def waited_for(path: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end and not (path.exists() and path.read_text()):
        time.sleep(0.01)
    return path.read_text()


def test_a_command_that_runs_at_the_end_has_its_grace(tmp_path: Path) -> None:
    up, down = tmp_path / "up", tmp_path / "down"
    trap = f"trap 'sleep 0.1; echo down > {down}; exit 3' TERM; echo up > {up}; sleep 60 & wait"
    commands = AlertCommands(["sh", "-c", trap], os.environ)
    commands.add(edges(1))
    assert waited_for(up) == "up\n"
    commands.close()
    assert down.read_text() == "down\n"
    assert commands.notes() == []  # it was ended on purpose


def test_what_fails_and_what_has_no_room_is_noted() -> None:
    [edge] = edges(1)
    commands = AlertCommands(["sleep", "60"], os.environ)
    commands.add([edge] * 258)
    assert commands.notes() == [f"--on-alert: 256 alerts wait; {edge.rule.name} is left out"] * 2
    commands.close()
    commands = AlertCommands(["sh", "-c", "exit 3"], os.environ)
    commands.add([edge])
    end = time.monotonic() + 60
    notes: list[str] = []
    while not notes and time.monotonic() < end:
        notes = commands.notes()
        time.sleep(0.01)
    assert notes == ["--on-alert: sh ended with status 3"]
    commands.close()
    ends = {
        1: "status 1", 127: "status 127", 128: "status 128", 129: "signal 1", 130: "signal 2",
        137: "signal 9", 255: "status 255", -15: "signal 15",
    }  # fmt: skip
    assert {status: _status(status) for status in ends} == ends


@pytest.mark.parametrize(
    ("command", "environ", "note"),
    [
        (["acme"], {"PATH": "/nowhere"}, "acme cannot be started: No such file or directory"),
        (["a\0b"], dict(os.environ), "a\0b cannot be started: embedded null byte"),
        (["sleep", "60"], dict(os.environ), "sleep took longer than 0.05 s and was ended"),
    ],
)
def test_why_a_command_was_not_run_to_its_end(
    command: list[str], environ: dict[str, str], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alert_commands, "LIMIT_S", 0.05)
    commands = AlertCommands(command, environ)
    commands.add(edges(1))
    for thread in commands._threads:
        thread.join(60)
    assert commands.notes() == [f"--on-alert: {note}"]
    assert commands.notes() == []
    commands.close()


def test_without_room_for_a_thread_the_edges_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    commands = AlertCommands(["true"], os.environ)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        commands.add(edges(2))
    told = "--on-alert: no thread can be started: can't start new thread"
    assert (commands.notes(), commands._waiting.qsize()) == ([told], 2)
    commands.add([])  # the next round
    for thread in commands._threads:
        thread.join(60)
    assert (commands.notes(), commands._waiting.qsize()) == ([], 0)
    commands.close()


def test_the_variables_of_an_edge() -> None:
    [edge] = edges(1)
    assert variables(edge) == {
        "PROBE_ALERT_NAME": edge.rule.name, "PROBE_ALERT_STATE": "on",
        "PROBE_ALERT_SEVERITY": edge.severity, "PROBE_ALERT_DEVICE": "pci:0000:00:00.0",
        "PROBE_ALERT_VALUE": "95", "PROBE_ALERT_THRESHOLD": f"{edge.threshold:g}",
        "PROBE_ALERT_UNIT": edge.rule.unit, "PROBE_ALERT_SINCE": "1970-01-01T01:23:20.000Z",
        "PROBE_ALERT_TIME": "1970-01-01T01:23:31.000Z", "PROBE_ALERT_REASON": edge.reason or "",
    }  # fmt: skip
    edge.value = None
    assert variables(edge)["PROBE_ALERT_VALUE"] == ""
