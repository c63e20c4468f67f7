"""Number formats of architectures: what hardware computes in, and which release can use it."""

import json
import shutil
from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb.database import Database
from probe_chipdb.entry.files import read_folder
from probe_chipdb.formats import BY, FORMATS, Cell, cells
from probe_chipdb.table import FILES, Table
from probe_chipdb.tools import export
from probe_chipdb.tools.check import check

DATA = Path(__file__).parents[1] / "data"
GROUPS = '[group]\nnew = ["one"]\n\n[unknown]\n' + "".join(f'"{by}" = "unread"\n' for by in BY)
ROW = """
[[row]]
archs = ["new"]
formats = ["int4"]
state = "none"
source = "book"
at = "page 4"
quote = "no INT4"
"""


def write(data: Path, rows: str) -> None:
    (data / "formats").mkdir(exist_ok=True)
    (data / "formats/f.toml").write_text(GROUPS + rows)


def errors(data: Path) -> list[str]:
    return [str(problem) for problem in check(str(data)).problems if problem.level == "error"]


def compiled(data: Path) -> str:
    entries = read_folder(str(data))
    return entries.formats.compiled(entries.archs)


def state(found: tuple[Cell, ...], name: str, by: str = "hardware") -> tuple[str | None, str, str]:
    (cell,) = [cell for cell in found if (cell.format, cell.by) == (name, by)]
    return cell.state, cell.release, cell.reason


def test_every_cell_has_a_state_or_a_reason(real: Database) -> None:
    for arch in real.archs():
        found = cells(arch.id, real.formats())
        assert len(found) == len(BY) * len(FORMATS)
        for cell in found:
            assert bool(cell.state) != bool(cell.reason), (arch.id, cell)
            if cell.state:
                assert cell.source, (arch.id, cell)
                assert cell.at, (arch.id, cell)


@pytest.mark.parametrize(
    ("chip", "name", "by", "expected"),
    [
        ("nvidia/h100-sxm5-80gb", "fp8-e4m3", "hardware", ("native", "")),
        ("nvidia/h100-sxm5-80gb", "int4", "hardware", ("none", "")),
        ("nvidia/a100-sxm4-80gb", "int4", "hardware", ("native", "")),
        ("nvidia/a100-sxm4-80gb", "fp8-e4m3", "vllm", ("emulated", "in 0.6.4")),
        ("nvidia/vr200", "int8", "hardware", ("none", "")),
        ("nvidia/geforce-rtx-5090", "mxfp4", "llama.cpp", ("native", "")),
        ("nvidia/geforce-rtx-4090", "fp8-e5m2", "tinygrad", ("native", "since 0.12.0")),
        ("amd/instinct-mi300x", "fp8-e4m3fnuz", "hardware", ("native", "")),
        ("amd/instinct-mi355x", "fp8-e4m3fnuz", "hardware", ("none", "")),
        ("amd/instinct-mi355x", "mxfp4", "hardware", ("native", "")),
        ("apple/m3-max-40c", "nvfp4", "mlx", ("emulated", "since 0.30.3")),
        ("apple/m3-max-40c", "fp64", "mlx", ("none", "in 0.32.1")),
        ("intel/arc-b580-graphics", "bf16", "hardware", ("native", "")),
    ],
)
def test_known_cells(
    real: Database, chip: str, name: str, by: str, expected: tuple[str, str]
) -> None:
    entry = real.chip(chip)
    assert entry is not None
    assert state(entry.formats(), name, by)[:2] == expected


def test_what_is_not_known_says_why(real: Database) -> None:
    mi300x = real.chip("amd/instinct-mi300x")
    assert mi300x is not None
    assert "the rates of fp8 are those of its FNUZ types" in state(mi300x.formats(), "fp8-e4m3")[2]
    text = real.formats()
    assert state(cells("", text), "fp32") == (None, "", "the architecture is not known")
    shared = cells("hopper+ampere-ga100", text)
    assert state(shared, "fp8-e4m3") == (None, "", "it differs among the architectures")
    assert state(shared, "fp32")[0] == "native"


