"""What a command's author imports: cheap, complete, and what the pages say."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_core import commands

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = (
    "probe_core",
    "probe_core.commands",
    "probe_core.machine",
    "probe_core.sizes",
    "probe_core.wording",
)


def loaded_by(code: str) -> set[str]:
    path = [entry for entry in sys.path if entry]
    script = f"import sys; sys.path[:] = {path!r}\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    return {name for name in done.stdout.split() if name.startswith("probe_")}


def test_importing_the_room_imports_nothing_else() -> None:
    assert loaded_by("import probe_core.commands") == {"probe_core", "probe_core.commands"}


def test_a_name_brings_its_own_module_alone() -> None:
    added = {"probe_core", "probe_core.commands"}
    code = "from probe_core.commands import columns, wrapped"
    assert loaded_by(code) == added | {"probe_core.commands.text"}
    code = "from probe_core.commands import CommandError, Context"
    assert loaded_by(code) == added | {"probe_core.commands.context"}


@pytest.mark.parametrize("name", commands.__all__)
def test_each_public_name_is_there_and_documented(
    name: str, reference: Callable[[str], str]
) -> None:
    assert getattr(commands, name).__doc__
    assert name in dir(commands)
    assert f"`{name}`" in reference("commands")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'probe_core\.commands' has no attribute 'x'"):
        commands.x  # noqa: B018


@pytest.mark.heavy
@pytest.mark.parametrize("package", ["cluster", "exo"])
def test_our_own_commands_import_public_names_alone(package: str) -> None:
    foreign = set()
    for path in (ROOT / "plugins" / package / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("probe_core"):
                module = str(node.module)
                if module not in PUBLIC and not module.startswith("probe_core.model"):
                    foreign.add(f"{path.name}: {module}")
    assert foreign == set()


def test_no_prober_imports_the_cluster() -> None:
    """`probe watch` reads lists of hosts as `probe cluster` does, where that is installed."""
    for path in ROOT.glob("plugins/*/src/**/*.py"):
        if not {"probe_cluster", "probe_exo", "probe_watch"}.intersection(path.parts):
            assert "probe_cluster" not in path.read_text("utf-8"), path
