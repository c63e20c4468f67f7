"""The checks as the doctor runs them: one code each, one look for all, and every code is listed."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import wheel_files as build
from test_wheels_environment import REPORT, python

import probe_wheels
from probe_core.machine import Machine
from probe_wheels import survey
from probe_wheels.checks import CHECKS, VARIABLES
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
        machine=machine,
        report=REPORT,
        environment=environment,
        device=None,
        once=once,
        remember=lambda paths: calls.append("remembered") if "remembered" not in calls else None,
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
    assert calls == ["probe-wheels", "remembered"]


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
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                assert isinstance(node.args[0], ast.Constant)
                codes.add(str(node.args[0].value))
    assert {check.code for check in CHECKS} == codes
    page = (Path(__file__).parents[3] / "docs" / "reference" / "wheels.md").read_text()
    assert [code for code in codes if f"`{code}`" not in page] == []


def test_the_manifest_names_every_variable_that_an_answer_depends_on(tmp_path: Path) -> None:
    folder = Path(probe_wheels.__file__).parent
    manifest = json.loads((folder / "check.json").read_text())
    assert manifest["checks"]["wheels"]["variables"] == list(VARIABLES)
    read: set[str] = set()

    class Environ(dict[str, str]):
        def get(self, name: str, default: Any = None) -> Any:
            read.add(name)
            return super().get(name, default)

    python(tmp_path / "env" / "bin")
    for argument in (None, str(tmp_path / "env" / "bin" / "python")):
        survey(argument, REPORT, Environ(HOME=str(tmp_path)))
    assert read - set(VARIABLES) == set()
    assert {"PATH", "PYTHONPATH"} <= read


def remembered(environment: Path) -> set[str]:
    return survey(str(environment), REPORT, {}, cached=False).paths


def test_the_paths_of_an_answer_are_all_that_was_looked_at(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    python(tmp_path / "env" / "bin")
    files: dict[str, bytes | str] = {
        "torch/version.py": "cuda = '12.8'\n",
        "torch/lib/libtorch_cuda.so": build.cuda({"sm_90": 9}),
        "torch/lib/libplain.so": build.elf([(".text", b"")]),
    }
    info = build.install(site, "torch", "2.9.1", files)
    (site / "more.pth").write_text("../../../more\n")
    paths = remembered(tmp_path / "env")
    env = tmp_path / "env"
    expected = [site, site / "more.pth", info / "RECORD", info / "METADATA", env / "pyvenv.cfg"]
    expected += [site / name for name in files]
    assert {str(path) for path in expected} - paths == set()


def test_a_look_that_did_not_end_is_not_remembered(tmp_path: Path) -> None:
    assert remembered(tmp_path / "gone") == set()
    site = build.environment(tmp_path / "env")
    for number in range(3):
        build.install(site, f"a{number}", "1.0", {f"a{number}/x.so": build.cuda({"sm_80": 90})})
    assert survey(str(tmp_path / "env"), REPORT, {}, cached=False, seconds=0.0).paths == set()


def test_versions_of_frameworks_are_facts_for_a_baseline(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    build.install(site, "torch", "2.9.1", {"torch/version.py": "__version__ = '2.9.1+cu128'\n"})
    build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_90": 4})})
    build.install(site, "plain", "1.0", {})
    question = request(str(tmp_path / "env"), [])
    results = [check.run(question) for check in CHECKS]
    facts = [result["facts"] for result in results if "facts" in result]
    assert facts == [{"wheel torch": "2.9.1+cu128", "wheel acme": "1.0"}]


def verdicts(environment: Path) -> list[list[dict[str, Any]]]:
    question = request(str(environment), [])
    results: list[Any] = [check.run(question) for check in CHECKS]
    return [result["wheels"] for result in results if "wheels" in result]


def test_good_verdicts_are_handed_over_as_well(tmp_path: Path) -> None:
    """Without them nobody could tell "runs natively" from "was not judged"."""
    site = build.environment(tmp_path / "env")
    build.install(site, "triton", "3.0", {})
    build.install(site, "acme", "1.0", {"acme/x.so": build.cuda({"sm_90": 4})})
    (listed,) = verdicts(tmp_path / "env")
    assert [(w["wheel"], w["devices"], w["verdict"]) for w in listed] == [
        ("acme 1.0", ["pci:0000:01:00.0"], "native"),
        ("triton 3.0", ["pci:0000:01:00.0"], "compiles"),
    ]


def test_nothing_runs_in_an_environment_of_another_architecture(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    build.install(site, "triton", "3.0", {})
    python(tmp_path / "env" / "bin", machine=183)
    assert verdicts(tmp_path / "env") == [[]]


def test_a_wheel_that_cannot_be_judged_is_no_passed_check(tmp_path: Path) -> None:
    site = build.environment(tmp_path / "env")
    code = [(".text", b"code"), (".nv_fatbin", build.fatbin({"sm_90": 4}))]
    library = build.elf(code, machine=183)
    build.install(site, "torch", "2.9.1", {"torch/lib/libtorch_cuda.so": library})
    question = request(str(tmp_path / "env"), [])
    answer: Any = CHECKS[0].run(question)
    wheels = [(wheel["wheel"], wheel["verdict"]) for wheel in answer["wheels"]]
    assert wheels == [("torch 2.9.1", "unknown")]
    assert answer["status"] == "unknown"
    assert answer["reason"].startswith("torch 2.9.1 cannot be judged: ")
