"""A licensed design has the range of its SoCs; an entry may stand for several counts of units."""

from collections.abc import Callable
from pathlib import Path

import pytest

from probe_chipdb.database import Database
from probe_chipdb.shortcuts import peak
from probe_chipdb.tools.check import check

Make = Callable[..., Database]

OF_SOCS = "the maker of the SoC sets core count and clock; the range is that of the known SoCs"
OF_CLOCKS = "the maker of the SoC sets the clock; the range is that of the known SoCs"
FAMILY = '[family]\ntitle = "Acme cores"\nvendor = "acme"\nkind = "gpu"\nsource = ["book"]\n\n'
DESIGN = '[[chip]]\nid = "acme/core"\nname = "Acme Core"\narch = "one"\nunknown = "design"\n'
SOC = """
[[chip]]
id = "acme/soc-{0}"
name = "Soc {0} Acme Core"
arch = "one"
units = {1}
clock = {{ boost = {2} }}
"""


def test_a_design_has_the_range_of_its_socs(real: Database) -> None:
    design = real.chip("arm/mali-g78")
    assert design is not None
    peak = design.peak("fp32", path="vector")
    assert peak is not None
    low, high = real.chip("arm/exynos-1080-mali-g78mp10"), real.chip("arm/kirin-9000-mali-g78mp24")
    assert low is not None
    assert high is not None
    ends = [chip.peak("fp32", path="vector") for chip in (low, high)]
    assert [round(end.tflops, 6) for end in ends if end] == [peak.low, peak.tflops]
    assert (peak.condition, peak.confidence, peak.basis) == (OF_SOCS, "community", "override")
    assert low.name in peak.source
    assert high.name in peak.source


def test_a_count_takes_the_clocks_of_the_socs(real: Database) -> None:
    design = real.chip("arm/mali-g78")
    assert design is not None
    (peak,) = (p for p in design.peaks(units=7) if p.rate == "fp32.vector.fp32")
    per_mhz = 7 * 64 / 1e6
    ends = (pytest.approx(759 * per_mhz), pytest.approx(858 * per_mhz))
    assert (peak.low, peak.tflops) == ends
    assert (peak.condition, peak.confidence, peak.basis) == (OF_CLOCKS, "community", "derived")
    assert "7 core x 64 op/clk x 858 MHz boost; live count of 7 core" in peak.source


def test_a_count_in_the_name_is_no_larger_gpu(real: Database) -> None:
    match = real.match(name="Mali-G610 MC4")
    assert match.chip is not None
    whole = match.chip.peak("fp32", path="vector")
    named = peak("Mali-G610 MC4", "fp32", database=real)
    assert whole is not None
    assert named is not None
    assert (named.tflops, named.low) == (pytest.approx(0.57856), pytest.approx(0.3584))
    assert named.tflops < whole.tflops


def test_a_live_clock_drops_the_range(real: Database) -> None:
    design = real.chip("arm/mali-g78")
    assert design is not None
    (peak,) = (p for p in design.peaks(7, 500, "devfreq") if p.rate == "fp32.vector.fp32")
    assert (peak.tflops, peak.low, peak.condition) == (pytest.approx(0.224), None, None)
    assert design.peaks(clock_mhz=500) == ()


def test_one_soc_is_no_range(real: Database) -> None:
    design = real.chip("arm/mali-t604")
    assert design is not None
    assert design.peaks() == design.peaks(units=4) == ()
    assert (design.why_no_peaks(units=4) or "").startswith("chipdb has no clock for arm/mali-t604")
    assert real.chip("arm/exynos-5250-mali-t604mp4") is not None


