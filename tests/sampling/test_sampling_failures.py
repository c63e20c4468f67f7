"""Samplers that hang, die, raise and lie: the others go on, and the culprit is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from probe_core.sampling import sampler
from probe_core.sampling.rounds import Rounds

NAMES = [f"pci:0000:0{number}:00.0" for number in range(1, 9)]

# What the third GPU does from the second round on, as long as the file `bad` is there.
SOURCE = """
BAD = os.path.join(os.path.dirname(__file__), "bad")
@hookimpl
def probe_devices():
    return []
@hookimpl
def sample_devices(request):
    for name in NAMES:
        if request.skip(name):
            continue
        request.touching(name)
        if name == NAMES[2] and os.path.exists(BAD):
            {deed}
        yield {{"device": name, "busy": 0.5}}
"""


def statuses(look: Any) -> dict[str, str]:
    return {s["device"]: s["status"] for s in look.samples if s["device"].startswith("pci")}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "ROUND_S", 0.6)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("deed", "code", "reason"),
    [
        ("time.sleep(600)", "driver-hangs", "its round took longer than 0.6 s over "),
        ("os.kill(os.getpid(), 11)", "driver-crashes", "it was killed by SIGSEGV while it asked "),
        ("os._exit(3)", "driver-crashes", "it exited with status 3 while it asked "),
        (
            "import ctypes; ctypes.PyDLL(None).sleep(600)",
            "driver-hangs",
            "its round took longer than 0.6 s over ",
        ),
    ],
    ids=["hangs", "crashes", "exits", "holds the GIL"],
)
def test_seven_go_on_without_the_eighth(
    stage: Any, children: Callable[[], list[int]], deed: str, code: str, reason: str
) -> None:
    stage.add(SOURCE.format(deed=deed))
    before = children()
    rounds = stage.rounds()
    assert set(statuses(next(rounds)).values()) == {"ok"}
    (stage.folder / "bad").touch()
    look = next(rounds)
    sample = look.sample(NAMES[2])
    assert (sample["status"], sample["busy"]) == ("unresponsive", None)
    assert sample["reason"].startswith(reason + NAMES[2])
    assert [(f["code"], f["device"], f["prober"]) for f in look.findings] == [
        (code, NAMES[2], "acme")
    ]
    # Those before it have their figures; those after it say why they have none.
    assert statuses(look)[NAMES[1]] == "ok"
    assert set([*statuses(look).values()][3:]) == {"pending"}
    for _ in range(200):
        time.sleep(0.02)  # rounds take no time here, and the new process some
        look = next(rounds)
        assert look.sample(NAMES[2])["status"] == "unresponsive"
        if list(statuses(look).values()).count("ok") == 7:
            break
    assert list(statuses(look).values()).count("ok") == 7
    assert look.findings == []
    rounds.close()
    assert children() == before


def _show(stage: Any, *names: str) -> None:
    """Have the bus show NVIDIA's GPUs at the addresses of some names."""
    for name in names:
        folder = stage.folder / "root/sys/bus/pci/devices" / name.removeprefix("pci:")
        folder.mkdir(parents=True)
        for file, text in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x2330")):
            (folder / file).write_text(text)


def test_neighbours_of_what_hangs_from_the_start_are_pending_and_then_well(stage: Any) -> None:
    stage.add(SOURCE.format(deed="time.sleep(600)"))
    (stage.folder / "bad").touch()
    _show(stage, *NAMES)
    rounds = stage.rounds()
    began = time.monotonic()
    listed = rounds.listed()
    assert time.monotonic() - began < 0.5  # less than the driver is waited for
    assert listed.number == 0
    assert statuses(listed) == dict.fromkeys(NAMES, "pending")
    assert {s["device"] for s in listed.samples if s["status"] != "pending"} == set()
    assert {s["reason"] for s in listed.samples} == {"it was not asked yet"}
    look = next(rounds)
    assert look.number == 1
    assert [*statuses(look).values()] == ["ok", "ok", "unresponsive", *["pending"] * 5]
    reason = f"its prober's process is starting anew, without {NAMES[2]}"
    assert look.sample(NAMES[7])["reason"] == reason
    for _ in range(200):
        time.sleep(0.02)  # rounds take no time here, and the new process some
        look = next(rounds)
        assert set(statuses(look).values()) <= {"ok", "unresponsive", "pending"}
        if list(statuses(look).values()).count("ok") == 7:
            break
    assert [*statuses(look).values()].count("ok") == 7


def test_what_no_sampler_can_give_is_unavailable_and_not_pending(stage: Any) -> None:
    """The look-alike: nothing hangs, and the device will not be asked in any later round."""
    stage.add(SOURCE.format(deed="pass").replace("for name in NAMES:", "for name in NAMES[:2]:"))
    _show(stage, *NAMES[:3])
    rounds = stage.rounds()
    for _ in range(2):
        look = next(rounds)
        assert [*statuses(look).values()] == ["ok", "ok", "unavailable"]
        assert look.sample(NAMES[2])["reason"] == "no installed prober samples it"


