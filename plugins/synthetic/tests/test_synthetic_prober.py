"""Every line of the README's tables holds, through the core and a real process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from probe_core import Machine, probe
from probe_core.api import NotApplicable, Request, Unavailable
from probe_core.isolation import processes
from probe_core.model import Report
from probe_synthetic.behaviours import BEHAVIOURS
from probe_synthetic.prober import VARIABLE, check, probe_devices

README = Path(__file__).parents[1] / "README.md"
DEVICE = {"ids": ["x:1"], "kind": "npu", "name": "One"}


def run(tmp_path: Path, content: Any, timeout: float = 5.0) -> tuple[Report, Any]:
    (tmp_path / "devices.json").write_text(json.dumps(content))
    machine = Machine(str(tmp_path), {VARIABLE: "/devices.json"})
    report = probe(
        machine=machine,
        only=["synthetic"],
        timeout=timeout,
        probers={"synthetic": "probe_synthetic.prober"},
    )
    return report, next(outcome for outcome in report.outcomes if outcome.prober == "synthetic")


def test_devices_and_findings_come_through(tmp_path: Path) -> None:
    demo = {"code": "demo", "what": "w", "why": "y", "fix": "f"}
    report, outcome = run(tmp_path, {"devices": [DEVICE], "findings": [demo], "delay_s": 0.01})
    assert (outcome.status, outcome.devices) == ("ok", 1)
    assert "One" in [device.name for device in report]
    assert "demo" in [finding.code for finding in report.findings]


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(\[.*?\])\n```", README.read_text(), re.DOTALL)
    report, outcome = run(tmp_path, json.loads(example))
    assert (outcome.status, outcome.reason) == ("ok", None)
    assert report.devices[0].name == "NVIDIA GeForce RTX 4090"


def outcomes_of_the_readme() -> dict[str, str]:
    rows = re.findall(r"^\| (`[a-z`, -]+) \| (`.*) \|$", README.read_text(), re.MULTILINE)
    table = {}
    for names, outcome in rows:
        for name in re.findall("`([a-z-]+)`", names):
            table[name] = outcome.partition(":")[0]
    return table


def test_the_readme_names_every_behaviour() -> None:
    assert set(outcomes_of_the_readme()) == set(BEHAVIOURS)


@pytest.mark.heavy
@pytest.mark.parametrize("then", BEHAVIOURS)
def test_each_behaviour_has_the_outcome_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 128 << 20)
    expected = outcomes_of_the_readme()[then]
    # What does not end by itself meets the deadline; the others have time on a busy machine, too.
    deadline = 0.8 if expected == "`timeout`" else 20.0
    _, outcome = run(tmp_path, {"devices": [DEVICE], "then": then}, timeout=deadline)
    assert f"`{outcome.status}`" in expected
    assert outcome.devices == 1
    assert outcome.partial == (outcome.status != "ok")


BROKEN: list[tuple[Any, str]] = [
    (5, "expected a list of devices"),
    ({"device": []}, "expected a list of devices"),
    ({"devices": 5}, "devices must be a list"),
    ({"findings": {}}, "findings must be a list"),
    ({"delay_s": -1}, "delay_s must be seconds"),
    ({"delay_s": 3600.5}, "delay_s must be seconds"),
    ({"delay_s": True}, "delay_s must be seconds"),
    ({"delay_s": "1"}, "delay_s must be seconds"),
    ({"then": 5}, "then must be one of hang, spin"),
    (None, "expected a list of devices"),
    ({"then": "dance"}, "then must be one of hang, spin"),
]


@pytest.mark.parametrize(("content", "reason"), BROKEN)
def test_a_wrong_file_is_refused(content: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check(content)


def test_a_list_is_a_table_of_devices_and_what_is_not_named_is_empty() -> None:
    empty = {"devices": [], "findings": [], "samples": [], "delay_s": 0, "then": None}
    every = {"devices": [DEVICE], "findings": [{}], "samples": [{}], "delay_s": 3600}
    assert check([DEVICE]) == {**empty, "devices": [DEVICE]}
    assert check({}) == check({"delay_s": 0, "then": None}) == empty
    assert check({**every, "then": "hang"}) == {**every, "then": "hang"}


def ask(tmp_path: Path, environ: dict[str, str]) -> Any:
    generator = probe_devices(Request(Machine(str(tmp_path), environ)))
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value


def test_without_the_variable_nothing_is_here(tmp_path: Path) -> None:
    answer = ask(tmp_path, {})
    assert isinstance(answer, NotApplicable)
    assert answer.reason == "PROBE_SYNTHETIC names no file"


def test_a_file_without_devices(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("[]")
    assert ask(tmp_path, {VARIABLE: "/empty"}).reason == "/empty has no devices"


@pytest.mark.parametrize(
    ("text", "code"), [(None, "file-missing"), ("{", "file-broken"), ("[" * 99_999, "file-broken")]
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str | None, code: str) -> None:
    if text is not None:
        (tmp_path / "file").write_text(text)
    with pytest.raises(Unavailable) as caught:
        ask(tmp_path, {VARIABLE: "/file"})
    assert caught.value.code == code
