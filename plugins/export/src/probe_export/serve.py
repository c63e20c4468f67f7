"""An HTTP endpoint for Prometheus: small, bounded, and of no use to anybody else.

prometheus_client's own server answers every path and Host, and keeps a thread for each half
request. Here one thread serves all: a request has a deadline as a whole, and where there are too
many connections the one that has been silent for longest gives way. On loopback the Host header
must be loopback's: a web page could otherwise read the metrics through a name that it points there
(DNS rebinding).
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import suppress
from http import HTTPStatus

from probe_export import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Answer = Callable[[str], tuple[bytes, str]]
    """From a request's Accept header to a body and its content type."""

RETRY_S = 1
"""Seconds after which a scrape that came too early may come again: a round of `probe watch`."""

_WHOLE_S = 5.0
"""Seconds for a whole request, and for its answer: a limit of each read alone lets a byte now and
then hold a connection."""

_MAX_CONNECTIONS = 32
_MAX_HEAD = 16 << 10
"""Bytes of a request: Prometheus sends some 300, a browser's cookies for loopback a few thousand.
"""

_END_S = 2.0
_LOOPBACK = ("localhost", "::1")


class NotYet(Exception):
    """There is no text yet: a scrape is answered with 503 and when to come again."""


def address(text: str) -> tuple[str, int]:
    """Return host and port of ``127.0.0.1:10935``; raises `ExportError`."""
    host, colon, port = text.rpartition(":")
    if colon and port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535:
        return host.strip("[]") or "127.0.0.1", int(port)
    raise ExportError(f"--listen {text}: expected HOST:PORT, such as 127.0.0.1:10935", 2)


class Endpoint:
    """Serves ``/metrics`` and ``/healthz`` from a thread while its context is open.

    The port is bound when it is made; raises `ExportError` where it cannot be. `answer` must not
    wait: it raises `NotYet` for 503; what else it raises is a 500.
    """

    def __init__(self, place: tuple[str, int], answer: Answer) -> None:
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        try:
            self._socket = socket.create_server(place, family=family, backlog=128)
        except OSError as error:
            # create_server's own text names the address once more.
            why = os.strerror(error.errno) if error.errno else str(error)
            text = f"{_joined(*place)} cannot be listened on: {why}"
            raise ExportError(text, 2) from None
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{_joined(host, port)}/metrics"
        self.on_loopback = _is_loopback(host)
        # As bound: a name in /etc/hosts, such as the computer's own, can be loopback's as well.
        self._hosts = (place[0].lower(),)
        self._answer = answer
        self._waiting: dict[asyncio.Task[None], None] = {}
        """Connections whose answer is not sent yet; the oldest stands first."""
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="probe-metrics", daemon=True)

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_END_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        # A peer that hangs up is no error of this process, and nothing is printed of it.
        self._loop.set_exception_handler(lambda loop, context: None)
        server = await asyncio.start_server(self._talk, sock=self._socket, limit=_MAX_HEAD)
        await self._ended.wait()
        server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = None
        if len(self._waiting) > _MAX_CONNECTIONS:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.cancel()
        try:
            async with asyncio.timeout(_WHOLE_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._reply(head.decode("latin-1")))
            async with asyncio.timeout(_WHOLE_S):
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError):
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._waiting.pop(task, None)
            writer.close()

    def _reply(self, head: str) -> bytes:
        """Return the answer to a request; nothing of it is quoted."""
        first, *lines = head.split("\r\n")
        words = first.split(" ")
        fields = [
            (name.lower(), text.strip()) for name, _, text in (x.partition(":") for x in lines)
        ]
        headers, hosts = dict(fields), [text for name, text in fields if name == "host"]
        is_plain = all(line.isprintable() for line in (first, *lines))
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not is_plain:
            return _response(HTTPStatus.BAD_REQUEST)
        if words[0] not in ("GET", "HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        if self.on_loopback and (len(hosts) != 1 or not self._is_own_host(hosts[0])):
            return _response(HTTPStatus.FORBIDDEN)
        path = words[1].partition("?")[0]
        with_body = words[0] == "GET"
        if path == "/healthz":
            return _response(HTTPStatus.OK, b"ok\n", with_body=with_body)
        if path != "/metrics":
            return _response(HTTPStatus.NOT_FOUND)
        try:
            body, kind = self._answer(headers.get("accept", ""))
        except NotYet:
            headers = {"Retry-After": str(RETRY_S)}
            return _response(HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)
        except Exception:  # a broken format, whose mistake the maker of the text has printed
            return _response(HTTPStatus.INTERNAL_SERVER_ERROR)
        return _response(HTTPStatus.OK, body, {"Content-Type": kind}, with_body=with_body)

    def _is_own_host(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        name = (name if port.isdecimal() else host.lower()).strip("[]")
        return _is_loopback(name) or name in self._hosts


def _response(
    status: HTTPStatus,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    with_body: bool = True,
) -> bytes:
    fields = {
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **(headers or {}),
    }
    lines = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{lines}\r\n"
    return head.encode("latin-1") + (body if with_body else b"")


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_loopback(name: str) -> bool:
    """Return whether it is an address of loopback, or the name that every system has for one."""
    digits = name.removeprefix("127.").replace(".", "")
    is_number = digits.isascii() and digits.isdecimal()
    return name in _LOOPBACK or (name.startswith("127.") and is_number)
