"""The pods of devices, asked of a server of gRPC itself in the kubelet's place."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from export_nodes import MIG_NODE, gpu, node
from prometheus_client.parser import text_string_to_metric_families as parsed

from probe_export import ExportError, pods
from probe_export.live import Metrics
from probe_export.prometheus import identities, text

SERVER = Path(__file__).with_name("kubelet.py")

if importlib.util.find_spec("grpc") is None:
    pytest.skip("a server of gRPC stands for the kubelet", allow_module_level=True)


def field(number: int, value: str | bytes) -> bytes:
    """Return one field of Protocol Buffers: its key, its length, its bytes."""
    raw = value.encode() if isinstance(value, str) else value
    size, length = len(raw), b""
    while True:
        size, low = size >> 7, size & 127
        length += bytes([low | 128 if size else low])
        if not size:
            return bytes([number << 3 | 2]) + length + raw


def pod(name: str, *devices: str, namespace: str = "ml", resource: str = "nvidia.com/gpu") -> bytes:
    """Return a PodResources; fields that a newer kubelet adds stand between those that count."""
    given = field(1, resource) + b"".join(field(2, d) for d in devices) + field(3, b"\x08\x01")
    container = (
        field(1, "main") + field(2, given) + b"\x18\x05" + field(4, b"") + b"\x31" + bytes(8)
    )
    return field(1, field(1, name) + field(2, namespace) + field(3, container))


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Return a function that serves an answer at a socket, and returns its path."""
    servers: list[subprocess.Popen[bytes]] = []

    def serve(answer: bytes = b"", delay: float = 0.0, code: str = "") -> str:
        path = str(tmp_path / f"{len(servers)}.sock")
        command = [sys.executable, str(SERVER), path, str(delay), code]
        pipe = subprocess.PIPE
        server = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        servers.append(server)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(answer)
        server.stdin.close()
        assert server.stdout.readline() == b"ready\n"
        return path

    yield serve
    for server in servers:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def told(path: str) -> list[tuple[str, str, str, str, str]]:
    return [
        (one.namespace, one.pod, one.container, one.resource, one.device)
        for one in pods.listed(path, 10.0)
    ]


def test_what_a_server_of_grpc_lists_is_read(kubelet: Callable[..., str]) -> None:
    answer = pod("train", "GPU-1", "GPU-2") + pod("serve", "GPU-2::3", namespace="web")
    assert told(kubelet(answer)) == [
        ("ml", "train", "main", "nvidia.com/gpu", "GPU-1"),
        ("ml", "train", "main", "nvidia.com/gpu", "GPU-2"),
        ("web", "serve", "main", "nvidia.com/gpu", "GPU-2::3"),
    ]
    assert told(kubelet(b"")) == []


def test_a_long_answer_comes_whole(kubelet: Callable[..., str]) -> None:
    """Longer than HTTP/2's window, which the reader must widen."""
    answer = b"".join(pod(f"pod-{number}", f"GPU-{number}") for number in range(5000))
    assert len(answer) > 1 << 18
    assert len(told(kubelet(answer))) == 5000


def test_each_failure_is_a_reason(kubelet: Callable[..., str], tmp_path: Path) -> None:
    refusing = kubelet(code="PERMISSION_DENIED")
    slow = kubelet(pod("train", "GPU-1"), delay=5.0)
    broken = kubelet(pod("train", "GPU-1")[:-3])
    for path, seconds in (
        (refusing, 10.0),
        (slow, 0.2),
        (broken, 10.0),
        (str(tmp_path / "x"), 1.0),
    ):
        began = time.monotonic()
        with pytest.raises(ExportError, match=path):
            pods.listed(path, seconds)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(100)])
def test_what_is_no_http2_is_a_reason(answer: bytes, tmp_path: Path) -> None:
    path = str(tmp_path / "odd.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()

        def reply() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(ExportError, match=path):
            pods.listed(path, 10.0)
        thread.join(10)


@pytest.mark.parametrize(
    "message", [b"\x0a", b"\x0a\xff", b"\x0a\x05ab", b"\x80" * 20, b"\x0b", b"\x09\x01"]
)
def test_a_message_that_is_cut_raises(message: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        pods._parts(message, 1)


def joined(report: Any, *given: tuple[str, str]) -> set[str]:
    one = [pods.Assignment(name, "ml", "main", "nvidia.com/gpu", device) for name, device in given]
    written = text(pods.families(one, identities(report)))
    return {line for line in written.splitlines() if line[0] != "#"}


def test_each_name_of_a_device_finds_its_series(tmp_path: Path) -> None:
    """The UUID of NVIDIA's plugin, shared in time or not, GKE's node, AMD's PCI address."""
    report = node(MIG_NODE, tmp_path)
    first = "GPU-00000000-0000-0000-0000-000000000001"
    instance = "MIG-00000000-0000-0000-0000-000000000021"

    def row(pod: str, device: str, kind: str = "device") -> str:
        rest = f'namespace="ml",pod="{pod}",container="main",resource="nvidia.com/gpu"'
        return f"probecore_{kind}_pod_info{{{device},{rest}}} 1"

    card = 'device="0000:01:00.0"'
    assert joined(report, ("a", first)) == {row("a", card)}
    assert joined(report, ("a", f"{first}::0"), ("b", f"{first}::1")) == {
        row("a", card),
        row("b", card),
    }
    assert joined(report, ("a", f"{first}::0"), ("a", f"{first}::1")) == {row("a", card)}
    assert joined(report, ("a", "nvidia0")) == {row("a", card)}
    assert joined(report, ("a", "0000:01:00.0")) == {row("a", card)}
    assert joined(report, ("a", "nvidia1/gi7")) == {row("a", 'device="0000:02:00.0"')}
    part = 'device="0000:02:00.0",partition="3g.40gb.0"'
    assert joined(report, ("a", instance)) == {row("a", part, "partition")}
    assert joined(report, ("a", "GPU-of-another-node"), ("a", "")) == set()


def test_the_endpoint_joins_pods_and_outlives_the_kubelet(
    kubelet: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    path = kubelet(pod("train", uuid))
    monkeypatch.setattr(pods, "SOCKET", path)
    monkeypatch.setattr(pods.listed, "__defaults__", (path, 10.0))
    report = node([gpu(1, "NVIDIA L4")], tmp_path)
    notes: list[str] = []
    metrics = Metrics(lambda: report, note=notes.append)
    metrics.publish(1.0, ())
    end = time.monotonic() + 20
    labels: list[dict[str, str]] = []
    while not labels:
        assert time.monotonic() < end
        families = parsed(metrics.text("")[0].decode())
        labels = [s.labels for f in families for s in f.samples if s.name.endswith("_pod_info")]
    assert labels == [
        {"device": "0000:01:00.0", "namespace": "ml", "pod": "train", "container": "main",
         "resource": "nvidia.com/gpu"}
    ]  # fmt: skip
    assert metrics._pods is not None
    monkeypatch.setattr(pods.listed, "__defaults__", (f"{path}.gone", 10.0))
    metrics._pods._due = 0.0
    while not metrics._pods.failed:
        assert time.monotonic() < end
        metrics.text("")
    assert "_pod_info{" in metrics.text("")[0].decode()  # the last answer stays
    assert len(notes) == 1
    assert notes[0].endswith(".gone: [Errno 2] No such file or directory")
