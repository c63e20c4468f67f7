"""Rounds of samples: what a host sees of samplers that work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import probe_core
from probe_core import ConfigError
from probe_core.sampling.node import NODE
from probe_core.sampling.rounds import Rhythm, is_readable

GPU = "pci:0000:01:00.0"

GOOD = """
calls = []
@hookimpl
def probe_devices(request):
    return []
@hookimpl
def sample_devices(request):
    calls.append(request.round)
    for number, name in enumerate(NAMES[:2]):
        if request.skip(name):
            continue
        request.touching(name)
        yield {"device": name, "busy": number / 4, "temperature_c": 40 + len(calls)}
@hookimpl
def sample_close():
    open(os.path.join(os.path.dirname(__file__), "closed"), "w").write(str(calls))
"""


def test_a_module_keeps_what_it_remembers(stage) -> None:
    stage.add(GOOD)
    with stage.rounds(3) as rounds:
        seen = [round.sample(GPU) for round in rounds]
    assert [sample["temperature_c"] for sample in seen] == [41, 42, 43]
    assert [sample["busy"] for sample in seen] == [0, 0, 0]
    assert seen[0]["prober"] == "acme"
    assert (stage.folder / "closed").read_text() == "[1, 2, 3]"


def test_every_sample_has_every_key_and_a_reason_for_null(stage) -> None:
    stage.add(GOOD)
    with stage.rounds(2) as rounds:
        last = list(rounds)[-1]
    from probe_core.model.document import SampleDoc

    assert [sample["device"] for sample in last.samples][-1] == NODE
    for sample in last.samples:
        assert list(sample) == list(SampleDoc.__annotations__)
        empty = {name for name in sample if sample[name] is None} - {"reason", "prober"}
        if sample["status"] == "ok":
            assert empty <= sample["unknown"].keys()
        else:
            assert sample["reason"]
    json.dumps(last.documents, allow_nan=False)
    assert last.samples == last.documents


def test_a_prober_without_the_hook_is_not_sampled(stage) -> None:
    stage.add("@hookimpl\ndef probe_devices(request):\n    return []")
    with stage.rounds(2) as rounds:
        looks = list(rounds)
    assert [finding for look in looks for finding in look.findings] == []
    assert rounds._engine is None


def test_only_wanted_devices_are_asked(stage) -> None:
    stage.add(GOOD)
    with stage.rounds(1, selected=["02:00.0"]) as rounds:
        (look,) = rounds
    assert [sample["device"] for sample in look.samples] == ["pci:0000:02:00.0"]


def test_the_report_names_the_devices(stage) -> None:
    stage.add(GOOD)
    report = [
        {"id": "uuid:GPU-1", "ids": ["uuid:GPU-1", "pci:0000:02:00.0"], "kind": "gpu"},
        {"id": "pci:0000:09:00.0", "ids": ["pci:0000:09:00.0"], "kind": "npu"},
    ]
    with stage.rounds(1, report=report) as rounds:
        (look,) = rounds
    assert [(s["device"], s["status"]) for s in look.samples] == [
        ("uuid:GPU-1", "ok"),
        ("pci:0000:01:00.0", "ok"),
        ("pci:0000:09:00.0", "unavailable"),
        (NODE, "ok"),
    ]
    assert look.sample("pci:0000:09:00.0")["reason"] == "no installed prober samples it"


def test_a_device_that_its_prober_no_longer_yields_has_its_reason(stage) -> None:
    stage.add(
        """
        @hookimpl
        def probe_devices():
            return []
        @hookimpl
        def sample_devices():
            is_gone = os.path.exists(os.path.join(os.path.dirname(__file__), "gone"))
            for name in NAMES[: 1 if is_gone else 2]:
                yield {"device": name, "busy": 0.5}
        """
    )
    address = "pci:0000:02:00.0"
    rounds = stage.rounds(report=[{"id": address, "ids": [address], "kind": "gpu"}])
    assert next(rounds).sample(address)["status"] == "ok"
    (stage.folder / "gone").touch()
    sample = next(rounds).sample(address)
    assert (sample["status"], sample["prober"]) == ("unavailable", "acme")
    assert sample["reason"] == "its prober yields no sample of it"


def test_the_better_prober_answers_for_a_device(stage) -> None:
    stage.add(GOOD)
    stage.add(GOOD.replace("40 +", "90 +"), "better")
    stage.targets["better"]["priority"] = 900
    with stage.rounds(1) as rounds:
        (look,) = rounds
    assert look.sample(GPU)["prober"] == "better"
    assert look.sample(GPU)["temperature_c"] == 91


def test_nothing_is_left_when_the_iterator_is_closed(
    stage, children: Callable[[], list[int]]
) -> None:
    stage.add(GOOD)
    before, threads, files = children(), threading.active_count(), len(os.listdir("/proc/self/fd"))
    rounds = stage.rounds()
    next(rounds)
    assert len(children()) > len(before)
    assert threading.active_count() == threads
    rounds.close()
    rounds.close()
    assert (children(), threading.active_count()) == (before, threads)
    assert len(os.listdir("/proc/self/fd")) == files
    assert list(rounds) == []


def test_an_exception_of_the_host_ends_the_processes(
    stage, children: Callable[[], list[int]]
) -> None:
    stage.add(
        "@hookimpl\ndef probe_devices(): return []\n@hookimpl\ndef sample_devices(request):\n"
        "    if request.round == 2: time.sleep(60)\n    return []"
    )
    before = children()
    rounds = stage.rounds()
    next(rounds)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(rounds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.monotonic() - begin < 20
    assert children() == before


def test_nothing_is_left_when_the_host_is_killed(tmp_path: Path) -> None:
    (tmp_path / "stage_acme.py").write_text(
        "import os\nfrom probe_core.api import *\n@hookimpl\ndef probe_devices(): return []\n"
        "@hookimpl\ndef sample_devices(request):\n    return [{'device': 'pci:0000:01:00.0',"
        " 'processes': [{'pid': os.getpid()}]}]\n"
    )
    script = (
        "import probe_core, time\n"
        "r = probe_core.samples(1, probers={'acme': 'stage_acme'}, only=['acme'])\n"
        "print(next(r).sample('pci:0000:01:00.0')['processes'][0]['pid'], flush=True)\n"
        "time.sleep(60)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environ)
    assert host.stdout
    pid = int(host.stdout.readline())
    host.kill()
    host.wait()
    host.stdout.close()
    until = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"interval": 0}, "interval"),
        ({"interval": 0.099}, "interval"),
        ({"interval": 3600.1}, "interval"),
        ({"interval": True}, "interval"),
        ({"interval": "1"}, "interval"),
        ({"interval": float("nan")}, "interval"),
        ({"count": 0}, "count"),
        ({"count": 1.5}, "count"),
        ({"devices": []}, "devices"),
        ({"devices": [1]}, "devices"),
        ({"report": {}}, "report"),
        ({"report": 1}, "report"),
        ({"machine": "/"}, "machine"),
        ({"probers": 1}, "probers"),
        ({"config": 1}, "config"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, dict) else "",
)
def test_a_bad_argument_is_named_at_the_call(arguments: dict, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        probe_core.samples(**arguments)
    with pytest.raises(ConfigError, match=word):
        probe_core.samples_async(**arguments)


@pytest.mark.parametrize("interval", [0.1, 1, 3600])
def test_an_interval_is_a_tenth_of_a_second_to_an_hour(interval: float) -> None:
    with probe_core.samples(interval, 1) as rounds:
        assert rounds._engine is None


def test_an_argument_that_is_no_setting_is_refused_by_the_call_that_has_it() -> None:
    for call in (probe_core.samples, probe_core.samples_async):
        with pytest.raises(TypeError, match=rf"^{call.__name__}\(\) .* 'device': .*'devices'"):
            call(**{"device": "cpu:0"})


def test_a_device_that_the_report_lacks_is_named() -> None:
    report = {"devices": [{"id": "pci:0000:01:00.0", "ids": ["pci:0000:01:00.0"], "kind": "gpu"}]}
    with pytest.raises(ConfigError, match=r"'02:00.0': .*pci:0000:01:00.0"):
        probe_core.samples(devices="02:00.0", report=report)
    for arguments in ({"devices": "01:00.0"}, {"report": report}):
        probe_core.samples(**arguments).close()
    probe_core.samples(devices="01:00.0", report=report).close()
    # The node is in no report, and has samples.
    with probe_core.samples(devices=["01:00.0", "node:self"], report=report, only=[]) as rounds:
        assert "node:self" in [sample["device"] for sample in next(rounds).samples]


def test_the_rhythm_skips_beats_that_are_late() -> None:
    times = iter([0.0, 0.0, 0.4, 1.0, 3.5, 3.5, 3.6, 4.0])
    pauses: list[float] = []
    rhythm = Rhythm(1.0, lambda: next(times), pauses.append)
    for _ in range(4):
        rhythm.wait()
    # At 0; after 0.6 at 1; 3.5 is late for 2, so at once; then 4.
    assert pauses == [pytest.approx(0.6), pytest.approx(0.4)]


@pytest.mark.parametrize(
    ("answers", "waits"), [([0, 0, 0], [1.0, 1.0, 0.5]), ([0, 1], [1.0, 1.0]), ([1], [1.0])]
)
def test_who_waits_for_a_round_is_woken_by_what_is_readable(
    monkeypatch: pytest.MonkeyPatch, answers: list[int], waits: list[float]
) -> None:
    waited, readable = list[float](), iter(answers)

    def select(fds: list[int], writing: list[int], other: list[int], seconds: float) -> tuple:
        assert (fds, writing, other) == ([7], [], [])
        waited.append(seconds)
        return fds * next(readable), [], []

    monkeypatch.setattr("select.select", select)
    rhythm = Rhythm(2.5, iter([0.0, 0.0, 0.0, 2.5]).__next__, pytest.fail)
    rhythm.wait(7)  # the first comes at once
    rhythm.wait(7)
    assert waited == waits
    assert not is_readable(-1)


def test_nobody_wakes_who_waits_on_no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    read, write = os.pipe()
    assert [is_readable(-1), is_readable(-1, 0.5), is_readable(read)] == [False] * 3
    os.write(write, b"x")
    assert is_readable(read, 60.0)
    assert slept == [0.5]
    os.close(read), os.close(write)


def test_the_last_round_ends_the_processes(stage, children: Callable[[], list[int]]) -> None:
    stage.add(GOOD.replace("open(", "time.sleep(0.03)\n    open("))
    before = children()
    rounds = stage.rounds(1)
    assert next(rounds).number == 1
    assert not (stage.folder / "closed").exists()
    assert next(rounds, None) is None
    assert children() == before
    # Closing takes a while, which it has.
    assert (stage.folder / "closed").read_text() == "[1]"


def test_it_may_be_closed_during_the_wait_for_a_round(
    stage, children: Callable[[], list[int]]
) -> None:
    """As a host does that ends, in another thread."""
    stage.add(GOOD)
    before = children()
    rounds = stage.rounds()
    next(rounds)
    rounds._rhythm._sleep = lambda seconds: rounds.close()
    assert list(rounds) == []
    assert children() == before


def test_an_iterator_needs_no_first_round_to_be_closed() -> None:
    probe_core.samples().close()
    with probe_core.samples() as rounds:
        assert iter(rounds) is rounds
    assert rounds._rhythm._interval == probe_core.samples_async()._rounds._rhythm._interval == 1


def test_a_static_report_means_that_no_plugin_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stage_acme.py").write_text(
        "open(__file__ + '.ran', 'w')\nfrom probe_core.api import *\n"
        "@hookimpl\ndef probe_devices(): return []\n@hookimpl\ndef sample_devices(): return []\n"
    )
    (tmp_path / "report.json").write_text("{}")
    monkeypatch.setenv("PROBE_STATIC", str(tmp_path / "report.json"))
    with probe_core.samples(count=1, probers={"acme": "stage_acme"}) as rounds:
        (look,) = rounds
    assert look.sample(NODE)["status"] == "ok"
    assert not (tmp_path / "stage_acme.py.ran").exists()
    monkeypatch.delenv("PROBE_STATIC")
    monkeypatch.setenv("PROBE_DISABLE", "acme")
    with probe_core.samples(count=1, probers={"acme": "stage_acme"}) as rounds:
        list(rounds)
    assert not (tmp_path / "stage_acme.py.ran").exists()


def test_a_long_pause_comes_in_pieces() -> None:
    """A signal just before a system call interrupts nothing, and Python runs no handler in it."""
    times, pauses = iter([0.0, 0.0, 0.0, 3.5]), list[float]()
    rhythm = Rhythm(3.5, lambda: next(times), pauses.append)
    rhythm.wait()
    rhythm.wait()
    assert pauses == [1.0, 1.0, 1.0, 0.5]
