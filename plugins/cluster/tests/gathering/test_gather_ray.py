"""`probe cluster --ray` with real raylets on this computer, and with an address where none is."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from node_processes import processes, wait_for

from probe_cluster import ClusterError, Gathered, Limits, gather
from probe_cluster.gathering import Ray
from probe_cluster.gathering.model import Answer, Sink, Target
from probe_cluster.gathering.ray import _take
from probe_cluster.gathering.ray_driver import NODE, _is_lost, _not_replaced, named
from probe_cluster.network.links import Network
from probe_cluster.network.measure import measure_links
from probe_core import __version__
from probe_core.cli import main

HERE = Path(__file__).parents[1]


SLOW = """#!/bin/sh
[ "$1" = --version ] && { echo probe-core {version}; exit 0; }
exec sleep 100
"""


def python_with_ray() -> str | None:
    """Return this Python, or the one that PROBE_RAY_PYTHON names; None where neither has Ray."""
    named = os.environ.get("PROBE_RAY_PYTHON")
    if named is not None:
        return named
    return sys.executable if importlib.util.find_spec("ray") is not None else None


PYTHON = python_with_ray()
needs_ray = pytest.mark.skipif(PYTHON is None, reason="no Ray: name a Python in PROBE_RAY_PYTHON")


def test_the_driver_connects_to_the_address_and_is_silent_about_logs(tmp_path: Path) -> None:
    """With a Ray that says how it was called, which needs none."""
    (tmp_path / "ray.py").write_text("def init(**given):\n    raise RuntimeError(given)\n")
    code = "import sys; from probe_cluster.gathering import ray_driver as driver;"
    code += "sys.exit(driver.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "10.0.0.1:6379", "carry", "a"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    given = {"address": "10.0.0.1:6379", "log_to_driver": False, "configure_logging": False}
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"RuntimeError: {given}\n"


def test_what_the_driver_prints_of_nodes() -> None:
    answers: list[Answer] = []
    targets: list[Target] = []
    sink = Sink(answer=answers.append, target=targets.append, problem=pytest.fail)
    engine = {"memory": 1e9, "GPU": 2, "CPU": True}
    for node, message in (
        ("a", {"kind": "node", "name": "head", "state": "ALIVE", "engine": engine}),
        ("b", {"kind": "node", "engine": None}),
        ("c", {"kind": "lost", "reason": "it was killed"}),
        ("d", {"kind": "lost"}),
        ("e", {"kind": "start"}),
        ("f", {"kind": "need"}),
        ("g", []),
    ):
        text = json.dumps(message)
        stream: Any = SimpleNamespace(node=node, end=None, text=lambda text=text: text)
        _take(stream, sink)
    source = {"source": "ray.nodes()"}
    assert [(each.id, each.name, each.engine) for each in targets] == [
        ("a", "head", source | {"gpus": 2.0, "cpus": None, "memory": 10**9, "state": "ALIVE"}),
        ("b", "", source | {"gpus": 0.0, "cpus": None, "memory": None, "state": None}),
    ]
    assert [(each.id, each.status, each.reason) for each in answers] == [
        ("c", "missing", "it was killed"),
        ("d", "missing", "it gave no reason"),
        ("g", "invalid", "its program prints what cannot be read"),
    ]


class Cluster:
    """A running cluster; `say` sends it a command and returns what it prints."""

    def __init__(self, process: subprocess.Popen[str], marker: str) -> None:
        self._process = process
        self.marker = marker
        self.address = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def say(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._line()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    slow = tmp_path_factory.mktemp("slow")
    probe = slow / "probe"
    probe.write_text(SLOW.replace("{version}", __version__))
    probe.chmod(0o755)
    command = [str(PYTHON), str(HERE / "ray_cluster.py"), str(slow)]
    marker = f"probe-test-{os.getpid()}-{time.monotonic_ns()}"
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "GATHER_MARKER": marker},
    )
    try:
        yield Cluster(process, marker)
    finally:
        process.communicate("end\n", timeout=120)


def gathered(address: str, seconds: float) -> Gathered:
    return asyncio.run(gather(Ray(address, python=PYTHON), limits=Limits(node=seconds)))


@needs_ray
def test_each_raylet_has_its_row(cluster: Cluster) -> None:
    seconds = 40.0
    answer = gathered(cluster.address, seconds)
    rows: dict[str, Any] = {node.name: node for node in answer.nodes.values()}
    assert {name: node.status for name, node in rows.items()} == {
        "head": "ok",
        "killed": "ok",
        "stopped": "ok",
        "slow": "timeout",
        "bare": "ok",
    }
    # On a busy computer the worker starts late, and the driver's time is over first.
    assert rows["slow"].reason in (
        "`probe --json` did not end there in time",
        f"its program gave no answer within {seconds:g} s",
    )
    assert all(rows[name].sent for name in ("head", "killed", "stopped", "bare"))
    assert rows["head"].engine["gpus"] == 2
    assert rows["head"].report()["node"]["os"] == "linux"
    # Ray was started with two GPUs that this computer does not have.
    entries = [entry for entry in answer.differences() if entry["code"] == "engine-count"]
    assert [entry["nodes"] for entry in entries] == [[rows["head"].id]]


ACTORS = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
from ray._private.state import actors
print(sorted({actor["State"] for actor in actors().values()}))
"""


