"""The commands of `--on-alert`: each edge has its turn, a few at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

from watch_samples import sample

from probe_watch.alert_commands import MOST_AT_ONCE, AlertCommands
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
