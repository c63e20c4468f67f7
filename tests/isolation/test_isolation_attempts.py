"""A device that hangs, crashes or raises hides no other: the prober runs once more around it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from probe_core.isolation.launch import (
    LEAST_S,
    MAX_ATTEMPTS,
    Attempts,
    _Launcher,
    new_driver,
    run_probers,
)
from probe_core.isolation.run import CLEANUP_S, NEVER, Run
from probe_core.machine import Machine
from probe_core.registry.prober import Prober

# A library of eight GPUs, whose GPU number N does what `TROUBLE[N]` says.
PLUGIN = """
import signal

TROUBLE = {trouble!r}

def ask(number):
    action = TROUBLE.get(number)
    if action == "hang":
        time.sleep(60)
    elif action == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "raise":
        raise RuntimeError("GPU is lost")
    elif action == "memory":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action:
        time.sleep(action)

@hookimpl
def probe_devices(request):
    for number in range(8):
        name = f"pci:0000:0{{number}}:00.0"
        if name in request.avoid:
            yield {{"ids": [name], "kind": "gpu", "name": "passive"}}
            continue
        request.touching(name)
        ask(number)
        yield {{"ids": [name], "kind": "gpu", "name": "asked"}}
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


@pytest.mark.heavy
@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize(
    ("action", "how", "code"),
    [
        ("hang", "hangs", "driver-hangs"),
        ("crash", "crashes", "driver-crashes"),
        ("memory", "crashes", "driver-crashes"),
        ("raise", "raises", "prober-raises"),
    ],
)
@pytest.mark.parametrize("number", [0, 5])
def test_one_device_of_eight_hides_no_other(
    run_eight: Callable[..., Run], action: str, how: str, code: str, number: int, portable: bool
) -> None:
    start = time.monotonic()
    run = run_eight({number: action}, portable=portable)
    assert time.monotonic() - start < 10.0
    assert names(run) == dict.fromkeys(ALL, "asked") | {ALL[number]: "passive"}
    assert (run.status, run.partial) == ("ok", True)
    (lost,) = run.unresponsive
    assert (lost.device, lost.how) == (ALL[number], how)
    assert run.details["code"] == code
    assert run.details["avoided"] == [ALL[number]]
    assert "another process read the other devices" in str(run.reason)


@pytest.mark.heavy
def test_what_hung_is_named_with_its_line(run_eight: Callable[..., Run]) -> None:
    run = run_eight({0: "hang"})
    assert run.unresponsive[0].stuck_at is not None
    assert run.unresponsive[0].stuck_at.endswith(" in ask")
    assert run.unresponsive[0].stuck_at == run.details["stuck_at"]
    assert run.unresponsive[0].reason.startswith(
        f"its call took longer than 3 s while it asked {ALL[0]} (at File"
    )


def test_how_it_crashed_is_told(run_eight: Callable[..., Run]) -> None:
    run = run_eight({3: "crash"})
    assert run.details["signal"] == "SIGSEGV"
    assert run.unresponsive[0].reason.startswith(
        f"it was killed by SIGSEGV while it asked {ALL[3]}"
    )


@pytest.mark.heavy
def test_several_devices_may_fail(run_eight: Callable[..., Run]) -> None:
    run = run_eight({0: "crash", 2: "hang", 7: "raise"}, deadline_s=5.0)
    assert names(run) == dict.fromkeys(ALL, "asked") | dict.fromkeys(
        [ALL[0], ALL[2], ALL[7]], "passive"
    )
    assert [lost.how for lost in run.unresponsive] == ["crashes", "hangs", "raises"]


@pytest.mark.heavy
def test_restarts_are_bounded(run_eight: Callable[..., Run]) -> None:
    run = run_eight(dict.fromkeys(range(8), "crash"))
    assert run.status == "crashed"
    assert [lost.device for lost in run.unresponsive] == ALL[:MAX_ATTEMPTS]
    # Only what files say is known: no process got as far as a device that answers.
    assert names(run) == dict.fromkeys(ALL[: MAX_ATTEMPTS - 1], "passive")