def test_rates_and_rows_make_the_built_table(data: Path) -> None:
    write(data, ROW)
    assert errors(data) == []
    found = cells("one", compiled(data))
    assert state(found, "int4") == ("none", "", "")
    assert state(found, "fp16") == ("native", "", "")  # its rates say it
    assert state(found, "fp16", "mlx") == (None, "", "unread")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            ROW + ROW.replace('"new"', '"one"'),
            "row 2, int4: formats: int4 of one is in row 1 too; leave it in one",
        ),
        (ROW.replace("int4", "fp16"), "one has rates of fp16, and fp16 is 'none'"),
        (ROW.replace('"new"', '"old"'), "archs: 'old' is unknown"),
        (ROW.replace('quote = "no INT4"\n', ""), "has no source, place and words"),
        (ROW.replace('"book"', '"guide"'), "'guide' has no url or date"),
        (ROW.replace('state = "none"\n', ""), "a row has a state, or a reason why it is unknown"),
        (ROW + 'unknown = "so"\n', "a row has a state, or a reason why it is unknown"),
        (ROW + 'since = "1.0"\n', "hardware has no release"),
        (ROW.replace("int4", "int5"), "'int5' is unknown; write one of fp64, fp32"),
        (ROW.replace("[[row]]", "[[cell]]"), "cell: is no table; known keys: group"),
    ],
)
def test_a_bad_row_is_an_error(data: Path, rows: str, sentence: str) -> None:
    write(data, rows)
    assert any(sentence in text for text in errors(data)), errors(data)


def test_a_reason_is_missed(data: Path) -> None:
    write(data, ROW)
    path = data / "formats/f.toml"
    path.write_text(path.read_text().replace('"mlx" = "unread"\n', ""))
    (error,) = errors(data)
    assert "formats: [unknown]: mlx: a cell without a row has no reason" in error


def test_a_lookup_does_not_read_them(real: Database) -> None:
    import subprocess
    import sys

    code = (
        "import sys, probe_chipdb as c; c.load(packages=False).match(pci='10de:2684').chip.peaks()"
        "; sys.exit('probe_chipdb.formats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.heavy
def test_the_export(real: Database, tmp_path: Path) -> None:
    export.write(real, str(tmp_path))
    content = json.loads((tmp_path / "formats.json").read_text())
    assert set(content["unknown"]) == set(BY) == set(content["by"])
    hopper = {(cell["by"], cell["format"]): cell for cell in content["architectures"]["hopper"]}
    assert hopper["hardware", "fp8-e4m3"]["quote"] == "9.0 | Yes Yes Yes Yes Yes - - Yes -"
    assert ("mlx", "fp32") not in hopper
    used = {cell["source"] for cells in content["architectures"].values() for cell in cells
            if "source" in cell}  # fmt: skip
    assert {key for keys in used for key in keys.split(", ")} == set(content["sources"])
    assert all(source["title"] for source in content["sources"].values())


ACME = Path(__file__).parents[1] / "examples/probe-chips-acme/src/acme_chips"
ACME_ROW = """
[[row]]
archs = ["acme-one"]
formats = ["fp8-e4m3", "fp8-e5m2"]
state = "none"
source = "acme-x-datasheet"
at = "table 3"
quote = "FP8: not supported"
"""


def package(folder: Path, rows: str) -> Path:
    """Acme's package with a file of number formats."""
    shutil.copytree(ACME, folder / "acme_chips")
    (folder / "acme_chips/formats").mkdir(exist_ok=True)
    (folder / "acme_chips/formats/acme.toml").write_text(rows)
    info = folder / "probe_chips_acme-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[probe_core.chipdb.v1]\nacme = acme_chips\n")
    return folder


def formats_of(db: Database, chip: str) -> tuple[Cell, ...]:
    entry = db.chip(chip)
    assert entry is not None
    return entry.formats()


