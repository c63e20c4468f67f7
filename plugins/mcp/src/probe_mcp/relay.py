"""Keeps the server's input open until each request that was read is answered.

The SDK cancels what it works on once its input ends, so that a client that closes its input behind
its last request got some of the answers, or none. Two threads copy lines between the process's own
descriptors and pipes that the SDK serves: at the end of the input the pipe stays open until nothing
is asked any more. A client that is gone ends the server without an error.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_END = b"\0\n"
"""The line behind the server's last: the SDK keeps its end of the pipe, so no end is seen."""


class _Requests:
    """The ids of the requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = threading.Condition()

    def read(self, line: bytes) -> None:
        """Count a line of the client."""
        message = _object(line)
        if "method" in message and "id" in message:
            with self._changed:
                self._ids.add(repr(message["id"]))
        elif message.get("method") == "notifications/cancelled":
            parameters = message.get("params")
            self._close(parameters.get("requestId") if isinstance(parameters, dict) else None)

    def written(self, line: bytes) -> None:
        """Count a line of the server."""
        message = _object(line)
        if "method" not in message:
            self._close(message.get("id"))

    def _close(self, request: Any) -> None:
        with self._changed:
            self._ids.discard(repr(request))
            self._changed.notify_all()

    def forget(self) -> None:
        """Wait for no answer any more: nobody reads it."""
        with self._changed:
            self._ids.clear()
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until all are answered, so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ids, seconds)


def _object(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


@contextmanager
def relayed(seconds: float) -> Iterator[None]:
    """Serve standard input and output through pipes; answers are awaited for `seconds` at most."""
    requests = _Requests()
    client, out = os.dup(0), os.dup(1)
    to_server, from_server = os.pipe(), os.pipe()
    os.dup2(to_server[0], 0)
    os.dup2(from_server[1], 1)
    os.close(to_server[0])
    reader = threading.Thread(target=_read, args=(client, to_server[1], requests, seconds))
    writer = threading.Thread(target=_write, args=(from_server[0], out, requests))
    reader.daemon = writer.daemon = True
    reader.start()
    writer.start()
    try:
        yield
    finally:
        os.write(from_server[1], _END)
        writer.join(seconds)
        os.dup2(out, 1)


def _read(client: int, server: int, requests: _Requests, seconds: float) -> None:
    with open(client, "rb") as lines, open(server, "wb", buffering=0):
        for line in lines:
            requests.read(line)
            try:
                _write_all(server, line)
            except OSError:
                return
        requests.wait(seconds)


def _write(server: int, out: int, requests: _Requests) -> None:
    gone = False
    with open(server, "rb") as lines:
        for line in lines:
            if line == _END:
                return
            try:
                # An answer counts as written once the client has it.
                if not gone:
                    _write_all(out, line)
            except OSError:
                gone = True
                requests.forget()
            requests.written(line)


def _write_all(out: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(out, rest) :]
