"""The program on each node of a measurement; its text is sent, so nothing is installed.

It takes commands as lines of JSON on standard input, and prints what it learns in the marked lines
of `probe_cluster.gathering.lines`. It ends when its input ends: so nothing stays behind a
controller that was killed. One file of the standard library of Python 3.8: the node's own Python
may be that old, and has nothing of ours.
Argument 1 is the most seconds that it may live, argument 2 its node's name where the engine gives
one. Argument 3 are HOST=PORT with commas: then commands come from there, not from standard input,
and `KEY` in the environment is the token for it.

The ends of a connection prove to each other that they have the pair's token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import queue
import select
import socket
import statistics
import struct
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


_MOST_ADDRESSES = 8

# Bridges of container engines and hypervisors: each host has the same address on its own.
_LOCAL_BRIDGES = ("docker", "br-", "veth", "virbr", "cni", "flannel", "cali", "lxc", "podman")

_SIOCGIFADDR = 0x8915


def addresses(environ: Mapping[str, str] = os.environ) -> list[list[str]]:
    """Return [interface, address] of this node, that by which its user reaches it first."""
    pairs = [pair for pair in [*_ipv4(), *_ipv6()] if not pair[0].startswith(_LOCAL_BRIDGES)]
    names = {address: interface for interface, address in pairs}
    first = [*environ.get("SSH_CONNECTION", "").split()[2:3], *_default_addresses()]
    ordered = list(dict.fromkeys([*first, *names]))
    outside = [address for address in ordered if not _is_loopback(address)]
    return [[names.get(address, ""), address] for address in outside[:_MOST_ADDRESSES]]


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "::ffff:127.")) or address in ("::1", "0.0.0.0", "::")


def _ipv4() -> list[tuple[str, str]]:
    """Return the interfaces with their first address; nothing where the system has no such call."""
    try:
        import fcntl

        names = [name for _, name in socket.if_nameindex()]
    except (ImportError, OSError):
        return []
    pairs = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in names if sys.platform == "linux" else ():
            try:
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:  # it has no address
                continue
            pairs.append((name, socket.inet_ntoa(answer[20:24])))
    return pairs


def _ipv6() -> list[tuple[str, str]]:
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    # Scope 00 is global: a link's own address (20) is of no use without the name of the interface.
    return [
        (row[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0])))
        for row in rows
        if len(row) > 5 and row[3] == "00"
    ]


def _default_addresses() -> list[str]:
    """Return the addresses from which packets leave; none is sent: connecting UDP only routes."""
    origins = []
    # Addresses of documentation (RFC 5737, RFC 3849).
    for family, peer in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((peer, 9))
                origins.append(str(probe.getsockname()[0]))
        except OSError:  # no route
            pass
    return origins


def boot_id() -> str:
    """Return what two agents on one running kernel share."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return f"{sys.platform}/{os.uname().nodename}"


NONCE, DIGEST = 16, 32
"""Bytes of a random number, and of a proof."""

_HANDSHAKE_S = 2.0
"""Seconds for a peer to prove that it has the token."""

_CONNECT_S, ALL_CONNECT_S = 2.0, 6.0
"""Seconds for one address and for all: a firewall that drops packets answers never."""

_MOST_GUESTS = 16
"""Connections at once that have not proved themselves."""


class Failure(Exception):
    """Why a pair cannot be measured, in a sentence."""


def digest(token: bytes, role: bytes, first: bytes, second: bytes) -> bytes:
    """Return the proof of a side that it has the token: both random numbers, signed."""
    return hmac.new(token, role + first + second, hashlib.sha256).digest()


def exactly(peer: socket.socket, count: int) -> bytes:
    """Return the next bytes. Raises `Failure` where fewer come, and `OSError`."""
    data = b""
    while len(data) < count:
        piece = peer.recv(count - len(data))
        if not piece:
            raise Failure("the peer closed the connection")
        data += piece
    return data


def _greeted(peer: socket.socket, token: bytes) -> bool:
    """Prove to a guest that this node has the token, once the guest proved it."""
    peer.settimeout(_HANDSHAKE_S)
    mine = os.urandom(NONCE)
    peer.sendall(mine)
    theirs, proof = exactly(peer, NONCE), exactly(peer, DIGEST)
    if not hmac.compare_digest(proof, digest(token, b"connect", mine, theirs)):
        return False
    peer.sendall(digest(token, b"listen", theirs, mine))
    return True


