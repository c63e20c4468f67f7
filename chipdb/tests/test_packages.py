"""The walk over dist-info folders: cheap, and nobody's broken metadata hides another's."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probe_chipdb.database import Database, load, load_by_position
from probe_chipdb.entry.files import read
from probe_chipdb.packages import find

GROUP = "[probe_core.chipdb.v1]\n"


def dist(site: Path, name: str, text: str | bytes | None) -> None:
    info = site / f"{name}.dist-info"
    info.mkdir(parents=True)
    if text is not None:
        (info / "entry_points.txt").write_bytes(text if isinstance(text, bytes) else text.encode())


def test_finds_ours_among_others(tmp_path: Path) -> None:
    (tmp_path / "acme_chips").mkdir()
    dist(
        tmp_path,
        "acme-1.0",
        "[console_scripts]\nx = y:z\n\n"
        + GROUP
        + "# a comment\nacme = acme_chips\n[other]\nb = c\n",
    )
    dist(tmp_path, "none-1.0", None)
    dist(tmp_path, "others-1.0", "[console_scripts]\na = b:c\n")
    dist(tmp_path, "binary-1.0", b"\xff\xfe\n" + GROUP.encode() + b"\xff = \xff\n")
    packages = {package.name: package for package in find([str(tmp_path)])}
    assert packages["acme"].folder == str(tmp_path / "acme_chips")
    assert packages["acme"].distribution == "acme 1.0"
    assert packages["acme"].problem == ""
    assert [package.problem != "" for name, package in packages.items() if name != "acme"] == [True]


@pytest.mark.parametrize("group", ["probe_core.chipdb.v2", "probe_core.chipdb.v10"])
def test_a_package_of_a_newer_group_is_named(tmp_path: Path, group: str) -> None:
    """It vanished without a word, and its chips were unknown ones."""
    (tmp_path / "acme_chips").mkdir()
    dist(tmp_path, "acme-3.0", f"[{group}]\nacme = acme_chips\n")
    (package,) = find([str(tmp_path)])
    assert (package.distribution, package.name, package.folder) == ("acme 3.0", "acme", "")
    assert package.problem == f"it needs {group!r}, this chipdb reads 'probe_core.chipdb.v1'"
    (sentence,) = load(path=[str(tmp_path)]).problems
    assert sentence.startswith("acme 3.0: acme: it needs")
    assert "upgrade probe-chipdb, or install a version of it that fits" in sentence


@pytest.mark.parametrize("opened", [load, load_by_position])
def test_packages_are_looked_for_unless_they_are_not_wanted(
    opened: Callable[..., Database], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist(tmp_path, "acme-3.0", "[probe_core.chipdb.v2]\nacme = acme_chips\n")
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    assert [problem[:14] for problem in opened().problems] == ["acme 3.0: acme"]
    assert opened(packages=False).problems == ()


def test_a_package_for_several_versions_is_read(tmp_path: Path) -> None:
    (tmp_path / "acme_chips").mkdir()
    newer = "[probe_core.chipdb.v2]\nacme = acme_chips.two\n"
    dist(tmp_path, "acme-3.0", newer + GROUP + "acme = acme_chips\n")
    (package,) = find([str(tmp_path)])
    assert (package.folder, package.problem) == (str(tmp_path / "acme_chips"), "")


def test_an_editable_install_keeps_its_data_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "src" / "acme_chips" / "data").mkdir(parents=True)
    dist(tmp_path / "site", "acme-1.0", GROUP + "acme = acme_chips.data\n")
    (package,) = find([str(tmp_path / "site"), str(tmp_path / "src")])
    assert package.folder == str(tmp_path / "src" / "acme_chips" / "data")


def test_the_first_on_the_path_wins(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "acme_chips").mkdir(parents=True)
        dist(tmp_path / name, "acme-1.0", GROUP + "acme = acme_chips\n")
    (package,) = find([str(tmp_path / "a"), str(tmp_path / "b")])
    assert package.folder == str(tmp_path / "a" / "acme_chips")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_the_place_of_a_file_blocks_nobody(tmp_path: Path) -> None:
    dist(tmp_path, "pipe-1.0", None)
    os.mkfifo(tmp_path / "pipe-1.0.dist-info" / "entry_points.txt")
    os.mkfifo(tmp_path / "chips.toml")
    assert find([str(tmp_path)]) == []
    tables, problems = read(str(tmp_path / "chips.toml"), "chips.toml")
    assert tables == {}
    assert [str(problem) for problem in problems] == [
        "chips.toml: is no regular file; write the chips to a file"
    ]


def test_a_dangling_link_costs_its_own_file_alone(tmp_path: Path) -> None:
    folder = tmp_path / "acme_chips"
    folder.mkdir()
    (folder / "good.toml").write_text(
        '[family]\ntitle = "A"\nvendor = "acme"\n'
        '[[chip]]\nid = "acme/a"\nname = "Acme A"\nkind = "npu"\n'
    )
    (folder / "gone.toml").symlink_to(tmp_path / "nowhere")
    dist(tmp_path, "acme-1.0", GROUP + "acme = acme_chips\n")
    database = load(path=[str(tmp_path)])
    assert database.chip("acme/a") is not None
    (problem,) = database.problems
    assert problem.startswith("acme 1.0: gone.toml: cannot be read")


def test_paths_that_are_no_folders(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"")
    odd = [str(tmp_path / "x.zip"), str(tmp_path / "missing"), "", "a\0b", b"bytes", tmp_path]
    assert find(odd) == []  # type: ignore[arg-type]
