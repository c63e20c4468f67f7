"""What a sampler's process means for its devices: who waits, who is gone around, what is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_core.pipeline.settings import load_settings
from probe_core.registry.prober import Prober
from probe_core.sampling import sampler
from probe_core.sampling.engine import Engine, _is_allowed, _waiting
from probe_core.sampling.roster import Entry
from probe_core.sampling.sampler import Avoided, Pauses, ask_to_close, findings, mistake

GPU, OTHER = "pci:0000:01:00.0", "pci:0000:02:00.0"


def source(ended: list[Any]) -> sampler.Source:
    driver: Any = SimpleNamespace(end=lambda runs, clock: ended.extend(runs))
    return sampler.Source(Prober("acme", "acme", "acme"), Machine("/nowhere"), driver, False)


def process(status: str | None, **said: Any) -> Any:
    """What is asked of a process that has ended; one that waits has no status, and an answer."""
    known: dict[str, Any] = {
        "patience": SimpleNamespace(device=None),
        "reason": None,
        "initial": True,
        "samples": [],
        "answer": None,
        "still_there": [],
        "stuck": False,
    }
    return SimpleNamespace(**{**known, "status": status, **said})


@pytest.mark.parametrize(
    ("status", "is_initial", "starts", "is_ended"),
    [
        ("load_error", False, 1, True),
        ("not_applicable", True, 1, True),
        ("timeout", True, 2, True),  # it hung before, and hangs when it begins again
        ("timeout", True, 1, False),
        ("timeout", False, 2, False),
        ("crashed", True, 2, False),
        ("ok", True, 2, False),
    ],
)
def test_what_hangs_whenever_it_begins_is_given_up(
    status: str, is_initial: bool, starts: int, is_ended: bool
) -> None:
    acme = source([])
    acme.starts = starts
    findings = acme.note_end(process(status, initial=is_initial), 100.0)
    assert (acme.ended, acme.run, acme.problem) == (is_ended, None, status)
    assert [f["fix"] for f in findings] == (
        []
        if status in ("ok", "not_applicable")
        else [
            "it is not asked again" if is_ended else "it is asked again after growing pauses",
        ]
    )


@pytest.mark.parametrize(
    ("answer", "samples", "is_well"),
    [
        (("ok", None), [{"device": GPU}], True),
        (("ok", None), [], False),
        (("call_error", "no"), [{"device": GPU}], False),
        (None, [{"device": GPU}], False),
    ],
)
def test_a_device_is_well_again_that_answers_its_trial(
    answer: tuple[str, str | None] | None, samples: list[Any], is_well: bool
) -> None:
    ended: list[Any] = []
    acme = source(ended)
    acme.note_end(process("timeout", patience=SimpleNamespace(device=GPU)), 100.0)
    avoided = acme.avoided[GPU]
    assert acme.harvest_trial(avoided, 105.0) == []  # there was none
    assert avoided.pauses.due(110.0)
    avoided.trial = trial = process(None, answer=answer, samples=samples)
    assert acme.harvest_trial(avoided, 110.0) == (samples if is_well else [])
    assert (avoided.trial, ended) == (None, [trial])
    assert [*acme.avoided] == ([] if is_well else [GPU])
    assert (avoided.pauses.due(129.9), avoided.pauses.due(130.0)) == (is_well, True)


@pytest.mark.parametrize(
    ("settings", "is_allowed"),
    [
        ({}, True),
        ({"only": ["bus", "cpu"]}, True),
        ({"only": ["nvidia"]}, False),
        ({"disable": ["bus"]}, False),
        ({"disable": ["nvidia"]}, True),
    ],
)
def test_the_cores_own_sampler_goes_with_the_bus(settings: Any, is_allowed: bool) -> None:
    config, _ = load_settings(settings, {})
    assert _is_allowed(config) is is_allowed


def test_pauses_double_up_to_ten_minutes() -> None:
    pauses = Pauses()
    assert pauses.due(-1e9)
    lengths = []
    for _ in range(9):
        pauses.fail(0.0)
        (length,) = (s for s in range(1, 700) if pauses.due(s) and not pauses.due(s - 0.001))
        lengths.append(length)
    assert lengths == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    pauses.succeed()
    assert pauses.due(600.0)  # what is due does not change, the next one does
    pauses.fail(0.0)
    assert (pauses.due(9.9), pauses.due(10.0)) == (False, True)
    pauses.retry_now(5.0)
    assert (pauses.due(4.9), pauses.due(5.0)) == (False, True)


@pytest.mark.parametrize(
    ("device", "ids"),
    [("PCI:0000:01:00.0", {"PCI:0000:01:00.0", GPU}), (GPU, {GPU}), ("x y", {"x y"})],
)
def test_by_which_ids_a_device_is_gone_around(device: str, ids: set[str]) -> None:
    assert Avoided(device).ids == ids


def state(**facts: Any) -> Any:
    known = {"ended": False, "idle": SimpleNamespace(left_alone=False), "problem": None}
    return SimpleNamespace(**{**known, "avoided": {}, "run": None, "starts": 0, **facts})


OVER, RUNNING = SimpleNamespace(over=True), SimpleNamespace(over=False)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "it was not asked yet"),
        ({"starts": 1}, None),
        ({"ended": True}, None),
        ({"idle": SimpleNamespace(left_alone=True)}, None),
        ({"problem": "crashed"}, None),
        ({"problem": "crashed", "avoided": {GPU: 1}}, "it was not asked yet"),
        ({"run": OVER}, None),
        ({"run": RUNNING}, "its prober's process is starting"),
        (
            {"run": RUNNING, "avoided": {OTHER: 1, GPU: 1}},
            f"its prober's process is starting anew, without {GPU}, {OTHER}",
        ),
    ],
)
def test_for_what_devices_wait(facts: dict[str, Any], reason: str | None) -> None:
    assert _waiting(state(**facts)) == reason


def sampling(name: str, devices: set[str], **facts: Any) -> Any:
    serves = lambda entry: not devices.isdisjoint(entry.ids)  # noqa: E731
    return state(prober=SimpleNamespace(name=name), serves=serves, **facts)


LEFT = "it was idle for 30 s and is left alone, so that it can sleep"


@pytest.mark.parametrize(
    ("sources", "waits", "reason", "is_gone"),
    [
        ([], (None, None), (None, "no installed prober samples it"), True),
        (
            [sampling("a", {GPU}, run=OVER, starts=1)],
            (None, None),
            ("a", "its prober yields no sample of it"),
            True,
        ),
        (
            [sampling("a", {GPU}, run=OVER, starts=1, problem="crashed")],
            (None, None),
            ("a", "crashed"),
            False,
        ),
        (
            [sampling("a", {GPU}, run=RUNNING, starts=1)],
            ("a", "its prober's process is starting"),
            ("a", "its prober yields no sample of it"),
            False,
        ),
        (
            [sampling("a", {GPU}, idle=SimpleNamespace(left_alone=True), problem="old")],
            (None, None),
            ("a", LEFT),
            False,
        ),
        # Of a device that no sampler is known to serve: any that has not answered may.
        (
            [sampling("a", {OTHER}, run=OVER), sampling("b", {OTHER}, run=RUNNING)],
            (None, "its prober's process is starting"),
            (None, "no installed prober samples it"),
            True,
        ),
        (
            [sampling("a", {OTHER}), sampling("b", {GPU}, run=OVER, starts=1)],
            (None, None),
            ("b", "its prober yields no sample of it"),
            True,
        ),
    ],
)
def test_why_a_device_has_no_figures(
    sources: list[Any], waits: Any, reason: Any, is_gone: bool
) -> None:
    entry = Entry([GPU], "gpu", GPU, listed=True)
    asked: Any = Engine.__new__(Engine)
    asked.sources = sources
    assert asked._waits_for(entry) == waits
    assert asked._reason(entry) == reason
    assert asked._is_gone(entry) is is_gone


def test_a_processor_waits_for_the_core() -> None:
    asked: Any = Engine.__new__(Engine)
    asked.sources = []
    assert asked._waits_for(Entry(["cpu:0"], "cpu", "cpu:0", listed=True)) == (
        "cpu",
        "it was not asked yet",
    )


ACME = Prober("acme", "acme", "probe-acme")


@pytest.mark.parametrize(
    ("device", "code", "over"),
    [(GPU, "prober-raises", f" over {GPU}"), (None, "prober-failed", "")],
)
def test_a_mistake_of_a_sampler_that_runs_on(device: str | None, code: str, over: str) -> None:
    found = mistake(ACME, "call_error", device, "ValueError: x")
    assert (found["code"], found["severity"], found["evidence"]) == (code, "error", "call_error")
    assert found["what"] == (
        f"{ACME.owner}: the sampler of prober 'acme' failed (call_error){over}"
    )
    assert (found["why"], found["device"], found["prober"]) == ("ValueError: x", device, "acme")


@pytest.mark.parametrize(
    ("status", "device", "code", "what"),
    [
        ("timeout", GPU, "driver-hangs", f"sampling {GPU} hangs"),
        ("crashed", GPU, "driver-crashes", f"sampling {GPU} kills the process"),
        ("crashed", None, "prober-failed",
         f"{ACME.owner}: the sampler of prober 'acme' failed (crashed)"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_process_that_failed(
    status: str, device: str | None, code: str, what: str
) -> None:
    patience = SimpleNamespace(device=device)
    (found,) = findings(ACME, process(status, patience=patience), False)
    assert (found["code"], found["what"], found["why"]) == (code, what, status)
    ended = process(status, patience=patience, reason="signal 9", stuck=True)
    told = findings(ACME, ended, True)
    assert [fact["why"] for fact in told][:1] == ["signal 9"]
    assert [fact["code"] for fact in told] == [code, "prober-unkillable"]


@pytest.mark.parametrize(
    ("answer", "device", "problem", "avoided", "codes", "is_ended"),
    [
        (("ok", None), None, None, [], [], False),
        (("not_applicable", "no GPU"), None, "no GPU", [], [], True),
        (("call_error", "x"), None, "x", [], ["prober-failed"], False),
        (("call_error", None), GPU, "call_error", [GPU], ["prober-raises"], False),
        (None, None, "protocol", [], ["prober-failed"], False),
    ],
)
def test_how_a_round_of_a_process_that_goes_on_ends(
    answer: Any, device: str | None, problem: str | None, avoided: list[str],
    codes: list[str], is_ended: bool,
) -> None:  # fmt: skip
    acme = source([])
    acme.problem = "old"
    told = acme.note_answer(process(None, answer=answer, answered_device=device), 100.0)
    assert (acme.problem, [*acme.avoided], acme.ended) == (problem, avoided, is_ended)
    assert [fact["code"] for fact in told] == codes
    if avoided:
        found = acme.avoided[GPU]
        assert (found.reason, found.pauses.due(109.9), found.pauses.due(110.0)) == (
            problem, False, True,
        )  # fmt: skip


def test_who_begins_anew_after_an_end_on_purpose() -> None:
    acme = source([])
    gone = process("timeout", still_there=[bool], stuck=True)
    acme.note_end(gone, 100.0)
    assert (acme.stuck, acme._pauses.due(109.0)) == (True, False)
    acme.run, acme.starts = process(None), 3
    acme.avoided[GPU] = Avoided(GPU)
    acme._abandoned.clear()
    acme.avoided[GPU].trial = process("timeout", still_there=[bool], stuck=True)
    assert (acme.harvest_trial(acme.avoided[GPU], 100.5), acme.stuck) == ([], True)
    acme.avoided[GPU].trial = trial = process(None)
    assert acme.runs() == [acme.run, trial]
    acme.forget_process(101.0)
    assert (acme.runs(), acme.starts, acme._pauses.due(101.0)) == ([], 0, True)
    assert [*acme.avoided] == [GPU]


@pytest.mark.parametrize(
    ("starts", "initial", "over", "awaited"),
    [
        (1, True, False, True),
        (2, True, False, False),
        (2, False, False, True),
        (1, True, True, False),
    ],
)
def test_for_whom_a_round_waits(starts: int, initial: bool, over: bool, awaited: bool) -> None:
    acme = source([])
    assert not acme.awaited
    acme.starts, acme.run = starts, process(None, initial=initial, over=over)
    assert acme.awaited is awaited


@pytest.mark.parametrize(
    ("vendor", "ids", "serves"),
    [("10de", [OTHER], True), ("1002", [OTHER], False), ("1002", [OTHER, GPU], True),
     ("", [OTHER], False)],
)  # fmt: skip
def test_which_devices_a_sampler_may_know(vendor: str, ids: list[str], serves: bool) -> None:
    acme = source([])
    acme.prober.when = [{"pci_vendor": ["10de"]}, {}]
    acme.seen.add(GPU)
    entry = Entry(ids, "gpu", ids[0], listed=True)
    entry.vendor = vendor
    assert acme.serves(entry) is serves


def test_processes_that_wait_are_asked_to_close() -> None:
    sent: list[Any] = []
    watched: list[Any] = []
    driver: Any = SimpleNamespace(
        send=lambda run, data: sent.append((run, data[:8] == b"%08x" % len(data[8:]))),
        wake_on=watched.append,
        watch=lambda clock, is_over, attend: watched.append(is_over()),
    )

    def waits(status: str | None, answer: Any) -> Any:
        begun: list[Any] = []
        run = process(status, answer=answer, over=True, begun=begun)
        run.begin = lambda message, now: begun.append((message["close"], message["seconds"]))
        return run

    one = waits(None, ("ok", None))
    ask_to_close(driver, [waits("crashed", ("ok", None)), waits(None, None)])
    assert (sent, watched) == ([], [])
    ask_to_close(driver, [waits(None, None), one])
    assert (sent, watched) == ([(one, True)], [-1, True])
    assert one.begun == [(True, sampler.CLOSE_S)]


def test_how_much_memory_processes_take_is_looked_at_each_half_minute() -> None:
    now, looks = 1000.0, []
    asked: Any = Engine.__new__(Engine)
    asked._clock, asked._checked = (lambda: now), 1000.0
    asked.sources = [SimpleNamespace(runs=lambda: [RUNNING], awaited=False)]
    asked._driver = SimpleNamespace(
        check=lambda clock: looks.append(now), watch=lambda clock, is_over, attend: is_over()
    )
    for seconds in (29.9, 0.1, 29.9, 0.1, 0.1):
        now += seconds
        asked._watch(lambda: False)
    assert looks == [1030.0, 1060.0]
