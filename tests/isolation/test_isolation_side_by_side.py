"""Cards that are asked side by side: the same answers in the same order, and each failure named."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from probe_core import api, fastpath, side_by_side
from probe_core.api import Request, SampleRequest, ask_each
from probe_core.isolation.run import Run
from probe_core.machine import Machine

# A library of eight GPUs that takes 5 ms for each, whose GPU number N does what `TROUBLE[N]` says.
PLUGIN = """
import signal
from probe_core.api import ask_each

TROUBLE = {trouble!r}

def call(number):
    action = TROUBLE.get(number)
    if action == "hang":
        time.sleep(60)
    elif action == "crash":
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "crash-together" and not SERIAL[0]:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "raise":
        raise RuntimeError("GPU is lost")
    elif isinstance(action, float):
        time.sleep(action)
    elif "crash-together" in TROUBLE.values() and number and not SERIAL[0]:
        time.sleep(60)  # still being asked when the other one crashes
    time.sleep(0.005)

def ask(number, may_ask):
    name = f"pci:0000:0{{number}}:00.0"
    if may_ask:
        call(number)
    yield {{"ids": [name], "kind": "gpu", "name": "asked" if may_ask else "passive"}}

SERIAL = []

@hookimpl
def probe_devices(request):
    SERIAL.append(request.serial)
    yield from ask_each(request, range(8), ask, lambda number: f"pci:0000:0{{number}}:00.0")
"""
ALL = [f"pci:0000:0{number}:00.0" for number in range(8)]


@pytest.fixture
def run_eight(run_source: Callable[..., Run]) -> Callable[..., Run]:
    """Return a function that runs the library of eight GPUs with the trouble of some of them."""

    def run(trouble: dict[int, Any], deadline_s: float = 3.0, **options: Any) -> Run:
        return run_source(PLUGIN.format(trouble=trouble), deadline_s=deadline_s, **options)

    return run


def names(run: Run) -> dict[str, str]:
    return {sighting["ids"][0]: sighting["name"] for sighting in run.sightings}


def in_process(ask: Callable[..., Any], **options: Any) -> tuple[list[Any], list[Any]]:
    """Return what `ask_each` yields of eight cards, and what it announces."""
    heard: list[Any] = []
    request = Request(
        Machine(), announce=lambda kind, device: heard.append((kind, device)), **options
    )
    return list(ask_each(request, range(8), ask, lambda number: f"x:{number}")), heard


def slow(number: int, may_ask: bool) -> Iterator[tuple[int, bool, int]]:
    yield number, may_ask, threading.get_ident()
    time.sleep(0.004)


def test_a_slow_driver_is_asked_side_by_side_and_answers_in_order() -> None:
    def last_is_first(number: int, may_ask: bool) -> Iterator[tuple[int, int]]:
        time.sleep(0.005 + 0.02 * (8 - number))
        yield number, threading.get_ident()

    items, heard = in_process(last_is_first)
    assert [number for number, _ in items] == list(range(8))
    assert len({thread for _, thread in items}) == 8
    assert items[0][1] == threading.get_ident()
    assert heard[0] == ("touching", "x:0")
    assert heard[1] == ("asking", [[f"x:{number}", None] for number in range(1, 8)])
    assert heard[-1] == ("asking", [])


def test_a_driver_that_answers_at_once_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "monotonic", lambda: 1.0)
    monkeypatch.setattr(side_by_side, "start_thread", pytest.fail)
    items, heard = in_process(slow)
    assert [number for number, _, _ in items] == list(range(8))
    assert {thread for _, _, thread in items} == {threading.get_ident()}
    assert heard == [("touching", f"x:{number}") for number in range(8)]


@pytest.mark.skipif(sys.platform != "linux", reason="the waits of a thread are counted there")
def test_time_of_other_programs_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(api, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(api, "thread_time", lambda: 1.0)

    def ask(number: int, may_ask: bool) -> Iterator[int]:
        yield threading.get_ident()

    # Another thread of this process may make this one wait.
    assert any(set(in_process(ask)[0]) == {threading.get_ident()} for _ in range(20))


def test_a_driver_that_works_for_long_is_asked_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(api, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(api, "thread_time", lambda: float(next(seconds)))

    def ask(number: int, may_ask: bool) -> Iterator[int]:
        yield threading.get_ident()

    assert len(set(in_process(ask)[0])) > 1


@pytest.mark.parametrize("request_type", [Request, SampleRequest])
def test_a_serial_request_starts_no_thread(
    request_type: type[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "start_thread", pytest.fail)
    options: dict[str, Any] = {"serial": True} if request_type is Request else {}
    request = request_type(Machine(), **options)
    items = list(ask_each(request, range(3), slow, str))
    assert {thread for _, _, thread in items} == {threading.get_ident()}


def test_two_cards_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one waits for nobody."""
    monkeypatch.setattr(side_by_side, "start_thread", pytest.fail)
    assert len(list(ask_each(Request(Machine()), range(2), slow, str))) == 2


