"""The endpoint against clients that waste its connections, and against a probe that hangs."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from probe_export import serve
from probe_export.serve import Endpoint, NotYet

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
PLACES = 32


@contextmanager
def served(make: object, max_age: float = 15.0, host: str = "127.0.0.1") -> Iterator[int]:
    endpoint = Endpoint((host, 0), make, PLAIN, max_age)  # type: ignore[arg-type]
    ended = threading.Event()
    thread = threading.Thread(target=endpoint.serve_until, args=(ended,))
    thread.start()
    try:
        yield int(endpoint.url.rpartition(":")[2].partition("/")[0])
    finally:
        ended.set()
        thread.join(20)
    assert not thread.is_alive()


def scrape(port: int, at: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(at, port, timeout=20)
    try:
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def half_a_request(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127")
    return connection


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.0)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_before_there_is_a_text_a_scrape_is_told_to_come_again() -> None:
    texts: list[str] = []

    def make() -> str:
        if not texts:
            raise NotYet
        return texts[0]

    with served(make, max_age=0.0) as port:
        for method in ("GET", "HEAD"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request(method, "/metrics")
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert answer.read() == b""
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b"ok\n"
            connection.close()
        texts.append("up 1\n")
        assert scrape(port) == (200, "up 1\n")


@pytest.mark.heavy
def test_half_requests_on_every_place_give_way_to_a_scrape() -> None:
    with served(lambda: "up 1\n") as port:
        silent = [half_a_request(port) for _ in range(3 * PLACES)]
        try:
            assert [scrape(port) for _ in range(10)] == [(200, "up 1\n")] * 10
            assert sum(map(is_open, silent)) <= PLACES
        finally:
            for connection in silent:
                connection.close()


@pytest.mark.heavy
def test_a_byte_now_and_then_does_not_hold_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_READ_S", 0.5)
    with served(lambda: "up 1\n") as port, half_a_request(port) as drip:
        until = time.monotonic() + 20
        while is_open(drip):
            assert time.monotonic() < until, "a request without an end is never closed"
            with suppress(OSError):
                drip.sendall(b"x")
            time.sleep(0.05)
        assert scrape(port) == (200, "up 1\n")


def test_a_probe_that_hangs_costs_a_scrape_no_new_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_REFRESH_S", 0.2)
    released = threading.Event()
    calls: list[int] = []

    def make() -> str:
        calls.append(len(calls))
        if len(calls) == 1:
            return "first 1\n"
        assert released.wait(60)
        return "second 1\n"

    with served(make, max_age=0.0) as port:
        assert scrape(port) == (200, "first 1\n")
        assert scrape(port) == (200, "first 1\n")
        released.set()
        monkeypatch.setattr(serve, "_REFRESH_S", 20.0)
        assert scrape(port) == (200, "second 1\n")


def test_a_text_that_cannot_be_made_is_tried_again() -> None:
    results = iter([ValueError("broken"), "up 1\n"])

    def make() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    with served(make) as port:
        assert scrape(port) == (500, "")
        assert scrape(port) == (200, "up 1\n")


def test_each_address_of_loopback_can_be_listened_on_and_is_checked() -> None:
    with served(lambda: "up 1\n", host="127.0.0.2") as port:
        assert scrape(port, "127.0.0.2") == (200, "up 1\n")
        assert scrape(port, "127.0.0.2", Host=f"LOCALHOST:{port}")[0] == 200
        assert scrape(port, "127.0.0.2", Host=f"127.0.0.2.attacker.example:{port}")[0] == 403
        assert scrape(port, "127.0.0.2", Host="")[0] == 403


def test_ipv6_can_be_listened_on() -> None:
    try:
        with socket.socket(socket.AF_INET6) as free:
            free.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    with served(lambda: "up 1\n", host="::1") as number:
        assert scrape(number, "::1") == (200, "up 1\n")
        assert scrape(number, "::1", Host="attacker.example")[0] == 403


def test_the_dns_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda *_: pytest.fail("the DNS may answer late"))
    with served(lambda: "up 1\n") as port:
        assert scrape(port) == (200, "up 1\n")
