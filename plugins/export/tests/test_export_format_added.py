"""A format that is added as CONTRIBUTING's row says is everywhere: five files, and no other."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "plugins/export/src/probe_export"
SUMMARY = "attributes of an invented batch system"

MODULE = """\
from probe_export.capacity import capacity


def export(report):
    return f"ProbeDevices = {len(capacity(report))}\\n"
"""

CONTRACT = """

class TestBatch(ExporterContract):
    name = "batch"
    target = "probe_export.batch:export"

    def count(self, text: str) -> int:
        return counted("^ProbeDevices = ([0-9]+)$", text)
"""

ROW = "| `batch` | an invented batch system |\n"

ADDED = {
    f"{SOURCE}/batch.py": ("", MODULE),
    f"{SOURCE}/exporter.json": (
        '    "dra": {',
        f'    "batch": {{"summary": "{SUMMARY}"}},\n    "dra": {{',
    ),
    "plugins/export/pyproject.toml": (
        'dra = "probe_export.dra:export"\n',
        'batch = "probe_export.batch:export"\ndra = "probe_export.dra:export"\n',
    ),
    "plugins/export/tests/test_export_kit.py": ("", CONTRACT),
    "docs/how-to/export.md": ("| `env` |", f"{ROW}| `env` |"),
}
"""File to the line before which something is added, at the end where there is none."""

MANUAL = """
import sys
sys.path.insert(0, "docs")
from pathlib import Path
import package_files
print(package_files.files(Path("plugins/export").resolve())["man/man1/probe-export.1"])
"""

ANNOUNCE = """
import sys
sys.path.insert(0, "docs")
from pathlib import Path
import package_files
package_files._announce(Path("plugins/export"), Path("site"))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository in which a format was added, and installed."""
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "_build")
    for folder in ("docs", "plugins/export"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for shared in ("probe_core", "chipdb", "tests", "CHANGELOG.md"):
        (copy / shared).symlink_to(ROOT / shared)
    for plugin in (ROOT / "plugins").iterdir():
        if plugin.name != "export":
            (copy / "plugins" / plugin.name).symlink_to(plugin)
    for file, (line, lines) in ADDED.items():
        add(copy / file, line, lines)
    (copy / "site").mkdir()
    python(copy, "-c", ANNOUNCE)
    return copy


def add(path: Path, line: str, lines: str) -> None:
    text = path.read_text("utf-8") if path.exists() else ""
    assert not line or text.count(line) == 1, path
    path.write_text(text.replace(line, lines) if line else text + lines, "utf-8")


def python(copy: Path, *arguments: str) -> str:
    paths = [
        str(copy / "site"),
        str(copy / SOURCE).rpartition("/")[0],
        str(copy / "docs"),
        str(copy),
    ]
    environ = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def probe(copy: Path, *arguments: str) -> str:
    return python(copy, "-m", "probe_core", *arguments)


def test_the_row_names_the_five_files() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    row = next(line for line in table.splitlines() if line.startswith("| a format of `probe exp"))
    folder = f"`{SOURCE}/`"
    assert folder in row
    named = [name for name in re.findall(r"`([^`]+\.[a-z]+)`", row) if "/" in name]
    inside = [name for name in ("NAME.py", "exporter.json") if f"`{name}`" in row]
    files = {*named, *(f"{SOURCE}/{name.replace('NAME', 'batch')}" for name in inside)}
    assert files == ADDED.keys()
    assert len(ADDED) <= 5


def test_it_is_listed_and_written(copy: Path, tmp_path: Path) -> None:
    listed = {line.split()[0]: line.split(maxsplit=1)[1] for line in probe(
        copy, "export", "--list").splitlines()}  # fmt: skip
    assert listed["batch"] == SUMMARY
    assert list(listed) == sorted(listed)
    recording = ROOT / "tests/machines/server--8x-amd-instinct-mi300x.json"
    written = probe(copy, "export", "batch", "--machine", str(recording))
    assert written == "ProbeDevices = 8\n"


def test_it_is_in_the_help_and_completed(copy: Path) -> None:
    names = "ansible, batch, dra, env, exo, nfd, otel, prometheus, ray or slurm"
    assert names in " ".join(probe(copy, "export", "--help").split())
    answer = probe(copy, "completion", "fish", "--complete", "probe", "export", "ba")
    assert answer == "batch\nwords\n"
    done = subprocess.run(
        [sys.executable, "-m", "probe_core", "export", "bacht"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": f"{copy / 'site'}{os.pathsep}{copy}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "bacht: no such format. Did you mean batch?" in done.stderr
    assert done.returncode == 2


def test_it_is_in_the_manual_and_on_the_page(copy: Path) -> None:
    assert "one of \\-\\-list: ansible, batch, dra, env" in python(copy, "-c", MANUAL)
    assert ROW in (copy / "docs/how-to/export.md").read_text("utf-8")


@pytest.mark.heavy
def test_it_passes_the_contract_and_the_tests_of_completeness(copy: Path, tmp_path: Path) -> None:
    folder = "plugins/export/tests"
    files = (f"{folder}/test_export_kit.py::TestBatch", f"{folder}/test_export_six.py")
    chosen = "TestBatch or batch or every_format"
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tmp_path}")
    weights = ("-m", "heavy or not heavy")
    summary = python(copy, "-m", "pytest", *options, *weights, "-k", chosen, *files)
    assert re.search(r"^\d+ passed", summary, re.M), summary


def test_every_format_has_a_row_on_its_page() -> None:
    manifest = json.loads((ROOT / SOURCE / "exporter.json").read_text("utf-8"))
    page = (ROOT / "docs/how-to/export.md").read_text("utf-8")
    assert [name for name in manifest["exporters"] if f"\n| `{name}` | " not in page] == []