def test_cards_to_avoid_keep_their_places_and_are_asked_in_no_thread() -> None:
    items, heard = in_process(slow, avoid=["x:2", "x:7"])
    assert [(number, may_ask) for number, may_ask, _ in items] == [
        (number, number not in (2, 7)) for number in range(8)
    ]
    assert {t for number, _, t in items if number in (2, 7)} == {threading.get_ident()}
    assert heard[1] == ("asking", [[f"x:{number}", None] for number in (1, 3, 4, 5, 6)])


def test_a_thread_renames_its_own_card_alone() -> None:
    request: list[Request] = []

    def rename(number: int, may_ask: bool) -> Iterator[int]:
        request[0].touching(f"uuid:{number}")
        time.sleep(0.005 + 0.1 * (number == 7))
        yield number

    heard: list[Any] = []
    request.append(Request(Machine(), announce=lambda kind, device: heard.append((kind, device))))
    assert list(ask_each(request[0], range(8), rename, lambda n: f"x:{n}")) == list(range(8))
    assert [device for kind, device in heard if kind == "touching"] == ["x:0", "uuid:0"]
    assert ("asking", [["uuid:7", None]]) in heard
    assert request[0]._announce is not None
    request[0].touching("x:again")  # announced by the caller's thread as ever
    assert heard[-1] == ("touching", "x:again")


def test_what_one_card_raises_comes_in_its_place() -> None:
    def fail(number: int, may_ask: bool) -> Iterator[int]:
        time.sleep(0.005)
        yield number
        if number == 3:
            raise LookupError("gone")

    heard: list[Any] = []
    request = Request(Machine(), announce=lambda kind, device: heard.append((kind, device)))
    items: list[int] = []
    with pytest.raises(LookupError, match="gone"):
        items.extend(ask_each(request, range(8), fail, lambda number: f"x:{number}"))
    assert items == [0, 1, 2, 3]
    assert heard[-1] == ("touching", "x:3")


def test_more_cards_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "MOST", 2)
    items, heard = in_process(slow)
    assert [number for number, _, _ in items] == list(range(8))
    assert len({thread for _, _, thread in items}) == 3
    asked = [len(devices) for kind, devices in heard if kind == "asking"]
    assert max(asked) == 2


