"""Plugins that answer nonsense: one bad value costs itself, one bad device its own line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from weights import mostly_heavy

Hostile = Callable[..., dict[str, Any]]

CASES: dict[str, tuple[str, str, str]] = {
    "none": ("pass", "invalid", "returned None"),
    "text": ("return 'gpu'", "invalid", "returned str"),
    "bytes": ("return b'gpu'", "invalid", "returned bytes"),
    "mapping": ("return ONE", "invalid", "put devices in a list"),
    "number": ("return 1", "invalid", "returned int"),
    "module": ("return os", "invalid", "returned module"),
    "class": ("return list", "invalid", "returned type"),
    "coroutine": (
        "async def f(): ...\nreturn f()",
        "invalid",
        "returned a coroutine; a prober is a plain function",
    ),
    "async-generator": ("async def f(): yield ONE\nreturn f()", "invalid", "async_generator"),
    "texts-for-devices": ("return ['gpu0', 'gpu1']", "invalid", "a device must be a mapping"),
    "no-ids": ("return [{'kind': 'gpu'}]", "invalid", "no usable 'ids'"),
    "bad-ids": ("return [{'ids': ['0'], 'kind': 'gpu'}]", "invalid", "is not `kind:value`"),
    "no-kind": ("return [{'ids': ['x:1']}]", "invalid", "no usable 'kind'"),
    "unprintable-exception": (
        "class E(Exception):\n    def __str__(self): raise E\nraise E",
        "call_error",
        "E: (its message cannot be printed)",
    ),
    "huge-exception": ("raise ValueError('x' * 10**7)", "call_error", "ValueError: xxx"),
    "surrogates-in-exception": ("raise ValueError('\\udcff')", "call_error", "ValueError: \ufffd"),
    "escapes-in-exception": ("raise ValueError('\\x1b[2J')", "call_error", "ValueError: \ufffd[2J"),
    "group": (
        "raise ExceptionGroup('many', [ValueError(1), OSError(2)])",
        "call_error",
        "ExceptionGroup: many (2 sub-exceptions)",
    ),
    "base-exception": ("raise BaseException('all')", "call_error", "BaseException: all"),
    "generator-exit": ("raise GeneratorExit", "call_error", "GeneratorExit"),
    "stop-iteration": ("raise StopIteration", "call_error", "StopIteration"),
    "interrupt": ("raise KeyboardInterrupt", "call_error", "KeyboardInterrupt"),
    "unavailable-object": ("raise Unavailable(object(), fix=[])", "unavailable", "object"),
    "unavailable-huge": ("raise Unavailable('x' * 10**7)", "unavailable", "xxx"),
    "not-applicable-object": ("return not_applicable(ONE)", "invalid", "needs a reason"),
    "iterator-raises-at-once": (
        "class I:\n    def __iter__(self): raise OSError('no iterator')\nreturn I()",
        "call_error",
        "OSError: no iterator",
    ),
    "iterates-to-itself": (
        "class I:\n    __iter__ = lambda s: s\nreturn I()",
        "call_error",
        "TypeError",
    ),
    "lies-about-its-class": (
        "class L:\n    __class__ = property(lambda s: 1 / 0)\nreturn L()",
        "call_error",
        "ZeroDivisionError",
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", CASES)
def test_answer(hostile: Hostile, case: str) -> None:
    body, status, reason = CASES[case]
    outcome = hostile(body)
    assert outcome["status"] == status
    assert reason in outcome["reason"]
    assert len(outcome["reason"]) <= 1100
    json.dumps(outcome["document"], allow_nan=False).encode("ascii")


def test_generator_that_raises_midway_keeps_what_it_had(hostile: Hostile) -> None:
    outcome = hostile("yield ONE\nraise OSError('lost')")
    assert (outcome["status"], outcome["partial"], outcome["devices"]) == ("call_error", True, 1)


def test_generator_that_never_ends(hostile: Hostile) -> None:
    outcome = hostile(
        "n = 0\nwhile True:\n    n += 1\n    yield {'ids': [f'x:{n}'], 'kind': 'npu'}"
    )
    assert (outcome["status"], outcome["devices"]) == ("resource", 256)
    assert outcome["reason"] == "more than 256 devices"


@pytest.mark.heavy
def test_generator_of_findings_that_never_ends(hostile: Hostile) -> None:
    body = "yield ONE\nwhile True: yield finding('c', what='w', why='y', fix='f')"
    outcome = hostile(body, timeout=0.6)
    assert (outcome["status"], outcome["devices"]) == ("timeout", 1)
    assert len(outcome["document"]["findings"]) < 80


VALUES: dict[str, tuple[str, str, str]] = {
    # what: (value of a field in Python, field, why it is unknown)
    "nan": ("float('nan')", "bandwidth", "nan is not finite"),
    "infinity": ("float('inf')", "units", "inf is not finite"),
    "negative": ("-1", "units", "-1 is not between"),
    "zero": ("0", "memory_bytes", "0 is not between"),
    "beyond-64-bits": ("10**400", "memory_bytes", "a number beyond 64 bits"),
    "absurd": ("2**62", "memory_bytes", "is not between"),
    "bool-for-int": ("True", "units", "expected a number, found bool True"),
    "text-for-number": ("'128'", "units", "expected a number, found str '128'"),
    "number-for-text": ("5", "name", "expected text, found int 5"),
    "object": ("object()", "name", "a object is not JSON"),
    "function": ("print", "vendor", "a builtin_function_or_method is not JSON"),
    "deep": ("{'a': DEEP}", "extra", "not small plain data"),
    "no-object": ("[]", "extra", "expected a table, found list []"),
    "itself": ("LOOP", "extra", "not small plain data"),
    "wide": ("{'a': list(range(10**6))}", "extra", "not small plain data"),
    "set": ("{1, 2}", "backends", "a set is not JSON"),
    "empty": ("''", "name", "it is empty"),
    "no-table": ("5", "memory", "expected a table"),
    "odd-link": ("[{'kind': 'pcie', 'peer': 'nobody'}]", "links", "is not `kind:value`"),
}
SETUP = """
DEEP = []
for _ in range(100_000): DEEP = [DEEP]
LOOP = {}
LOOP["self"] = LOOP
"""


@pytest.mark.parametrize("case", mostly_heavy(VALUES, 3))
def test_a_bad_value_never_costs_a_device(hostile: Hostile, case: str) -> None:
    value, field, reason = VALUES[case]
    outcome = hostile(
        f"{SETUP}\nyield {{**ONE, {field!r}: {value}}}\nyield {{**ONE, 'ids': ['x:2']}}"
    )
    assert (outcome["status"], outcome["devices"]) == ("ok", 2)
    devices = {device["id"]: device for device in outcome["document"]["devices"]}
    path = "memory.total" if field == "memory_bytes" else field
    reasons = " ".join(
        f"{k}: {v}" for k, v in devices["x:1"]["unknown"].items() if k.startswith(path)
    )
    assert reason in reasons
    assert any(one["code"] == "value-rejected" for one in outcome["document"]["findings"])
    json.dumps(outcome["document"], allow_nan=False)


BITING: dict[str, str] = {
    "keys-raise": "class B:\n    def keys(self): raise RuntimeError",
    "getattr-exits": "class B:\n    def __getattr__(self, n): raise AttributeError(n)",
    "items-change": "class B(dict):\n    def items(self): raise SystemExit",
    "metaclass": "class M(type):\n    __name__ = property(lambda c: 1 / 0)\n"
    "class B(metaclass=M): pass",
    "length-lies": "class B(dict):\n    __len__ = lambda s: 10**9",
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", BITING)
def test_a_device_that_bites_never_costs_its_siblings(hostile: Hostile, case: str) -> None:
    outcome = hostile(f"{BITING[case]}\nyield ONE\nyield B()\nyield {{**ONE, 'ids': ['x:2']}}")
    assert (outcome["status"], outcome["devices"]) == ("ok", 2)


def test_the_same_id_twice_is_one_device(hostile: Hostile) -> None:
    outcome = hostile("yield {**ONE, 'name': 'First'}\nyield {**ONE, 'name': 'Second'}")
    assert (outcome["status"], outcome["devices"]) == ("ok", 1)
    device = next(d for d in outcome["document"]["devices"] if d["id"] == "x:1")
    assert device["name"] == "First"
    assert "two devices have the id x:1" in str(outcome["document"]["findings"])


def test_a_claim_on_anothers_device_changes_nothing_of_it(hostile: Hostile) -> None:
    """The good prober's `good:1` stays an NPU without a name unless somebody adds one."""
    outcome = hostile(
        "yield {'ids': ['good:1'], 'kind': 'gpu', 'name': 'Mine'}", priority={"good": 500}
    )
    device = next(d for d in outcome["document"]["devices"] if d["id"] == "good:1")
    assert device["kind"] == "npu"
    assert device["sources"]["kind"] == "good"
    assert device["others"]["kind"] == [{"prober": "bad", "value": "gpu"}]