def test_without_a_sampler_a_listed_device_is_unavailable_at_once(stage: Any) -> None:
    _show(stage, NAMES[0])
    rounds = stage.rounds()
    assert statuses(rounds.listed()) == {NAMES[0]: "unavailable"}
    assert statuses(next(rounds)) == {NAMES[0]: "unavailable"}


@pytest.mark.heavy
def test_a_device_that_recovers_is_asked_again(stage: Any) -> None:
    stage.add(SOURCE.format(deed="time.sleep(600)"))
    (stage.folder / "bad").touch()
    rounds = stage.rounds()
    look = next(rounds)
    assert look.sample(NAMES[2])["status"] == "unresponsive"
    (stage.folder / "bad").unlink()
    asked_at = []
    for _ in range(200):
        time.sleep(0.02)
        look = next(rounds)
        if any(avoided.trial for avoided in rounds._engine.sources[0].avoided.values()):
            asked_at.append(stage.clock.now - 1000)
        if look.sample(NAMES[2])["status"] == "ok":
            break
    assert set(statuses(look).values()) == {"ok"}
    assert asked_at[0] == 10  # seconds after it hung


@pytest.mark.heavy
def test_pauses_grow_while_a_device_hangs(stage: Any) -> None:
    stage.add(SOURCE.format(deed="time.sleep(600)"))
    (stage.folder / "bad").touch()
    rounds = stage.rounds()
    next(rounds)
    trials = []
    for _ in range(60):
        look = next(rounds)
        engine = rounds._engine
        trial = next(iter(engine.sources[0].avoided.values())).trial
        if trial is not None:
            time.sleep(0.3)
            if not trials or trials[-1][1] is not trial:
                trials.append((stage.clock.now - 1000, trial))
        assert look.sample(NAMES[2])["status"] == "unresponsive"
    assert trials[0][0] == 10
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(trials)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 20


@pytest.mark.heavy
def test_a_sampler_that_hangs_when_it_begins_again_is_given_up(stage: Any) -> None:
    stage.add(
        """
        FILE = os.path.join(os.path.dirname(__file__), "started")
        if os.path.exists(FILE):
            time.sleep(600)
        open(FILE, "w").close()
        """
        + SOURCE.format(deed="time.sleep(600)").replace("\n", "\n        "),
        deadline_s=0.8,
    )
    (stage.folder / "bad").touch()
    rounds = stage.rounds()
    next(rounds)
    facts = []
    for _ in range(200):
        time.sleep(0.02)
        look = next(rounds)
        facts += look.findings
        if rounds._engine.sources[0].ended:
            break
    assert rounds._engine.sources[0].ended
    assert [(f["code"], f["fix"]) for f in facts] == [("prober-failed", "it is not asked again")]
    assert look.sample("node:self")["status"] == "ok"
    stage.clock.now += 10_000
    next(rounds)
    assert rounds._engine.sources[0].run is None


def test_an_exception_costs_its_device_alone(stage: Any) -> None:
    stage.add(SOURCE.format(deed="raise RuntimeError('no figure')"))
    rounds = stage.rounds()
    next(rounds)
    pid = rounds._engine.sources[0].run.pid
    (stage.folder / "bad").touch()
    look = next(rounds)
    assert look.sample(NAMES[2])["reason"] == "RuntimeError: no figure"
    look = next(rounds)
    assert list(statuses(look).values()).count("ok") == 7
    assert rounds._engine.sources[0].run.pid == pid


def test_what_cannot_be_true_is_refused_by_name(stage: Any) -> None:
    stage.add(
        """
        @hookimpl
        def probe_devices():
            return []
        @hookimpl
        def sample_devices(request):
            yield {"device": NAMES[0], "busy": 6.55, "temperature_c": float("nan"),
                   "power_w": 65535e3, "memory": {"used": 1 << 64, "total": 1 << 34},
                   "clocks_mhz": {"sm": "fast", "memory": 1000}, "links": [{"received": -1}],
                   "processes": [{"pid": 0}], "magic": 1}
            yield {"busy": 1}
            yield 7
            yield {"device": NAMES[1], "status": "fine"}
            yield {"device": NAMES[2], "memory": {"used": 11, "total": 10}}
        """
    )
    (look,) = stage.rounds(1)
    sample = look.sample(NAMES[0])
    assert (sample["busy"], sample["temperature_c"], sample["power_w"]) == (None, None, None)
    assert sample["memory"] == {"used": None, "total": 1 << 34}
    assert sample["clocks_mhz"] == {"sm": None, "memory": 1000}
    assert sample["links"][0]["received"] is None
    assert sample["unknown"]["busy"] == "refused: 6.55 is not between 0 and 1"
    assert look.sample(NAMES[1])["status"] == "unavailable"
    assert look.sample(NAMES[2])["memory"] == {"used": None, "total": 10}
    assert sorted(f["evidence"] for f in look.findings) == sorted(
        "busy temperature_c power_w memory.used clocks_mhz.sm links.0.received processes.0.pid "
        "magic device sample status".split()
    )
    assert {f["code"] for f in look.findings} == {"value-rejected"}


