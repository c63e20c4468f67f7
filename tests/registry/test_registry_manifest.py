"""A mistake in a manifest is told and costs the prober nothing but that setting."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe_core.registry import is_module_name
from probe_core.registry.extensions import manifest_table, texts
from probe_core.registry.prober import MAX_PROBLEMS, WHEN_KEYS, Prober, discover, take_field

Install = Callable[..., Path]

IS_SHALLOW = sys.version_info < (3, 14) or "t" in sys.abiflags
"""Whether json ends before 60,000 levels: from 3.14 on C's stack bounds them, of which a
free-threaded build takes more for each."""


def problems(site: Path) -> tuple[Prober, list[str]]:
    probers, findings = discover({}, [str(site)])
    assert all(one["code"] == "manifest-problem" for one in findings)
    return probers[0], [one["why"] for one in findings]


FILES = [
    ("", "Expecting value"),
    ("[]", 'expected {"schema": 1'),
    ("null", 'expected {"schema": 1'),
    ('{"schema": 2, "probers": {}}', "schema 2 is not supported"),
    ('{"probers": {"acme": {}}}', "schema None is not supported"),
    ('{"schema": 1, "probers": []}', 'expected {"schema": 1'),
    ('{"schema": 1, "probers": {"acne": {}}}', "says nothing of 'acme': did you mean 'acne'?"),
    ('{"schema": 1, "probers": {"acme": 5}}', "says nothing of 'acme'"),
    ("[" * 60_000, "nested too deep" if IS_SHALLOW else "Expecting value"),
    (f'{{"schema": {"[" * 700}{"]" * 700}, "probers": {{}}}}', "is not supported"),
    (json.dumps({"x": "y" * 70_000}), "longer than 65536 bytes"),
    ('{"schema": ' + "9" * 5000 + ', "probers": {}}', ""),
]


@pytest.mark.parametrize(("text", "why"), FILES)
def test_a_manifest_that_is_none(install: Install, site: Path, text: str, why: str) -> None:
    install(manifest=text)
    prober, told = problems(site)
    assert (prober.priority, prober.when, prober.rejection) == (100, [], None)
    assert len(told) == 1
    assert told[0].startswith("x_acme.prober.json: ")
    assert why in told[0]


EXPECTED = 'expected {"schema": 1, "exporters": {NAME: {…}}}'
REFUSED = [
    ("[]", re.escape(EXPECTED)),
    ('{"schema": 1, "exporters": []}', re.escape(EXPECTED)),
    ('{"schema": true, "exporters": {}}', "schema True is not supported; expected 1"),
    ("[" * 60_000, "it is nested too deep" if IS_SHALLOW else "Expecting value.*"),
    (" " * 65_537, "longer than 65536 bytes"),
    (None, "Is a directory|not a regular file"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_manifest_of_something_else_than_probers(
    tmp_path: Path, text: str | None, why: str
) -> None:
    path = tmp_path / "x.exporter.json"
    path.mkdir() if text is None else path.write_text(text)
    with pytest.raises(ValueError, match=f"^({why})$"):
        manifest_table(str(path), "exporters")


def test_the_table_and_the_texts_of_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "x.exporter.json"
    path.write_text('{"schema": 1, "exporters": {"x": {"summary": "four"}}}'.ljust(65_536))
    table = manifest_table(str(path), "exporters")  # as long as one may be
    assert texts(table, "x", [("summary", 4), ("group", 2)]) == {"summary": "four"}
    for limits, why in (
        ([("summary", 3)], "summary must be text of at most 3 characters, found 'four'"),
        ([("group", 3)], "unknown key 'summary': known: group"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
            texts(table, "x", limits)


ODD: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "a FIFO": lambda path: os.mkfifo(path),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a loop": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "not UTF-8": lambda path: path.write_bytes(b'{"\xff'),
}


@pytest.mark.parametrize("how", ODD)
def test_a_manifest_that_is_no_file(install: Install, site: Path, how: str) -> None:
    install()
    ODD[how](site / "x_acme.prober.json")
    start = time.monotonic()
    prober, told = problems(site)
    assert time.monotonic() - start < 10.0
    # What root must not use is not even read, so there is nothing in it to correct.
    refused = os.geteuid() == 0 and how == "a device"
    assert (prober.rejection, len(told)) == (None, 0 if refused else 1)
    assert bool(prober.distrust) is refused


FIELDS: list[tuple[str, Any, str]] = [
    ("priority", 0, "expected a whole number from 1 to 999"),
    ("priority", 1000, "expected a whole number from 1 to 999"),
    ("priority", True, "expected a whole number"),
    ("priority", "500", "expected a whole number"),
    ("deadline_s", 0, "expected seconds above 0 and up to 120"),
    ("deadline_s", -1, "expected seconds"),
    ("deadline_s", 121, "expected seconds"),
    ("deadline_s", float("inf"), "expected seconds"),
    ("deadline_s", float("nan"), "expected seconds"),
    ("api", "1", 'expected "major.minor"'),
    ("api", 1.0, "expected text"),
    ("summary", "x" * 501, "at most 500 characters"),
    ("active", 1, "expected true or false"),
    ("when", "linux", "expected a table"),
    ("when", {"paths": ["/x"]}, "did you mean 'any_path'?"),
    ("when", {"any_module": ["acme-sdk"]}, "names of modules"),
    ("when", {"os": "linux"}, "os must be a list of texts"),
    ("when", {"os": [5]}, "os must be a list of texts"),
    ("when", {"any_path": ["dev/acme"]}, "any_path must hold absolute paths"),
    ("when", {"any_path": ["/" + "x" * 300]}, "longer than 256 characters"),
    ("when", {"any_path": ["/x"] * 65}, "holds more than 64 texts"),
    ("when", {"pci_vendor": ["nvidia"]}, 'vendor ids such as "10de"'),
    ("when", [{}] * 65, "more than 64 alternatives"),
    ("priorty", 5, "unknown key 'priorty': did you mean 'priority'?"),
]


@pytest.mark.parametrize(("key", "value", "why"), FIELDS)
def test_one_bad_field_costs_itself(
    install: Install, site: Path, key: str, value: Any, why: str
) -> None:
    install(manifest={"summary": "S", key: value} if key != "summary" else {key: value})
    prober, (told,) = problems(site)
    assert why in told
    default = Prober("acme", "x_acme")
    assert getattr(prober, key, None) == getattr(default, key, None)
    assert prober.summary == ("" if key == "summary" else "S")


@pytest.mark.parametrize(
    ("key", "value", "taken"),
    [
        ("priority", 1, 1),
        ("priority", 999, 999),
        ("deadline_s", 120, 120.0),
        ("deadline_s", 0.001, 0.001),
        ("deadline_s", 120.001, None),
        ("deadline_s", True, None),
        ("deadline_s", 10**400, None),
        ("api", "01.10", "1.10"),
        ("api", "1.", None),
        ("api", ".1", None),
        ("api", "1.2.3", None),
        ("api", "10", None),
        ("summary", "x" * 500, "x" * 500),
        ("active", False, False),
        ("when", {"any_path": ["/" + "x" * 255]}, [{"any_path": ["/" + "x" * 255]}]),
        ("when", {"any_path": ["/" + "x" * 256]}, None),
        ("when", {"any_path": ["/x"] * 64}, [{"any_path": ["/x"] * 64}]),
        ("when", [{"os": ["linux"]}] * 64, [{"os": ["linux"]}] * 64),
        ("when", {"os": []}, [{"os": []}]),
        ("when", {"os": [""]}, None),
        ("when", {"pci_vendor": ["0x10DE", "1002"]}, [{"pci_vendor": ["0x10DE", "1002"]}]),
        ("when", {"pci_vendor": ["10de1"]}, None),
        ("when", {"pci_vendor": ["1de"]}, None),
        ("when", {"pci_vendor": ["10dg"]}, None),
        ("when", {"all_path": ["x"]}, None),
        ("when", {"any_module": ["a.b"]}, [{"any_module": ["a.b"]}]),
    ],
)
def test_a_field_at_its_bounds(key: str, value: Any, taken: Any) -> None:
    prober = Prober("acme", "x_acme")
    before = getattr(prober, key)
    take_field(prober, key, value)
    assert getattr(prober, key) == (before if taken is None else taken)
    assert len(prober.problems) == (taken is None)


def test_what_is_told_of_a_wrong_field_is_bounded() -> None:
    prober = Prober("acme", "x_acme")
    take_field(prober, "k" * 99, "v" * 99)
    take_field(prober, "active", "v" * 99)
    first, second = prober.problems
    assert first.reason.startswith(f"unknown key '{'k' * 80}': ")
    shown = "'" + "v" * 59
    assert first.evidence == f"registered by the host as 'acme': {'k' * 80} = {shown}"
    assert second.reason == f"active: expected true or false, found {shown}"


def test_findings_of_manifests_name_prober_path_and_value(install: Install, site: Path) -> None:
    install(manifest={"priority": 0})
    install("bad", manifest="[]")
    path = site / "x_acme.prober.json"
    findings = {one["prober"]: one["evidence"] for one in discover({}, [str(site)])[1]}
    assert findings["acme"] == f"{path}: priority = 0"
    assert str(findings["bad"]).startswith(f"{site}/x_bad.prober.json: expected {{")
    (one,) = discover({"mine": {"target": "x_mine", "priority": 0}}, [])[1]
    assert one["evidence"] == "registered by the host as 'mine': priority = 0"


def test_many_mistakes_are_told_once_and_quickly(install: Install, site: Path) -> None:
    install(manifest={f"key{n}": n for n in range(3000)})
    start = time.monotonic()
    _, told = problems(site)
    assert len(told) == MAX_PROBLEMS
    assert time.monotonic() - start < 10.0


def test_an_alternative_that_demands_nothing_always_holds(install: Install, site: Path) -> None:
    install(manifest={"when": [{"os": ["beos"]}, {}]})
    assert problems(site)[0].when == []


def test_the_manifest_of_a_package_and_of_a_module_in_one(install: Install, site: Path) -> None:
    install(entries="[probe_core.probers.v1]\na = x_pkg.one\nb = x_pkg.two\nc = x_pkg")
    package = site / "x_pkg"
    package.mkdir()
    for name in ("__init__", "one", "two"):
        (package / f"{name}.py").touch()
    tables = {"a": {"priority": 10}, "b": {"priority": 20}, "c": {"priority": 30}}
    (package / "prober.json").write_text(json.dumps({"schema": 1, "probers": tables}))
    (package / "two.prober.json").write_text('{"schema": 1, "probers": {"b": {"priority": 25}}}')
    probers, findings = discover({}, [str(site)])
    assert {p.name: p.priority for p in probers} == {"a": 10, "b": 25, "c": 30}
    assert findings == []


def test_a_single_module_takes_no_strangers_manifest(install: Install, site: Path) -> None:
    install()
    (site / "prober.json").write_text('{"schema": 1, "probers": {"acme": {"priority": 999}}}')
    assert problems(site)[0].priority == 100


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WHEN_KEYS) | st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=9,
)


@pytest.mark.heavy
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["summary", "api", "priority", "deadline_s", "active", "when", "x"]), JSON)
def test_any_value_is_taken_or_told(key: str, value: Any) -> None:
    prober = Prober("acme", "x_acme")
    take_field(prober, key, value)
    assert len(prober.problems) <= 1
    assert 1 <= prober.priority <= 999
    assert 0 < prober.deadline_s <= 120
    assert [int(part) for part in prober.api.split(".")]
    assert all(w for alternative in prober.when for w in alternative)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", True), ("a.b_2", True), ("é", True), ("a" * 200, True), ("a." * 99 + "bc", True),
        ("", False), ("a" * 201, False), ("a." * 100 + "b", False), ("a.", False), (".a", False),
        ("a..b", False), ("a-b", False), ("2a", False), ("a b", False), ("a:b", False),
    ],
)  # fmt: skip
def test_what_is_the_name_of_a_module(name: str, expected: bool) -> None:
    assert is_module_name(name) is expected
