"""Connections of a pair, whose ends prove to each other that they have the pair's token.

Sent to nodes as a part of `pair_agent`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import queue
import select
import socket
import struct
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "ALL_CONNECT_S",
    "DIGEST",
    "NONCE",
    "Door",
    "Failure",
    "connected",
    "digest",
    "exactly",
    "prepared",
]

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

    def __init__(self, token: bytes, waits: Callable[[], bool]) -> None:
        self._token = token
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
                return self._guests.get_nowait()
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


def prepared(peer: socket.socket, until: float) -> None:
    """Let the kernel send at once, and end each call at a time."""
    # The kernel's own limits, not Python's: with those each call is two, a poll before it.
    limit = struct.pack("ll", max(1, int(until - time.monotonic())), 0)
    peer.settimeout(None)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
