"""Units times rate times clock, and never one figure in the place of another."""

from collections.abc import Callable
from pathlib import Path

import pytest

from probe_chipdb.chip import Chip
from probe_chipdb.chip_peaks import natural_accumulator
from probe_chipdb.database import Database

Make = Callable[..., Database]


def chip(db: Database, id_: str) -> Chip:
    chip = db.chip(id_)
    assert chip is not None
    return chip


def figures(chip: Chip, **options: object) -> dict[tuple[str, str], float]:
    peaks = chip.peaks(**options)  # type: ignore[arg-type]
    return {(peak.rate, peak.sparsity): round(peak.tflops, 9) for peak in peaks}


def test_facts(db: Database) -> None:
    fast = chip(db, "acme/fast-1")
    assert (fast.name, fast.kind, fast.vendor, fast.year) == ("Acme Fast 1", "gpu", "acme", 2024)
    assert (fast.arch, fast.family, fast.series) == ("one", "one", "Fast")
    assert (fast.units, fast.unit, fast.cores) == (100, "SM", 12800)
    assert (fast.clock.base, fast.clock.boost, fast.clock.matrix) == (1000, 2000, None)
    assert (fast.memory.gib, fast.memory.type, fast.memory.bus) == (16, "GDDR6", 256)
    assert (fast.memory.bytes, fast.bandwidth) == (16 * 2**30, 512_000_000_000)
    assert (fast.power, fast.boards, fast.sources) == (200, 1, ("book",))
    assert fast.pci == ("aaaa:0001", "aaaa:0009")


def test_unknown_is_none(db: Database) -> None:
    npu = chip(db, "acme/npu")
    assert (npu.arch, npu.units, npu.cores, npu.unit, npu.year, npu.power) == (None,) * 6
    assert (npu.memory.gib, npu.memory.bytes, npu.bandwidth) == (None, None, None)
    assert chip(db, "acme/fast-oem").peaks() == ()
    assert chip(db, "acme/fast-oem").why_no_peaks() == (
        "chipdb has no clock for acme/fast-oem: "
        "no clock was read in a document, driver or device tree that the table cites"
    )


def test_derived(db: Database) -> None:
    assert figures(chip(db, "acme/fast-1")) == {
        ("fp32.vector.fp32", "dense"): 51.2,
        ("fp16.matrix.fp32", "dense"): 102.4,
        ("fp16.matrix.fp32", "sparse"): 204.8,
    }


def test_a_published_figure_confirms(db: Database) -> None:
    fast = chip(db, "acme/fast-1")
    peak = fast.peak("fp16")
    assert peak is not None
    assert (peak.published, peak.confidence, peak.clock, peak.mhz) == (
        102,
        "derived",
        "boost",
        2000,
    )
    assert peak.confirmed_by == "recalled"
    assert peak.source == (
        "100 SM x 512 op/clk x 2000 MHz boost; rates [book], counts and clock [book]; "
        "the vendor publishes, from memory, 102 [book]"
    )
    vector = fast.peak("fp32", path="vector")
    assert vector is not None
    assert (vector.published, vector.confidence, vector.confirmed_by) == (None, "derived", None)


def test_live_units(db: Database) -> None:
    peak = chip(db, "acme/fast-1").peak("fp16", units=50)
    assert peak is not None
    assert peak.tflops == pytest.approx(51.2)
    assert "live count of 50 SM (100 nominal)" in peak.source
    assert (peak.confidence, peak.confirmed_by) == ("derived", None)
    same = chip(db, "acme/fast-1").peak("fp16", units=100)
    assert same is not None
    assert same.confirmed_by == "recalled"


@pytest.mark.parametrize(
    ("published", "confirmed_by"),
    [(99.4, None), (99.5, "recalled"), (102.4, "recalled"), (105.5, "recalled"), (105.6, None)],
)
def test_a_published_figure_near_the_derived_one_confirms_it(
    data: Path, make: Make, published: float, confirmed_by: str | None
) -> None:
    path = data / "chips/acme/fast.toml"
    path.write_text(path.read_text().replace("tflops = 102", f"tflops = {published}"))
    chip = make(data).chip("acme/fast-1")
    assert chip is not None
    figure = chip.peak("fp16", path="matrix")
    assert figure is not None
    assert (figure.published, figure.confirmed_by) == (published, confirmed_by)
    # It was published for the product: a device of another count or clock is not confirmed.
    for live in ({"units": 99}, {"clock_mhz": 1999.0, "clock_source": "given"}):
        (figure,) = (
            peak
            for peak in chip.peaks(**live)  # type: ignore[arg-type]
            if (peak.rate, peak.sparsity) == ("fp16.matrix.fp32", "dense")
        )
        assert (figure.published, figure.confirmed_by) == (published, None)