@pytest.mark.heavy
def test_a_slow_device_is_waited_for(run_eight: Callable[..., Run]) -> None:
    """A GPU without persistence takes seconds for its first call, and then answers."""
    run = run_eight({0: 2.0})  # of 3 s: the second process has answered long before
    assert names(run) == dict.fromkeys(ALL, "asked")
    assert (run.status, run.reason, run.partial) == ("ok", None, False)
    assert run.unresponsive == []
    assert "avoided" not in run.details


@pytest.mark.heavy
def test_a_late_answer_goes_before_what_a_process_says_that_did_not_ask(
    run_eight: Callable[..., Run],
) -> None:
    """The first process is taken for silent over device 0, answers, and hangs over the last."""
    run = run_eight({0: 2.0, 7: "hang"}, deadline_s=6.0)
    assert names(run) == dict.fromkeys(ALL, "asked") | {ALL[7]: "passive"}
    assert run.status == "ok"


@pytest.mark.heavy
def test_slow_progress_is_no_silence(run_eight: Callable[..., Run]) -> None:
    """Eight slow devices that run out of time are a short deadline, and no dead device."""
    run = run_eight(dict.fromkeys(range(8), 0.6), deadline_s=4.0)
    assert run.status == "timeout"
    assert run.unresponsive == []
    assert set(names(run).values()) == {"asked"}


@pytest.mark.heavy
def test_a_device_that_hangs_late_is_not_blamed(run_hook: Callable[..., Run]) -> None:
    """Nobody can tell a dead device from a deadline that was too short for all of them."""
    run = run_hook(
        """
        if request.avoid:
            yield {"ids": ["x:2"], "kind": "gpu"}
            return
        time.sleep(1.7)
        request.touching("x:1")
        time.sleep(60)
        """,
        deadline_s=2.0,
    )
    assert (run.status, run.unresponsive) == ("timeout", [])


def test_a_prober_that_does_not_heed_avoid_ends_as_before(run_source: Callable[..., Run]) -> None:
    source = PLUGIN.format(trouble={1: "crash"}).replace("in request.avoid", "in ()")
    run = run_source(source, deadline_s=5.0)
    assert run.status == "crashed"
    assert names(run) == {ALL[0]: "asked"}
    assert [lost.device for lost in run.unresponsive] == [ALL[1]]


def test_without_an_announcement_nothing_is_guessed(run_source: Callable[..., Run]) -> None:
    source = PLUGIN.format(trouble={1: "crash"}).replace("request.touching(name)", "pass")
    run = run_source(source)
    assert (run.status, run.partial, run.unresponsive) == ("crashed", True, [])


def test_avoid_has_all_ids_that_the_bus_knows(run_hook: Callable[..., Run]) -> None:
    run = run_hook(
        """
        if request.avoid:
            yield {"ids": ["x:1"], "kind": "gpu", "name": " ".join(sorted(request.avoid))}
            return
        request.touching("PCI:01:00.0")
        os._exit(3)
        """,
        bus=[{"ids": ["pci:0000:01:00.0", "uuid:GPU-1"]}, {"ids": ["pci:0000:02:00.0"]}],
    )
    assert run.sightings[0]["name"] == "PCI:01:00.0 pci:0000:01:00.0 uuid:GPU-1"


@pytest.mark.heavy
def test_the_second_process_has_what_remains_of_the_deadline(run_hook: Callable[..., Run]) -> None:
    run = run_hook(
        """
        if request.avoid:
            yield {"ids": ["x:1"], "kind": "gpu", "name": str(request.deadline_s)}
            return
        request.touching("x:0")
        time.sleep(60)
        """,
        deadline_s=2.0,
    )
    assert 1.0 < float(run.sightings[0]["name"]) < 1.6


