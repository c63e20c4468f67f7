"""Every recorded machine gets the report that its file expects, value by value."""

from __future__ import annotations

from typing import Any

import pytest
import recorded
from reports import at, codes, report_of_recording

from probe_core.resolve import EXPLAINED

RECORDINGS = {name: recorded.read(name) for name in recorded.names()}
WITH_PLUGIN = [(name, who) for name, data in RECORDINGS.items() for who in data.get("with", ())]
FIGURES = ("fp32", "fp16", "int8")
REASONED = ("chip.id", "memory.total", *EXPLAINED, *FIGURES)


@pytest.mark.parametrize("name", RECORDINGS)
def test_built_in_probers_report_what_the_recording_expects(name: str) -> None:
    report = report_of_recording(name)
    assert differences(report, RECORDINGS[name]["expect"]) == []
    assert unexplained(report) == []


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "who"), WITH_PLUGIN)
def test_with_its_plugin(name: str, who: str) -> None:
    report = report_of_recording(name, who)
    # The plugin may be installed as well: the one registered by this test goes first.
    ran = [o["status"] for o in report["outcomes"] if o["prober"] == who and o["devices"]]
    assert ran == ["ok"]
    assert differences(report, RECORDINGS[name]["with"][who]) == []
    assert unexplained(report) == []


def differences(report: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return what differs, one line each."""
    wanted: list[tuple[str, Any, Any]] = [
        ("primary", report["primary"], expected["primary"]),
        ("fallback", report["fallback"], expected["fallback"]),
        ("findings", codes(report), sorted(expected["findings"])),
        ("devices", [d["id"] for d in report["devices"]], [d["id"] for d in expected["devices"]]),
    ]
    node = expected.get("node", {})
    wanted += [(f"node.{path}", at(report["node"], path), value) for path, value in node.items()]
    for found, device in zip(report["devices"], expected["devices"], strict=False):
        wanted += [
            (f"{found['id']} {path}", shown(path, at(found, path)), value)
            for path, value in device.items()
        ]
    return [f"{what}: {got!r}, not {want!r}" for what, got, want in wanted if got != want]


def shown(path: str, value: Any) -> Any:
    """Return peaks with four digits, as a data sheet gives them, and all else exactly."""
    return float(f"{value:.4g}") if path in FIGURES and value is not None else value


def unexplained(report: dict[str, Any]) -> list[str]:
    """Return the unknown values that have no reason."""
    return [
        f"{device['id']} {path}"
        for device in report["devices"]
        for path in REASONED
        if at(device, path) is None and not device["unknown"].get(path.removesuffix(".id"))
    ]


def test_each_name_says_what_is_expected() -> None:
    assert len(RECORDINGS) >= 28
    for name, data in RECORDINGS.items():
        kind = data["expect"]["devices"][0]["kind"]
        if name.endswith("--cpu"):
            assert kind == "cpu", name
