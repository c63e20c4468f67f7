"""Each answer a prober can give, right or wrong, ends in one status with a reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from probe_core.isolation.run import Run
from probe_core.machine import Machine

Hook = Callable[..., Run]
DEVICE = '{"ids": ["x:1"], "kind": "npu"}'


def test_devices_come_back_as_they_were_yielded(run_hook: Hook) -> None:
    run = run_hook(f'yield {DEVICE}\nyield {{"ids": ["x:2"], "kind": "gpu", "units": 7}}')
    assert (run.status, run.reason, run.partial) == ("ok", None, False)
    assert run.sightings == [
        {"ids": ["x:1"], "kind": "npu"},
        {"ids": ["x:2"], "kind": "gpu", "units": 7},
    ]


def test_findings_travel_among_devices(run_hook: Hook) -> None:
    run = run_hook(f'yield finding("a-code", what="w", why="y", fix="f")\nyield {DEVICE}')
    assert [finding["code"] for finding in run.findings] == ["a-code"]
    assert len(run.sightings) == 1


ANSWERS = [
    (f"return [{DEVICE}]", "ok", ""),
    (f"return ({DEVICE},)", "ok", ""),
    (f"return iter([{DEVICE}])", "ok", ""),
    ("return []", "not_applicable", "it found no devices"),
    ("return\nyield", "not_applicable", "it found no devices"),
    ('return not_applicable("no Acme card")', "not_applicable", "no Acme card"),
    ('yield from ()\nreturn not_applicable("none left")', "not_applicable", "none left"),
    ('return not_applicable("")', "invalid", "needs a reason"),
    ("return not_applicable(None)", "invalid", "needs a reason"),
    ('raise Unavailable("no driver")', "unavailable", "no driver"),
    ("raise Unavailable(None)", "unavailable", "no reason given"),
    ("pass", "invalid", "returned None"),
    ('return "gpu"', "invalid", "returned str"),
    ('return b"gpu"', "invalid", "returned bytes"),
    (f"return {DEVICE}", "invalid", "put devices in a list"),
    ("return 5", "invalid", "returned int"),
    ("return dict", "invalid", "returned type"),
    ('raise ValueError("broken")', "call_error", "ValueError: broken"),
    ("raise SystemExit(3)", "call_error", "sys.exit(3)"),
    ("raise KeyboardInterrupt", "call_error", "KeyboardInterrupt"),
    ("raise MemoryError", "resource", "out of memory"),
    ("return [{} for _ in range(300)]", "resource", "more than 256 devices"),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("body", "status", "reason"), ANSWERS)
def test_every_answer_has_its_status(run_hook: Hook, body: str, status: str, reason: str) -> None:
    run = run_hook(body)
    assert run.status == status
    assert reason in (run.reason or "")


def test_a_coroutine_is_named_and_not_left_unawaited(run_source: Hook) -> None:
    run = run_source("@hookimpl\nasync def probe_devices(request):\n    return []")
    assert run.status == "invalid"
    assert "coroutine; a prober is a plain function" in (run.reason or "")
    assert run.tail == b""


def test_unavailable_carries_code_and_fix(run_hook: Hook) -> None:
    run = run_hook('raise Unavailable("r", code="no-permission", fix="join the group video")')
    assert run.details == {"code": "no-permission", "fix": "join the group video"}


def test_devices_before_an_exception_are_kept(run_hook: Hook) -> None:
    run = run_hook(f'yield {DEVICE}\nraise OSError("gone")')
    assert (run.status, run.partial, len(run.sightings)) == ("call_error", True, 1)
    assert "OSError: gone" in run.stderr_tail()[-1]


def test_the_request_says_what_is_asked(run_hook: Hook, tmp_path: object) -> None:
    machine = Machine(str(tmp_path), {"A": "b\udcff"}, "linux", "riscv64")
    run = run_hook(
        """
        m = request.machine
        yield {"ids": ["x:1"], "kind": "npu", "extra": {"env": dict(m.environ), "arch": m.arch,
               "live": m.live, "bus": request.bus, "active": request.active,
               "deadline": request.deadline_s}}
        """,
        machine=machine,
        bus=[{"ids": ["pci:0000:01:00.0"]}],
        active=True,
        deadline_s=7.5,
    )
    assert run.sightings[0]["extra"] == {
        "env": {"A": "b\udcff"},
        "arch": "riscv64",
        "live": False,
        "bus": [{"ids": ["pci:0000:01:00.0"]}],
        "active": True,
        "deadline": 7.5,
    }


def test_one_item_that_cannot_be_read_costs_itself(run_source: Hook) -> None:
    run = run_source(
        """
        class Bites:
            def keys(self): raise RuntimeError("no")
        class Meta(type):
            __name__ = property(lambda cls: 1 / 0)
        class Odd(metaclass=Meta): pass

        @hookimpl
        def probe_devices(request):
            yield Bites()
            yield {"ids": ["x:1"], "kind": "npu", "name": Odd()}
            yield {"ids": ["x:2"], "kind": "npu"}
        """
    )
    assert run.status == "ok"
    assert "RuntimeError while reading a Bites" in str(run.sightings[0])
    assert "a Odd is not JSON" in str(run.sightings[1]["name"])
    assert run.sightings[2]["ids"] == ["x:2"]


def test_what_was_printed_is_there_before_the_end(run_hook: Hook) -> None:
    run = run_hook('print("out", end="")\nyield {"ids": ["x:1"], "kind": "npu"}')
    assert (run.status, run.stderr_tail()) == ("ok", ["out"])
