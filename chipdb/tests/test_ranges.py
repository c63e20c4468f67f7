"""A range has two ends and a condition; live facts narrow it and change nothing else."""

from pathlib import Path

import pytest

from probe_chipdb.chip import Chip
from probe_chipdb.chip_peaks import RANGES
from probe_chipdb.database import Database
from probe_chipdb.peaks import Peak
from probe_chipdb.tools import export
from probe_chipdb.tools.check import check
from probe_chipdb.tools.diff import open_data

LAPTOP = "the maker of the laptop sets clock and power within the vendor's range"


def fp32(db: Database, id_: str, **live: float) -> Peak:
    chip = db.chip(id_)
    assert chip is not None
    (peak,) = [peak for peak in chip.peaks(**live) if peak.rate == "fp32.vector.fp32"]  # type: ignore[arg-type]
    return peak


def test_both_ends_and_what_decides(db: Database) -> None:
    peak = fp32(db, "acme/fast-1-laptop")
    assert (peak.low, peak.tflops) == (pytest.approx(20.48), pytest.approx(30.72))
    assert peak.as_json()["condition"] == peak.condition == LAPTOP
    assert fp32(db, "acme/fast-1").condition is None


def test_a_maximum_clock_lowers_the_top(db: Database) -> None:
    peak = fp32(db, "acme/fast-1-laptop", max_mhz=1200)
    assert (peak.low, peak.tflops) == (pytest.approx(20.48), pytest.approx(24.576))
    assert (peak.clock, peak.mhz, peak.confidence) == ("max", 1200, "derived")
    assert peak.source.endswith("; narrowed: the driver allows at most 1200 MHz")
    below = fp32(db, "acme/fast-1-laptop", max_mhz=900)
    assert (below.low, below.tflops) == (None, pytest.approx(18.432))


def test_a_maximum_above_the_range_says_nothing(db: Database) -> None:
    assert fp32(db, "acme/fast-1-laptop", max_mhz=3105).tflops == pytest.approx(30.72)
    # A desktop card keeps its one clock: a driver's maximum is no boost clock.
    assert fp32(db, "acme/fast-1", max_mhz=1200).tflops == pytest.approx(51.2)


def test_a_power_limit_decides_at_the_ends_alone(db: Database) -> None:
    top = fp32(db, "acme/fast-1-laptop", power=100)
    assert (top.low, top.tflops) == (None, pytest.approx(30.72))
    bottom = fp32(db, "acme/fast-1-laptop", power=40)
    assert (bottom.low, bottom.tflops, bottom.mhz) == (None, pytest.approx(20.48), 1000)
    between = fp32(db, "acme/fast-1-laptop", power=70)
    assert (between.low, between.tflops) == (pytest.approx(20.48), pytest.approx(30.72))


def test_a_given_clock_is_no_range(db: Database) -> None:
    peak = fp32(db, "acme/fast-1-laptop", clock_mhz=1100)
    assert (peak.low, peak.condition, peak.clock) == (None, None, "given")


SOC = """
[[chip]]
id = "acme/fast-soc"
name = "Acme Fast SoC"
arch = "one"
counts = ["4-16"]
clock = { boost = 1000, boost_low = 500, set_by = "mode" }
dt = ["acme,fast-soc"]
"""


@pytest.fixture
def soc(data: Path) -> Database:
    with (data / "chips/acme/fast.toml").open("a") as file:
        file.write(SOC)
    assert not [p for p in check(str(data)).problems if p.level == "error"]
    return open_data(str(data))


def test_parts_of_several_counts_share_an_entry(soc: Database) -> None:
    """A SoC's own entry: the module decides how many units it has, and how fast they run."""
    chip = soc.chip("acme/fast-soc")
    assert chip is not None
    assert (chip.units, chip.units_range, chip.cores) == (None, (4, 16), None)
    peak = fp32(soc, "acme/fast-soc")
    assert (peak.low, peak.tflops) == (pytest.approx(0.512), pytest.approx(4.096))
    counts = "parts of 4 to 16 SM share the entry; "
    assert peak.condition == counts + "the power mode of the module or board sets the clock"


