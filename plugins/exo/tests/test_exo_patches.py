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
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]

# All other tests of exo's run once: but those of its Rust module, of MLX, and of processes, which
# take half a minute and nothing of which is patched.
LEFT_OUT = """utils/tests/test_pidfile.py utils/tests/test_async_process.py
worker/engines/mlx/disaggregated/tests/test_end_to_end.py
worker/engines/mlx/disaggregated/tests/test_mlx_adapter.py
worker/engines/mlx/disaggregated/tests/test_server_drain.py
worker/engines/mlx/tests worker/tests/unittests/test_image worker/tests/unittests/test_mlx
worker/tests/unittests/test_runner/test_dsml_e2e.py
worker/tests/unittests/test_runner/test_event_ordering.py
worker/tests/unittests/test_runner/test_finish_reason_sse.py
worker/tests/unittests/test_runner/test_parse_gpt_oss.py
worker/tests/unittests/test_runner/test_parse_tool_calls.py
worker/tests/unittests/test_runner/test_serve_prefill.py""".split()


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
    files = re.split(r"^(?=diff )", text, flags=re.MULTILINE)
    # Beside its tests: the fourth is behind a setting of exo's, and a third of it are tests.
    counted = [file for file in files if name != "0004" or "/tests/" not in file.partition("\n")[0]]
    lines = [line for file in counted for line in file.splitlines()]
    assert sum(1 for line in lines if re.match(r"[+-](?!\+\+ |-- )", line)) < 250
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
@pytest.mark.parametrize("names", [(), ("0001",), ("0001", "0002"), ("0001", "0003"), tuple(NAMES)])
def test_patches_apply_and_are_formatted(checkout: Checkout, names: tuple[str, ...]) -> None:
    folder = checkout(*names)
    exo.run(folder, "-m", "ruff", "check", "--no-cache", "-q", "src")
    exo.run(folder, "-m", "ruff", "format", "--no-cache", "--check", "-q", "src")


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize("names", [("0001",), ("0001", "0002"), ("0001", "0003"), tuple(NAMES)])
def test_exos_tests_pass(checkout: Checkout, names: tuple[str, ...]) -> None:
    out = exo.run(checkout(*names), *PYTEST, *CHECKED)
    passed = int(re.findall(r"(\d+) passed", out)[-1])
    assert passed > 151  # what pass without patches
    if names == tuple(NAMES):
        assert f"own ({passed})" in (exo.PATCHES[0].parent / "README.md").read_text("utf-8")
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
    left_out = [f"--ignore=src/exo/{path}" for path in LEFT_OUT]
    out = exo.run(folder, *PYTEST, "src", *left_out)
    assert re.findall(r"(\d+) passed, (\d+) skipped", out) == [("311", "3")]


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize("names", [(), tuple(NAMES)])
def test_exos_type_checker_finds_nothing(checkout: Checkout, names: tuple[str, ...]) -> None:
    out = exo.run(checkout(*names), "-m", "basedpyright", *exo.typed(), *CHECKED)
    assert "0 errors, 0 warnings" in out