@pytest.mark.parametrize("room", [0, 1])
def test_where_threads_cannot_be_started_fewer_ask(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    def start(function: Callable[..., object], *arguments: object) -> None:
        if len(started) >= room:
            raise RuntimeError("can't start new thread")
        started.append(function)
        fastpath.start_thread(function, *arguments)

    monkeypatch.setattr(side_by_side, "start_thread", start)
    items, _ = in_process(slow)
    assert [number for number, _, _ in items] == list(range(8))
    assert len({thread for _, _, thread in items}) == 1 + room


def test_seven_are_delivered_and_the_one_that_hangs_is_named_with_its_line(
    run_eight: Callable[..., Run],
) -> None:
    run = run_eight({5: "hang"}, deadline_s=2.0)
    assert names(run) == dict.fromkeys(ALL, "asked") | {ALL[5]: "passive"}
    assert (run.status, run.partial) == ("ok", True)
    (lost,) = run.unresponsive
    assert (lost.device, lost.how) == (ALL[5], "hangs")
    assert str(lost.stuck_at).endswith(" in call")
    assert lost.reason.startswith(f"its call took longer than 2 s while it asked {ALL[5]} (at File")
    assert run.details["avoided"] == [ALL[5]]


@pytest.mark.heavy
def test_the_first_process_alone_brings_all_but_the_one_that_hangs(
    run_source: Callable[..., Run],
) -> None:
    """A prober that asks what it must avoid: no other process helps."""
    source = PLUGIN.format(trouble={5: "hang"})
    source = source.replace("    SERIAL", "    request.avoid = frozenset()\n    SERIAL")
    run = run_source(source, deadline_s=1.5)
    assert run.status == "timeout"
    assert names(run) == dict.fromkeys([n for n in ALL if n != ALL[5]], "asked")


@pytest.mark.heavy
@pytest.mark.parametrize("portable", [False, True])
def test_a_crash_beside_others_is_found_one_by_one(
    run_eight: Callable[..., Run], portable: bool
) -> None:
    run = run_eight({5: "crash", 6: 0.5, 7: 0.5}, deadline_s=10.0, portable=portable)
    assert names(run) == dict.fromkeys(ALL, "asked") | {ALL[5]: "passive"}
    assert run.status == "ok"
    (lost,) = run.unresponsive
    assert (lost.device, lost.how) == (ALL[5], "crashes")
    assert lost.reason.startswith(f"it was killed by SIGSEGV while it asked {ALL[5]}")


@pytest.mark.heavy
def test_three_that_hang_are_found_one_by_one(run_eight: Callable[..., Run]) -> None:
    run = run_eight(dict.fromkeys((2, 5, 6), "hang"), deadline_s=8.0)
    assert names(run) == dict.fromkeys(ALL, "asked") | dict.fromkeys(
        [ALL[2], ALL[5], ALL[6]], "passive"
    )
    assert run.status == "ok"
    assert [lost.device for lost in run.unresponsive] == [ALL[2], ALL[5], ALL[6]]


def test_what_crashes_in_threads_alone_blames_no_card(run_eight: Callable[..., Run]) -> None:
    run = run_eight({5: "crash-together"}, deadline_s=5.0)
    assert names(run) == dict.fromkeys(ALL, "asked")
    assert (run.status, run.unresponsive) == ("ok", [])
    assert str(run.reason).endswith("; another process asked one after the other")
    assert "avoided" not in run.details


@pytest.mark.heavy
def test_one_that_raises_beside_others_costs_itself(run_eight: Callable[..., Run]) -> None:
    run = run_eight({5: "raise"}, deadline_s=5.0)
    assert names(run) == dict.fromkeys(ALL, "asked") | {ALL[5]: "passive"}
    (lost,) = run.unresponsive
    assert (lost.device, lost.how) == (ALL[5], "raises")


@pytest.mark.heavy
def test_slow_cards_that_show_life_are_waited_for(run_source: Callable[..., Run]) -> None:
    """A driver that serves one thread at a time: a card takes more than a quarter of the time."""
    line = "    time.sleep(0.3 if number else 0.01)\n"
    source = PLUGIN.format(trouble={}).replace("    time.sleep(0.005)\n", 4 * line)
    observed: list[str] = []
    run = run_source(source, deadline_s=4.0, observe=lambda event, details: observed.append(event))
    assert names(run) == dict.fromkeys(ALL, "asked")
    assert (run.status, run.reason) == ("ok", None)
    assert observed == ["started", "finished"]