def test_a_device_cannot_be_two(hostile: Hostile) -> None:
    outcome = hostile("yield {'ids': ['pci:01:00.0', 'pci:02:00.0'], 'kind': 'gpu'}\nyield ONE")
    assert (outcome["status"], outcome["devices"]) == ("ok", 1)
    assert "one device has one PCI address" in str(outcome["document"]["findings"])


def test_an_odd_id_never_costs_a_device_that_has_another(hostile: Hostile) -> None:
    outcome = hostile(
        "yield {**ONE, 'ids': ['x:1', 'uuid:GPU 1', 'pci:01:00.0', 'pci:02:00.0', 7, '']}"
    )
    assert (outcome["status"], outcome["devices"]) == ("ok", 1)
    device = next(d for d in outcome["document"]["devices"] if d["id"] == "x:1")
    assert device["ids"] == ["x:1"]
    (finding,) = (f for f in outcome["document"]["findings"] if f["code"] == "value-rejected")
    assert finding["prober"] == "bad"
    assert finding["why"] == (
        "ids: the id 'uuid:GPU 1' holds characters other than printable ASCII;"
        " ids: an id must be text, found int 7;"
        " ids: the id '' is not `kind:value` of at most 256 characters;"
        " ids: one device has one PCI address, found pci:0000:01:00.0, pci:0000:02:00.0;"
        " it is joined by none"
    )


