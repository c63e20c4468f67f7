"""An HTTP endpoint for Prometheus: small, bounded, and of no use to anybody else.

A scrape waits 10 s by default, a probe of a hung driver may take longer: one thread probes, and a
request that has waited for a while is answered from the last report. A request has a deadline as a
whole, and where no connection is free the one that has been silent for longest gives way, so that
half a request blocks nobody. On loopback the Host header must be loopback's: a web page could
otherwise read the metrics through a name that it points there (DNS rebinding).
"""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SHUT_RDWR
from socketserver import TCPServer
from time import monotonic

from probe_export import ExportError
from probe_export.rhythm import PIECE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket
    from types import FrameType
    from typing import Any

    Peer = socket | tuple[bytes, socket]

__all__ = ["Endpoint", "NotYet", "address"]

MAX_AGE_S = 15.0
"""Seconds after which a scrape asks for a new report; Prometheus scrapes every 15 s to 1 min."""

_RETRY_S = 1
"""Seconds after which a scrape that came too early may come again: a round of `probe watch`."""

_REFRESH_S = 3.0
"""Seconds that a scrape waits for a new report where there is an old one."""

_READ_S = 5.0
"""Seconds for a whole request: a limit of each read alone lets a byte now and then hold a place."""

_MAX_CONNECTIONS = 32
_GIVE_WAY_S = 3.0
"""Seconds for the thread of a connection that is hung up on to leave; milliseconds without load."""
_LOOPBACK = ("localhost", "[::1]", "::1")


class NotYet(Exception):
    """There is no text yet: a scrape is answered with 503 and when to come again."""


def address(text: str) -> tuple[str, int]:
    """Return host and port of ``127.0.0.1:9101``; raises `ExportError`."""
    host, colon, port = text.rpartition(":")
    if colon and port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535:
        return host.strip("[]") or "127.0.0.1", int(port)
    raise ExportError(f"--listen {text}: expected HOST:PORT, such as 127.0.0.1:9101", 2)


