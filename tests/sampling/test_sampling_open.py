"""`open_sampler`: an object per process that is asked each round, and closed at the end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

GPU = "pci:0000:01:00.0"

HEAD = """
HERE = os.path.dirname(__file__)
def note(word):
    with open(os.path.join(HERE, "log"), "a") as file:
        file.write(word + "\\n")
@hookimpl
def probe_devices(request):
    return []
"""

SAMPLER = """
class Sampler:
    def __init__(self, request):
        note(f"open {request.round}")
        self.request = request
        self.rounds = 0
    def sample(self, request):
        self.rounds += 1
        BODY
        for name, may_ask in each_card(request, NAMES[:2]):
            if may_ask:
                yield {"device": name, "busy": self.rounds / 4, "temperature_c": request.round}
    def close(self):
        note(f"close after {self.rounds}")

@hookimpl
def open_sampler(request):
    OPEN
    return Sampler(request)
"""


def source(body: str = "pass", opening: str = "pass") -> str:
    return HEAD + SAMPLER.replace("BODY", body).replace("OPEN", opening)


def log(stage) -> list[str]:
    return Path(stage.folder, "log").read_text().splitlines()


def test_the_object_is_kept_between_rounds_and_closed_at_the_end(stage) -> None:
    stage.add(source())
    with stage.rounds(3) as rounds:
        seen = [look.sample(GPU) for look in rounds]
    assert [(sample["busy"], sample["temperature_c"]) for sample in seen] == [
        (0.25, 1),
        (0.5, 2),
        (0.75, 3),
    ]
    assert log(stage) == ["open 1", "close after 3"]


def test_what_a_round_raises_is_the_rounds_own(stage) -> None:
    stage.add(source("if self.rounds == 2: raise KeyError('second')"))
    with stage.rounds(3) as rounds:
        looks = list(rounds)
    assert [look.sample(GPU)["status"] for look in looks] == ["ok", "unavailable", "ok"]
    assert looks[1].sample(GPU)["reason"] == "KeyError: 'second'"
    assert looks[2].sample(GPU)["busy"] == 0.75
    assert [len(look.findings) for look in looks] == [0, 1, 0]
    assert looks[1].findings[0]["code"] == "prober-failed"
    assert log(stage) == ["open 1", "close after 3"]


def test_what_opening_raises_is_the_rounds_answer_and_it_is_opened_again(stage) -> None:
    stage.add(
        source(opening="if request.round == 1: raise Unavailable('the driver is not loaded')")
    )
    with stage.rounds(2) as rounds:
        first = next(rounds)
        assert rounds._engine.sources[0].problem == "the driver is not loaded"
        second = next(rounds)
    assert (first.findings, first.samples[:-1]) == ([], [])
    assert second.sample(GPU)["busy"] == 0.25
    assert log(stage) == ["open 2", "close after 1"]


def test_a_sampler_with_nothing_to_sample_ends(stage) -> None:
    stage.add(source(opening="note('asked'); return not_applicable('none here')"))
    with stage.rounds() as rounds:
        assert [next(rounds).findings for _ in range(2)] == [[], []]
        assert rounds._engine.sources[0].problem == "none here"
    assert log(stage) == ["asked"]


def test_a_device_that_kills_the_process_costs_the_object_and_the_next_goes_around_it(
    stage,
) -> None:
    fatal = "            if may_ask and (name, request.round) == (NAMES[1], 2): os._exit(3)\n"
    stage.add(source().replace("            if may_ask:\n", f"{fatal}            if may_ask:\n"))
    rounds = stage.rounds()
    assert [next(rounds).sample(GPU)["busy"] for _ in range(2)] == [0.25, 0.5]
    for _ in range(200):
        time.sleep(0.02)  # rounds take no time here, and the new process some
        look = next(rounds)
        if look.sample(GPU)["status"] == "ok":
            break
    # Another object: it counts its rounds anew, and has never asked the other device.
    assert look.sample(GPU)["busy"] == 0.25
    assert look.sample("pci:0000:02:00.0")["status"] == "unresponsive"
    assert log(stage) == ["open 1", "open 2"]


def test_a_changed_set_of_devices_is_in_the_rounds_request(stage) -> None:
    """Where the kernel suspends a GPU between two rounds, it is in the request's `asleep`."""
    stage.add(source("note(','.join(sorted(request.asleep)) or 'none')"))
    folder = stage.folder / "root/sys/bus/pci/devices/0000:01:00.0"
    (folder / "power").mkdir(parents=True)
    for name, text in (("class", "0x030000"), ("vendor", "0x10de"), ("device", "0x2684")):
        (folder / name).write_text(text)
    (folder / "power/runtime_status").write_text("active")
    with stage.rounds(2) as rounds:
        first = next(rounds).sample(GPU)
        (folder / "power/runtime_status").write_text("suspended")
        second = next(rounds).sample(GPU)
    assert [first["status"], second["status"]] == ["ok", "asleep"]
    assert log(stage)[:3] == ["open 1", "none", GPU]


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("def sample(self, *args):", "request, = args"),
        ("def sample(self):", "request = self.request"),
        ("def sample(self, request=None):", "pass"),
    ],
)
def test_sample_may_do_without_the_argument(stage, method: str, call: str) -> None:
    stage.add(source(call).replace("def sample(self, request):", method))
    with stage.rounds(2, selected=["02:00.0"]) as rounds:
        looks = list(rounds)
    assert [[s["temperature_c"] for s in look.samples] for look in looks] == [[1], [2]]
    assert looks[0].samples[0]["device"] == "pci:0000:02:00.0"


