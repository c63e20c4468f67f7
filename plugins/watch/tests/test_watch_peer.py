"""Latency: a refusal is an answer, silence is a bound, and a name that is none has a reason."""

from __future__ import annotations

import socket
import time

import pytest
from watch_samples import sample

from probe_watch.alerts import Alerts, rules_of
from probe_watch.peer import Peer, place_of


def measured(place: tuple[str, int]) -> Peer:
    peer = Peer(place, 0.05)
    before = peer.figure
    peer.start()
    end = time.monotonic() + 60
    while peer.figure is before:
        assert time.monotonic() < end
        time.sleep(0.01)
    peer.close()
    peer._thread.join(60)
    assert not peer._thread.is_alive()
    return peer


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def test_a_refusal_took_the_same_way() -> None:
    figure = measured(("127.0.0.1", free_port())).figure
    assert figure.reason is None
    assert figure.value is not None
    assert 0 < figure.value <= 1000


def test_a_name_that_is_none_has_a_reason() -> None:
    peer = measured(("no-such-host.invalid", 22))
    assert peer.figure.value is None
    assert (peer.figure.reason or "").startswith("no-such-host.invalid:22: ")


@pytest.mark.parametrize("name", ["a..b", "x" * 300], ids=["empty", "long"])
def test_a_label_that_no_codec_takes_has_a_reason(name: str) -> None:
    peer = measured((name, 1))
    assert peer.figure.value is None
    assert "label" in (peer.figure.reason or "")


@pytest.mark.heavy
def test_silence_is_a_bound() -> None:
    """A full queue of connections drops what comes, as a host that is off does."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(4):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(full.getsockname())
            waiting.append(connection)
        figure = measured(full.getsockname()).figure
        for connection in waiting:
            connection.close()
    assert figure.value == 1000


def test_a_peer_is_measured_again_each_interval_by_a_thread_that_keeps_nothing_alive() -> None:
    peer = Peer(("127.0.0.1", free_port()), 0.01)
    assert (peer.figure.value, peer.figure.reason) == (
        None,
        f"{peer.name} was not reached yet",
    )
    assert peer._thread.daemon
    figures = {id(peer.figure): peer.figure}
    peer.start()
    end = time.monotonic() + 60
    while len(figures) < 4:
        assert time.monotonic() < end
        figures[id(peer.figure)] = peer.figure
    peer.close()


def test_latency_is_the_nodes_and_of_no_device() -> None:
    peer = Peer(("desk", 22), 1.0)
    alerts = Alerts(rules_of({"latency": {"seconds": 1}}), peer)
    peer.figure.value = 120.0
    samples = [sample("pci:0000:01:00.0"), sample("node:self")]
    assert alerts.update(0, 0, samples) == []
    (edge,) = alerts.update(1, 1, samples)
    assert (edge.device, edge.rule.name, edge.value) == ("node:self", "latency", 120.0)


def test_places() -> None:
    assert place_of("desk:22") == ("desk", 22)
    assert place_of("[::1]:65535") == ("::1", 65535)
    for text in ("desk", "desk:", ":22", "desk:0", "desk:65536", "desk:2x", "desk:999999", ""):
        assert place_of(text) is None
