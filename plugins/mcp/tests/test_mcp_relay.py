"""What was asked before the input ended is answered; a client that is gone is no error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from probe_mcp.relay import _read, _Requests, _write

# A server as the SDK's: it ends with its input, whatever it still works on.
SERVER = """
import json, os, sys, threading
from probe_mcp.relay import relayed

def answer(message):
    os.write(1, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode() + b"\\n")

with relayed(float(sys.argv[1])):
    for line in open(0, "rb", closefd=False):
        message = json.loads(line)
        if message.get("method") == "ping":
            threading.Timer(0.05, answer, [message]).start()
"""


def lines(*messages: tuple[str, int | None]) -> bytes:
    each = [
        {"jsonrpc": "2.0", "method": method} | ({} if id_ is None else {"id": id_})
        for method, id_ in messages
    ]
    return b"".join(json.dumps(message).encode() + b"\n" for message in each)


def test_each_request_is_answered_though_the_input_ends() -> None:
    asked = lines(("ping", 1), ("notifications/initialized", None), ("ping", 2))
    command = [sys.executable, "-c", SERVER, "60"]
    done = subprocess.run(command, input=asked, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [1, 2]


def test_a_request_without_an_answer_is_not_awaited_for_ever() -> None:
    cancelled = json.dumps({"method": "notifications/cancelled", "params": {"requestId": 1}})
    for asked, seconds in (
        (lines(("silence", 1)), "0.05"),
        (lines(("silence", 1)) + f"{cancelled}\n".encode(), "60"),
    ):
        command = [sys.executable, "-c", SERVER, seconds]
        done = subprocess.run(command, input=asked, capture_output=True, timeout=30, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.heavy
def test_a_client_that_is_gone_is_no_error() -> None:
    """The SDK's own error was printed, as one of the author's."""
    asked = lines(("initialize", 1))
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "probe_core", "mcp"]
    done = subprocess.run(
        command, input=asked, stdout=write, stderr=subprocess.PIPE, timeout=30, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


# The two threads, in this process.

END = b"\0\n"
RIGHT = b'{"id": 1, "result": {}}\n'


def pipe(content: bytes) -> int:
    """Return the end of a pipe that holds some bytes and then nothing more."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    return read


def asked(*messages: object) -> _Requests:
    requests = _Requests()
    for message in messages:
        requests.read(json.dumps(message).encode())
    return requests


def is_answered(requests: _Requests) -> bool:
    return not requests._ids


REQUEST = {"method": "ping", "id": 1}
CANCELLED = {"method": "notifications/cancelled", "params": {"requestId": 1}}


@pytest.mark.parametrize(
    ("messages", "answered"),
    [
        ([REQUEST], False),
        ([REQUEST, CANCELLED], True),
        ([REQUEST, {**CANCELLED, "params": {"requestId": "1"}}], False),
        ([REQUEST, {**CANCELLED, "params": [1]}], False),
        ([REQUEST, {"method": "notifications/cancelled"}], False),
        ([{"method": "notifications/initialized"}], True),
        ([{"id": 1, "result": {}}], True),
        (["text"], True),
        ([[1]], True),
    ],
    ids=range(9),
)
def test_which_lines_of_a_client_await_an_answer(messages: list[object], answered: bool) -> None:
    assert is_answered(asked(*messages)) == answered


@pytest.mark.parametrize(
    ("line", "answered"),
    [
        (RIGHT, True),
        (b'{"id": 1, "error": {}}', True),
        (b'{"id": 2, "result": {}}', False),
        (b'{"id": 1, "method": "sampling/createMessage"}', False),
        (b'{"result": {}}', False),
        (b"{", False),
        (b"[" * 100_000, False),
    ],
    ids=range(7),
)
def test_which_lines_of_a_server_are_an_answer(line: bytes, answered: bool) -> None:
    requests = asked(REQUEST)
    requests.written(line)
    assert is_answered(requests) == answered


def test_who_waits_goes_on_with_the_last_answer() -> None:
    for answer in (lambda own: own.written(RIGHT), lambda own: own.forget()):
        requests = asked(REQUEST)
        waiting = threading.Thread(target=requests.wait, args=(60.0,), daemon=True)
        waiting.start()
        answer(requests)
        waiting.join(20)
        assert not waiting.is_alive()


def test_lines_of_the_client_reach_the_server_until_it_is_gone() -> None:
    text = json.dumps(REQUEST).encode() + b"\n" + b"x" * 10 + b"\n"
    requests = _Requests()
    server, write = os.pipe()
    _read(pipe(text), write, requests, 0.0)
    with open(server, "rb") as file:
        assert file.read() == text  # and then its input ends
    assert not is_answered(requests)
    server, write = os.pipe()
    os.close(server)
    _read(pipe(text), write, _Requests(), 60.0)  # waits for no answer


def test_lines_of_the_server_reach_the_client_until_its_end() -> None:
    requests = asked(REQUEST)
    client, write = os.pipe()
    _write(pipe(RIGHT + END + b"later\n"), write, requests)
    os.close(write)
    with open(client, "rb") as file:
        assert file.read() == RIGHT
    assert is_answered(requests)


def test_a_client_that_is_gone_is_written_to_once_and_awaited_no_more() -> None:
    requests = asked(REQUEST, {**REQUEST, "id": 2})
    client, write = os.pipe()
    os.close(client)
    _write(pipe(b'{"id": 1}\n' + b"more\n" + END), write, requests)
    os.close(write)
    assert is_answered(requests)
