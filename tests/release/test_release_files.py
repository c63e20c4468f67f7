"""Issue forms, workflows and the recipe are what their readers accept, and say what is true."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
INPUTS = {"input", "textarea", "dropdown", "checkboxes"}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE/config.yml"]),
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
    ],
)
def test_the_code_hosts_schema_accepts_them(schema: str, paths: list[Path]) -> None:
    pytest.importorskip("check_jsonschema", reason="pip install check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    ran = subprocess.run(
        [*command, *map(str, paths)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_can_be_filled_in(path: Path) -> None:
    form = loaded(path)
    assert {"name", "description", "body"} <= set(form)
    asked = [item for item in form["body"] if item["type"] in INPUTS]
    others = {item["type"] for item in form["body"]} - INPUTS
    assert others <= {"markdown"}
    ids = [item["id"] for item in asked]
    assert len(ids) == len(set(ids))
    assert any(item["validations"]["required"] for item in asked)
    assert all(item["attributes"]["label"] for item in asked)


def test_a_form_asks_for_each_kind_of_contribution() -> None:
    texts = {path.stem: path.read_text("utf-8") for path in FORMS}
    assert set(texts) == {"1-device", "2-bug", "3-new-chip", "4-new-prober"}
    assert all("probe doctor --bundle" in texts[name] for name in ("1-device", "2-bug"))
    assert loaded(GITHUB / "ISSUE_TEMPLATE/config.yml")["blank_issues_enabled"] is False


def test_what_a_form_tells_to_run_exists() -> None:
    from probe_core.cli import COMMANDS

    text = "".join(path.read_text("utf-8") for path in FORMS)
    named = set(re.findall(r"`probe ([a-z]+)", text))
    assert named
    assert named - set(COMMANDS) == set()


def test_the_pages_that_forms_link_to_are_there() -> None:
    text = "".join(path.read_text("utf-8") for path in GITHUB.rglob("*.yml"))
    # Below the page that files an issue: as the code host resolves it, without its address.
    linked = re.findall(r"\]\(\.\./blob/HEAD/([^\s)]*)\)", text)
    assert len(linked) >= 2
    assert "://" not in "".join(path.read_text("utf-8") for path in FORMS)
    assert [path for path in linked if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_few_rights_and_an_end(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        checkouts = [step for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        # An expression in a script is pasted into it: a tag's name could be code.
        assert not any("${{" in step.get("run", "") for step in job["steps"])


def test_only_the_publishing_job_may_publish() -> None:
    jobs = loaded(GITHUB / "workflows/release.yml")["jobs"]
    assert list(jobs) == ["build", "attest", "publish"]
    assert jobs["build"]["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == ["build", "attest"]
    assert jobs["publish"]["environment"] == "release"
    assert not any("run" in step for step in jobs["publish"]["steps"])
    text = (GITHUB / "workflows/release.yml").read_text("utf-8")
    assert not re.search(r"secrets\.|password|repository-url|workflow_call", text)


def test_the_releases_steps_name_files_that_exist() -> None:
    texts = [path.read_text("utf-8") for path in WORKFLOWS]
    named = {name for text in texts for name in re.findall(r"\.ci/[\w/]+(?:\.py)?", text)}
    assert named == {".ci/run", ".ci/release/build.py"}
    assert all((ROOT / name).exists() for name in named)


def needs(folder: Path) -> dict[str, str]:
    """What a distribution needs, as {name: bound}, without conditions."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [text.partition(";")[0] for text in project["dependencies"]]
    pairs = [re.fullmatch(r"([\w-]+)(>=[\w.]+)?", text.strip()) for text in wanted]
    return {pair[1]: pair[2] or "" for pair in pairs if pair}


def test_the_conda_recipe_agrees_with_the_distributions() -> None:
    import probe_chipdb
    import probe_core

    recipe = loaded(ROOT / "packaging/conda/recipe.yaml")
    assert recipe["schema_version"] == 1
    assert recipe["context"] == {
        "version": probe_core.__version__,
        "chipdb_version": probe_chipdb.__version__,
    }
    assert "probe-pyamdgpuinfo" not in str(recipe)  # compiled, and GPL: not noarch, not ours
    for output in recipe["outputs"]:
        name = output["package"]["name"]
        folder = {"probe-core": ".", "probe-chipdb": "chipdb"}.get(name, f"plugins/{name[6:]}")
        script = output["build"]["script"]
        assert f"install {'.' if folder == '.' else './' + folder} " in script
        assert output["build"]["noarch"] == "python"
        run = dict(line.partition(" ")[::2] for line in output["requirements"]["run"])
        assert run.pop("python") == ">=3.11"
        assert run == needs(ROOT / folder)


def test_debians_packaging_agrees_with_the_distributions() -> None:
    import probe_core

    folder = ROOT / "packaging/debian"
    version = re.match(r"probe-core \((\S+)\)", (folder / "changelog").read_text("utf-8"))
    assert version
    assert version[1].replace("~", "") == probe_core.__version__
    rules = (folder / "rules").read_text("utf-8")
    folders = re.findall(r"^FOLDERS = (.*)$", rules, re.MULTILINE)[0].split()
    assert folders[:2] == ["chipdb", "."]
    control = (folder / "control").read_text("utf-8")
    known = {"attrs": "python3-attr", "pluggy": "python3-pluggy"}
    for name in folders:
        others = [other for other in needs(ROOT / name) if not other.startswith("probe-")]
        others = [other for other in others if other != "psutil"]  # not on Linux
        assert all(known[other] in control for other in others), (name, others)


def test_the_recipe_runs_commands_that_exist() -> None:
    from probe_core.cli import COMMANDS

    outputs = loaded(ROOT / "packaging/conda/recipe.yaml")["outputs"]
    scripts = [line for o in outputs for t in o["tests"] for line in t.get("script", [])]
    words = [line.split()[1] for line in scripts if line.startswith("probe ")]
    assert len(words) >= 4
    assert [word for word in words if word[0] != "-" and word not in COMMANDS] == []


def test_the_code_of_conduct_says_whom_to_tell() -> None:
    text = (ROOT / "CODE_OF_CONDUCT.md").read_text("utf-8")
    assert "(SECURITY.md)" in text
    assert "CODE_OF_CONDUCT.md" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