def test_close_may_be_missing_and_its_exception_hurts_nobody(stage) -> None:
    stage.add(source().replace("def close", "def other"), "quiet")
    stage.add(source().replace('note(f"close after', 'raise KeyError(f"close after'), "raising")
    with stage.rounds(1) as rounds:
        assert next(rounds).sample(GPU)["status"] == "ok"
    assert log(stage) == ["open 1", "open 1"]


def test_with_both_hooks_the_object_is_asked(stage) -> None:
    old = "@hookimpl\ndef sample_devices(request):\n    note('old')\n    return []\n"
    stage.add(source() + old + "@hookimpl\ndef sample_close():\n    note('old close')\n")
    with stage.rounds(1) as rounds:
        assert next(rounds).sample(GPU)["busy"] == 0.25
    assert log(stage) == ["open 1", "close after 1"]


@pytest.mark.parametrize(
    ("opening", "problem"),
    [
        ("return None", "NoneType"),
        ("return 3", "int"),
        ("return Sampler", "the class itself"),
        ("return [{'device': 'pci:0000:01:00.0'}]", "list"),
    ],
)
def test_what_is_no_sampler_is_named(stage, opening: str, problem: str) -> None:
    stage.add(source(opening=opening))
    rounds = stage.rounds()
    look = next(rounds)
    assert rounds._engine.sources[0].problem == (
        f"open_sampler returned {problem}; return an object with sample() and close(), "
        "or not_applicable(reason)"
    )
    assert look.findings[0]["evidence"] == "invalid"


def test_the_mark_is_asked_for_as_of_any_hook(stage) -> None:
    stage.add(HEAD + "def open_sampler(request):\n    return None\n")
    rounds = stage.rounds()
    next(rounds)
    assert rounds._engine.sources[0].problem == (
        "open_sampler of stage_acme lacks the @hookimpl mark of probe_core.api"
    )


def test_the_process_is_one_for_all_rounds(stage) -> None:
    stage.add(source("note(str(os.getpid()))"))
    with stage.rounds(3) as rounds:
        list(rounds)
    pids = log(stage)[1:-1]
    assert len(pids) == 3
    assert len(set(pids)) == 1
    assert str(os.getpid()) not in pids