def test_what_only_the_first_process_reported_is_kept(run_hook: Callable[..., Run]) -> None:
    run = run_hook(
        """
        if request.avoid:
            yield finding("seen", what="w", why="y", fix="f")
            yield {"ids": ["pci:0000:01:00.0"], "kind": "gpu", "name": "second"}
            return
        yield finding("seen", what="w", why="y", fix="f")
        yield {"ids": ["PCI:01:00.0"], "kind": "gpu", "name": "first"}
        yield {"ids": ["pci:0000:02:00.0"], "kind": "gpu", "name": "first"}
        request.touching("x:0")
        os._exit(3)
        """
    )
    assert [s["name"] for s in run.sightings] == ["second", "first"]
    assert len(run.findings) == 1


@pytest.mark.heavy
@pytest.mark.parametrize("device", ["''", "None", "7", "'x' * 300", "['x']"])
def test_what_is_no_id_is_not_watched(run_hook: Callable[..., Run], device: str) -> None:
    run = run_hook(f"request.touching({device})\nos._exit(3)")
    assert (run.status, run.unresponsive) == ("crashed", [])


def test_the_host_observes_every_process(
    make_prober: Callable[..., Prober],
) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    prober = make_prober(PLUGIN.format(trouble={0: "crash"}))
    run_probers([prober], Machine(), (), observe=lambda e, d: events.append((e, dict(d))))
    assert [(e, d.get("attempt"), d["status"]) for e, d in events] == [
        ("started", None, None),
        ("started", 2, None),
        ("finished", 2, "ok"),
        ("finished", None, "ok"),
    ]
    assert events[1][1]["avoid"] == [ALL[0]]


