"""Build, diff, pages, schema and the command line."""
# ruff: noqa: E501 - rows are whole sentences, as they are printed

import json
import os
import re
from pathlib import Path

import pytest

from probe_chipdb.__main__ import main
from probe_chipdb.database import Database
from probe_chipdb.table import FILES, FORMATS, from_folder
from probe_chipdb.tools import diff
from probe_chipdb.tools.build import TABLE, build, outdated, schemas

ROOT = Path(__file__).parents[1]
FAST = "chips/acme/fast.toml"
Capture = pytest.CaptureFixture[str]


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def change(data: Path, *pairs: tuple[str, str]) -> None:
    path = data / FAST
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)


def test_build_is_deterministic_and_readable(data: Path, tmp_path: Path) -> None:
    assert build(str(data), str(tmp_path / "a")) == []
    assert build(str(data), str(tmp_path / "b")) == []
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    db = Database(from_folder(str(tmp_path / "a")))
    assert db.version == "2026.11.0"
    match = db.match(pci="aaaa:0001")
    assert match.chip is not None
    assert match.chip.id == "acme/fast-1"


def test_an_unchanged_build_touches_nothing(data: Path, tmp_path: Path) -> None:
    build(str(data), str(tmp_path / "a"))
    before = {name: os.stat(tmp_path / "a" / name).st_mtime_ns for name in FILES}
    build(str(data), str(tmp_path / "a"))
    assert {name: os.stat(tmp_path / "a" / name).st_mtime_ns for name in FILES} == before


@pytest.mark.heavy
def test_the_built_table_is_up_to_date(tmp_path: Path) -> None:
    """Otherwise run `python -m probe_chipdb build`: the data or what packs it has changed."""
    assert build(str(ROOT / "data"), str(tmp_path)) == []
    assert contents(tmp_path) == contents(ROOT / "src" / "probe_chipdb" / "table")


def test_a_checkout_notices_each_change_of_its_data(data: Path) -> None:
    root = str(data.parent)
    command = "run `python -m probe_chipdb build`"
    assert outdated(root) == f"the table has not been built: {command}"
    build(str(data), f"{root}/{TABLE}")
    assert outdated(root) == ""
    older = f"the table is older than the data: {command}"
    change(data, ("boost = 2000", "boost = 2200"))
    assert outdated(root) == older
    build(str(data), f"{root}/{TABLE}")
    assert outdated(root) == ""
    (data / "chips/acme/fast.toml").rename(data / "chips/acme/other.toml")
    assert outdated(root) == older


def test_what_has_no_data_beside_it_is_not_outdated(tmp_path: Path) -> None:
    assert outdated(str(tmp_path)) == ""


def test_a_build_leaves_nothing_but_the_table(data: Path, tmp_path: Path) -> None:
    build(str(data), str(tmp_path / "a"))
    assert sorted(os.listdir(tmp_path / "a")) == sorted((*FILES, FORMATS))


READERS = [
    "audit TABLE",
    "compare",
    "export OUT",
    "missing",
    "pages OUT",
    "site OUT",
    "stale TABLE",
]