def test_a_sample_that_is_none_of_its_own_is_refused_by_name(stage: Any) -> None:
    stage.add(
        """
        @hookimpl
        def probe_devices():
            return []
        @hookimpl
        def sample_devices(request):
            yield {"device": NAMES[0], "busy": 0.25}
            yield {"device": NAMES[0], "busy": 0.75}
            yield {"device": "node:self", "busy": 0.5}
            yield {"device": NAMES[1], "status": ["ok"]}
            yield {"device": NAMES[2], "processes": [
                {"pid": pid, "user": "u" * 300} for pid in range(1, 5000)]}
            yield {"device": NAMES[3], "busy": 0.5, "memory": {"total": 8}, "unknown": {
                "busy": "?", "memory.total": "?", "memory.used": "no rights", "power_w": "none"}}
        """
    )
    (look,) = stage.rounds(1)
    assert look.sample(NAMES[0])["busy"] == 0.25
    assert look.sample("node:self")["busy"] != 0.5
    assert look.sample(NAMES[1])["reason"].startswith("its status is refused: expected one of ok")
    assert look.sample(NAMES[2]) is None
    unknown = look.sample(NAMES[3])["unknown"]
    assert (unknown["memory.used"], unknown["power_w"]) == ("no rights", "none")
    assert not {"busy", "memory.total"} & unknown.keys()
    reasons = sorted(finding["why"] for finding in look.findings)
    assert reasons[:2] == [
        "device: node:self is sampled by the core alone",
        f"device: {NAMES[0]} is in a round twice",
    ]
    assert reasons[2].startswith("sample: expected a mapping, found a sample of ")
    assert reasons[3].startswith("status: expected one of ")
    assert len(reasons) == 4


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return None", "it returned NoneType"),
        ("return {'device': 'x:1'}", "it returned dict"),
        ("return 7", "it returned int"),
        ("raise Unavailable('no library', code='none')", "no library"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_sampler_without_samples_says_why(stage: Any, body: str, reason: str) -> None:
    stage.add(
        f"@hookimpl\ndef probe_devices(): return []\n@hookimpl\ndef sample_devices():\n    {body}"
    )
    rounds = stage.rounds()
    for number in range(2):
        findings = next(rounds).findings
        assert rounds._engine.sources[0].problem.startswith(reason)
        # What is unavailable is no mistake; a mistake is said once.
        mistakes = 0 if "Unavailable" in body or number else 1
        assert [f["code"] for f in findings] == ["prober-failed"] * mistakes


def test_a_sampler_that_has_nothing_here_ends(
    stage: Any, children: Callable[[], list[int]]
) -> None:
    before = children()
    stage.add(
        "@hookimpl\ndef probe_devices(): return []\n"
        "@hookimpl\ndef sample_devices(): return not_applicable('none here')"
    )
    rounds = stage.rounds()
    next(rounds)
    assert children() == before
    assert next(rounds).findings == []


@pytest.mark.heavy
def test_slow_devices_that_are_not_announced_are_no_hang(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "ROUND_S", 1.5)
    stage.add(
        """
        @hookimpl
        def probe_devices():
            return []
        @hookimpl
        def sample_devices(request):
            for name in NAMES[:4]:
                if os.path.exists(os.path.join(os.path.dirname(__file__), "slow")):
                    time.sleep(0.5)  # each within a round's 1.5 s, all together beyond it
                yield {"device": name, "busy": 0.5}
        """
    )
    rounds = stage.rounds()
    next(rounds)  # the first has the time of the import as well
    (stage.folder / "slow").touch()
    assert list(statuses(next(rounds)).values()) == ["ok"] * 4


def test_a_flood_ends_the_process_and_not_the_host(stage: Any) -> None:
    stage.add(
        """
        @hookimpl
        def probe_devices():
            return []
        @hookimpl
        def sample_devices(request):
            for number in range(100_000):
                request.touching(f"x:{number}")
                yield {"device": f"x:{number}", "busy": 0.5}
        """
    )
    rounds = stage.rounds()
    look = next(rounds)
    assert len(look.samples) <= 258
    assert rounds._engine.sources[0].problem == "more than 256 samples"


def test_a_child_that_dies_between_two_rounds_is_replaced(stage: Any) -> None:
    stage.add(SOURCE.format(deed="pass"))
    rounds = stage.rounds()
    next(rounds)
    import os
    import signal

    os.kill(rounds._engine.sources[0].run.pid, signal.SIGKILL)
    look = next(rounds)
    assert [f["code"] for f in look.findings] == ["prober-failed"]
    for _ in range(300):
        time.sleep(0.01)
        if set(statuses(next(rounds)).values()) == {"ok"}:
            return
    pytest.fail("it was not replaced")


def test_a_copy_of_the_process_ends_nothing(stage: Any) -> None:
    import os

    stage.add(SOURCE.format(deed="pass"))
    rounds = stage.rounds()
    next(rounds)
    child = os.fork()
    if not child:
        os._exit(0 if rounds.advance(-1) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert set(statuses(next(rounds)).values()) == {"ok"}
    assert isinstance(rounds, Rounds)
