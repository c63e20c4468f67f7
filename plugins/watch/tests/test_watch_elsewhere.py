"""Other computers by a fake ssh that runs the real script here, and files of samples."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.widgets._footer import FooterKey
from watch_samples import NIGHT, address, busy, report

from probe_core.commands import CommandError
from probe_watch.alerts import Alerts, rules_of
from probe_watch.app import WatchApp
from probe_watch.grid import Grid
from probe_watch.hosts import Host, interval_for, names_of, script
from probe_watch.lines import device_document, sample_document
from probe_watch.node import Node
from probe_watch.recorded import Reader, Recording, seconds_of
from probe_watch.screen import Replay, remote

H100 = "NVIDIA H100 80GB HBM3"


def lines(rounds: int, share: float = 0.1, devices: int = 2) -> str:
    described = [device_document(device, NIGHT) for device in report(*[H100] * devices)["devices"]]
    documents = [
        sample_document(busy(address(number), share * second), NIGHT + second, [], full=True)
        for second in range(1, rounds + 1)
        for number in range(1, devices + 1)
    ]
    return "".join(json.dumps(document) + "\n" for document in [*described, *documents])


def plain(app: WatchApp, name: str) -> str:
    widget = app.query_one(f"#{name}")
    return widget.text if isinstance(widget, Grid) else str(widget.content)  # type: ignore[attr-defined]


async def until(app: WatchApp, name: str, wanted: str) -> str:
    end = time.monotonic() + 110  # a busy computer draws late
    while wanted not in plain(app, name):
        assert time.monotonic() < end, plain(app, name)
        await asyncio.sleep(0.02)
    return plain(app, name)


# Lines, checked as a sampler's answer is.


def test_what_a_stranger_prints_is_checked() -> None:
    reader = Reader()
    user = {"pid": 1, "user": "\x1b[31m", "x": 1}
    evil = {"time": "2026-11-21T22:14:03.512Z", "device": "pci:0000:01:00.0", "status": "ok",
            "busy": 7, "temperature_c": 60, "processes": [user]}  # fmt: skip
    noise = [b"Welcome to desk!", b"{", b"[1]", b'{"time": 3}', b"", b"\xff\xfe{}", b"{}" * 600_000]
    for line in [*noise, json.dumps(evil).encode(), b'{"time": "x", "device": "\\u001b"}']:
        assert reader.feed(line) is None or line.startswith(b'{"time": "x"')
    assert reader.skipped == 7
    reader.feed(json.dumps({**evil, "time": "2026-11-21T22:14:04Z"}).encode())
    ended = reader.end()
    assert ended is not None
    sample = ended.samples[0]
    assert sample["busy"] is None
    assert sample["unknown"]["busy"].startswith("refused")
    assert sample["temperature_c"] == 60
    assert "\x1b" not in str(sample["processes"])
    assert seconds_of("2026-11-21T22:14:03.512Z") == NIGHT
    assert seconds_of("no time") == 0.0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"kind": "gpu", "name": "L4", "vendor": "nvidia", "memory": None}),
        (
            {"memory": "unified", "name": 3, "vendor": None},
            {"kind": "gpu", "name": None, "vendor": None, "memory": {"kind": "unified"}},
        ),
        ({"memory": "shared"}, {"memory": {"kind": "shared"}}),
        ({"memory": "vast"}, {"memory": None}),
        ({"kind": "toaster"}, None),
        ({"device": "\x1b"}, None),
    ],
)
def test_what_a_stranger_says_of_a_device_is_checked(
    changes: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    reader = Reader()
    told = {"time": "x", "event": "device", "device": address(1), "kind": "gpu", "name": "L4",
            "vendor": "nvidia", "memory": "dedicated"}  # fmt: skip
    reader.feed(json.dumps(told | changes).encode())
    found: Any = list(reader.devices.values())
    assert len(found) == (expected is not None)
    if expected is not None:
        assert (found[0]["id"], found[0]["ids"]) == (address(1), [address(1)])
        assert {key: found[0][key] for key in expected} == expected
    assert reader.skipped == ("device" in changes)


def test_events_alerts_and_blank_lines_of_strangers() -> None:
    reader = Reader()
    event = {"time": "x", "device": "pci\x1b", "change": "gone"}
    for name in ("added", "removed", "changed", "alert", "other"):
        assert reader.feed(json.dumps({**event, "event": name}).encode()) is None
    reader.feed(b"  \n")
    assert reader.skipped == 1  # the event that is none; an alert is made again here
    assert reader.end() is None
    full = lines(1).splitlines()
    for line in full:
        assert reader.feed(line.encode()) is None
    ended = reader.end()
    assert ended is not None
    assert [dict(found) for found in ended.events] == [
        {"event": name, "device": "pci�", "change": "gone"}
        for name in ("added", "removed", "changed")
    ]
    assert (ended.edges, ended.notes) == (None, ())
    assert reader.end() is None
    for line in (full[0][:-1] + " " * (1 << 20) + "}", '["time"]', '"time"', "{", "[" * 100_000):
        before = reader.skipped
        assert reader.feed(line.encode()) is None
        assert reader.skipped == before + 1


def test_a_recording_is_read_by_rounds_and_one_cut_short_says_so(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    file.write_text("a banner\n" + lines(5)[:-40])
    recording = Recording(str(file))
    assert len(recording) == 5
    assert recording.note == "2 lines are no samples; the file ends in the middle of a line"
    assert [device["name"] for device in recording.devices[:2]] == [H100, H100]
    third = recording.round(2)
    assert third is not None
    assert third.time == NIGHT + 3
    assert [sample["busy"] for sample in third.samples] == pytest.approx([0.3, 0.3])
    last = recording.round(4)
    assert last is not None
    assert len(last.samples) == 1  # the other is what was cut
    os.truncate(file, 3)
    assert recording.round(4) is None


def test_a_file_without_samples_is_refused_with_what_makes_one(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "text").write_bytes(b"\0" * 5_000_000)
    for name in ("empty", "text"):
        with pytest.raises(CommandError, match="no sample is in it; record one with"):
            Recording(str(tmp_path / name))
    with pytest.raises(CommandError, match="No such file"):
        Recording(str(tmp_path / "none"))


def test_a_device_that_took_the_place_of_another_has_its_own_name() -> None:
    node = Node("desk", Alerts(rules_of({})))
    app: Any = SimpleNamespace(take=lambda node, happening: node.take(happening))

    async def main() -> None:
        host = Host(app, node, 1.0)
        for name, at in (("NVIDIA A100", 1), ("NVIDIA L4", 2)):
            host._reader = Reader()  # as of a connection that was made anew
            device = {**report(name)["devices"][0], "id": address(at)}
            documents = [device_document(device, NIGHT)] + [
                sample_document(busy(address(at)), NIGHT + at + second, [], full=True)
                for second in range(2)
            ]
            host._feed("".join(json.dumps(document) + "\n" for document in documents).encode())
            assert list(node.names.values()) == [name.removeprefix("NVIDIA ")]
            assert node.time == NIGHT + at

    asyncio.run(main())


@pytest.mark.heavy
def test_a_replay_plays_stops_and_jumps(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    file.write_text(lines(30, 0.03))

    async def main() -> None:
        node = Node("", Alerts(rules_of({})))
        app = WatchApp([node], 1.0)
        replay = Replay(Recording(str(file)), app)
        async with app.run_test(size=(110, 36)) as pilot:
            task = asyncio.ensure_future(replay.follow(app))
            await until(app, "title", "of 30")
            await pilot.press("space", "j", "j", "right_square_bracket", "k")
            title = await until(app, "title", "frame 12 of 30")
            assert "paused" in title
            keys = [key.key_display for key in app.query(FooterKey)]
            assert keys[-7:] == ["?", "[", "]", "j", "k", "+", "-"]
            assert "2026-11-21" in title
            assert " 36 %" in plain(app, "devices-table")
            past = [number * 0.03 for number in range(1, 13)]
            assert node.history.of(address(1))["busy"] == pytest.approx(past)
            await pilot.press("j", "j")
            await until(app, "title", "frame 1 of 30")
            assert node.history.of(address(1))["busy"] == pytest.approx([0.03])
            await pilot.press(*["plus"] * 6, "space")
            await until(app, "title", "frame 30 of 30  64×")
            await pilot.press("2", "T")
            assert "it is no process of this computer" in plain(app, "note")
            task.cancel()
            await asyncio.wait({task})

    asyncio.run(main())


# Hosts.

SSH = """#!/bin/sh
for word; do host=$before; before=$word; done
export WATCH_HOST=$host
exec sh -c "$before"
"""

PROBE = """#!/bin/sh
echo "Last login: today"
case $WATCH_HOST in
  down) echo "ssh: connect to host down port 22: Connection refused" >&2; exit 255;;
  ssh://silent:22) exec sleep 600;;
