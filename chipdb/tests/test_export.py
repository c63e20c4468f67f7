"""The exports say what the reader says, figure by figure, with source and licence."""

import csv
import json
from collections.abc import Collection
from pathlib import Path

import pytest

from probe_chipdb.__main__ import main
from probe_chipdb.database import Database
from probe_chipdb.tools import export

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, real: Database) -> Path:
    into = tmp_path_factory.mktemp("export")
    export.write(real, str(into))
    return into


def test_json_has_every_chip_and_figure_with_its_source(real: Database, folder: Path) -> None:
    data = json.loads((folder / "chips.json").read_text())
    assert (data["format"], data["version"], data["licence"]) == (1, real.version, "Apache-2.0")
    entries = {entry["id"]: entry for entry in data["chips"]}
    assert set(entries) == {chip.id for chip in real.chips()}
    for chip in real.chips():
        entry = entries[chip.id]
        figures = (
            [(p["dtype"], p["sparsity"], p["tflops"], p["source"]) for p in entry["peaks"]]
            if "peaks" in entry
            else []
        )
        assert figures == [
            (peak.dtype, peak.sparsity, round(peak.tflops, 4), peak.source) for peak in chip.peaks()
        ]
        assert bool(figures) != bool(entry.get("no_peaks"))
        assert set(entry["sources"]) <= set(data["sources"])
        assert entry["name"] == chip.name
    assert all(source["title"] for source in data["sources"].values())
    rates = {arch["id"]: arch["rates"] for arch in data["architectures"]}
    assert rates["ada-geforce"] == real.arch("ada-geforce").rates  # type: ignore[union-attr]


def test_csv_has_one_line_a_chip(real: Database, folder: Path) -> None:
    with open(folder / "chips.csv", newline="") as file:
        lines = {line["id"]: line for line in csv.DictReader(file)}
    assert len(lines) == len(real.chips())
    line = lines["nvidia/h100-sxm5-80gb"]
    assert (line["bf16_matrix"], line["memory_gib"], line["units"]) == ("989.4", "80.0", "132")
    assert line["licence"] == "Apache-2.0"
    assert line["sources"]
    assert lines["nvidia/rtx-pro-2000-blackwell-embedded-gpu"]["bf16_matrix"] == ""
    assert line["source_titles"].startswith("NVIDIA: NVIDIA H100")
    laptop = lines["nvidia/geforce-rtx-4090-laptop-gpu"]
    assert (laptop["boost_low_mhz"], laptop["range_set_by"]) == ("1455.0", "laptop")
    for chip in real.chips():
        known = any(lines[chip.id][column] for column in export.CSV_PEAKS)
        assert known or lines[chip.id]["no_peaks"] or chip.peaks()


