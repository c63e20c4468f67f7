"""A sampler's process as its parent sees it, what counts of its samples, and what a round does."""

from __future__ import annotations

import gc
import os
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.isolation import MAX_DEVICES
from probe_core.isolation.resident import LONGEST, Resident
from probe_core.isolation.wire import frame
from probe_core.machine import Machine
from probe_core.registry.prober import Prober
from probe_core.sampling.collect import Samples
from probe_core.sampling.cpu import CpuSampler
from probe_core.sampling.engine import Engine
from probe_core.sampling.roster import Roster
from probe_core.sampling.rounds import Rhythm, Round, Rounds
from probe_core.sampling.sampler import Source, failure_message

GPU, OTHER, THIRD = (f"pci:0000:0{number}:00.0" for number in (1, 2, 3))

ACME = Prober("acme", "acme", "acme")
ACME.deadline_s = 10.0

SLEEPS = "it sleeps, and asking would wake it"


def message(number: int) -> Any:
    return failure_message(number, frozenset(), frozenset())


def process() -> Resident:
    return Resident(ACME, "t", "m", 100.0, message(1))


def feed(run: Resident, now: float, *frames: tuple[str, dict[str, Any]]) -> None:
    for kind, fields in frames:
        run.feed(run.token + b" " + frame(kind, fields).encode() + b"\n", now)


HELLO, LOADED = ("hello", {"pid": 5}), ("loaded", {})


def sample(device: str = GPU) -> tuple[str, dict[str, Any]]:
    return "sample", {"sample": {"device": device}}


def test_what_a_process_is_asked() -> None:
    assert failure_message(7, frozenset({"b", "a"}), frozenset({"d", "c"})) == {
        "number": 7, "seconds": 2.0, "avoid": ["a", "b"], "asleep": ["c", "d"], "close": False,
    }  # fmt: skip
    run = process()
    feed(run, 101.0, HELLO, LOADED, ("touching", {"device": GPU}))
    run._strays = 64 << 10
    run.begin(message(2), 102.0)
    assert run.patience.device is None, "what was asked then is not asked now"
    run.feed(b"noise\n", 102.0)
    assert not run.over, "noise is counted anew each round"


def test_a_round_of_a_process() -> None:
    run = process()
    assert (run.initial, run.over, run.due, run.seconds) == (True, False, 110.0, 10.0)
    feed(run, 103.0, HELLO, LOADED, ("touching", {"device": GPU}))
    # The device has its own time, and the import is over.
    assert (run.patience.device, run.due) == (GPU, 105.0)
    feed(run, 104.0, sample())
    assert (run.patience.device, run.due, run.samples) == (None, 106.0, [{"device": GPU}])
    feed(run, 104.5, ("round", {"number": 2, "status": "ok"}))
    assert not run.over, "it is the answer to another round"
    feed(run, 104.5, ("touching", {"device": OTHER}))
    feed(run, 104.6, ("round", {"number": 1, "status": "call_error", "reason": "x"}))
    assert (run.over, run.answer, run.answered_device) == (True, ("call_error", "x"), OTHER)
    assert (run.status, run.patience.device) == (None, None)
    run.begin(message(2), 200.0)
    assert (run.initial, run.over, run.samples, run.answer, run.answered_device, run.due) == (
        False, False, [], None, None, 202.0,
    )  # fmt: skip
    run.pass_time(201.9)
    assert not run.over
    run.pass_time(202.0)
    assert (run.status, run.reason) == ("timeout", "its round took longer than 2 s")


def test_many_slow_devices_have_time_and_a_flood_has_an_end() -> None:
    run = process()
    feed(run, 101.0, HELLO, LOADED)
    feed(run, 102.0, ("round", {"number": 1, "status": "ok"}))
    run.begin(message(2), 200.0)
    for second in range(1, 10):
        feed(run, 200.0 + second, ("touching", {"device": GPU}))
        assert run.due == min(200.0 + second + 2, 200.0 + 2 * LONGEST)
    run.pass_time(210.0)
    assert (run.status, run.reason) == ("timeout", f"its round took longer than 2 s over {GPU}")
    run = process()
    feed(run, 101.0, HELLO)
    run.pass_time(110.0)
    assert run.reason == "importing its module took longer than 10 s"
    run = process()
    feed(run, 101.0, HELLO, LOADED, *[sample()] * MAX_DEVICES)
    assert (len(run.samples), run.over) == (MAX_DEVICES, False)
    feed(run, 101.0, sample())
    assert (run.status, run.reason) == ("resource", f"more than {MAX_DEVICES} samples")
    run = process()
    feed(run, 101.0, HELLO, LOADED, ("oversize", {"of": "sample", "bytes": 9_000_000}))
    assert list(run.samples[0].values()) == ["a sample of 9000000 bytes"]


