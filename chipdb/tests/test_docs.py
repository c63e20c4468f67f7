"""What the documents say is executed: the README's session, the tables, the example package."""

import doctest
import shutil
import tomllib
from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb.entry import fields
from probe_chipdb.tools.check import check

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "probe-chips-acme"


def test_the_readmes_session() -> None:
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 15
    assert result.failed == 0


@pytest.mark.parametrize(
    "module",
    [
        "cpu_brand",
        "exclusions",
        "name_facts",
        "name_form",
        "chip_peaks",
        "shortcuts",
        "spelling",
    ],
)
def test_docstrings(module: str) -> None:
    from importlib import import_module

    result = doctest.testmod(import_module(f"probe_chipdb.{module}"))
    assert result.attempted >= 1
    assert result.failed == 0


@pytest.mark.parametrize(
    "table", [fields.CHIP, fields.ARCH, fields.MATCH, fields.SOURCE, fields.FAMILY]
)
def test_every_field_is_documented(table: dict[str, object]) -> None:
    text = (ROOT / "docs" / "format.md").read_text()
    assert [key for key in table if f"`{key}`" not in text and f".{key}`" not in text] == []


def test_every_kind_of_name_is_documented() -> None:
    text = (ROOT / "docs" / "matching.md").read_text()
    assert [kind for kind in probe_chipdb.KINDS if f"`{kind}`" not in text] == []


def test_every_command_is_documented() -> None:
    text = (ROOT / "README.md").read_text()
    commands = (
        "check",
        "build",
        "diff",
        "pages",
        "schema",
        "missing",
        "compare",
        "stale",
        "notes",
        "unread",
    )
    for command in commands:
        assert f"| `{command}" in text


def test_the_example_package(tmp_path: Path) -> None:
    """Installed as a wheel would be: its folder, and a dist-info with the entry points."""
    shutil.copytree(EXAMPLE / "src" / "acme_chips", tmp_path / "acme_chips")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    ((group, points),) = project["entry-points"].items()
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    db = probe_chipdb.load(path=[str(tmp_path)])
    assert db.problems == ()
    chip = db.match(pci="1ac0:0001").chip
    assert chip is not None
    assert (chip.id, chip.origin) == ("acme/x1", "package:probe_chips_acme 2026.11.0")
    peak = chip.peak("bf16")
    assert peak is not None
    assert peak.tflops == pytest.approx(98.304)
    lite = db.match(pci="1ac0:0001", revision="02").chip
    assert lite is not None
    assert lite.id == "acme/x1-lite"


def test_the_example_passes_the_check() -> None:
    result = check(str(EXAMPLE / "src" / "acme_chips"))
    assert [str(problem) for problem in result.problems] == []
