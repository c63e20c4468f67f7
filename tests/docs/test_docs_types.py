"""The Python of the pages for hosts passes the type checkers that hosts use."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import docpages
import doctypes
import pytest
from docplace import FRAMEWORKS

SOURCES = [docpages.ROOT, docpages.ROOT / "chipdb/src"]
SOURCES += sorted((docpages.ROOT / "plugins").glob("*/src"))


@pytest.fixture
def modules(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "modules"
    folder.mkdir()
    return doctypes.write(folder, *doctypes.HOSTS)


def test_every_page_with_python_is_checked_or_says_why_not() -> None:
    listed = [*doctypes.HOSTS, *doctypes.AUTHORS, *doctypes.UNCHECKED]
    assert sorted(listed) == sorted(doctypes.with_python()), (
        "add the page to tests/docs/doctypes.py"
    )


def mypy(folder: Path, modules: dict[str, str], *options: str) -> tuple[str, int]:
    """Run mypy over the modules; return its lines, with the pages' names, and its status."""
    path = os.pathsep.join(map(str, [FRAMEWORKS, *SOURCES]))
    # Our own sources are checked elsewhere, and read here for their types alone.
    common = ["--no-error-summary", "--config-file=", "--cache-dir=" + os.devnull]
    common += ["--follow-imports=silent", "--python-version=3.11", "--hide-error-context"]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *common, *options, *sorted(modules)],
        cwd=folder,
        env={**os.environ, "MYPYPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return _placed(ran.stdout, modules) + ran.stderr, ran.returncode


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_python_for_hosts_passes_mypy_strict(tmp_path: Path, modules: dict[str, str]) -> None:
    assert mypy(tmp_path / "modules", modules, "--strict") == ("", 0)


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_python_for_authors_passes_mypy(tmp_path: Path) -> None:
    # The pages write files of the same name, so each has a package of its own.
    modules = {}
    for number, name in enumerate(doctypes.AUTHORS):
        folder = tmp_path / f"page{number}"
        folder.mkdir()
        written = doctypes.write(folder, name)
        modules |= {f"page{number}/{file}": place for file, place in written.items()}
    found = mypy(tmp_path, modules, "--check-untyped-defs", "--disable-error-code=import-not-found")
    assert found == ("", 0)


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_python_for_hosts_passes_pyright(tmp_path: Path, modules: dict[str, str]) -> None:
    if not importlib.util.find_spec("basedpyright"):
        pytest.skip("pyright is tested with one Python (pip install basedpyright)")
    config = {
        "include": ["."],
        "typeCheckingMode": "standard",  # pyright's own default
        "pythonVersion": "3.11",
        "extraPaths": [str(path) for path in (FRAMEWORKS, *SOURCES)],
        "useLibraryCodeForTypes": True,
    }
    folder = tmp_path / "modules"
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    result = json.loads(ran.stdout)
    errors = [
        f"{modules[Path(d['file']).name]}: {d['message']}"
        for d in result["generalDiagnostics"]
        if d["severity"] == "error"
    ]
    assert errors == []
    assert result["summary"]["filesAnalyzed"] == len(modules)


def _placed(output: str, modules: dict[str, str]) -> str:
    """Return a checker's lines with the page's name in place of the file's."""
    for name in sorted(modules, key=len, reverse=True):
        output = output.replace(name, f"[{modules[name]}]")
    return output
