"""A recording keeps what NVML answered: replayed elsewhere, it gives the report of the machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import probe_core
from probe_core import Machine
from probe_core.pipeline.answers import answers_of
from probe_core.pipeline.probers import Builtins, find, run_selected, select_probers
from probe_core.recording import open_machine
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.declared import Sources
from probe_core.recording.document import write
from probe_core.recording.gather import gather
from probe_core.setting_values import load_config
from probe_core.testing.stage import VARIABLE

MANIFEST = Path(__file__).parents[1] / "src/probe_nvidia/prober.json"
FIELDS: dict[str, Any] = json.loads(MANIFEST.read_text())["probers"]["nvidia"]
# Counts as live, so that the library is asked, though its files lie below a root.
ORDERS = {"target": "probe_nvidia.prober", "live": True, "watched": False, "avoid": []}

Answered = Callable[..., "Live"]


class Live:
    """A machine whose files are below a folder and whose NVML answers by a profile."""

    def __init__(self, machine: Machine, deadline_s: float) -> None:
        self.machine = machine
        stage = {**FIELDS, "target": "probe_core.testing.stage", "deadline_s": deadline_s}
        self.probers = {"nvidia": stage}
        self.anonymiser = Anonymiser(b"secret")

    def report(self) -> dict[str, Any]:
        """Probe it, and return what a replay must give, timings left out."""
        report = probe_core.probe(machine=self.machine, only="nvidia", probers=self.probers)
        # The recording's UUIDs are others; each is the same wherever it stands.
        masked = self.anonymiser.uuids(json.dumps(report.to_json()))
        for folder in sorted(sys.path, key=len, reverse=True):
            masked = masked.replace(f"{folder}/", "") if folder.count("/") > 1 else masked
        return comparable(json.loads(masked))

    def record(self, path: Path) -> dict[str, Any]:
        """Write its recording, and return the document."""
        config, _ = load_config({"only": "nvidia"}, {}, None)
        builtins, found = Builtins(self.machine, config), find(self.machine, self.probers)
        decisions = select_probers(found, builtins.scan, self.machine, config, None)
        answers = answers_of(run_selected(lambda: decisions, builtins, self.machine, config))
        declared = Sources().declarations
        gathered = gather(self.machine, "invented", declared, self.anonymiser, answers)
        path.write_text(write(gathered.recording))
        document: dict[str, Any] = json.loads(path.read_text())
        return document


def comparable(report: dict[str, Any]) -> dict[str, Any]:
    report["timings_ms"] = {}
    # The installed plugin is shadowed by the one of this test, and not there in a replay.
    report["decisions"] = [d for d in report["decisions"] if d["selected"]]
    report["outcomes"] = [o for o in report["outcomes"] if o["status"] != "skipped"]
    for outcome in report["outcomes"]:
        outcome["elapsed_ms"] = 0.0
        outcome.pop("stderr", None)
        outcome.pop("replayed", None)
    return report


def replayed(path: Path) -> dict[str, Any]:
    with open_machine(str(path)) as machine:
        report = probe_core.probe(machine=machine, only="nvidia").to_json()
    document: dict[str, Any] = json.loads(json.dumps(report))
    return document


@pytest.fixture
def live(
    fake: ModuleType,
    trees: ModuleType,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Answered:
    """Return a function that makes a machine with eight H100 on its bus, and an NVML."""

    def make(profile: str, deadline_s: float = 10.0) -> Live:
        root = tmp_path / "root"
        trees.eight_h100(root).memory(263_000_000, 250_000_000)
        for name, value in fake.environment(library, profile).items():
            monkeypatch.setenv(name, value)
        return Live(Machine(str(root), {VARIABLE: json.dumps(ORDERS)}), deadline_s)

    return make


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("profile", "status"),
    [
        ("h100x8", "ok"),
        ("lost-handle", "ok"),
        ("version-mismatch", "unavailable"),
        ("init-crash", "crashed"),
        ("init-hang", "timeout"),
        ("call-hang", "timeout"),
    ],
)
def test_a_replay_gives_the_same_report(
    live: Answered, tmp_path: Path, profile: str, status: str
) -> None:
    machine = live(profile, deadline_s=1.5 if "hang" in profile else 10.0)
    path = tmp_path / "recorded.json"
    document = machine.record(path)
    report = replayed(path)
    assert list(document["answers"]) == ["nvidia"]
    (outcome,) = [o for o in report["outcomes"] if o["prober"] == "nvidia"]
    assert (outcome["status"], outcome["replayed"]) == (status, True)
    assert comparable(report) == machine.report()


@pytest.mark.heavy
def test_a_recording_of_a_recording_gives_it_too(live: Answered, tmp_path: Path) -> None:
    first = live("h100x8")
    first.record(tmp_path / "first.json")
    with open_machine(str(tmp_path / "first.json")) as machine:
        second = Live(machine, 10.0)
        second.probers = {}
        second.record(tmp_path / "second.json")
        expected = second.report()
    assert comparable(replayed(tmp_path / "second.json")) == expected


@pytest.mark.heavy
def test_nothing_in_the_answers_says_whose_machine_it_is(live: Answered, tmp_path: Path) -> None:
    text = json.dumps(live("h100x8").record(tmp_path / "recorded.json"))
    assert "a1000000-0000-4000-8000" not in text
    assert str(Path.home()) not in text
    assert "0000:1b:00.0" in text


@pytest.mark.heavy
def test_where_the_plugin_is_not_installed_the_answer_stands(
    live: Answered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = live("h100x8")
    machine.record(tmp_path / "recorded.json")
    expected = machine.report()
    monkeypatch.setattr("probe_core.registry.prober.discover", lambda *a, **k: ([], []))
    assert comparable(replayed(tmp_path / "recorded.json")) == expected
