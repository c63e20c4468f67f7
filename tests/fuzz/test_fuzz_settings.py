"""Settings and static reports: variables and files that an operator wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance
from hypothesis import given

import probe_core
from probe_cluster import capacity
from probe_core.api import Machine
from probe_core.cli import main
from probe_core.config import SETTINGS
from probe_core.pipeline.static import load_static, read_document
from probe_core.selection import SelectionError, select
from probe_core.setting_values import load_config

RECORDED = Path(__file__).parents[1] / "compat" / "report-v1.json"
REPORT = json.loads(RECORDED.read_bytes())
VARIABLES = [*(spec.variable for spec in SETTINGS.values()), "PROBE_ODD", "PROBE_"]
TOML = (
    b'only = ["acme"]\ndisable = "a,b"\ntimeout = 2.5\nactive = true\n'
    b'allow = ["probe-acme==1.0"]\n[priority]\nacme = 900\n'
)
KEYS = (b"x = [1, {a.b = 2}]\n", b"a" + b".a" * 40 + b" = 1979-05-27T07:32:00Z\n")


@given(CHANCES)
def test_settings_from_the_environment(chance: Chance) -> None:
    names = chance.sample(VARIABLES, 4)
    config, ignored = load_config({}, {name: chance.words(between=",") for name in names})
    assert all(sentence for sentence in ignored)
    hash(config.key())


@pytest.mark.heavy
@given(CHANCES)
def test_settings_from_a_file(tmp_path: Path, chance: Chance) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(chance.mutate(TOML, TOML, *KEYS))
    config, ignored = load_config({}, {}, str(path))
    assert all(sentence for sentence in ignored)
    hash(config.key())


@given(CHANCES)
def test_settings_from_a_caller(chance: Chance) -> None:
    for name in [*SETTINGS, chance.word()]:
        try:
            config, _ = load_config({name: chance.value()}, {})
        except probe_core.ConfigError:
            continue
        hash(config.key())


@given(CHANCES)
def test_the_bytes_of_static_reports(tmp_path: Path, chance: Chance) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(chance.mutate(RECORDED.read_bytes()))
    try:
        document = read_document(str(path))
    except (OSError, ValueError, RecursionError):
        return
    assert document["devices"]


@pytest.mark.heavy
@given(CHANCES)
def test_static_reports(tmp_path: Path, chance: Chance) -> None:
    """Whatever passes for a report is given, seen, counted and chosen from."""
    path = tmp_path / "report.json"
    path.write_text(json.dumps(chance.alter(REPORT)))
    machine = Machine("/nowhere", {"CUDA_VISIBLE_DEVICES": "0"})
    report = probe_core.probe(static=str(path), machine=machine)
    assert report.devices
    assert report.primary_device
    capacity(report)
    try:
        chosen = select(report, count=1)
    except SelectionError:
        return
    assert chosen.ids


@pytest.mark.heavy
@given(CHANCES)
def test_printing_static_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chance: Chance
) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(chance.alter(REPORT)))
    usable = load_static(str(path))[0] is not None
    command = chance.choice(["report", "explain"])
    assert main([command, "--static", str(path)]) == (0 if usable else 2)
    capsys.readouterr()