def _greet(peer: socket.socket, token: bytes) -> bool:
    """Prove to the listener that this node has the token, and check that the listener has it."""
    peer.settimeout(_HANDSHAKE_S)
    theirs, mine = exactly(peer, NONCE), os.urandom(NONCE)
    peer.sendall(mine + digest(token, b"connect", theirs, mine))
    return hmac.compare_digest(exactly(peer, DIGEST), digest(token, b"listen", mine, theirs))


class Door:
    """A listening socket for one peer, which comes twice; others are turned away."""

    def __init__(self, token: bytes, until: float, waits: Callable[[], bool]) -> None:
        self._token = token
        self._until = until
        self._waits = waits
        self._guests: queue.Queue[socket.socket] = queue.Queue()
        self._slots = threading.Semaphore(_MOST_GUESTS)
        self._socket = _listener()
        self.port = int(self._socket.getsockname()[1])

    def peer(self) -> socket.socket:
        """Return the next connection of the peer. Raises `Failure` when none comes in time."""
        while self._waits():
            ready, _, _ = select.select([self._socket], [], [], 0.05)
            if ready and self._slots.acquire(blocking=False):
                guest, _ = self._socket.accept()
                threading.Thread(target=self._examine, args=(guest,), daemon=True).start()
            try:
                return prepared(self._guests.get_nowait(), self._until)
            except queue.Empty:
                pass
        raise Failure("no connection of its peer arrived")

    def _examine(self, guest: socket.socket) -> None:
        try:
            if _greeted(guest, self._token):
                self._guests.put(guest)
                return
        except (OSError, Failure):
            pass
        finally:
            self._slots.release()
        guest.close()

    def close(self) -> None:
        """Stop to listen."""
        self._socket.close()


def _listener() -> socket.socket:
    """Return a socket on a free port of all addresses, of both families where they are there."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError:  # IPv6 is switched off
            pass
    return socket.create_server(("", 0))


def connected(peers: list[list[Any]], token: bytes, until: float) -> socket.socket:
    """Return a connection to the peer, by the first address at which it proves itself.

    Raises `Failure` where none does.
    """
    problems = []
    for address, port in peers:
        remaining = min(_CONNECT_S, until - time.monotonic())
        if remaining <= 0:
            break
        try:
            peer = socket.create_connection((address, port), remaining)
        except TimeoutError:
            problems.append(f"{address} port {port} does not answer")
            continue
        except OSError as error:
            problems.append(f"{address} port {port}: {error.strerror or error}")
            continue
        try:
            if _greet(peer, token):
                return peer
        except (OSError, Failure):
            pass
        problems.append(f"{address} port {port} is not the peer")
        peer.close()
    raise Failure("; ".join(problems[:3]) or "the peer has no address")


def joined(peers: list[list[Any]], token: bytes, limit: float, until: float) -> socket.socket:
    """Return a connection to the peer, had before `limit`, whose calls end at a time."""
    return prepared(connected(peers, token, limit), until)


def prepared(peer: socket.socket, until: float) -> socket.socket:
    """Let the kernel send at once, and end each call at a time."""
    # The kernel's own limits, not Python's: with those each call is two, a poll before it.
    limit = struct.pack("ll", max(1, int(until - time.monotonic())), 0)
    peer.settimeout(None)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


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

    door = Door(bytes.fromhex(message["token"]), until, waits)
    voice.send(kind="port", pair=message["pair"], port=door.port)
    try:
        with door.peer() as peer:
            address = str(peer.getsockname()[0])
            _echo(peer)
            rate = _receive(peer, message["each"] + 0.5)
        with door.peer() as peer:
            _send(peer, message["each"], message["bytes"])
    finally:
        door.close()
    voice.send(kind="result", pair=message["pair"], rate=rate, address=_plain(address))


def connect(message: dict[str, Any], voice: Voice) -> None:
    """Measure the way to the listener and back."""
    token = bytes.fromhex(message["token"])
    until = time.monotonic() + message["seconds"]
    limit = time.monotonic() + ALL_CONNECT_S
    with joined(message["peer"], token, limit, until) as peer:
        host, port = peer.getpeername()[:2]
        address = str(peer.getsockname()[0])
        trips = _round_trips(peer)
        _send(peer, message["each"], message["bytes"])
    with joined([[host, port]], token, until, until) as peer:
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


if __name__ == "__main__":
    main(sys.argv[1:])
