"""Registering probers without entry points, and one report per process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import validated

import probe_core
from probe_core import ConfigError, probing


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Leave no registered prober and no cached report behind."""
    before = probing.registered_probers()
    yield
    for name in set(probing.registered_probers()) - set(before):
        probe_core.unregister(name)
    probing._cache.clear()


def test_registered_prober_runs_until_unregistered(probers: Probers) -> None:
    probers.reports("own", gpu())
    probe_core.register("own", "fake_own")
    report = probe_core.probe(only="own")
    validated(report.to_json())
    assert report.device("pci:0000:01:00.0") is not None
    outcome = next(o for o in report.outcomes if o.prober == "own")
    assert (outcome.status, outcome.distribution, outcome.devices) == ("ok", "(host)", 1)
    probe_core.unregister("own")
    assert probe_core.probe(only="own").device("pci:0000:01:00.0") is None
    probe_core.unregister("own")


def test_targets_of_every_form(probers: Probers) -> None:
    probers.reports("a", gpu(1))
    (probers.folder / "fake_b.py").write_text(
        "from probe_core.api import hookimpl\n"
        "class Box:\n"
        "    @staticmethod\n"
        "    @hookimpl\n"
        f"    def probe_devices(request): return [{gpu(2)!r}]\n"
    )
    import fake_a  # type: ignore[import-not-found]

    targets: dict[str, Any] = {
        "module": fake_a,
        "attribute": "fake_b:Box",
        "mapping": {"target": "fake_a", "priority": 7, "deadline_s": 3.0},
    }
    report = probe_core.probe(only=list(targets), probers=targets)
    assert {o.prober: o.status for o in report.outcomes if o.prober in targets} == {
        "module": "ok",
        "attribute": "ok",
        "mapping": "ok",
    }
    decision = next(d for d in report.decisions if d.prober == "mapping")
    assert (decision.priority, decision.deadline_s) == (7, 3.0)


@pytest.mark.parametrize("target", [5, None, object(), {"priority": 5}, {"target": 5}, print])
def test_target_that_no_child_could_import_is_refused(target: Any) -> None:
    with pytest.raises(ConfigError, match="own"):
        probe_core.register("own", target)
    assert "own" not in probing.registered_probers()


def test_same_report_until_refreshed() -> None:
    first = probe_core.probe(only="cpu")
    assert probe_core.probe(only="cpu") is first
    assert probe_core.probe(only=["cpu"]) is first
    fresh = probe_core.probe(only="cpu", refresh=True)
    assert fresh is not first
    assert probe_core.probe(only="cpu") is fresh


def test_other_settings_are_another_report() -> None:
    assert probe_core.probe(only="cpu") is not probe_core.probe(only="cpu", timeout=9)


def test_registering_forgets_the_report(probers: Probers) -> None:
    first = probe_core.probe(only="cpu")
    probe_core.register("own", "fake_own")
    assert probe_core.probe(only="cpu") is not first


def test_other_machines_and_hooks_are_not_cached(tmp_path: Path) -> None:
    machine = probe_core.Machine(str(tmp_path))
    one, two = (probe_core.probe(machine=machine, only="cpu") for _ in range(2))
    assert one is not two


def test_child_of_fork_looks_for_itself() -> None:
    """The key holds the process's number: a forked worker may have other devices."""
    probe_core.probe(only="cpu")
    assert all(key[0] == os.getpid() for key in probing._cache)  # type: ignore[index]


def test_changing_the_document_does_not_change_the_cache() -> None:
    document = probe_core.probe(only="cpu").to_json()
    document["devices"].clear()
    document["node"]["memory"]["total"] = 0
    again = probe_core.probe(only="cpu").to_json()
    assert again["devices"]
    assert again["node"]["memory"]["total"]
    json.dumps(again)


def test_changed_visibility_is_seen(monkeypatch: pytest.MonkeyPatch, probers: Probers) -> None:
    """Programs set CUDA_VISIBLE_DEVICES for themselves; the next look must know it."""
    probers.reports("own", gpu())
    probe_core.register("own", "fake_own")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PROBE_DISABLE", "bus")  # it would show the GPUs of the computer itself
    first = probe_core.probe(only="own")
    assert [d.id for d in first.visible("cuda")] == ["pci:0000:01:00.0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    second = probe_core.probe(only="own")
    assert second.visible("cuda") == ()
    assert second.primary == "cpu:0"
