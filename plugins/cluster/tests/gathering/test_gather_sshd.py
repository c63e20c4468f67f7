"""A gather through a real sshd of this computer: the probe is sent, and nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator

import pytest
from real_sshd import SSH, SSHD, Sshd

from probe_cluster import Gathered, Limits, gather
from probe_cluster.gathering import Ssh

pytestmark = [
    pytest.mark.skipif(
        SSHD is None or SSH is None, reason="needs sshd and ssh: apt install openssh-server"
    ),
    pytest.mark.skipif(
        os.geteuid() != 0, reason="sshd logs in nobody but its own user, unless root"
    ),
]

PLACES = ("/run", "/dev/shm", "/tmp", "/var/tmp")


@pytest.fixture(scope="module")
def marker() -> str:
    return f"probe-test-{os.getpid()}-{time.monotonic_ns()}"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, marker: str) -> Iterator[Sshd]:
    """A node without probe-core: its PATH has the system's folders and this Python alone."""
    folder = tmp_path_factory.mktemp("sshd")
    (folder / "python").mkdir()
    (folder / "python" / "python3").symlink_to(os.path.realpath(sys.executable))
    daemon = Sshd(
        folder, f"{folder}/python:/usr/bin:/bin", GATHER_MARKER=marker, HOME="/nonexistent"
    )
    yield daemon
    daemon.end()


@pytest.fixture
def on_path(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{sshd.bin}:/usr/bin:/bin")


def left_folders() -> set[str]:
    return {
        f"{place}/{name}"
        for place in PLACES
        if os.path.isdir(place)
        for name in os.listdir(place)
        if name.startswith(".probe-cluster-")
    }


def gathered(*hosts: str, **limits: object) -> Gathered:
    return asyncio.run(gather(Ssh(hosts), limits=Limits(**{"node": 60.0, **limits})))  # type: ignore[arg-type]


@pytest.mark.usefixtures("on_path")
def test_a_node_without_probe_core_reports_through_what_is_sent() -> None:
    before = left_folders()
    answer = gathered("one", "two")
    for node in answer.nodes.values():
        assert (node.status, node.reason, node.sent) == ("ok", None, True)
    report = json.loads(answer.nodes["one"].text or b"")
    assert report["node"]["os"] == "linux"
    assert {"bus", "cpu", "nvidia", "amd"} <= {outcome["prober"] for outcome in report["outcomes"]}
    # Root's rule of trust: none of what was sent was left out for its owner.
    assert not [o for o in report["outcomes"] if "running as root" in (o["reason"] or "")]
    assert left_folders() <= before
