"""What the program on a node makes of times and bytes: rates, round trips, and its lines."""

from __future__ import annotations

import io
import os
import socket
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from probe_cluster.network import agent as program

BLOCK = 512 << 10


class Peer:
    """A connection whose calls take the times that it is given, on a clock of its own."""

    def __init__(self, *calls: tuple[float, int]) -> None:
        self.calls: list[object] = []
        self.now = 100.0
        self._left: Iterator[tuple[float, int]] = iter(calls)

    def _next(self, call: object) -> int:
        self.calls.append(call)
        seconds, size = next(self._left)
        self.now += seconds
        if size < 0:
            raise OSError("gone")
        return size

    def recv_into(self, buffer: memoryview) -> int:
        assert len(buffer) == BLOCK
        return self._next("recv_into")

    def send(self, block: memoryview) -> int:
        return self._next(len(block))

    def sendall(self, data: bytes) -> None:
        self.calls.append(data)

    def recv(self, count: int) -> bytes:
        return b"p" * min(count, self._next(("recv", count)))

    def settimeout(self, seconds: float) -> None:
        self.calls.append(("settimeout", seconds))

    def shutdown(self, how: int) -> None:
        self.calls.append(("shutdown", how))


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what calls a function of the program with a peer, by that peer's clock."""

    def call(function: str, peer: Peer, *values: float) -> Any:
        clock = SimpleNamespace(perf_counter=lambda: peer.now)
        monkeypatch.setattr(program, "time", clock)
        return getattr(program, function)(cast(Any, peer), *values)

    return call


@pytest.mark.parametrize(
    ("calls", "rate"),
    [
        # Two seconds of which the first 0.2 s do not count: a slow start, then 1,000 bytes a tick.
        ([(0.0, 500), *[(0.125, 1)] * 2, *[(0.125, 1000)] * 14], 8000.0),
        # Of a short one a fifth does not count.
        ([(0.0, 500), (0.0625, 1), *[(0.0625, 500)] * 3, (0.0, 0)], 8000.0),
        # What took no two ticks of the clock counts whole, but for the first read.
        ([(0.0, 500), (2**-10, 100), (0.0, 0)], 100 * 2**10),
        ([(0.0, 500), (0.0, 100), (0.0, 0)], None),
        ([(0.0, 0)], None),
    ],
    ids=range(5),
)
def test_the_rate_is_of_what_arrives_after_the_ramp(
    timed: Callable[..., Any], calls: list[tuple[float, int]], rate: float | None
) -> None:
    peer = Peer(*calls)
    assert timed("_receive", peer, 2.0) == rate
    assert len(peer.calls) == len(calls)


@pytest.mark.parametrize(
    ("seconds", "limit", "calls", "sent"),
    [
        (2.0, BLOCK, [(0.0, BLOCK - 1), (0.0, BLOCK)], 2),  # until the limit is reached
        (2.0, BLOCK, [(0.0, BLOCK)], 1),
        (2.0, 1 << 40, [(1.0, 9), (0.5, 9), (0.5, 9)], 3),  # until the time is
        (0.0, 1 << 40, [], 0),
    ],
    ids=range(4),
)
def test_a_sender_ends_with_its_bytes_or_its_time(
    timed: Callable[..., Any], seconds: float, limit: int, calls: list[Any], sent: int
) -> None:
    peer = Peer(*calls, (0.0, 0))
    timed("_send", peer, seconds, limit)
    assert peer.calls == [BLOCK] * sent + [("shutdown", 1), ("recv", 1)]


def test_a_receiver_that_is_gone_ends_a_sender(timed: Callable[..., Any]) -> None:
    peer = Peer((0.0, 9), (0.0, -1))
    timed("_send", peer, 2.0, 1 << 40)
    assert peer.calls == [BLOCK] * 2


@pytest.mark.parametrize(
    ("seconds", "asked", "kept"),
    [
        (0.0, 200, 195),
        (2**-9, 200, 195),
        (2**-6, 33, 28),  # more than half a second is over
        (2**-4, 9, 9),  # of so few none is left out
        (0.05, 11, 6),
        (1.0, 5, 5),
    ],
)
def test_round_trips_are_many_and_take_no_long_time(
    timed: Callable[..., Any], seconds: float, asked: int, kept: int
) -> None:
    peer = Peer(*[(seconds, 1)] * 201)
    trips = timed("_round_trips", peer)
    assert trips == [pytest.approx(seconds)] * kept
    assert peer.calls == [b"p", ("recv", 1)] * asked + [b"b"]


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ([(0.0, 3), (0.0, 2), (0.0, 9)], None),
        ([(0.0, 3), (0.0, 0)], "the peer closed the connection"),
    ],
    ids=range(2),
)
def test_bytes_are_awaited_until_all_are_there(
    calls: list[tuple[float, int]], problem: str | None
) -> None:
    peer = Peer(*calls)
    if problem is None:
        assert program.exactly(cast(Any, peer), 5) == b"ppppp"
    else:
        with pytest.raises(program.Failure, match=problem):
            program.exactly(cast(Any, peer), 5)
    assert peer.calls == [("recv", 5), ("recv", 2)]


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [
        ("127.0.0.1", True), ("127.1.2.3", True), ("::ffff:127.0.0.1", True), ("::1", True),
        ("0.0.0.0", True), ("::", True), ("10.0.0.127", False), ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
    ],
)  # fmt: skip
def test_which_addresses_are_of_no_other_node(address: str, is_loopback: bool) -> None:
    own = program.addresses({"SSH_CONNECTION": f"198.51.100.9 5000 {address} 22"})
    assert ([row[1] for row in own][:1] == [address]) is not is_loopback