def test_the_drivers_count_and_clock_narrow_such_an_entry(soc: Database) -> None:
    peak = fp32(soc, "acme/fast-soc", units=8)
    assert (peak.low, peak.tflops) == (pytest.approx(1.024), pytest.approx(2.048))
    assert peak.condition == "the power mode of the module or board sets the clock"
    assert "live count of 8 SM (4 to 16 nominal)" in peak.source
    assert fp32(soc, "acme/fast-soc", units=8, max_mhz=600).tflops == pytest.approx(1.2288)
    # The clock is certain and the count is not: below the range, too.
    for live in ({"clock_mhz": 400}, {"max_mhz": 400}):
        peak = fp32(soc, "acme/fast-soc", **live)
        assert (peak.low, peak.tflops) == (pytest.approx(0.4096), pytest.approx(1.6384))
    both = fp32(soc, "acme/fast-soc", units=8, clock_mhz=400)
    assert (both.low, both.tflops, both.condition) == (None, pytest.approx(0.8192), None)


def test_a_count_outside_the_range_is_a_conflict(soc: Database) -> None:
    for units in (4, 9, 16):
        assert soc.match(name="Acme Fast SoC", units=units).conflicts == ()
    match = soc.match(name="Acme Fast SoC", units=17)
    fault = "the driver counts 17 SM, the product has 4 to 16"
    assert (match.confidence, match.conflicts) == ("low", (f"acme/fast-soc: {fault}",))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("counts = [", "units = 16\ncounts = [", "counts: beside units"),
        ("4-16", "16-4", "counts: 16-4 does not go up"),
        ("4-16", "16-16", "counts: 16-16 does not go up"),
        ("4-16", "4 to 16", "write 4 or 6-9"),
    ],
)
def test_a_wrong_range_of_counts_fails(data: Path, old: str, new: str, fault: str) -> None:
    path = data / "chips/acme/fast.toml"
    path.write_text(path.read_text() + SOC.replace(old, new))
    faults = [str(problem) for problem in check(str(data)).problems]
    assert any(fault in problem for problem in faults), faults


JETSON = ["jetson-orin-nano-4gb", "jetson-orin-nano-8gb", "jetson-orin-nx-8gb",
          "jetson-orin-nx-16gb", "jetson-agx-orin-32gb", "jetson-agx-orin-64gb",
          "jetson-agx-orin-industrial", "igx-orin-developer-kit"]  # fmt: skip
THOR = ["jetson-t2000", "jetson-t3000", "jetson-t4000", "jetson-t5000", "igx-t5000"]


@pytest.mark.parametrize(("soc", "modules"), [("tegra-orin", JETSON), ("tegra-thor", THOR)])
def test_a_socs_range_is_that_of_its_modules(real: Database, soc: str, modules: list[str]) -> None:
    peaks = [fp32(real, f"nvidia/{module}") for module in modules]
    whole = fp32(real, f"nvidia/{soc}")
    assert whole.tflops == max(peak.tflops for peak in peaks)
    assert whole.low == min(peak.low or peak.tflops for peak in peaks)
    for module, peak in zip(modules, peaks, strict=True):
        chip = real.chip(f"nvidia/{module}")
        assert chip is not None
        live = fp32(real, f"nvidia/{soc}", units=chip.units or 0)
        assert live.low is not None
        assert live.low <= (peak.low or peak.tflops) <= peak.tflops <= live.tflops


@pytest.mark.parametrize(
    ("clock", "note", "fault"),
    [
        ("{ boost = 1500, boost_low = 1000 }", "", "boost_low without set_by"),
        ("{ boost = 1500 }", "", "a laptop part has one clock, but laptops differ"),
        ("{ boost = 1500 }", "the clock depends on the model", "a laptop part has one"),
    ],
)
def test_one_figure_of_a_laptop_part_fails(data: Path, clock: str, note: str, fault: str) -> None:
    path = data / "chips/acme/fast.toml"
    old = 'clock = { boost = 1500, boost_low = 1000, set_by = "laptop" }'
    new = f'clock = {clock}\nnote = "{note}"' if note else f"clock = {clock}"
    path.write_text(path.read_text().replace(old, new))
    assert any(fault in str(problem) for problem in check(str(data)).problems)