@pytest.mark.heavy
@pytest.mark.parametrize("portable", [False, True])
def test_nothing_leaks(run_eight: Callable[..., Run], portable: bool) -> None:
    run_eight({0: "crash"}, portable=portable)
    before = sorted(os.listdir("/proc/self/fd"))
    run_eight({0: "hang", 4: "crash"}, deadline_s=2.0, portable=portable)
    assert sorted(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_cancelled_probe_has_no_answer(make_prober: Callable[..., Prober]) -> None:
    source = PLUGIN.format(trouble={0: "crash", 1: "hang"})
    read_fd, write_fd = os.pipe()

    def observe(event: str, details: Any) -> None:
        if details.get("attempt") == 2:
            os.write(write_fd, b"x")

    try:
        (run,) = run_probers([make_prober(source)], Machine(), (), wake_fd=read_fd, observe=observe)
        assert run.status is None
    finally:
        os.close(read_fd)
        os.close(write_fd)


CLEANUP = """
try:
    for name in ("x:1", "x:2"):
        request.touching(name)
        yield {"ids": [name], "kind": "gpu"}
    request.done()
finally:
    ACTION
"""


@pytest.mark.heavy
@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize(
    ("action", "code", "reason"),
    [
        ("time.sleep(60)", "shutdown-hangs", "its cleanup took longer than 0.2 s"),
        ("os._exit(3)", "shutdown-fails", "it exited with status 3 after all devices were read"),
        ("1 / 0", "shutdown-fails", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_library_that_fails_at_its_shutdown_costs_nothing(
    run_hook: Callable[..., Run], action: str, code: str, reason: str, portable: bool
) -> None:
    start = time.monotonic()
    run = run_hook(CLEANUP.replace("ACTION", action), portable=portable)
    assert time.monotonic() - start < 5.0  # of 10
    assert (run.status, run.reason, run.partial) == ("ok", reason, False)
    assert run.details["code"] == code
    assert run.details["phase"] == "cleanup"
    assert len(run.sightings) == 2


def test_a_cleanup_that_ends_is_no_news(run_hook: Callable[..., Run]) -> None:
    run = run_hook(CLEANUP.replace("ACTION", "time.sleep(0.01)"))
    assert (run.status, run.reason, run.details) == ("ok", None, {})


@pytest.mark.heavy
def test_a_device_after_done_takes_it_back(run_hook: Callable[..., Run]) -> None:
    run = run_hook(
        """
        yield {"ids": ["x:1"], "kind": "gpu"}
        request.done()
        yield {"ids": ["x:2"], "kind": "gpu"}
        time.sleep(60)
        """,
        deadline_s=1.0,
    )
    assert (run.status, run.details["phase"], len(run.sightings)) == ("timeout", "call", 2)


def test_in_process_an_announcement_does_nothing() -> None:
    from probe_core.api import Request

    request = Request(Machine())
    request.touching("pci:0000:01:00.0")
    request.done()
    assert request.avoid == frozenset()


# The rules, without any process: `Attempts` is asked with runs whose state is set by hand.

A, B, C = ALL[:3]
BUS: list[Any] = [{"ids": [A, "uuid:GPU-1"]}, {"ids": [B]}, {"ids": None}, {}]


def state(**options: Any) -> Run:
    prober = Prober("x", "x")
    prober.deadline_s = 8.0
    return Run(prober, "secret", "mark", 0.0, **options)


def failed(device: str | None, at: float = 2.0, status: str = "crashed", **options: Any) -> Run:
    run = state(**options)
    if device:
        run.patience.touch(device, 1.0)
    run.finish(status, f"it {status}", at)
    return run


def answered(*devices: str, at: float = 3.0, status: str = "ok", **options: Any) -> Run:
    run = state(**options)
    run.sightings += [{"ids": [device]} for device in devices]
    run.finish(status, None, at)
    return run


def test_another_run_goes_around_the_device_over_which_one_failed() -> None:
    attempts = Attempts(failed(A), lambda: BUS)
    another = attempts.attend(2.0)
    assert another is not None
    assert (another.avoid, another.serial) == ({A, "uuid:GPU-1"}, False)
    attempts.runs.append(state(avoid=another.avoid))
    assert attempts.attend(2.0) is None  # which one does already
    attempts.runs[1].patience.touch(B, 2.0)
    attempts.runs[1].finish("crashed", "again", 2.5)
    another = attempts.attend(2.5)
    assert another is not None
    assert another.avoid == {A, "uuid:GPU-1", B}


@pytest.mark.parametrize("run", [state(), failed(None), answered(A), failed(A, status="skipped")])
def test_without_a_device_that_failed_no_other_run_is_needed(run: Run) -> None:
    assert Attempts(run, lambda: BUS).attend(2.0) is None


def test_a_run_that_is_silent_for_too_long_is_not_waited_for() -> None:
    attempts = Attempts(state(), lambda: BUS)
    (first,) = attempts.runs
    first.patience.touch(A, 1.0)
    for now, is_due in ((2.5, False), (2.75, True)):  # a quarter of what remained
        first.pass_time(now)
        assert (attempts.attend(now) is not None) is is_due
    attempts.runs.append(answered(B, at=4.0))
    assert attempts.attend(4.0) is None
    assert (first.status, first.over) == (None, False)  # its own answer would count before
    first.finish("timeout", "it was late", 8.0)
    assert attempts.attend(8.0) is None
    assert attempts.united() is first
    assert [(lost.device, lost.how) for lost in first.unresponsive] == [(A, "hangs")]
    assert first.reason == "it was late; another process read the other devices"
    assert (first.status, first.ended, first.sightings) == ("ok", 8.0, [{"ids": [B]}])
    assert (first.details["code"], first.details["avoided"]) == ("driver-hangs", [A])


def test_the_first_answer_ends_the_other_runs() -> None:
    late = state()
    late.patience.touch(A, 1.0)
    late.pass_time(3.0)
    first = failed(B)
    attempts = Attempts(first, lambda: BUS)
    attempts.runs += [answered(C), late]
    assert attempts.attend(4.0) is None
    assert (late.status, late.ended) == ("skipped", 4.0)
    assert late.reason == "an earlier process of this prober has answered"
    assert attempts.united().status == "ok"


def test_runs_are_no_more_than_allowed_and_end_before_the_deadline() -> None:
    for count, serial, is_due in (
        (MAX_ATTEMPTS - 1, False, True),
        (MAX_ATTEMPTS, False, False),
        (MAX_ATTEMPTS, True, True),
        (MAX_ATTEMPTS + 1, True, False),
    ):
        attempts = Attempts(failed(ALL[0], serial=serial), lambda: [])
        attempts.runs += [failed(device) for device in ALL[1:count]]
        assert (attempts.attend(2.0) is not None) is is_due
    for left, is_due in ((LEAST_S, True), (LEAST_S - 0.001, False)):
        attempts = Attempts(failed(A, deadline=left), lambda: [])
        assert (attempts.attend(0.0) is not None) is is_due


def test_a_host_is_told_of_each_process_once() -> None:
    told: list[tuple[str, object, object, object]] = []

    def observe(event: str, details: Mapping[str, object]) -> None:
        told.append((event, details["status"], details.get("attempt"), details.get("avoid")))

    launcher = _Launcher(new_driver(), Machine(), [], False, observe)
    attempts = Attempts(failed(A), lambda: [])
    attempts.runs += [failed(B, avoid=frozenset((A,))), answered(C, avoid=frozenset((B, A)))]
    launcher.attempts = [attempts]
    for _ in range(2):
        assert launcher.united() == [attempts.runs[0]]
    assert told == [
        ("finished", "crashed", 2, [A]),
        ("finished", "ok", 3, [A, B]),
        ("finished", "ok", None, None),
    ]


def test_of_several_suspects_the_next_run_asks_one_after_the_other() -> None:
    first = state()
    first.patience.ask([(A, None), (B, None)], 1.0)
    first.finish("crashed", "died", 2.0)
    attempts = Attempts(first, lambda: [])
    another = attempts.attend(2.0)
    assert another is not None
    assert (another.avoid, another.serial) == (frozenset(), True)
    attempts.runs.append(state(serial=True))
    assert attempts.attend(2.0) is None
    attempts.runs[1].sightings.append({"ids": [A]})
    attempts.runs[1].finish("ok", None, 3.0)
    united = attempts.united()
    assert united is first
    assert (united.status, united.unresponsive) == ("ok", [])
    assert united.reason == "died; another process asked one after the other"


def test_a_run_that_was_cancelled_has_no_answer() -> None:
    attempts = Attempts(failed(A), lambda: [])
    attempts.runs.append(state())
    assert attempts.united().status is None


def test_of_a_device_that_several_runs_report_those_that_asked_it_know_most() -> None:
    first, second = failed(B), answered(A, avoid=frozenset((B,)))
    first.sightings = [{"ids": [A], "name": "early"}, {"ids": [C]}, "odd", {"ids": [B, 5, "no id"]}]
    second.sightings = [{"ids": [A]}, {"ids": [B], "name": "passive"}]
    first.findings, second.findings = [{"code": "x"}], [{"code": "x"}, {"code": "y"}]
    attempts = Attempts(first, lambda: [])
    attempts.runs.append(second)
    found = attempts.united()
    assert found.sightings == [{"ids": [A]}, {"ids": [C]}, "odd", {"ids": [B, 5, "no id"]}]
    assert found.findings == [{"code": "x"}, {"code": "y"}]


def test_a_cleanup_has_its_own_time_and_costs_no_device() -> None:
    run = answered()
    assert (run.status, run.patience.due) == ("ok", NEVER)
    for sightings, status in (([{"ids": [A]}], "ok"), ([], "not_applicable")):
        run = state()
        run.sightings, run.phase = sightings, "cleanup"
        run.patience.touch(A, 1.0)
        run.patience.clean_up(2.0)
        assert run.due == 2.0 + CLEANUP_S
        run.pass_time(2.0 + CLEANUP_S - 0.001)
        assert not run.over
        run.pass_time(2.0 + CLEANUP_S)
        assert (run.status, run.details["code"]) == (status, "shutdown-hangs")
        assert run.reason == f"its cleanup took longer than {CLEANUP_S:g} s"
