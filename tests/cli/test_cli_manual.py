"""The manual pages: made with the wheels, and read by what displays them without a complaint."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from manual import STATUSES

from probe_core.cli import COMMANDS
from probe_core.cli.plugin_commands import BROUGHT_BY
from probe_core.commands.options import SHARED_OPTIONS

ROOT = Path(__file__).parents[2]
OWN = [f"probe-{name}.1" for name in COMMANDS if name != "devices"] + ["probe.1"]
FOLDERS = {"": OWN}
for name, distribution in BROUGHT_BY.items():
    folder = f"plugins/{distribution.removeprefix('probe-')}"
    FOLDERS.setdefault(folder, []).append(f"probe-{name}.1")

READERS = {
    "mandoc": ["mandoc", "-T", "lint", "-W", "style"],
    "groff": ["groff", "-ww", "-man", "-Tutf8", "-z"],
    "man": ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"],
}


@pytest.fixture(scope="module")
def manuals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the manual pages of each distribution, made as build hooks make them."""
    made = tmp_path_factory.mktemp("manuals")
    for folder in FOLDERS:
        script = [str(ROOT / "docs/package_files.py"), str(ROOT / folder), str(made / folder)]
        subprocess.run([sys.executable, "-I", "-S", *script], timeout=60, check=True)
    return made


def text_of(page: Path) -> str:
    """Return a page without roff's escapes of ASCII characters."""
    text = page.read_text("ascii")
    return text.replace(r"\-", "-").replace(r"\(aq", "'").replace("\n", " ")


@pytest.mark.heavy
def test_there_is_a_page_for_each_command_and_no_other(manuals: Path) -> None:
    for folder, names in FOLDERS.items():
        there = (manuals / folder / "man" / "man1").iterdir()
        assert sorted(path.name for path in there) == sorted(names)


@pytest.mark.heavy
@pytest.mark.parametrize("reader", READERS)
def test_pages_are_read_without_a_warning(reader: str, manuals: Path) -> None:
    if shutil.which(reader) is None:
        pytest.skip(f"{reader} is not installed")
    for page in manuals.rglob("*.1"):
        done = subprocess.run(
            [*READERS[reader], str(page)], capture_output=True, timeout=60, check=False
        )
        said = done.stdout.decode() if reader == "mandoc" else ""
        assert (done.returncode, said, done.stderr) == (0, "", b""), page.name


@pytest.mark.heavy
def test_pages_hold_what_the_help_holds(manuals: Path) -> None:
    folder = manuals / "man" / "man1"
    overview = text_of(folder / "probe.1")
    for name, (_, group, summary) in COMMANDS.items():
        assert f".SS {group} " in overview
        assert f"\\fBprobe {name}\\fR {summary.replace('…', '...')}" in overview
    for status, meaning in STATUSES:
        assert f"\\fB{status}\\fR {meaning}" in overview
    for name in ("probe.1", "probe-exec.1", "probe-explain.1"):
        page = text_of(folder / name)
        assert [o.name for o in SHARED_OPTIONS if f"\\fB--{o.name}" not in page] == []
        assert ".SH EXAMPLES .TP \\fBprobe" in page


def test_statuses_are_those_of_the_reference() -> None:
    reference = (ROOT / "docs/reference/cli.md").read_text("utf-8")
    rows = [line.split("|")[1].strip() for line in reference.splitlines() if line.startswith("| ")]
    assert [status for status, _ in STATUSES] == [row for row in rows if row[:1].isdecimal()]


def build(source: Path, result: Path, *targets: str) -> list[Path]:
    """Build the wheel of a folder, its sdist, or both, which takes one start of hatchling."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(result)]
    command += [word for target in targets for word in ("-t", target)]
    subprocess.run(command, cwd=source, capture_output=True, timeout=120, check=True)
    kinds = {"wheel": "*.whl", "sdist": "*.tar.gz"}
    return [path for target in targets for path in result.glob(kinds[target])]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    """Return what gives the wheel and the sdist of a folder of the checkout, built once."""
    made = tmp_path_factory.mktemp
    return cache(lambda folder: build(ROOT / folder, made("built"), "wheel", "sdist"))


@pytest.mark.heavy
@pytest.mark.parametrize("folder", FOLDERS)
def test_pages_are_in_the_wheel_and_not_in_the_repository(
    folder: str, manuals: Path, built: Callable[[str], list[Path]]
) -> None:
    wheel, _ = built(folder)
    assert not (ROOT / folder / "man").exists()
    with zipfile.ZipFile(wheel) as archive:
        pages = {name: archive.read(name) for name in archive.namelist() if "/share/man/" in name}
    data = wheel.name.rpartition("-py3")[0]
    assert sorted(pages) == [
        f"{data}.data/data/share/man/man1/{name}" for name in sorted(FOLDERS[folder])
    ]
    for path, content in pages.items():
        source = manuals / folder / "man" / "man1" / path.rpartition("/")[2]
        assert content == source.read_bytes()


@pytest.mark.heavy
@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_a_wheel_of_an_sdist_is_that_of_the_checkout(
    folder: str, tmp_path: Path, built: Callable[[str], list[Path]]
) -> None:
    """Who builds from an sdist has no checkout around the plugin."""
    wheel, archive = built(folder)
    with tarfile.open(archive) as sdist:
        sdist.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    (again,) = build(source, tmp_path / "again", "wheel")
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel, without the record of their sums."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        return {name: archive.read(name) for name in names}


def test_plugins_add_their_pages_by_one_hook() -> None:
    """A build hook is a file of each distribution's own, which finds the one that all have."""
    texts = {(ROOT / folder / "hatch_build.py").read_text() for folder in FOLDERS if folder}
    assert len(texts) == 1