@pytest.mark.parametrize(
    "note",
    [
        "the clock depends on the model",
        "1200 MHz in the Super mode",
        "the game clock alone",
        "clock of the Ryzen AI 5 340",
        "later series may be rated higher",
        "clock of an Exynos; another SoC may set another",
    ],
)
def test_a_note_that_denies_the_one_clock_fails(data: Path, note: str) -> None:
    path = data / "chips/acme/fast.toml"
    path.write_text(path.read_text().replace("power = 200", f'power = 200\nnote = "{note}"'))
    faults = [str(problem) for problem in check(str(data)).problems]
    assert any("the note says that it differs" in fault for fault in faults)


@pytest.mark.parametrize("name", ["Acme RX 7600M", "Acme RX 7700S", "Acme Arc A770M Graphics"])
def test_a_mobile_name_with_one_vendor_clock_fails(data: Path, name: str) -> None:
    path = data / "chips/acme/fast.toml"
    path.write_text(path.read_text().replace('name = "Acme Fast 1"', f'name = "{name}"', 1))
    faults = [str(problem) for problem in check(str(data)).problems]
    assert any("laptops differ" in fault for fault in faults)


@pytest.mark.parametrize(
    "id_",
    [
        "amd/radeon-rx-7600m-xt",
        "amd/radeon-rx-7900m",
        "amd/radeon-rx-6800s",
        "amd/radeon-rx-5500m",
        "intel/arc-a770m-graphics",
        "amd/radeon-890m",
    ],
)
def test_mobile_figures_say_what_decides(real: Database, id_: str) -> None:
    chip = real.chip(id_)
    assert isinstance(chip, Chip)
    assert chip.peaks()
    assert all(peak.condition for peak in chip.peaks())


@pytest.mark.parametrize(
    ("id_", "low", "high", "set_by"),
    [
        ("nvidia/geforce-rtx-4090-laptop-gpu", 1455, 2040, "laptop"),
        ("nvidia/jetson-orin-nx-16gb", 918, 1173, "mode"),
        ("nvidia/jetson-orin-nano-8gb", 625, 1020, "mode"),
        ("nvidia/jetson-orin-nano-4gb", 625, 1020, "mode"),
        ("qualcomm/adreno-x1-85", 1250, 1500, "model"),
    ],
)
def test_the_data_has_ranges(real: Database, id_: str, low: int, high: int, set_by: str) -> None:
    chip = real.chip(id_)
    assert isinstance(chip, Chip)
    assert (chip.clock.boost_low, chip.clock.boost, chip.clock.set_by) == (low, high, set_by)


def test_a_game_clock_is_labelled(real: Database) -> None:
    chip = real.chip("amd/radeon-rx-6800m")
    assert chip is not None
    assert chip.clock.boost is None
    assert {peak.clock for peak in chip.peaks()} == {"game"}


def test_bandwidth_of_a_range(real: Database) -> None:
    chip = real.chip("nvidia/jetson-orin-nano-8gb")
    assert chip is not None
    assert (chip.memory.gbs_low, chip.memory.gbs) == (68, 102)


@pytest.mark.parametrize(
    ("id_", "top"),
    [("5090", 1824), ("5080", 1334), ("5070-ti", 992), ("5070", 798)],
)
def test_the_top_of_a_laptops_range_is_what_nvidia_publishes(
    real: Database, id_: str, top: float
) -> None:
    chip = real.chip(f"nvidia/geforce-rtx-{id_}-laptop-gpu")
    assert chip is not None
    peak = chip.peak("fp4", sparsity="sparse")
    assert peak is not None
    assert peak.tflops == pytest.approx(top, rel=0.001)


def test_the_model_of_a_processor_sets_the_clock_of_its_graphics(real: Database) -> None:
    for id_ in ("uhd-graphics-710", "uhd-graphics-730", "uhd-graphics-770", "uhd-graphics-630"):
        chip = real.chip(f"intel/{id_}")
        assert chip is not None
        assert {peak.condition for peak in chip.peaks()} == {RANGES["model"]}, id_