@pytest.mark.parametrize("command", READERS)
def test_no_command_shows_data_that_has_changed_since(
    command: str, data: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data.parent / "peaks.json").write_text('{"Acme Fast 1": 1}')
    monkeypatch.setattr(
        "probe_chipdb.__main__._source_path", lambda *parts: str(Path(data.parent, *parts))
    )
    words = {"TABLE": str(data.parent / "peaks.json"), "OUT": str(data.parent / "out")}
    assert main([words.get(word, word) for word in command.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "probe_chipdb: the table has not been built: run `python -m probe_chipdb build`\n"
    assert not (data.parent / "out").exists()


def test_lines_are_sorted_by_their_bytes(data: Path, tmp_path: Path) -> None:
    build(str(data), str(tmp_path))
    for name in FILES:
        keys = [line.split(b"\t")[0] for line in (tmp_path / name).read_bytes().splitlines()]
        keys = [key for key in keys if not key.startswith(b"#")]
        assert keys == sorted(set(keys))


def test_diff(data: Path, tmp_path: Path) -> None:
    build(str(data), str(tmp_path / "old"))
    change(data, ("boost = 2000", "boost = 2200"), ('"aaaa:0002"', '"aaaa:0002", "aaaa:00ff"'),
           ('"acme/fast-oem"', '"acme/fast-new"'), ('name = "Acme NPU"', 'name = "Acme NPU 2"'),
           ("int8.matrix.int32", "int4.matrix.int32"), ("gib = 8,", "gib = 8.5,"))  # fmt: skip
    arch = data / "arch/a.toml"
    arch.write_text(arch.read_text().replace(
        '"fp32.vector.fp32" = 64', '"fp32.vector.fp32" = 65\n"int8.vector.int32" = 1'
    ).replace('"fp32.vector.fp32" = 128', '"fp16.vector.fp16" = 128'))  # fmt: skip
    lines = list(diff.diff(diff.open_data(str(tmp_path / "old")), diff.open_data(str(data))))
    assert lines == [
        "### Added (1)",
        "- acme/fast-new: Acme Fast OEM",
        "### Removed (1)",
        "- acme/fast-oem: Acme Fast OEM",
        "### Changed (5)",
        "- acme/fast-1-8gb: memory gib 8, type GDDR6, bus 128, gbs 256 -> gib 8.5, type GDDR6, bus 128, gbs 256; pci +aaaa:00ff",
        "- acme/fast-1: clock base 1000, boost 2000 -> base 1000, boost 2200; fp16.matrix.fp32 dense 102.4 -> 112.6 T (+10.0%); fp16.matrix.fp32 sparse 204.8 -> 225.3 T (+10.0%); fp32.vector.fp32 dense 51.2 -> 56.32 T (+10.0%)",
        "- acme/npu: name Acme NPU -> Acme NPU 2; reads int8.matrix.int32;dense;book;page 2;6 TOPS -> int4.matrix.int32;dense;book;page 2;6 TOPS; int4.matrix.int32 dense now known; int8.matrix.int32 dense no longer known",
        "- beta/b-30: fp16.vector.fp16 dense now known",
        "- beta/b-40: fp16.vector.fp16 dense now known; fp32.vector.fp32 dense no longer known",
        "### Architectures (4)",
        "- three: fp16.vector.fp16 unknown -> 128 per clock and CU",
        "- three: fp32.vector.fp32 128 -> unknown per clock and CU",
        "- vague: fp32.vector.fp32 64 -> 65 per clock and core",
        "- vague: int8.vector.int32 unknown -> 1 per clock and core",
    ]
    assert list(diff.diff(diff.open_data(str(data)), diff.open_data(str(data)))) == []


def test_the_built_schemas_are_up_to_date() -> None:
    """Otherwise run `python -m probe_chipdb schema`: the fields have changed."""
    for name, expected in schemas().items():
        assert json.loads((ROOT / "schema" / name).read_text()) == expected


def test_schemas_accept_the_data_and_refuse_slips(data: Path) -> None:
    import tomllib

    jsonschema = pytest.importorskip("jsonschema")
    expected = schemas()["chips.schema.json"]
    good = tomllib.loads((data / FAST).read_text())
    jsonschema.Draft7Validator.check_schema(expected)
    jsonschema.validate(good, expected)
    good["chip"][0]["units"] = -1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(good, expected)


def test_command_check(data: Path, capsys: Capture) -> None:
    assert main(["check", str(data)]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("7 chips")
    change(data, ("units = 100", "units = 0"))
    assert main(["check", str(data)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(
        "error: chips/acme/fast.toml: chip 'acme/fast-1': units: 0 is out of bounds"
    )


def test_command_check_strict_and_fix(data: Path, capsys: Capture) -> None:
    assert main(["check", "--fix", str(data)]) == 0
    change(data, ("units = 100", "units   = 100"))
    assert main(["check", str(data)]) == 0
    assert main(["check", "--strict", str(data)]) == 1
    assert "is not laid out canonically" in capsys.readouterr().out
    assert main(["check", "--strict", "--fix", str(data)]) == 0
    assert re.match(r"laid out \S+fast\.toml\n", capsys.readouterr().out)


def test_command_build_diff_schema(data: Path, tmp_path: Path, capsys: Capture) -> None:
    into = str(tmp_path / "t")
    assert main(["build", str(data), "--into", into]) == 0
    assert main(["diff", into, str(data)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["schema", str(tmp_path / "s")]) == 0
    assert len(os.listdir(tmp_path / "s")) == 7
    change(data, ('id = "acme/fast-1"', 'id = "X"'))
    assert main(["build", str(data), "--into", into]) == 1
    assert "left out: chips/acme/fast.toml: chip 'X': id" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "build", "diff"])
def test_a_missing_path_is_a_usage_error(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "nowhere")
    into = ["--into", str(tmp_path / "table")] if command == "build" else []
    assert main([command, path, *([path] if command == "diff" else into)]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_folder_without_data_makes_no_table(tmp_path: Path, capsys: Capture) -> None:
    """It would take the place of the one that ships: with a typing error in the path, of all."""
    table = tmp_path / "table"
    table.mkdir()
    (table / "chips.txt").write_text("as it was")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "pyproject.toml").write_text("")
    for line in (["check", str(empty)], ["build", str(empty), "--into", str(table)]):
        assert main(line) == 2
        assert capsys.readouterr().err.endswith(
            f"no TOML file is in it: {str(empty)!r}; check the path\n"
        )
    assert [path.name for path in table.iterdir()] == ["chips.txt"]
    assert (table / "chips.txt").read_text() == "as it was"


@pytest.mark.parametrize("line", [[], ["chek", "x"], ["check"]])
def test_usage(line: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line)
    assert stop.value.code == 2
