"""`probe cluster --hosts`: every way in which a host fails costs its own row alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_engines import SSH, Engines
from weights import mostly_heavy

from probe_cluster import ClusterError, Gathered, Limits, gather
from probe_cluster.gathering import Ssh
from probe_cluster.gathering.ssh import parse_hosts

Home = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def ssh(engines: Engines) -> None:
    engines.command("ssh", SSH)


def gathered(*hosts: str, **limits: Any) -> Gathered:
    return asyncio.run(gather(Ssh(hosts), limits=Limits(**{"node": 20.0, **limits})))


def test_all_hosts_give_their_reports(engines: Engines, home: Home) -> None:
    for name in ("desk", "rock", "nas"):
        engines.report(name, home[name])
    answer = gathered("desk", "alice@rock", "nas")
    assert {id_: node.status for id_, node in answer.nodes.items()} == {
        "desk": "ok",
        "alice@rock": "ok",
        "nas": "ok",
    }
    assert answer.complete
    assert answer.nodes["alice@rock"].report()["devices"] == home["rock"]["devices"]
    summary = answer.nodes["desk"].summary
    assert summary is not None
    assert [gpu.driver for gpu in summary.gpus] == ["nvidia 580.95.05"]


@pytest.mark.parametrize("host", mostly_heavy(["banner", "crlf", "noisy"], 3))
def test_other_output_does_no_harm(engines: Engines, home: Home, host: str) -> None:
    engines.report(host, home["desk"])
    answer = gathered(host)
    assert (answer.nodes[host].status, answer.nodes[host].reason) == ("ok", None)
    assert answer.nodes[host].report()["devices"] == home["desk"]["devices"]


REASONS = {
    "refused": ("missing", "Connection refused (the command ended with 255)", "start the ssh"),
    "nokey": ("missing", "Permission denied (publickey).", "ssh-copy-id nokey"),
    "nologin": ("missing", "This account is currently not available. (the command ended", ""),
    "changed": ("missing", "Host key verification failed.", "ssh-keygen -R changed"),
    "replaced": (
        "missing",
        "the host key of [10.0.0.7]:2222 has changed",
        "ssh-keygen -R '[10.0.0.7]:2222'",
    ),
    "broken": ("failed", "ended with 70 there: probe: internal error: KeyError", "run `probe"),
    "closed": ("missing", "the connection ended before its answer was whole", "run it again"),
    "text": ("invalid", "it printed no document, but: no json", "run it again, or run"),
    "list": ("invalid", "its answer is no table of JSON", "another program may have its name"),
    "newer": ("invalid", "its report has schema 2", "it is of probe-core 99.0, and here is"),
    "empty": ("invalid", "its report has no devices", "another program may have its name"),
    "nan": ("invalid", "is damaged: NaN is no number of JSON", "run it again"),
    "cut": ("invalid", "is damaged: its end is missing", "run it again"),
    "deep": ("invalid", "it printed no document", "run it again"),
}


def test_each_failure_is_one_sentence_and_the_others_are_unharmed(
    engines: Engines, home: Home
) -> None:
    engines.report("desk", home["desk"])
    engines.report("closed", home["desk"])
    engines.report("text", "no json")
    engines.report("list", "[]")
    engines.report("newer", {"schema": 2, "probe_core": "99.0", "devices": []})
    engines.report("cut", json.dumps(home["desk"])[:4000])
    engines.report("empty", {"schema": 1, "devices": []})
    engines.report("nan", '{"schema": 1, "devices": [NaN]}')
    engines.report("deep", "[" * 100_000)
    answer = gathered(*REASONS, "desk")
    assert answer.nodes["desk"].status == "ok"
    for host, (status, words, fix) in REASONS.items():
        node = answer.nodes[host]
        assert (node.status, node.text, node.summary) == (status, None, None)
        assert words in (node.reason or "")
        assert "\n" not in (node.reason or "\n")
        assert fix in (node.fix or "")
    assert not answer.complete


def test_a_host_that_was_never_connected_to_is_told_from_its_user() -> None:
    node = gathered("alice@changed").nodes["alice@changed"]
    assert node.fix == (
        "connect by hand to accept its key: ssh alice@changed;"
        " if it replaces another: ssh-keygen -R changed"
    )


def alive(marker: str) -> list[str]:
    """Return the processes of this user whose environment holds `marker`."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                processes.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return processes