esac
echo "$$" >> "{folder}/pids"
cat "{folder}/lines"
exec sleep 600
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("ssh", SSH), ("probe", PROBE.replace("{folder}", str(tmp_path)))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "lines").write_text(lines(2, 0.25))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


@pytest.mark.heavy
@pytest.mark.timeout(360)
def test_hosts_that_answer_hang_and_fail_and_nothing_is_left(fake: Path) -> None:
    async def main() -> None:
        nodes = [Node(name, Alerts(rules_of({}))) for name in ("desk", "silent:22", "down")]
        app = WatchApp(nodes, 1.0)
        async with app.run_test(size=(110, 30)) as pilot:
            task = asyncio.ensure_future(remote(0.1, [str(fake / "probe")])(app))
            await until(app, "devices-table", " 50 %")
            assert "desk  2 × NVIDIA H100" in plain(app, "title")
            await pilot.press("5")
            shown = await until(app, "hosts-table", "Connection refused; asked again in 5 s")
            assert shown.splitlines()[1].split()[:4] == ["desk", "0", "2", "50%"]
            assert nodes[1].lost is None or "no sample for" in nodes[1].lost
            await pilot.press("1")
            app.select("down")
            await pilot.pause()
            assert "Connection refused" in plain(app, "note")
            task.cancel()
            await asyncio.wait({task})

    asyncio.run(main())
    pid = int((fake / "pids").read_text())
    end = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and b"sleep" in cmdline(pid):
        assert time.monotonic() < end, "the remote process outlives the screen"
        time.sleep(0.02)


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_the_names_of_hosts(tmp_path: Path) -> None:
    assert names_of("desk,alice@rock,desk") == ["desk", "alice@rock"]
    with pytest.raises(CommandError, match="is no host name"):
        names_of("-oProxyCommand=evil")
    assert [interval_for(count) for count in (1, 10, 11, 51, 101)] == [3, 3, 4, 5, 6]
    assert "/a dir/probe" in shlex.split(shlex.split(script(["/a dir/probe"], 3.0))[3])


def test_a_file_of_a_cluster_gives_its_nodes(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    nodes: Any = {name: {"status": "missing", "reason": "x"} for name in ("n1", "n2")}
    file.write_text(json.dumps({"schema": 1, "collector": "ssh", "nodes": nodes}))
    assert names_of(str(file)) == ["n1", "n2"]