def test_typescript_is_a_table_of_specifications(real: Database, folder: Path) -> None:
    text = (folder / "hardware.ts").read_text()
    head, _, body = text.partition(
        "export const SKUS: Record<string, Record<string, HardwareSpec>> = "
    )
    assert "Apache-2.0" in head
    assert "export interface HardwareSpec {" in head
    table = json.loads(body.removesuffix(";\n"))
    spec = table["NVIDIA"]["NVIDIA B200"]
    assert (spec["tflops"], spec["memory"], spec["computeCapability"]) == (
        pytest.approx(2250, rel=0.03), [180], 10.0)  # fmt: skip
    assert table["NVIDIA"]["NVIDIA B300 SXM6 AC"]["computeCapability"] == 10.3
    assert table["AMD"]["AMD Instinct MI250X"]["tflops"] == pytest.approx(191.5, rel=0.001)
    named = {id_ for vendor in table.values() for entry in vendor.values() for id_ in entry["ids"]}
    assert named == {c.id for c in real.chips() if export.half_precision(c.peaks()) is not None}
    laptop = table["NVIDIA"]["NVIDIA GeForce RTX 4090 Laptop GPU"]
    assert (laptop["tflops"], laptop["tflopsLow"]) == (79.38, 56.62)
    assert "the maker of the laptop" in laptop["condition"]
    documents = json.loads(head[head.index("SOURCES: Record<string, string> = ") + 34 : -3])
    assert documents["nv-geforce-40l"].startswith("NVIDIA: ")
    twice = table["NVIDIA"]["NVIDIA GeForce RTX 5060 Ti"]
    assert (twice["memory"], len(twice["ids"])) == ([8.0, 16.0], 2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.count("\n") == 5


def test_the_same_data_gives_the_same_bytes(real: Database, folder: Path, tmp_path: Path) -> None:
    for path in export.write(real, str(tmp_path)):
        assert Path(path).read_bytes() == (folder / Path(path).name).read_bytes()


def test_the_schema_describes_the_json(folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    data, schema = (
        json.loads((folder / name).read_text()) for name in ("chips.json", "chips.schema.json")
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    data["chips"][0]["peaks"] = [{"dtype": "fp16"}]
    with pytest.raises(jsonschema.ValidationError, match="'path' is a required property"):
        jsonschema.validate(data, schema)


def _per_watt_of_csv(folder: Path, ids: Collection[str]) -> dict[str, float]:
    with open(folder / "chips.csv", newline="") as file:
        return {
            line["id"]: float(line["bf16_matrix"]) / float(line["power_per_device_w"])
            for line in csv.DictReader(file)
            if line["id"] in ids
        }


def test_performance_per_watt_comes_out_right_from_each_export(folder: Path) -> None:
    """A board's watts beside a device's peak gave an MI250X half, and an A16 a quarter."""
    expected = {"amd/instinct-mi250x": 191.5 / 250, "nvidia/a16": 18.43 / 62.5}
    chips = json.loads((folder / "chips.json").read_text())["chips"]
    of_json = {
        chip["id"]: _bf16(chip["peaks"]) / chip["power_per_device_w"]
        for chip in chips
        if chip["id"] in expected
    }
    of_csv = _per_watt_of_csv(folder, expected)
    text = (folder / "hardware.ts").read_text()
    skus = json.loads(text[text.index("> = {", text.index("SKUS")) + 4 :].rstrip().rstrip(";"))
    of_ts = {
        spec["ids"][0]: spec["tflops"] / (spec["power"] / spec.get("devicesPerBoard", 1))
        for specs in skus.values()
        for spec in specs.values()
        if spec["ids"][0] in expected
    }
    for figures in (of_json, of_csv, of_ts):
        assert figures == pytest.approx(expected, rel=0.03)


def test_performance_per_watt_of_every_chip_is_the_readers(real: Database, folder: Path) -> None:
    chips = {chip.id: chip for chip in real.chips() if chip.power and chip.peak("bf16")}
    expected = {
        id_: peak.tflops * chip.boards / chip.power
        for id_, chip in chips.items()
        if chip.power and (peak := chip.peak("bf16", path="matrix"))
    }
    entries = json.loads((folder / "chips.json").read_text())["chips"]
    of_json = {
        chip["id"]: max(
            peak["tflops"]
            for peak in chip["peaks"]
            if (peak["dtype"], peak["path"], peak["sparsity"]) == ("bf16", "matrix", "dense")
            and peak["accumulate"] == "fp32"
        )
        / chip["power_per_device_w"]
        for chip in entries
        if chip["id"] in expected
    }
    of_csv = _per_watt_of_csv(folder, expected)
    assert len(expected) > 150
    for figures in (of_json, of_csv):
        assert figures == pytest.approx(expected, rel=0.002)


def _bf16(peaks: list[dict[str, object]]) -> float:
    keys = ("dtype", "path", "sparsity")
    (peak,) = [peak for peak in peaks if tuple(map(peak.get, keys)) == ("bf16", "matrix", "dense")]
    return float(str(peak["tflops"]))


def test_what_stands_beside_the_peaks_has_its_source(real: Database, folder: Path) -> None:
    data = json.loads((folder / "chips.json").read_text())
    entries = {chip["id"]: chip for chip in data["chips"]}
    h100 = entries["nvidia/h100-sxm5-80gb"]
    assert h100["power_limits_w"] == [200, 700]
    assert entries["nvidia/geforce-rtx-4090"]["power_limits_at"] == {
        "board": "1458:40bf",
        "default": 450,
        "driver": "535.86.05",
    }
    assert "power_limits_at" not in entries["nvidia/l4"]
    assert h100["interconnect"] == {"kind": "NVLink 4", "gbs": 900}
    bf16, fp8, *others = h100["sustained"]
    made = {"software": "torch 2.7.0+cu126", "source": "ml-engineering"}
    assert bf16 == {"rate": "bf16.matrix.fp32", "tflops": 794.5, **made}
    assert fp8 == {"rate": "fp8.matrix.fp32", "tflops": 1402.6, **made}
    assert {row["runs"] for row in others} == {1, 2}
    assert [row["tflops"] for row in others if row["source"] == "gpu-benchmark"] == [821.2]
    assert entries["nvidia/gh200-144g-hbm3e"]["sustained"][0]["watts"] == 900
    assert (entries["nvidia/l40s"]["ecc_share"], entries["aws/trainium3"]["sram_mib"]) == (
        0.0625,
        256,
    )
    for chip in real.chips():
        keys = {*chip.beside_sources, *(row.source for row in chip.sustained)}
        assert keys <= set(data["sources"]), chip.id
        # What was measured is near the peak of its kind: another kind would be far from it.
        # Software reaches a quarter of it on a Radeon 780M.
        for row in chip.sustained:
            for peak in chip.peaks():
                if (peak.rate, peak.sparsity) == (row.rate, "dense"):
                    assert 0.2 < row.tflops / peak.tflops < 1.2, (chip.id, row.rate)
