"""Measured figures: kept by node and device, compared with what is derived, never mixed with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from report_schema import schema

import probe_core
from probe_core import Machine
from probe_core.cli.explain import measured_rows
from probe_core.commands import save_measured
from probe_core.config import MEASURED, state_file
from probe_core.measured.compare import (
    above_peak,
    attach,
    counts,
    stale_reason,
    with_fractions,
    with_repeat,
)
from probe_core.measured.store import (
    MAX_FIGURES,
    MAX_NODES,
    Unusable,
    empty,
    figures_of,
    parsed,
    text,
    with_figures,
)
from probe_core.model.document import DeviceDoc, MeasuredDoc, ReportDoc


def figure(**changes: object) -> MeasuredDoc:
    entry: dict[str, object] = {
        "figure": "compute",
        "kind": "alu",
        "dtype": "fp32",
        "accumulate": "fp32",
        "unit": "TFLOPS",
        "best": 0.464,
        "median": 0.46,
        "runs": 20,
        "by": "gcc 12.2.0, AVX-512",
        "threads": 2,
        "clock_mhz": 3625.0,
        "driver": None,
        "date": "2026-11-22T10:00:00Z",
        "disturbed": [],
        "stale": None,
    }
    return cast(MeasuredDoc, entry | changes)


def device(**changes: object) -> DeviceDoc:
    peak = {
        "dtype": "fp32",
        "path": "vector",
        "accumulate": "fp32",
        "sparsity": "dense",
        "clock": "current",
        "mhz": 2500.0,
        "tflops": 0.32,
        "source": "test",
        "confidence": "derived",
    }
    entry: dict[str, object] = {
        "id": "cpu:0",
        "ids": ["cpu:0"],
        "kind": "cpu",
        "name": "AMD EPYC",
        "units": 2,
        "peaks": [peak],
        "bandwidth": None,
        "driver": None,
        "sources": {},
    }
    return cast(DeviceDoc, entry | changes)


def card(version: str = "580.1") -> DeviceDoc:
    return device(
        id="pci:0000:01:00.0",
        ids=["pci:0000:01:00.0", "uuid:GPU-1"],
        kind="gpu",
        name="NVIDIA H100",
        units=132,
        bandwidth=4e12,
        driver={"name": "nvidia", "version": version},
        peaks=[
            {"dtype": "bf16", "path": "matrix", "accumulate": "fp32", "sparsity": "sparse",
             "clock": "boost", "mhz": 1980.0, "tflops": 1979.0, "source": "", "confidence": ""},
            {"dtype": "bf16", "path": "matrix", "accumulate": "fp32", "sparsity": "dense",
             "clock": "boost", "mhz": 1980.0, "tflops": 989.5, "source": "", "confidence": ""},
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fraction", "at_clock"),
    [
        ({}, 1.45, 1.0),
        # One of two cores is compared with its half of the peak.
        ({"threads": 1, "best": 0.232}, 1.45, 1.0),
        # More threads than cores are all of them.
        ({"threads": 4}, 1.45, 1.0),
        ({"threads": None}, 1.45, 1.0),
        ({"clock_mhz": None}, 1.45, None),
        ({"clock_mhz": 5000.0}, 1.45, 0.725),
        ({"dtype": "bf16"}, None, None),
    ],
)
def test_fraction_is_told_at_both_clocks(
    changes: dict[str, object], fraction: float | None, at_clock: float | None
) -> None:
    result = with_fractions(device(), figure(**changes))
    assert (result.get("fraction"), result.get("fraction_at_clock")) == (fraction, at_clock)


def test_sparse_peak_is_no_yardstick() -> None:
    entry = figure(kind="matmul", dtype="bf16", best=791.6, threads=None, clock_mhz=1782.0)
    result = with_fractions(card(), entry)
    assert (result.get("fraction"), result.get("fraction_at_clock")) == (0.8, 0.8889)


@pytest.mark.parametrize(
    ("accumulate", "fraction"), [("fp16", 0.5), ("fp32", 1.0), ("int32", 0.25), (None, 0.25)]
)
def test_the_peak_has_the_same_sums_or_is_the_fastest(
    accumulate: str | None, fraction: float
) -> None:
    peak = {"dtype": "fp16", "path": "matrix", "sparsity": "dense", "clock": "boost", "mhz": 1.0,
            "source": "", "confidence": ""}  # fmt: skip
    peaks = [{**peak, "accumulate": sums, "tflops": tflops}
             for sums, tflops in (("fp32", 100.0), ("fp16", 200.0), ("tf32", 400.0))]  # fmt: skip
    entry = figure(kind="matmul", dtype="fp16", accumulate=accumulate, best=100.0, threads=None)
    assert with_fractions(device(peaks=peaks), entry).get("fraction") == fraction


def test_register_loop_compares_with_the_vector_units() -> None:
    vector = {
        "dtype": "bf16",
        "path": "vector",
        "accumulate": "fp32",
        "sparsity": "dense",
        "clock": "base",
        "mhz": 2000.0,
        "tflops": 4.0,
        "source": "",
        "confidence": "",
    }
    xeon = device(peaks=[vector, {**vector, "path": "matrix", "tflops": 32.0}])  # fmt: skip
    loop = figure(dtype="bf16", kind="alu", best=2.0, threads=None)
    assert with_fractions(xeon, loop).get("fraction") == 0.5
    assert with_fractions(xeon, {**loop, "kind": "matmul"}).get("fraction") == 0.0625
    matrix_alone = device(peaks=[{**vector, "path": "matrix"}])
    assert with_fractions(matrix_alone, loop).get("fraction") is None


def test_rows_of_explain() -> None:
    rows = measured_rows(
        [
            with_fractions(device(), figure()),
            figure(best=0.0191, median=0.008, unit="TOPS", dtype="int8", kind="matmul",
                   by="tinygrad 0.14.0 (CPU)", disturbed=["median", "cpu-time"]),
            figure(figure="read", kind="memory", dtype=None, unit="B/s", best=34e9, median=None,
                   stale="measured with driver a; it is now b"),
        ]
    )  # fmt: skip
    assert rows == [
        ("MEASURED", "BEST", "MEDIAN", "OF PEAK", "COUNTS", "BY"),
        ("fp32 alu", "0.46 TFLOPS", "0.46 TFLOPS", "100% at 3625 MHz", "yes",
         "gcc 12.2.0, AVX-512, 2026-11-22"),
        ("int8 matmul", "19.1 GOPS", "8 GOPS", "–", "no: disturbed (median, cpu-time)",
         "tinygrad 0.14.0 (CPU), 2026-11-22"),
        ("memory read", "34 GB/s", "–", "–", "no: measured with driver a; it is now b",
         "gcc 12.2.0, AVX-512, 2026-11-22"),
    ]  # fmt: skip


def test_memory_is_compared_with_the_bandwidth() -> None:
    entry = figure(figure="read", kind="memory", dtype=None, unit="B/s", best=3e12)
    assert with_fractions(card(), entry).get("fraction") == 0.75
    assert with_fractions(device(), entry).get("fraction") is None


TWICE: dict[str, object] = {"repeated": True, "clock_mhz": 3000.0}


def test_more_than_the_peak_twice_and_undisturbed_is_a_finding_about_the_peak() -> None:
    own = device()
    above = above_peak(own, [with_fractions(own, figure(**TWICE))])
    assert above is not None
    assert (above["code"], above["severity"], above["device"]) == ("peak-exceeded", "info", "cpu:0")
    what = "cpu:0 computes faster than its derived peak: 121% of it at 3000 MHz, twice"
    assert above["what"] == what


@pytest.mark.parametrize(
    "changes",
    [
        {"repeated": None},
        {"disturbed": ["cpu-time"]},
        {"stale": "another driver"},
        {"runs": 9},
        {"clock_mhz": None},
        {"clock_mhz": 3625.0},  # faster than the nominal clock, not than this one
        {"best": 0.32},
    ],
)
def test_what_makes_no_claim(changes: dict[str, object]) -> None:
    own = device()
    assert above_peak(own, [with_fractions(own, figure(**(TWICE | changes)))]) is None


def test_a_lower_bound_and_an_unknown_clock_compare_with_nothing() -> None:
    own = device()
    for peak in own["peaks"]:
        peak["bound"] = "lower"
    entry = with_fractions(own, figure(**TWICE))
    assert (entry["fraction"], entry["fraction_at_clock"]) == (None, None)
    assert "lower bound" in (entry.get("unknown") or {})["fraction_at_clock"]
    assert measured_rows([entry])[1][3] == "–"
    entry = with_fractions(device(), figure(clock_mhz=None))
    assert "clock of the run" in (entry.get("unknown") or {})["fraction_at_clock"]
    assert measured_rows([entry])[1][3] == "–"


def test_a_run_repeats_an_earlier_clean_one() -> None:
    own = device(measured=[figure(date="2026-11-21T00:00:00Z")])
    assert with_repeat(own, figure(best=0.47)).get("repeated") is True
    for changes in ({"best": 0.5}, {"disturbed": ["median"]}, {"driver": "x"},
                    {"date": "2026-11-21T00:00:00Z"}, {"dtype": "bf16"},
                    {"best": None}):  # fmt: skip
        assert with_repeat(own, figure(**changes)).get("repeated") is None
    dirty = device(measured=[figure(date="2026-11-21T00:00:00Z", disturbed=["median"])])
    assert with_repeat(dirty, figure()).get("repeated") is None
    nothing = device(measured=[figure(date="2026-11-21T00:00:00Z", best=None)])
    assert with_repeat(nothing, figure()).get("repeated") is None
    assert with_repeat(device(measured=None), figure()).get("repeated") is None


def test_a_disturbed_figure_replaces_no_clean_one() -> None:
    content = with_figures(empty(), "n1", device(), [figure()])
    content = with_figures(content, "n1", device(), [figure(best=0.2, disturbed=["median"])])
    assert [f["best"] for f in figures_of(content, "n1", device())] == [0.464]
    content = with_figures(
        content, "n1", device(), [figure(best=0.3, driver="b", disturbed=["median"])]
    )
    assert [f["best"] for f in figures_of(content, "n1", device())] == [0.3]


def test_only_fresh_and_undisturbed_figures_count() -> None:
    assert counts(figure())
    assert not counts(figure(disturbed=["median"]))
    assert not counts(figure(stale="another driver"))


def test_another_driver_makes_a_figure_stale() -> None:
    entry = figure(driver="nvidia 570.2")
    assert stale_reason(card(), figure(driver="nvidia 580.1")) is None
    assert (
        stale_reason(card(), entry) == "measured with driver nvidia 570.2; it is now nvidia 580.1"
    )
    assert stale_reason(device(), figure()) is None


def test_new_figure_replaces_the_older_of_its_kind() -> None:
    content = with_figures(empty(), "n1", device(), [figure(), figure(dtype="bf16")])
    newer = figure(by="gcc 13.1.0, AVX-512", best=0.5)
    content = with_figures(content, "n1", device(), [newer, figure(by="clang 14.0.6, AVX-512")])
    kept = [(f["dtype"], f["by"], f["best"]) for f in figures_of(content, "n1", device())]
    assert kept == [
        ("fp32", "gcc 13.1.0, AVX-512", 0.5),
        ("bf16", "gcc 12.2.0, AVX-512", 0.464),
        ("fp32", "clang 14.0.6, AVX-512", 0.464),
    ]


def test_nodes_that_share_a_home_and_other_cards_stay_apart() -> None:
    content = with_figures(empty(), "n1", device(), [figure()])
    content = with_figures(content, "n2", device(), [figure(best=0.1)])
    content = with_figures(content, "n1", card(), [figure(best=60.0)])
    assert [f["best"] for f in figures_of(content, "n1", device())] == [0.464]
    assert [f["best"] for f in figures_of(content, "n2", device())] == [0.1]
    assert figures_of(content, None, device()) == []
    assert figures_of(content, "n1", device(name="another CPU")) == []
    moved = card() | {"id": "pci:0000:41:00.0", "ids": ["pci:0000:41:00.0", "uuid:GPU-1"]}
    assert [f["best"] for f in figures_of(content, "n1", cast(DeviceDoc, moved))] == [60.0]


def test_file_is_bounded_by_nodes_and_figures() -> None:
    content = empty()
    for number in range(MAX_NODES + 1):
        content = with_figures(content, f"n{number}", device(), [figure()])
    assert len(content["nodes"]) == MAX_NODES
    assert "n0" not in content["nodes"]
    many = [figure(by=f"library{number} 1") for number in range(MAX_FIGURES + 1)]
    content = with_figures(empty(), "n", device(), many)
    assert len(figures_of(content, "n", device())) == MAX_FIGURES


def test_text_is_read_back_as_it_was() -> None:
    content = with_figures(empty(), None, card(), [figure()])
    assert parsed(text(content)) == content


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is no JSON document"),
        (b"[]", "it is not of schema 1"),
        (b'{"schema": 2, "nodes": {}}', "it is not of schema 1"),
        (b'{"schema": true, "nodes": {}}', "it is not of schema 1"),
        (b"\xff\xfe", "it is no JSON document"),
        (b" " * ((1 << 20) + 1), "it is longer than 1048576 bytes"),
    ],
)
def test_file_of_another_version_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(Unusable) as caught:
        parsed(raw)
    assert str(caught.value) == reason


def test_a_file_as_long_as_it_may_be_is_read() -> None:
    raw = b'{"schema": 1, "nodes": {}}'.ljust(1 << 20)
    assert parsed(raw) == {"schema": 1, "nodes": {}}


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"figure": "compute"},
        figure(best=-1),
        figure(best="fast"),
        figure(best=None),
        figure(kind="guess"),
        figure(disturbed=["moon"]),
        figure(kind="memory"),
        figure(unit="B/s"),
        figure(dtype=None),
        figure(best=1.1e6),
        figure(median=0.5),
        figure(figure="read", kind="memory", unit="TOPS"),
        figure(fraction=1.5e9),
    ],
    ids=range(14),
)
def test_figure_that_cannot_be_true_is_left_out(entry: object) -> None:
    stored: Any = {"ids": ["cpu:0"], "name": "AMD EPYC", "measured": [entry, figure()]}
    raw = json.dumps({"schema": 1, "nodes": {"": [stored, 5, {"ids": 3}]}}).encode()
    assert [f["best"] for f in figures_of(parsed(raw), None, device())] == [0.464]


@pytest.mark.heavy
@pytest.mark.parametrize("absent", ["dtype", "driver", "disturbed", "stale"])
def test_a_key_that_somebody_removed_stops_no_probe(absent: str, tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    bandwidth = figure(figure="read", kind="memory", dtype=None, unit="B/s", best=34e9, median=3e10)
    path = Path(save_measured(environ, report(environ), {"cpu:0": [bandwidth]}))
    path.write_text(path.read_text().replace(f'"{absent}"', '"another"'))
    after = report(environ)
    jsonschema.validate(after, schema())
    (entry,) = next(d for d in after["devices"] if d["id"] == "cpu:0")["measured"]
    assert entry[absent] == ([] if absent == "disturbed" else None)  # type: ignore[literal-required]


def test_figures_that_cannot_be_true_are_named_on_their_own_node_alone() -> None:
    absurd = {"ids": ["cpu:0"], "name": "AMD EPYC", "measured": [figure(median=9.0), figure()]}
    raw = json.dumps({"schema": 1, "nodes": {"n1": [absurd], "n2": [absurd]}}).encode()
    (problem,) = attach([own := device()], "n1", "/s/m.json", lambda path, limit: raw)[:1]
    assert problem["code"] == "measured-unusable"
    assert problem["what"] == "1 measured figure in the file cannot be true: left out"
    assert problem["why"] == "/s/m.json: a measurement's median, 9, exceeds its best, 0.464"
    assert [entry["best"] for entry in own["measured"]] == [0.464]
    assert [f["code"] for f in attach([device()], "n3", "/s", lambda path, limit: raw)] == []


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/probe-core/measured.json"),
        ({"XDG_STATE_HOME": "s", "HOME": "/h"}, "/h/.local/state/probe-core/measured.json"),
        ({"HOME": ""}, None),
        ({}, None),
    ],
)
def test_place_of_the_file(environ: dict[str, str], path: str | None) -> None:
    assert state_file(environ, MEASURED) == path


def test_unreadable_file_is_a_finding_and_no_figure() -> None:
    def refuse(path: str, limit: int) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    own, path = device(), f"/{'s' * 500}/measured.json"
    (problem,) = attach([own], None, path, refuse)
    assert problem["code"] == "measured-unusable"
    assert (problem["why"], problem["evidence"]) == (f"{path}: Permission denied", path)
    (problem,) = attach([own], None, path, lambda path, limit: b"{}")
    assert problem["why"] == f"{path}: it is not of schema 1"
    assert "measured" not in own


def test_figure_of_another_driver_is_shown_as_stale_and_is_no_finding() -> None:
    older = figure(driver="nvidia 570.2", dtype="bf16", kind="matmul", best=2000.0)
    raw = text(with_figures(empty(), "n1", card("570.2"), [older]))
    own, other = card(), device()
    assert attach([own, other], "n1", "/s", lambda path, limit: raw) == []
    (entry,) = own["measured"]
    assert entry["stale"] == "measured with driver nvidia 570.2; it is now nvidia 580.1"
    assert entry.get("fraction") == 2.0212
    assert own["sources"] == {"measured": "probe bench"}
    assert "measured" not in other
    twice = figure(driver="nvidia 570.2", dtype="bf16", kind="matmul", best=2000.0, repeated=True)
    raw = text(with_figures(empty(), "n1", card("570.2"), [{**twice, "clock_mhz": 1900.0}]))
    (above,) = attach([card("570.2")], "n1", "/s", lambda path, limit: raw)
    assert above["code"] == "peak-exceeded"


def report(environ: dict[str, str]) -> ReportDoc:
    command = [sys.executable, "-m", "probe_core", "--json", "--only", "cpu"]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, check=True)
    document: ReportDoc = json.loads(done.stdout)
    return document


def test_probe_shows_what_was_kept_beside_what_it_derives(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    before = report(environ)
    cpu = next(d for d in before["devices"] if d["id"] == "cpu:0")
    assert "measured" not in cpu
    path = save_measured(environ, before, {"cpu:0": [figure(best=1e6, fraction=9.0)]})
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert "fraction" not in Path(path).read_text()
    after = report(environ)
    entry = next(d for d in after["devices"] if d["id"] == "cpu:0")
    assert [f["best"] for f in entry["measured"]] == [1e6]
    assert (entry["fp32"], entry["peaks"]) == (cpu["fp32"], cpu["peaks"])
    assert entry["sources"]["measured"] == "probe bench"
    done = subprocess.run(
        [sys.executable, "-m", "probe_core", "explain", "cpu:0", "--only", "cpu"],
        env={**os.environ, **environ}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "gcc 12.2.0, AVX-512, 2026-11-22" in done.stdout


def test_other_versions_file_is_not_overwritten(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    path = tmp_path / "probe-core" / "measured.json"
    path.parent.mkdir()
    path.write_text('{"schema": 2}')
    document = cast(ReportDoc, {"node": {"id": None}, "devices": [device()]})
    with pytest.raises(ValueError, match=r"measured\.json: it is not of schema 1; remove it"):
        save_measured(environ, document, {"cpu:0": [figure()]})
    assert path.read_text() == '{"schema": 2}'
    with pytest.raises(ValueError, match="neither XDG_STATE_HOME nor HOME names a folder"):
        save_measured({}, document, {"cpu:0": [figure()]})


def test_recorded_machine_has_no_figures_of_this_computer(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    save_measured(environ, report(environ), {"cpu:0": [figure()]})
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    command = [sys.executable, "-m", "probe_core", "--json", "--machine", str(tmp_path / "machine")]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, check=True)
    assert b"measured" not in done.stdout


def test_recorded_machine_is_not_told_of_a_file_that_this_computer_cannot_read(
    tmp_path: Path,
) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    path = state_file(environ, MEASURED)
    assert path is not None
    Path(path).parent.mkdir()
    Path(path).write_text('{"schema": 2}')
    (tmp_path / "machine" / "proc").mkdir(parents=True)
    codes = []
    for machine in (Machine(environ=environ), Machine(str(tmp_path / "machine"), environ)):
        report = probe_core.probe(machine=machine, only="cpu")
        codes.append([f.code for f in report.findings if f.code == "measured-unusable"])
    assert codes == [["measured-unusable"], []]
