"""The command in this process until a signal ends it, and the pieces that formats are made of."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import recorded
from command import probe_here

from probe_export import export
from probe_export.ansible import _link
from probe_export.ending import pause, reacting, until_signal
from probe_export.export_command import _write
from probe_export.live import answering
from probe_export.nfd import _network
from probe_export.pods import _parts
from probe_export.serve import NotYet
from probe_export.slurm import cores_near

ROCK = "rock-5b--mali-g610-and-rk3588-npu"
MACHINE = str(recorded.path(ROCK))


@contextmanager
def ended_when(condition: Callable[[], object]) -> Iterator[None]:
    """Send this process SIGTERM once a condition holds, or after some seconds."""

    def wait() -> None:
        end = time.monotonic() + 15
        while time.monotonic() < end and not condition():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=wait, daemon=True)
    # Whatever fails, the signal ends no worker of the tests.
    with reacting(["SIGTERM"], lambda number: None):
        thread.start()
        yield
        thread.join(20)


def text_of_the_node() -> str:
    done = probe_here("--json", "--machine", MACHINE)
    return export("nfd", json.loads(done.stdout))


def test_a_text_goes_to_standard_output() -> None:
    done = probe_here("export", "nfd", "--machine", MACHINE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == text_of_the_node()


def test_watch_replaces_the_file_until_a_signal(tmp_path: Path) -> None:
    path = tmp_path / "probe"
    with ended_when(path.exists):
        done = probe_here(
            "export", "nfd", "--output", str(path), "--watch", "5", "--machine", MACHINE
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    first, *lines = path.read_text().splitlines()
    end = time.strptime(first, "# +expiry-time=%Y-%m-%dT%H:%M:%SZ")
    assert 0 <= time.mktime(end) - time.mktime(time.gmtime()) <= 15
    assert lines == text_of_the_node().splitlines()


def test_watch_goes_on_where_the_file_cannot_be_written(tmp_path: Path) -> None:
    path, told = tmp_path / "absent" / "probe", []
    context: Any = SimpleNamespace(report=dict, err=told.append)
    with ended_when(lambda: told):
        assert _write(str(path), 60.0, context, lambda report: "text") == 0
    assert told == [f"probe export: {path} cannot be written: No such file or directory"]


@pytest.mark.parametrize("format_", ["prometheus", "otel"])
def test_what_is_served_until_a_signal(format_: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    found: list[str] = []

    def asked() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            found.append(connection.getresponse().read().decode())
        except OSError:  # it does not listen yet
            return False
        finally:
            connection.close()
        return "probecore_devices_usable" in found[-1]

    words = ("export", format_, "--listen", f"127.0.0.1:{port}", "--machine", MACHINE)
    with ended_when(asked if format_ == "prometheus" else lambda: True):
        done = probe_here(*words)
    if format_ == "prometheus":
        line = f"probe export: serving http://127.0.0.1:{port}/metrics; Ctrl-C ends it\n"
        assert (done.returncode, done.stdout, done.stderr) == (0, "", line)
        assert "\nprobecore_devices_usable " in found[-1]
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("probe export: --listen serves prometheus alone, not otel")


# What ends it.


def test_a_signal_ends_the_block_quietly_and_a_second_one_strikes_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    reached = []
    with until_signal() as caught:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            pause(20)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("the end")
    assert (caught, reached) == ([signal.SIGTERM, signal.SIGINT], ["the end"])
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_that_no_signal_was_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt), until_signal():
        raise KeyboardInterrupt


def test_only_named_signals_count_and_ignored_ones_stay_so() -> None:
    was = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    term = signal.getsignal(signal.SIGTERM)
    try:
        with until_signal("SIGHUP", "SIGUSR1", "SIGNONE") as caught:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) == term
            os.kill(os.getpid(), signal.SIGUSR1)
            pause(20)
        assert caught == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGHUP, was)


def test_another_thread_installs_no_handler() -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with until_signal() as caught:
                assert caught == []
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failed == []


def test_a_pause_lasts_as_long_as_it_is_told() -> None:
    begin = time.monotonic()
    pause(0.05)
    assert 0.05 <= time.monotonic() - begin < 5


def test_a_text_is_begun_at_once_and_served_when_it_is_there() -> None:
    begun, go = threading.Event(), threading.Event()

    def make() -> str:
        begun.set()
        go.wait(20)
        return "text"

    answer = answering(make, "text/plain")
    assert begun.wait(20)
    with pytest.raises(NotYet):
        answer("")
    go.set()
    for _ in range(2000):
        try:
            assert answer("") == (b"text", "text/plain")
            break
        except NotYet:
            time.sleep(0.005)
    else:
        pytest.fail("no text came")


# Pieces of formats.


def package(number: int, **fields: Any) -> dict[str, Any]:
    own = {"id": f"cpu:{number}", "kind": "cpu", "units": 16, "threads": 32, "numa_node": number}
    own |= {"chip": {}}
    return own | fields


TWO = [package(0), package(1)]


@pytest.mark.parametrize(
    ("packages", "node", "cores"),
    [
        (TWO, 0, "0-15"),
        (TWO, 1, "16-31"),
        (TWO, 2, ""),
        (TWO, None, ""),
        ([package(0)], 0, ""),
        ([package(1, numa_node=1), package(0, numa_node=0)], 1, "16-31"),
        ([package(0), package(1, numa_node=0)], 0, ""),
        ([package(0, numa_nodes=[0, 1]), package(1, numa_node=2)], 0, ""),
        ([package(0), package(1, units=8)], 0, ""),
        ([package(0, threads=30), package(1, threads=30)], 0, ""),
        ([package(0, units=None), package(1, units=None)], 0, ""),
        ([package(0, cpu={"clusters": [1]}), package(1)], 0, ""),
    ],
    ids=range(12),
)
def test_the_cores_near_a_gpu(packages: list[dict[str, Any]], node: int | None, cores: str) -> None:
    report: Any = {"devices": [*packages, {"id": "pci:0000:01:00.0", "kind": "gpu"}]}
    assert cores_near({"numa_node": node}, report) == cores  # type: ignore[typeddict-item]


RDMA: dict[str, Any] = {
    "name": "mlx5_0/1",
    "kind": "rdma",
    "state": "up",
    "bandwidth": 50e9,
    "layer": "infiniband",
    "device": "pci:0000:81:00.0",
    "driver": None,
}


def test_a_link_of_ansibles_facts() -> None:
    known = {name: value for name, value in RDMA.items() if value is not None}
    assert _link(RDMA) == known | {"device": "0000:81:00.0"}  # type: ignore[arg-type]
    assert "device" not in _link(RDMA | {"device": None})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("links", "labels"),
    [
        ([], []),
        ([RDMA | {"state": "down"}], []),
        ([RDMA], [("rdma.count", "1"), ("network.speed", "400000"), ("rdma.speed", "400000")]),
        (
            [RDMA | {"kind": "ethernet", "bandwidth": 12_500_000_000}, RDMA, RDMA],
            [("rdma.count", "2"), ("network.speed", "400000"), ("rdma.speed", "400000")],
        ),
        ([RDMA | {"bandwidth": None}], [("rdma.count", "1")]),
        ([RDMA | {"kind": "ethernet", "bandwidth": 249_999}], [("network.speed", "1")]),
    ],
    ids=range(6),
)
def test_labels_of_links(links: list[dict[str, Any]], labels: list[tuple[str, str]]) -> None:
    report: Any = {"node": {"network": links}}
    assert list(_network(report)) == labels


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def test_fields_of_a_message_are_found_among_those_of_other_types() -> None:
    def field(number: int, kind: int, content: bytes) -> bytes:
        return varint(number << 3 | kind) + content

    text = b"x" * 300
    message = (
        field(1, 1, b"8 bytes!")
        + field(2, 5, b"four")
        + field(3, 0, varint(1 << 40))
        + field(20, 2, varint(len(text)) + text)
        + field(3, 2, varint(1) + b"y")
        + field(20, 2, varint(0))
    )
    assert list(_parts(message, 20)) == [text, b""]
    assert list(_parts(message, 3)) == [b"y"]
    assert list(_parts(message, 4)) == []
    for cut in (1, len(message) - 10):
        with pytest.raises((ValueError, IndexError)):
            _parts(message[:cut], 20)
    with pytest.raises(ValueError, match="a message is cut short"):
        _parts(field(1, 1, b"7 bytes"), 1)
    with pytest.raises(ValueError, match="a message is cut short"):
        _parts(field(1, 3, b""), 1)
    with pytest.raises(ValueError, match="a number without an end"):
        _parts(b"\xff" * 10, 1)
