"""What was asked before the input ended is answered; a client that is gone is no error."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

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
