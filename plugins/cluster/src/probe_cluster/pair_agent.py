"""The program that runs on each node of a measurement; its text is sent, so nothing is installed.

It takes commands as lines of JSON on standard input, and prints what it learns in the marked lines
of `node_lines`. It ends when its input ends: so nothing stays behind a controller that was killed.
Standard library of Python 3.8 only: the node's own Python may be that old.
Argument 1 is the most seconds that it may live, argument 2 its node's name where the engine gives
one. Argument 3 are HOST=PORT with commas: then commands come from there, not from standard input,
and `KEY` in the environment is the token for it.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import statistics
import sys
import threading
import time

from probe_cluster.pair_addresses import addresses, boot_id
from probe_cluster.pair_sockets import (
    ALL_CONNECT_S,
    Door,
    Failure,
    connected,
    exactly,
    prepared,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["KEY", "main"]

KEY = "PROBE_CORE_PAIR_KEY"

_BLOCK = 512 << 10
"""Bytes of one write and one read. Of 128 KiB, as iperf3 has, Python's share of each call costs a
fifth on a loopback of 120 Gbit/s; of 512 KiB nothing that can be measured."""

_RAMP_S = 0.2
"""Seconds at the start that do not count: TCP's slow start on a path of some milliseconds."""

_SAMPLE_S = 0.001
"""Seconds between two looks at the clock that are kept: 1,500 in all."""


_TRIPS, _WARM_TRIPS, _FEWEST_TRIPS, _TRIPS_S = 200, 5, 5, 0.5
"""Round trips at most, those at the start that do not count, those at least, seconds for all."""


class Voice:
    """Prints messages as marked lines of 512 bytes; each message is a stream of its own."""

    def __init__(self, node: str, agent: str) -> None:
        self._node = node
        self._agent = agent
        self._count = 0

    def send(self, **message: Any) -> None:
        """Print one message."""
        self._count += 1
        text = json.dumps(dict(message, agent=self._agent))
        pieces = [text[at : at + 360] for at in range(0, len(text), 360)]
        for number, piece in enumerate(pieces):
            self._line(f"{number} {piece}")
        self._line(f"end 0 {len(pieces)}")

    def _line(self, text: str) -> None:
        line = f"#probe-cluster {self._node} {self._agent}-{self._count} {text}|"
        data = line.ljust(511).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]


def _read_input(
    source: Any, messages: queue.Queue[dict[str, Any]], stopped: set[int], agent: str
) -> None:
    """Queue the commands for this agent; end the process with the input."""
    for line in source:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        # A launcher gives each agent the commands of all.
        if not isinstance(message, dict) or message.get("to") != agent:
            continue
        if message["do"] == "stop":
            stopped.add(message["pair"])
        else:
            messages.put(message)
    os._exit(0)


def _round_trips(peer: socket.socket) -> list[float]:
    """Return the seconds of round trips of one byte."""
    trips: list[float] = []
    clock = time.perf_counter
    start = clock()
    while len(trips) < _TRIPS:
        before = clock()
        peer.sendall(b"p")
        exactly(peer, 1)
        after = clock()
        trips.append(after - before)
        if after - start > _TRIPS_S and len(trips) >= _FEWEST_TRIPS:
            break
    peer.sendall(b"b")
    return trips[_WARM_TRIPS:] if len(trips) > 2 * _WARM_TRIPS else trips


def _echo(peer: socket.socket) -> None:
    """Return each byte until the peer says that its round trips are over."""
    while exactly(peer, 1) == b"p":
        peer.sendall(b"p")


def _send(peer: socket.socket, seconds: float, limit: int) -> None:
    """Send for some seconds, or `limit` bytes; then close the sending half."""
    block = memoryview(bytes(_BLOCK))
    until = time.perf_counter() + seconds
    count = 0
    try:
        while count < limit and time.perf_counter() < until:
            count += peer.send(block)
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)  # the receiver closes once it has all, or no more time
    except OSError:  # it had no more time
        pass