# What counts of the samples.


def test_of_a_device_the_first_sampler_counts_and_the_node_is_the_cores() -> None:
    roster = Roster(Machine("/nowhere"), [GPU, OTHER, "node:self"])
    listed = roster.enlist({"id": GPU, "ids": [GPU, "uuid:GPU-1"], "kind": "gpu"})
    found = Samples(roster)
    found.begin()
    added = found.add("acme", [{"device": "uuid:GPU-1", "busy": 0.5}, {"device": "node:self"}])
    assert [(entry is listed, each["device"], each["busy"]) for entry, each in added] == [
        (True, GPU, 0.5)
    ]
    assert listed is not None
    assert listed.sampled
    # Of a device that nobody asked for there is none; twice is a mistake, of another is none.
    assert found.add("slow", [{"device": GPU, "busy": 0.1}, {"device": THIRD}]) == []
    twice = found.add("slow", [{"device": OTHER}, {"device": OTHER, "busy": 7.0}, "x"])
    assert [entry.id for entry, _ in twice] == [OTHER]
    assert [(s["device"], s["busy"]) for s in found.ordered()] == [(GPU, 0.5), (OTHER, None)]
    assert [(f["code"], f["prober"], f["device"], f["why"].partition(": ")[0])
            for f in found.findings] == [
        ("value-rejected", "acme", "node:self", "device"),
        ("value-rejected", "slow", None, "busy"),
        ("value-rejected", "slow", OTHER, "device"),
        ("value-rejected", "slow", None, "sample"),
    ]  # fmt: skip
    assert [f["why"] for f in found.findings][0::2] == [
        "device: node:self is sampled by the core alone",
        f"device: {OTHER} is in a round twice",
    ]
    assert found.missing() == []
    found.begin()
    assert ([entry.id for entry in found.missing()], found.findings) == ([GPU, OTHER], [])


@pytest.mark.parametrize(
    ("kind", "selected", "sampled", "is_shown"),
    [
        ("gpu", None, False, True),
        ("cpu", None, False, True),
        ("display", None, False, False),
        ("display", None, True, True),  # a sampler knows it
        ("display", [GPU], False, True),
        ("gpu", [OTHER], True, False),
    ],
)
def test_which_devices_a_round_shows(
    kind: str, selected: list[str] | None, sampled: bool, is_shown: bool
) -> None:
    roster = Roster(Machine("/nowhere"), selected)
    entry = roster.enlist({"id": GPU, "ids": [GPU], "kind": kind, "pci": {"id": "10de:2330"}})
    assert entry is not None
    entry.sampled = sampled
    assert (roster.shows(entry), entry.vendor) == (is_shown, "10de")
    assert [*roster.unwanted()] == ([GPU] if selected == [OTHER] else [])


def test_devices_are_known_by_any_id_and_forgotten_with_all() -> None:
    roster = Roster(Machine("/nowhere"))
    assert roster.enlist({"id": GPU, "ids": "x"}) is None
    assert roster.enlist({"id": "", "ids": [5, ""]}) is None
    entry = roster.enlist({"id": "uuid:GPU-1", "ids": ["uuid:GPU-1", GPU], "kind": "gpu"})
    assert entry is not None
    assert (entry.id, entry.vendor) == ("uuid:GPU-1", "")
    assert entry.folder == "/sys/bus/pci/devices/0000:01:00.0"
    assert roster.add([GPU, "uuid:GPU-2"], None, listed=False) is entry
    assert roster.get("uuid:GPU-2") is entry
    roster.remove("uuid:GPU-9")
    roster.remove("uuid:GPU-1")
    assert [roster.get(name) for name in ("uuid:GPU-1", "uuid:GPU-2", GPU)] == [None] * 3
    assert roster.entries == []


