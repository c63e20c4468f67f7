"""The manual pages: in the wheels, and read by what displays them without a complaint."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from probe_core.cli import COMMANDS
from probe_core.cli.help import STATUSES
from probe_core.cli.installed import BROUGHT_BY
from probe_core.commands.options import SHARED_OPTIONS

ROOT = Path(__file__).parents[2]
OWN = [f"probe-{name}.1" for name in COMMANDS if name != "devices"] + ["probe.1"]
FOLDERS = {"": OWN}
for name, distribution in BROUGHT_BY.items():
    folder = f"plugins/{distribution.removeprefix('probe-')}"
    FOLDERS.setdefault(folder, []).append(f"probe-{name}.1")
PAGES = [ROOT / folder / "man" / "man1" / name for folder in FOLDERS for name in FOLDERS[folder]]

READERS = {
    "mandoc": ["mandoc", "-T", "lint", "-W", "style"],
    "groff": ["groff", "-ww", "-man", "-Tutf8", "-z"],
    "man": ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"],
}


def text_of(name: str) -> str:
    """Return a page without roff's escapes of ASCII characters."""
    text = (ROOT / "man" / "man1" / name).read_text("ascii")
    return text.replace(r"\-", "-").replace(r"\(aq", "'").replace("\n", " ")


def test_there_is_a_page_for_each_command_and_no_other() -> None:
    for folder, names in FOLDERS.items():
        there = (ROOT / folder / "man" / "man1").iterdir()
        assert sorted(path.name for path in there) == sorted(names)


@pytest.mark.parametrize("reader", READERS)
def test_pages_are_read_without_a_warning(reader: str) -> None:
    if shutil.which(reader) is None:
        pytest.skip(f"{reader} is not installed")
    for page in PAGES:
        done = subprocess.run(
            [*READERS[reader], str(page)], capture_output=True, timeout=60, check=False
        )
        said = done.stdout.decode() if reader == "mandoc" else ""
        assert (done.returncode, said, done.stderr) == (0, "", b""), page.name


def test_pages_hold_what_the_help_holds() -> None:
    overview = text_of("probe.1")
    for name, (_, group, summary) in COMMANDS.items():
        assert f".SS {group} " in overview
        assert f"\\fBprobe {name}\\fR {summary.replace('…', '...')}" in overview
    for status, meaning in STATUSES:
        assert f"\\fB{status}\\fR {meaning}" in overview
    for name in ("probe.1", "probe-exec.1", "probe-explain.1"):
        page = text_of(name)
        assert [o.name for o in SHARED_OPTIONS if f"\\fB--{o.name}" not in page] == []
        assert ".SH EXAMPLES .TP \\fBprobe" in page


def test_statuses_are_those_of_the_reference() -> None:
    reference = (ROOT / "docs/reference/cli.md").read_text("utf-8")
    rows = [line.split("|")[1].strip() for line in reference.splitlines() if line.startswith("| ")]
    assert [status for status, _ in STATUSES] == [row for row in rows if row[:1].isdecimal()]


@pytest.mark.parametrize("folder", FOLDERS)
def test_pages_are_in_the_wheel(folder: str, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / folder, capture_output=True, timeout=120, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        pages = {name: archive.read(name) for name in archive.namelist() if "/share/man/" in name}
    data = wheel.name.rpartition("-py3")[0]
    assert sorted(pages) == [
        f"{data}.data/data/share/man/man1/{name}" for name in sorted(FOLDERS[folder])
    ]
    for path, content in pages.items():
        source = ROOT / folder / "man" / "man1" / path.rpartition("/")[2]
        assert content == source.read_bytes()
