"""What must hold of the repository as a whole: pins, names of hosts and machines, the README."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def tracked() -> list[Path]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed: which files are tracked is not known")
    # Also of a checkout that belongs to somebody else: it is only listed.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip("not a git checkout: which files are tracked is not known")
    paths = [ROOT / name for name in found.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(path: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def test_no_project_file_repeats_a_pin() -> None:
    texts = {path: path.read_text() for path in PROJECTS}
    names = [pin.partition("==")[0] for pin in pins(ROOT / "constraints.txt")]
    assert [
        (path, name) for path, text in texts.items() for name in names if f"{name}==" in text
    ] == []


def test_ci_gives_uv_the_pins_of_pip() -> None:
    function = re.search(r"^uv_pins\(\) .*", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert function
    command = ["bash", "-c", f"{function[0]}\nuv_pins"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True, timeout=30)
    uv = tomllib.loads(made.stdout)["tool"]["uv"]
    assert uv["constraint-dependencies"] == pins(ROOT / "constraints.txt")


def test_every_constraint_is_an_exact_pin() -> None:
    pattern = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!_-]*")
    loose = [pin for pin in pins(ROOT / "constraints.txt") if not pattern.fullmatch(pin)]
    assert loose == []


def test_every_dependency_is_pinned(project: dict[str, dict[str, object]]) -> None:
    pinned = {
        pin.partition("==")[0].lower().replace("_", "-") for pin in pins(ROOT / "constraints.txt")
    }
    missing = []
    for path in [ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]:
        table = tomllib.loads(path.read_text())["project"]
        extras = table.get("optional-dependencies", {})
        for wanted in [*table.get("dependencies", []), *(d for ds in extras.values() for d in ds)]:
            name = re.split(r"[^A-Za-z0-9._-]", wanted)[0].lower().replace("_", "-")
            if not name.startswith("probe-") and name not in pinned:
                missing.append(f"{path.parent.name}: {name}")
    assert missing == []


@pytest.mark.parametrize("name", ["consumers", "release"])
def test_what_tools_install_is_pinned(name: str) -> None:
    constraints = pins(ROOT / "constraints.txt")
    pinned = {pin.partition("==")[0].lower().replace("_", "-") for pin in constraints}
    wanted = [line.lower() for line in pins(ROOT / f"requirements-{name}.txt")]
    assert wanted.pop(0) == "-c constraints.txt"
    assert [line for line in wanted if line not in pinned] == []


def test_every_workspace_member_is_installed_for_development() -> None:
    wanted = pins(ROOT / "requirements-dev.txt")
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        assert f"-e ./plugins/{path.parent.name}" in {line.partition("[")[0] for line in wanted}


# Spelt in pieces, so that this file does not hold them.
FORBIDDEN = [
    "pypi." + "org",
    "python" + "hosted",
    "/simple" + "/",
    "--index" + "-url",
    "extra-index" + "-url",
    "registry." + "npmjs",
    "/work/" + "main",
    "/root" + "/",
    "/tmp/" + "venv",
]


@pytest.mark.heavy
@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_tracked_file_names_a_registry_or_this_machine(word: str) -> None:
    assert [str(path.relative_to(ROOT)) for path in tracked() if word in text_of(path)] == []


# To the end of the line, or to the bracket: what comes before a name that is private. To parse all
# modules takes seconds.
PRIVATE = re.compile(r"^ *from probe[\w.]* import (?:[^\n(]*|\([^)]*)\b_", re.MULTILINE)


def private_imports(source: str) -> list[str]:
    if not PRIVATE.search(source):
        return []
    return [
        f"{node.module}.{name.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("probe")
        for name in node.names
        if name.name.startswith("_") and not name.name.startswith("__")
    ]


@pytest.mark.heavy
def test_no_module_imports_another_ones_private_names() -> None:
    assert private_imports("from probe_core.a import b, _c, __d__") == ["probe_core.a._c"]
    assert private_imports("from probe_core.a import (\n    b,\n    _c,\n)") == ["probe_core.a._c"]
    assert private_imports("from probe_core.a import b\n_c = 1") == []
    sources = [path for path in tracked() if path.suffix == ".py" and "tests" not in path.parts]
    assert [(str(path), name) for path in sources for name in private_imports(text_of(path))] == []


def test_no_lock_file_is_tracked() -> None:
    assert [path.name for path in tracked() if path.name == "uv.lock"] == []


def test_the_readme_commands_are_what_ci_runs() -> None:
    readme, ci = (ROOT / "README.md").read_text(), (ROOT / ".ci/run").read_text()
    for name in ("main job", "tests"):
        assert readme.count(f"<!-- {name} -->\n```sh\npython3 -m venv .venv && ") == 1
    assert 'eval "$(readme tests)"' in ci


PROJECTS = [ROOT / "pyproject.toml", ROOT / "chipdb/pyproject.toml"]
PROJECTS += sorted(ROOT.glob("plugins/*/pyproject.toml"))


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_every_distribution_says_how_far_it_is(path: Path) -> None:
    project = tomllib.loads(path.read_text())["project"]
    # Nothing has run on real accelerators yet: no vendor's path is more than Beta.
    status = [name for name in project["classifiers"] if name.startswith("Development Status")]
    assert status == ["Development Status :: 4 - Beta"]
    versions = [c for c in project["classifiers"] if "Python :: 3." in c]
    assert [c.rpartition(".")[2] for c in versions] == ["11", "12", "13", "14", "15"]
    # The release writes them from packaging/addresses.toml: no other file has an address.
    assert "urls" not in project


def test_all_distributions_have_one_version() -> None:
    import probe_core

    projects = [tomllib.loads(path.read_text())["project"] for path in PROJECTS]
    versions = {project["name"]: project.get("version") for project in projects}
    assert versions.pop("probe-chipdb") is None  # a calendar version of its own
    assert set(versions.values()) == {probe_core.__version__}


def test_every_tracked_file_at_the_root_is_one_of_the_project() -> None:
    """Four notes of measurements were once added with a change: the sdist has what is tracked."""
    root = {path.name for path in tracked() if path.parent == ROOT}
    assert root == {
        *(".dockerignore", ".gitignore", "Containerfile", "LICENSE", "README.md", "SECURITY.md"),
        *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "conftest.py", "hatch_build.py"),
        *("pyproject.toml", "constraints.txt", "requirements-dev.txt"),
        *("requirements-consumers.txt", "requirements-release.txt"),
    }