def test_a_parent_may_be_missing_or_oneself(hostile: Hostile) -> None:
    outcome = hostile(
        "yield {**ONE, 'parent': 'x:1', 'share': {'units': 1, 'of': 7}}\n"
        "yield {'ids': ['x:2'], 'kind': 'npu', 'parent': 'x:3'}\n"
        "yield {'ids': ['x:3'], 'kind': 'npu', 'parent': 'x:2'}\n"
        "yield {'ids': ['x:4'], 'kind': 'npu', 'parent': 'x:nobody'}"
    )
    assert (outcome["status"], outcome["devices"]) == ("ok", 4)


UNSAFE = "\x1b]0;pwned\x07\u202egnp\u2066x\u200b\r\n\x00\x9b31m\ud800end"


def test_no_control_character_reaches_the_report(hostile: Hostile) -> None:
    body = f"""
    bad = {UNSAFE!r}
    yield {{**ONE, 'name': bad, 'vendor': bad, 'extra': {{bad: bad}}, 'driver': {{bad: bad}},
           'clocks': {{bad: 'x'}}, 'unknown': {{bad: bad}}, bad: bad, 'backends': [bad],
           'links': [{{'kind': bad, bad: bad}}]}}
    yield finding(bad, what=bad, why=bad, fix=bad)
    raise Unavailable(bad, code=bad, fix=bad)
    """
    outcome = hostile(body)
    text = json.dumps(outcome["document"], ensure_ascii=False)
    for character in "\x1b\x07\u202e\u2066\u200b\x9b\ud800":
        assert character not in text
        assert json.dumps(character)[1:-1] not in text
    assert "\\u0000" not in text