def sleeping(marker: str) -> list[str]:
    return [line for line in alive(marker) if "sleep" in line]


def gone(marker: str) -> bool:
    """Return whether no `sleep` is left, within the time that a killed process needs to end."""
    until = time.monotonic() + 20
    while sleeping(marker):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.heavy
def test_a_host_that_hangs_costs_its_deadline_and_leaves_no_process(
    engines: Engines, home: Home
) -> None:
    engines.report("desk", home["desk"])
    marker = f"GATHER_MARKER={os.getpid()}-{time.monotonic_ns()}"
    engines.setenv(GATHER_MARKER=marker.partition("=")[2])
    answer = gathered("desk", "hung", "silent-hang", "stubborn", node=2.0)
    assert answer.nodes["desk"].status == "ok"
    reasons = {host: answer.nodes[host].reason for host in ("hung", "silent-hang", "stubborn")}
    assert reasons == {
        "hung": "nothing came of it for 2 s",
        "silent-hang": "`probe --json` runs there since 2 s",
        "stubborn": "nothing came of it for 2 s",
    }
    assert {answer.nodes[host].status for host in reasons} == {"timeout"}
    assert answer.seconds < 20
    assert gone(marker)


@pytest.mark.heavy
def test_the_overall_time_closes_the_rows_of_hosts_that_never_started(
    engines: Engines, home: Home
) -> None:
    engines.report("desk", home["desk"])
    answer = gathered("desk", "hung", "hung2", fanout=1, overall=2.0)
    assert answer.nodes["desk"].status == "ok"
    for host in ("hung", "hung2"):
        assert answer.nodes[host].status in ("timeout", "failed", "missing")
    assert answer.nodes["hung"].reason == "it gave no answer within the 2 s for all nodes"


def test_no_ssh_is_one_sentence(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(engines.folder / "nowhere"))
    node = gathered("desk").nodes["desk"]
    assert node.status == "failed"
    assert node.reason == "ssh: No such file or directory"


def test_hosts_are_read_from_a_file_or_a_list(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("[gpus]\ndesk  # mine\n\n  rock ansible_host=10.0.0.2\nalice@nas\ndesk\n")
    assert parse_hosts(str(path)) == ["desk", "rock", "alice@nas"]
    assert parse_hosts("a, b,,a") == ["a", "b"]


def test_a_port_is_what_ssh_takes_as_a_uri() -> None:
    targets = asyncio.run(Ssh(["a", "me@b:2222", "fe80::1", "c.example"]).targets())
    assert [(target.id, target.address) for target in targets] == [
        ("a", "a"),
        ("me@b:2222", "ssh://me@b:2222"),
        ("fe80::1", "fe80::1"),
        ("c.example", "c.example"),
    ]


@pytest.mark.parametrize("text", ["", ",", "-oProxyCommand=x", "a,b c", "a\x1b[1m", "x" * 301])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match="host"):
        parse_hosts(text)
    assert parse_hosts("x" * 300) == ["x" * 300]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClusterError, match="no text in UTF-8"):
        parse_hosts(str(path))


def test_cancelling_ends_all_processes(engines: Engines) -> None:
    marker = f"GATHER_MARKER={os.getpid()}-{time.monotonic_ns()}"
    engines.setenv(GATHER_MARKER=marker.partition("=")[2])

    async def cancelled() -> None:
        task = asyncio.ensure_future(gather(Ssh(["hung"])))
        while not sleeping(marker):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 60))
    assert gone(marker)