def test_given_clock(db: Database) -> None:
    peaks = chip(db, "acme/fast-1").peaks(clock_mhz=1000, clock_source="measured")
    assert {(peak.clock, peak.mhz) for peak in peaks} == {("measured", 1000)}
    assert peaks[0].tflops == pytest.approx(25.6)


def test_laptop_range(db: Database) -> None:
    peak = chip(db, "acme/fast-1-laptop").peak("fp32", path="vector")
    assert peak is not None
    assert peak.tflops == pytest.approx(30.72)
    assert peak.low == pytest.approx(20.48)
    assert peak.as_json()["low"] == 20.48


def test_override_replaces_and_adds(db: Database) -> None:
    peaks = {peak.rate: peak for peak in chip(db, "beta/b-30").peaks()}
    assert peaks["fp32.vector.fp32"].tflops == 9
    assert peaks["fp32.vector.fp32"].source == "override: a slower path [guide]"
    assert peaks["fp32.vector.fp32"].basis == "override"
    assert peaks["fp32.vector.fp32"].confidence == "recalled"
    assert peaks["fp16.matrix.fp32"].confidence == "measured"


def test_override_scales_and_says_so(db: Database) -> None:
    halved = {peak.rate: peak for peak in chip(db, "beta/b-30").peaks(units=15, clock_mhz=400)}
    assert halved["fp32.vector.fp32"].tflops == pytest.approx(9 / 2 * 400 / 1000)
    assert halved["fp16.matrix.fp32"].tflops == pytest.approx(20 / 2 * 400 / 800)
    assert halved["fp32.vector.fp32"].source.endswith(
        "; scaled to the live count of 15 of 30; scaled from 1000 to 400 MHz"
    )
    assert halved["fp32.vector.fp32"].confidence == "derived"


def test_architecture_confidence_is_kept(db: Database) -> None:
    peaks = chip(db, "beta/b-40").peaks()
    assert {peak.confidence for peak in peaks} == {"measured"}
    assert {peak.basis for peak in peaks} == {"derived"}


def test_published_only(db: Database) -> None:
    (peak,) = chip(db, "acme/npu").peaks()
    assert peak.basis == "published"
    assert peak.as_json() == {
        "dtype": "int8", "path": "matrix", "accumulate": "int32", "sparsity": "dense",
        "clock": "boost", "tflops": 6.0, "source": "published [book]", "confidence": "vendor",
        "published": 6.0,
    }  # fmt: skip


def test_a_path_that_is_not_there_is_none(db: Database) -> None:
    fast = chip(db, "acme/fast-1")
    assert fast.peak("fp32") is None  # no fp32 matrix path: never the vector figure
    assert fast.peak("fp16", path="vector") is None
    assert fast.peak("fp16", accumulate="fp16") is None
    assert fast.peak("bf16", accumulate="fp32") is None
    sparse = fast.peak("fp16", sparsity="sparse")
    assert sparse is not None
    assert sparse.tflops == pytest.approx(204.8)


@pytest.mark.parametrize(
    ("dtype", "path", "accumulate"),
    [("bf16", "matrix", "fp32"), ("fp8", "matrix", "fp32"), ("fp64", "matrix", "fp64"),
     ("int8", "matrix", "int32"), ("int8", "vector", "int32"), ("fp16", "vector", "fp16"),
     ("fp32", "vector", "fp32")],
)  # fmt: skip
def test_natural_accumulator(dtype: str, path: str, accumulate: str) -> None:
    assert natural_accumulator(dtype, path) == accumulate


def replace(data: Path, old: str, new: str) -> None:
    path = data / "chips/acme/fast.toml"
    path.write_text(path.read_text().replace(old, new))


def test_an_override_can_take_a_path_away(data: Path, make: Make) -> None:
    absent = '{ rate = "fp16.matrix.fp32", absent = true, reason = "fused off", source = "book" }'
    replace(data, "power = 200", f"override = [{absent}]")
    peaks = chip(make(data), "acme/fast-1").peaks()
    assert [(peak.rate, peak.sparsity) for peak in peaks] == [("fp32.vector.fp32", "dense")]


def test_sparsity_gains_over_an_overridden_dense_figure(data: Path, make: Make) -> None:
    replace(
        data,
        "power = 200",
        'override = [{ rate = "fp16.matrix.fp32", tflops = 60, reason = "capped",'
        ' source = "book" }]',
    )
    peaks = {(peak.rate, peak.sparsity): peak for peak in chip(make(data), "acme/fast-1").peaks()}
    sparse = peaks["fp16.matrix.fp32", "sparse"]
    assert sparse.tflops == pytest.approx(120)
    assert sparse.source == "2 x the dense override: capped [book]"