# The iterator around an engine.


class Ends:
    """An engine that counts how often it is closed, and fails where it is told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.closed = 0
        self.error = error

    def close(self) -> None:
        self.closed += 1

    def observe(self, number: int, is_cancelled: Any, wake_fd: int) -> Any:
        if self.error is not None:
            raise self.error
        return [], [], []


def rounds_of(ends: Ends, count: int | None = None) -> Rounds:
    made: Any = lambda: ends  # noqa: E731
    return Rounds(made, Rhythm(0.0), count)


def test_processes_end_with_the_last_round() -> None:
    ends = Ends()
    rounds = rounds_of(ends, 2)
    assert ([each.number for each in rounds], ends.closed) == ([1, 2], 1)
    rounds.close()
    assert (list(rounds), ends.closed) == ([], 1)


def test_processes_end_with_an_exception_a_block_and_the_iterator() -> None:
    ends = Ends(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        next(rounds_of(ends))
    assert ends.closed == 1
    ends = Ends()
    with rounds_of(ends) as rounds:
        assert next(rounds).number == 1
        assert ends.closed == 0
    assert ends.closed == 1
    ends = Ends()
    rounds = rounds_of(ends)
    next(rounds)
    del rounds
    gc.collect()
    assert ends.closed == 1


def test_who_is_woken_has_no_round_and_no_process() -> None:
    read, write = os.pipe()
    ends = Ends()
    rounds = rounds_of(ends)
    assert rounds.advance(read) is not None
    os.write(write, b"x")
    assert (rounds.advance(read), ends.closed) == (None, 1)
    # Woken while the round was asked for: it is whole, and nobody waits for it any more.
    ends = Ends()
    rounds = rounds_of(ends)
    os.read(read, 1)
    ends.observe = lambda *_: (os.write(write, b"x"), [], [])  # type: ignore[method-assign]
    assert (rounds.advance(read), ends.closed) == (None, 1)
    os.close(read), os.close(write)


def test_a_round_has_each_sample_by_its_device() -> None:
    found = Samples(Roster(Machine("/nowhere")))
    found.begin()
    found.add("acme", [{"device": GPU, "busy": 0.5}, {"device": OTHER}])
    look = Round(3, 5.0, found.ordered())
    assert [sample.device for sample in look.samples] == [GPU, OTHER]
    one = look.sample(GPU)
    assert one is not None
    assert (one.busy, one["busy"], look.sample(THIRD)) == (0.5, 0.5, None)
    assert repr(look) == "Round(3, 2 samples, 0 events)"


@pytest.mark.parametrize(
    ("chips", "places"),
    [
        ([("coretemp", "Package id 0"), ("coretemp", "Package id 1")], (0, 1)),
        ([("coretemp", "Package id 1"), ("coretemp", "Package id 0")], (1, 0)),
        ([("k10temp", "Tctl"), ("k10temp", "Tctl")], (0, 1)),
        ([("zenpower", "Tdie")], (0, None)),
        ([("acpitz", "Tctl"), ("k10temp", "Tdie")], (1, None)),
        ([("cpu_thermal", None), ("soc_thermal", None)], (0, 1)),
        ([("coretemp", "Core 0"), ("k10temp", "Tctl")], (1, None)),
    ],
)
def test_the_sensor_of_a_package(
    chips: list[tuple[str, str | None]], places: tuple[int | None, int | None], tmp_path: Any
) -> None:
    for number, (name, label) in enumerate(chips):
        folder = tmp_path / f"sys/class/hwmon/hwmon{number}"
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "temp1_input").write_text(f"{number + 40}000\n")
        if label is not None:
            (folder / "temp1_label").write_text("Core 7\n")
            (folder / "temp2_label").write_text(f"{label}\n")
            (folder / "temp2_input").write_text(f"{number + 40}000\n")
    here = Machine(str(tmp_path), {}, "linux", "x86_64")
    found = [sample.get("temperature_c") for sample in CpuSampler(here, [[0], [1]]).sample()]
    assert found == [None if place is None else place + 40.0 for place in places]


# What a round does with the processes.


class Driver:
    """Notes what is done to processes."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any]] = []

    def end(self, runs: Any, clock: Any) -> None:
        self.done.append(("end", list(runs)))

    def start(self, run: Any, command: Any, environ: Any, request: Any) -> None:
        self.done.append(("start", run))

    def send(self, run: Any, data: bytes) -> None:
        self.done.append(("send", run))

    def wake_on(self, fd: int) -> None:
        assert fd == -1

    def watch(self, clock: Any, is_over: Any, attend: Any) -> None:
        self.done.append(("watch", is_over()))


