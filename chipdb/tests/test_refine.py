"""A register and a device tree that describe one GPU agree; what all candidates share is told."""

from types import SimpleNamespace
from typing import Any

import pytest

from probe_chipdb.candidates import refines
from probe_chipdb.database import Database
from probe_chipdb.name_facts import facts_in
from probe_chipdb.table import CHIP


def test_the_device_tree_refines_the_register(real: Database) -> None:
    compatibles = ("rockchip,rk3588-mali", "arm,mali-valhall-csf")
    match = real.match(gpu_id="arm:0xa867", dt=compatibles, units=4, name="Mali-G610")
    assert match.chip is not None
    assert (match.chip.id, match.by, match.confidence) == ("arm/rk3588-mali-g610mp4", "dt", "high")
    assert match.conflicts == ()


def test_a_register_without_a_closer_compatible_stands(real: Database) -> None:
    match = real.match(gpu_id="arm:0xa867", dt=("arm,mali-valhall-csf",), units=4)
    assert (match.chip.id if match.chip else None, match.by) == ("arm/mali-g610", "gpu-id")


def test_another_design_is_no_refinement(real: Database) -> None:
    """The register says G610; a device tree of a G52 SoC is somebody's mistake."""
    match = real.match(gpu_id="arm:0xa867", dt=("rockchip,rk3568-mali",))
    assert (match.chip.id if match.chip else None, match.by) == ("arm/mali-g610", "gpu-id")


def test_a_design_named_beside_its_soc_is_no_conflict(real: Database) -> None:
    match = real.match(dt=("mediatek,mt8195-mali", "arm,mali-valhall-jm"), name="Mali-G57")
    assert (match.chip.id if match.chip else None, match.conflicts) == (
        "arm/mt8195-mali-g57mc5",
        (),
    )


def test_another_name_beside_the_soc_is_one(real: Database) -> None:
    match = real.match(dt=("mediatek,mt8195-mali",), name="Mali-G610")
    assert match.chip is not None
    assert (match.chip.id, match.confidence) == ("arm/mt8195-mali-g57mc5", "medium")
    assert len(match.conflicts) == 1


def entry(name: str, units: int | None = None, counts: str = "", **more: str) -> Any:
    """Return what `refines` reads of a chip."""
    facts = {"vendor": "acme", "family": "valhall"} | more
    return SimpleNamespace(name=name, units=units, fields={CHIP.index("counts"): counts}, **facts)


DESIGN, KIT = entry("Mali-G610"), entry("Jetson AGX Orin Developer Kit", 2048)


@pytest.mark.parametrize(
    ("chip", "design", "does"),
    [
        (entry("Acme 3588 Mali-G610 MP4", 4), DESIGN, True),
        (entry("Acme 3588 Mali-G610 MP4", 4), entry("Mali-G610", 4), True),
        (entry("Acme 3588 Mali-G610 MP4", 4), entry("Mali-G610", 6), False),
        (entry("Acme 3588 Mali-G610 MP4", 4), entry("Mali-G610", None, "1-4"), True),
        (entry("Acme 3588 Mali-G610 MP4", 4), entry("Mali-G610", None, "5-6"), False),
        (entry("Acme 3588 Mali-G610 MP4"), entry("Mali-G610", 6), True),
        (entry("Acme 3588 Mali-G6100"), DESIGN, False),
        (entry("Acme 3588 Mali-G52"), DESIGN, False),
        (entry("Acme 3588 Mali-G610", vendor="other"), DESIGN, False),
        (entry("Acme 3588 Mali-G610", family="bifrost"), DESIGN, False),
        (DESIGN, DESIGN, False),
        (entry("Jetson AGX Orin 64GB", 1792), KIT, True),
        (entry("Jetson AGX Orin"), KIT, True),
        (entry("Jetson AGX Orinoco"), KIT, False),
        (entry("The Jetson AGX Orin"), KIT, False),
    ],
)
def test_which_chip_is_an_implementation_of_a_design(chip: Any, design: Any, does: bool) -> None:
    assert refines(chip, design) is does


@pytest.mark.parametrize(
    ("name", "units", "register"),
    [
        ("Mali-G610 MC4 (Panfrost)", 4, ""),
        ("Mali-G610 4 cores r0p0 0xA867", 4, "arm:0xa867"),
        ("Mali-G72 MP3", None, ""),
        ("Immortalis-G720 MC12", 12, ""),
        ("Apple M1 Max (GPU - 32 cores)", 32, ""),
        ("Apple M2 Ultra (76-core GPU)", 76, ""),
        ("Apple M2 Max (G14C B1)", None, ""),
        ("AMD Ryzen 9 7950X 16-Core Processor", None, ""),
    ],
)
def test_counts_in_names(name: str, units: int | None, register: str) -> None:
    facts = facts_in(name)
    assert (int(facts.get("units", 0)) or None, facts.get("gpu_id", "")) == (units, register)


def test_a_count_in_the_name_is_the_live_count(real: Database) -> None:
    match = real.match(name="Mali-G610 MC4 (Panfrost)")
    assert (match.chip.id if match.chip else None, match.units) == ("arm/mali-g610", 4)
    assert real.match(name="Mali-G610", units=4).units == 4
    assert real.match(name="Mali-G610").units is None


def test_a_count_in_the_name_chooses(real: Database) -> None:
    match = real.match(name="Apple M1 Max (GPU - 32 cores)")
    assert match.chip is not None
    assert match.chip.id == "apple/m1-max-32c"


def test_candidates_tell_what_they_share(real: Database) -> None:
    match = real.match(name="NVIDIA GeForce RTX 4060 Ti")
    assert match.chip is None
    assert len(match.candidates) == 2
    shared = {peak.rate: peak.tflops for peak in match.shared_peaks() if peak.sparsity == "dense"}
    assert shared["fp32.vector.fp32"] == pytest.approx(34 * 256 * 2535 / 1e6)
    assert all("the same for all of" in peak.source for peak in match.shared_peaks())


def test_candidates_that_differ_share_nothing(real: Database) -> None:
    match = real.match(name="NVIDIA GeForce RTX 3080")
    assert len(match.candidates) == 2
    assert match.shared_peaks() == ()


def test_a_known_chip_shares_its_peaks_with_nobody(real: Database) -> None:
    match = real.match(pci="10de:2684", units=100)
    assert match.chip is not None
    assert [peak.tflops for peak in match.shared_peaks()] == [
        peak.tflops for peak in match.chip.peaks(units=100)
    ]
    assert real.match(name="nothing").shared_peaks() == ()


def test_a_revision_chooses_among_products_of_one_lspci_name(real: Database) -> None:
    line = "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31"
    line += " [Radeon RX 7900 XT/7900 XTX/7900M] (rev {})"
    xtx = real.match(name=line.format("c8"), name_kind="lspci")
    unsure = real.match(name=line.format("77"), name_kind="lspci")
    assert (xtx.chip.id if xtx.chip else None) == "amd/radeon-rx-7900-xtx"
    assert unsure.chip is None
    assert len(unsure.candidates) >= 3