def _receive(peer: socket.socket, seconds: float) -> float | None:
    """Return the bytes per second that arrive after the ramp; None where none did."""
    buffer = memoryview(bytearray(_BLOCK))
    clock = time.perf_counter
    count = peer.recv_into(buffer)
    start = now = clock()
    samples = [(start, count)]
    due = start + _SAMPLE_S
    while count and now < start + seconds:
        size = peer.recv_into(buffer)
        if not size:
            break
        count += size
        now = clock()
        if now >= due:
            samples.append((now, count))
            due = now + _SAMPLE_S
    samples.append((now, count))
    ramp = start + min(_RAMP_S, 0.2 * (now - start))
    at, before = next(sample for sample in samples if sample[0] >= ramp)
    if now - at < 2 * _SAMPLE_S:  # too fast for the limit of bytes: all of it counts
        at, before = samples[0]
    return (count - before) / (now - at) if now > at else None


def listen(message: dict[str, Any], voice: Voice, stopped: set[int]) -> None:
    """Serve the peer: its round trips, then what it sends, then send as much."""
    until = time.monotonic() + message["seconds"]

    def waits() -> bool:
        return time.monotonic() < until and message["pair"] not in stopped

    door = Door(bytes.fromhex(message["token"]), waits)
    voice.send(kind="port", pair=message["pair"], port=door.port)
    try:
        with door.peer() as peer:
            prepared(peer, until)
            address = str(peer.getsockname()[0])
            _echo(peer)
            rate = _receive(peer, message["each"] + 0.5)
        with door.peer() as peer:
            prepared(peer, until)
            _send(peer, message["each"], message["bytes"])
    finally:
        door.close()
    voice.send(kind="result", pair=message["pair"], rate=rate, address=_plain(address))


def connect(message: dict[str, Any], voice: Voice) -> None:
    """Measure the way to the listener and back."""
    token = bytes.fromhex(message["token"])
    until = time.monotonic() + message["seconds"]
    limit = time.monotonic() + ALL_CONNECT_S
    with connected(message["peer"], token, limit) as peer:
        prepared(peer, until)
        host, port = peer.getpeername()[:2]
        address = str(peer.getsockname()[0])
        trips = _round_trips(peer)
        _send(peer, message["each"], message["bytes"])
    with connected([[host, port]], token, until) as peer:
        prepared(peer, until)
        rate = _receive(peer, message["each"] + 0.5)
    trip = statistics.median(trips)
    answer = {"rate": rate, "round_trip": trip, "address": _plain(address)}
    voice.send(kind="result", pair=message["pair"], **answer)


def _plain(address: str) -> str:
    """Return an IPv4 address as such where the socket is of both families."""
    return address[7:] if address.startswith("::ffff:") else address


def _commands(places: str, voice: Voice) -> Any:
    """Return the commands that come by a connection to the controller; end where none is had."""
    peers: list[list[Any]] = [list(place.rpartition("=")[::2]) for place in places.split(",")]
    try:
        token = bytes.fromhex(os.environ.pop(KEY, ""))
        peer = connected(peers, token, time.monotonic() + ALL_CONNECT_S)
    except (ValueError, Failure) as error:
        voice.send(kind="lost", reason=f"it cannot reach the computer that measures: {error}")
        sys.exit(1)
    peer.settimeout(None)
    return peer.makefile("rb")


def main(arguments: list[str]) -> None:
    """Serve commands until the input ends or the time is over."""
    seconds = float(arguments[0])
    name = arguments[1] if len(arguments) > 1 else ""
    node = name or os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    agent = os.urandom(8).hex()
    timer = threading.Timer(seconds, os._exit, (3,))
    timer.daemon = True
    timer.start()
    messages: queue.Queue[dict[str, Any]] = queue.Queue()
    stopped: set[int] = set()
    voice = Voice(node, agent)
    source: Any = sys.stdin.buffer
    if len(arguments) > 2:
        source = _commands(arguments[2], voice)
    work = (source, messages, stopped, agent)
    threading.Thread(target=_read_input, args=work, daemon=True).start()
    voice.send(kind="hello", addresses=addresses(), boot=boot_id())
    while True:
        message = messages.get()
        try:
            if message["do"] == "listen":
                listen(message, voice, stopped)
            else:
                connect(message, voice)
        except Exception as error:  # a peer may name a port that is none
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            if isinstance(error, (BlockingIOError, socket.timeout)):
                reason = "the connection stalled"
            voice.send(kind="failed", pair=message["pair"], reason=reason)
