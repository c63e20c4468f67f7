"""Plugins in zip archives on the path are named: Python would import them, discovery finds none."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from probe_core.registry import scan
from probe_core.registry.archives import left_out
from probe_core.registry.prober import discover

ENTRIES = "[console_scripts]\nx = y:z\n[probe_core.probers.v1]\nacme = acme_prober\n"


def archive(path: Path, **files: str) -> str:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return str(path)


def wheel(path: Path, entries: str = ENTRIES, info: str = "probe_acme-1.2.dist-info") -> str:
    return archive(path, **{f"{info}/entry_points.txt": entries, "acme_prober.py": ""})


def test_a_prober_in_an_archive_is_named(tmp_path: Path) -> None:
    """It was missing without a word."""
    path = wheel(tmp_path / "app.pyz")
    probers, (finding,) = discover({}, [path])
    assert probers == []
    assert finding["code"] == "distribution-broken"
    assert finding["what"] == "the distribution probe-acme 1.2 was left out"
    assert finding["why"] == (
        f"it lies in the archive {path}, and plugins are found in folders alone; unpack it"
    )


@pytest.mark.parametrize(
    ("name", "info", "owner"),
    [
        ("a.zip", "probe_acme-1.2.dist-info", "probe-acme 1.2"),
        ("a.whl", "probe_acme-1.2.egg-info", "probe-acme 1.2"),
        ("acme-3.0-py3.11.egg", "EGG-INFO", "acme 3.0"),
    ],
)
def test_each_form_of_metadata_is_known(name: str, info: str, owner: str, tmp_path: Path) -> None:
    _, (problem,) = scan([wheel(tmp_path / name, info=info)])
    assert problem.distribution == owner


@pytest.mark.parametrize("stem", ["probe_core.commands.v", "probe_core.exporters.v"])
def test_other_plugins_are_named_where_they_are_looked_for(stem: str, tmp_path: Path) -> None:
    path = wheel(tmp_path / "a.zip", f"[{stem}1]\nacme = acme\n")
    assert scan([path]) == ([], [])
    _, (problem,) = scan([path], stem)
    assert problem.distribution == "probe-acme 1.2"


def test_an_archive_without_plugins_is_nobodys_mistake(tmp_path: Path) -> None:
    paths = [
        archive(tmp_path / "stdlib.zip", **{"os.py": "", "json/__init__.py": ""}),
        wheel(tmp_path / "other.zip", "[console_scripts]\nx = y:z\n"),
        archive(tmp_path / "deep.zip", **{"lib/probe_acme-1.dist-info/entry_points.txt": ENTRIES}),
        archive(tmp_path / "bare.zip", **{"probe_acme-1.dist-info/METADATA": "Name: a"}),
        str(tmp_path / "python311.zip"),
    ]
    assert scan(paths) == ([], [])


def test_a_file_that_cannot_be_read_is_no_archive(tmp_path: Path) -> None:
    assert left_out([str(tmp_path), str(tmp_path / "none.zip"), "a\0b.zip"], "probe_core.") == []


def test_what_is_no_archive_costs_nothing(tmp_path: Path) -> None:
    text = b"probe_acme-1.dist-info/entry_points.txt " * 9
    (tmp_path / "text.zip").write_bytes(text)
    whole = Path(wheel(tmp_path / "whole.zip")).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) - 9])
    (tmp_path / "odd.zip").write_bytes(whole.replace(b"PK\x01\x02", b"PK\x09\x09"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.zip")
    assert scan([str(path) for path in sorted(tmp_path.iterdir())])[0] == []


def test_zipfile_is_imported_for_an_archive_of_distributions_alone(tmp_path: Path) -> None:
    plain = archive(tmp_path / "stdlib.zip", **{"os.py": ""})
    code = (
        "import sys\nfrom probe_core.registry import scan\n"
        f"scan([{plain!r}, {str(tmp_path)!r}])\nassert 'zipfile' not in sys.modules\n"
        "scan(['/no/such.zip'])\n"
    )
    path = [p for p in sys.path if p]
    subprocess.run(
        [sys.executable, "-S", "-E", "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        timeout=60,
        check=True,
    )
