"""The checks as the doctor runs them: one code each, one look for all, and every code is listed."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import wheel_files as build
from test_wheels_environment import REPORT

import probe_wheels
from probe_core.machine import Machine
from probe_wheels.checks import CHECKS
from probe_wheels.findings import CODES


def request(environment: str, calls: list[str]) -> Any:
    seen: dict[str, Any] = {}

    def once(key: str, make: Any) -> Any:
        if key not in seen:
            calls.append(key)
            seen[key] = make()
        return seen[key]

    machine = Machine("/nonexistent", environ={})
    return SimpleNamespace(
        machine=machine, report=REPORT, environment=environment, device=None, once=once
    )


def test_each_check_answers_for_its_code(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    site = build.environment(tmp_path / "env")
    build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_70": 4})})
    build.install(site, "onnxruntime", "1.0", {})
    calls: list[str] = []
    question = request(str(tmp_path / "env"), calls)
    results = {check.code: check.run(question) for check in CHECKS}
    failed = [code for code, result in results.items() if result["status"] == "failed"]
    assert failed == ["wheel-lacks-device", "wheel-is-cpu-build"]
    assert [f["device"] for f in results["wheel-lacks-device"]["findings"]] == ["pci:0000:01:00.0"]
    assert calls == ["probe-wheels"]


def test_a_missing_environment_is_a_failed_check_of_its_own() -> None:
    question = request("/nonexistent/env", [])
    statuses = {check.code: check.run(question)["status"] for check in CHECKS}
    assert statuses["environment-missing"] == "failed"
    assert statuses["wheel-lacks-device"] == "not_applicable"
    assert statuses["environment-broken"] == "passed"


def test_every_code_has_a_check_and_a_place_in_the_reference() -> None:
    """A code that no check has would be left out by `probe doctor --only`."""
    folder = Path(probe_wheels.__file__).parent
    codes = set(CODES.values())
    for name in ("environment", "damage", "extra"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                assert isinstance(node.args[0], ast.Constant)
                codes.add(str(node.args[0].value))
    assert {check.code for check in CHECKS} == codes
    page = (Path(__file__).parents[3] / "docs" / "reference" / "wheels.md").read_text()
    assert [code for code in codes if f"`{code}`" not in page] == []
