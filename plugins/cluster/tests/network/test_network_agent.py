"""The program on a node: what it measures, whom it turns away, and that it never stays behind."""

from __future__ import annotations

import ast
import asyncio
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from probe_cluster.gathering.lines import Stream, Streams
from probe_cluster.network import agent as program
from probe_cluster.network import session
from probe_cluster.network.start import Start

ENOUGH_S = 60


class Agent:
    """An agent's process, with what it prints."""

    def __init__(self, seconds: float = 100) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *Start(("probe",), seconds).words()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._messages: Queue[dict[str, Any]] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.hello = self.message()

    def _read(self) -> None:
        assert self.process.stdout is not None

        def ended(stream: Stream) -> None:
            self._messages.put(json.loads(stream.text()))

        lines = Streams(ended)
        for line in self.process.stdout:
            lines.feed(line)

    def message(self) -> dict[str, Any]:
        return self._messages.get(timeout=ENOUGH_S)

    def order(self, **message: Any) -> None:
        assert self.process.stdin is not None
        order = {"pair": 1, "seconds": 30, "each": 0.2, "bytes": 1 << 30, "token": "ab" * 32}
        text = json.dumps({"to": self.hello["agent"], **order, **message})
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait(ENOUGH_S)
        self._reader.join(ENOUGH_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@pytest.fixture
def agents() -> Iterator[list[Agent]]:
    pair = [Agent(), Agent()]
    yield pair
    for agent in pair:
        agent.end()


@pytest.mark.heavy
def test_two_agents_measure_each_other(agents: list[Agent]) -> None:
    listener, caller = agents
    listener.order(do="listen")
    port = listener.message()["port"]
    caller.order(do="connect", peer=[["127.0.0.1", port]])
    called, served = caller.message(), listener.message()
    assert (called["kind"], served["kind"], served["address"]) == ("result", "result", "127.0.0.1")
    assert 1e-6 < called["round_trip"] < 0.1
    # A loopback carries gigabytes a second; a busy computer leaves some megabytes of it.
    assert min(called["rate"], served["rate"]) > 1e6
    assert listener.hello["boot"] == caller.hello["boot"]
    with socket.socket() as late:
        assert late.connect_ex(("127.0.0.1", port)) != 0
    assert [agent.end() for agent in agents] == [0, 0]


@pytest.mark.heavy
def test_others_are_turned_away_and_do_no_harm(agents: list[Agent]) -> None:
    listener, caller = agents
    listener.order(do="listen")
    port = listener.message()["port"]
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
    with socket.create_connection(("127.0.0.1", port)) as guest:
        guest.settimeout(ENOUGH_S)
        assert len(guest.recv(16)) == 16
        guest.sendall(b"x" * 48)
        assert guest.recv(1) == b""
    caller.order(do="connect", peer=[["127.0.0.1", port]])
    assert caller.message()["kind"] == "result"
    for connection in silent:
        connection.close()


def test_a_listener_without_the_token_is_not_the_peer(agents: list[Agent]) -> None:
    agent = agents[0]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            guest, _ = server.accept()
            guest.sendall(b"x" * 48)
            guest.recv(100)
            guest.close()

        threading.Thread(target=serve, daemon=True).start()
        agent.order(do="connect", peer=[["127.0.0.1", port]])
        message = agent.message()
    assert message["kind"] == "failed"
    assert message["reason"] == f"127.0.0.1 port {port} is not the peer"


def test_a_closed_port_is_a_sentence_and_a_stop_ends_the_wait(agents: list[Agent]) -> None:
    listener, caller = agents
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    caller.order(do="connect", peer=[["127.0.0.1", port]] * 4)
    refused = f"127.0.0.1 port {port}: Connection refused"
    assert caller.message()["reason"] == f"{refused}; {refused}; {refused}"
    listener.order(do="listen")
    listener.message()
    listener.order(do="stop")
    assert listener.message()["reason"] == "no connection of its peer arrived"


@pytest.mark.heavy
def test_an_agent_ends_with_its_input_or_its_time() -> None:
    agent = Agent()
    assert agent.end() == 0
    late = Agent(seconds=0.5)
    assert late.process.wait(ENOUGH_S) == 3
    late.end()


def test_both_ends_send_at_once_and_end_each_call_with_the_pair() -> None:
    token, until = b"k" * 32, time.monotonic() + 30.5
    door = program.Door(token, until, lambda: True)
    with ThreadPoolExecutor(1) as pool:
        guest = pool.submit(door.peer)
        with program.joined([["127.0.0.1", door.port]], token, until, until) as peer:
            for end in (peer, guest.result(ENOUGH_S)):
                assert end.gettimeout() is None
                assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
                for limit in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                    text = end.getsockopt(socket.SOL_SOCKET, limit, struct.calcsize("ll"))
                    seconds, rest = struct.unpack("ll", text)
                    assert 1 <= seconds <= 30
                    assert rest == 0
            guest.result().close()
    door.close()


def test_what_is_no_command_is_passed_over() -> None:
    agent = Agent()
    assert agent.process.stdin is not None
    agent.process.stdin.write(b"no json\n{}\n[]\n" + json.dumps({"to": "other"}).encode() + b"\n")
    agent.order(do="connect", peer=[])
    assert agent.message()["reason"] == "the peer has no address"
    assert agent.end() == 0


def test_the_program_is_one_that_python_3_8_reads() -> None:
    text = Path(program.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 8))
    assert [node for node in ast.walk(tree) if "probe_" in getattr(node, "module", "")] == []
    start = Start(("probe",), 5)
    assert start.program.decode() == text
    script = start.script()
    assert len(script) < 16_000
    # csh expands the one within quotes, and allows the other there not at all.
    assert "!" not in script
    assert "\n" not in script


