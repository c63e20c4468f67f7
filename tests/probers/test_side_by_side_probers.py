"""Probers that ask cards side by side say the same of each recorded machine as one by one."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from probe_core import api, side_by_side
from probe_core.api import NotApplicable, Request
from probe_core.probers import bus
from probe_core.recording.opening import open_machine

MACHINES = Path(__file__).resolve().parents[1] / "machines"
CASES = [
    (prober, path)
    for prober, word in (("probe_amd", "amd"), ("probe_intel", "intel"))
    for path in sorted(MACHINES.glob(f"*{word}*.json"))
]


def answer(prober: Any, machine: api.Machine) -> tuple[list[Any], list[Any]]:
    """Return what a prober says, and the kinds of its announcements."""
    seen = bus.probe_devices(Request(machine))
    cards = [] if isinstance(seen, NotApplicable) else list(seen)
    heard: list[str] = []
    request = Request(machine, cards, announce=lambda kind, device: heard.append(kind))
    said = prober.probe_devices(request)
    return [said.reason] if isinstance(said, NotApplicable) else list(said), heard


@pytest.mark.parametrize(("name", "path"), CASES, ids=lambda value: getattr(value, "stem", value))
def test_side_by_side_is_the_same(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prober = importlib.import_module(f"{name}.prober")
    with open_machine(str(path)) as machine:
        monkeypatch.setattr(api, "SLOW_S", float("inf"))
        monkeypatch.setattr(side_by_side, "start_thread", pytest.fail)
        serial, one_by_one = answer(prober, machine)
        monkeypatch.undo()
        monkeypatch.setattr(api, "SLOW_S", -1.0)
        assert answer(prober, machine)[0] == serial
        assert set(one_by_one) <= {"touching"}


def test_eight_cards_of_amd_are_asked_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "SLOW_S", -1.0)
    prober = importlib.import_module("probe_amd.prober")
    with open_machine(str(MACHINES / "server--8x-amd-instinct-mi300x.json")) as machine:
        said, heard = answer(prober, machine)
    assert len(said) == 8
    assert heard[:2] == ["touching", "asking"]