def command(*arguments: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "probe_core", "cluster", *arguments]
    environ = {**os.environ, "COLUMNS": "100"}
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    )


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("number", mostly_heavy([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], 3))
def test_a_signal_leaves_what_came_and_no_process(
    engines: Engines, home: Home, tmp_path: Path, number: int
) -> None:
    marker = f"GATHER_MARKER={os.getpid()}-{time.monotonic_ns()}"
    engines.setenv(GATHER_MARKER=marker.partition("=")[2])
    engines.report("desk", home["desk"])
    folder = tmp_path / "out"
    process = command("--json", "--output", str(folder), "ssh://hung,desk")
    # Written as it arrives, not at the end.
    wait_for(lambda: (folder / "desk.json").exists() and sleeping(marker))
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    document = json.loads(out)
    assert {id_: row["status"] for id_, row in document["nodes"].items()} == {
        "hung": "interrupted",
        "desk": "ok",
    }
    assert document["nodes"]["desk"]["report"] == home["desk"]
    assert (document["complete"], document["problem"]) == (
        False,
        "interrupted: 1 of 2 nodes had answered",
    )
    assert "Traceback" not in err
    assert gone(marker)


def asked(engines: Engines) -> list[str]:
    path = engines.folder / "ssh.hosts"
    hosts = sorted(path.read_text().split())
    path.unlink()
    return hosts


@pytest.mark.heavy
def test_a_gather_that_was_killed_is_resumed_and_asks_the_missing_alone(
    engines: Engines, home: Home, tmp_path: Path
) -> None:
    engines.report("desk", home["desk"])
    engines.report("waits", home["rock"])
    out_folder = tmp_path / "out"
    words = ("--json", "--output", str(out_folder), "--hosts", "desk,waits,refused")
    process = command(*words)
    journal = out_folder / "cluster.jsonl"
    wait_for(lambda: (out_folder / "desk.json").exists() and "Connection" in journal.read_text())
    process.kill()
    process.communicate(timeout=60)
    assert asked(engines) == ["desk", "refused", "waits"]
    # What was cut off in the middle of a line is no line.
    journal.write_bytes(journal.read_bytes() + b'{"id": "waits", "status": "o')
    (engines.folder / "go").touch()
    out, _ = command(*words, "--resume").communicate(timeout=60)
    document = json.loads(out)
    assert asked(engines) == ["refused", "waits"]
    assert {id_: row["status"] for id_, row in document["nodes"].items()} == {
        "desk": "ok",
        "waits": "ok",
        "refused": "missing",
    }
    assert document["nodes"]["desk"]["report"] == home["desk"]
    assert sorted(path.name for path in out_folder.glob("*.json")) == ["desk.json", "waits.json"]


COUNTED = """#!/bin/sh
echo + >> {folder}/running
cat {folder}/answer
echo - >> {folder}/running
"""


@pytest.mark.heavy
def test_two_hundred_hosts_are_asked_by_64_connections_at_a_time(
    engines: Engines, home: Home
) -> None:
    """Each stand-in prints what the program of a node prints, and says when it begins and ends."""
    engines.command("ssh", COUNTED)
    code = (
        "import sys; from probe_cluster.gathering.node_agent import Voice; voice = Voice('n');"
        " voice.send('start'); voice.send('answer', status=0, out=sys.argv[1], err='')"
    )
    text = json.dumps(home["nas"])
    with (engines.folder / "answer").open("wb") as file:
        subprocess.run([sys.executable, "-c", code, text], stdout=file, check=True)
    answer = gathered(*(f"n{at}" for at in range(200)), node=100.0)
    assert answer.complete
    assert len(answer.nodes) == 200
    running, most = 0, 0
    for line in (engines.folder / "running").read_text().split():
        running += 1 if line == "+" else -1
        most = max(most, running)
    assert running == 0
    assert 2 <= most <= 64