def test_a_program_that_arrives_cut_is_not_run(tmp_path: Path) -> None:
    start = Start((sys.executable,), 5)
    given = start.program[:-100]
    done = subprocess.run(["sh", "-c", start.script()], input=given, capture_output=True)
    assert done.returncode != 0
    assert done.stdout == b""


def test_addresses_of_bridges_and_loopbacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("eth0", "10.0.0.5")]
    monkeypatch.setattr(program, "_ipv4", lambda: rows)
    monkeypatch.setattr(program, "_ipv6", lambda: [("eth0", "fd00::5")])
    monkeypatch.setattr(program, "_default_addresses", lambda: ["10.0.0.5"])
    environ = {"SSH_CONNECTION": "10.0.0.9 5000 192.168.1.7 22"}
    assert program.addresses(environ) == [
        ["", "192.168.1.7"],
        ["eth0", "10.0.0.5"],
        ["eth0", "fd00::5"],
    ]


def test_round_trips_leave_out_those_that_warm_up() -> None:
    near, far = socket.socketpair()
    echo = threading.Thread(target=program._echo, args=(far,))
    with near, far:
        near.settimeout(60)
        echo.start()
        assert len(program._round_trips(near)) == program._TRIPS - 5
        echo.join(60)
        assert not echo.is_alive()


def test_orders_to_an_agent_and_what_it_prints() -> None:
    """Of a pair that nobody asked about nothing is kept, and the first loss counts."""

    async def told() -> tuple[list[dict[str, Any]], dict[str, Any]]:
        agent = session.Agent("b", "nodeb")
        agent.order({"do": "listen", "pair": 1})  # before it runs
        lines: list[bytes] = []
        agent.attach(lines.append)
        agent.take({"kind": "hello", "agent": 7, "boot": "x", "addresses": [["eth0", "10.0.0.2"]]})
        assert agent.ready.is_set()
        agent.order({"do": "listen", "pair": 2})
        agent.order({"do": "stop"})
        for pair in (3, 2, "2"):
            agent.take({"kind": "port", "pair": pair})
        answer = await agent.answer(2, 60.0, "said nothing")
        agent.check()
        assert agent.addresses(agent) == ["10.0.0.2", "127.0.0.1"]
        other = session.Agent("c", "nodec")
        other.take({"kind": "hello", "boot": "y", "addresses": []})
        assert agent.addresses(other) == ["10.0.0.2"]
        agent.lose("it was killed")
        agent.take({"kind": "lost", "reason": "later"})
        agent.order({"do": "listen", "pair": 4})
        agent.close()
        with pytest.raises(session.AgentProblem, match=r"^nodeb: it was killed$"):
            agent.check()
        with pytest.raises(session.AgentProblem, match=r"^nodeb: it was killed$"):
            await agent.answer(2, 60.0, "said nothing")
        assert lines.pop() == b""
        return [json.loads(line) for line in lines], answer

    orders, answer = asyncio.run(told())
    start = {"to": 7, "node": "b"}
    assert orders == [start | {"do": "listen", "pair": 2}, start | {"do": "stop"}]
    assert answer == {"kind": "port", "pair": 2}