def engine(tmp_path: Any, control: str = "on") -> tuple[Any, Source, Driver]:
    folder = tmp_path / "sys/bus/pci/devices/0000:01:00.0/power"
    folder.mkdir(parents=True)
    (folder / "control").write_text(f"{control}\n")
    (folder / "runtime_status").write_text("active\n")
    driver: Any = Driver()
    made: Any = Engine.__new__(Engine)
    here = Machine(str(tmp_path))
    made.roster = Roster(here)
    made.roster.enlist({"id": GPU, "ids": [GPU], "kind": "gpu"})
    made.samples = Samples(made.roster)
    made.samples.begin()
    made.now = 1000.0
    made._clock = lambda: made.now
    made._driver = driver
    source = Source(ACME, here, driver, False)
    made.sources = [source]
    return made, source, driver


def answered(how: str = "ok", why: str | None = None, **figures: Any) -> Any:
    run = process()
    feed(run, 101.0, HELLO, LOADED, ("sample", {"sample": {"device": GPU, **figures}}),
         ("round", {"number": 1, "status": how, "reason": why}))  # fmt: skip
    return run


def test_a_round_takes_what_came(tmp_path: Any) -> None:
    made, source, driver = engine(tmp_path)
    source.run = run = answered(busy=0.25)
    run.findings.append({"code": "c", "severity": "info", "what": "a", "why": "b", "fix": "c"})
    made._harvest(source)
    assert [(s["device"], s["busy"], s["prober"]) for s in made.samples.ordered()] == [
        (GPU, 0.25, "acme")
    ]
    assert [f["code"] for f in made.samples.findings] == ["c"]
    assert (source.seen, source.run, driver.done) == ({GPU}, run, [])
    # What is not over is left.
    run.begin(message(2), 102.0)
    made.samples.begin()
    made._harvest(source)
    assert (made.samples.ordered(), source.run) == ([], run)


def test_a_sampler_with_nothing_to_sample_ends(tmp_path: Any) -> None:
    made, source, driver = engine(tmp_path)
    source.run = run = answered("not_applicable", "no GPU")
    made._harvest(source)
    assert (source.ended, source.run, driver.done) == (True, None, [("end", [run])])


def test_a_sampler_that_raised_goes_on_and_one_that_died_does_not(tmp_path: Any) -> None:
    made, source, driver = engine(tmp_path)
    source.run = run = answered("call_error", "x")
    made._harvest(source)
    assert (source.run, driver.done) == (run, [])
    assert [f["evidence"] for f in made.samples.findings] == ["call_error"]
    run.finish("crashed", "it was killed", 103.0)
    made._harvest(source)
    assert (source.run, driver.done) == (None, [("end", [run])])
    assert [f["evidence"] for f in made.samples.findings] == ["call_error", "crashed"]


@pytest.mark.parametrize("is_well", [True, False])
def test_a_device_that_is_well_again_has_its_samples_at_once(is_well: bool, tmp_path: Any) -> None:
    made, source, driver = engine(tmp_path)
    run = process()
    feed(run, 101.0, HELLO, LOADED, ("touching", {"device": GPU}))
    run.finish("timeout", "it hung", 103.0)
    source.run = run
    made._harvest(source)
    avoided = source.avoided[GPU]
    avoided.trial = answered("ok" if is_well else "call_error", busy=0.5)
    made.samples.begin()
    made._harvest(source)
    assert [s["busy"] for s in made.samples.ordered()] == ([0.5] if is_well else [])
    assert (GPU in source.avoided) is not is_well
    # The same is told again only where it was well in between.
    source.run = again = process()
    feed(again, 101.0, HELLO, LOADED, ("touching", {"device": GPU}))
    again.finish("timeout", "it hung", 103.0)
    made.samples.begin()
    made._harvest(source)
    assert [f["code"] for f in made.samples.findings] == (["driver-hangs"] if is_well else [])
    assert len(driver.done) == 3