class Endpoint:
    """Serves ``/metrics`` and ``/healthz``; raises `ExportError` where it cannot listen.

    `content_type` is the text's exact one: Prometheus 3 fails a scrape where it is another.
    A text that is older than `max_age` seconds is made anew.
    """

    def __init__(
        self,
        place: tuple[str, int],
        make: Callable[[], str],
        content_type: str,
        max_age: float = MAX_AGE_S,
    ) -> None:
        self._cache = _Cache(make, max_age)
        try:
            self._server = _Server(place, self._cache, content_type)
        except OSError as error:
            text = f"{_joined(*place)} cannot be listened on: {error.strerror or error}"
            raise ExportError(text, 2) from None
        host, port = self._server.server_address[:2]
        self.url = f"http://{_joined(str(host), port)}/metrics"

    def serve(self) -> None:
        """Serve until SIGTERM or Ctrl-C; for the main thread alone."""
        ended = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            ended.set()

        before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self.serve_until(ended)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def serve_until(self, ended: threading.Event) -> None:
        """Serve until the event is set."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        thread.start()
        try:
            while not ended.wait(PIECE_S):
                pass
        finally:
            self._server.shutdown()
            self._server.server_close()


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Cache:
    """The last text; when it is old, a thread makes a new one, for which nobody waits for long."""

    def __init__(self, make: Callable[[], str], max_age: float) -> None:
        self._make = make
        self._max_age = max_age
        self._changed = threading.Condition()
        self._text: bytes | None = None
        self._error: Exception | None = None
        self._made_at = 0.0
        self._is_busy = False

    def text(self) -> bytes:
        """Return the text; waits without a limit only where there is none yet."""
        with self._changed:
            if not self._is_busy and not self._is_fresh():
                threading.Thread(target=self._renew, daemon=True).start()
                self._is_busy = True
            seconds = None if self._text is None else _REFRESH_S
            self._changed.wait_for(lambda: not self._is_busy, seconds)
            if self._error is not None:
                raise self._error
            return self._text or b""

    def _is_fresh(self) -> bool:
        return self._text is not None and monotonic() - self._made_at < self._max_age

    def _renew(self) -> None:
        text, error = None, None
        try:
            text = self._make().encode()
        except Exception as failure:
            error = failure
        finally:
            with self._changed:
                self._text, self._error = text or self._text, error
                self._made_at = monotonic() if error is None else self._made_at
                self._is_busy = False
                self._changed.notify_all()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, place: tuple[str, int], cache: _Cache, content_type: str) -> None:
        self.cache = cache
        self.content_type = content_type
        self.address_family = AF_INET6 if ":" in place[0] else AF_INET
        self._room = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._silent: dict[Peer, float] = {}
        """Connections without a whole request, and since when; the oldest stands first."""
        super().__init__(place, _Handler)
        # As bound: a name in /etc/hosts, such as the computer's own, can be loopback's as well.
        self.hosts = {place[0].lower()} if _is_loopback(str(self.server_address[0])) else None

    def server_bind(self) -> None:
        """Bind alone: HTTPServer asks the DNS for a name as well, which can take many seconds."""
        TCPServer.server_bind(self)

    def process_request(self, request: Peer, client_address: Any) -> None:
        if not self._has_room():
            self.shutdown_request(request)
            return
        self._silent[request] = monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._leave(request)
            raise

    def process_request_thread(self, request: Peer, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def requested(self, request: Peer) -> None:
        """Let a connection stay until its answer is sent: its request is complete."""
        self._silent.pop(request, None)

    def service_actions(self) -> None:
        """Hang up on requests that are not complete in time; called several times a second."""
        now = monotonic()
        for request, since in list(self._silent.items()):
            if now - since > _READ_S:
                _hang_up(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a peer that hangs up is no error of this process."""

    def _has_room(self) -> bool:
        if self._room.acquire(blocking=False):
            return True
        oldest = next(iter(list(self._silent)), None)
        if oldest is None:
            return False
        _hang_up(oldest)
        return self._room.acquire(timeout=_GIVE_WAY_S)

    def _leave(self, request: Peer) -> None:
        self._silent.pop(request, None)
        self._room.release()


def _hang_up(request: Peer) -> None:
    """End both directions; the thread that reads sees the end and leaves."""
    sock = request if not isinstance(request, tuple) else request[1]
    with suppress(OSError):
        sock.shutdown(SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _READ_S
    server_version, sys_version = "probe", ""

    def do_GET(self) -> None:  # the name that http.server looks for
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.requested(self.connection)
        path = self.path.partition("?")[0]
        if not self._is_own_host():
            self._send(403, b"", "text/plain")
        elif path == "/metrics":
            self._metrics()
        elif path == "/healthz":
            self._send(200, b"ok\n", "text/plain")
        else:
            self._send(404, b"", "text/plain")

    def _is_own_host(self) -> bool:
        if self.server.hosts is None:
            return True
        host = self.headers.get("Host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        return _is_loopback(name) or name in self.server.hosts

    def _metrics(self) -> None:
        try:
            text = self.server.cache.text()
        except NotYet:
            self._send(503, b"", "text/plain", {"Retry-After": str(_RETRY_S)})
        except Exception:  # a broken format, whose mistake the maker of the text has printed
            self._send(500, b"", "text/plain")
        else:
            self._send(200, text, self.server.content_type)

    def _send(
        self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, *_: object) -> None:
        """Answer without quoting the request."""
        self.send_response_only(405 if code == 501 else code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: a scrape every few seconds is no news."""


def _is_loopback(name: str) -> bool:
    """Return whether it is an address of loopback, or the name that every system has for one."""
    digits = name.removeprefix("127.").replace(".", "")
    is_number = digits.isascii() and digits.isdecimal()
    return name in _LOOPBACK or (name.startswith("127.") and is_number)