@needs_ray
def test_the_raylets_measure_each_other_and_leave_no_actor(cluster: Cluster) -> None:
    collector = Ray(cluster.address, python=PYTHON)
    limits = Limits(node=40.0)

    async def work() -> Gathered:
        answer = await gather(collector, limits=limits)
        network = Network(pairs="head:killed,head:stopped", seconds=0.2, size=64 << 20)
        await measure_links(answer, collector, network, limits=limits)
        return answer

    answer = asyncio.run(work())
    assert answer.all_measured
    assert [link["kind"] for link in answer.links] == ["same-host"] * 2
    # The list of actors is the only one that Ray gives without its dashboard.
    command = [str(PYTHON), "-c", ACTORS, cluster.address]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100, cwd="/")
    assert done.stdout.strip().splitlines()[-1] == "['DEAD']"


GATHER = """
import asyncio, sys
from probe_cluster import Limits, gather
from probe_cluster.gathering import Ray
from probe_cluster.gathering.model import Answer, Sink, Target
from probe_cluster.gathering.ray import _take
asyncio.run(gather(Ray(sys.argv[1], python=sys.argv[2]), limits=Limits(node=300)))
"""


@needs_ray
def test_a_gather_that_is_killed_leaves_nothing_on_the_raylets(cluster: Cluster) -> None:
    """One of them has a `probe` that sleeps: it ends with the gather, after Ray ended the actor."""

    def sleeping() -> list[str]:
        return [line for line in processes(cluster.marker).values() if line == "sleep 100 "]

    wait_for(lambda: not sleeping(), 100)
    process = subprocess.Popen([sys.executable, "-c", GATHER, cluster.address, str(PYTHON)])
    wait_for(sleeping, 100)
    process.kill()
    process.wait(60)
    wait_for(lambda: not sleeping(), 60)


@needs_ray
def test_a_killed_and_a_stopped_raylet_cost_their_rows_alone(cluster: Cluster) -> None:
    assert cluster.say("break") == "broken"
    start = time.monotonic()
    answer = gathered(cluster.address, 40.0)
    rows: dict[str, Any] = {node.name: node for node in answer.nodes.values()}
    assert rows["head"].status == "ok"
    assert rows["bare"].status == "ok"
    assert rows["killed"].status in ("missing", "timeout")
    assert rows["stopped"].status in ("missing", "timeout")
    assert all(rows[name].reason for name in ("killed", "stopped"))
    assert time.monotonic() - start < 90


def unused_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_nobody_at_the_address_is_an_answer_at_once() -> None:
    with pytest.raises(ClusterError, match=r"no Ray cluster at 127\.0\.0\.1:\d+: "):
        asyncio.run(gather(Ray(f"127.0.0.1:{unused_port()}", python="python-with-ray")))


@pytest.mark.parametrize("address", ["nonsense", "host:", "host:x", "host:99999", ":"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ClusterError, match="write HOST:PORT"):
        asyncio.run(gather(Ray(address, python="python-with-ray")))


@needs_ray
def test_something_else_that_listens_is_no_ray() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(ClusterError, match="no Ray"):
            asyncio.run(gather(Ray(address, python=PYTHON)))
        assert time.monotonic() - start < 60


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_line_that_installs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--ray", "127.0.0.1:1"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Ray is not installed here: pip install 'probe-cluster[ray]'" in printed.err


def listed(id_: str, name: str, reason: object = None) -> dict[str, Any]:
    return {"NodeID": id_, "NodeName": name, "Alive": reason is None, "DeathReason": reason or 0}


def test_a_program_keeps_its_words_when_a_node_gets_its_name() -> None:
    """TCP_NODELAY has the word for the node's id in it."""
    words = ["-c", "peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)", NODE]
    assert named(words, "7fc0") == [*words[:2], "7fc0"]


def test_a_node_that_was_lost_is_missing_unless_it_came_back() -> None:
    nodes = [
        listed("a", "10.0.0.1"),
        listed("b", "10.0.0.1", 2),
        listed("c", "10.0.0.2", 2),
        listed("d", "10.0.0.2"),
        listed("e", "10.0.0.3", 1),
        listed("f", "10.0.0.4", "UNEXPECTED_TERMINATION"),
        listed("g", "10.0.0.5", 2),
    ]
    now = int(time.time() * 1000)
    times = {
        "a": (now - 9000, 0),  # two raylets of one computer: this one started before the other died
        "b": (now - 9000, now - 5000),
        "c": (now - 9000, now - 5000),
        "d": (now - 4000, 0),  # the computer of "c" was started again
        "f": (now - 9000, now - 5000),
        "g": (now - 200_000_000, now - 100_000_000),
    }
    lost = [node for node in nodes if _is_lost(node)]
    assert [node["NodeID"] for node in lost] == ["b", "c", "f", "g"]
    missing = _not_replaced(lost, nodes, times)
    assert sorted(node["NodeID"] for node in missing) == ["b", "f"]
    # Without times any other node of the name stands in for it.
    missing = _not_replaced(lost, nodes, {})
    assert sorted(node["NodeID"] for node in missing) == ["f", "g"]