@pytest.mark.parametrize(("control", "is_left"), [("auto", True), ("on", False)])
def test_an_idle_device_that_may_sleep_is_left_alone(
    control: str, is_left: bool, tmp_path: Any
) -> None:
    made, source, driver = engine(tmp_path, control)
    for seconds in (0.0, 29.75):
        made.now += seconds
        made.samples.begin()
        source.run = answered(busy=0.0)
        made._harvest(source)
        assert source.run is not None
    made.now += 0.25
    made.samples.begin()
    source.run = run = answered(busy=0.0)
    made._harvest(source)
    assert source.idle.left_alone is is_left
    if is_left:
        assert (source.run, [word for word, _ in driver.done]) == (None, ["send", "watch", "end"])
        assert run.round["close"]
        made._replace(2, [])
        assert source.run is None, "what is left alone is not started anew"
    else:
        assert (source.run, driver.done) == (run, [])


def test_who_is_waited_for(tmp_path: Any) -> None:
    made, source, driver = engine(tmp_path)
    made._checked = made.now
    for run, starts, stopping, over in (
        (answered(), 1, False, None),  # nothing is waited for
        (process(), 1, False, False),
        (process(), 2, False, True),  # it starts anew: the round does not wait for it
        (process(), 1, True, True),
    ):
        source.run, source.starts, driver.done = run, starts, []
        seen: list[bool] = []

        def watch(clock: Any, is_over: Any, attend: Any, seen: list[bool] = seen) -> None:
            seen.extend([is_over(), is_over()])

        made._driver = SimpleNamespace(watch=watch)
        made._watch(lambda stopping=stopping: stopping)
        # The first look of all reads what came before anything is judged.
        assert seen == ([] if over is None else [stopping, over])


def test_each_round_asks_what_waits_and_tries_what_failed(tmp_path: Any) -> None:
    made, source, driver = engine(tmp_path)
    made._bus = []
    other = made.roster.enlist({"id": OTHER, "ids": [OTHER, "uuid:GPU-2"], "kind": "gpu"})
    made._ask(1, [other])
    first = source.run
    assert first is not None
    assert driver.done == [("start", first)]
    assert first.round == failure_message(1, frozenset(), frozenset({OTHER, "uuid:GPU-2"}))
    made._ask(2, [])
    assert driver.done == [("start", first)], "it has not answered yet"
    feed(first, 101.0, HELLO, LOADED, ("round", {"number": 1, "status": "ok"}))
    made._ask(3, [])
    assert (driver.done[1:], first.round["number"]) == ([("send", first)], 3)
    # It hangs over a device: the next begins at once and goes around that, which has its own trial.
    feed(first, 102.0, ("touching", {"device": GPU}))
    first.finish("timeout", "it hung", 103.0)
    made._harvest(source)
    driver.done.clear()
    made._replace(3, [])
    second = source.run
    assert second is not None
    assert (driver.done, second.round["avoid"]) == ([("start", second)], [GPU])
    made.now += 9.9
    made._ask(4, [])
    assert (driver.done[1:], source.avoided[GPU].trial) == ([], None)
    made.now += 0.1
    made._ask(5, [])
    trial = source.avoided[GPU].trial
    assert trial is not None
    assert (driver.done[1:], trial.round["avoid"]) == ([("start", trial)], [OTHER, "uuid:GPU-2"])
    made._ask(6, [])
    assert len(driver.done) == 2, "one trial at a time"
    assert (source.runs(), source.starts) == ([second, trial], 2)
    # While a process of it cannot be killed none is tried.
    source.avoided[GPU].trial, source._abandoned = None, [SimpleNamespace(stuck=True)]  # type: ignore[list-item]
    made._ask(7, [])
    assert len(driver.done) == 2


