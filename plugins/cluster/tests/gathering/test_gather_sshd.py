"""A gather through a real sshd of this computer: the probe is sent, and nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_processes import folders_of, is_probing, nothing_left, processes, wait_for
from real_sshd import SSH, SSHD, Sshd
from weights import mostly_heavy

from probe_cluster import Gathered, Limits, gather
from probe_cluster.gathering import Ssh

pytestmark = [
    pytest.mark.skipif(
        SSHD is None or SSH is None, reason="needs sshd and ssh: apt install openssh-server"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd of another user than root: not tried"),
]

PLACES = ("/run", "/dev/shm", "/tmp", "/var/tmp")


@pytest.fixture(scope="module")
def marker() -> str:
    return f"probe-test-{os.getpid()}-{time.monotonic_ns()}"


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of devices that the nodes have."""
    path = tmp_path_factory.mktemp("node") / "devices.json"
    path.write_text("[]")
    return path


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, marker: str, synthetic: Path) -> Iterator[Sshd]:
    """A node without probe-core: its PATH has the system's folders and this Python alone."""
    folder = tmp_path_factory.mktemp("sshd")
    (folder / "python").mkdir()
    (folder / "python" / "python3").symlink_to(os.path.realpath(sys.executable))
    variables = {
        "GATHER_MARKER": marker,
        "HOME": "/nonexistent",
        "PROBE_SYNTHETIC": str(synthetic),
        "PROBE_TIMEOUT": "60",
    }
    daemon = Sshd(folder, f"{folder}/python:/usr/bin:/bin", **variables)
    yield daemon
    daemon.end()


@pytest.fixture
def on_path(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{sshd.bin}:/usr/bin:/bin")


def gathered(*hosts: str, **limits: float) -> Gathered:
    return asyncio.run(gather(Ssh(hosts), limits=Limits(**{"node": 60.0, **limits})))  # type: ignore[arg-type]


@pytest.mark.usefixtures("on_path")
def test_a_node_without_probe_core_reports_through_what_is_sent(marker: str) -> None:
    answer = gathered("one", "two")
    for node in answer.nodes.values():
        assert (node.status, node.reason, node.sent) == ("ok", None, True)
    report = json.loads(answer.nodes["one"].text or b"")
    assert report["node"]["os"] == "linux"
    assert {"bus", "cpu", "nvidia", "amd"} <= {outcome["prober"] for outcome in report["outcomes"]}
    # Root's rule of trust: none of what was sent was left out for its owner.
    assert not [o for o in report["outcomes"] if "running as root" in (o["reason"] or "")]
    assert not processes(marker)


@pytest.fixture
def hanging(synthetic: Path) -> Iterator[None]:
    """A prober that never returns, so that what was sent runs until its deadline of a minute."""
    synthetic.write_text('{"devices": [], "then": "hang"}')
    yield
    synthetic.write_text("[]")


def command(*arguments: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "probe_core", "cluster", "--json", *arguments]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.usefixtures("on_path", "hanging")
@pytest.mark.parametrize("number", mostly_heavy([signal.SIGTERM, signal.SIGINT, signal.SIGKILL], 3))
def test_a_command_that_is_ended_leaves_nothing_on_the_node(marker: str, number: int) -> None:
    process = command("ssh://one,two")
    wait_for(lambda: is_probing(marker))
    folders = folders_of(marker)
    assert folders
    process.send_signal(number)
    process.communicate(timeout=60)
    wait_for(lambda: nothing_left(marker, folders), 20)


@pytest.mark.heavy
@pytest.mark.usefixtures("on_path", "hanging")
def test_a_connection_that_is_cut_leaves_nothing_on_the_node(marker: str) -> None:
    process = command("ssh://one")
    wait_for(lambda: is_probing(marker))
    folders = folders_of(marker)
    assert folders
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)  # ssh: to the node it is gone as behind a cut cable
    out, _ = process.communicate(timeout=60)
    node = json.loads(out)["nodes"]["one"]
    assert node["status"] == "missing"
    assert node["reason"].startswith("the connection ended before its answer was whole")
    wait_for(lambda: nothing_left(marker, folders), 20)


@pytest.mark.heavy
@pytest.mark.usefixtures("on_path", "hanging")
@pytest.mark.parametrize("victim", ["-I -S -c", ".probe-cluster-"])
def test_what_is_killed_there_leaves_nothing_either(marker: str, victim: str) -> None:
    """The program of the node, and the probe that it started: each may run out of memory."""
    process = command("ssh://one")
    wait_for(lambda: is_probing(marker))
    folders = folders_of(marker)
    assert folders
    found = processes(marker)
    # The program's own copy, which cleans up, has the same words: it is the younger.
    number = min(pid for pid, line in found.items() if victim in line and "isolation" not in line)
    os.kill(number, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    node = json.loads(out)["nodes"]["one"]
    if victim == "-I -S -c":
        assert node["status"] == "missing"
    else:
        assert (node["status"], node["reason"]) == (
            "failed",
            "`probe --json` was ended there by SIGKILL",
        )
    wait_for(lambda: nothing_left(marker, folders), 20)


@pytest.mark.heavy
@pytest.mark.usefixtures("on_path", "hanging")
def test_a_network_that_is_lost_ends_the_program_by_its_own_deadline(marker: str) -> None:
    """A cut cable closes nothing: here the connection's own process there is stopped."""
    process = command("ssh://one", "--timeout", "20")
    wait_for(lambda: is_probing(marker))
    folders = folders_of(marker)
    assert folders
    (program, *_) = sorted(pid for pid, line in processes(marker).items() if "-I -S -c" in line)
    status = Path(f"/proc/{program}/status").read_text()
    parent = int(status.partition("PPid:")[2].split()[0])
    os.kill(parent, signal.SIGSTOP)
    try:
        process.communicate(timeout=60)
        # Twenty seconds, and five in which the connection may still bring the end of its input.
        wait_for(lambda: nothing_left(marker, folders), 30)
    finally:
        os.kill(parent, signal.SIGCONT)
