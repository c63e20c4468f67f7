"""Tables of frameworks that other distributions bring: data alone, and a broken one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import wheel_files as build
from test_wheels_verdicts import nvidia

from probe_wheels.distributions import read_distributions
from probe_wheels.files import Budget
from probe_wheels.findings import findings_of
from probe_wheels.frameworks import extra_frameworks
from probe_wheels.judging import Scene, judge

TABLE: dict[str, Any] = {
    "title": "Acme",
    "members": ["acme-gpu", "acme-cpu"],
    "cpu": ["acme-cpu"],
    "builds": ["nvidia"],
    "main": ["acme_core*"],
    "source": "acme.example, installation",
    "fix": {"nvidia": "pip install acme-gpu"},
}


def plugin(site: Path, tables: object, target: str = "acme_frameworks") -> None:
    package = site / "acme_frameworks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    text = tables if isinstance(tables, str) else json.dumps({"schema": 1, "frameworks": tables})
    (package / "frameworks.json").write_text(text)
    info = site / "acme_frameworks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme-frameworks\nVersion: 1.0\n")
    group = "[probe_core.frameworks.v1]\n"
    (info / "entry_points.txt").write_text(f"{group}acme = {target}\n")


@pytest.mark.parametrize(
    ("target", "files", "problem"),
    [
        ("acme", {"acme.py": "", "acme.frameworks.json": True}, ""),
        ("acme", {"acme.py": "", "frameworks.json": True}, "No such file or directory"),
        ("acme", {"acme/__init__.py": "", "acme/frameworks.json": True}, ""),
        ("acme.t", {"acme/__init__.py": "", "acme/t.py": "", "acme/frameworks.json": True}, ""),
        ("acme", {}, "its module 'acme' does not exist"),
        ("acme:x", {"acme.py": ""}, "its entry point 'acme:x' is no module"),
        ("acme", {"acme.py": "", "acme.frameworks.json": '{"schema": 2}'},
         'expected {"schema": 1, "frameworks": {NAME: {…}}}'),
        ("acme", {"acme.py": "", "acme.frameworks.json": '{"schema": 1, "frameworks": []}'},
         "frameworks is no table"),
    ],
)  # fmt: skip
def test_where_a_table_lies(
    target: str, files: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    table = json.dumps({"schema": 1, "frameworks": {"own": TABLE}})
    files |= {
        "acme-1.dist-info/METADATA": "Name: acme\nVersion: 1\n",
        "acme-1.dist-info/entry_points.txt": f"[probe_core.frameworks.v1]\nacme = {target}\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(table if text is True else text)
    frameworks, problems = extra_frameworks([str(tmp_path)])
    # As root another sentence names the path before the reason.
    assert [entry.reason[-len(problem) :] for entry in problems] == ([problem] if problem else [])
    assert list(frameworks) == ([] if problem else ["acme:own"])


def test_a_table_names_the_library_that_decides(tmp_path: Path) -> None:
    plugin(tmp_path / "plugins", {"acme": TABLE})
    extra, problems = extra_frameworks([str(tmp_path / "plugins")])
    assert problems == []
    site = build.environment(tmp_path / "env")
    files = {
        "acme/acme_core.so": build.cuda({"sm_80": 2}),
        "acme/samples.so": build.cuda({"sm_70": 90}),
    }
    build.install(site, "acme-gpu", "1.0", files)
    build.install(site, "acme-cpu", "1.0", {})
    documents = read_distributions([str(site)], Budget())
    gpu = nvidia("7.0")
    verdicts = judge([gpu], Scene(documents, {}, extra))
    assert [verdict["verdict"] for verdict in verdicts] == ["cpu-build", "lacks-device"]
    fixes = {f["code"]: f["fix"] for f in findings_of(verdicts, [gpu], extra)}
    assert fixes["wheel-is-cpu-build"] == "pip install acme-gpu"


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ("{", None),
        ("[]", 'expected {"schema": 1, "frameworks": {NAME: {…}}}'),
        ({"acme": 5}, "a framework is no table"),
        ({"acme": TABLE | {"members": "x"}}, "members is no list of at most 64 texts"),
        ({"acme": TABLE | {"fix": {"nvidia": "a\nb"}}}, "fix is no table of commands"),
        ({"acme": {"title": "x"}}, "members, builds, source is missing"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, tables: object, reason: str | None) -> None:
    plugin(tmp_path, tables)
    extra, (problem,) = extra_frameworks([str(tmp_path)])
    assert extra == {}
    assert problem.code == "frameworks-unusable"
    assert problem.summary.startswith("acme-frameworks 1.0: ")
    assert reason is None or problem.reason == reason


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    plugin(tmp_path, {"acme": TABLE}, "gone")
    _, (problem,) = extra_frameworks([str(tmp_path)])
    assert problem.reason == "its module 'gone' does not exist"