@pytest.mark.parametrize(
    ("register", "units", "id_"),
    [
        ("arm:0xb802", 1, "arm/mali-g615-mcn"),
        ("arm:0xb802", 2, "arm/mali-g615-mc2"),
        ("arm:0xb802", 9, "arm/mali-g715-mcn"),
        ("arm:0xb802", 10, "arm/immortalis-g715-mcn"),
        ("arm:0xc870", 5, "arm/mali-g620-mcn"),
        ("arm:0xc870", 8, "arm/mali-g720-mc8"),
        ("arm:0xd800", 14, "arm/immortalis-g925-mcn"),
        ("arm:0xd800", 16, "arm/immortalis-g925-mc16"),
        ("arm:0xd800", 6, "arm/mali-g725-mcn"),
    ],
)
def test_the_live_count_names_the_gpu(real: Database, register: str, units: int, id_: str) -> None:
    match = real.match(gpu_id=register, units=units)
    assert match.chip is not None
    assert match.chip.id == id_


def test_a_count_that_no_entry_has_leaves_the_chip_open(real: Database) -> None:
    match = real.match(gpu_id="arm:0xd800", units=25)
    assert match.chip is None
    assert real.match(name="Immortalis-G925 MC14").units == 14


def test_a_package_gives_its_design_a_range(data: Path, make: Make) -> None:
    cores = data / "chips" / "acme" / "cores.toml"
    cores.write_text(FAMILY + DESIGN + SOC.format(1, 4, 1000) + SOC.format(2, 8, 1500))
    assert not [problem for problem in check(str(data)).problems if "cores" in problem.file]
    (chip,) = (chip for chip in make(data).chips() if chip.id == "acme/core")
    (peak,) = (peak for peak in chip.peaks() if peak.rate == "fp16.matrix.fp32")
    assert (peak.low, peak.tflops, peak.confidence) == (2.048, 6.144, "derived")
    assert "Soc 1 Acme Core to Soc 2 Acme Core [book]" in peak.source


def test_the_ends_of_a_design_are_those_of_its_lowest_and_highest_soc(
    data: Path, make: Make
) -> None:
    slow = SOC.format(1, 8, 1000).replace("boost", "boost_low = 500, boost")
    sure = SOC.format(3, 2, 1500) + 'confidence = "community"\n'
    cores = data / "chips" / "acme" / "cores.toml"
    cores.write_text(FAMILY + DESIGN + slow + SOC.format(2, 4, 1400) + sure)
    (chip,) = (chip for chip in make(data).chips() if chip.id == "acme/core")

    def one(**live: int) -> tuple[float | None, float, str]:
        peak = next(peak for peak in chip.peaks(**live) if peak.rate == "fp16.matrix.fp32")
        return peak.low, peak.tflops, peak.confidence

    per_unit = 2.048 / 4 / 1000
    ends = (pytest.approx(2 * 1500 * per_unit), pytest.approx(8 * 1000 * per_unit))
    assert one() == (*ends, "community")
    ends = (pytest.approx(500 * per_unit), pytest.approx(1500 * per_unit))
    assert one(units=1) == (*ends, "community")
    cores.write_text(FAMILY + DESIGN + SOC.format(1, 4, 1000) + SOC.format(2, 4, 1000))
    (chip,) = (chip for chip in make(data).chips() if chip.id == "acme/core")
    assert chip.peaks() == chip.peaks(units=4) == ()
    cores.write_text(FAMILY + DESIGN + SOC.format(1, 4, 1000) + SOC.format(2, 8, 1000))
    (chip,) = (chip for chip in make(data).chips() if chip.id == "acme/core")
    assert one() == (pytest.approx(4000 * per_unit), pytest.approx(8000 * per_unit), "derived")
    assert chip.peaks(units=4) == ()


def test_counts_that_cannot_be_read_are_named(data: Path) -> None:
    cores = data / "chips" / "acme" / "cores.toml"
    cores.write_text(FAMILY + DESIGN + 'counts = ["4-x"]\n')
    faults = [(p.field, p.fix) for p in check(str(data)).problems if "cores" in p.file]
    assert ("counts[0]", "write 4 or 6-9") in faults