def uv(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run uv in exo's folder, without a network."""
    command = [sys.executable, "-m", "uv", *arguments, "--offline", "--python", exo.python()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@needs_exo
@pytest.mark.heavy
def test_exos_lock_file_stays_valid(checkout: Checkout) -> None:
    """The patches declare no dependency, so that `uv run exo` starts as before."""
    folder = checkout(*NAMES)
    exo.write_workspace(folder)
    done = uv(folder, "lock", "--check")
    assert done.returncode == 0, done.stderr


@needs_exo
@pytest.mark.heavy
def test_the_line_of_the_release_day_passes_exos_lock_check(
    checkout: Checkout, tmp_path: Path
) -> None:
    """The optional dependency, locked with wheels that are built here, as the page has it."""
    folder, wheels = checkout(*NAMES), exo.build_wheels(tmp_path / "wheels")
    exo.write_workspace(folder)
    project = folder / "pyproject.toml"
    before = project.read_text("utf-8")
    exo.add_dependency(folder, wheels)
    done = uv(folder, "lock", "--check")
    assert done.returncode == 0, done.stderr
    added_lines = set(project.read_text("utf-8").splitlines()) - set(before.splitlines())
    assert added_lines == {exo.DEPENDENCY}
    assert f"`{exo.DEPENDENCY}`" in (exo.PATCHES[0].parent / "README.md").read_text("utf-8")
    # The lock lines are needed: the check sees a line of pyproject.toml without them.
    exo.unpack(folder)
    exo.write_workspace(folder)
    project.write_text(before.replace("build = [", f"{exo.DEPENDENCY}\nbuild = [", 1))
    assert uv(folder, "lock", "--check").returncode != 0


@needs_exo
@pytest.mark.heavy
def test_probe_exo_installs_beside_what_exo_pins_and_changes_none_of_it(tmp_path: Path) -> None:
    wheels = exo.build_wheels(tmp_path / "wheels")[0].parent
    pins = tmp_path / "pins.txt"
    pins.write_text("\n".join(exo.requirements()))
    options = ["--dry-run", "--find-links", str(wheels), "-c", str(pins), "probe-exo>=0.9.0b1"]
    done = uv(tmp_path, "pip", "install", *options)
    assert done.returncode == 0, done.stderr
    changes = re.findall(r"^ ([+~-] [\w-]+)", done.stderr, re.MULTILINE)
    assert changes == ["+ probe-chipdb", "+ probe-cluster", "+ probe-core", "+ probe-exo"]


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize(("fault", "warnings"), [("hangs", 4), ("lies", 5), ("absent", 0)])
def test_exo_gathers_whatever_the_core_does(checkout: Checkout, fault: str, warnings: int) -> None:
    """Its own loop, with a probe-exo that hangs, lies, or is not there: one line for each question.

    The memory is asked for 30 s before a hang of it is warned of, which this does not wait for.
    """
    script = Path(__file__).with_name("exo_gather.py")
    out = exo.run(checkout(*NAMES), str(script), fault)
    assert out.splitlines()[-1] == (
        f"memory, interfaces, backends and identity; {warnings} warnings"
    )


@needs_exo
@pytest.mark.heavy
def test_exo_gathers_from_the_core(checkout: Checkout) -> None:
    script = Path(__file__).with_name("exo_gather.py")
    out = exo.run(checkout(*NAMES), str(script), "core", paths=exo.sources())
    assert out.splitlines()[-1] == "memory, interfaces, backends and identity; 0 warnings"


WHEEL = ("mlx-0.32.0.dist-info/METADATA", "mlx/core.so", "mlx_cuda_13-0.32.0.dist-info/METADATA")
LIBRARY = "mlx/lib/libmlx.so"


@needs_exo
@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "backends", "why_not"),
    [
        # MLX's library is there, and the GPU's driver does not answer: MLX computes on the CPU.
        ((*WHEEL, LIBRARY), ["MlxCpu"], "'MlxCuda': 'the node has no NVIDIA GPU'"),
        # Half of the engine is there, which cannot run anything.
        (WHEEL, [], "'MlxCuda': 'mlx-cuda-13 is half installed: mlx/lib has no libmlx'"),
    ],
)
def test_exo_starts_with_a_driver_that_hangs_and_half_an_engine(
    checkout: Checkout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: tuple[str, ...],
    backends: list[str],
    why_not: str,
) -> None:
    """The core's own deadline ends the probe; one line says what is used and what is not."""
    for file in files:
        place = tmp_path / "site" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
    monkeypatch.setenv("EXO_TEST_HANGS", "1")
    monkeypatch.setenv("PROBE_TIMEOUT", "2")
    monkeypatch.setenv("PROBE_DISABLE", "bus")  # it would show the GPUs of the computer itself
    script = Path(__file__).with_name("exo_gather.py")
    paths = [*exo.sources(), tmp_path / "site"]
    *_, found, line, last = exo.run(
        checkout(*NAMES), str(script), "driver", paths=paths
    ).splitlines()
    assert found == str(backends)
    assert line.startswith("Engines: ")
    assert why_not in line
    assert last == "memory, interfaces, backends and identity; 0 warnings"