def test_a_node_names_eight_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("eth0", f"10.0.0.{number}") for number in range(9)]
    monkeypatch.setattr(program, "_ipv4", lambda: rows)
    monkeypatch.setattr(program, "_ipv6", list)
    monkeypatch.setattr(program, "_default_addresses", list)
    assert program.addresses({}) == [list(row) for row in rows[:8]]


def test_a_guest_has_two_seconds_for_its_proof_and_a_wrong_one_is_no_proof() -> None:
    guest, listener = Peer((0.0, 16), (0.0, 32)), Peer((0.0, 16), (0.0, 32))
    assert program._greeted(cast(Any, guest), b"k" * 32) is False
    assert guest.calls[0] == ("settimeout", 2.0)
    assert guest.calls[2:] == [("recv", 16), ("recv", 32)]
    assert program._greet(cast(Any, listener), b"k" * 32) is False
    assert listener.calls[:2] == [("settimeout", 2.0), ("recv", 16)]


INTERFACES = """\
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000000000fffe000001 02 40 20 80     eth0
fd000000000000000000000000000005 02 40 00 80     eth0
fd000000000000000000000000000006 02 40 00 80
"""


def test_addresses_of_version_6_are_global(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "open", lambda *_, **__: io.StringIO(INTERFACES), raising=False)
    assert program._ipv6() == [("eth0", "fd00::5")]


def test_a_system_without_that_file_has_no_such_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: str, **_: str) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(program, "open", absent, raising=False)
    assert program._ipv6() == []
    assert program.boot_id() == f"{sys.platform}/{os.uname().nodename}"


@pytest.mark.skipif(sys.platform != "linux", reason="the call is Linux's")
def test_an_interface_has_its_address_of_version_4() -> None:
    assert ("lo", "127.0.0.1") in program._ipv4()


def test_packets_leave_from_the_address_of_a_route(monkeypatch: pytest.MonkeyPatch) -> None:
    peers: list[tuple[str, int]] = []

    class Socket(socket.socket):
        def connect(self, peer: Any) -> None:
            if self.family != socket.AF_INET:
                raise OSError("no route")
            peers.append(peer)

        def getsockname(self) -> tuple[str, int]:
            return "198.51.100.4", 40000

    monkeypatch.setattr(program.socket, "socket", Socket)
    assert program._default_addresses() == ["198.51.100.4"]
    assert peers == [("192.0.2.1", 9)]


@pytest.mark.parametrize(
    ("address", "plain"),
    [("::ffff:10.0.0.1", "10.0.0.1"), ("10.0.0.1", "10.0.0.1"), ("fd00::1", "fd00::1")],
)
def test_an_address_of_ipv4_is_written_as_such(address: str, plain: str) -> None:
    assert program._plain(address) == plain


def test_a_time_that_is_over_leaves_no_address_to_try() -> None:
    with pytest.raises(program.Failure, match=r"^the peer has no address$"):
        program.connected([["127.0.0.1", 9]], b"k" * 32, 0.0)


@pytest.mark.parametrize("length", [1, 360, 361, 720])
def test_a_message_is_lines_of_one_length(length: int, capfd: pytest.CaptureFixture[str]) -> None:
    around = len('{"agent": "ab"}') + len('"x": "", ')
    voice = program.Voice("n1", "ab")
    voice.send(x="-" * max(0, length - around))
    voice.send(kind="hello")
    lines = capfd.readouterr().out.split("\n")
    assert {len(line) for line in lines[:-1]} == {511}
    words = [line.rstrip().removesuffix("|").split(" ", 4) for line in lines[:-1]]
    pieces = -(-max(length, around) // 360)
    assert [row[:4] for row in words] == [
        *(["#probe-cluster", "n1", "ab-1", str(number)] for number in range(pieces)),
        ["#probe-cluster", "n1", "ab-1", "end"],
        ["#probe-cluster", "n1", "ab-2", "0"],
        ["#probe-cluster", "n1", "ab-2", "end"],
    ]
    assert words[pieces][4] == f"0 {pieces}"