def test_a_package_says_in_what_its_architectures_compute(real: Database, tmp_path: Path) -> None:
    db = probe_chipdb.load(path=[str(package(tmp_path, ACME_ROW))])
    assert db.problems == ()
    found = formats_of(db, "acme/x1")
    assert state(found, "fp8-e5m2") == ("none", "", "")
    assert state(found, "bf16") == ("native", "", "")  # its rates say it
    reason = "its documents and history that were read do not name this format on this architecture"
    assert state(found, "bf16", "mlx") == (None, "", reason)
    cell = next(cell for cell in found if cell.format == "fp8-e4m3" and cell.by == "hardware")
    assert (cell.source, cell.quote) == ("acme-x-datasheet", "FP8: not supported")
    ours, theirs = (formats_of(each, "nvidia/h100-sxm5-80gb") for each in (real, db))
    assert [cell.as_json() for cell in ours] == [cell.as_json() for cell in theirs]


@pytest.mark.parametrize("archs", ['"hopper"', '"acme-one", "hopper"', '"new"'])
def test_a_package_says_nothing_of_others(real: Database, tmp_path: Path, archs: str) -> None:
    folder = package(tmp_path, GROUPS.replace('"one"', '"hopper"') + ACME_ROW)
    path = folder / "acme_chips/formats/acme.toml"
    path.write_text(path.read_text().replace('"acme-one"', archs))
    db = probe_chipdb.load(path=[str(folder)])
    (problem,) = db.problems
    assert "archs: hopper is no architecture of this package; name its own" in problem
    ours, theirs = (formats_of(each, "nvidia/h100-sxm5-80gb") for each in (real, db))
    assert [cell.as_json() for cell in ours] == [cell.as_json() for cell in theirs]
    assert state(formats_of(db, "acme/x1"), "fp8-e4m3")[0] is None
    assert any("archs: 'hopper' is unknown" in text for text in errors(folder / "acme_chips"))


def test_the_check_holds_a_package_to_the_same(tmp_path: Path) -> None:
    folder = package(tmp_path, ACME_ROW) / "acme_chips"
    assert errors(folder) == []
    path = folder / "formats/acme.toml"
    path.write_text(ACME_ROW.replace('quote = "FP8: not supported"\n', ""))
    (error,) = errors(folder)
    assert "has no source, place and words" in error
    path.write_text(ACME_ROW.replace('"fp8-e4m3", "fp8-e5m2"', '"int8"'))
    (error,) = errors(folder)
    assert "acme-one has rates of int8, and int8 is 'none'" in error
    path.write_text('[unknown]\nmlx = "so"\n' + ACME_ROW)
    (error,) = errors(folder)
    assert "the reasons for cells without a row are the project's" in error


def test_they_travel_with_the_texts_of_a_table(tmp_path: Path) -> None:
    """A host reads packages in a child, and makes the tables anew from their texts."""
    db = probe_chipdb.load(path=[str(package(tmp_path, ACME_ROW))])
    (own,) = [table for table in db.tables() if table.origin.startswith("package:")]
    texts = {name: getattr(own, name.removesuffix(".txt")).data for name in FILES}
    texts["formats.txt"] = own.formats.encode()
    again = probe_chipdb.load(packages=False, added=([], [Table(own.origin, "", texts)], ()))
    assert state(formats_of(again, "acme/x1"), "fp8-e4m3") == ("none", "", "")


def test_a_cell_says_what_it_is_and_what_is_not_known() -> None:
    known = Cell("hardware", "fp8", ["native", "", "1.2", "", "", "", ""])
    unknown = Cell("acme", "fp8", [""] * 6 + ["nobody says"])
    assert [repr(known), repr(unknown)] == [
        "<Cell hardware fp8 native>", "<Cell acme fp8 unknown>"
    ]  # fmt: skip
    assert [known.release, unknown.release] == ["in 1.2", ""]
    assert Cell("a", "b", ["none", "0.9", "1.2", "", "", "", ""]).release == "since 0.9"
    assert unknown.as_json() == {"by": "acme", "format": "fp8", "reason": "nobody says"}
