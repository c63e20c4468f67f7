"""An HTTP endpoint for Prometheus: small, bounded, and of no use to anybody else.

A scrape waits 10 s by default, a probe of a hung driver may take longer: one thread probes, each
request is answered from the last report. Connections have a deadline and their number a bound, so
that half a request blocks nobody. On loopback the Host header must be loopback's: a web page could
otherwise read the metrics through a name that it points there (DNS rebinding).
"""

from __future__ import annotations

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic

from probe_export.errors import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from types import FrameType
    from typing import Any

    Peer = socket | tuple[bytes, socket]

__all__ = ["Endpoint", "address"]

MAX_AGE_S = 15.0
"""Seconds after which a scrape asks for a new report; Prometheus scrapes every 15 s to 1 min."""

_READ_S = 5.0
_MAX_CONNECTIONS = 32
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def address(text: str) -> tuple[str, int]:
    """Return host and port of ``127.0.0.1:9101``; raises `ExportError`."""
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and len(port) <= 5 and int(port) <= 65535:
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
            text = f"{place[0]}:{place[1]} cannot be listened on: {error.strerror or error}"
            raise ExportError(text, 2) from None
        host, port = self._server.server_address[:2]
        self.url = f"http://{host!s}:{port}/metrics"

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
            ended.wait()
        finally:
            self._server.shutdown()
            self._server.server_close()


class _Cache:
    """The last text, made anew when it is old; who comes meanwhile gets the last one."""

    def __init__(self, make: Callable[[], str], max_age: float) -> None:
        self._make = make
        self._max_age = max_age
        self._lock = threading.Lock()
        self._text: bytes | None = None
        self._made_at = 0.0

    def text(self) -> bytes:
        """Return the text; waits only where there is none yet."""
        fresh = self._text is not None and monotonic() - self._made_at < self._max_age
        if fresh or not self._lock.acquire(blocking=self._text is None):
            return self._text or b""
        try:
            if self._text is None or monotonic() - self._made_at >= self._max_age:
                self._text = self._make().encode()
                self._made_at = monotonic()
            return self._text
        finally:
            self._lock.release()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, place: tuple[str, int], cache: _Cache, content_type: str) -> None:
        self.cache = cache
        self.content_type = content_type
        self.is_loopback = place[0] in _LOOPBACK or place[0].startswith("127.")
        self._room = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(place, _Handler)

    def process_request(self, request: Peer, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Peer, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a peer that hangs up is no error of this process."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _READ_S
    server_version, sys_version = "probe", ""

    def do_GET(self) -> None:  # the name that http.server looks for
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        if self.server.is_loopback and not _is_loopback(self.headers.get("Host", "")):
            self._send(403, b"", "text/plain")
        elif path == "/metrics":
            self._metrics()
        elif path == "/healthz":
            self._send(200, b"ok\n", "text/plain")
        else:
            self._send(404, b"", "text/plain")

    def _metrics(self) -> None:
        try:
            text = self.server.cache.text()
        except Exception:  # a broken format, whose mistake the maker of the text has printed
            self._send(500, b"", "text/plain")
        else:
            self._send(200, text, self.server.content_type)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
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


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name in _LOOPBACK