@pytest.mark.parametrize(
    ("pci", "id_", "gbs", "mhz"),
    [
        ("8086:4c8b", "intel/uhd-graphics-730-rocket-lake", 51.2, (1200, 1300)),
        ("8086:4692", "intel/uhd-graphics-730", 76.8, (1400, 1550)),
        ("10de:1fbc", "nvidia/t1200-laptop-gpu", 192, (1425, 1785)),
    ],
)
def test_what_an_audit_found(
    real: Database, pci: str, id_: str, gbs: float, mhz: tuple[float, float]
) -> None:
    chip = real.match(pci=pci).chip
    assert chip is not None
    assert (chip.id, chip.memory.gbs) == (id_, gbs)
    assert (chip.clock.boost_low, chip.clock.boost) == mhz


@pytest.mark.parametrize(
    ("pci", "subsystem", "revision", "id_"),
    [
        ("10de:20b6", "10de:1491", None, "nvidia/pg506-230"),
        ("10de:20b6", "10de:1492", None, "nvidia/pg506-232"),
        ("1002:7590", None, "df", "amd/radeon-rx-9050-4gb"),
    ],
)
def test_products_that_an_audit_missed(
    real: Database, pci: str, subsystem: str | None, revision: str | None, id_: str
) -> None:
    chip = real.match(pci=pci, subsystem=subsystem, revision=revision).chip
    assert chip is not None
    assert chip.id == id_


def test_a_laptop_without_a_lowest_clock_says_so(real: Database) -> None:
    """86 of 143 entries whose clock the laptop's maker sets: NVIDIA publishes no lower end."""
    chips = [chip for chip in real.chips() if chip.clock.set_by == "laptop"]
    open_ended = [chip for chip in chips if not chip.clock.boost_low and chip.peaks()]
    assert open_ended
    for chip in open_ended:
        ends = {(peak.low is None, peak.condition) for peak in chip.peaks() if not peak.low}
        assert ends <= {(True, f"{LAPTOP}; the lower end is not known")}, chip.id


def test_ranges_of_adreno_640_and_orin_nano(real: Database) -> None:
    adreno, orin = real.chip("qualcomm/adreno-640"), real.chip("nvidia/jetson-orin-nano-8gb")
    assert adreno is not None
    assert orin is not None
    (fp32,) = [peak for peak in adreno.peaks() if peak.dtype == "fp32"]
    assert (fp32.low, fp32.tflops) == (pytest.approx(0.89856), pytest.approx(1.0368))
    assert (orin.clock.boost_low, orin.power_low, orin.clock.boost, orin.power) == (
        625, 15, 1020, 25
    )  # fmt: skip


def test_accelerators_that_had_no_figures(real: Database) -> None:
    maia, wse, groq = map(real.chip, ("microsoft/maia-100", "cerebras/wse-3", "groq/groqcard"))
    assert maia is not None
    assert [(peak.rate, peak.tflops) for peak in maia.peaks()] == [("bf16.matrix.fp32", 800)]
    assert (maia.memory.gbs, maia.sram, maia.power) == (1800, 500, 700)
    assert wse is not None
    assert (wse.sram, wse.peaks()) == (44 * 1024, ())
    assert "the published 125 PFLOPS is sparse" in str(wse.note)
    assert groq is not None
    assert groq.sram == 230


def test_no_key_of_a_source_dangles(real: Database) -> None:
    keys = {key for chip in real.chips() for key in export.source_keys(chip)}
    assert {key for key in keys if real.source(key) is None} == set()


def test_a_measurement_may_lie_above_the_peak_at_the_boost_clock(real: Database) -> None:
    """232 and 242 TFLOPS of an RTX 5090, 173 of a 4090: such a peak is no ceiling."""
    for id_, most, runs in (("5090", 242.18, 4), ("4090", 173.31, 6)):
        chip = real.chip(f"nvidia/geforce-rtx-{id_}")
        assert chip is not None
        rows = [row for row in chip.sustained if row.rate == "bf16.matrix.fp32"]
        (bf16,) = [row for row in rows if row.source == "torch-performance"]
        peak = chip.peak("bf16")
        assert peak is not None
        assert (bf16.tflops, bf16.runs) == (most, runs)
        assert bf16.tflops > peak.tflops
