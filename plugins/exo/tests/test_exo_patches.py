"""The patches for exo: small, one purpose each, and green by exo's own checks."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import exo_checkout as exo
import pytest

TEXTS = {patch.name[:4]: patch.read_text("utf-8") for patch in exo.PATCHES}
NAMES = sorted(TEXTS)
WHY_NOT = exo.why_not()

# What exo's continuous integration checks, of the folders that need no MLX and no Rust.
FOLDERS = ["master", "shared", "api", "utils/info_gatherer"]
CHECKED = [f"src/exo/{folder}" for folder in FOLDERS]
TESTS = ["-q", "-p", "no:cacheprovider", *CHECKED]


def added(text: str) -> list[str]:
    return [line[1:] for line in text.splitlines() if re.match(r"\+(?!\+\+ )", line)]


def test_there_are_four() -> None:
    assert NAMES == ["0001", "0002", "0003", "0004"]


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_is_small_and_counts_right(name: str) -> None:
    text = TEXTS[name]
    hunks = re.findall(
        r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*\n((?:[ +-].*\n|\n)+?)(?=@@|diff|\Z)",
        text,
        re.MULTILINE,
    )
    assert len(hunks) == text.count("\n@@ ")
    context = 0
    for before, after, body in hunks:
        lines = body.splitlines()
        assert sum(1 for line in lines if not line.startswith("+")) == int(before or 1)
        assert sum(1 for line in lines if not line.startswith("-")) == int(after or 1)
        context += sum(1 for line in lines if line.startswith(" "))
    changed = sum(1 for line in text.splitlines() if re.match(r"[+-](?!\+\+ |-- )", line))
    # The fourth is behind a setting of exo's, and half of it are its tests.
    assert changed < (380 if name == "0004" else 190)
    assert context < 80


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_has_tests_and_documentation_and_no_dependency(name: str) -> None:
    files = re.findall(r"^\+\+\+ b/(\S+)$", TEXTS[name], re.MULTILINE)
    assert "README.md" in files
    assert any("/tests/test_" in file for file in files)
    # probe-exo is on no index: a line in pyproject.toml would keep uv from starting exo.
    assert not {"pyproject.toml", "uv.lock"} & set(files)


@pytest.mark.parametrize("name", NAMES)
def test_a_patch_imports_what_is_there_where_it_may_be_absent(name: str) -> None:
    lines = added(TEXTS[name])
    imports = [at for at, line in enumerate(lines) if re.match(r"\s*import probe_exo", line)]
    assert imports
    for at in imports:
        assert lines[at - 1].strip() == "try:"
        assert lines[at + 1].strip() == "except ImportError:"
    assert not any("probe_core" in line for line in lines)
    for module, text in re.findall(
        r"^\+\+\+ b/\.typings/probe_exo/(\w+)\.pyi\n@@.*\n((?:\+.*\n)+)", TEXTS[name], re.MULTILINE
    ):
        own = importlib.import_module(f"probe_exo.{module}")
        for kind, declared in re.findall(r"^\+(class|def) (\w+)", text, re.MULTILINE):
            assert callable(getattr(own, declared)), kind
        for class_, fields in re.findall(r"^\+class (\w+):\n((?:\+    .*\n)+)", text, re.MULTILINE):
            names = set(re.findall(r"^\+    (\w+):", fields, re.MULTILINE))
            assert names <= set(getattr(own, class_).__dataclass_fields__)


needs_exo = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
Checkout = Callable[..., Path]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Unpack exo with some of the patches."""

    def make(*names: str) -> Path:
        folder = exo.unpack(tmp_path / ("-".join(names) or "base"))
        exo.apply(folder, [patch for patch in exo.PATCHES if patch.name[:4] in names])
        return folder

    return make


@needs_exo
@pytest.mark.parametrize(
    "names", [(), ("0001",), ("0001", "0002"), ("0003",), ("0001", "0003"), tuple(NAMES)]
)
def test_patches_apply_and_are_formatted(checkout: Checkout, names: tuple[str, ...]) -> None:
    folder = checkout(*names)
    exo.run(folder, "-m", "ruff", "check", "--no-cache", "-q", "src")
    exo.run(folder, "-m", "ruff", "format", "--no-cache", "--check", "-q", "src")


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize("names", [("0001",), ("0001", "0002"), ("0003",), tuple(NAMES)])
def test_exos_tests_pass(checkout: Checkout, names: tuple[str, ...]) -> None:
    out = exo.run(checkout(*names), "-m", "pytest", *TESTS)
    passed = int(re.findall(r"(\d+) passed", out)[-1])
    assert passed > 151  # what pass without patches
    assert "failed" not in out


@needs_exo
@pytest.mark.heavy
def test_no_test_of_exos_changes(checkout: Checkout) -> None:
    """Its tests as they are, on the patched source."""
    folder = checkout(*NAMES)
    base = exo.unpack(folder.parent / "unchanged")
    for file in base.glob("src/exo/**/tests/*.py"):
        (folder / file.relative_to(base)).write_bytes(file.read_bytes())
    for file in folder.glob("src/exo/**/tests/test_*.py"):
        if not (base / file.relative_to(folder)).exists():
            file.unlink()
    out = exo.run(folder, "-m", "pytest", *TESTS)
    assert re.findall(r"(\d+) passed, (\d+) skipped", out) == [("151", "3")]


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize("names", [(), tuple(NAMES)])
def test_exos_type_checker_finds_nothing(checkout: Checkout, names: tuple[str, ...]) -> None:
    out = exo.run(checkout(*names), "-m", "basedpyright", *exo.typed(), *CHECKED)
    assert "0 errors, 0 warnings" in out


@needs_exo
@pytest.mark.heavy
def test_exos_lock_file_stays_valid(checkout: Checkout) -> None:
    """The patches declare no dependency, so that `uv run exo` starts as before."""
    folder = checkout(*NAMES)
    exo.write_workspace(folder)
    command = [sys.executable, "-m", "uv", "lock", "--check", "--offline", "--python", exo.python()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize("fault", ["hangs", "lies", "absent"])
def test_exo_gathers_whatever_the_core_does(checkout: Checkout, fault: str) -> None:
    """Its own loop, with a probe-exo that hangs, lies, or is not there."""
    script = Path(__file__).with_name("exo_gather.py")
    out = exo.run(checkout(*NAMES), str(script), fault)
    assert out.splitlines()[-1] == "memory, interfaces and backends"


@needs_exo
@pytest.mark.heavy
def test_exo_gathers_from_the_core(checkout: Checkout) -> None:
    script = Path(__file__).with_name("exo_gather.py")
    out = exo.run(checkout(*NAMES), str(script), "core", paths=exo.sources())
    assert out.splitlines()[-1] == "memory, interfaces and backends"
