"""The endpoint against clients that waste its connections, and against a probe that hangs."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from probe_export import serve
from probe_export.live import Renewed
from probe_export.serve import Endpoint, NotYet

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
PLACES = 32


@contextmanager
def served(make: Callable[[], str], host: str = "127.0.0.1") -> Iterator[int]:
    with Endpoint((host, 0), lambda accept: (make().encode(), PLAIN)) as endpoint:
        yield int(endpoint.url.rpartition(":")[2].partition("/")[0])
    assert not endpoint._thread.is_alive()


def ask(port: int, text: bytes, at: str = "127.0.0.1") -> bytes:
    """Return what a request, written byte by byte as it is, is answered with."""
    with socket.create_connection((at, port), timeout=20) as connection:
        connection.sendall(text)
        return b"".join(iter(lambda: connection.recv(4096), b""))


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

    with served(make) as port:
        for method in ("GET", "HEAD"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request(method, "/metrics")
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert answer.read() == b""
            connection.close()
        healthy = ask(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert healthy.endswith(b"\r\n\r\nok\n")
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
    monkeypatch.setattr(serve, "_WHOLE_S", 0.5)
    with served(lambda: "up 1\n") as port, half_a_request(port) as drip:
        until = time.monotonic() + 20
        while is_open(drip):
            assert time.monotonic() < until, "a request without an end is never closed"
            with suppress(OSError):
                drip.sendall(b"x")
            time.sleep(0.05)
        assert scrape(port) == (200, "up 1\n")


def test_a_value_that_is_made_anew_keeps_nobody_waiting() -> None:
    released, calls = threading.Event(), iter(["first", "second"])

    def make() -> str:
        value = next(calls)
        assert value == "first" or released.wait(60)
        return value

    renewed = Renewed(make, max_age=0.0)
    renewed.begin()
    until(lambda: renewed.last == "first")
    for _ in range(100):
        renewed.begin()  # and no third call, for which there is no value
        assert renewed.last == "first"
    released.set()
    until(lambda: renewed.last == "second")


def test_what_cannot_be_made_is_tried_again_and_the_last_stays() -> None:
    results = iter(["old", ValueError("broken"), "new"])

    def make() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    renewed = Renewed(make, max_age=0.0)
    renewed.begin()
    until(lambda: renewed.last == "old")
    renewed.begin()
    until(lambda: renewed.failed)
    assert renewed.last == "old"
    renewed.begin()
    until(lambda: renewed.last == "new" and not renewed.failed)


def test_an_answer_that_fails_is_500_and_the_next_is_well() -> None:
    results = iter([ValueError("broken"), "up 1\n"])

    def make() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    with served(make) as port:
        assert scrape(port) == (500, "")
        assert scrape(port) == (200, "up 1\n")


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /metrics?name[]=x HTTP/1.0\r\nhOsT: [::1]:9\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /metrics/.. HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET /metrics HTTP/1.1\r\nHost: metrics.attacker.example\r\n\r\n", 403),
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.attacker.example:80\r\n\r\n", 403),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n", 403),
        (b"GET /metrics HTTP/1.1\r\nHost: attacker.example\r\nHost: localhost\r\n\r\n", 403),
        (b"GET http://attacker.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 403),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /metrics SSH-2.0\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /\xff\r\n HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: a\nX: y\r\n\r\n", 400),
    ],
)
def test_each_request_has_its_status(request_text: bytes, status: int) -> None:
    with served(lambda: "up 1\n") as port:
        answer = ask(port, request_text)
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert body == (b"up 1\n" if status == 200 else b"")
        assert b"Content-Length: %d\r\n" % len(body) in head
        assert b"attacker" not in answer


def test_a_request_without_an_end_is_cut() -> None:
    with served(lambda: "up 1\n") as port:
        with suppress(ConnectionError):
            assert ask(port, b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 10_000) == b""
        assert scrape(port) == (200, "up 1\n")


@pytest.mark.heavy
def test_a_thousand_connections_leave_room_for_a_scrape() -> None:
    """Each is open and silent, or asks and reads nothing; a scrape is answered among them."""
    with served(lambda: "up 1\n" * 50_000) as port:
        crowd = []
        try:
            for number in range(1000):
                connection = socket.create_connection(("127.0.0.1", port), timeout=20)
                crowd.append(connection)
                if number % 2:
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if number % 100 == 99:
                    assert scrape(port)[0] == 200
            assert len(os.listdir("/proc/self/fd")) < 1000 + 4 * PLACES
            assert threading.active_count() < 10
        finally:
            for connection in crowd:
                connection.close()
        assert scrape(port)[0] == 200


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.002)


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