def test_after_a_failure_of_its_own_a_sampler_waits(tmp_path: Any) -> None:
    made, source, _ = engine(tmp_path)
    made._bus = []
    for pause in (10.0, 20.0):
        made._ask(1, [])
        assert source.run is not None
        source.run.finish("crashed", "it was killed", 103.0)
        made._harvest(source)
        made._replace(1, [])
        made.now += pause - 0.25
        made._ask(2, [])
        assert source.run is None
        made.now += 0.25
    made._ask(3, [])
    well = source.run
    assert well is not None
    feed(well, 101.0, HELLO, LOADED, ("round", {"number": 3, "status": "ok"}))
    made._harvest(source)
    well.finish("crashed", "it was killed", 103.0)
    made._harvest(source)
    made.now += 10.0
    made._ask(4, [])
    assert source.run is not None, "it was well: the pauses begin anew"


def test_what_only_a_sampler_knew_is_forgotten_with_its_last_sample(tmp_path: Any) -> None:
    made, source, _ = engine(tmp_path)
    made._bus, made._machine = [], Machine(str(tmp_path))
    source.run, source.starts = process(), 1
    feed(source.run, 101.0, HELLO, LOADED, sample(), sample("uuid:MIG-1"),
         ("round", {"number": 1, "status": "ok"}))  # fmt: skip
    for number in (1, 2, 3):
        made._harvest(source)
        devices = [each["device"] for each in made.samples.ordered()]
        assert devices == ([GPU, "uuid:MIG-1"] if number == 1 else [GPU])
        made._say_why([])
        assert (made.roster.get("uuid:MIG-1") is None) is (number > 1)
        source.run.begin(message(number + 1), 102.0)
        made.samples.begin()
        feed(source.run, 102.0, sample(), ("round", {"number": number + 1, "status": "ok"}))


@pytest.mark.parametrize(
    ("figures", "is_idle"),
    [
        ({"busy": 0.0}, True),
        ({"busy": 0.01}, False),
        ({}, False),  # where it is not known it may be working
        ({"busy": 0.0, "processes": [{"pid": 5}]}, False),
        ({"busy": 0.0, "processes": []}, True),
        ({"status": "unavailable", "reason": "x"}, True),
    ],
)
def test_what_an_idle_device_says(figures: dict[str, Any], is_idle: bool, tmp_path: Any) -> None:
    made, source, _ = engine(tmp_path, "auto")
    for _ in range(2):
        made.samples.begin()
        source.run = answered(**figures)
        made._harvest(source)
        made.now += 30.0
    assert source.idle.left_alone is is_idle


@pytest.mark.parametrize(
    ("selected", "shown"),
    [
        (None, {GPU: ("unresponsive", "it hung", "acme"), OTHER: ("asleep", SLEEPS, None),
                "uuid:MIG-9": ("unresponsive", "it crashed", "acme"),
                THIRD: ("pending", "it was not asked yet", None)}),
        ([THIRD], {THIRD: ("pending", "it was not asked yet", None)}),
        (["uuid:MIG-9"], {"uuid:MIG-9": ("unresponsive", "it crashed", "acme")}),
    ],
)  # fmt: skip
def test_why_devices_have_no_figures(selected: Any, shown: Any, tmp_path: Any) -> None:
    made, source, _ = engine(tmp_path)
    made.roster._selected = selected
    other = made.roster.enlist({"id": OTHER, "ids": [OTHER], "kind": "gpu"})
    made.roster.enlist({"id": THIRD, "ids": [THIRD], "kind": "gpu"})
    display = made.roster.enlist({"id": "pci:0000:04:00.0", "ids": ["pci:0000:04:00.0"],
                                  "kind": "display"})  # fmt: skip
    for device, reason in (("PCI:0000:01:00.0", "it hung"), ("uuid:MIG-9", "it crashed")):
        source._avoid(device, reason, made.now)
    source.ended = True
    made.sources.append(
        Source(Prober("slow", "slow", "slow"), source._machine, made._driver, False)
    )
    made._say_why([other, display])
    assert {
        each["device"]: (each["status"], each["reason"], each["prober"])
        for each in made.samples.ordered()
    } == shown
